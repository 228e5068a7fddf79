//! The line that says what a command is doing, and for how long.

use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::extract::Json;
use axum::routing::{get, post};
use polity_tests::Polity;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::plain;
use crate::support::app;
use crate::support::router::Served;

/// The test decides when the calls end, so `--timeout` allows far more than the test takes.
const DOCTOR: [&str; 5] = ["doctor", "--data", "data", "--timeout", "10m"];
/// Maximum time until a command has sent its first call.
const PATIENCE: Duration = Duration::from_secs(60);

/// Starts a model server that holds all answers until the sender of `held` is dropped. The server sends a message to
/// `calls` for each call.
fn holding(held: watch::Receiver<()>, calls: mpsc::Sender<()>) -> Served {
    let models = json!({"object": "list", "data": [{"id": "slow", "owned_by": "library"}]});
    let message = json!({"role": "assistant", "content": "OK"});
    let answer = json!({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]});
    let chat = move || async move {
        let mut held = held;
        calls.send(()).expect("the test receives");
        // An error means that the sender is dropped.
        let _ = held.changed().await;
        Json(answer)
    };
    let router = Router::new()
        .route("/v1/models", get(async move || Json(models)))
        .route("/v1/chat/completions", post(chat));
    Served::start(router)
}

#[test]
fn a_doctor_on_a_terminal_shows_which_service_it_asks_and_for_how_long() {
    let (release, held) = watch::channel(());
    let (call, calls) = mpsc::channel();
    let server = holding(held, call);
    let service = json!({"id": "one", "baseURL": server.base_url(), "model": "slow"});
    let polity = Polity::new(&json!({"services": [service]}), &app(&json!({})));

    // These two commands show nothing while they wait. They begin before the third one, so they wait longer.
    let in_json = polity.spawn_on_terminal(&[&DOCTOR[..], &["--json"]].concat());
    calls.recv_timeout(PATIENCE).expect("a call");
    let in_a_pipe = polity.spawn(&DOCTOR);
    calls.recv_timeout(PATIENCE).expect("a call");

    let on_terminal = polity.spawn_on_terminal(&DOCTOR);
    on_terminal.stdout_until("two seconds or more are shown", |shown| {
        // A busy machine can skip a second.
        (2..60).any(|seconds| shown.contains(&format!("asking service one … {seconds} s")))
    });
    // The rest of the report does not wait for the slow service.
    for section in ["data directory data", "sandbox of commands", "ports of this machine"] {
        on_terminal.stdout_wait(section);
        in_a_pipe.stdout_line(section);
    }
    drop(release);

    let shown = plain(&on_terminal.wait().stdout);
    assert!(shown.contains("answers a small call in "), "{shown}");
    assert!(!shown.contains("asking service"), "the line is still there: {shown}");
    let report = in_json.wait().stdout;
    let parsed = serde_json::from_str::<Value>(&report);
    assert!(parsed.is_ok(), "there is more than the report: {report}");
    let ended = in_a_pipe.wait();
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert!(printed.contains("answers a small call in "), "{printed}");
    assert!(!printed.contains("asking service") && !printed.contains('\u{1b}'), "{printed:?}");
}
