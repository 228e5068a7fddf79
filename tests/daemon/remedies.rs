//! A model call fails because of the configuration. Then `polity run` and `polity doctor` must name the same cause and
//! the same correction. The correction consists of the file, the field and the value.

use axum::Router;
use axum::extract::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use polity_tests::Polity;
use serde_json::{Value, json};

use crate::support::router::Served;
use crate::support::{app, json_lines, letters};

/// Returns a server with the models `a` and `b`. The function `chat` answers the requests to its models.
fn server(chat: fn(&Value) -> Response) -> Served {
    let models = json!({"object": "list", "data": [{"id": "a"}, {"id": "b"}]});
    let router = Router::new()
        .route("/v1/models", get(async move || Json(models)))
        .route("/v1/chat/completions", post(async move |Json(asked): Json<Value>| chat(&asked)));
    Served::start(router)
}

fn ok(_: &Value) -> Response {
    let message = json!({"role": "assistant", "content": "OK"});
    Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})).into_response()
}

fn refuse(message: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({"error": {"message": message}}))).into_response()
}

fn home(service: Value) -> Polity {
    let mut service = service;
    service["id"] = json!("mine");
    Polity::new(&json!({"services": [service]}), &app(&json!({"language": "en"})))
}

/// Runs `polity doctor`, and then a task. Checks that both commands print the advice of the finding `code`, and that
/// the advice contains `mend`. Returns the message of the run to the user.
#[track_caller]
fn check(polity: &Polity, code: &str, mend: &str) -> String {
    let ended = polity.run(&["doctor", "--json", "--data", "data"]).expect_code(1);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let findings = report["sections"].as_array().expect("sections").iter();
    let mut findings = findings.flat_map(|section| section["findings"].as_array().expect("findings"));
    let finding = findings.find(|finding| finding["code"] == code);
    let finding = finding.unwrap_or_else(|| panic!("{code} is not in {}", ended.stdout));
    assert_eq!(finding["severity"], "problem", "{finding}");
    let advice = finding["advice"].as_str().expect("advice");
    let advice = advice.split("; the server has").next().unwrap_or_default();
    assert!(advice.contains(mend), "{mend:?} is not in {advice:?}");

    let ended = polity.run(&["run", "--json", "--data", "data", "hello"]);
    assert!(matches!(ended.code, Some(3 | 5)), "{ended:?}");
    let lines = json_lines(&ended.stdout);
    let told: Vec<&str> = letters(&lines).iter().filter_map(|letter| letter["text"].as_str()).collect();
    let told = told.join("\n");
    assert!(told.contains(advice), "{advice:?} is not in {told:?}");
    told
}

#[test]
fn a_model_without_tools_is_told_with_what_to_set() {
    let server = server(|asked| match asked.get("tools") {
        Some(_) => refuse("registry.ollama.ai/library/a does not support tools"),
        None => ok(asked),
    });
    let polity = home(json!({"baseURL": server.base_url(), "model": "a"}));
    let mend = "set model of service \"mine\" in llmservices.json to a model that calls tools, or set its \
                capabilities.output to [\"text\"]";
    let told = check(&polity, "no_tools", mend);
    assert!(told.contains("the model takes no tools"), "{told}");

    // After the advised correction, the service answers.
    let output = json!({"input": ["text"], "output": ["text"]});
    let mended = json!({"services": [
        {"id": "mine", "baseURL": server.base_url(), "model": "a", "capabilities": output},
    ]});
    polity.write_config("llmservices.json", &mended.to_string());
    polity.run(&["run", "--data", "data", "hello"]).expect_code(0);
    polity.run(&["doctor", "--data", "data"]).expect_code(0);
}

#[test]
fn a_base_url_without_v1_is_told_with_the_address_that_answers() {
    let server = server(ok);
    let polity = home(json!({"baseURL": server.root_url(), "model": "a"}));
    let told = check(
        &polity,
        "wrong_address",
        "set baseURL of service \"mine\" in llmservices.json to that address",
    );
    assert!(told.contains(&format!("a model server answers at {}", server.base_url())), "{told}");
}

#[test]
fn a_missing_model_is_told_with_those_that_there_are() {
    let server = server(|_| {
        (StatusCode::NOT_FOUND, Json(json!({"error": {"message": "model 'c' not found"}}))).into_response()
    });
    let polity = home(json!({"baseURL": server.base_url(), "model": "c"}));
    let told = check(&polity, "model_missing", "set model of service \"mine\" in llmservices.json");
    assert!(told.contains("the server has \"a\", \"b\""), "{told}");
}

#[test]
fn a_server_that_has_loaded_nothing_is_told_with_what_to_load() {
    let server = server(|_| refuse("No models loaded. Please load a model in the developer page."));
    let polity = home(json!({"baseURL": server.base_url(), "model": "a"}));
    check(&polity, "nothing_loaded", "load the model \"a\" on the server, or set model of service \"mine\"");
}

#[test]
fn a_window_that_is_too_small_is_told_with_a_size_that_is_enough() {
    let server = server(|asked| {
        refuse(&format!("the request exceeds the available context size of {}", asked["model"]))
    });
    let polity = home(json!({"baseURL": server.base_url(), "model": "a", "contextWindow": 4096}));
    let mend = "set contextWindow of service \"mine\" in llmservices.json to 16384";
    check(&polity, "context_overflow", mend);
}
