//! If an answer of a model is recorded, no later process requests it again.

use std::collections::BTreeMap;

use polity_tests::{Answer, Conversation, Polity, ScriptedServer};
use serde_json::json;

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
