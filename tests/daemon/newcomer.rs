//! The first minute of a new user: nothing is configured, and a server like Ollama runs on this machine. Two commands
//! are enough to get an answer about a picture, and the user edits no file by hand.
//!
//! The server needs the port of Ollama, so each test runs in a network namespace of its own. On a machine that does not
//! allow this, the tests print that they were skipped.

use std::fs;
use std::io::Write;

use axum::Router;
use axum::extract::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use polity_tests::{Output, Polity, in_own_network};
use serde_json::{Value, json};

use crate::support::files::PICTURE;
use crate::support::router::Served;

/// The port on which discovery looks for Ollama.
const OLLAMA: u16 = 11_434;
/// The port on which discovery looks for LM Studio.
const LM_STUDIO: u16 = 1_234;
const MODEL: &str = "qwen3-vl:8b";

/// Starts a server that answers like Ollama and has one model.
fn ollama(capabilities: &'static [&'static str], window: u64) -> Served {
    let models = json!({"object": "list", "data": [{"id": MODEL, "owned_by": "library"}]});
    let info = json!({"general.architecture": "a", "a.context_length": 262_144});
    let parameters = format!("num_ctx {window}");
    let shown = json!({"capabilities": capabilities, "model_info": info, "parameters": parameters});
    let calls_tools = capabilities.contains(&"tools");
    let router = Router::new()
        .route("/v1/models", get(async move || Json(models)))
        .route("/api/show", post(async move || Json(shown)))
        .route("/api/ps", get(async || Json(json!({"models": []}))))
        .route("/v1/chat/completions", post(async move |Json(asked): Json<Value>| chat(&asked, calls_tools)));
    Served::start_at(OLLAMA, router)
}

/// Starts a server that answers like LM Studio and has one model, which can see and calls tools.
fn lm_studio() -> Served {
    let models = json!({"object": "list", "data": [{"id": "eyes", "owned_by": "organization_owner"}]});
    let kind = json!({
        "id": "eyes",
        "type": "vlm",
        "state": "loaded",
        "capabilities": ["tool_use"],
        "loaded_context_length": 16_384,
    });
    let kinds = json!({ "data": [kind] });
    let router = Router::new()
        .route("/v1/models", get(async move || Json(models)))
        .route("/api/v0/models", get(async move || Json(kinds)))
        .route("/v1/chat/completions", post(async move |Json(asked): Json<Value>| chat(&asked, true)));
    Served::start_at(LM_STUDIO, router)
}

fn chat(asked: &Value, calls_tools: bool) -> Response {
    if !calls_tools && asked.get("tools").is_some() {
        let error = json!({"error": {"message": format!("{MODEL} does not support tools")}});
        return (StatusCode::BAD_REQUEST, Json(error)).into_response();
    }
    let sees = asked["messages"].to_string().contains("data:image/png;base64,");
    let text = if sees { "I see a picture." } else { "I see no picture." };
    let message = json!({"role": "assistant", "content": text});
    Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})).into_response()
}

/// Returns a home in which nothing is configured.
fn newcomer() -> Polity {
    let mut polity = Polity::new(&json!({}), &json!({}));
    fs::remove_dir_all(polity.config_dir()).expect("a directory");
    polity.set_env("LANG", "en_US.UTF-8");
    polity
}

/// Runs `polity` without arguments on a terminal. `lines` is what the person types.
fn alone(polity: &Polity, lines: &str) -> Output {
    let (running, mut keyboard) = polity.spawn_with_keyboard(&[]);
    keyboard.write_all(lines.as_bytes()).expect("a keyboard");
    running.wait()
}

/// Returns the content of a file in the user's configuration directory; nothing if the file does not exist.
fn configured(polity: &Polity, name: &str) -> Option<String> {
    fs::read_to_string(polity.home().join(".config/polity").join(name)).ok()
}

/// Returns the origin of the services, the id of the default service, and the ids of all services.
fn services_in_force(polity: &Polity) -> Value {
    let shown = polity.run(&["config", "show"]).expect_code(0).stdout;
    let shown: Value = serde_json::from_str(&shown).expect("JSON");
    let services = shown["services"].as_array().expect("services");
    let ids: Vec<&Value> = services.iter().map(|service| &service["id"]).collect();
    json!({"origin": shown["origin"], "default": shown["defaultService"], "ids": ids})
}

#[test]
fn from_polity_to_an_answer_about_a_picture_in_two_commands() {
    in_own_network("newcomer::inside_a_model_that_sees");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_a_model_that_sees() {
    let _server = ollama(&["completion", "vision", "tools"], 32_768);
    let polity = newcomer();
    let first = alone(&polity, "\n\n\n").expect_code(0);
    for words in [
        "Found Ollama at http://127.0.0.1:11434/v1",
        "see pictures",
        "a context window of 32768 tokens",
        "This society can:",
        "polity run --attach picture.png",
    ] {
        assert!(first.stdout.contains(words), "{words:?} is not in {}", first.stdout);
    }
    let services: Value =
        serde_json::from_str(&configured(&polity, "llmservices.json").expect("a file")).expect("JSON");
    assert_eq!(services["services"][0]["capabilities"]["input"], json!(["text", "vision"]));
    assert_eq!(services["services"][0]["contextWindow"], 32_768);
    assert!(configured(&polity, "app.json").expect("a file").contains("\"language\": \"en\""));

    fs::write(polity.home().join("picture.png"), PICTURE).expect("a file");
    let second = polity.run(&["run", "--attach", "picture.png", "What is in this picture?"]).expect_code(0);
    assert_eq!(second.stdout, "I see a picture.\n", "{}", second.stderr);
}

#[test]
fn the_models_of_all_servers_are_named_written_and_used() {
    in_own_network("newcomer::inside_two_servers");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_two_servers() {
    let _ollama = ollama(&["completion", "tools"], 32_768);
    let _lm_studio = lm_studio();
    let expect = |origin| json!({"origin": origin, "default": "local", "ids": ["local", "lm-studio"]});
    // No file declares a service here. The services are the same as those that the dialogue writes below.
    let found = expect("the model servers found on this machine: Ollama, LM Studio");
    assert_eq!(services_in_force(&newcomer()), found);

    let polity = newcomer();
    let first = alone(&polity, "\n\n\n").expect_code(0);
    let said = first.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    for words in [
        "Found Ollama at http://127.0.0.1:11434/v1: - local (qwen3-vl:8b): read and write text, use tools",
        "Found LM Studio at http://127.0.0.1:1234/v1: - lm-studio (eyes): read and write text, see pictures,",
        "a context window of 16384 tokens",
        "This society can: read and write text, see pictures, use tools",
        "It cannot: hear sound, watch video.",
        "polity run --attach picture.png",
    ] {
        assert!(said.contains(words), "{words:?} is not in {said}");
    }
    assert_eq!(services_in_force(&polity), expect("the services of llmservices.json"));
    let services: Value =
        serde_json::from_str(&configured(&polity, "llmservices.json").expect("a file")).expect("JSON");
    assert_eq!(services["services"][0]["baseURL"], "http://127.0.0.1:11434/v1");
    assert_eq!(services["services"][1]["baseURL"], "http://127.0.0.1:1234/v1");
    assert_eq!(services["services"][1]["capabilities"]["input"], json!(["text", "vision"]));

    fs::write(polity.home().join("picture.png"), PICTURE).expect("a file");
    let answered = polity.run(&["run", "--attach", "picture.png", "look"]).expect_code(0);
    assert!(!answered.stderr.contains("No service can read"), "{}", answered.stderr);
}

#[test]
fn who_says_no_gets_no_file_and_the_same_capabilities() {
    in_own_network("newcomer::inside_nothing_is_written");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_nothing_is_written() {
    let _server = ollama(&["completion", "vision", "tools"], 32_768);
    let polity = newcomer();
    alone(&polity, "n\nn\n\n").expect_code(0);
    assert_eq!(configured(&polity, "llmservices.json"), None);
    let refused = configured(&polity, "app.json").expect("a file");
    assert!(refused.contains("\"language\": \"zh\""), "{refused}");
    // The person has answered the question about the language, so it does not come again.
    let again = alone(&polity, "n\n\n").expect_code(0).stdout;
    assert!(again.contains("Write this to") && !again.contains("Use English"), "{again}");
    assert_eq!(configured(&polity, "app.json"), Some(refused));
    // No file declares the server. polity has found it, and uses it with the capabilities that the server itself
    // reports.
    fs::write(polity.home().join("picture.png"), PICTURE).expect("a file");
    let answered = polity.run(&["run", "--attach", "picture.png", "看"]).expect_code(0);
    assert_eq!(answered.stdout, "I see a picture.\n", "{}", answered.stderr);

    // polity asks all questions before it changes a file. So Ctrl-C between two questions leaves all files unchanged.
    // `polity run` has written the default files to the home of a new user, but these are no answers.
    let polity = newcomer();
    polity.run(&["run", "看"]).expect_code(0);
    let before = configured(&polity, "app.json");
    let (running, mut keyboard) = polity.spawn_with_keyboard(&[]);
    running.stdout_wait("Write this to");
    keyboard.write_all(b"y\n").expect("a keyboard");
    // The first question was answered with yes, but no file is written yet, because the next question about `app.json`
    // is still open.
    running.stdout_wait("Use English");
    running.interrupt();
    assert_eq!(running.wait().code, Some(130));
    assert_eq!(configured(&polity, "app.json"), before);
}

#[test]
fn a_model_without_tools_and_a_small_window_are_told_at_once() {
    in_own_network("newcomer::inside_a_poor_model");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_a_poor_model() {
    let server = ollama(&["completion"], 32_768);
    let polity = newcomer();
    let first = alone(&polity, "n\nn\n\n").expect_code(0);
    let mend = "Set model in llmservices.json to a model that calls tools";
    assert!(first.stdout.contains(mend), "{}", first.stdout);
    for needs_tools in ["three experts", "--workspace", "--attach picture.png"] {
        assert!(!first.stdout.contains(needs_tools), "{needs_tools:?} is in {}", first.stdout);
    }
    assert_eq!(first.stdout.matches("  polity run ").count(), 3, "{}", first.stdout);
    fs::write(polity.home().join("picture.png"), PICTURE).expect("a file");
    let answered = polity.run(&["run", "--attach", "picture.png", "look"]).expect_code(0);
    assert!(
        answered.stderr.contains("picture.png") && answered.stderr.contains("vision"),
        "{}",
        answered.stderr
    );
    assert_eq!(answered.stdout, "I see no picture.\n", "no tools are sent to a model that takes none");
    drop(server);

    let _server = ollama(&["completion", "vision", "tools"], 4_096);
    let first = alone(&polity, "n\nn\n\n").expect_code(0);
    assert!(first.stdout.contains("start Ollama with OLLAMA_CONTEXT_LENGTH=16384"), "{}", first.stdout);
    let told = polity.run(&["run", "hello"]);
    assert!(told.stderr.contains("OLLAMA_CONTEXT_LENGTH=16384"), "{}", told.stderr);
}

#[test]
fn a_server_that_says_nothing_is_named() {
    in_own_network("newcomer::inside_a_silent_server");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_a_silent_server() {
    // The port accepts connections, because the system does so, but nobody reads from them.
    let _silent = std::net::TcpListener::bind(("127.0.0.1", OLLAMA)).expect("the port of Ollama");
    let first = alone(&newcomer(), "n\n\n").expect_code(0).stdout;
    assert!(first.contains("Port 11434 is open, but its server has not answered."), "{first}");
    assert!(first.contains("Start one of these servers, and run polity again."), "{first}");
}

#[test]
fn a_declared_server_that_has_ended_is_told_before_the_first_prompt() {
    in_own_network("newcomer::inside_a_server_that_has_ended");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_a_server_that_has_ended() {
    let server = ollama(&["completion", "tools"], 32_768);
    let polity = newcomer();
    alone(&polity, "\n\n\n").expect_code(0);
    let answers = alone(&polity, "\n").expect_code(0).stdout;
    assert!(answers.contains("This society can:") && !answers.contains("does not answer"), "{answers}");
    drop(server);
    let ended = alone(&polity, "\n").expect_code(0).stdout;
    for words in ["local does not answer at http://127.0.0.1:11434/v1: start Ollama.", "  polity doctor"] {
        assert!(ended.contains(words), "{words:?} is not in {ended}");
    }
    for words in ["This society can:", "  polity run"] {
        assert!(!ended.contains(words), "{words:?} is in {ended}");
    }
}

#[test]
fn a_larger_window_is_found_after_a_new_start_of_the_server() {
    in_own_network("newcomer::inside_a_larger_window");
}

#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_a_larger_window() {
    let window = |polity: &Polity| {
        let text = configured(polity, "llmservices.json").expect("a file");
        serde_json::from_str::<Value>(&text).expect("JSON")["services"][0]["contextWindow"].clone()
    };
    let server = ollama(&["completion", "tools"], 4_096);
    let polity = newcomer();
    let first = alone(&polity, "\n\n\n").expect_code(0).stdout;
    assert!(
        first.contains("OLLAMA_CONTEXT_LENGTH=16384") && first.contains("  polity doctor --fix"),
        "{first}"
    );
    assert_eq!(window(&polity), 4_096);
    drop(server);

    let _server = ollama(&["completion", "tools"], 16_384);
    let again = alone(&polity, "\n").expect_code(0).stdout;
    assert!(again.contains("The server of local now gives a context window of 16384 tokens"), "{again}");
    assert!(!again.contains("OLLAMA_CONTEXT_LENGTH"), "{again}");
    polity.run(&["doctor", "--fix"]).expect_code(0);
    assert_eq!(window(&polity), 16_384);
    let mended = alone(&polity, "\n").expect_code(0).stdout;
    assert!(!mended.contains("now gives") && !mended.contains("warning"), "{mended}");
}
