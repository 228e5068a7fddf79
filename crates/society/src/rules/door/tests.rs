use super::*;
use crate::contact::KnownParty;
use crate::content::Capabilities;
use serde_json::{Value, json};

const ME: &str = "me-2222";
const LEAD: &str = "lead-1111";
const READER: &str = "reader-7k2f";
const ENDED: &str = "gone-3333";

fn party(id: &str) -> Party {
    Party {
        id: AgentId::new(id),
        task: None,
        role_name: id.split('-').next().unwrap_or_default().to_owned(),
        interface_spec: None,
        objective: Some("看图".to_owned()),
        standing: if id == ENDED { Standing::Ended } else { Standing::Active },
        depth: 1,
        capabilities: Capabilities::default(),
    }
}

fn number(number: i64) -> MessageId {
    MessageId::from_sequence(number)
}

fn request(id: i64, from: &str, chain: &[i64]) -> OpenRequest {
    OpenRequest {
        id: number(id),
        from: AgentId::new(from),
        chain: chain.iter().copied().map(number).collect(),
    }
}

/// The sender `me` knows the user, a lead, a reader and an agent that has ended, and all of them know `me`.
fn facts() -> DoorFacts {
    let known = |id: &str| KnownParty {
        party: party(id),
        source: Source::Introduction,
        introduced_by: Some(AgentId::root()),
        since: Timestamp::default(),
    };
    DoorFacts {
        task: TaskId::new("t-1"),
        sender: party(ME),
        contacts: ["user", LEAD, READER, ENDED].map(known).to_vec(),
        acquaintance: Acquaintance::Known,
        open_requests: Vec::new(),
        works_on: None,
        pending: Vec::new(),
        last_word: LastWord::UnlessWaiting,
        queued: 0,
        exchanges: 0,
        openable: BTreeSet::new(),
    }
}

fn draft(to: &str, payload: Value) -> Draft {
    let payload = Payload::parse(&payload).unwrap().0;
    Draft { to: to.to_owned(), payload, answering: Answering::AsWritten, due_at: None }
}

fn admitted(draft: Draft, facts: &DoorFacts) -> Result<Admitted, Refusal> {
    admit(draft, facts, number(99), &Limits::default())
}

#[track_caller]
fn sent(draft: Draft, facts: &DoorFacts) -> Message {
    let changes = admitted(draft, facts).unwrap().changes;
    let accepted = changes.into_iter().find_map(|change| match change {
        Change::MessageAccepted(message) => Some(*message),
        _ => None,
    });
    accepted.unwrap()
}

fn answered(draft: Draft, facts: &DoorFacts) -> Vec<i64> {
    let changes = admitted(draft, facts).unwrap().changes;
    let requests = changes.into_iter().filter_map(|change| match change {
        Change::RequestAnswered { request, answer } => {
            assert_eq!(answer, number(99));
            request.sequence()
        }
        _ => None,
    });
    requests.collect()
}

#[track_caller]
fn code(draft: Draft, facts: &DoorFacts) -> &'static str {
    admitted(draft, facts).unwrap_err().code()
}

fn numbers(ids: &[MessageId]) -> Vec<i64> {
    ids.iter().filter_map(MessageId::sequence).collect()
}

#[test]
fn only_contacts_who_have_not_ended_are_written_to() {
    assert_eq!(code(draft("stranger-1", json!("x")), &facts()), "unknown_contact");
    assert_eq!(code(draft(ENDED, json!("x")), &facts()), "agent_terminated");
    assert_eq!(sent(draft(LEAD, json!("x")), &facts()).to.as_str(), LEAD);
    // The name of a contact's role is accepted as well.
    assert_eq!(sent(draft("lead", json!("x")), &facts()).to.as_str(), LEAD);
    let Err(Refusal::UnknownContact { contacts, .. }) = admitted(draft("lead-9", json!("x")), &facts())
    else {
        panic!("`lead-9` was not refused as unknown");
    };
    assert_eq!(contacts[0].id, LEAD);
}

#[test]
fn limits_are_held_at_the_door() {
    let limits = Limits { max_message_chars: 20, max_queue: 3, max_pair_exchanges: 2, ..Limits::default() };
    let code = |facts: &DoorFacts, text: &str| {
        let admitted = admit(draft(LEAD, json!(text)), facts, number(99), &limits);
        admitted.map_or_else(|refusal| refusal.code(), |_| "ok")
    };
    // The limit is 20 characters. The JSON around the text, {"text":"…"}, counts too and has eleven characters. So the
    // text may have nine.
    assert_eq!(code(&facts(), "123456789"), "ok");
    assert_eq!(code(&facts(), "1234567890"), "limit_reached");
    assert_eq!(code(&DoorFacts { queued: 2, ..facts() }, "x"), "ok");
    assert_eq!(code(&DoorFacts { queued: 3, ..facts() }, "x"), "mailbox_full");
    assert_eq!(code(&DoorFacts { exchanges: 1, ..facts() }, "x"), "ok");
    assert_eq!(code(&DoorFacts { exchanges: 2, ..facts() }, "x"), "limit_reached");
    // Without earlier exchanges, even a limit of 0 has no effect.
    let none = Limits { max_pair_exchanges: 0, ..Limits::default() };
    assert!(admit(draft(LEAD, json!("x")), &facts(), number(99), &none).is_ok());
}

#[test]
fn attachments_must_open_for_the_sender_and_then_open_for_the_receiver() {
    let with = || draft(LEAD, json!({"text": "x", "attachments": ["artifact:abc"]}));
    assert_eq!(code(with(), &facts()), "artifact_not_found");
    let facts = DoorFacts { openable: BTreeSet::from([ArtifactId::new("abc")]), ..facts() };
    let changes = admitted(with(), &facts).unwrap().changes;
    let granted = Change::AccessGranted { agent: AgentId::new(LEAD), artifact: ArtifactId::new("abc") };
    assert!(changes.contains(&granted));
}

#[test]
fn an_introduction_names_a_live_contact_that_is_not_its_receiver() {
    let introduce = |target: &str| {
        draft(
            LEAD,
            json!({"message_type": "introduction_response", "target_agent": {"id": target}, "usage_hint": "h"}),
        )
    };
    assert_eq!(code(introduce("stranger-1"), &facts()), "unknown_contact");
    assert_eq!(code(introduce(ENDED), &facts()), "agent_terminated");
    assert_eq!(code(introduce(LEAD), &facts()), "invalid_message");
    let changes = admitted(introduce(READER), &facts()).unwrap().changes;
    let entry = Contact {
        owner: AgentId::new(LEAD),
        agent: AgentId::new(READER),
        source: Source::Introduction,
        introduced_by: Some(AgentId::new(ME)),
    };
    assert_eq!(changes[0], Change::ContactAdded(entry));
    assert_eq!(sent(introduce(READER), &facts()).introduced.unwrap().id.as_str(), READER);
    // The sender introduces itself. The receiver already knows the sender, so no contact is added.
    let changes = admitted(introduce(ME), &facts()).unwrap().changes;
    assert!(!changes.iter().any(|change| matches!(change, Change::ContactAdded(_))));
    // In messages of other types, `target_agent` has no meaning.
    let other = draft(LEAD, json!({"text": "x", "target_agent": {"id": "stranger-1"}}));
    assert_eq!(sent(other, &facts()).introduced, None);
}

#[test]
fn the_first_message_introduces_its_sender() {
    let new = DoorFacts { acquaintance: Acquaintance::New, ..facts() };
    let introduction = sent(draft(LEAD, json!("x")), &new).introduction.unwrap();
    assert_eq!((introduction.role.as_str(), introduction.duty.as_str()), ("me", "看图"));
    assert_eq!(introduction.introduced_by, Some(AgentId::root()));
    let entry = Contact {
        owner: AgentId::new(LEAD),
        agent: AgentId::new(ME),
        source: Source::FirstMessage,
        introduced_by: None,
    };
    assert!(admitted(draft(LEAD, json!("x")), &new).unwrap().changes.contains(&Change::ContactAdded(entry)));
    assert_eq!(sent(draft(LEAD, json!("x")), &facts()).introduction, None);
    assert_eq!(sent(draft(ME, json!("x")), &new).introduction, None);
}

#[test]
fn a_note_to_oneself_asks_for_nothing_and_carries_the_request_worked_on() {
    let facts =
        DoorFacts { works_on: Some(number(3)), open_requests: vec![request(3, LEAD, &[])], ..facts() };
    let note = sent(
        draft(
            ME,
            json!({"message_type": "task_assignment", "taskBrief": {
        "objective": "o", "constraints": [], "inputs": "i", "outputs": "o", "completion_criteria": "c"}}),
        ),
        &facts,
    );
    assert_eq!((note.expects, note.about, note.in_reply_to), (Expects::Nothing, Some(number(3)), Vec::new()));
    assert_eq!(note.on_behalf_of, None);
}

#[test]
fn a_general_message_answers_the_oldest_open_request_of_its_receiver_else_it_is_one() {
    let requests = vec![request(2, READER, &[]), request(3, LEAD, &[]), request(4, LEAD, &[])];
    let facts = DoorFacts { open_requests: requests, works_on: Some(number(4)), ..facts() };
    let message = sent(draft(LEAD, json!("done")), &facts);
    assert_eq!((message.expects, numbers(&message.in_reply_to)), (Expects::Nothing, vec![3]));
    assert_eq!((message.about, message.on_behalf_of), (None, None));
    assert_eq!(answered(draft(LEAD, json!("done")), &facts), [3]);
    let question = sent(draft("user", json!("why?")), &facts);
    assert_eq!((question.expects, question.in_reply_to), (Expects::Answer, Vec::new()));
    assert_eq!(question.on_behalf_of, Some(number(4)));
}

#[test]
fn an_answer_may_name_the_requests_that_it_answers() {
    let requests = vec![
        request(2, READER, &[1]),
        request(3, LEAD, &[]),
        request(4, LEAD, &[2, 1]),
        request(5, LEAD, &[2, 1]),
    ];
    let facts = DoorFacts { open_requests: requests, ..facts() };
    let check = |named: Value, answers: &[i64], ignored: &[i64]| {
        let answer = || draft(LEAD, json!({"text": "x", "request_id": named}));
        let admitted = admitted(answer(), &facts).unwrap();
        assert_eq!(
            (answered(answer(), &facts), numbers(&admitted.ignored)),
            (answers.to_vec(), ignored.to_vec()),
            "{named}"
        );
        assert_eq!(numbers(&sent(answer(), &facts).in_reply_to), answers);
    };
    check(json!("m000000004"), &[4], &[]);
    check(json!(["m000000004", "m000000003", "m000000004"]), &[3, 4], &[]);
    // The sender names an earlier request. The message answers the oldest open request that was made on behalf of this
    // earlier request.
    check(json!("m000000001"), &[4], &[]);
    check(json!("m000000002"), &[4], &[]);
    // An id that matches no request is reported as ignored, and the oldest request is answered.
    check(json!("m000000077"), &[3], &[77]);
    check(json!(["m000000077", "m000000005"]), &[5], &[77]);
    check(json!(null), &[3], &[]);
    check(json!(5), &[3], &[]);
}

#[test]
fn a_report_leaves_the_request_open_that_it_is_about() {
    let facts = DoorFacts { open_requests: vec![request(3, LEAD, &[]), request(4, LEAD, &[])], ..facts() };
    let report = |extra: Value| {
        let mut payload = json!({"message_type": "status_report", "text": "half"});
        payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        draft(LEAD, payload)
    };
    let message = sent(report(json!({})), &facts);
    assert_eq!(
        (message.expects, message.about, message.in_reply_to),
        (Expects::Nothing, Some(number(3)), Vec::new())
    );
    assert_eq!(answered(report(json!({})), &facts), [] as [i64; 0]);
    assert_eq!(sent(report(json!({"request_id": "m000000004"})), &facts).about, Some(number(4)));
    assert_eq!(sent(report(json!({})), &super::tests::facts()).about, None);
}

#[test]
fn a_response_that_finds_no_open_request_is_information() {
    for kind in ["introduction_response", "collaboration_response"] {
        let payload = json!({"message_type": kind, "text": "x", "target_agent": null});
        let message = sent(draft(LEAD, payload), &facts());
        assert_eq!(
            (message.expects, message.in_reply_to, message.about),
            (Expects::Nothing, Vec::new(), None)
        );
    }
}

#[test]
fn a_request_is_made_on_behalf_of_what_it_passes_on_else_of_what_is_worked_on() {
    let requests = vec![request(2, READER, &[]), request(3, LEAD, &[1])];
    let facts = DoorFacts { open_requests: requests, works_on: Some(number(3)), ..facts() };
    let ask = |request_id: Value| {
        draft(
            "user",
            json!({"message_type": "introduction_request", "reason": "r", "required_capability": "vision", "request_id": request_id}),
        )
    };
    assert_eq!(sent(ask(Value::Null), &facts).on_behalf_of, Some(number(3)));
    assert_eq!(sent(ask(json!("m000000002")), &facts).on_behalf_of, Some(number(2)));
    assert_eq!(sent(ask(json!("m000000001")), &facts).on_behalf_of, Some(number(3)));
    assert_eq!(sent(ask(json!("m000000001")), &facts).expects, Expects::Answer);
    let nothing = admitted(ask(json!("m000000077")), &facts).unwrap();
    assert_eq!(numbers(&nothing.ignored), [77]);
    assert_eq!(sent(ask(Value::Null), &super::tests::facts()).on_behalf_of, None);
}

#[test]
fn what_the_person_is_told_is_interim_while_something_is_open_for_it() {
    let pending = |of: &[Option<i64>]| of.iter().map(|of| Pending { on_behalf_of: of.map(number) }).collect();
    let facts = |of: &[Option<i64>], works_on: Option<i64>| DoorFacts {
        open_requests: vec![request(1, "user", &[])],
        works_on: works_on.map(number),
        pending: pending(of),
        ..facts()
    };
    let finality = |facts: &DoorFacts| sent(draft("user", json!("so far")), facts).finality;
    let so_far = || draft("user", json!("so far"));
    assert_eq!(finality(&facts(&[Some(1)], Some(1))), Finality::Interim);
    assert_eq!(answered(so_far(), &facts(&[Some(1)], Some(1))), [] as [i64; 0]);
    assert_eq!(finality(&facts(&[Some(2)], Some(2))), Finality::Interim);
    assert_eq!(finality(&facts(&[Some(7), None], Some(1))), Finality::Final);
    assert_eq!(answered(so_far(), &facts(&[], Some(1))), [1]);
    let nudged = DoorFacts { last_word: LastWord::Yes, ..facts(&[Some(1)], Some(1)) };
    assert_eq!(finality(&nudged), Finality::Final);
    // A report is interim, and a question is final.
    let report = draft("user", json!({"message_type": "status_report", "text": "half"}));
    assert_eq!(sent(report, &facts(&[], Some(1))).finality, Finality::Interim);
    let question = DoorFacts { open_requests: Vec::new(), ..facts(&[Some(1)], Some(1)) };
    let question = sent(draft("user", json!("why?")), &question);
    assert_eq!((question.expects, question.finality), (Expects::Answer, Finality::Final));
    // Messages to agents are always final.
    let to_lead = DoorFacts { open_requests: vec![request(1, LEAD, &[])], ..facts(&[Some(1)], Some(1)) };
    assert_eq!(sent(draft(LEAD, json!("x")), &to_lead).finality, Finality::Final);
}

#[test]
fn a_closing_text_asks_for_nothing_and_answers_what_it_is_said_to() {
    let facts = DoorFacts { open_requests: vec![request(3, LEAD, &[]), request(4, LEAD, &[])], ..facts() };
    let closing = |subject| Draft { answering: Answering::Closing(subject), ..draft(LEAD, json!("done")) };
    let both = || closing(Subject::Open(vec![number(3), number(4)]));
    let message = sent(both(), &facts);
    assert_eq!((message.expects, numbers(&message.in_reply_to)), (Expects::Nothing, vec![3, 4]));
    assert_eq!((message.about, answered(both(), &facts)), (None, vec![3, 4]));
    let supplement = || closing(Subject::Settled(number(2)));
    let message = sent(supplement(), &facts);
    assert_eq!((message.expects, numbers(&message.in_reply_to)), (Expects::Nothing, vec![2]));
    assert_eq!((message.about, answered(supplement(), &facts)), (Some(number(2)), Vec::new()));
    let last = sent(closing(Subject::Nothing), &facts);
    assert_eq!((last.expects, last.in_reply_to, last.about), (Expects::Nothing, Vec::new(), None));
}

#[test]
fn a_notice_asks_for_nothing_and_says_what_it_is_about() {
    let notice = notice(number(1), TaskId::new("t-1"), AgentId::root(), Notice::Nudge, Some(number(7)));
    assert_eq!(
        (notice.from, notice.expects, notice.about),
        (Sender::System, Expects::Nothing, Some(number(7)))
    );
    assert_eq!(notice.in_reply_to, []);
}

#[test]
fn the_person_and_whom_it_writes_to_know_each_other() {
    let pairs: Vec<(String, String)> = introduce_person(&AgentId::new(LEAD))
        .into_iter()
        .filter_map(|change| match change {
            Change::ContactAdded(contact) => Some((contact.owner.to_string(), contact.agent.to_string())),
            _ => None,
        })
        .collect();
    let pair = |owner: &str, agent: &str| (owner.to_owned(), agent.to_owned());
    assert_eq!(pairs, [pair("user", LEAD), pair(LEAD, "user")]);
}
