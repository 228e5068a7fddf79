//! Model servers that fail, and what the daemon's next requests to them contain.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Captured, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::{PICTURE, write};
use crate::support::hiring::{Gate, boss_and_worker};
use crate::support::{app, events, home, home_with, json_lines, last_asked, letters, run, service};

/// Starts a server that gives these answers in order, one for each request, and repeats the last answer.
fn in_turn(answers: Vec<Answer>) -> ScriptedServer {
    let given = Mutex::new(0);
    ScriptedServer::start(move |_| {
        let mut given = given.lock().expect("a number");
        let answer = answers.get(*given).or(answers.last()).expect("an answer");
        *given += 1;
        answer.clone()
    })
}

/// Checks that one failure changes neither the answer to the user nor the history in later requests.
#[track_caller]
fn check_retried(failure: Answer, kind: &str) {
    let server = in_turn(vec![failure, Answer::call("list_contacts", json!({})), Answer::say("the answer")]);
    let ended = run(&home(&server, &json!({})), &["ask", "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    let said = letters(&lines);
    assert_eq!(said.len(), 1);
    assert_eq!(said[0]["text"], "the answer");
    let failed = events(&lines, "model_failed");
    assert_eq!(failed.len(), 1, "{failed:#?}");
    assert_eq!(
        (&failed[0]["kind"], &failed[0]["next"], &failed[0]["attempt"]),
        (&json!(kind), &json!("retry"), &json!(1))
    );
    assert_eq!(events(&lines, "model_answered")[0]["attempts"], 2);
    let requests = server.requests();
    assert_eq!(requests.len(), 3);
    assert_eq!(requests[0].body, requests[1].body, "the second attempt must repeat the request");
    let roles: Vec<Value> =
        last_asked(&server).messages().iter().map(|message| message["role"].clone()).collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool"]);
}

#[test]
fn an_answer_that_breaks_off_is_asked_for_again() {
    let answer = || Answer::say("a longer answer that is cut somewhere");
    check_retried(answer().torn(), "broken_off");
    check_retried(answer().half(), "broken_off");
    check_retried(
        Answer::call("put_artifact", json!({"type": "t", "content": "some longer content"})).half(),
        "broken_off",
    );
}

#[test]
fn a_server_that_fails_in_passing_is_asked_again() {
    check_retried(Answer::error(500, json!({"error": {"message": "oops"}})), "passing");
    check_retried(Answer::error(503, json!({})), "passing");
    check_retried(Answer::error(408, json!({})), "passing");
    check_retried(Answer::error(409, json!({})), "passing");
    check_retried(Answer::raw("text/html", "<html><title>Bad</title></html>"), "not_an_answer");
}

#[test]
fn a_server_that_asks_for_patience_is_asked_again() {
    let busy = json!({"error": {"message": "slow down"}});
    check_retried(Answer::error(429, busy.clone()), "rate_limited");
    check_retried(Answer::error(429, busy.clone()).retry_after(1), "rate_limited");
    let times: Arc<Mutex<Vec<Instant>>> = Arc::default();
    let noted = Arc::clone(&times);
    let server = ScriptedServer::start(move |_| {
        let mut times = noted.lock().expect("no panic before");
        times.push(Instant::now());
        match times.len() {
            1 => Answer::error(429, busy.clone()).retry_after(1),
            _ => Answer::say("the answer"),
        }
    });
    run(&home(&server, &json!({})), &["ask"]).expect_code(0);
    let times = times.lock().expect("no panic before");
    assert_eq!(times.len(), 2);
    let pause = times[1] - times[0];
    assert!(pause >= Duration::from_secs(1), "the server was asked again after {pause:?}");
}

#[test]
fn what_a_server_refuses_is_not_asked_again() {
    for (status, code) in [(400, 3), (401, 5), (403, 5), (404, 5), (422, 3)] {
        let server = ScriptedServer::start(move |_| {
            Answer::error(status, json!({"error": {"message": "I will not"}}))
        });
        let ended = run(&home(&server, &json!({})), &["ask"]).expect_code(code);
        assert_eq!(server.requests().len(), 1, "{status}");
        assert!(ended.stdout.contains("I will not"), "{}", ended.stdout);
    }
}

#[test]
fn attempts_come_to_an_end() {
    let server = ScriptedServer::start(|_| Answer::error(500, json!({})));
    run(&home(&server, &json!({})), &["ask"]).expect_code(5);
    assert_eq!(server.requests().len(), 3, "the number of attempts must be maxAttempts");
}

#[test]
fn an_empty_answer_is_asked_for_once_more_and_not_kept() {
    let server = in_turn(vec![Answer::nothing(), Answer::say("the answer")]);
    let ended = run(&home(&server, &json!({})), &["ask"]).expect_code(0);
    assert_eq!(ended.stdout, "the answer\n");
    let requests = server.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].body, requests[1].body);
}

#[test]
fn a_picture_that_is_refused_is_described() {
    let server = ScriptedServer::start(|asked| match asked.image_urls().is_empty() {
        true => Answer::say("I read about it"),
        false => {
            Answer::error(500, json!({"error": {"message": "image input is not supported - hint: mmproj"}}))
        }
    });
    let polity = home_with(&server, &["text", "vision"]);
    let path = write(&polity, "picture.png", PICTURE);
    let ended = run(&polity, &["look", "--attach", &path, "--json"]).expect_code(0);
    let lines = json_lines(&ended.stdout);
    assert_eq!(events(&lines, "model_failed")[0]["next"], "describe_media");
    assert_eq!(server.requests().len(), 2);
    assert!(last_asked(&server).text_contains("picture.png"));
}

#[test]
fn a_refusal_of_media_in_any_words_is_followed_by_a_description() {
    for (status, words) in [
        (400, "messages[1].content must be a string"),
        (413, "payload too large"),
        (415, "no"),
        (422, "Input should be a valid string"),
        (404, "Images cannot be used here"),
        (500, "This model can't handle pictures"),
    ] {
        let server = ScriptedServer::start(move |asked| match asked.image_urls().is_empty() {
            true => Answer::say("I read about it"),
            false => Answer::error(status, json!({"error": {"message": words}})),
        });
        let polity = home_with(&server, &["text", "vision"]);
        let path = write(&polity, "picture.png", PICTURE);
        let ended = run(&polity, &["look", "--attach", &path, "--json"]).expect_code(0);
        let lines = json_lines(&ended.stdout);
        let failed = &events(&lines, "model_failed")[0];
        assert_eq!(
            (&failed["next"], &failed["suspects"]),
            (&json!("describe_media"), &json!(["vision"])),
            "{words}"
        );
        assert_eq!(server.requests().len(), 2, "{words}");
    }
}

/// The server refuses a request with a picture, and then also the same request without the picture. So the picture is
/// not the reason for the refusal, and the next request of the task must contain the picture again.
#[test]
fn a_refusal_for_another_reason_makes_no_picture_distrusted() {
    let server = ScriptedServer::start(|asked| match asked.text_contains("einmal") {
        true => Answer::say("seen"),
        false => Answer::error(400, json!({"error": {"message": "the moon is full"}})),
    });
    let polity = home_with(&server, &["text", "vision"]);
    let mut daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    let path = write(&polity, "picture.png", PICTURE);
    let refused = run(&polity, &["look", "--attach", &path, "--json"]).expect_code(3);
    assert_eq!(server.requests().len(), 2);
    let lines = json_lines(&refused.stdout);
    let task = events(&lines, "task_started")[0]["task"].as_str().expect("a task").to_owned();
    polity.run(&["send", "--data", "data", "--wait", "--task", &task, "noch einmal"]).expect_code(0);
    assert!(!last_asked(&server).image_urls().is_empty(), "the picture is not in the request");
    assert!(!daemon.has_ended());
}

#[test]
fn a_picture_that_was_refused_is_not_sent_again_until_the_configuration_changes() {
    let place: Arc<OnceLock<PathBuf>> = Arc::default();
    let at = Arc::clone(&place);
    let server = ScriptedServer::start(move |asked| {
        let rounds = asked.results_of("list_contacts").len();
        if !asked.image_urls().is_empty() {
            let what = json!({"error": {"message": "image input is not supported"}});
            // The server refuses the picture at first. Then it changes the configuration (below), so the daemon sends
            // the picture again. This time, the server accepts the picture.
            return if rounds < 2 { Answer::error(400, what) } else { Answer::say("I see it") };
        }
        if rounds == 1 {
            let file = at.get().expect("the place of the configuration").join("llmservices.json");
            let text = fs::read_to_string(&file).expect("a catalogue");
            fs::write(file, text.replace("one-model", "another-model")).expect("written");
        }
        Answer::call("list_contacts", json!({}))
    });
    let polity = home_with(&server, &["text", "vision"]);
    place.set(polity.config_dir()).expect("set once");
    let path = write(&polity, "picture.png", PICTURE);
    let ended = run(&polity, &["look", "--attach", &path, "--json"]).expect_code(0);
    let refused = events(&json_lines(&ended.stdout), "model_failed").len();
    let shown = |captured: &Captured| captured.conversation().image_urls().len();
    let shown: Vec<usize> = server.requests().iter().map(shown).collect();
    assert_eq!((refused, shown), (1, vec![1, 0, 0, 1]));
}

/// Returns the assistant messages of a request.
fn said_by_model(asked: &Conversation) -> Vec<Value> {
    let messages = asked.messages().iter();
    messages.filter(|message| message["role"] == "assistant").cloned().collect()
}

#[test]
fn what_only_one_service_understands_goes_back_to_it_alone() {
    let server = ScriptedServer::start(|asked| {
        let rounds = asked.results_of("list_contacts").len();
        match (asked.model(), rounds) {
            ("first-model", 0) => {
                Answer::call("list_contacts", json!({})).and_field("reasoning_content", json!("hm"))
            }
            ("first-model", 1) => Answer::call("list_contacts", json!({})),
            ("first-model", _) => Answer::error(404, json!({"error": {"message": "gone"}})),
            _ => Answer::say("the answer"),
        }
    });
    let mut first = service("first", &server, &["text"]);
    first["fallback"] = json!("second");
    let services = json!({"services": [first, service("second", &server, &["text"])]});
    let polity = Polity::new(&services, &app(&json!({})));
    let ended = run(&polity, &["ask"]).expect_code(0);
    assert_eq!(ended.stdout, "the answer\n");
    let requests = server.requests();
    let asked: Vec<(&str, Vec<Value>)> = requests
        .iter()
        .map(|request| (request.model.as_str(), said_by_model(&request.conversation())))
        .collect();
    let [(_, first), (_, second), (_, third), (fallback, fourth)] = &asked[..] else {
        panic!("expected four requests: {asked:#?}")
    };
    assert!(first.is_empty());
    assert_eq!(second[0]["reasoning_content"], "hm");
    assert_eq!(third[0]["reasoning_content"], "hm");
    assert_eq!(third[1]["reasoning_content"], Value::Null);
    assert_eq!(*fallback, "second-model");
    assert!(fourth.iter().all(|message| message["reasoning_content"].is_null()), "{fourth:#?}");
}

#[test]
fn a_failed_child_is_told_to_its_parent() {
    let gate = Gate::default();
    let closed = gate.clone();
    let boss = boss_and_worker(move |_| {
        closed.pass();
        Answer::error(400, json!({"error": {"message": "I will not"}}))
    });
    let server = ScriptedServer::start(move |asked| match asked.last_user_text().contains("I will not") {
        true => Answer::say("my worker failed"),
        false => boss(asked),
    });
    let ended = gate.open_after("one moment", &home(&server, &json!({})), &["work"]).expect_code(0);
    assert_eq!(ended.stdout, "… one moment\nmy worker failed\n");
}

#[test]
fn an_answer_without_a_stream_is_an_answer() {
    let server = in_turn(vec![Answer::call("list_contacts", json!({})), Answer::say("whole")]);
    let mut service = service("one", &server, &["text"]);
    service["dialect"] = json!({"stream": false});
    let polity = Polity::new(&json!({"services": [service]}), &app(&json!({})));
    let ended = run(&polity, &["ask"]).expect_code(0);
    assert_eq!(ended.stdout, "whole\n");
    assert_ne!(last_asked(&server).body()["stream"], json!(true));
}
