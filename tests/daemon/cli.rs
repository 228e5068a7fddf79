//! The commands that ask a daemon, each against a real one; and those that read without one.

mod lists;
mod offline;
mod run;
mod stepping_in;
mod talking;
mod through_restarts;
mod without;

use polity_tests::{Output, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::{app, home, json_lines};

/// Starts the daemon of the home, and waits until it is ready.
#[track_caller]
fn serve(polity: &Polity) -> Running {
    let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    daemon
}

/// A home with a daemon whose models are the built-in ones.
#[track_caller]
fn rehearsing() -> (Polity, Running) {
    let polity = Polity::new(&json!({"services": []}), &app(&json!({"language": "en"})));
    let daemon = serve(&polity);
    (polity, daemon)
}

/// A home with a daemon whose only model is that of a server.
#[track_caller]
fn served(server: &ScriptedServer) -> (Polity, Running) {
    let polity = home(server, &json!({}));
    let daemon = serve(&polity);
    (polity, daemon)
}

/// The arguments of a command on the data directory of the home.
fn on_data<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [arguments, &["--data", "data"]].concat()
}

/// Runs a command on the data directory of the home.
#[track_caller]
fn ask(polity: &Polity, arguments: &[&str]) -> Output {
    polity.run(&on_data(arguments))
}

/// Runs a command that is to succeed; gives what it prints.
#[track_caller]
fn told(polity: &Polity, arguments: &[&str]) -> String {
    ask(polity, arguments).expect_code(0).stdout
}

/// Runs a list with `--json`; gives its rows.
#[track_caller]
fn rows(polity: &Polity, arguments: &[&str]) -> Vec<Value> {
    json_lines(&told(polity, &[arguments, &["--json"]].concat()))
}

/// Runs a command that is to be refused; gives what it complains of.
#[track_caller]
fn refused(polity: &Polity, arguments: &[&str]) -> String {
    let ended = ask(polity, arguments).expect_code(2);
    assert_eq!(ended.stdout, "", "{arguments:?}");
    ended.stderr
}

/// Has the society look at a picture; gives what it says of it.
#[track_caller]
fn look_at_picture(polity: &Polity) -> String {
    let path = write(polity, "picture.png", PICTURE);
    told(polity, &["send", "--wait", "What is in it?", "--attach", &path])
}
