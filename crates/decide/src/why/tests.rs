use super::*;
use polity_llm::FailureKind;
use polity_society::agent::Standing;
use polity_society::content::Capability;
use polity_society::id::{ArtifactId, RoleId};
use polity_society::tool_group::ToolGroup;
use polity_view::{Because, Routing, SentOutcome, Shown, WhyDescribed};

fn sent(because: Because, services: &[&str], contacts: &[&str]) -> SentRequest {
    SentRequest {
        number: 7,
        agent: AgentId::new("mara"),
        task: TaskId::new("t-1"),
        turn: 3,
        service: ServiceId::new("writer"),
        model: "m".to_owned(),
        revision: 2,
        outcome: SentOutcome::Answered,
        record: None,
        at: 0,
        shown: vec![Shown {
            artifact: ArtifactId::new("pic"),
            routing: Routing::Described,
            why: Some(WhyDescribed {
                because,
                takes: vec![Capability::TEXT],
                services: services.iter().map(|id| ServiceId::new(*id)).collect(),
                contacts: contacts.iter().map(|id| AgentId::new(*id)).collect(),
            }),
        }],
        body: None,
    }
}

fn help(services: &[&str], able: &[(&str, Known)]) -> Help {
    Help {
        role: Some(RoleId::new("role-1")),
        standing: Some(Standing::Active),
        services: services.iter().map(|id| ServiceId::new(*id)).collect(),
        able: able
            .iter()
            .map(|(agent, known)| Able {
                agent: AgentId::new(*agent),
                service: ServiceId::new("eyes"),
                known: *known,
            })
            .collect(),
    }
}

fn words(why: &Why) -> String {
    let facts = why.chain.iter().map(|fact| fact.sentence(100_000));
    facts
        .chain(
            why.remedies
                .iter()
                .flat_map(|remedy| remedy.sentences(""))
                .map(|sentence| format!("- {sentence}")),
        )
        .collect::<Vec<_>>()
        .join("\n")
}

fn explained(because: Because, services: &[&str], contacts: &[&str], help: &Help) -> String {
    let sent = sent(because, services, contacts);
    words(&described(&sent, &sent.shown[0], Some("picture.png".to_owned()), help))
}

fn blind() -> Because {
    Because::MissingCapability { capability: Capability::VISION }
}

#[test]
fn a_description_names_the_service_who_can_and_whom_to_introduce() {
    let help = help(&["eyes"], &[("seer", Known::No)]);
    insta::assert_snapshot!(explained(blind(), &["eyes"], &[], &help), @r"
    picture.png (artifact:pic) was described to mara in request 7
    service writer (revision 2) takes text only
    eyes can take it
    mara had no contact on eyes
    - introduce seer, which is on eyes, to mara (in the live view)
    - give the role of mara the service eyes (in the live view)
    - run turn 3 of mara again with eyes: polity fork t-1 --turn 3 --service eyes
    ");
}

#[test]
fn an_agent_that_has_ended_can_still_run_its_turn_again() {
    let help = Help { standing: Some(Standing::Ended), ..help(&["eyes"], &[("seer", Known::No)]) };
    let sent = sent(blind(), &["eyes"], &[]);
    let offered = described(&sent, &sent.shown[0], None, &help).remedies;
    assert_eq!(offered, [run_again(&sent, Some(ServiceId::new("eyes")))]);
    let forgotten = Help { standing: None, ..help };
    assert!(described(&sent, &sent.shown[0], None, &forgotten).remedies.is_empty());
}

#[test]
fn a_description_although_a_contact_could_see() {
    let help = help(&["eyes"], &[("seer", Known::Yes)]);
    insta::assert_snapshot!(explained(blind(), &["eyes"], &["seer"], &help), @r#"
    picture.png (artifact:pic) was described to mara in request 7
    service writer (revision 2) takes text only
    eyes can take it
    mara could have sent it to seer
    - write again: polity send --to mara --task t-1 "…"
    - give the role of mara the service eyes (in the live view)
    - run turn 3 of mara again with eyes: polity fork t-1 --turn 3 --service eyes
    "#);
}

#[test]
fn nobody_can_see() {
    insta::assert_snapshot!(explained(blind(), &[], &[], &help(&[], &[])), @r"
    picture.png (artifact:pic) was described to mara in request 7
    service writer (revision 2) takes text only
    no other service can take it
    - add a service that takes vision to llmservices.json
    ");
}

#[test]
fn what_no_service_can_mend_offers_none() {
    let help = help(&["eyes"], &[("seer", Known::No)]);
    insta::assert_snapshot!(explained(Because::EarlierAttachment { limit: 5 }, &["eyes"], &[], &help), @r"
    picture.png (artifact:pic) was described to mara in request 7
    it belongs to an earlier message, and newer media fill the 5 bytes of a request to service writer (revision 2)
    ");
}

/// Returns the events with the times 1 s, 2 s, 3 s and so on.
fn entries(events: impl IntoIterator<Item = Event>) -> Vec<Entry> {
    (1..).zip(events).map(|(seq, event)| Entry { seq, at: seq * 1_000, event }).collect()
}

fn failed(attempt: u32, next: NextAttempt) -> Event {
    Event::ModelFailed {
        task: TaskId::new("t-1"),
        agent: AgentId::new("mara"),
        service: ServiceId::new("writer"),
        attempt,
        kind: FailureKind::Passing,
        status: Some(500),
        reason: "out of memory".to_owned(),
        next,
        suspects: Vec::new(),
        sent: Some(i64::from(attempt)),
    }
}

#[test]
fn a_parked_agent_is_explained_by_its_last_call() {
    let (agent, task) = (AgentId::new("mara"), TaskId::new("t-1"));
    let before = entries([
        failed(1, NextAttempt::GiveUp),
        failed(1, NextAttempt::Retry),
        failed(2, NextAttempt::GiveUp),
    ]);
    let halted = || parked_event(None);
    let turns = entries([
        turn_ended(Some("long ago")),
        halted(),
        turn_ended(Some("no key")),
        turn_ended(Some("server error")),
        halted(),
    ]);
    let facts = Parked {
        agent: &agent,
        task: &task,
        reason: "server error",
        lasts: Lasts::Still,
        limit: 2,
        turns: &turns,
        before: &before,
    };
    let explained = parked(&facts);
    assert_eq!(failed_request(&explained), Some(2));
    insta::assert_snapshot!(words(&explained), @r"
    mara is parked in t-1: server error
    mara failed in 2 turns in a row, and limits.maxFailedTurns in app.json is 2
    a turn of mara failed 1 min 37 s ago: no key
    a turn of mara failed 1 min 36 s ago: server error
    attempt 1 of mara at writer failed (request 1): server error, HTTP 500: out of memory
    the call tried again
    attempt 2 of mara at writer failed (request 2): server error, HTTP 500: out of memory
    the call made no further attempt
    - go on: polity resume mara --alone
    - check writer and its entry in llmservices.json: polity doctor
    ");
    // A turn that ended well, or a stop, ends the row. Then the agent was parked for another reason.
    let stopped = Event::AgentStopped { task: task.clone(), agent: agent.clone() };
    for between in [turn_ended(None), stopped] {
        let turns =
            entries([turn_ended(Some("no key")), between, turn_ended(Some("server error")), halted()]);
        assert_eq!(failed_turns(&turns), [(3_000, "server error")]);
        let why = parked(&Parked { turns: &turns, ..facts.clone() });
        assert!(!why.chain.iter().any(|fact| matches!(fact, Fact::FailedTurns { .. })), "{why:?}");
    }
}

fn turn_ended(failure: Option<&str>) -> Event {
    Event::TurnEnded {
        task: TaskId::new("t-1"),
        agent: AgentId::new("mara"),
        failure: failure.map(str::to_owned),
    }
}

fn parked_event(failed_turns: Option<u64>) -> Event {
    Event::AgentParked {
        task: TaskId::new("t-1"),
        agent: AgentId::new("mara"),
        reason: "server error".to_owned(),
        failed_turns,
    }
}

fn answered() -> Event {
    Event::ModelAnswered {
        task: TaskId::new("t-1"),
        agent: AgentId::new("mara"),
        service: ServiceId::new("writer"),
        model: "m".to_owned(),
        revision: 1,
        usage: polity_llm::Usage::default(),
        attempts: 1,
        content: Vec::new(),
        sent: None,
    }
}

#[test]
fn only_the_failed_turns_that_counted_explain_a_parked_agent() {
    // A turn that a limit stopped, and failures that a stop without any work has forgotten, leave no other event.
    let all = [turn_ended(Some("forgotten")), turn_ended(Some("limit_reached: maxTokensPerTask = 10"))];
    let counted = [turn_ended(Some("no key")), turn_ended(Some("server error"))];
    let check = |failed_turns: Option<u64>, expect: &[&str]| {
        let turns = entries(all.iter().chain(&counted).cloned().chain([parked_event(failed_turns)]));
        let reasons: Vec<&str> = super::failed_turns(&turns).into_iter().map(|(_, reason)| reason).collect();
        assert_eq!(reasons, expect);
    };
    check(Some(2), &["no key", "server error"]);
    check(Some(0), &[]);
    check(None, &["forgotten", "limit_reached: maxTokensPerTask = 10", "no key", "server error"]);
}

#[test]
fn an_agent_that_is_parked_no_longer_has_nothing_to_resume() {
    let (agent, task) = (AgentId::new("mara"), TaskId::new("t-1"));
    let turns = entries([turn_ended(Some("server error")), parked_event(Some(1))]);
    let before = entries([failed(1, NextAttempt::GiveUp), turn_ended(Some("server error"))]);
    let facts = Parked {
        agent: &agent,
        task: &task,
        reason: "server error",
        lasts: Lasts::NoLonger,
        limit: 1,
        turns: &turns,
        before: &before,
    };
    insta::assert_snapshot!(words(&parked(&facts)), @r"
    mara failed in 1 turn, and limits.maxFailedTurns in app.json is 1
    a turn of mara failed 1 min 39 s ago: server error
    attempt 1 of mara at writer failed (request 1): server error, HTTP 500: out of memory
    the call made no further attempt
    - check writer and its entry in llmservices.json: polity doctor
    ");
    let other = entries([parked_event(Some(0))]);
    let facts = Parked { turns: &other, ..facts };
    assert_eq!(words(&parked(&facts)), "a turn of mara failed: server error");
    assert_eq!(words(&paused(&agent, Lasts::NoLonger)), "you paused mara");
}

#[test]
fn a_turn_is_explained_by_its_own_attempts_only() {
    let down = || failed(1, NextAttempt::GiveUp);
    let of = |before: &[Event], reason: &str| {
        words(
            &event(&turn_ended(Some(reason)), &entries(before.iter().cloned()), Refusal::default()).unwrap(),
        )
    };
    let first = "a turn of mara failed: server error\nattempt 1 of mara";
    assert!(of(&[down()], "server error").starts_with(first), "{}", of(&[down()], "server error"));
    // The server was down in an earlier turn, or it would have been asked again.
    for before in [vec![down(), turn_ended(Some("server error"))], vec![failed(1, NextAttempt::Retry)]] {
        assert_eq!(of(&before, "limit_reached: x = 1"), "a turn of mara failed: limit_reached: x = 1");
    }
}

#[test]
fn a_failure_that_was_forgotten_explains_nothing() {
    let (agent, task) = (AgentId::new("mara"), TaskId::new("t-1"));
    let reasons = |more: &[Event]| {
        let events = [failed(1, NextAttempt::GiveUp), turn_ended(Some("server error"))];
        super::failure(&entries(events.iter().chain(more).cloned())).is_some()
    };
    assert!(reasons(&[]));
    assert!(!reasons(&[Event::AgentStopped { task, agent: agent.clone() }]));
    assert!(!reasons(&[parked_event(Some(1)), Event::AgentResumed { agent }]));
    assert!(!reasons(&[answered(), turn_ended(None)]));
    // While the agent works again, the failure of its last turn does not tell why it is slow.
    let again = entries([failed(1, NextAttempt::GiveUp), turn_ended(Some("server error"))]);
    assert_eq!(struggling(&again), None);
    assert!(struggling(&again[..1]).is_some());
}

#[test]
fn a_request_is_explained_by_the_first_failure_after_it() {
    let agent = AgentId::new("mara");
    let events = entries([
        turn_ended(Some("before")),
        failed(1, NextAttempt::GiveUp),
        turn_ended(Some("server error")),
        turn_ended(Some("after")),
    ]);
    let told = words(&failed_since(&events, 2_000).unwrap());
    assert!(told.starts_with("a turn of mara failed: server error\nattempt 1 of mara at writer"), "{told}");
    let stopped = Event::AgentStopped { task: TaskId::new("t-1"), agent };
    let told = words(&failed_since(&entries([stopped.clone(), turn_ended(Some("after"))]), 0).unwrap());
    assert!(told.starts_with("you stopped the work of mara in t-1, 1 min 39 s ago\n- write again"), "{told}");
    // A stop ends the open turn as failed, and that is no failure. A stop after a failure is not the first reason.
    let [ended, mut stop] = <[Entry; 2]>::try_from(entries([turn_ended(Some("stopped")), stopped])).unwrap();
    let told = words(&failed_since(&[ended.clone(), stop.clone()], 0).unwrap());
    assert!(told.starts_with("a turn of mara failed: stopped"), "{told}");
    stop.at = ended.at;
    let told = words(&failed_since(&[ended, stop], 0).unwrap());
    assert!(told.starts_with("you stopped the work of mara"), "{told}");
    assert_eq!(failed_since(&entries([turn_ended(None)]), 0), None);
}

fn refused(refusal: Refusal) -> String {
    let call = Event::ToolCalled {
        task: TaskId::new("t-1"),
        agent: AgentId::new("mara"),
        tool: "bash".to_owned(),
        call: None,
        error: Some("refused".to_owned()),
        duration_ms: None,
        head: None,
    };
    words(&event(&call, &[], refusal).unwrap())
}

#[test]
fn a_refused_call_names_everything_that_denies_the_caller_its_tools() {
    let role = |role: &str, agent: &str, names: &[ToolGroup]| Denier::Role {
        role: RoleId::new(role),
        agent: AgentId::new(agent),
        names: names.to_vec(),
    };
    let (files, command) = (ToolGroup::Files, ToolGroup::Command);
    let denied = vec![
        Denied { by: Denier::Settings, groups: vec![command.clone()] },
        Denied {
            by: role("role-1", "mara", &[ToolGroup::Web]),
            groups: vec![files.clone(), command.clone()],
        },
        Denied { by: role("role-2", "theo", &[files]), groups: vec![command] },
    ];
    let text = Some("not permitted".to_owned());
    let refusal = Refusal { text, denied, stranger: None };
    let remedies = refusal.remedies(&AgentId::new("mara"), &TaskId::new("t-1"));
    let WhyRemedy::AllowGroups { tool_groups, .. } = &remedies[1] else { panic!("{remedies:?}") };
    assert_eq!(*tool_groups, [ToolGroup::Web, ToolGroup::Files, ToolGroup::Command]);
    insta::assert_snapshot!(refused(refusal), @r#"
    mara was refused bash: refused
    not permitted
    - add command to tools.root in app.json
    - give the role of mara the tools of files, command (in the live view)
    - give the role of theo the tools of command (in the live view)
    - write again: polity send --to mara --task t-1 "…"
    "#);
}

#[test]
fn a_caller_is_introduced_to_the_agent_that_it_does_not_know() {
    let refusal = Refusal { stranger: Some(AgentId::new("theo")), ..Refusal::default() };
    insta::assert_snapshot!(refused(refusal), @r"
    mara was refused bash: refused
    - introduce theo to mara (in the live view)
    ");
    assert_eq!(refused(Refusal::default()), "mara was refused bash: refused");
}

#[test]
fn a_failed_turn_runs_again_with_the_service_that_misses_the_least_and_has_not_failed() {
    let explained = event(&failed(2, NextAttempt::GiveUp), &[], Refusal::default()).unwrap();
    let candidate = |id: &str, lacks| Candidate { service: ServiceId::new(id), lacks };
    let check = |candidates: &[Candidate], expect: Option<&str>| {
        assert_eq!(another_service(&explained, candidates), expect.map(ServiceId::new));
    };
    check(&[], None);
    // The explanation says that an attempt at `writer` has failed.
    check(&[candidate("writer", 0)], None);
    check(&[candidate("writer", 0), candidate("blind", 1), candidate("eyes", 0)], Some("eyes"));
    check(&[candidate("first", 1), candidate("second", 1)], Some("first"));
}

#[test]
fn a_task_without_an_answer_tells_who_is_silent() {
    let task_id = TaskId::new("t-1");
    let open = [OpenRequest {
        message: MessageId::from_sequence(4),
        from: "root".to_owned(),
        to: AgentId::new("mara"),
        since: 98_000,
    }];
    let parked = [(AgentId::new("mara"), "server error".to_owned())];
    let ended = Ended {
        task: &task_id,
        outcome: Outcome::Unanswered,
        stopped_by: None,
        open: &open,
        parked: &parked,
        of_root: &[],
        stops: &[],
    };
    insta::assert_snapshot!(words(&task(&ended, "user")), @r#"
    nothing is left to do in t-1: it ended without an answer
    mara has not answered m000000004 of root, sent 2 s ago
    mara is parked in t-1: server error
    - go on: polity resume mara --alone
    - write again: polity send --to root --task t-1 "…"
    "#);
    let answered = Ended { outcome: Outcome::Answered, open: &[], parked: &[], ..ended.clone() };
    assert_eq!(words(&task(&answered, "user")), "nothing is left to do in t-1: it ended with an answer");
    // What failed on the way explains neither an answer nor a stop.
    let down = entries([failed(1, NextAttempt::GiveUp), turn_ended(Some("server error"))]);
    let failing = Ended { of_root: &down, ..ended.clone() };
    assert!(words(&task(&failing, "user")).contains("a turn of mara failed: server error\nattempt 1"));
    let answered = Ended { outcome: Outcome::Answered, open: &[], ..failing.clone() };
    assert_eq!(words(&task(&answered, "user")), "nothing is left to do in t-1: it ended with an answer");
    let stopped = Ended { stopped_by: Some("user"), open: &[], ..failing };
    insta::assert_snapshot!(words(&task(&stopped, "user")), @r#"
    nothing is left to do in t-1: it ended without an answer
    you stopped t-1
    - write again: polity send --to root --task t-1 "…"
    "#);
    let limited = Ended {
        outcome: Outcome::Limited,
        stopped_by: Some("maxTokensPerTask"),
        open: &[],
        parked: &[],
        ..ended
    };
    insta::assert_snapshot!(words(&task(&limited, "user")), @r#"
    nothing is left to do in t-1: it ended without an answer, because a limit stopped it
    limits.maxTokensPerTask was reached
    - raise limits.maxTokensPerTask in app.json, and write to root again
    - write again: polity send --to root --task t-1 "…"
    "#);
}

#[test]
fn what_the_person_has_stopped_is_named() {
    let (task_id, mara) = (TaskId::new("t-1"), AgentId::new("mara"));
    let request = OpenRequest {
        message: MessageId::from_sequence(4),
        from: "root".to_owned(),
        to: mara.clone(),
        since: 50_000,
    };
    let stop =
        |at| Entry { seq: 1, at, event: Event::AgentStopped { task: task_id.clone(), agent: mara.clone() } };
    let other = Event::AgentStopped { task: task_id.clone(), agent: AgentId::new("theo") };
    let stops = [stop(40_000), Entry { seq: 1, at: 60_000, event: other }, stop(70_000)];
    let open = [request.clone()];
    let ended = Ended {
        task: &task_id,
        outcome: Outcome::Answered,
        stopped_by: None,
        open: &open,
        parked: &[],
        of_root: &[],
        stops: &stops,
    };
    insta::assert_snapshot!(words(&task(&ended, "user")), @r"
    nothing is left to do in t-1: it ended with an answer
    mara has not answered m000000004 of root, sent 50 s ago
    you stopped the work of mara in t-1, 30 s ago
    ");
    // Who stops a task stops all agents in it.
    let all_of_it = Ended { outcome: Outcome::Unanswered, stopped_by: Some("user"), ..ended };
    assert!(!words(&task(&all_of_it, "user")).contains("the work of mara"));

    insta::assert_snapshot!(words(&withdrawn(&request, &task_id, Some(&task_id), &stops)), @r#"
    m000000004 to mara was taken back
    you stopped t-1
    - write again: polity send --to mara --task t-1 "…"
    "#);
    insta::assert_snapshot!(words(&withdrawn(&request, &task_id, None, &stops)), @r#"
    m000000004 to mara was taken back
    you stopped the work of mara in t-1, 30 s ago
    - write again: polity send --to mara --task t-1 "…"
    "#);
    assert!(words(&stopped(&stops).unwrap()).starts_with("you stopped the work of mara in t-1, 30 s ago\n"));
    // The agent has worked since.
    assert_eq!(stopped(&entries([stops[0].event.clone(), turn_ended(None)])), None);
}
