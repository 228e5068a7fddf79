use super::*;
use polity_society::id::ApprovalId;
use polity_store::view::now::{Asked, Hold};
use polity_view::{NextAttempt, Silence};
use proptest::prelude::*;

const NOW: i64 = 1_000_000;

fn who(agent: &str) -> Conversation {
    Conversation { agent: AgentId::new(agent), task: TaskId::new("t") }
}

fn request(number: i64, from: &str, to: &str, since: i64) -> OpenRequest {
    OpenRequest {
        id: MessageId::from_sequence(number),
        task: TaskId::new("t"),
        from: AgentId::new(from),
        to: AgentId::new(to),
        since,
        is_delayed: false,
        task_state: TaskState::Open,
    }
}

fn thinking(service: &str, silence: Option<Silence>) -> Doing {
    Doing::Thinking {
        task: TaskId::new("t"),
        service: ServiceId::new(service),
        attempt: 1,
        since: NOW - 20_000,
        first_byte: None,
        tokens: 0,
        silence,
    }
}

/// The facts about a society. By default, the society is empty; each test adds the facts that it needs.
#[derive(Clone, Debug, Default)]
struct Society {
    open: Open,
    moments: Vec<(AgentId, Doing)>,
    services: Vec<(ServiceId, ServiceState)>,
    answered: HashSet<TaskId>,
}

impl Society {
    fn see<T>(&self, runs: Runs, look: impl FnOnce(&Scene<'_>) -> T) -> T {
        let moments: Moments = self.moments.iter().cloned().collect();
        look(&Scene {
            now: NOW,
            runs,
            open: &self.open,
            moments: &moments,
            services: &self.services,
            answered: &self.answered,
        })
    }

    fn keys(&self) -> Vec<String> {
        self.see(Runs::Here, |scene| found(scene).iter().map(Found::key).collect())
    }

    fn remedies(&self, choices: &Choices) -> Vec<Vec<Remedy>> {
        let found = self.see(Runs::Here, found);
        let moments: Moments = self.moments.iter().cloned().collect();
        found.iter().map(|found| remedies(found, choices, &moments)).collect()
    }
}

/// Returns choices with the service `other`. The role of the agent could use this service, and so could root's turn 7
/// in the task `t`.
fn choice(agent: &str) -> Choices {
    let services = vec![ServiceId::new("other")];
    let role = Choice { role: RoleId::new("r-1"), name: "clerk".to_owned(), services: services.clone() };
    Choices {
        roles: HashMap::from([(AgentId::new(agent), role)]),
        turns: HashMap::from([(TaskId::new("t"), Again { turn: TurnId::new(7), services })]),
    }
}

/// Returns the remedy that begins root's turn 7 in the task `t` again with the service `other`.
fn again() -> Remedy {
    Remedy::RunAgain { task: TaskId::new("t"), turn: 7, services: vec![ServiceId::new("other")] }
}

/// Checks a request from root to the agent `clerk`. The request is an hour old, and `change` adds facts about the
/// clerk. `expect` is the reason why the request is stuck, or `None` if it is not stuck.
#[track_caller]
fn check_request(change: impl FnOnce(&mut Society), expect: Option<Cause>) {
    let mut society = Society::default();
    society.open.requests = vec![request(1, "root", "clerk", NOW - 3_600_000)];
    change(&mut society);
    let found = society.see(Runs::Here, found);
    let causes: Vec<Cause> = found
        .iter()
        .filter_map(|found| match found.stuck {
            Stuck::Request { cause, .. } => Some(cause),
            _ => None,
        })
        .collect();
    assert_eq!(causes, Vec::from_iter(expect));
}

#[test]
fn a_request_is_stuck_if_nobody_works_on_its_answer() {
    let clerk = || who("clerk");
    check_request(|_| {}, Some(Cause::Idle));
    check_request(|society| society.open.paused = [(clerk().agent, 5)].into(), Some(Cause::Paused));
    // The request is not stuck if the work began a moment ago, or if a part of the work was recorded a moment ago.
    check_request(|society| society.open.work = [(clerk(), NOW - 1)].into(), None);
    check_request(|society| society.open.work = [(clerk(), NOW - QUIET_MS)].into(), Some(Cause::Quiet));
    check_request(
        |society| {
            society.open.work = [(clerk(), NOW - QUIET_MS)].into();
            society.open.newest = [(clerk(), NOW - 1)].into();
        },
        None,
    );
    check_request(
        |society| {
            society.open.work = [(clerk(), 0)].into();
            society.moments = vec![(clerk().agent, thinking("local", None))];
        },
        None,
    );
    check_request(|society| society.open.newest = [(clerk(), NOW - 1)].into(), None);
    check_request(|society| society.open.timed = [clerk()].into(), None);
    check_request(|society| society.open.requests[0].is_delayed = true, None);
    check_request(|society| society.open.requests[0].task_state = TaskState::Idle, None);
    check_request(|society| society.open.requests[0].from = AgentId::user(), None);
    check_request(
        |society| {
            society.open.requests[0].from = AgentId::user();
            society.open.paused = [(clerk().agent, 5)].into();
        },
        Some(Cause::Paused),
    );
}

#[test]
fn what_holds_a_request_up_is_shown_instead_of_the_request() {
    let mut society = Society::default();
    society.open.requests = vec![
        request(1, "root", "clerk", 10),
        request(2, "clerk", "scribe", 20),
        request(3, "scribe", "user", 30),
    ];
    assert_eq!(society.keys(), ["question m000000003"]);
    society.open.requests.pop();
    let asked = Asked {
        who: who("scribe"),
        approval: ApprovalId::from_number(4),
        tool: "run_command".to_owned(),
        since: 40,
        expires_at: NOW,
    };
    society.open.approvals = vec![asked];
    assert_eq!(society.keys(), ["approval q4"]);
    society.open.approvals.clear();
    society.open.holds = vec![Hold { who: who("scribe"), reason: "it failed".to_owned(), since: 50 }];
    let found = society.see(Runs::Here, found);
    let asked_by = vec![AgentId::new("clerk")];
    let stuck = Stuck::Parked { agent: AgentId::new("scribe"), reason: "it failed".to_owned(), asked_by };
    assert_eq!(found, [Found { since: 50, task: Some(TaskId::new("t")), stuck }]);
}

#[test]
fn a_paused_agent_is_stuck_if_it_holds_something_up() {
    let resume = |agent| Remedy::Resume { agent: AgentId::new(agent), scope: ResumeScope::Subtree };
    let mut society = Society::default();
    let paused = |agents: &[&str]| agents.iter().map(|agent| (AgentId::new(*agent), 5)).collect();
    society.open.paused = paused(&["clerk"]);
    assert_eq!(society.keys(), [""; 0], "the clerk has nothing to do");
    society.open.work = [(who("clerk"), 0), (who("scribe"), 0)].into();
    assert_eq!(society.keys(), ["paused clerk"]);
    let stop = Remedy::StopAgent { agent: AgentId::new("clerk") };
    assert_eq!(society.remedies(&Choices::default()), [[resume("clerk"), stop]]);
    // The request tells that the clerk is paused.
    society.open.requests = vec![request(1, "root", "clerk", 10)];
    assert_eq!(society.keys(), ["request m000000001"]);
    // The parked clerk goes on when it is resumed.
    society.open.requests.clear();
    society.open.holds = vec![Hold { who: who("clerk"), reason: "it failed".to_owned(), since: 50 }];
    assert_eq!(society.keys(), ["parked clerk t"]);
    // A paused root takes no prompts, even if nobody has work. Who resumes root also resumes the clerk.
    society.open.holds.clear();
    society.open.paused = paused(&["clerk", "root"]);
    for work in [society.open.work.clone(), HashMap::new()] {
        society.open.work = work;
        assert_eq!(society.keys(), ["paused root"]);
        assert_eq!(society.remedies(&Choices::default()), [[resume("root")]]);
    }
}

#[test]
fn without_a_process_only_what_needs_the_person_is_stuck() {
    let mut society = Society::default();
    society.open.requests = vec![request(1, "root", "clerk", 0), request(2, "clerk", "user", 5)];
    society.open.work = [(who("clerk"), 0)].into();
    let keys: Vec<String> = society.see(Runs::Nowhere, |scene| found(scene).iter().map(Found::key).collect());
    assert_eq!(keys, ["question m000000002"]);
}

#[test]
fn an_answered_task_in_which_root_waits_is_stuck() {
    let mut society = Society::default();
    let left = OpenRequest { task_state: TaskState::Idle, ..request(1, "root", "clerk", 7) };
    society.open.requests = vec![left];
    assert_eq!(unfinished(&society.open), [TaskId::new("t")]);
    // The task was not answered. The list of tasks shows this already, so the task does not count as stuck.
    assert_eq!(society.keys(), [""; 0]);
    society.answered = [TaskId::new("t")].into();
    assert_eq!(society.keys(), ["answered t"]);
    let expect = vec![
        Remedy::Write { to: AgentId::root(), task: TaskId::new("t") },
        Remedy::StopTask { task: TaskId::new("t") },
    ];
    assert_eq!(society.remedies(&Choices::default()), [expect]);
}

#[test]
fn services_in_trouble_are_stuck() {
    let service = |id: &str, state: ServiceState| (ServiceId::new(id), state);
    let silence =
        Silence { since: NOW - 15_000, until: NOW + 45_000, then: NextAttempt::Retry, fallback: None };
    let mut society = Society {
        moments: vec![
            (AgentId::root(), thinking("mute", Some(silence))),
            (AgentId::new("clerk"), thinking("broken", None)),
        ],
        services: vec![
            service("fine", ServiceState::default()),
            service("mute", ServiceState::default()),
            service(
                "broken",
                ServiceState {
                    circuit: Circuit::Open,
                    failing_since: Some(NOW - 30_000),
                    last_error: Some("500".to_owned()),
                    ..ServiceState::default()
                },
            ),
            service("asleep", ServiceState { paused_for_ms: Some(500), ..ServiceState::default() }),
        ],
        ..Society::default()
    };
    assert_eq!(society.keys(), ["service broken", "service mute", "service asleep"]);
    let another = Remedy::Service {
        role: RoleId::new("r-1"),
        name: "clerk".to_owned(),
        services: vec![ServiceId::new("other")],
        resume: None,
    };
    let check = |service: &str| Remedy::CheckService { service: ServiceId::new(service) };
    let try_again = |service: &str| Remedy::TryAgain { service: ServiceId::new(service) };
    let expect = [
        vec![
            another,
            try_again("broken"),
            check("broken"),
            Remedy::StopAgent { agent: AgentId::new("clerk") },
        ],
        // Root has no role that could use another service.
        vec![again(), check("mute"), Remedy::StopTask { task: TaskId::new("t") }],
        // No agent needs this service now.
        vec![try_again("asleep"), check("asleep")],
    ];
    assert_eq!(society.remedies(&choice("clerk")), expect);
    // There is no other service.
    let without_others = society.remedies(&Choices::default());
    assert_eq!(without_others[1], [check("mute"), Remedy::StopTask { task: TaskId::new("t") }]);
    society.services.clear();
    assert_eq!(society.keys(), [""; 0]);
}

#[test]
fn a_parked_agent_is_resumed_also_with_another_service() {
    let mut society = Society::default();
    society.open.holds = vec![Hold { who: who("clerk"), reason: "it failed".to_owned(), since: 50 }];
    let clerk = || AgentId::new("clerk");
    let [remedies] = &society.remedies(&choice("clerk"))[..] else { panic!("not one thing is stuck") };
    let [resume, another, stop] = &remedies[..] else { panic!("{remedies:?}") };
    assert_eq!(*resume, Remedy::Resume { agent: clerk(), scope: ResumeScope::Agent });
    assert!(
        matches!(another, Remedy::Service { resume: Some(agent), .. } if *agent == clerk()),
        "{another:?}"
    );
    assert_eq!(*stop, Remedy::StopAgent { agent: clerk() });
    society.open.holds[0].who = who("root");
    let resume = Remedy::Resume { agent: AgentId::root(), scope: ResumeScope::Agent };
    let expect = vec![resume, again(), Remedy::StopTask { task: TaskId::new("t") }];
    assert_eq!(society.remedies(&choice("clerk")), [expect]);
}

#[test]
fn cards_are_in_the_order_of_the_newest_activity() {
    let mut society = Society::default();
    society.open.work = [(who("old"), 10), (who("new"), 20), (who("parked"), 99), (who("paused"), 99)].into();
    society.open.requests = vec![request(1, "user", "new", 5), request(2, "root", "old", 15)];
    society.open.newest = [(who("root"), 30)].into();
    society.open.holds = vec![Hold { who: who("parked"), reason: String::new(), since: 0 }];
    society.open.paused = [(AgentId::new("paused"), 5)].into();
    let names = |society: &Society| {
        society.see(Runs::Here, |scene| {
            active(scene).iter().map(|active| (active.who.agent.to_string(), active.at)).collect::<Vec<_>>()
        })
    };
    let expect =
        |rows: &[(&str, i64)]| rows.iter().map(|(agent, at)| ((*agent).to_owned(), *at)).collect::<Vec<_>>();
    assert_eq!(names(&society), expect(&[("root", 30), ("new", 20), ("old", 10)]));
    society.moments = vec![(AgentId::new("old"), thinking("local", None))];
    assert_eq!(names(&society), expect(&[("old", NOW - 20_000), ("root", 30), ("new", 20)]));
}

/// Root asks the person about a call in the task `t`, is parked in `u`, and works in `v`.
#[test]
fn what_holds_root_up_in_one_task_does_not_hide_its_work_in_another() {
    let root_in = |task: &str| Conversation { agent: AgentId::root(), task: TaskId::new(task) };
    let mut society = Society::default();
    society.open.work = [(root_in("t"), 10), (root_in("v"), 20)].into();
    society.open.approvals = vec![Asked {
        who: root_in("t"),
        approval: ApprovalId::from_number(4),
        tool: "run_command".to_owned(),
        since: 40,
        expires_at: NOW,
    }];
    society.open.holds = vec![Hold { who: root_in("u"), reason: "it failed".to_owned(), since: 50 }];
    let stances = |society: &Society| {
        society.see(Runs::Here, |scene| active(scene).iter().map(|active| active.stance).collect::<Vec<_>>())
    };
    assert_eq!(stances(&society), [Stance::Works]);
    assert_eq!(society.keys(), ["approval q4", "parked root u"]);
    // Root's work in `v` has ended, so root can go on nowhere.
    society.open.work.remove(&root_in("v"));
    assert!(stances(&society).is_empty());
    society.open.holds.clear();
    assert_eq!(stances(&society), [Stance::Waits]);
    assert_eq!(society.keys(), ["approval q4"]);
}

/// Root waits for a silent server in the task `t`, and works at another service in `u`.
#[test]
fn the_remedies_of_a_service_are_for_the_task_that_calls_it() {
    let silence =
        Silence { since: NOW - 15_000, until: NOW + 45_000, then: NextAttempt::Retry, fallback: None };
    let elsewhere = Doing::Thinking {
        task: TaskId::new("u"),
        service: ServiceId::new("fine"),
        attempt: 1,
        since: NOW - 50_000,
        first_byte: None,
        tokens: 0,
        silence: None,
    };
    let society = Society {
        moments: vec![(AgentId::root(), elsewhere), (AgentId::root(), thinking("mute", Some(silence)))],
        services: vec![(ServiceId::new("mute"), ServiceState::default())],
        ..Society::default()
    };
    let check = Remedy::CheckService { service: ServiceId::new("mute") };
    let expect = vec![again(), check, Remedy::StopTask { task: TaskId::new("t") }];
    assert_eq!(society.remedies(&choice("clerk")), [expect]);
}

const AGENTS: [&str; 5] = ["root", "a", "b", "c", "d"];

/// Generates states of services: with and without failures, and paused or not.
fn service_state() -> impl Strategy<Value = ServiceState> {
    let circuit = prop::sample::select(vec![Circuit::Closed, Circuit::Open]);
    let failing_since = prop::option::of(0..NOW);
    let paused_for_ms = prop::option::of(1_u64..1_000);
    (circuit, failing_since, paused_for_ms).prop_map(|(circuit, failing_since, paused_for_ms)| ServiceState {
        circuit,
        failing_since,
        paused_for_ms,
        ..ServiceState::default()
    })
}

/// Generates an agent that calls one of the first services. The service may be silent.
fn call() -> impl Strategy<Value = (AgentId, Doing)> {
    let agent = prop::sample::select(&AGENTS[..]);
    (agent, 0..4, any::<bool>()).prop_map(|(agent, number, is_silent)| {
        let silence = Silence { since: NOW - 15_000, until: NOW, then: NextAttempt::Retry, fallback: None };
        (AgentId::new(agent), thinking(&format!("s{number}"), is_silent.then_some(silence)))
    })
}

/// Generates societies with any combination of open work and of services in trouble.
fn societies() -> impl Strategy<Value = Society> {
    let agent = || prop::sample::select(&AGENTS[..]);
    let since = 0..NOW;
    let party = prop::sample::select(vec!["user", "root", "a", "b", "c", "d"]);
    let requests = prop::collection::vec((agent(), party, since.clone(), any::<bool>(), any::<bool>()), 0..8);
    let work = prop::collection::vec((agent(), since.clone()), 0..4);
    let holds = prop::collection::btree_map(agent(), since, 0..3);
    let some = || prop::collection::vec(agent(), 0..3);
    let states = prop::collection::vec(service_state(), 0..4);
    let calls = prop::collection::vec(call(), 0..4);
    (requests, work, holds, some(), some(), states, calls).prop_map(
        |(requests, work, holds, paused, timed, states, calls)| {
            let named =
                (0..).zip(states).map(|(number, state)| (ServiceId::new(format!("s{number}")), state));
            let mut society = Society {
                answered: [TaskId::new("t")].into(),
                services: named.collect(),
                moments: calls,
                ..Society::default()
            };
            let numbered = (1..).zip(requests).filter(|(_, (from, to, ..))| from != to);
            let open = &mut society.open;
            open.requests = numbered
                .map(|(number, (from, to, since, is_delayed, idle))| OpenRequest {
                    is_delayed,
                    task_state: if idle { TaskState::Idle } else { TaskState::Open },
                    ..request(number, from, to, since)
                })
                .collect();
            open.work = work.into_iter().map(|(agent, since)| (who(agent), since)).collect();
            open.holds = holds
                .into_iter()
                .map(|(agent, since)| Hold { who: who(agent), reason: String::new(), since })
                .collect();
            open.paused = paused.into_iter().map(|agent| (AgentId::new(agent), 5)).collect();
            open.timed = timed.into_iter().map(who).collect();
            society
        },
    )
}

proptest! {
    #[test]
    fn everything_stuck_is_listed_once_by_age_and_has_a_remedy(society in societies()) {
        let found = society.see(Runs::Here, found);
        let keys: BTreeSet<String> = found.iter().map(Found::key).collect();
        prop_assert_eq!(keys.len(), found.len());
        prop_assert!(found.is_sorted_by_key(|found| found.since));
        for (found, remedies) in found.iter().zip(society.remedies(&Choices::default())) {
            prop_assert!(!remedies.is_empty(), "{found:?}");
        }
    }

    /// All rows of these societies are in one task. So an agent that is parked there cannot go on anywhere.
    #[test]
    fn an_agent_has_at_most_one_card_and_none_if_it_is_held(society in societies()) {
        let active = society.see(Runs::Here, active);
        let agents: BTreeSet<&AgentId> = active.iter().map(|active| &active.who.agent).collect();
        prop_assert_eq!(agents.len(), active.len());
        prop_assert!(active.is_sorted_by_key(|active| Reverse(active.at)));
        for agent in agents {
            let held = society.open.holds.iter().any(|hold| hold.who.agent == *agent);
            prop_assert!(!agent.is_user() && !held && !society.open.paused.contains_key(agent));
        }
    }
}
