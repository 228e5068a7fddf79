//! `polity run` on a data directory that a daemon serves.

use std::sync::atomic::{AtomicUsize, Ordering};

use polity_tests::{Answer, Polity, Running, ScriptedServer};
use serde_json::json;

use super::{PATIENCE, rows, serve, served, told, wait_until};
use crate::support::hiring::{Gate, boss_and_worker};
use crate::support::{app, events, home, json_lines, last_asked, run, service, start};

/// Returns the number of messages that the user has not been shown.
#[track_caller]
fn unshown(polity: &Polity) -> usize {
    rows(polity, &["messages", "--unshown"]).len()
}

#[test]
fn the_same_output_and_code_as_without() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, mut daemon) = served(&server);
    let ended = run(&polity, &["what?"]).expect_code(0);
    assert_eq!((&*ended.stdout, &*ended.stderr), ("42\n", ""));
    let lines = json_lines(&run(&polity, &["again?", "--json"]).expect_code(0).stdout);
    assert_eq!((&lines[0]["event"], &lines[0]["services"]), (&json!("services"), &json!(["one"])));
    assert_eq!(events(&lines, "task_started").len(), 1, "only the events of its own task may be printed");
    let last = lines.last().expect("a line");
    assert_eq!(
        (&last["event"], &last["outcome"], &last["exitCode"]),
        (&json!("finished"), &json!("answered"), &json!(0))
    );
    assert!(!daemon.has_ended());
    assert_eq!(rows(&polity, &["tasks"]).len(), 2);
}

#[test]
fn no_model_is_5() {
    let nowhere = json!({"id": "one", "baseURL": "http://127.0.0.1:9/v1", "model": "m"});
    let polity = Polity::new(&json!({"services": [nowhere]}), &app(&json!({})));
    let _daemon = serve(&polity);
    let ended = run(&polity, &["what?"]).expect_code(5);
    assert!(ended.stderr.contains("no model could be used"), "{}", ended.stderr);
}

#[test]
fn a_resumed_run_tries_again_if_no_model_could_be_used() {
    let nowhere = json!({"id": "one", "baseURL": "http://127.0.0.1:9/v1", "model": "m"});
    let polity = Polity::new(&json!({"services": [nowhere]}), &app(&json!({})));
    for arguments in [&["what?"][..], &["--resume"]] {
        let failed = run(&polity, arguments).expect_code(5).stderr;
        for part in ["the message above says why", "`polity run --data data --resume` tries again"] {
            assert!(failed.contains(part), "{part} is not in {failed}");
        }
    }
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let mended = json!({"services": [service("one", &server, &["text"])]});
    polity.write_config("llmservices.json", &mended.to_string());
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, "42\n");
    assert!(last_asked(&server).text_contains("what?"));
    // The task is answered, so the next run has nothing to try.
    run(&polity, &["--resume"]).expect_code(0);
    assert_eq!((server.requests().len(), rows(&polity, &["tasks"]).len()), (1, 1));
}

/// The server answers at once, so root sometimes fails again before the command looks at the task.
#[test]
fn a_resumed_run_names_the_next_try_also_if_the_server_refuses_the_key() {
    let server = ScriptedServer::start(|_| Answer::error(401, json!({"error": {"message": "no such key"}})));
    let polity = home(&server, &json!({}));
    let check = |arguments: &[&str]| {
        let failed = run(&polity, arguments).expect_code(5).stderr;
        let part = "`polity run --data data --resume` tries again";
        assert!(failed.contains(part), "{part} is not in {failed}");
        assert!(!failed.contains("nothing was left to do"), "{failed}");
    };
    check(&["what?"]);
    check(&["--resume"]);
    let _daemon = serve(&polity);
    check(&["--resume"]);
    check(&["--resume"]);
    assert_eq!(server.requests().len(), 4, "each run must ask the model once");
}

/// A resumed run would try again in the other task, which is newer.
#[test]
fn a_failed_run_does_not_name_the_next_try_if_another_client_has_begun_a_task() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.text_contains("mend the boat") {
            closed.pass();
            return Answer::error(401, json!({"error": {"message": "no such key"}}));
        }
        Answer::say("42")
    });
    let (polity, _daemon) = served(&server);
    let running = start(&polity, &["mend the boat"]);
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    told(&polity, &["send", "--wait", "how much is it?"]);
    gate.open();
    let failed = running.wait().expect_code(5).stderr;
    assert!(failed.contains("the message above says why"), "{failed}");
    assert!(!failed.contains("--resume"), "{failed}");
}

#[test]
fn what_is_wrong_with_the_prompt_is_2() {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, _daemon) = served(&server);
    for arguments in
        [&["  "][..], &["what?", "--service", "none"], &["what?", "--attach", "none.png"], &["--resume"]]
    {
        run(&polity, arguments).expect_code(2);
    }
    assert!(server.requests().is_empty());
}

#[test]
fn whoever_interrupts_it_leaves_the_daemon_working() {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(boss_and_worker(move |_| {
        closed.pass();
        Answer::say("done")
    }));
    let (polity, mut daemon) = served(&server);
    let running = start(&polity, &["work"]);
    running.stdout_line("one moment");
    // Wait until the daemon knows that the text was shown. Otherwise, the next process would print the text again.
    wait_until("the text is marked as shown", || unshown(&polity) == 0);
    running.interrupt();
    let left = running.wait().expect_code(130);
    assert!(left.stderr.contains("the daemon goes on with t-"), "{}", left.stderr);
    let timed_out = run(&polity, &["--resume", "--timeout", "0"]).expect_code(124);
    assert!(timed_out.stderr.contains("the daemon goes on"), "{}", timed_out.stderr);
    assert!(!daemon.has_ended());
    let resumed = start(&polity, &["--resume"]);
    gate.open();
    let ended = resumed.wait().expect_code(0);
    assert!(ended.stdout.contains("the worker says: done"), "{}", ended.stdout);
    assert!(!ended.stdout.contains("one moment"), "a text was printed again");
}

#[test]
fn answers_that_piled_up_are_printed_in_the_order_of_time() {
    const TASKS: usize = 6;
    let count = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_| {
        let number = count.fetch_add(1, Ordering::Relaxed);
        Answer::say(format!("answer {number}"))
    });
    let (polity, daemon) = served(&server);
    for number in 0..TASKS {
        told(&polity, &["send", &format!("question {number}")]);
        wait_until("the answer has arrived", || unshown(&polity) > number);
    }
    daemon.kill9();
    let expect: String =
        (0..TASKS).map(|number| format!("[task: question {number}]\nanswer {number}\n")).collect();
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, expect);
}

/// Removes the foot from the output of `polity run` on a terminal. The foot consists of the lines at the bottom, which
/// the command draws again and again. These lines differ between runs, because they show what agents are doing at the
/// moment.
fn without_foot(shown: &str) -> String {
    let mut stays = String::new();
    for (number, drawn) in shown.split("\u{1b}[J").enumerate() {
        let (drawn, up) = match drawn.rsplit_once("\r\u{1b}[").filter(|(_, up)| up.ends_with('A')) {
            Some((before, up)) => (before, up.trim_end_matches('A').parse::<usize>().expect("a number")),
            None => (drawn.strip_suffix('\r').unwrap_or(drawn), 0),
        };
        if number == 0 || !drawn.is_empty() {
            stays.push_str(drawn);
        }
        for _ in 0..up {
            let end = stays.trim_end_matches(['\r', '\n']).rfind('\n').map_or(0, |end| end + 1);
            stays.truncate(end);
        }
    }
    stays
}

/// Returns the lines on a terminal in a form that is the same in every run. Sorts the lines, because the two tasks run
/// at the same time. Leaves out the path of the configuration. Replaces each word that contains a digit, such as an id
/// or a size.
fn comparable(shown: &str) -> Vec<String> {
    let word = |word: &str| match word.contains(|character: char| character.is_ascii_digit()) {
        true if !word.contains('\u{1b}') => "…".to_owned(),
        _ => word.to_owned(),
    };
    // Replace the ids of agents. The rule for words with digits does not replace all of them: an id ends in four random
    // characters, and sometimes none of these is a digit.
    let without_ids = |line: &str| match line.split_once("worker-") {
        Some((before, after)) => format!("{before}worker-….{}", after.get(4..).unwrap_or_default()),
        None => line.to_owned(),
    };
    let mut lines: Vec<String> = without_foot(shown)
        .lines()
        .filter(|line| !line.starts_with("polity: configuration: "))
        .map(|line| without_ids(line).split(' ').map(word).collect::<Vec<_>>().join(" "))
        .collect();
    lines.sort();
    lines
}

/// Begins two tasks whose workers wait at a gate, and kills the daemon. Then runs `polity run --resume` on a terminal.
/// `next` starts the next daemon, or returns `None` to continue without a daemon. Returns what the terminal has shown.
#[track_caller]
fn resumed(next: impl Fn(&Polity) -> Option<Running>) -> String {
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(boss_and_worker(move |_| {
        closed.pass();
        Answer::say("done")
    }));
    let (polity, daemon) = served(&server);
    for prompt in ["the first", "the second"] {
        told(&polity, &["send", prompt]);
    }
    wait_until("both tasks have begun", || unshown(&polity) >= 2);
    daemon.kill9();
    let _daemon = next(&polity);
    let running = polity.spawn_on_terminal(&["run", "--resume", "--data", "data"]);
    running.stdout_line("[task: the first]");
    running.stdout_line("[task: the second]");
    gate.open();
    running.wait().expect_code(0).stdout
}

#[test]
fn with_and_without_a_daemon_a_terminal_shows_the_same_lines_colours_and_titles() {
    let with = resumed(|polity| Some(serve(polity)));
    let without = resumed(|_| None);
    assert_eq!(comparable(&with), comparable(&without));
    assert_eq!(with.matches("[task: the first]").count(), 2, "a title above each of its messages: {with}");
    assert!(with.contains("\u{1b}[36m") && with.contains("the worker says: done"), "{with}");
}
