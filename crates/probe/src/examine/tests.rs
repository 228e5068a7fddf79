use super::*;
use crate::correction::corrections;
use axum::Json;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream;
use polity_llm::{Endpoint, Found, HttpModel, ServerKind};
use polity_registry::Declaration;
use polity_society::content::Capabilities;
use polity_society::id::ServiceId;
use std::future::pending;

/// Time limits that no test reaches.
const LONG: Times = Times { question: Duration::from_secs(600), call: Duration::from_secs(600) };
const SHORT: Times = Times { question: Duration::from_millis(30), call: Duration::from_millis(30) };

/// Starts a server, and returns a service that uses the model `model` of this server.
async fn at(router: Router, model: &str) -> Service {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    let mut endpoint = Endpoint::new(base_url, model);
    endpoint.api_key = "sk-very-secret".to_owned().into();
    Service::new(ServiceId::new("s"), endpoint)
}

fn declaring(service: Service, input: &[Capability], output: &[Capability]) -> Service {
    let capabilities = Capabilities { input: input.to_vec(), output: output.to_vec() };
    Service { capabilities, declared: Declaration::Declared, ..service }
}

async fn look(service: &Service, times: Times) -> Examination {
    let inquirer = Inquirer::new(LONG.question).unwrap();
    let examination = examine(&inquirer, &HttpModel::default(), service, times).await;
    let shown = format!("{:?}", examination.findings);
    assert!(!shown.contains("very-secret"), "{shown}");
    examination
}

fn codes(examination: &Examination) -> Vec<&'static str> {
    examination.findings.iter().map(|finding| finding.code).collect()
}

fn says_ok() -> Json<Value> {
    let message = json!({"role": "assistant", "content": "OK"});
    Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}))
}

/// Makes a server that answers every chat request. `list` is the server's list of models.
fn chat(list: Value) -> Router {
    Router::new()
        .route("/v1/models", get(async move || Json(list)))
        .route("/v1/chat/completions", post(async || says_ok()))
}

fn list_of(owner: &str, models: &[&str]) -> Value {
    let entries: Vec<Value> =
        models.iter().map(|model| json!({"id": model, "object": "model", "owned_by": owner})).collect();
    json!({"object": "list", "data": entries})
}

const TEXT: Capability = Capability::TEXT;
const VISION: Capability = Capability::VISION;
const TOOLS: Capability = Capability::TOOL_CALLING;

#[tokio::test]
async fn ollama() {
    let router = chat(list_of("library", &["qwen3-vl:8b", "llama3:latest"]))
        .route(
            "/api/show",
            post(async |Json(asked): Json<Value>| {
                assert_eq!(asked, json!({"model": "qwen3-vl:8b"}));
                let info = json!({"general.architecture": "qwen3vl", "qwen3vl.context_length": 262_144});
                Json(json!({"capabilities": ["completion", "vision", "tools"], "model_info": info}))
            }),
        )
        .route(
            "/api/ps",
            get(async || Json(json!({"models": [{"model": "qwen3-vl:8b", "context_length": 4096}]}))),
        );
    let service = declaring(at(router, "qwen3-vl:8b").await, &[TEXT], &[TEXT, TOOLS]);
    let examination = look(&service, LONG).await;
    assert_eq!(examination.facts.server, Server::Ollama);
    assert_eq!(
        codes(&examination),
        ["answers", "tools", "not_declared", "window_not_declared", "window_small"]
    );
    assert!(examination.is_sure());
    let correction = corrections(&service, &examination.facts).unwrap();
    assert_eq!(correction.input, Some(vec!["text".to_owned(), "vision".to_owned()]));
    assert_eq!((correction.output, correction.context_window), (None, Some(4096)));
}

#[tokio::test]
async fn lm_studio() {
    let models = json!({"object": "list", "data": [{
        "id": "qwen/qwen3-8b", "type": "llm", "state": "loaded", "max_context_length": 40_960,
        "loaded_context_length": 16_384, "capabilities": ["tool_use"],
    }]});
    let router = chat(list_of("organization_owner", &["qwen/qwen3-8b"]))
        .route("/api/v0/models", get(async move || Json(models)));
    let service = declaring(at(router, "qwen/qwen3-8b").await, &[TEXT, VISION], &[TEXT, TOOLS]);
    let service = Service { context_window: Some(32_768), ..service };
    let examination = look(&service, LONG).await;
    assert_eq!(examination.facts.server, Server::LmStudio);
    assert_eq!(codes(&examination), ["answers", "tools", "not_there", "window_too_large"]);
}

#[tokio::test]
async fn llama_cpp_answers_to_any_name() {
    let properties = json!({
        "default_generation_settings": {"n_ctx": 16_384}, "chat_template": "{% if tools %}",
        "modalities": {"vision": true, "audio": false},
    });
    let router = chat(list_of("llamacpp", &["a.gguf"])).route("/props", get(async move || Json(properties)));
    let examination = look(&at(router, "default").await, LONG).await;
    assert_eq!(examination.facts.server, Server::LlamaCpp);
    assert_eq!(
        codes(&examination),
        ["answers", "model_not_listed", "tools", "not_declared", "window_not_declared"]
    );
}

#[tokio::test]
async fn llama_cpp_with_many_models_says_nothing_of_one() {
    let properties =
        json!({"default_generation_settings": {"n_ctx": 16_384}, "modalities": {"vision": true}});
    let router = chat(list_of("llamacpp", &["a", "b"])).route("/props", get(async move || Json(properties)));
    let examination = look(&at(router, "a").await, LONG).await;
    assert_eq!(codes(&examination), ["answers", "tools"]);
}

#[tokio::test]
async fn vllm_and_openrouter_say_it_in_their_lists() {
    let vllm = json!({"object": "list", "data": [{"id": "q", "owned_by": "vllm", "max_model_len": 32_768}]});
    let service = Service { context_window: Some(131_072), ..at(chat(vllm), "q").await };
    assert_eq!(codes(&look(&service, LONG).await), ["answers", "tools", "window_too_large"]);

    let architecture = json!({"input_modalities": ["text", "image"], "output_modalities": ["text"]});
    let openrouter = json!({"data": [{"id": "a/b", "architecture": architecture, "context_length": 8192,
        "supported_parameters": ["max_tokens"]}]});
    let service = declaring(at(chat(openrouter), "a/b").await, &[TEXT], &[TEXT, TOOLS]);
    let examination = look(&service, LONG).await;
    assert_eq!(codes(&examination), ["answers", "no_tools", "not_declared", "window_not_declared"]);
}

#[tokio::test]
async fn a_server_that_says_nothing_of_tools_is_tried_with_one() {
    let refuses = Router::new().route(
        "/v1/chat/completions",
        post(async |Json(asked): Json<Value>| -> Response {
            assert!(asked["max_tokens"].as_u64().is_some_and(|most| most < 100), "{asked}");
            match asked.get("tools") {
                None => says_ok().into_response(),
                Some(_) => {
                    let error = json!({"error": {"message": "m does not support tools"}});
                    (StatusCode::BAD_REQUEST, Json(error)).into_response()
                }
            }
        }),
    );
    let service = at(refuses, "m").await;
    let examination = look(&service, LONG).await;
    assert_eq!(codes(&examination), ["answers", "no_tools"]);
    // Only the trial call showed that the model lacks tools. The server itself did not report this, so there is no
    // correction.
    assert_eq!(corrections(&service, &examination.facts), None);
}

#[tokio::test]
async fn a_wrong_key() {
    let refuse = async || {
        (StatusCode::UNAUTHORIZED, r#"{"error": {"message": "bad key sk-very-secret"}}"#).into_response()
    };
    let service = at(Router::new().fallback(refuse), "m").await;
    let examination = look(&service, LONG).await;
    assert_eq!(codes(&examination), ["key_refused"]);
    assert!(!examination.is_sure());
}

#[tokio::test]
async fn a_missing_model() {
    let router = Router::new().route("/v1/models", get(async || Json(list_of("x", &["qwen3:8b"])))).route(
        "/v1/chat/completions",
        post(async || (StatusCode::NOT_FOUND, r#"{"error": {"message": "model not found"}}"#)),
    );
    let examination = look(&at(router, "qwen3:9b").await, LONG).await;
    assert_eq!(codes(&examination), ["model_missing"]);
    let advice = examination.findings[0].advice.as_deref().unwrap();
    assert!(advice.contains("\"qwen3:8b\""), "{advice}");
}

#[tokio::test]
async fn a_server_that_hangs_costs_what_it_may() {
    let router = Router::new().fallback(async || pending::<&'static str>().await);
    let service = at(router, "m").await;
    let examination = look(&service, SHORT).await;
    assert_eq!(codes(&examination), ["timed_out"]);
    // The limit of the examination was reached, so a larger limit of the service would not help.
    let finding = &examination.findings[0];
    assert_eq!(
        finding.what,
        "no answer: timed out: the server accepted the request and sent nothing for 30ms"
    );
    assert!(finding.advice.as_deref().is_some_and(|advice| advice.contains("whether the model is loaded")));

    let endpoint = Endpoint { timeout: SHORT.call / 2, ..service.endpoint.clone() };
    let examination = look(&Service { endpoint, ..service }, SHORT).await;
    assert!(examination.findings[0].what.contains("raise timeoutMs of the service"), "{examination:?}");
}

#[tokio::test]
async fn rubbish() {
    let pages = Router::new().fallback(async || "<!doctype html><title>It works!</title>");
    assert_eq!(codes(&look(&at(pages, "m").await, LONG).await), ["not_an_answer"]);
    let other = Router::new().fallback(async || Json(json!({"status": ["ok", null, 7]})));
    assert_eq!(codes(&look(&at(other, "m").await, LONG).await), ["not_an_answer"]);
}

#[tokio::test]
async fn a_body_without_end() {
    let endless = async || -> Response {
        let pieces = stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 256 * 1024])));
        Body::from_stream(pieces).into_response()
    };
    assert_eq!(codes(&look(&at(Router::new().fallback(endless), "m").await, LONG).await), ["not_an_answer"]);
}

#[tokio::test]
async fn nobody_there() {
    // No other process can listen on this port while the socket exists.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let endpoint = Endpoint::new(format!("http://{}/v1", socket.local_addr().unwrap()), "m");
    let service = Service::new(ServiceId::new("s"), endpoint);
    let examination = look(&service, LONG).await;
    assert_eq!(codes(&examination), ["unreachable"]);
}

#[test]
fn servers_that_are_near() {
    let check = |base_url: &str, expect: bool| assert_eq!(is_near(base_url), expect, "{base_url}");
    check("http://127.0.0.1:11434/v1", true);
    check("http://localhost:1234/v1", true);
    check("http://192.168.1.7:8080/v1", true);
    check("http://[::1]:8080/v1", true);
    check("http://ollama:11434/v1", true);
    check("http://box.local/v1", true);
    check("https://api.openai.com/v1", false);
    check("http://8.8.8.8/v1", false);
    check("nonsense", false);
}

#[tokio::test]
async fn what_a_found_server_reports_about_its_model() {
    let of = async |router: Router| {
        let inquirer = Inquirer::new(LONG.question).unwrap();
        let base_url = at(router, "m").await.endpoint.base_url;
        let found = Found { server: ServerKind::Ollama, base_url, models: vec!["m".to_owned()] };
        let discovered = crate::look(&inquirer, &[found], LONG.question).await.pop().unwrap();
        let Service { context_window, capabilities, .. } = discovered.first;
        (context_window, capabilities.has(&Capability::VISION, Direction::Input))
    };
    let ollama = |parameters: &'static str, most: u64, loaded: Value| {
        let info = json!({"general.architecture": "a", "a.context_length": most});
        let shown =
            json!({"capabilities": ["completion", "vision"], "model_info": info, "parameters": parameters});
        chat(list_of("library", &["m"]))
            .route("/api/show", post(async move || Json(shown)))
            .route("/api/ps", get(async move || Json(loaded)))
    };
    let none = || json!({"models": []});
    assert_eq!(of(ollama("", 262_144, none())).await, (Some(4_096), true), "the default of Ollama");
    assert_eq!(of(ollama("", 2_048, none())).await, (Some(2_048), true), "no more than the model supports");
    assert_eq!(of(ollama("num_ctx 16384", 262_144, none())).await, (Some(16_384), true));
    let loaded = json!({"models": [{"model": "m", "context_length": 32_768}]});
    assert_eq!(of(ollama("", 262_144, loaded)).await, (Some(32_768), true));
    let properties = json!({"default_generation_settings": {"n_ctx": 8_192}});
    let llama_cpp = chat(list_of("llamacpp", &["m"])).route("/props", get(async move || Json(properties)));
    assert_eq!(of(llama_cpp).await, (Some(8_192), false));
    assert_eq!(of(chat(list_of("somebody", &["m"]))).await, (None, false));
}

#[test]
fn a_small_window_is_told_with_what_helps() {
    assert_eq!(crate::small_window(&ServiceId::new("s"), 8_192, None), None);
    let finding = crate::small_window(&ServiceId::new("s"), 4_096, Some(ServerKind::Ollama)).unwrap();
    assert!(finding.what.contains("4096") && finding.advice.unwrap().contains("OLLAMA_CONTEXT_LENGTH"));
}

#[tokio::test]
async fn a_glance_tells_a_larger_window_and_a_server_that_is_not_there() {
    let inquirer = Inquirer::new(LONG.question).unwrap();
    let loaded = json!({"models": [{"model": "m", "context_length": 16_384}]});
    let info = json!({"general.architecture": "a", "a.context_length": 262_144});
    let shown = json!({"capabilities": ["completion"], "model_info": info});
    let router = Router::new()
        .route("/v1/models", get(async || Json(list_of("library", &["m"]))))
        .route("/api/show", post(async move || Json(shown)))
        .route("/api/ps", get(async move || Json(loaded)));
    let there = at(router, "m").await;
    for (declared, larger) in [(None, None), (Some(8_192), None), (Some(4_096), Some(16_384))] {
        let service = Service { context_window: declared, ..there.clone() };
        let told = glance(&inquirer, &service, LONG.question).await;
        assert_eq!(told.unwrap(), larger, "{declared:?}");
    }

    // A server without a list of models answers too.
    let without = at(Router::new(), "m").await;
    assert_eq!(glance(&inquirer, &without, LONG.question).await.unwrap(), None);

    let silent = Router::new().route("/v1/models", get(async || pending::<&'static str>().await));
    let error = glance(&inquirer, &at(silent, "m").await, SHORT.question).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::TimedOut);

    // Nobody listens on the port, and the socket keeps it reserved.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let base_url = format!("http://{}/v1", socket.local_addr().unwrap());
    let gone = Service::new(ServiceId::new("s"), Endpoint::new(base_url, "m"));
    let error = glance(&inquirer, &gone, LONG.question).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Unreachable);
}
