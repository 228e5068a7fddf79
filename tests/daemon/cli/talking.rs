//! The commands `send` and `chat`.

use polity_tests::{Answer, ScriptedServer};
use serde_json::json;

use super::{look_at_picture, on_data, rehearsing, rows, served, told};
use crate::support::files::{PICTURE, write};

#[test]
fn a_message_is_taken_and_waited_for_elsewhere() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, _daemon) = served(&server);
    let posted = rows(&polity, &["send", "what?"]);
    assert_eq!((&posted[0]["to"], &posted[0]["duplicate"]), (&json!("root"), &json!(false)));
    let task = posted[0]["task"].as_str().expect("a task");
    assert_eq!(told(&polity, &["send", "--wait", "and now?", "--task", task]).lines().last(), Some("42"));
    assert_eq!(rows(&polity, &["tasks"]).len(), 1);
}

#[test]
fn any_agent_can_be_written_to() {
    let (polity, _daemon) = rehearsing();
    look_at_picture(&polity);
    let agents = rows(&polity, &["agents"]);
    let lead = agents.iter().find(|agent| agent["parent"] == "root").expect("a lead");
    let lead = lead["id"].as_str().expect("an id");
    let posted = rows(&polity, &["send", "--to", lead, "How is it going?"]);
    assert_eq!(posted[0]["to"], lead);
    assert!(told(&polity, &["messages", "--to", lead, "--from", "user"]).contains("How is it going?"));
}

/// `polity run --resume` tries again only in the latest task. A message may belong to an earlier one.
#[test]
fn who_sends_a_message_is_not_told_to_resume_a_run() {
    let refused = json!({"error": {"message": "no such key"}});
    let server = ScriptedServer::start(move |_| Answer::error(401, refused.clone()));
    let (polity, _daemon) = served(&server);
    let failed = polity.run(&on_data(&["send", "--wait", "what?"])).expect_code(5);
    assert!(failed.stderr.contains("the message above says why"), "{}", failed.stderr);
    assert!(!failed.stderr.contains("--resume"), "{}", failed.stderr);
}

#[test]
fn what_was_waited_for_as_json() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, _daemon) = served(&server);
    let lines = rows(&polity, &["send", "--wait", "what?"]);
    let last = lines.last().expect("a line");
    assert_eq!((&last["event"], &last["exitCode"]), (&json!("finished"), &json!(0)));
    assert_eq!(lines[0]["event"], "task_started");
}

#[test]
fn a_conversation_out_of_a_pipe() {
    let (polity, _daemon) = rehearsing();
    let picture = write(&polity, "picture.png", PICTURE);
    let said = format!(
        "/attach {picture}\nWhat is in it?\n\n/history\n/new\nAnd now?\n/tasks\n/sing\n/quit\nnever said\n"
    );
    let ended = polity.spawn_reading(&on_data(&["chat"]), &said).wait().expect_code(0);
    for part in [
        "480 × 270",
        "> What is in it?",
        "a new task begins with your next message",
        "And now?",
        "there is no /sing",
    ] {
        assert!(ended.stdout.contains(part), "{part:?} is not in {}", ended.stdout);
    }
    assert!(!ended.stdout.contains("never said"));
    let tasks = rows(&polity, &["tasks"]);
    assert_eq!(tasks.len(), 2, "{tasks:?}");
    assert_eq!(rows(&polity, &["messages", "--from", "user", "--to", "root"]).len(), 2);
}

#[test]
fn a_conversation_goes_on_with_a_task() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, _daemon) = served(&server);
    told(&polity, &["send", "--wait", "what?"]);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let ended =
        polity.spawn_reading(&on_data(&["chat", "--task", &task]), "and now?\n").wait().expect_code(0);
    assert_eq!(ended.stdout, "42\n");
    assert_eq!(rows(&polity, &["tasks"]).len(), 1);
}
