//! Agents that send each other messages for ever, and agents that wait for each other in a circle.

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::{brief, hire, hired};
use crate::support::{app, events, home, json_lines, run, service};

/// Returns whether the agent has received a notice with these words.
fn told(asked: &Conversation, words: &str) -> bool {
    let is_it = |message: &Value| {
        message["content"]
            .as_str()
            .is_some_and(|text| text.starts_with("【系统消息】") && text.contains(words))
    };
    asked.messages().iter().any(is_it)
}

/// Returns a call that sends a collaboration request.
fn ask(to: &str, text: &str) -> Answer {
    Answer::call(
        "send_message",
        json!({"to": to, "payload": {"message_type": "collaboration_request", "text": text}}),
    )
}

/// Plays a circle: the lead asks the reader, the reader asks the writer, and the writer asks the lead. Root waits for
/// the lead. The daemon tells the three agents in a notice that they wait for each other. `on_told` returns the answer
/// of each of them to this notice.
pub(crate) fn circle(asked: &Conversation, on_told: fn(&Conversation) -> Answer) -> Answer {
    let sent = asked.results_of("send_message").into_iter();
    let sent =
        sent.filter(|sent| sent.arguments["payload"]["message_type"] == "collaboration_request").count();
    match asked.role_name().as_str() {
        "lead" => {
            let role = |name: &str| Answer::call("create_role", json!({"name": name, "rolePrompt": "Help."}));
            let made = asked.results_of("create_role");
            let Some(writer_role) = made.first() else { return role("writer") };
            let Some(reader_role) = made.get(1) else { return role("reader") };
            let Some(writer) = hired(asked, "writer") else {
                let brief = brief("write");
                return Answer::call(
                    "spawn_agent",
                    json!({"roleId": writer_role.value["id"], "taskBrief": brief}),
                );
            };
            if hired(asked, "reader").is_none() {
                let mut brief = brief("read");
                brief["collaborators"] = json!([{"agentId": writer, "description": "knows the pages"}]);
                let arguments = json!({"roleId": reader_role.value["id"], "taskBrief": brief, "initialMessage": "read page one"});
                return Answer::call("spawn_agent_with_task", arguments);
            }
            if told(asked, CIRCLE) {
                return on_told(asked);
            }
            // The lead does not answer the writer before the reader has answered. An earlier answer would break the
            // circle.
            let is_asked = asked.heard().iter().any(|heard| heard.text.contains(QUESTION));
            if is_asked && sent == 0 {
                let reader = hired(asked, "reader").expect("hired");
                return ask(&reader, "have you read it?");
            }
            Answer::say("waiting")
        }
        "reader" if sent == 0 => ask("writer", QUESTION),
        "writer" if sent == 0 => ask(&asked.parent_id(), QUESTION),
        "reader" | "writer" if told(asked, CIRCLE) => on_told(asked),
        "reader" | "writer" => Answer::say("waiting"),
        _ => match hire(asked, "lead", "find out what page one says") {
            Some(hiring) => hiring,
            None if asked.heard().len() > 1 => Answer::say("this is all there is"),
            None => Answer::say("waiting for the lead"),
        },
    }
}

/// The question that the reader asks the writer, and the writer asks the lead.
const QUESTION: &str = "which page is page one?";

/// Words of the notice that tells agents that they wait for each other.
const CIRCLE: &str = "互相等待";

#[test]
fn agents_that_wait_for_each_other_are_told_and_the_result_comes_up() {
    let server = ScriptedServer::start(|asked| {
        circle(asked, |asked| Answer::say(format!("the {} says welcome", asked.role_name())))
    });
    let ended = run(&home(&server, &json!({})), &["what does page one say?", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    let found = events(&lines, "deadlock_found");
    assert_eq!(found.len(), 1, "{}", ended.stdout);
    let agents = found[0]["agents"].as_array().expect("agents").iter().filter_map(Value::as_str);
    let roles: Vec<&str> = agents.filter_map(|id| id.split('-').next()).collect();
    assert_eq!(roles, ["lead", "reader", "writer"], "root waits for the circle but is not part of it");
    let to_root = events(&lines, "message_accepted").into_iter().filter(|message| message["to"] == "root");
    let said: Vec<&str> = to_root.filter_map(|message| message["text"].as_str()).collect();
    assert!(said.contains(&"the lead says welcome"), "{said:?}");
}

/// The daemon sends the notice about a circle only once. If the agents in the circle do not break it, the task ends
/// without their answers.
#[test]
fn a_deadlock_that_stays_is_told_once() {
    let server = ScriptedServer::start(|asked| circle(asked, |_| Answer::nothing()));
    let ended = run(&home(&server, &json!({})), &["what does page one say?", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!(events(&lines, "deadlock_found").len(), 1, "{}", ended.stdout);
    assert!(ended.stdout.contains("this is all there is"), "{}", ended.stdout);
}

/// Two agents thank each other for ever with `send_message`.
#[test]
fn a_pair_that_only_writes_to_each_other_is_stopped_and_both_are_told() {
    let server = ScriptedServer::start(|asked| match asked.role_name().as_str() {
        "writer" => {
            if told(asked, "连续往来") {
                return Answer::say("enough thanks");
            }
            let last = asked.messages().last().expect("a message");
            if last["role"] == "tool" {
                return Answer::nothing();
            }
            Answer::call(
                "send_message",
                json!({"to": asked.parent_id(), "payload": {"message_type": "status_report", "text": "thank you"}}),
            )
        }
        _ => {
            if let Some(hiring) = hire(asked, "writer", "write") {
                return hiring;
            }
            if told(asked, "连续往来") {
                return Answer::say("they thanked each other");
            }
            let last = asked.messages().last().expect("a message");
            if last["role"] == "tool" {
                return Answer::nothing();
            }
            let writer = hired(asked, "writer").expect("a writer");
            let call = Call::new(
                "send_message",
                json!({"to": writer, "payload": {"message_type": "status_report", "text": "no, thank you"}}),
            );
            Answer::calls(vec![call])
        }
    });
    let limits = json!({"limits": {"maxPairExchanges": 12}});
    let polity = home(&server, &limits);
    let ended = run(&polity, &["write", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    let reached: Vec<&Value> = events(&lines, "limit_reached");
    assert_eq!(reached.len(), 2, "each agent must be told once: {reached:?}");
    assert!(reached.iter().all(|event| event["limit"] == "maxPairExchanges" && event["value"] == 12));
    assert!(ended.stdout.contains("they thanked each other"));
    let mut database = Database::read(&polity.data_dir());
    let between = "SELECT sender FROM messages
        WHERE sender NOT IN ('system', 'user') AND receiver <> 'user' ORDER BY seq";
    let mut senders = database.texts::<1>(between);
    senders.dedup();
    assert!(senders.len() <= 13, "expected the first message and at most twelve more: {senders:?}");
}

/// The daemon counts the answers of two agents to each other. If the agents do other work in between, the count begins
/// at zero again.
#[test]
fn a_pair_that_gets_work_done_may_go_on() {
    let server = ScriptedServer::start(|asked| {
        let rounds = asked.results_of("send_message").len();
        if asked.role_name() == "writer" {
            return Answer::say("noted");
        }
        if let Some(hiring) = hire(asked, "writer", "write") {
            return hiring;
        }
        if asked.messages().last().expect("a message")["role"] == "tool" {
            return Answer::say("waiting");
        }
        if rounds == 10 {
            return Answer::say("ten times");
        }
        let writer = hired(asked, "writer").expect("a writer");
        Answer::calls(vec![
            Call::new("put_artifact", json!({"type": "note", "content": format!("note {rounds}")})),
            Call::new("send_message", json!({"to": writer, "payload": "and again"})),
        ])
    });
    let polity = Polity::new(
        &json!({"services": [service("one", &server, &["text"])]}),
        &app(&json!({"limits": {"maxPairExchanges": 4}})),
    );
    let ended = run(&polity, &["write", "--json"]).expect_code(0);
    assert!(events(&json_lines(&ended.stdout), "limit_reached").is_empty(), "{}", ended.stdout);
}
