//! The file `daemon.json`: a daemon writes its address into this file, so that other programs of the same user find
//! the daemon. If the daemon crashes, the file stays.

use std::net::TcpListener;

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::json;

use crate::support::{home, run};

const SERVE: [&str; 5] = ["serve", "--data", "data", "--listen", "127.0.0.1:0"];

fn answering() -> (ScriptedServer, Polity) {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    (server, polity)
}

#[test]
fn whoever_has_the_data_directory_removes_the_note_of_a_crash() {
    let (_server, polity) = answering();
    let killed = polity.spawn(&SERVE);
    killed.stderr_line("ready: http://");
    killed.kill9();
    let note = polity.data_dir().join("daemon.json");
    assert!(note.exists());
    run(&polity, &["how much?"]).expect_code(0);
    assert!(!note.exists());
}

#[test]
fn whoever_listens_where_a_daemon_was_killed_gets_nothing() {
    let (_server, polity) = answering();
    let killed = polity.spawn(&SERVE);
    let ready = killed.stderr_line("ready: http://");
    killed.kill9();
    let address = ready.split_once("http://").expect("an address").1.trim();
    let listener = TcpListener::bind(address).expect("the port that is free again");
    listener.set_nonblocking(true).expect("a socket");
    let ended = polity.run(&["send", "--data", "data", "hello"]).expect_code(2);
    assert!(ended.stderr.contains("no polity is serving"), "{}", ended.stderr);
    let came = listener.accept().map(|(_, from)| from).map_err(|error| error.kind());
    assert_eq!(came, Err(std::io::ErrorKind::WouldBlock));
}

#[test]
fn a_daemon_that_nobody_could_find_ends_as_it_always_does() {
    let (_server, polity) = answering();
    // The daemon first writes `daemon.json` to a file with this temporary name. It cannot do so here, because a
    // directory with this name exists.
    std::fs::create_dir_all(polity.data_dir().join("daemon.json.unfinished")).expect("a directory");
    let ended = polity.spawn(&SERVE).wait().expect_code(2);
    assert!(ended.stderr.contains("daemon.json"), "{}", ended.stderr);
    let died = polity.spawn_with_points(&SERVE, &[("POLITY_FAILURE_POINT", "serve::stopped@1")]).wait();
    assert_eq!(died.code, None, "the daemon ended without the orderly stop: {}", died.stderr);
}
