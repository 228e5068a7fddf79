//! Tests of the commands that call a daemon, and of the commands that read a data directory without a daemon. All
//! daemons are real.

mod lists;
mod offline;
mod run;
mod settings;
mod shutdown;
mod stepping_in;
mod talking;
mod terminals;
mod through_restarts;
mod without;

use std::time::{Duration, Instant};

use polity_tests::{Output, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::{app, home, json_lines};

/// Maximum time until something happens that a test waits for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until a condition holds.
///
/// # Panics
/// If the condition does not hold within [`PATIENCE`].
#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "this has not happened: {what}");
        std::thread::yield_now();
    }
}

/// Starts a daemon on the home's data directory, and waits until it is ready.
#[track_caller]
fn serve(polity: &Polity) -> Running {
    let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    daemon
}

#[track_caller]
fn rehearsing() -> (Polity, Running) {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({"language": "en"})));
    let daemon = serve(&polity);
    (polity, daemon)
}

/// Starts a daemon whose only model is on the given server.
#[track_caller]
fn served(server: &ScriptedServer) -> (Polity, Running) {
    let polity = home(server, &json!({}));
    let daemon = serve(&polity);
    (polity, daemon)
}

/// Appends the option for the home's data directory to the arguments of a command.
fn on_data<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--data", "data"]].concat()
}

/// Runs a command on the data directory of the home.
#[track_caller]
fn ask(polity: &Polity, arguments: &[&str]) -> Output {
    polity.run(&on_data(arguments))
}

/// Runs a command that has to succeed, and returns its standard output.
#[track_caller]
fn told(polity: &Polity, arguments: &[&str]) -> String {
    ask(polity, arguments).expect_code(0).stdout
}

/// Runs a list command with `--json`, and returns its rows.
#[track_caller]
fn rows(polity: &Polity, arguments: &[&str]) -> Vec<Value> {
    json_lines(&told(polity, &[arguments, &["--json"]].concat()))
}

/// Runs a command that has to be refused, and returns its standard error.
#[track_caller]
fn refused(polity: &Polity, arguments: &[&str]) -> String {
    let ended = ask(polity, arguments).expect_code(2);
    assert_eq!(ended.stdout, "", "{arguments:?}");
    ended.stderr
}

/// Sends a picture to the society, and returns the society's answer.
#[track_caller]
fn look_at_picture(polity: &Polity) -> String {
    let path = write(polity, "picture.png", PICTURE);
    told(polity, &["send", "--wait", "What is in it?", "--attach", &path])
}
