//! The limits of a task, and what happens to the work when a limit or a signal ends it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use polity_tests::{Answer, Captured, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::{Gate, brief, hire, hired};
use crate::support::{another_call, app, events, home, json_lines, letters, run, service, start};

const PATIENCE: Duration = Duration::from_secs(60);

/// The roles of the agents that root hires to work at the same time.
const WORKERS: [&str; 6] = ["one", "two", "three", "four", "five", "six"];

/// A script in which root hires six agents and then waits. Each of the six agents calls a tool for ever. Each answer of
/// a model reports as its usage `prompt` tokens for the request and `answer` tokens for the answer.
fn six_for_ever(prompt: u64, answer: u64) -> impl Fn(&Conversation) -> Answer + Send + Sync + 'static {
    move |asked| {
        let answered = if asked.role_name() != "根智能体" {
            another_call(asked)
        } else if let Some(answer) = WORKERS.iter().find_map(|role| hire(asked, role, "work")) {
            answer
        } else {
            Answer::say("they are at work")
        };
        answered.costing(prompt, answer)
    }
}

/// Creates a home with one service. The service costs money, and its answers have at most 300 tokens.
fn priced(server: &ScriptedServer, limits: &Value) -> Polity {
    let mut one = service("one", server, &["text"]);
    one["maxTokens"] = json!(300);
    one["price"] = json!({"input": 1.0, "output": 20.0});
    Polity::new(&json!({"services": [one]}), &app(&json!({"limits": limits})))
}

/// Returns what the agents have used: calls, prompt tokens and completion tokens.
fn used(lines: &[Value]) -> (usize, u64, u64) {
    let answered = events(lines, "model_answered");
    let sum =
        |field: &str| answered.iter().map(|event| event["usage"][field].as_u64().expect("a number")).sum();
    (answered.len(), sum("promptTokens"), sum("completionTokens"))
}

/// Returns the only event `limit_reached`, and the text of the notice that tells the user about it.
#[track_caller]
fn reached(lines: &[Value]) -> (Value, String) {
    let [reached] = events(lines, "limit_reached")[..] else { panic!("expected one `limit_reached` event") };
    let told: Vec<&Value> = letters(lines).into_iter().filter(|letter| letter["type"] == "notice").collect();
    assert_eq!(told.len(), 1, "the user must get exactly one notice");
    (reached.clone(), told[0]["text"].as_str().expect("a text").to_owned())
}

#[test]
fn agents_that_work_at_the_same_time_do_not_pass_the_tokens_of_their_task_together() {
    let server = ScriptedServer::start(six_for_ever(2_000, 300));
    let polity = priced(&server, &json!({"maxTokensPerTask": 200_000}));
    let ended = run(&polity, &["go", "--json"]).expect_code(4);
    let lines = json_lines(&ended.stdout);
    let (_, prompt, answers) = used(&lines);
    assert!(prompt + answers <= 200_000, "{prompt} + {answers}");
    let (limit, told) = reached(&lines);
    assert_eq!((&limit["limit"], &limit["value"]), (&json!("maxTokensPerTask"), &json!(200_000)));
    let agents: BTreeSet<&str> =
        events(&lines, "agent_created").iter().map(|event| event["agent"].as_str().expect("an id")).collect();
    assert_eq!(agents.len(), 6);
    assert!(agents.iter().all(|agent| told.contains(agent)), "a branch has no line in: {told}");
}

#[test]
fn calls_under_way_count_before_they_are_answered() {
    let server = ScriptedServer::start(six_for_ever(100, 10));
    let polity = priced(&server, &json!({"maxModelCallsPerTask": 30}));
    let ended = run(&polity, &["go", "--json"]).expect_code(4);
    let lines = json_lines(&ended.stdout);
    assert_eq!(used(&lines).0, 30, "the number of calls is not the limit");
    assert_eq!(server.request_count(), 30);
    assert_eq!(reached(&lines).0["limit"], "maxModelCallsPerTask");
}

#[test]
fn a_task_costs_no_more_than_it_may_and_the_person_sees_who_spent_it() {
    let server = ScriptedServer::start(six_for_ever(2_000, 300));
    let polity = priced(&server, &json!({"maxCostPerTask": 0.25}));
    let ended = run(&polity, &["go", "--json"]).expect_code(4);
    let lines = json_lines(&ended.stdout);
    let (_, prompt, answers) = used(&lines);
    let cost = (prompt as f64 + 20.0 * answers as f64) / 1e6;
    assert!(cost <= 0.25, "{cost}");
    let (limit, told) = reached(&lines);
    assert_eq!((&limit["limit"], &limit["value"]), (&json!("maxCostPerTask"), &json!(0.25)));
    assert!(told.contains("费用 0.0"), "{told}");
}

#[test]
fn a_task_takes_no_longer_than_it_may_even_in_the_middle_of_a_call() {
    let server = ScriptedServer::start(|_| Answer::hang());
    let polity = home(&server, &json!({"limits": {"maxSecondsPerTask": 1}}));
    let ended = run(&polity, &["go", "--json"]).expect_code(4);
    assert_eq!(reached(&json_lines(&ended.stdout)).0["limit"], "maxSecondsPerTask");
}

#[test]
fn a_limit_that_is_lowered_counts_at_the_next_call() {
    let (asked, gate) = (Arc::new(AtomicU64::new(0)), Gate::default());
    let (count, closed) = (Arc::clone(&asked), gate.clone());
    let server = ScriptedServer::start(move |asked| {
        if count.fetch_add(1, Ordering::SeqCst) == 4 {
            closed.pass();
        }
        another_call(asked)
    });
    let polity = home(&server, &json!({}));
    let running = start(&polity, &["go on for ever"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 5);
    let lowered = app(&json!({"limits": {"maxModelCallsPerTask": 5}}));
    polity.write_config("app.json", &lowered.to_string());
    gate.open();
    running.wait().expect_code(4);
    assert_eq!(server.request_count(), 5);
}

#[test]
fn an_answer_that_is_under_way_is_kept_when_the_process_is_asked_to_end() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.round() == 0 {
            closed.pass();
            return Answer::call("list_contacts", json!({}));
        }
        Answer::say("done")
    });
    let polity = home(&server, &json!({"shutdownGraceMs": 60_000}));
    let running = start(&polity, &["go"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    running.terminate();
    running.stderr_line("letting the work in progress finish");
    gate.open();
    running.wait().expect_code(130);
    assert_eq!(server.request_count(), 1, "a new call was begun");
    run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(server.request_count(), 2, "an answered call was made again");
}

#[test]
fn a_call_that_waits_is_not_begun_when_the_process_is_asked_to_end() {
    // The service takes one call at a time. The first call of a worker waits at the closed gate. So all other calls
    // wait until this call ends.
    let gate = Gate::default();
    let closed = gate.clone();
    let play = six_for_ever(100, 10);
    let server = ScriptedServer::start(move |asked| {
        if asked.role_name() != "根智能体" {
            closed.pass();
        }
        play(asked)
    });
    let mut one = service("one", &server, &["text"]);
    one["maxConcurrentRequests"] = json!(1);
    let polity = Polity::new(&json!({"services": [one]}), &app(&json!({"shutdownGraceMs": 60_000})));
    let running = start(&polity, &["go"]);
    let by_a_worker = |request: &Captured| request.conversation().role_name() != "根智能体";
    server.wait_until(PATIENCE, |requests| requests.iter().any(by_a_worker));
    let before = server.request_count();
    running.terminate();
    running.stderr_line("letting the work in progress finish");
    gate.open();
    running.wait().expect_code(130);
    assert_eq!(server.request_count(), before);
}

#[test]
fn what_does_not_end_in_time_is_left_for_the_next_start() {
    let answers = Gate::default();
    let closed = answers.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.text_contains("go") && closed.is_open() { Answer::say("done") } else { Answer::hang() }
    });
    let polity = home(&server, &json!({"shutdownGraceMs": 1}));
    let running = start(&polity, &["go"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    running.interrupt();
    running.wait().expect_code(130);
    answers.open();
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, "done\n");
}

#[test]
fn a_second_signal_ends_at_once_and_nothing_acknowledged_is_lost() {
    let answers = Gate::default();
    let closed = answers.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.role_name() != "worker"
            && let Some(answer) = hire(asked, "worker", "work")
        {
            return answer;
        }
        if closed.is_open() { Answer::say("done") } else { Answer::hang() }
    });
    // The grace period is an hour, so only the second signal can end the process.
    let polity = home(&server, &json!({"shutdownGraceMs": 3_600_000}));
    let running = start(&polity, &["go"]);
    server.wait_until(PATIENCE, |requests| requests.len() >= 4);
    running.terminate();
    running.stderr_line("once more");
    running.interrupt();
    running.wait().expect_code(130);
    answers.open();
    run(&polity, &["--resume"]).expect_code(0);
    let requests = server.requests();
    let workers: BTreeSet<String> =
        requests.iter().filter_map(|asked| hired(&asked.conversation(), "worker")).collect();
    assert_eq!(workers.len(), 1, "the worker was hired again");
}

#[test]
fn a_limit_stops_the_whole_tree_whatever_the_others_cost() {
    // Only root's calls cost money, because the service of the workers is free. When the money is spent, the workers
    // must stop as well.
    let server = ScriptedServer::start(|asked| {
        let answer = match (asked.role_name().as_str(), asked.results_of("create_role").first()) {
            ("根智能体", None) => {
                let role = json!({"name": "worker", "rolePrompt": "Work.", "serviceId": "free"});
                Answer::call("create_role", role)
            }
            ("根智能体", Some(role)) if asked.results_of("spawn_agent_with_task").len() < 4 => {
                let role = &role.value["id"];
                let hire = json!({"roleId": role, "taskBrief": brief("work"), "initialMessage": "go"});
                Answer::call("spawn_agent_with_task", hire)
            }
            _ => another_call(asked),
        };
        answer.costing(2_000, 300)
    });
    let mut dear = service("dear", &server, &["text"]);
    dear["price"] = json!({"input": 1.0, "output": 20.0});
    let free = service("free", &server, &["text"]);
    let limits = json!({"limits": {"maxCostPerTask": 0.2, "maxModelCallsPerTask": 1_000}});
    let polity = Polity::new(&json!({"services": [dear, free]}), &app(&limits));
    let ended = run(&polity, &["go", "--json"]).expect_code(4);
    let lines = json_lines(&ended.stdout);
    assert_eq!(reached(&lines).0["limit"], "maxCostPerTask");
    let after = lines.iter().skip_while(|line| line["event"] != "limit_reached");
    let answered = after.filter(|line| line["event"] == "model_answered").count();
    assert!(answered <= 4, "calls were begun after the limit: {answered} answers");
}
