//! `polity shutdown`: the command that ends the daemon.

use std::io::Write;
use std::time::Duration;

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::{Value, json};

use super::{ask, on_data, refused, told};
use crate::support::files::files_below;
use crate::support::hiring::Gate;
use crate::support::serving::{Serving, answer_on};
use crate::support::{app, home};

const PATIENCE: Duration = Duration::from_secs(60);

#[test]
fn shutdown_lets_work_finish_and_returns_when_the_daemon_has_ended() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |_| {
        closed.pass();
        Answer::say("42")
    });
    // With less time, the daemon could end before the answer arrives.
    let polity = home(&server, &json!({"shutdownGraceMs": PATIENCE.as_millis() as u64}));
    let daemon = super::serve(&polity);
    told(&polity, &["send", "how much?"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    let mut ending = polity.spawn(&on_data(&["shutdown", "--json"]));
    ending.stderr_line("the daemon lets the work in progress finish");
    daemon.stderr_line("letting the work in progress finish");
    assert!(!ending.has_ended(), "the model is still at work");
    gate.open();
    let ended = ending.wait().expect_code(0);
    let ended: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!(ended, json!({"pid": daemon.id()}));
    // The command returns only when no process uses the data directory any more. So the next commands find no daemon.
    assert!(!polity.data_dir().join("daemon.json").exists());
    daemon.wait().expect_code(0);
    assert!(told(&polity, &["messages"]).contains("42"), "the answer that was under way is lost");
    server.assert_clean();
}

#[test]
fn shutdown_without_a_daemon_says_that_there_is_none() {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({})));
    let said = "polity: no daemon serves data; there is nothing to end\n";
    assert_eq!(refused(&polity, &["shutdown"]), said);
    assert!(files_below(&polity.data_dir()).is_empty(), "a file was created");
    let daemon = super::serve(&polity);
    let text = told(&polity, &["shutdown"]);
    assert_eq!(text, format!("the daemon has ended (process {})\n", daemon.id()));
    daemon.wait().expect_code(0);
    assert_eq!(refused(&polity, &["shutdown"]), said);
    assert!(ask(&polity, &["agents"]).expect_code(0).stdout.contains("root"));
}

#[test]
fn only_the_token_ends_a_daemon() {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({})));
    let daemon = Serving::start(&polity);
    let mut stranger = daemon.connect();
    let head =
        format!("POST /api/shutdown HTTP/1.1\r\nhost: {}\r\nconnection: close\r\n\r\n", daemon.address);
    stranger.write_all(head.as_bytes()).expect("a request");
    assert_eq!(answer_on(stranger).status, 401);
    assert_eq!(daemon.call("GET /healthz", b"").status, 200);
    assert_eq!(daemon.call("POST /api/shutdown", b"").status, 202);
    daemon.running.wait().expect_code(0);
}
