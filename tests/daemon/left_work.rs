//! A process finds unfinished work of an earlier process in the data directory.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::Gate;
use crate::support::{home, run, start};

const PATIENCE: Duration = Duration::from_secs(60);
const FIRST: &str = "the first question";
const SECOND: &str = "the second question";

/// Returns a home in which these prompts were begun but not answered, and a server that answers from now on.
fn left(prompts: &[&str]) -> (ScriptedServer, Polity) {
    let answers = Arc::new(AtomicBool::new(false));
    let switch = Arc::clone(&answers);
    let server = ScriptedServer::start(move |asked| match switch.load(Ordering::SeqCst) {
        true => Answer::say(answer(asked)),
        false => Answer::hang(),
    });
    let polity = home(&server, &json!({}));
    for (left, prompt) in prompts.iter().enumerate() {
        let before = server.request_count();
        let running = start(&polity, &[prompt]);
        // Each process makes one request for every unfinished prompt of earlier processes, and one for its own prompt.
        server.wait_until(PATIENCE, |requests| requests.len() == before + left + 1);
        running.kill9();
    }
    answers.store(true, Ordering::SeqCst);
    (server, polity)
}

fn answer(asked: &Conversation) -> &'static str {
    let questions = [(FIRST, "the first answer"), (SECOND, "the second answer")];
    let asked = questions.into_iter().find(|(question, _)| asked.text_contains(question));
    asked.map_or("another answer", |(_, answer)| answer)
}

#[test]
fn what_is_refused_takes_nothing_up() {
    let (server, polity) = left(&[FIRST]);
    let before = server.request_count();
    for arguments in [
        &[""][..],
        &[" \n"],
        &["-"],
        &["what?", "--service", "two"],
        &["look", "--attach", "missing.png"],
        &["look", "--attach", "config"],
    ] {
        let ended = run(&polity, arguments).expect_code(2);
        assert_eq!(ended.stdout, "", "{arguments:?}");
        assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    }
    assert_eq!(server.request_count(), before);
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, "the first answer\n");
}

#[test]
fn answers_of_several_tasks_say_which_they_are_of() {
    let (_server, polity) = left(&[FIRST, SECOND]);
    let printed = run(&polity, &["--resume"]).expect_code(0).stdout;
    let mut answers: Vec<&str> = printed.split_inclusive("answer\n").collect();
    // The order of the answers depends on timing, so sort them before the comparison.
    answers.sort_unstable();
    assert_eq!(
        answers,
        [
            "[task: the first question]\nthe first answer\n",
            "[task: the second question]\nthe second answer\n",
        ]
    );
}

#[test]
fn a_new_prompt_beside_what_was_left_is_named_too() {
    let (_server, polity) = left(&[FIRST]);
    let new = "something else,\nas said below";
    let printed = run(&polity, &[new]).expect_code(0).stdout;
    let mut answers: Vec<&str> = printed.split_inclusive("answer\n").collect();
    answers.sort_unstable();
    assert_eq!(
        answers,
        ["[task: something else,]\nanother answer\n", "[task: the first question]\nthe first answer\n"]
    );
    let alone = run(&polity, &["and now?"]).expect_code(0).stdout;
    assert_eq!(alone, "another answer\n", "the answer of a single task must not name the task");
}

#[test]
fn a_run_names_only_the_first_tasks_that_were_left_and_none_in_json() {
    let also = "polity: this run also continues ";
    let (_server, polity) = left(&[FIRST, SECOND, "the third question", "the fourth question"]);
    let told = run(&polity, &["and now?"]).expect_code(0).stderr;
    let line = told.lines().find(|line| line.starts_with(also)).unwrap_or_else(|| panic!("no line: {told}"));
    assert_eq!(line.matches(" question)").count(), 3, "{line}");
    assert!(line.ends_with("(the third question) and 1 more"), "{line}");

    let (_server, polity) = left(&[FIRST]);
    let told = run(&polity, &["and now?", "--json"]).expect_code(0).stderr;
    assert!(!told.contains(also), "{told}");
}

#[test]
fn a_run_says_that_it_also_continues_what_was_left() {
    let gate = Gate::default();
    let held = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        held.pass();
        Answer::say(answer(asked))
    });
    let polity = home(&server, &json!({}));
    let left = start(&polity, &[FIRST]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    left.kill9();
    let running = start(&polity, &[SECOND]);
    let told = running.stderr_line("polity: this run also continues an unfinished task: ");
    assert!(told.ends_with(" (the first question)"), "{told}");
    gate.open();
    running.wait().expect_code(0);
    let alone = run(&polity, &["and now?"]).expect_code(0).stderr;
    assert!(!alone.contains("also continues"), "{alone}");
}

/// Waits until the daemon has nothing left to do in the latest task.
fn wait_until_idle(polity: &Polity) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let tasks = polity.run(&["tasks", "--data", "data", "--json"]).expect_code(0).stdout;
        let latest: Value = serde_json::from_str(tasks.lines().next().expect("a task")).expect("JSON");
        if latest["state"] == "idle" {
            return;
        }
        assert!(Instant::now() < deadline, "{tasks}");
    }
}

#[test]
fn a_resumed_run_prints_an_answer_that_came_before_it_looked() {
    const NOTHING_LEFT: &str = "nothing was left to do";
    for has_daemon in [true, false] {
        let server = ScriptedServer::start(|asked| Answer::say(answer(asked)));
        let polity = home(&server, &json!({}));
        // The process dies before it prints the answer. A daemon then finishes the task.
        let point = [("POLITY_FAILURE_POINT", "output::before_shown@1")];
        let died = polity.spawn_with_points(&["run", "--data", "data", FIRST], &point).wait();
        assert_eq!(died.stdout, "");
        let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
        daemon.stderr_line("ready");
        wait_until_idle(&polity);
        let mut daemon = Some(daemon);
        if !has_daemon && let Some(daemon) = daemon.take() {
            daemon.terminate();
            daemon.wait().expect_code(0);
        }

        let resumed = run(&polity, &["--resume"]).expect_code(0);
        assert_eq!(resumed.stdout, "the first answer\n");
        assert!(!resumed.stderr.contains(NOTHING_LEFT), "{}", resumed.stderr);
        let again = run(&polity, &["--resume"]).expect_code(0);
        assert_eq!(again.stdout, "");
        assert!(again.stderr.contains(NOTHING_LEFT), "{}", again.stderr);
        if let Some(daemon) = daemon {
            daemon.terminate();
            daemon.wait().expect_code(0);
        }
    }
}
