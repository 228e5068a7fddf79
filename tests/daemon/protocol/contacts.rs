//! The contacts that agents have from the start, and messages to agents that are not contacts.

use polity_tests::{Answer, Call, Sender, ToolResult};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::events;
use crate::support::hiring::{brief, hired};
use crate::support::play::{CallBatch, Play, after, hears, role, role_with, send, spawn, spawn_with, step};

fn list() -> CallBatch {
    step(|_| Call::new("list_contacts", json!({})))
}

/// Returns the id and the source of each contact in a result of `list_contacts`.
fn listed(result: &ToolResult) -> Vec<(String, String)> {
    let contacts = result.value["contacts"].as_array().expect("contacts");
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    contacts.iter().map(|contact| (text(&contact["id"]), text(&contact["source"]))).collect()
}

fn pair(id: &str, source: &str) -> (String, String) {
    (id.to_owned(), source.to_owned())
}

/// The system itself creates the contacts that this test expects.
/// Tests criteria 2.1, 2.2, 2.3, 2.4 and 2.5 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn root_knows_the_person_a_child_its_parent_and_a_parent_its_children() {
    let performed = Play::default()
        .part("root", vec![list(), role("worker"), spawn("worker"), list()])
        .ending("worker", vec![list()], |_| Answer::say("done"))
        .perform();
    let worker = performed.id("worker");
    let of_root = performed.last_of("root").results_of("list_contacts");
    assert_eq!(listed(&of_root[0]), [pair("user", "system")]);
    assert_eq!(listed(&of_root[1]), [pair("user", "system"), pair(&worker, "child")]);
    let of_worker = performed.last_of("worker").results_of("list_contacts");
    assert_eq!(listed(&of_worker[0]), [pair("root", "parent")]);
    // The user makes no requests, so the test reads the user's contacts from the database.
    let of_user = Database::read(&performed.data.data_dir())
        .texts::<2>("SELECT agent, source FROM contacts WHERE owner = 'user'");
    assert_eq!(of_user, [["root".to_owned(), "system".to_owned()]]);
}

/// An agent cannot write to an unknown colleague, to its grandparent or to the user.
/// Tests criterion 2.6 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn nobody_writes_to_whom_it_does_not_know_however_near() {
    let performed = Play::default()
        .part("root", vec![role("hermit"), spawn("hermit"), role("lead"), spawn("lead")])
        .ending("hermit", vec![], |_| Answer::say("peace"))
        .part("lead", vec![role("worker"), spawn("worker")])
        .ending(
            "worker",
            vec![step(|_| {
                let to = json!(["hermit", "root", "user", "nobody-1234"]);
                Call::new("send_message", json!({"to": to, "payload": "hello?"}))
            })],
            |_| Answer::say("nobody answers"),
        )
        .perform();
    let asked = performed.last_of("worker");
    let refused = asked.results_of("send_message").remove(0);
    assert_eq!(refused.error(), Some("unknown_contact"));
    let contacts = refused.value["contacts"].as_array().expect("contacts");
    assert_eq!(contacts.len(), 1, "expected only its own contacts: {}", refused.text);
    for request in performed.server.requests() {
        let asked = request.conversation();
        let strange = asked.heard().into_iter().any(|heard| heard.text.contains("hello?"));
        assert!(!strange, "{} heard it", asked.agent_id());
    }
}

/// Each entry of `list_contacts` has the id, the role, the interface spec, the source and the time of the contact.
/// Tests criterion 2.7 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn an_entry_says_who_it_is_what_it_does_and_how_it_came_there() {
    let spec = json!({"services": "paints", "input_format": "words", "output_format": "a picture", "examples": "a cat"});
    let performed = Play::default()
        .part(
            "root",
            vec![
                role_with("painter", json!({"interface_spec": spec})),
                spawn("painter"),
                role("plain"),
                spawn("plain"),
                list(),
            ],
        )
        .ending("painter", vec![], |_| Answer::say("painted"))
        .ending("plain", vec![], |_| Answer::say("ready"))
        .perform();
    let asked = performed.last_of("root");
    let result = asked.results_of("list_contacts").remove(0);
    let entry = |role: &str| {
        let contacts = result.value["contacts"].as_array().expect("contacts");
        contacts.iter().find(|contact| contact["roleName"] == role).expect("an entry").clone()
    };
    let painter = entry("painter");
    assert_eq!(painter["id"], performed.id("painter"));
    assert_eq!((&painter["source"], &painter["interface_spec"]), (&json!("child"), &spec));
    assert!(painter["since"].as_str().expect("a time").ends_with('Z'));
    assert!(entry("plain")["interface_spec"].is_null(), "a role without an interface spec shows one");
}

/// The first message makes a one-sided contact mutual. The message shows the sender's id. So the receiver can answer,
/// but does not have to.
/// Tests criteria 5.2, 5.4, 5.5, 5.6 and 5.7 of `docs/seeds/agent-communication.requirements.md`.
#[test]
fn who_was_written_to_may_answer_or_not() {
    let play = |answers: bool| {
        Play::default()
            .part(
                "root",
                vec![
                    role("quiet"),
                    spawn("quiet"),
                    role("writer"),
                    spawn_with("writer", |asked| {
                        let mut brief = brief("write");
                        let quiet = hired(asked, "quiet");
                        brief["collaborators"] = json!([{"agentId": quiet, "description": "reads"}]);
                        brief
                    }),
                ],
            )
            .ending(
                "quiet",
                if answers {
                    vec![after("for your eyes", |asked| {
                        let from = asked.heard().into_iter().find_map(|heard| match heard.from {
                            Sender::Agent { id, role } if role == "writer" => Some(id),
                            _ => None,
                        });
                        send(
                            from.expect("a writer"),
                            json!({"message_type": "collaboration_response", "text": "seen"}),
                        )
                    })]
                } else {
                    vec![]
                },
                |asked| match hears(asked, "for your eyes") {
                    // The agent ends its turn without a text.
                    true => Answer::nothing(),
                    false => Answer::say("ready"),
                },
            )
            .ending(
                "writer",
                vec![step(|_| {
                    send("quiet", json!({"message_type": "status_report", "text": "for your eyes"}))
                })],
                |asked| match hears(asked, "seen") {
                    true => Answer::say("it was seen"),
                    false => Answer::say("it was sent"),
                },
            )
            .perform()
    };
    for answers in [true, false] {
        let performed = play(answers);
        let (quiet, writer) = (performed.id("quiet"), performed.id("writer"));
        let asked = performed.last_of("quiet");
        let letter =
            asked.heard().into_iter().find(|heard| heard.text.contains("for your eyes")).expect("a letter");
        assert_eq!(letter.from, Sender::Agent { role: "writer".to_owned(), id: writer.clone() });
        assert_eq!(
            letter.text.lines().last(),
            Some("for your eyes"),
            "a message that expects no answer must have no reply hint"
        );
        let known = events(&performed.lines, "contact_added")
            .into_iter()
            .filter(|event| event["owner"] == json!(quiet) && event["agent"] == json!(writer))
            .map(|event| event["source"].clone())
            .collect::<Vec<_>>();
        assert_eq!(known, [json!("first_message")]);
        let heard = performed.last_of("writer").heard();
        let answered =
            heard.iter().any(|heard| matches!(&heard.from, Sender::Agent { id, .. } if *id == quiet));
        assert_eq!(answered, answers, "{heard:#?}");
    }
}
