//! Models that never stop by themselves. A limit stops each of them, and the rest of the society goes on undisturbed.

use polity_tests::{Answer, Conversation, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::{brief, hire, hired};
use crate::support::{another_call, events, home, json_lines, letters, run};

/// A script in which root hires two agents: a runaway, which `runaway` plays, and an honest worker. Root then repeats
/// the worker's answer.
fn beside_a_worker(
    runaway: impl Fn(&Conversation) -> Answer + Send + Sync + 'static,
) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| match asked.role_name().as_str() {
        "根智能体" => {
            let hiring = hire(asked, "runaway", "go").or_else(|| hire(asked, "worker", "work"));
            hiring.unwrap_or_else(|| {
                let words =
                    if asked.text_contains("the honest answer") { "it says 42" } else { "one moment" };
                Answer::say(words)
            })
        }
        "worker" if asked.tool_results().len() < 3 => another_call(asked),
        "worker" => Answer::say("the honest answer"),
        _ => runaway(asked),
    }
}

/// The events of a run.
struct Ran(Vec<Value>);

impl Ran {
    /// Runs the society with these limits. Fails if the run does not end with the worker's answer.
    #[track_caller]
    fn well(server: &ScriptedServer, limits: &Value) -> Self {
        let polity = home(server, &json!({"limits": limits}));
        let ended = run(&polity, &["go", "--json"]).expect_code(0);
        let ran = Self(json_lines(&ended.stdout));
        let last = letters(&ran.0).last().expect("something was said")["text"].clone();
        assert_eq!(last, "it says 42", "the runaway has disturbed the others");
        server.assert_clean();
        ran
    }

    /// Returns the agents that reached a limit.
    fn reached(&self, limit: &str) -> Vec<&str> {
        let reached = events(&self.0, "limit_reached").into_iter().filter(|event| event["limit"] == limit);
        reached.map(|event| event["agent"].as_str().expect("an id")).collect()
    }

    /// Returns how many tool calls were refused with this code.
    fn refused(&self, code: &str) -> usize {
        events(&self.0, "tool_called").into_iter().filter(|event| event["error"] == code).count()
    }

    fn count(&self, event: &str) -> usize {
        events(&self.0, event).len()
    }
}

/// When an agent has reached a limit, its request forbids tool calls. Answers such a request with a summary. Calls
/// `otherwise` for all other requests.
fn sum_up_or(asked: &Conversation, otherwise: impl Fn() -> Answer) -> Answer {
    if asked.body()["tool_choice"] == "none" { Answer::say("that is all") } else { otherwise() }
}

#[test]
fn one_that_always_calls_tools_is_told_to_sum_up() {
    let runaway = |asked: &Conversation| sum_up_or(asked, || another_call(asked));
    let server = ScriptedServer::start(beside_a_worker(runaway));
    let ran = Ran::well(&server, &json!({"maxToolRounds": 20}));
    assert_eq!(ran.reached("maxToolRounds").len(), 1);
}

#[test]
fn one_that_calls_tools_even_when_it_is_to_sum_up_is_stopped_all_the_same() {
    let server = ScriptedServer::start(beside_a_worker(another_call));
    let ran = Ran::well(&server, &json!({"maxToolRounds": 20}));
    // The agent gives no answer, so it gets one reminder. The reminder begins another turn, which reaches the limit
    // again.
    assert_eq!(ran.reached("maxToolRounds").len(), 2);
}

#[test]
fn one_that_always_hires_is_bounded_in_children_generations_and_agents() {
    // The agent and all its descendants hire more agents without end.
    let runaway = |asked: &Conversation| {
        if asked.results_of("create_role").is_empty() {
            return Answer::call(
                "create_role",
                json!({"name": "copy", "rolePrompt": "Hire copies of yourself."}),
            );
        }
        let role = asked.results_of("create_role")[0].value["id"].clone();
        let hire = json!({"roleId": role, "taskBrief": brief("more"), "initialMessage": "go"});
        sum_up_or(asked, || Answer::call("spawn_agent_with_task", hire.clone()))
    };
    let server = ScriptedServer::start(beside_a_worker(runaway));
    let limits = json!({"maxToolRounds": 6, "maxAgentsPerTask": 12, "maxDepth": 3, "maxChildren": 4});
    let ran = Ran::well(&server, &limits);
    assert!(ran.count("agent_created") <= 12, "{}", ran.count("agent_created"));
    assert!(ran.refused("limit_reached") > 0);
}

/// Plays one of two agents that thank each other for ever. Each of them answers the other's thanks with a new message.
fn thankful(asked: &Conversation, other: impl Fn(&Conversation) -> Option<String>) -> Answer {
    let Some(to) = other(asked) else { return Answer::say("nobody is there") };
    let thanks = json!({"to": to, "payload": {"message_type": "status_report", "text": "thank you"}});
    match asked.messages().last().expect("a message")["role"].as_str() {
        Some("tool") => Answer::say("I have thanked"),
        _ => Answer::call("send_message", thanks),
    }
}

#[test]
fn two_that_thank_each_other_are_stopped_and_both_are_told() {
    let runaway = |asked: &Conversation| {
        if asked.role_name() == "friend" {
            return thankful(asked, |asked| Some(asked.parent_id()));
        }
        if let Some(answer) = hire(asked, "friend", "thank me") {
            return answer;
        }
        thankful(asked, |asked| hired(asked, "friend"))
    };
    let server = ScriptedServer::start(beside_a_worker(runaway));
    let ran = Ran::well(&server, &json!({"maxPairExchanges": 10}));
    assert_eq!(ran.reached("maxPairExchanges").len(), 2, "both agents must be told");
}

#[test]
fn one_that_writes_to_itself_is_stopped() {
    let runaway = |asked: &Conversation| {
        let note = json!({"to": asked.agent_id(), "payload": "again"});
        sum_up_or(asked, || Answer::call("send_message", note.clone()))
    };
    let server = ScriptedServer::start(beside_a_worker(runaway));
    let ran = Ran::well(&server, &json!({"maxPairExchanges": 10, "maxToolRounds": 30}));
    assert!(!ran.reached("maxPairExchanges").is_empty());
    assert!(ran.refused("limit_reached") > 0);
}

/// Returns a megabyte of text. The text has no spaces, so it comes in a single event of the model's stream.
fn a_megabyte() -> String {
    "长".repeat(MEGABYTE / 3)
}

const MEGABYTE: usize = 999_999;

#[test]
fn one_that_answers_a_megabyte_each_time_is_cut_and_what_it_said_is_kept() {
    let server = ScriptedServer::start(|asked| match asked.role_name().as_str() {
        "根智能体" => {
            if let Some(answer) = hire(asked, "runaway", "go") {
                return answer;
            }
            // Root writes to the runaway twice more, so the runaway answers three times.
            let heard = asked.heard().iter().filter(|heard| heard.text.contains("artifact:")).count();
            let asked_again = asked.results_of("send_message").len();
            if heard > asked_again && asked_again < 2 {
                let to = hired(asked, "runaway").expect("it was hired");
                return Answer::call("send_message", json!({"to": to, "payload": "more"}));
            }
            Answer::say(if heard == 3 { "it says 42" } else { "one moment" })
        }
        _ => Answer::say(a_megabyte()),
    });
    let ran = Ran::well(&server, &json!({}));
    let stored: Vec<u64> = events(&ran.0, "artifact_stored")
        .iter()
        .map(|event| event["size"].as_u64().expect("a size"))
        .collect();
    assert_eq!(stored, [MEGABYTE as u64; 3]);
}

#[test]
fn one_that_thinks_a_megabyte_before_each_call_stops_its_own_task_and_no_other() {
    let server = ScriptedServer::start(|asked| {
        if asked.text_contains("something else") {
            return Answer::say("it says 42");
        }
        another_call(asked).and_say(a_megabyte())
    });
    let polity = home(&server, &json!({"limits": {"maxTokensPerTask": 2_000_000}}));
    let ended = run(&polity, &["go", "--json"]).expect_code(4);
    let lines = json_lines(&ended.stdout);
    let [reached] = events(&lines, "limit_reached")[..] else { panic!("expected one `limit_reached` event") };
    assert_eq!(reached["limit"], "maxTokensPerTask");
    assert_eq!(run(&polity, &["something else"]).expect_code(0).stdout, "it says 42\n");
}
