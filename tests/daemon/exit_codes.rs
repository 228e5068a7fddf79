//! The exit code tells how a run ended, and a later run can resume the work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::{Value, json};
use tokio::net::TcpSocket;

use crate::support::{app, asked_by, events, home, json_lines, last_asked, run, start};

const PATIENCE: Duration = Duration::from_secs(60);
const NUDGE: &str = "用户还没有收到结果";

#[test]
fn an_answer_is_0() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let ended = run(&home(&server, &json!({})), &["what?"]).expect_code(0);
    assert_eq!((ended.stdout.as_str(), ended.stderr.as_str()), ("42\n", ""));
    assert_eq!(server.requests().len(), 1);
}

#[test]
fn empty_answers_alone_are_3() {
    let server = ScriptedServer::start(|_| Answer::nothing());
    let ended = run(&home(&server, &json!({})), &["what?"]).expect_code(3);
    assert!(ended.stderr.contains("no answer"), "{}", ended.stderr);
    assert_eq!(server.requests().len(), 2, "after an empty answer the daemon must ask once more");
}

#[test]
fn silence_after_work_is_nudged_once_and_then_3() {
    let server = ScriptedServer::start(|asked| match asked.has_called("list_contacts") {
        true => Answer::nothing(),
        false => Answer::call("list_contacts", json!({})),
    });
    run(&home(&server, &json!({})), &["what?"]).expect_code(3);
    let nudges = last_asked(&server).heard().into_iter().filter(|heard| heard.text.contains(NUDGE));
    assert_eq!(nudges.count(), 1);
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn an_answer_to_the_nudge_is_0() {
    let server = ScriptedServer::start(|asked| {
        if asked.text_contains(NUDGE) {
            return Answer::say("after all");
        }
        match asked.has_called("list_contacts") {
            true => Answer::nothing(),
            false => Answer::call("list_contacts", json!({})),
        }
    });
    let ended = run(&home(&server, &json!({})), &["what?"]).expect_code(0);
    assert_eq!(ended.stdout, "after all\n");
}

#[test]
fn a_limit_is_4() {
    let server = ScriptedServer::start(|_| Answer::call("list_contacts", json!({})));
    let polity = home(&server, &json!({"limits": {"maxModelCallsPerTask": 3}}));
    let ended = run(&polity, &["go on for ever"]).expect_code(4);
    assert_eq!(server.requests().len(), 3);
    assert!(
        ended.stdout.contains("maxModelCallsPerTask") && ended.stdout.contains("root：3 次调用"),
        "the user must be told which branch used how much: {}",
        ended.stdout
    );
    run(&polity, &["--resume"]).expect_code(4);
    assert_eq!(server.requests().len(), 3, "the stopped task was resumed");
}

#[test]
fn a_server_that_is_not_there_is_5() {
    // The test binds the socket but does not listen on it. So connections are refused, and no other process gets the
    // port.
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind("127.0.0.1:0".parse().expect("an address")).expect("a port");
    let address = socket.local_addr().expect("an address");
    let services =
        json!({"services": [{"id": "gone", "baseURL": format!("http://{address}/v1"), "model": "m"}]});
    let retry = json!({"retry": {"maxAttempts": 2, "baseDelayMs": 1, "maxDelayMs": 2}});
    let polity = Polity::new(&services, &app(&retry));
    let ended = run(&polity, &["what?", "--json"]).expect_code(5);
    let lines = json_lines(&ended.stdout);
    let failed = events(&lines, "model_failed");
    let next: Vec<&Value> = failed.iter().map(|failed| &failed["next"]).collect();
    assert_eq!(next, ["retry", "give_up"]);
    assert_eq!(events(&lines, "finished")[0]["exitCode"], 5);

    let server = ScriptedServer::start(|_| Answer::say("here"));
    let services = json!({"services": [{"id": "gone", "baseURL": server.base_url(), "model": "m"}]});
    polity.write_config("llmservices.json", &services.to_string());
    run(&polity, &["once more"]).expect_code(0);
}

#[test]
fn advice_goes_with_5() {
    let server = ScriptedServer::start(|_| Answer::error(401, json!({"error": {"message": "no such key"}})));
    let ended = run(&home(&server, &json!({})), &["what?"]).expect_code(5);
    assert!(
        ended.stdout.contains("no such key") && ended.stdout.contains("check apiKey"),
        "{}",
        ended.stdout
    );
}

/// The server itself has an error, so nothing in `llmservices.json` has to be changed.
#[test]
fn advice_goes_with_the_kind_of_failure() {
    let ended = refused_with(500).expect_code(5);
    let said =
        "not like this (the server of one was reached and answered with HTTP 500: check the server's log";
    assert!(ended.stdout.contains(said), "{}", ended.stdout);
    for field in ["apiKey", "baseURL", "llmservices.json"] {
        assert!(!ended.stdout.contains(field) && !ended.stderr.contains(field), "{field}: {}", ended.stderr);
    }
    assert!(ended.stderr.contains("--resume` tries again"), "{}", ended.stderr);
}

/// Runs a prompt with a server that answers every request with this HTTP status.
fn refused_with(status: u16) -> polity_tests::Output {
    let server =
        ScriptedServer::start(move |_| Answer::error(status, json!({"error": {"message": "not like this"}})));
    run(&home(&server, &json!({})), &["what?"])
}

#[test]
fn a_request_that_is_refused_is_3_and_is_not_called_unreachable() {
    for status in [400, 402, 413, 415, 422] {
        let ended = refused_with(status).expect_code(3);
        assert!(!ended.stderr.contains("no model could be used"), "{status}: {}", ended.stderr);
        let said = format!(
            "request refused: not like this (the server of one was reached and answered with HTTP {status}: "
        );
        assert!(ended.stdout.contains(&said), "{}", ended.stdout);
    }
}

#[test]
fn a_server_that_refuses_the_key_or_has_no_such_model_is_5_and_is_said_to_be_reached() {
    for (status, advice) in [(401, "check apiKey"), (403, "check apiKey"), (404, "check model and baseURL")] {
        let ended = refused_with(status).expect_code(5);
        let said =
            format!("not like this (the server of one was reached and answered with HTTP {status}: {advice}");
        assert!(ended.stdout.contains(&said), "{}", ended.stdout);
        assert!(
            ended.stderr.contains("no model could be used; the message above says why"),
            "{}",
            ended.stderr
        );
        assert!(!ended.stderr.contains("could be reached"), "{status}: {}", ended.stderr);
    }
}

/// The first service refuses the request, and its fallback is unreachable. The exit code is not 5, because one of the
/// two servers has answered.
#[test]
fn a_refusal_before_an_unreachable_fallback_is_3() {
    let server = ScriptedServer::start(|_| Answer::error(400, json!({"error": {"message": "no"}})));
    let mut first = crate::support::service("first", &server, &["text"]);
    first["fallback"] = json!("gone");
    let gone = json!({"id": "gone", "baseURL": "http://127.0.0.1:9/v1", "model": "m"});
    let polity = Polity::new(&json!({"services": [first, gone]}), &app(&json!({})));
    let ended = run(&polity, &["what?"]).expect_code(3);
    assert!(ended.stdout.contains("server unreachable"), "{}", ended.stdout);
}

#[test]
fn a_question_to_the_person_is_6() {
    let server = ScriptedServer::start(|asked| match asked.has_called("send_message") {
        true => Answer::say("I wait for you"),
        false => Answer::call(
            "send_message",
            json!({"to": "user", "payload": {"message_type": "collaboration_request", "text": "Which colour?"}}),
        ),
    });
    let polity = home(&server, &json!({}));
    let ended = run(&polity, &["paint it"]).expect_code(6);
    assert!(ended.stdout.contains("Which colour?"), "{}", ended.stdout);
    for resumed in [ended, run(&polity, &["--resume"]).expect_code(6)] {
        let stderr = resumed.stderr;
        assert!(stderr.contains("waits for your answer: Which colour?"), "{stderr}");
        let how = "polity: to answer:\npolity: → first start a daemon: polity serve --data data\n\
                   polity: → polity send --data data --task t-";
        assert!(stderr.contains(how), "{stderr}");
    }
}

/// Starts a server that does not answer until the returned switch is `true`.
fn hanging() -> (ScriptedServer, Arc<AtomicBool>) {
    let answers = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&answers);
    let server = ScriptedServer::start(move |_| match switch.load(Ordering::SeqCst) {
        true => Answer::say("at last"),
        false => Answer::hang(),
    });
    (server, answers)
}

#[test]
fn a_timeout_is_124_and_can_be_resumed() {
    let (server, answers) = hanging();
    let polity = home(&server, &json!({}));
    let ended = run(&polity, &["what?", "--timeout", "1s"]).expect_code(124);
    assert_eq!(ended.stdout, "");
    assert!(ended.stderr.contains("--resume"), "{}", ended.stderr);
    answers.store(true, Ordering::SeqCst);
    let resumed = run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(resumed.stdout, "at last\n");
    assert!(last_asked(&server).text_contains("what?"));
}

#[test]
fn a_signal_is_130_and_what_was_begun_can_be_resumed() {
    let (server, answers) = hanging();
    let polity = home(&server, &json!({}));
    let running = start(&polity, &["what?"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    running.interrupt();
    let ended = running.wait().expect_code(130);
    assert!(ended.stderr.contains("--resume"), "{}", ended.stderr);

    let running = start(&polity, &["--resume"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 2);
    running.terminate();
    running.wait().expect_code(130);

    answers.store(true, Ordering::SeqCst);
    let resumed = run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(resumed.stdout, "at last\n");
    let asked = asked_by(&server, "root");
    assert_eq!(asked.len(), 3);
    assert!(asked.iter().all(|again| again.messages() == asked[0].messages()), "the requests differ");
    let again = run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(again.stdout, "", "an answer was shown again");
    assert_eq!(server.requests().len(), 3);
}

#[test]
fn bad_usage_is_2() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    for arguments in [
        &[][..],
        &["--no-such-flag", "x"],
        &["x", "--timeout", "soon"],
        &["x", "--timeout=-1s"],
        &["x", "--resume"],
        &["--resume", "--attach", "y"],
        &["x", "--service", " "],
        &["x", "y"],
    ] {
        let ended = run(&polity, arguments).expect_code(2);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert!(ended.stderr.contains("error:"), "{arguments:?}: {}", ended.stderr);
    }
    polity.run(&[]).expect_code(2);
    polity.run(&["walk"]).expect_code(2);
    assert!(server.requests().is_empty());
}

#[test]
fn help_and_version_are_0() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    let help = polity.run(&["run", "--help"]).expect_code(0);
    assert!(help.stdout.contains("--attach") && help.stdout.contains("--resume"));
    let version = polity.run(&["--version"]).expect_code(0);
    assert!(version.stdout.starts_with("polity "), "{}", version.stdout);
}
