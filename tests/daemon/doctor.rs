//! `polity doctor` reports what is configured and what really exists. With `--fix`, it corrects what is certainly
//! wrong.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use axum::Router;
use axum::extract::Json;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use polity_tests::{Answer, Output, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::router::Served;
use crate::support::{app, home, run};

const KEY: &str = "sk-very-secret-key";

fn ollama() -> Router {
    let models = json!({"object": "list", "data": [{"id": "qwen3-vl:8b", "owned_by": "library"}]});
    let loaded = json!({"models": [{"model": "qwen3-vl:8b", "context_length": 32_768}]});
    Router::new()
        .route("/v1/models", get(async move || Json(models)))
        .route("/api/ps", get(async move || Json(loaded)))
        .route("/api/show", post(show))
        .route("/v1/chat/completions", post(chat))
}

async fn show(Json(asked): Json<Value>) -> Response {
    if asked["model"] != "qwen3-vl:8b" {
        return (StatusCode::NOT_FOUND, Json(json!({"error": "model not found"}))).into_response();
    }
    let info = json!({"general.architecture": "qwen3vl", "qwen3vl.context_length": 262_144});
    Json(json!({"capabilities": ["completion", "vision", "tools"], "model_info": info})).into_response()
}

async fn chat(headers: HeaderMap, Json(asked): Json<Value>) -> Response {
    let key = headers.get("authorization").and_then(|key| key.to_str().ok());
    if key.is_some_and(|key| key.contains("wrong")) {
        let error = json!({"error": {"message": format!("bad key: {}", key.unwrap_or_default())}});
        return (StatusCode::UNAUTHORIZED, Json(error)).into_response();
    }
    if asked["model"] != "qwen3-vl:8b" {
        let error = json!({"error": {"message": format!("model {} not found", asked["model"])}});
        return (StatusCode::NOT_FOUND, Json(error)).into_response();
    }
    let message = json!({"role": "assistant", "content": "OK"});
    Json(json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})).into_response()
}

/// Creates a home with a private data directory, and with this text as its `llmservices.json`.
fn home_of(services: &str) -> Polity {
    let polity = Polity::new(&json!({}), &app(&json!({})));
    polity.write_config("llmservices.json", services);
    fs::set_permissions(polity.data_dir(), fs::Permissions::from_mode(0o700)).expect("permissions");
    polity
}

fn doctor(polity: &Polity, arguments: &[&str]) -> Output {
    let ended = polity.run(&[&["doctor", "--data", "data"], arguments].concat());
    let shown = format!("{}{}", ended.stdout, ended.stderr);
    assert!(!shown.contains("very-secret") && !shown.contains("panicked"), "{shown}");
    assert!(!shown.contains('\u{1b}'), "there are colours in a pipe: {shown}");
    ended
}

/// Makes a report comparable between machines and runs: replaces times, the free space and the address of the server,
/// leaves out what the machine decides, and sorts the sections, which are printed as they become known.
fn fixed(report: &str, address: SocketAddr) -> String {
    let mut sections: Vec<Vec<String>> = Vec::new();
    for line in report.lines() {
        if !line.starts_with(' ') {
            sections.push(Vec::new());
        }
        let line = match (line.split_once(" small call in "), line.split_once("free space: ")) {
            (Some((before, _)), _) => format!("{before} small call in …"),
            (_, Some((before, _))) => format!("{before}free space: …"),
            (None, None) => line.replace(&address.to_string(), "SERVER"),
        };
        sections.last_mut().expect("a heading").push(line);
    }
    let differs = |section: &[String]| {
        ["ports", "sandbox", "problems: "].iter().any(|heading| section[0].starts_with(heading))
    };
    sections.retain(|section| !differs(section));
    sections.sort();
    sections.concat().join("\n")
}

/// Returns the findings of a JSON report as `about subject: severity code`.
fn findings(ended: &Output) -> Vec<String> {
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    let sections = report["sections"].as_array().expect("sections").clone();
    let of_section = |section: &Value| {
        let about =
            [&section["about"], &section["subject"]].map(|text| text.as_str().unwrap_or_default().to_owned());
        let findings = section["findings"].as_array().expect("findings").clone();
        let told = findings.into_iter().map(move |finding| {
            assert!(finding["severity"] == "ok" || finding["advice"].is_string(), "{finding}");
            let [severity, code] =
                ["severity", "code"].map(|name| finding[name].as_str().expect("a word").to_owned());
            format!("{} {}: {severity} {code}", about[0], about[1])
        });
        told.collect::<Vec<_>>()
    };
    sections.iter().flat_map(of_section).collect()
}

#[track_caller]
fn assert_found(ended: &Output, expected: &[&str]) {
    let found = findings(ended);
    for expected in expected {
        assert!(found.iter().any(|found| found == expected), "{expected:?} is not in {found:#?}");
    }
}

fn mode_of(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn what_is_wrong_is_told_with_what_to_do() {
    let server = Served::start(ollama());
    let polity = home_of(&format!(
        r#"{{"services": [
  {{"id": "local", "baseURL": "{0}", "model": "qwen3-vl:8b", "contextWindow": 65536,
    "capabilities": {{"input": ["text", "audio"], "output": ["text", "tool_calling"]}}}},
  {{"id": "typo", "baseURL": "{0}", "model": "qwen3-v1:8b", "fallback": "unset", "capabilities": {{"input": ["text", "image"]}}}},
  {{"id": "unset", "baseURL": "{0}", "model": "qwen3-vl:8b", "apiKey": "${{NOT_SET}}", "fallback": "typo"}},
  {{"id": "wrong", "baseURL": "{0}", "model": "qwen3-vl:8b", "apiKey": "wrong-{KEY}", "fallback": "nowhere"}}
]}}"#,
        server.base_url()
    ));
    let ended = doctor(&polity, &[]).expect_code(1);
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.starts_with("configuration ./config\n"), "{}", ended.stdout);
    let expected = include_str!("doctor/report.txt");
    assert_eq!(fixed(&ended.stdout, server.address), expected.trim_end());
    assert!(ended.stdout.trim_end().ends_with(char::is_numeric), "{}", ended.stdout);
    assert!(ended.stdout.contains("\nproblems: 4, "), "{}", ended.stdout);
    assert_found(
        &doctor(&polity, &["--json"]).expect_code(1),
        &["service local: warning window_too_large", "service typo: problem model_missing"],
    );
}

/// The level depends on the machine. So this test accepts every level, and prints the level that the report names.
#[test]
fn the_report_names_the_level_of_the_sandbox_and_what_would_raise_it() {
    let polity = home_of(r#"{"services": []}"#);
    let told = doctor(&polity, &["--offline"]).stdout;
    let section =
        told.split_once("\nsandbox of commands\n").unwrap_or_else(|| panic!("no section: {told}")).1;
    let first = section.lines().next().expect("a finding");
    let named = |level: &&str| first.contains(&format!("level `{level}`"));
    let levels: Vec<&str> = ["full", "partial", "none"].into_iter().filter(named).collect();
    let [level] = &levels[..] else { panic!("{first} names {levels:?}") };
    println!("this machine has the level {level}");
    // Skip two lines: the finding about the level, and the advice of this finding, which only refers to the advice of
    // the findings below.
    let findings = section.lines().take_while(|line| line.starts_with(' '));
    let advises = findings.skip(2).any(|line| line.trim_start().starts_with("→ "));
    assert!(*level == "full" || advises, "nothing says how to raise the level: {section}");

    let as_json = doctor(&polity, &["--offline", "--json"]);
    let severity = if *level == "full" { "ok" } else { "hint" };
    assert_found(&as_json, &[&format!("sandbox of commands: {severity} sandbox_level")]);
    assert!(as_json.stdout.contains(&format!("level `{level}`")), "{}", as_json.stdout);
}

#[test]
fn mending_changes_what_the_server_tells_and_nothing_else() {
    let server = Served::start(ollama());
    let text = |capabilities: &str, window: &str| {
        format!(
            "// mine\n{{\n  \"services\": [\n    {{\n      \"id\": \"local\", // at home\n      \"baseURL\": \"{}\",\n      \
             \"model\": \"qwen3-vl:8b\",\n      \"apiKey\": \"{KEY}\",\n      \"capabilities\": {{\"input\": {capabilities}, \
             \"output\": [\"text\", \"tool_calling\"]}}{window} // it sees\n    }}\n  ]\n}}\n",
            server.base_url()
        )
    };
    let polity = home_of(&text(r#"["text", "audio"]"#, ""));
    let path = polity.config_dir().join("llmservices.json");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("permissions");
    fs::set_permissions(polity.data_dir(), fs::Permissions::from_mode(0o755)).expect("permissions");
    fs::write(polity.data_dir().join("token"), "t").expect("a file");
    fs::set_permissions(polity.data_dir().join("token"), fs::Permissions::from_mode(0o644))
        .expect("permissions");

    // Without `--fix`, nothing changes.
    doctor(&polity, &[]).expect_code(0);
    assert_eq!(fs::read_to_string(&path).expect("a file"), text(r#"["text", "audio"]"#, ""));
    assert_eq!(mode_of(&polity.data_dir()), 0o755);

    let ended = doctor(&polity, &["--fix"]).expect_code(0);
    let diff = "fixed ./config/llmservices.json\n  - local: capabilities.input: [\"text\", \"audio\"]\n  \
                + local: capabilities.input: [\"text\", \"vision\"]\n  + local: contextWindow: 32768\n";
    assert!(ended.stdout.contains(diff), "{}", ended.stdout);
    let mended = fs::read_to_string(&path).expect("a file");
    let comma_first = text(r#"["text", "vision"]"#, ",")
        .replace(" // it sees\n", " // it sees\n      \"contextWindow\": 32768\n");
    assert_eq!(mended, comma_first);
    assert_eq!(mode_of(&path), 0o640);
    assert_eq!((mode_of(&polity.data_dir()), mode_of(&polity.data_dir().join("token"))), (0o700, 0o600));

    let again = doctor(&polity, &["--fix"]).expect_code(0);
    assert!(again.stdout.contains("nothing to fix\nproblems: 0, warnings: 0, hints: "), "{}", again.stdout);
    assert_eq!(fs::read_to_string(&path).expect("a file"), mended);
    polity.run(&["config", "check"]).expect_code(0);
}

/// For example, `polity doctor --fix | head -1`.
#[test]
fn what_can_be_fixed_is_fixed_although_the_reader_of_the_report_has_gone() {
    let server = Served::start(ollama());
    let service = json!({"id": "local", "baseURL": server.base_url(), "model": "qwen3-vl:8b"});
    let polity = home_of(&json!({"services": [service]}).to_string());
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    polity.spawn_into(&["doctor", "--data", "data", "--fix"], writer).wait().expect_code(130);
    let written = fs::read_to_string(polity.config_dir().join("llmservices.json")).expect("a file");
    assert!(written.contains("\"contextWindow\": 32768"), "{written}");
}

/// The corrected text is first written beside the file, into one whose name is longer. Here, it is too long.
#[test]
fn a_correction_that_cannot_be_written_is_told_in_a_section_of_its_own() {
    let server = Served::start(ollama());
    let service = json!({"id": "local", "baseURL": server.base_url(), "model": "qwen3-vl:8b"});
    let before = json!({"services": [service]}).to_string();
    let polity = home_of(&before);
    let (link, file) =
        (polity.config_dir().join("llmservices.json"), polity.config_dir().join("x".repeat(255)));
    fs::rename(&link, &file).expect("a file");
    std::os::unix::fs::symlink(&file, &link).expect("a link");
    let told = doctor(&polity, &["--fix"]).stdout;
    for words in ["mending llmservices.json", "llmservices.json cannot be corrected by polity: "] {
        assert!(told.contains(words), "{words:?} is not in {told}");
    }
    assert_eq!(fs::read_to_string(&file).expect("a file"), before);
}

/// The person has declared the small window of the server, and has then started the server again with a larger one.
#[test]
fn a_server_with_a_larger_window_than_before_is_told_and_written() {
    let server = Served::start(ollama());
    let declaring = |window: u64| {
        let output = json!(["text", "tool_calling"]);
        let capabilities = json!({"input": ["text", "vision"], "output": output});
        let service = json!({"id": "local", "baseURL": server.base_url(), "model": "qwen3-vl:8b",
            "contextWindow": window, "capabilities": capabilities});
        json!({"services": [service]}).to_string()
    };
    let polity = home_of(&declaring(4_096));
    let told = doctor(&polity, &[]).expect_code(0).stdout;
    let advice = "contextWindow is 4096, but Ollama now gives the model 32768 tokens\n           → set contextWindow to \
                  32768, or run `polity doctor --data data --fix`\n";
    assert!(told.contains(advice) && !told.contains("OLLAMA_CONTEXT_LENGTH"), "{told}");
    let fixed = doctor(&polity, &["--fix"]).expect_code(0).stdout;
    assert!(fixed.contains("  - local: contextWindow: 4096\n  + local: contextWindow: 32768\n"), "{fixed}");
    let written = fs::read_to_string(polity.config_dir().join("llmservices.json")).expect("a file");
    assert_eq!(written, declaring(32_768));
    assert!(doctor(&polity, &["--fix"]).expect_code(0).stdout.contains("nothing to fix"));
}

#[test]
fn a_data_directory_in_use_and_one_that_is_damaged() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    run(&polity, &["what?"]).expect_code(0);
    assert_found(
        &doctor(&polity, &["--json", "--offline"]).expect_code(0),
        &["service one: ok not_asked", "database data/polity.db: ok database", "daemon : ok no_daemon"],
    );

    // From here on, no services are configured, so the doctor contacts only the daemon.
    polity.write_config("llmservices.json", "{\"services\": []}");
    // The test holds the lock of the data directory, as a process with a running society does.
    let lock = fs::File::open(polity.data_dir().join("polity.lock")).expect("a lock");
    lock.lock().expect("nobody has it");
    assert_found(&doctor(&polity, &["--json", "--offline"]).expect_code(0), &["daemon : ok in_use"]);
    // Write a `daemon.json` as a daemon that no longer runs may have left it.
    fs::write(polity.data_dir().join("daemon.json"), r#"{"url": "http://127.0.0.1:1", "pid": 7}"#)
        .expect("a file");
    assert_found(&doctor(&polity, &["--json"]), &["daemon : problem no_token"]);
    fs::write(polity.data_dir().join("token"), "t").expect("a file");
    assert_found(&doctor(&polity, &["--json"]).expect_code(1), &["daemon : problem daemon_silent"]);
    drop(lock);
    assert_found(&doctor(&polity, &["--json", "--offline"]), &["daemon : ok no_daemon"]);

    fs::write(polity.data_dir().join("polity.db"), vec![7; 8192]).expect("a file");
    let damaged = doctor(&polity, &["--json", "--offline"]).expect_code(1);
    assert_found(&damaged, &["database data/polity.db: problem database"]);
}

#[test]
fn a_damaged_page_of_the_database_is_told_with_the_way_out() {
    const PAGE: usize = 4096;
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    run(&polity, &["what?"]).expect_code(0);
    let file = polity.data_dir().join("polity.db");
    let whole = fs::read(&file).expect("a database");
    // The first tree, the table of the migrations, is in page 2, and its index is in page 3.
    for page in [2, 3] {
        let mut damaged = whole.clone();
        damaged[(page - 1) * PAGE] ^= 0xff;
        fs::write(&file, damaged).expect("a database");
        let told = doctor(&polity, &["--offline"]).expect_code(1).stdout;
        for words in ["polity.db is damaged: ", "restore a backup", "polity db check"] {
            assert!(told.contains(words), "page {page}: {words:?} is not in {told}");
        }
    }
}

#[test]
fn nothing_configured_and_nothing_that_can_be_read() {
    let polity = home_of("{\"services\": []}");
    let ended = doctor(&polity, &["--json"]).expect_code(0);
    assert_found(
        &ended,
        &[
            "configuration ./config: hint no_model",
            "service rehearsal-text: ok built_in",
            "data directory data: ok private",
            "data directory data: ok writable",
        ],
    );
    polity.write_config("llmservices.json", "{");
    assert_found(
        &doctor(&polity, &["--json"]).expect_code(1),
        &["configuration ./config: problem configuration_unusable", "daemon : ok no_daemon"],
    );
    assert_found(
        &doctor(&polity, &["--json", "--config", "gone"]).expect_code(1),
        &["configuration : problem no_configuration", "daemon : ok no_daemon"],
    );
    let absent = polity.run(&["doctor", "--json", "--offline", "--data", "absent", "--config", "config"]);
    assert_found(&absent, &["data directory absent: ok no_data"]);
    assert!(!polity.home().join("absent").exists());
}

/// The level depends on the machine. On every machine, the report names the level and says who enforces the limits of
/// commands, and the command succeeds.
#[test]
fn the_level_of_the_sandbox_is_told() {
    let polity = home_of("{\"services\": []}");
    let ended = doctor(&polity, &["--offline"]).expect_code(0);
    let (_, section) =
        ended.stdout.split_once("\nsandbox of commands\n").expect("a section about the sandbox");
    let first = section.lines().next().expect("a finding");
    let levels = [("full", "ok"), ("partial", "hint"), ("none", "hint")];
    let told = levels.iter().find(|(level, _)| first.contains(&format!("`{level}`")));
    let (level, severity) = told.unwrap_or_else(|| panic!("no level in {first:?}"));
    assert_eq!(first.split_whitespace().next(), Some(*severity), "{first:?}");
    // If the level is below `full`, it can be raised, so the report must contain advice. At the level `full`, a person
    // needs to know only who enforces the limits.
    let advice = section.lines().take_while(|line| line.starts_with("  ")).any(|line| line.contains("→"));
    assert!(advice || *level == "full", "{section}");
    let expect = format!("sandbox of commands: {severity} sandbox_level");
    let found = findings(&doctor(&polity, &["--offline", "--json"]).expect_code(0));
    let of_sandbox: Vec<&String> =
        found.iter().filter(|finding| finding.starts_with("sandbox of commands: ")).collect();
    assert_eq!(of_sandbox.first(), Some(&&expect), "{found:#?}");
    assert!(of_sandbox.len() > 1, "nothing says who enforces the limits: {found:#?}");
}
