use super::*;
use crate::id::TaskId;
use crate::message::{Body, Finality, Payload};

fn id(number: i64) -> MessageId {
    MessageId::from_sequence(number)
}

/// A message to `lead` that expects nothing and answers nothing.
fn message(from: &str) -> Message {
    Message {
        id: id(9),
        task: TaskId::new("t-1"),
        from: Sender::from_name(from),
        from_role: "reader".to_owned(),
        to: AgentId::new("lead"),
        body: Body::Payload(Payload::text("…")),
        in_reply_to: Vec::new(),
        about: None,
        on_behalf_of: None,
        expects: Expects::Nothing,
        finality: Finality::Final,
        introduction: None,
        introduced: None,
        due_at: None,
    }
}

fn request(number: i64, from: &str, to: &str, on_behalf_of: Option<i64>) -> RequestRow {
    let (from, to) = (AgentId::new(from), AgentId::new(to));
    RequestRow { id: id(number), from, to, on_behalf_of: on_behalf_of.map(id) }
}

#[test]
fn a_turn_works_on_the_request_that_begins_it() {
    let asked = Message { expects: Expects::Answer, ..message("root") };
    assert_eq!(works_on(&asked, &[]), Some(id(9)));
    assert_eq!(works_on(&message("root"), &[]), None, "a message that asks for nothing");
    let to_itself = Message { from: Sender::from_name("lead"), ..asked };
    assert_eq!(works_on(&to_itself, &[]), None, "a note of the agent to itself");
}

#[test]
fn an_answer_leads_back_to_the_request_that_it_was_needed_for() {
    let answer = Message { in_reply_to: vec![id(5)], ..message("reader-1111") };
    let check = |request: RequestRow, expected: Option<i64>| {
        assert_eq!(works_on(&answer, std::slice::from_ref(&request)), expected.map(id), "{request:?}");
    };
    check(request(5, "lead", "reader-1111", Some(2)), Some(2));
    check(request(5, "lead", "reader-1111", None), None);
}

#[test]
fn a_reminder_leads_to_the_request_that_its_reader_must_answer() {
    let reminder = Message { about: Some(id(3)), ..message("system") };
    assert_eq!(works_on(&reminder, &[request(3, "root", "lead", Some(1))]), Some(id(3)));
    assert_eq!(works_on(&reminder, &[]), None);
}

#[test]
fn the_first_subject_that_leads_to_a_request_counts() {
    let answer = Message { in_reply_to: vec![id(4), id(5)], ..message("reader-1111") };
    let rows = [request(4, "lead", "reader-1111", None), request(5, "lead", "reader-1111", Some(2))];
    assert_eq!(works_on(&answer, &rows), Some(id(2)));
}

#[test]
fn a_message_is_about_what_it_answers_and_what_it_reports_on() {
    let both = Message { in_reply_to: vec![id(4), id(5)], about: Some(id(6)), ..message("reader-1111") };
    assert_eq!(subjects(&both).cloned().collect::<Vec<_>>(), [id(4), id(5), id(6)]);
    assert_eq!(subjects(&message("reader-1111")).count(), 0);
}

#[test]
fn a_named_request_is_itself_before_one_that_was_made_for_it() {
    let open = |number: i64, chain: &[i64]| OpenRequest {
        id: id(number),
        from: AgentId::new("root"),
        chain: chain.iter().copied().map(id).collect(),
    };
    let requests = [open(3, &[2, 1]), open(2, &[1])];
    let found = |number| named(requests.iter(), &id(number)).map(|request| request.id.clone());
    assert_eq!(found(2), Some(id(2)));
    assert_eq!(found(1), Some(id(3)), "the oldest that was made on behalf of it");
    assert_eq!(found(7), None);
}
