//! The line that says what a command is doing, and for how long.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener};
use std::sync::mpsc;
use std::time::Duration;

use axum::Router;
use axum::extract::Json;
use axum::routing::{get, post};
use polity_tests::{Answer, Polity, ScriptedServer, in_own_network};
use serde_json::{Value, json};
use tokio::sync::watch;

use super::{CTRL_C, ENTER, READS, plain};
use crate::cli::{rows, serve};
use crate::support::hiring::Gate;
use crate::support::router::Served;
use crate::support::{app, home, run};

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
    let one = json!({"id": "one", "baseURL": server.base_url(), "model": "slow"});
    let two = json!({"id": "two", "baseURL": "rehearsal:", "model": "rehearsal-text"});
    let polity = Polity::new(&json!({"services": [one, two]}), &app(&json!({})));

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
    for section in ["service two", "data directory data", "sandbox of commands", "ports of this machine"] {
        on_terminal.stdout_wait(section);
        in_a_pipe.stdout_line(section);
    }
    drop(release);

    let shown = plain(&on_terminal.wait().stdout);
    assert!(shown.contains("answers a small call in "), "{shown}");
    assert!(!shown.contains("asking service"), "the line is still there: {shown}");
    let report = in_json.wait().stdout;
    let parsed = serde_json::from_str::<Value>(&report);
    let parsed = parsed.unwrap_or_else(|_| panic!("there is more than the report: {report}"));
    let sections = parsed["sections"].as_array().expect("sections").iter();
    let of_services = sections.filter(|section| section["about"] == "service");
    let services: Vec<&Value> = of_services.map(|section| &section["subject"]).collect();
    assert_eq!(services, ["one", "two"], "the services are not in the order of their file");
    let ended = in_a_pipe.wait();
    let printed = format!("{}{}", ended.stdout, ended.stderr);
    assert!(printed.contains("answers a small call in "), "{printed}");
    assert!(!printed.contains("asking service") && !printed.contains('\u{1b}'), "{printed:?}");
}

/// The port at which polity looks for Ollama.
const OLLAMA: u16 = 11_434;
const SEARCHING: &str = "searching for model servers on this machine";

/// Number of searches of which one must show its line. A search lasts two seconds, and the line appears after one. If the
/// machine stalls for a second, a search can end before its line is drawn.
const SEARCHES: usize = 30;

/// Returns whether the line of a command has shown one second or more.
fn has_shown(written: &str, doing: &str) -> bool {
    (1..60).any(|seconds| written.contains(&format!("{doing} … {seconds} s")))
}

/// Repeats a command until its lines have shown one second or more. `command` runs it, and returns what it has written.
#[track_caller]
fn repeat_until_shown(lines: &[&str], command: impl Fn() -> String) {
    let mut written = String::new();
    for _ in 0..SEARCHES {
        written = command();
        if lines.iter().all(|doing| has_shown(&written, doing)) {
            return;
        }
    }
    panic!("{lines:?} are not shown: {written}");
}

/// Returns a home without a configuration.
fn newcomer() -> Polity {
    let mut polity = Polity::new(&json!({}), &json!({}));
    fs::remove_dir_all(polity.config_dir()).expect("a directory");
    polity.set_env("LANG", "en_US.UTF-8");
    polity
}

#[test]
fn whoever_waits_for_the_search_for_servers_sees_for_how_long() {
    in_own_network("cli::terminals::elapsed::inside_a_silent_server");
}

/// A program accepts connections at the port of Ollama, and says nothing. So each search takes its whole time.
#[test]
#[ignore = "runs in a network namespace of its own"]
fn inside_a_silent_server() {
    let _silent = TcpListener::bind((Ipv4Addr::LOCALHOST, OLLAMA)).expect("a port");
    let polity = newcomer();
    for arguments in [
        &["run", "--data", "data", "hello"][..],
        // There is no daemon, so this command reads the data directory itself.
        &["tasks", "--data", "data"],
        &["config", "check", "--data", "data"],
        &["config", "show", "--data", "data"],
    ] {
        repeat_until_shown(&[SEARCHING], || {
            let written = polity.spawn_on_terminal(arguments).wait().expect_code(0).stdout;
            let shown = plain(&written);
            assert!(!shown.contains(SEARCHING), "{arguments:?}: the line is still there: {shown}");
            written
        });
    }
    repeat_until_shown(&[SEARCHING], || {
        let serving = polity.spawn_on_terminal(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
        serving.stdout_wait("ready: http://");
        serving.terminate();
        let written = serving.wait().expect_code(0).stdout;
        let shown = plain(&written);
        assert!(!shown.contains(SEARCHING), "the line is still there: {shown}");
        written
    });

    // A daemon that `polity` starts searches, too. Meanwhile, `polity` waits for it.
    repeat_until_shown(&[SEARCHING, "starting the daemon"], || {
        let polity = newcomer();
        let (alone, mut keyboard) = polity.spawn_in_session_at(1_000, &[]);
        let mut press = |keys: &str| keyboard.write_all(keys.as_bytes()).expect("a keyboard");
        alone.stdout_wait("[Y/n] ");
        press(ENTER);
        alone.stdout_wait("end: ");
        press("1\r");
        alone.stdout_wait(READS);
        press(CTRL_C);
        let written = alone.wait().expect_code(0).stdout;
        let shown = plain(&written);
        assert!(!shown.contains("starting the daemon"), "the line is still there: {shown}");
        written
    });
}

/// The daemon stands still until the test has seen the line.
#[test]
fn whoever_waits_for_a_copy_of_a_task_sees_for_how_long() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    run(&polity, &["how much is it?"]).expect_code(0);
    let task = rows(&polity, &["tasks"])[0]["id"].as_str().expect("an id").to_owned();
    let turn = rows(&polity, &["agent", "root", "--conversation"])[0]["entries"][0]["turn"].to_string();
    let daemon = serve(&polity);
    daemon.freeze();
    let copying = polity.spawn_on_terminal(&["fork", &task, "--turn", &turn, "--data", "data"]);
    copying.stdout_until("the time is shown", |written| has_shown(written, "copying the task"));
    daemon.thaw();
    let shown = plain(&copying.wait().expect_code(0).stdout);
    assert!(!shown.contains("copying the task"), "the line is still there: {shown}");
}

#[test]
fn whoever_waits_for_the_end_of_the_daemon_of_polity_sees_for_how_long() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |_| {
        closed.pass();
        Answer::say("42")
    });
    // The daemon ends when the model has answered. That is long before this time has passed.
    let polity = home(&server, &json!({"language": "en", "shutdownGraceMs": 600_000}));
    let (alone, mut keyboard) = polity.spawn_in_session_at(1_000, &[]);
    let mut press = |keys: &str| keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    alone.stdout_wait("end: ");
    press("1\r");
    alone.stdout_wait_times(READS, 1);
    press("how much is it?\r");
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    alone.stdout_wait_times(READS, 2);
    press(CTRL_C);
    alone.stdout_wait("1 task is unfinished");
    alone.stdout_wait_times(READS, 3);
    press(CTRL_C);
    let waiting = "waiting for the end of the daemon";
    alone.stdout_until("the time is shown", |written| has_shown(written, waiting));
    gate.open();
    let shown = plain(&alone.wait().stdout);
    assert!(!shown.contains(waiting), "the line is still there: {shown}");
}
