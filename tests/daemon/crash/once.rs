//! If an answer of a model is recorded, no later process requests it again.

use std::collections::BTreeMap;

use polity_tests::{Answer, Conversation, Polity, ScriptedServer};
use serde_json::json;

use crate::support::database::Database;
use crate::support::{home, run};

/// The script of root: it stores three notes, one after the other, and then answers the user.
fn notes(asked: &Conversation) -> Answer {
    match asked.results_of("put_artifact").len() {
        3 => Answer::say("three notes"),
        stored => Answer::call("put_artifact", json!({"type": "note", "content": format!("note {stored}")})),
    }
}

/// Kills a run at this point, and then resumes the run to its end. Looks for requests that were made more than once,
/// and returns how often each of them was made.
#[track_caller]
fn asked_again(point: &str) -> Vec<usize> {
    let server = ScriptedServer::start(notes);
    let polity = home(&server, &json!({}));
    let died = spawn(&polity, point).wait();
    assert_eq!(died.code, None, "{point} was not hit");
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, "three notes\n");
    let mut requests: BTreeMap<Vec<u8>, usize> = BTreeMap::new();
    for request in server.requests() {
        *requests.entry(request.raw.to_vec()).or_default() += 1;
    }
    assert_eq!(requests.len(), 4, "expected one request for each note and one for the final text");
    requests.into_values().filter(|times| *times > 1).collect()
}

fn spawn(polity: &Polity, point: &str) -> polity_tests::Running {
    polity.spawn_with_points(&["run", "--data", "data", "go"], &[("POLITY_FAILURE_POINT", point)])
}

#[test]
fn a_recorded_answer_is_never_asked_for_again() {
    // Begin with the second time that the process passes the point `driver::written`. The first time is before the
    // first answer.
    for answer in 2..=5 {
        assert_eq!(asked_again(&format!("driver::written@{answer}")), [0; 0]);
    }
}

#[test]
fn an_answer_that_was_not_recorded_is_asked_for_with_the_same_request() {
    for answer in 1..=4 {
        assert_eq!(asked_again(&format!("driver::answered@{answer}")), [2]);
    }
}

/// Kills a run at this point, and resumes it. Returns the state of the task and the number of answers that the person had
/// after the kill, and the number of requests of both runs.
#[track_caller]
fn killed_at_the_end(point: &str) -> (String, i64, usize) {
    const ANSWERS: &str = "SELECT count(*) FROM messages WHERE receiver = 'user'";
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let polity = home(&server, &json!({}));
    assert_eq!(spawn(&polity, point).wait().code, None, "{point} was not hit");
    let data = polity.home().join("data");
    let mut database = Database::read(&data);
    let [state] = database.texts::<1>("SELECT state FROM tasks").remove(0);
    let answers = database.number(ANSWERS);
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, "done\n");
    let mut database = Database::read(&data);
    assert_eq!(database.number(ANSWERS), 1);
    assert_eq!(database.number("SELECT count(*) FROM events WHERE kind = 'task_idle'"), 1);
    (state, answers, server.requests().len())
}

#[test]
fn the_last_answer_and_the_end_of_its_task_are_written_together() {
    assert_eq!(killed_at_the_end("tasks::set_idle@1"), ("open".to_owned(), 0, 2));
    // Both are written when the process passes this point for the second time. The first time is before the answer.
    assert_eq!(killed_at_the_end("driver::written@2"), ("idle".to_owned(), 1, 1));
}
