//! An agent terminates another agent. The tests check which descendants end too, what happens to the messages of the
//! ended agents, and which agents get a notice.

use std::time::{Duration, Instant};

use polity_tests::{Answer, Call, Conversation, ScriptedServer, Sender};
use serde_json::json;

use crate::support::database::Database;
use crate::support::hiring::{Gate, brief, hired};
use crate::support::play::{Play, WAITING, after, batch, newest_words, role, send, spawn, spawn_with, step};
use crate::support::{asked_by, events, home, json_lines, letters, start};

/// Returns the full text of each notice that the agent has received.
fn notices(asked: &Conversation) -> Vec<String> {
    let heard = asked.heard().into_iter().filter(|heard| heard.from == Sender::System);
    heard.map(|heard| heard.text.trim().to_owned()).collect()
}

/// Root terminates a lead while the lead's worker is still at work. Another agent, the friend, has sent the lead a
/// request. The lead has read this request but has not answered it yet.
#[test]
fn a_subtree_ends_mail_goes_back_and_those_who_wait_are_told() {
    let read = Gate::default();
    let closed = read.clone();
    let play = Play::default()
        .ending(
            "root",
            vec![
                role("lead"),
                spawn("lead"),
                role("friend"),
                spawn_with("friend", |asked| {
                    let mut brief = brief("ask the lead");
                    brief["collaborators"] = json!([{"agentId": hired(asked, "lead"), "description": "knows"}]);
                    brief
                }),
                batch(move |asked| {
                    closed.pass();
                    let lead = hired(asked, "lead").expect("hired");
                    let late = json!({"to": lead, "payload": "much later", "delayMs": 3_600_000});
                    vec![
                        Call::new("send_message", late),
                        Call::new("terminate_agent", json!({"agentId": lead, "reason": "plans have changed"})),
                        send(lead.as_str(), json!("are you there?")),
                        send("friend", json!({"message_type": "introduction_response", "target_agent": {"id": lead}, "usage_hint": "x"})),
                        Call::new("terminate_agent", json!({"agentId": lead})),
                        Call::new("list_contacts", json!({})),
                    ]
                }),
            ],
            |asked| match newest_words(asked) {
                Some(said) => Answer::say(said),
                None => Answer::say(WAITING),
            },
        )
        .ending(
            "lead",
            vec![
                role("worker"),
                spawn("worker"),
                // The lead needs the worker's answer before it can answer the friend.
                after("what do you know?", |asked| {
                    let worker = hired(asked, "worker").expect("hired");
                    let question = json!({"message_type": "collaboration_request", "text": "what is found?"});
                    send(worker, question)
                }),
            ],
            |_| Answer::say(WAITING),
        )
        .ending("worker", vec![], |_| Answer::hang())
        .ending(
            "friend",
            vec![
                step(|_| send("lead", json!({"message_type": "collaboration_request", "text": "what do you know?"}))),
                Box::new(|asked: &Conversation| {
                    (!notices(asked).is_empty()).then(|| vec![send("lead", json!("hello?")), Call::new("list_contacts", json!({}))])
                }),
            ],
            |_| Answer::say("the lead is gone"),
        );
    let server = ScriptedServer::start(play.script());
    let polity = home(&server, &json!({}));
    let running = start(&polity, &["go", "--json"]);
    // Wait until the lead has read the question and has ended that turn.
    running.stdout_line("\"objective\":\"ask the lead\"");
    let mut database = Database::read(&polity.data_dir());
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_read = "SELECT count(*) FROM messages WHERE type = 'collaboration_request' AND state = 'done'";
    while database.number(is_read) == 0 {
        assert!(Instant::now() < deadline, "the lead has not read the question");
        std::thread::sleep(Duration::from_millis(10));
    }
    read.open();
    let ended = running.wait().expect_code(0);
    server.assert_clean();

    let lines = json_lines(&ended.stdout);
    let root = asked_by(&server, "root").pop().expect("a request");
    let (lead, friend) = (hired(&root, "lead").expect("hired"), hired(&root, "friend").expect("hired"));
    let gone: Vec<String> =
        events(&lines, "agent_ended").iter().map(|event| event["agent"].to_string()).collect();
    assert_eq!(gone.len(), 2, "the worker must end with its lead: {gone:?}");
    assert_eq!(gone[0], format!("\"{lead}\""));

    // One of root's messages was not delivered, and root gets it back. From then on, root cannot reach the lead in any
    // way.
    let sent = root.results_of("send_message");
    let late = sent[0].value["messageIds"][0]["id"].as_str().expect("an id");
    assert_eq!((sent[1].error(), sent[2].error()), (Some("agent_terminated"), Some("agent_terminated")));
    assert_eq!(root.results_of("terminate_agent")[1].error(), Some("agent_terminated"));
    let contacts = root.results_of("list_contacts").remove(0);
    let entry = contacts.value["contacts"]
        .as_array()
        .expect("contacts")
        .iter()
        .find(|contact| contact["id"] == json!(lead));
    assert_eq!(entry.expect("the entry of the terminated lead")["ended"], json!(true));
    assert!(
        root.system()
            .contains(&format!("- {lead}｜lead｜输入: text｜输出: text,tool_calling（已结束，不能再联系）"))
    );
    let of_root = notices(&root);
    assert_eq!(of_root, [format!("消息 {late} 未能送达：智能体 {lead} 已结束（agent_terminated）。")]);

    // The friend no longer waits for the lead. The friend got one notice, and has reported to root, the agent that
    // hired the friend.
    let asked = asked_by(&server, &friend).pop().expect("a request");
    assert_eq!(notices(&asked), [format!("智能体 {lead} 已被结束：plans have changed")]);
    assert_eq!(asked.results_of("send_message")[1].error(), Some("agent_terminated"));
    let said = letters(&lines).pop().expect("an answer");
    assert_eq!((&said["text"], &said["finality"]), (&json!("the lead is gone"), &json!("final")));
    let mut database = Database::read(&polity.data_dir());
    let waits = "SELECT count(*) FROM messages WHERE state IN ('delayed', 'queued', 'in_turn') AND receiver <> 'user'";
    assert_eq!(database.number(waits), 0, "messages still wait for an agent that has ended");
}

/// An agent can be terminated only by its ancestors.
#[test]
fn nobody_ends_itself_or_whom_it_did_not_hire() {
    let performed = Play::default()
        .part("root", vec![role("one"), spawn("one"), role("other"), spawn("other")])
        .ending("one", vec![], |_| Answer::say("I am one"))
        .ending(
            "other",
            vec![batch(|asked| {
                let targets = ["root", "user", "one", asked.parent_id().as_str(), asked.agent_id().as_str()]
                    .map(str::to_owned);
                targets
                    .iter()
                    .map(|target| Call::new("terminate_agent", json!({"agentId": target})))
                    .collect()
            })],
            |_| Answer::say("I am the other"),
        )
        .perform();
    let refused = performed.last_of("other").results_of("terminate_agent");
    assert!(refused.iter().all(|result| result.error() == Some("not_descendant")), "{refused:#?}");
    assert!(events(&performed.lines, "agent_ended").is_empty());
}
