//! `--json`: every event as one JSON object per line, for programs.

use polity_tests::{Answer, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::{Gate, boss_and_worker};
use crate::support::{events, home, json_lines, letters, run};

fn long() -> String {
    (0..1000).map(|word| format!("{word:04}\n")).collect()
}

/// Runs a society in which a worker writes a long text and root forwards it. Returns the printed JSON objects.
#[track_caller]
fn lines() -> Vec<Value> {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(boss_and_worker(move |_| {
        closed.pass();
        Answer::say(long()).costing(1000, 500)
    }));
    let polity = home(&server, &json!({}));
    let ended = gate.open_after("one moment", &polity, &["work", "--json"]).expect_code(0);
    assert_eq!(ended.stderr, "", "with --json, nothing goes to standard error");
    json_lines(&ended.stdout)
}

#[test]
fn every_line_is_an_object_that_says_what_it_is() {
    let lines = lines();
    assert!(lines.len() > 20);
    for line in &lines {
        assert!(line["event"].is_string(), "{line}");
    }
    assert_eq!(lines[0]["event"], "services");
    let last = lines.last().expect("a line");
    assert_eq!(
        (&last["event"], &last["exitCode"], &last["outcome"]),
        (&json!("finished"), &json!(0), &json!("answered"))
    );
}

#[test]
fn the_first_line_says_which_files_count() {
    let first = &lines()[0];
    assert_eq!((&first["configDir"], &first["dataDir"]), (&json!("./config"), &json!("data")));
    assert_eq!(first["services"], json!(["one"]));
}

#[test]
fn no_control_character_is_in_a_line() {
    let said = "\u{1b}[31mred\u{7f}\u{9b}2J\u{202e}";
    let server = ScriptedServer::start(move |_| Answer::say(said));
    let ended = run(&home(&server, &json!({})), &["what?", "--json"]).expect_code(0);
    for line in ended.stdout.lines() {
        assert!(
            !line.contains(|character: char| character.is_control() || character == '\u{202e}'),
            "{line}"
        );
    }
    assert_eq!(letters(&json_lines(&ended.stdout))[0]["text"], said);
}

#[test]
fn the_numbers_of_events_grow() {
    let lines = lines();
    let numbers: Vec<i64> = lines.iter().filter_map(|line| line["seq"].as_i64()).collect();
    assert!(numbers.len() > 15 && numbers.is_sorted_by(|one, next| one < next));
}

#[test]
fn what_is_said_to_the_person_is_whole() {
    let lines = lines();
    let said = letters(&lines);
    let [interim, answer] = &said[..] else { panic!("expected two messages: {said:#?}") };
    assert_eq!((&interim["finality"], &interim["text"]), (&json!("interim"), &json!("one moment")));
    assert_eq!((&answer["finality"], &answer["from"]), (&json!("final"), &json!("root")));
    assert_eq!(
        answer["text"].as_str().map(str::trim_end),
        Some(format!("the worker says: {}", long().trim_end()).as_str())
    );
}

#[test]
fn who_was_hired_who_wrote_and_what_it_cost_is_there() {
    let lines = lines();
    let hired = events(&lines, "agent_created");
    let [worker] = &hired[..] else { panic!("expected one worker") };
    assert_eq!((&worker["parent"], &worker["objective"]), (&json!("root"), &json!("be a worker")));
    assert_eq!(events(&lines, "role_created")[0]["name"], "worker");
    let wrote = events(&lines, "message_accepted");
    let pairs: Vec<(&Value, &Value)> = wrote.iter().map(|wrote| (&wrote["from"], &wrote["to"])).collect();
    for pair in [
        (&json!("user"), &json!("root")),
        (&json!("root"), &worker["agent"]),
        (&worker["agent"], &json!("root")),
        (&json!("root"), &json!("user")),
    ] {
        assert!(pairs.contains(&pair), "{pair:?} is not in {pairs:?}");
    }
    let answered = events(&lines, "model_answered");
    assert_eq!(answered.len(), 5);
    let of_worker: Vec<_> = answered.iter().filter(|answered| answered["agent"] == worker["agent"]).collect();
    assert_eq!(
        (&of_worker[0]["usage"]["promptTokens"], &of_worker[0]["usage"]["completionTokens"]),
        (&json!(1000), &json!(500))
    );
    assert_eq!((&of_worker[0]["service"], &of_worker[0]["model"]), (&json!("one"), &json!("one-model")));
}
