//! If something will not work in a task, the person is warned before any model is asked. The warnings are in the answer
//! of `POST /api/messages`. `polity run` and `polity send` print them on standard error, and `polity chat` prints them in
//! the conversation.

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::serving::Serving;
use crate::support::{app, run, service};

fn home_of(service: Value) -> Polity {
    Polity::new(&json!({"services": [service]}), &app(&json!({"language": "en"})))
}

/// Posts a message to root, and returns the warnings about it.
#[track_caller]
fn warnings(serving: &Serving, text: &str) -> Vec<Value> {
    let posted = serving.call("POST /api/messages", json!({"text": text}).to_string().as_bytes());
    assert_eq!(posted.status, 201, "{posted:?}");
    posted.json()["warnings"].as_array().cloned().unwrap_or_default()
}

#[test]
fn a_message_that_does_not_fit_into_the_window_is_foreseen() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let mut small = service("one", &server, &["text"]);
    small["contextWindow"] = json!(6_000);
    let polity = home_of(small);
    let serving = Serving::start(&polity);
    let long = "word ".repeat(6_000);
    let [warning] = &warnings(&serving, &long)[..] else { panic!("expected one warning") };
    let text = warning["text"].as_str().expect("a text");
    assert_eq!(warning["code"], "does_not_fit");
    assert!(text.contains("the context window of service one has only 6000"), "{text}");
    assert_eq!(warnings(&serving, "a few words"), [] as [Value; 0]);

    // The live view adds the tokens of the rules, as the daemon does, to warn before it sends the message.
    let rules = serving.call("GET /api/services/one", b"").json()["rulesTokens"].as_u64().expect("a number");
    let left = usize::try_from(4 * (6_000 - rules)).expect("a length");
    assert_eq!(warnings(&serving, &"x".repeat(left)), [] as [Value; 0]);
    assert_eq!(warnings(&serving, &"x".repeat(left + 1)).len(), 1);
    // So do attached texts.
    let note = write(&polity, "note.txt", b"the text of a note\n");
    let told = run(&polity, &["--attach", &note, &"x".repeat(left)]).stderr;
    assert!(told.contains("the context window of service one has only 6000"), "{told}");

    let told = run(&polity, &[&long]).stderr;
    assert!(told.contains(&format!("polity: warning: {text}\n")), "{told}");
    let told = run(&polity, &["a few words"]).expect_code(0);
    assert!(told.stdout == "42\n" && !told.stderr.contains("has only 6000"), "{told:?}");
}

#[test]
fn a_model_without_tools_is_foreseen() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let mut plain = service("one", &server, &["text"]);
    plain["capabilities"]["output"] = json!(["text"]);
    let polity = home_of(plain);
    let serving = Serving::start(&polity);
    let [warning] = &warnings(&serving, "how much is it?")[..] else { panic!("expected one warning") };
    let text = warning["text"].as_str().expect("a text");
    assert_eq!(warning["code"], "no_tools");
    assert!(text.starts_with("The model of service one calls no tools"), "{text}");
    // The live view reads this field to decide whether it must warn before it sends the message.
    assert_eq!(serving.call("GET /api/services/one", b"").json()["callsTools"], false);

    let told = run(&polity, &["how much is it?"]).expect_code(0);
    assert_eq!(told.stdout, "42\n");
    assert!(told.stderr.contains(&format!("polity: warning: {text}\n")), "{}", told.stderr);
    // The other commands that send messages print the warning, too.
    let chat = polity.spawn_reading(&["chat", "--data", "data"], "how much is it?\n").wait().expect_code(0);
    assert!(chat.stdout.contains(&format!("warning: {text}\n")), "{}", chat.stdout);
    let sent = polity.run(&["send", "how much is it?", "--data", "data"]).expect_code(0);
    assert!(sent.stderr.contains(&format!("polity: warning: {text}\n")), "{}", sent.stderr);
    let gets_no_tools =
        server.requests().iter().all(|request| request.conversation().offered_tools().is_empty());
    assert!(gets_no_tools, "the model gets tools, although the warning says that it calls none");
}

#[test]
fn the_command_in_a_warning_reaches_the_same_configuration_and_the_same_society() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home_of(service("one", &server, &["text"]));
    let picture = write(&polity, "picture.png", PICTURE);
    let told = polity
        .run(&["run", "look", "--attach", &picture, "--config", "config", "--data", "data"])
        .expect_code(0);
    let command = "Look at `polity doctor --config config --data data`: it compares";
    assert!(told.stderr.contains(command), "{}", told.stderr);
    let told = polity.run(&["run", "look", "--attach", &picture]).expect_code(0);
    assert!(told.stderr.contains("Look at `polity doctor`: it compares"), "{}", told.stderr);
}
