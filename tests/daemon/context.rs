//! Context windows: the daemon's status lines about them, summaries, and servers that reject a request as too long.

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::{brief, hired};
use crate::support::{another_call, app, asked_by, events, json_lines, last_asked, run, service};

/// Returns a service with a context window of this many tokens.
fn with_window(id: &str, server: &ScriptedServer, window: u64) -> Value {
    let mut service = service(id, server, &["text"]);
    service["contextWindow"] = json!(window);
    service
}

/// Returns whether a request asks for a summary instead of an answer.
fn sums_up(asked: &Conversation) -> bool {
    asked.system().starts_with("You compress the conversation history")
}

/// Returns whether the history in a request begins with a summary.
fn is_summed_up(asked: &Conversation) -> bool {
    let first = asked.messages()[1]["content"].as_str();
    first.is_some_and(|text| text.starts_with("【History summary】"))
}

/// Estimates the tokens of a request: its texts, calls and tools, with four characters per token.
fn tokens(asked: &Conversation) -> usize {
    let mut characters = asked.body()["tools"]
        .as_array()
        .map_or(0, |tools| tools.iter().map(|tool| tool["function"].to_string().chars().count()).sum());
    for message in asked.messages() {
        characters += match &message["content"] {
            Value::String(text) => text.chars().count(),
            Value::Null => 0,
            parts => parts.to_string().chars().count(),
        };
        characters += message["tool_calls"].as_array().map_or(0, |calls| json!(calls).to_string().len());
    }
    characters / 4
}

const ROUNDS: usize = 200;
const PER_ROUND: usize = 10;

/// In each round, root sends the clerk ten messages. Only the last of these messages asks for an answer. The clerk
/// answers `noted`.
fn clerk(asked: &Conversation) -> Answer {
    if sums_up(asked) {
        return Answer::say("The clerk notes what root reports; nothing is open.");
    }
    if asked.agent_id() != "root" {
        let looked = asked.messages().last().is_some_and(|message| message["role"] == "tool");
        return if looked { Answer::say("noted") } else { Answer::call("list_contacts", json!({})) };
    }
    if asked.results_of("create_role").is_empty() && !is_summed_up(asked) {
        let role = json!({
            "name": "clerk", "rolePrompt": "You note what you are told.", "serviceId": "small", "toolGroups": ["context"]
        });
        return Answer::call("create_role", role);
    }
    let Some(clerk) = clerk_id(asked) else {
        let role = asked.results_of("create_role").remove(0).value["id"].clone();
        let brief = brief("Keep the ledger of the expedition");
        return Answer::call("spawn_agent", json!({"roleId": role, "taskBrief": brief}));
    };
    let last = asked.messages().last().expect("a message");
    if last["role"] == "tool" && !asked.results_of("send_message").is_empty() {
        return Answer::say("waiting");
    }
    let round = rounds_done(asked);
    if round == ROUNDS {
        return Answer::say("the ledger is complete");
    }
    let message = |number: usize| {
        let what = format!(
            "Entry {number} of round {round}: {}",
            "the river was crossed in the morning. ".repeat(4)
        );
        let payload = if number + 1 < PER_ROUND {
            json!({"message_type": "status_report", "text": what})
        } else {
            json!({"text": format!("{what} Is it noted? [round {}]", round + 1)})
        };
        Call::new("send_message", json!({"to": clerk, "payload": payload}))
    };
    Answer::calls((0..PER_ROUND).map(message).collect())
}

/// Returns the clerk's id. It comes from the call that hired the clerk, or from the list of contacts if a summary has
/// replaced this call in the history.
fn clerk_id(asked: &Conversation) -> Option<String> {
    hired(asked, "clerk").or_else(|| {
        let system = asked.system();
        let start = system.find("clerk-")?;
        Some(
            system[start..]
                .chars()
                .take_while(|character| character.is_ascii_alphanumeric() || *character == '-')
                .collect(),
        )
    })
}

/// Returns the number of the latest round of messages that root has sent.
fn rounds_done(asked: &Conversation) -> usize {
    let said = asked.messages().iter().map(ToString::to_string).collect::<String>();
    let numbers =
        said.split("[round ").skip(1).filter_map(|rest| rest.split(']').next()?.parse::<usize>().ok());
    numbers.max().unwrap_or(0)
}

#[test]
fn two_thousand_messages_in_a_small_window() {
    let server = ScriptedServer::start(clerk);
    let services =
        json!({"services": [with_window("large", &server, 20_000), with_window("small", &server, 4_096)]});
    let limits = json!({"maxTokensPerTask": 1_000_000_000, "maxPairExchanges": 1_000});
    let polity = Polity::new(&services, &app(&json!({"language": "en", "limits": limits})));
    let ended = run(&polity, &["keep the ledger", "--timeout", "30m"]).expect_code(0);
    assert_eq!(ended.stdout.trim().lines().last(), Some("the ledger is complete"), "{}", ended.stderr);

    let requests: Vec<Conversation> =
        server.requests().iter().map(|request| request.conversation()).collect();
    let small: Vec<&Conversation> = requests.iter().filter(|asked| asked.model() == "small-model").collect();
    let largest = small.iter().map(|asked| tokens(asked)).max();
    assert!(largest.is_some_and(|tokens| tokens <= 4_096), "{largest:?}");
    assert!(small.iter().filter(|asked| sums_up(asked)).count() > 10);
    let last = small.iter().rev().find(|asked| !sums_up(asked)).expect("a request");
    assert!(last.system().contains("Keep the ledger of the expedition"), "{}", last.system());
    assert!(last.text_contains("[round 200]"), "the newest request is missing");

    let mut database = Database::read(&polity.data_dir());
    let heard =
        database.number("SELECT count(*) FROM records WHERE agent LIKE 'clerk-%' AND message IS NOT NULL");
    assert_eq!(
        heard,
        i64::try_from(ROUNDS * PER_ROUND).expect("a small number"),
        "the database must keep the records that were summed up"
    );
    assert_eq!(database.number("SELECT count(*) FROM messages WHERE state NOT IN ('done')"), 0);
}

#[test]
fn a_request_that_the_server_finds_too_long_is_summed_up_and_tried_again() {
    let server = ScriptedServer::start(|asked| {
        if sums_up(asked) {
            return Answer::say("Three times looked.");
        }
        if asked.results_of("list_contacts").len() >= 3 {
            let message = "This model's maximum context length is 100 tokens";
            return Answer::error(
                400,
                json!({"error": {"message": message, "code": "context_length_exceeded"}}),
            );
        }
        if is_summed_up(asked) {
            return Answer::say("it fits now");
        }
        Answer::call("list_contacts", json!({}))
    });
    let polity = Polity::new(
        &json!({"services": [service("one", &server, &["text"])]}),
        &app(&json!({"language": "en"})),
    );
    let ended = run(&polity, &["look three times", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!(events(&lines, "model_failed")[0]["next"], "compact");
    assert_eq!(events(&lines, "context_compacted")[0]["summary"], "model");
    let last = asked_by(&server, "root").pop().expect("a request");
    assert!(
        last.text_contains("Three times looked.") && last.text_contains("look three times"),
        "{:#}",
        last.body()
    );
}

#[test]
fn a_conversation_goes_on_where_no_model_can_sum_it_up() {
    let server = ScriptedServer::start(|asked| {
        if sums_up(asked) {
            return Answer::error(400, json!({"error": {"message": "no summaries here"}}));
        }
        if is_summed_up(asked) {
            return Answer::say("it fits now");
        }
        another_call(asked)
    });
    let services = json!({"services": [with_window("one", &server, 6_000)]});
    let polity = Polity::new(&services, &app(&json!({"language": "en"})));
    let ended = run(&polity, &["look again and again", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!(events(&lines, "context_compacted")[0]["summary"], "entries");
}

#[test]
fn how_full_the_window_is_stands_with_the_message() {
    let server = ScriptedServer::start(|asked| {
        if asked.agent_id() != "root" {
            return Answer::say("noted");
        }
        if let Some(hiring) = crate::support::hiring::hire(asked, "helper", "note this") {
            return hiring;
        }
        let heard = asked.heard().len();
        let helper = hired(asked, "helper").expect("a helper");
        let sent = asked.results_of("send_message").len();
        match heard {
            1 => Answer::say("waiting").costing(60_000, 1_000),
            2 if sent == 0 => Answer::call("send_message", json!({"to": helper, "payload": "and this"})),
            2 => Answer::say("waiting").costing(75_000, 1_000),
            3 if sent == 1 => {
                Answer::call("send_message", json!({"to": helper, "payload": "and this"})).costing(76_000, 0)
            }
            3 => Answer::say("waiting").costing(92_000, 500),
            _ => Answer::say("done"),
        }
    });
    let services = json!({"services": [with_window("one", &server, 100_000)]});
    let polity = Polity::new(&services, &app(&json!({})));
    run(&polity, &["look"]).expect_code(0);
    let requests = asked_by(&server, "root");
    let last = requests.last().expect("a request");
    let lines = |needle: &str| {
        let texts = last.messages()[1..].iter().filter_map(|message| message["content"].as_str());
        texts.flat_map(str::lines).filter(|line| line.contains(needle)).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(
        lines("【上下文状态】"),
        ["【上下文状态】已使用 76000/100000 tokens (76%)", "【上下文状态】已使用 92500/100000 tokens (92%)"]
    );
    assert_eq!(lines("立即调用 compress_context").len(), 1);
}

#[test]
fn nothing_is_summed_up_while_the_server_is_down() {
    let server = ScriptedServer::start(|asked| {
        if sums_up(asked) {
            return Answer::error(503, json!({"error": {"message": "overloaded"}}));
        }
        another_call(asked)
    });
    let services = json!({"services": [with_window("one", &server, 6_000)]});
    let polity = Polity::new(&services, &app(&json!({"language": "en"})));
    let ended = run(&polity, &["look again and again", "--json"]).expect_code(3);
    let lines = json_lines(&ended.stdout);
    assert!(events(&lines, "context_compacted").is_empty(), "{}", ended.stdout);
    assert!(ended.stdout.contains("overloaded"));
}

/// Some servers silently cut off a request that is too long. So the daemon must not send such a request.
#[test]
fn a_request_that_cannot_fit_is_not_sent_and_the_numbers_are_told() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let small = with_window("small", &server, 500);
    let polity = Polity::new(&json!({"services": [small]}), &app(&json!({"language": "en"})));
    let ended = run(&polity, &["go"]).expect_code(3);
    assert_eq!(server.request_count(), 0);
    for word in ["the context window of service small has 500", "contextWindow", "it was not sent"] {
        assert!(ended.stdout.contains(word), "{word:?} is not in {}", ended.stdout);
    }
}

/// If the context window of the service is small, the user gets a warning when a task begins. The warning explains
/// how to get a larger window.
#[test]
fn a_small_window_is_told_when_a_task_begins_and_by_config_check() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let told = "service small: a context window of 4096 tokens is small";
    let small = Polity::new(
        &json!({"services": [with_window("small", &server, 4_096)]}),
        &app(&json!({"language": "en"})),
    );
    let ended = run(&small, &["go"]).expect_code(0);
    assert!(ended.stderr.contains(told), "{}", ended.stderr);
    assert_eq!(ended.stdout, "done\n");
    let lines = json_lines(&run(&small, &["go", "--json"]).expect_code(0).stdout);
    assert!(events(&lines, "services")[0]["warning"].as_str().is_some_and(|said| said.contains(told)));
    let checked = small.run(&["config", "check"]).expect_code(0);
    assert!(checked.stderr.contains(told), "{}", checked.stderr);

    let large = Polity::new(
        &json!({"services": [with_window("large", &server, 8_192)]}),
        &app(&json!({"language": "en"})),
    );
    assert!(!run(&large, &["go"]).expect_code(0).stderr.contains("is small"));
    assert!(!large.run(&["config", "check"]).expect_code(0).stderr.contains("is small"));
}

#[test]
fn a_request_that_cannot_fit_goes_to_the_fallback() {
    let (first, second) =
        (ScriptedServer::start(|_| Answer::say("cut")), ScriptedServer::start(|_| Answer::say("done")));
    let mut small = with_window("small", &first, 500);
    small["fallback"] = json!("large");
    let services = json!({"services": [small, service("large", &second, &["text"])]});
    let ended = run(&Polity::new(&services, &app(&json!({}))), &["go"]).expect_code(0);
    assert_eq!(ended.stdout, "done\n");
    assert_eq!((first.request_count(), second.request_count()), (0, 1));
}

/// A window of 4,096 tokens has room only for short rules and few tools.
#[test]
fn a_small_window_has_room_for_work() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let services = json!({"services": [with_window("small", &server, 4_096)]});
    run(&Polity::new(&services, &app(&json!({}))), &["go"]).expect_code(0);
    let offered = last_asked(&server).offered_tools().join(" ");
    assert_eq!(offered, "spawn_agent_with_task send_message list_contacts put_artifact get_artifact");
}
