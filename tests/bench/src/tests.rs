//! Tests the floor together with the scripted model. The tests need no binary of polity.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::floor::{Fixed, Order, Work, carry_out};
use crate::http::Connection;
use crate::model::{Model, Script};
use crate::script;

/// Runs a floor in this process with a scripted model. Returns the model, and the number of measured parts.
fn work(work: Work, script: Script) -> (Model, usize) {
    let model = Model::start(script).unwrap();
    let directory = TempDir::new().unwrap();
    let request = json!({
        "model": "m", "messages": [{"role": "system", "content": "s\nagentId=root\n"}, {"role": "user", "content": "u"}],
        "stream": true,
    });
    let fixed = Fixed::of(request.to_string().as_bytes()).unwrap();
    let order = Order { work, directory: directory.path().to_owned(), model: model.address(), fixed };
    let report = carry_out(order).unwrap();
    assert!(report.peak > 0.0);
    (model, report.parts.len())
}

#[test]
fn the_floor_plays_turns_alone_and_together() {
    let (model, parts) = work(Work::Turns { clients: 1, warm_up: 1, turns: 1 }, script::answering());
    assert_eq!((model.requests(), parts), (2, 1));
    let asked: Value = serde_json::from_slice(&model.first_request().unwrap()).unwrap();
    assert_eq!(asked["messages"].as_array().unwrap().len(), 2);
    let (model, _) = work(Work::Turns { clients: 4, warm_up: 0, turns: 12 }, script::answering());
    assert_eq!(model.requests(), 12);
}

#[test]
fn the_floor_measures_the_parts_of_a_conversation() {
    let (model, parts) = work(Work::History { parts: vec![2, 3] }, script::answering());
    assert_eq!((model.requests(), parts), (5, 2));
}

#[test]
fn the_floor_hires_every_agent_once() {
    let (model, _) = work(Work::Hire, script::hiring(30));
    // Root makes four requests: it creates the role, hires 20 agents, hires 10 agents, and ends its turn. Each agent
    // makes one request.
    assert_eq!(model.requests(), 4 + 30);
}

#[test]
fn the_floor_passes_the_token_until_it_arrives() {
    let (model, _) = work(Work::Ring { agents: 3 }, script::ring(3, 10));
    assert_eq!(model.requests(), 2 * 10 + 1);
}

#[test]
fn the_floor_reads_a_long_stream() {
    let (model, _) = work(Work::Turns { clients: 1, warm_up: 0, turns: 1 }, script::streaming(100));
    assert_eq!(model.requests(), 1);
}

#[test]
fn the_model_answers_with_json_if_no_stream_is_asked_for() {
    let model = Model::start(script::streaming(3)).unwrap();
    let mut connection = Connection::open(&model.address()).unwrap();
    let answer = connection.send("POST /v1/chat/completions", "", b"{}").unwrap().read().unwrap();
    let body: Value = serde_json::from_slice(&answer.1).unwrap();
    assert_eq!((answer.0, body["choices"][0]["message"]["content"].as_str()), (200, Some("abcdabcdabcd")));
}
