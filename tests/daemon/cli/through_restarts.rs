//! A daemon that is killed and restarted while other processes follow it.

use std::sync::atomic::{AtomicUsize, Ordering};

use polity_tests::{Answer, Polity, Running, ScriptedServer};
use serde_json::Value;

use super::{on_data, rows, serve, served, told, wait_until};
use crate::support::json_lines;

/// Returns the event numbers with which the lines begin.
fn numbers(lines: &str) -> Vec<i64> {
    lines
        .lines()
        .map(|line| {
            line.split(' ')
                .next()
                .and_then(|word| word.parse().ok())
                .unwrap_or_else(|| panic!("no number: {line}"))
        })
        .collect()
}

/// Waits until a command that follows events has printed a whole line that begins with this text.
#[track_caller]
fn wait_for_line(follower: &Running, beginning: &str) {
    follower.stdout_until(&format!("a line begins with {beginning:?}"), |written| {
        written.split_inclusive('\n').any(|line| line.starts_with(beginning) && line.ends_with('\n'))
    });
}

/// Waits until both commands have printed the event with this number.
#[track_caller]
fn both_print(watch: &Running, follow: &Running, number: i64) {
    wait_for_line(watch, &format!("{number} "));
    wait_for_line(follow, &format!("{{\"seq\":{number},"));
}

/// Interrupts a command that follows events, and returns its standard output. Fails unless the command has reported
/// exactly this number of times that the daemon has gone.
#[track_caller]
fn leave(follower: Running, losses: usize) -> String {
    follower.interrupt();
    let ended = follower.wait().expect_code(0);
    assert_eq!(ended.stderr.matches("the daemon has gone").count(), losses, "{}", ended.stderr);
    ended.stdout
}

#[track_caller]
fn last_number(polity: &Polity) -> i64 {
    rows(polity, &["events", "--limit", "1"])[0]["seq"].as_i64().expect("a number")
}

#[test]
fn every_event_comes_once_and_in_order() {
    const ROUNDS: usize = 4;
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let (polity, mut daemon) = served(&server);
    told(&polity, &["send", "--wait", "one?"]);
    let first = last_number(&polity);
    let watch = polity.spawn(&on_data(&["watch"]));
    let follow = polity.spawn(&on_data(&["events", "--follow", "--after", "0", "--json"]));
    both_print(&watch, &follow, first);
    // These events come after the stored ones, on the streams. So both commands are connected before the first kill.
    told(&polity, &["send", "--wait", "two?"]);
    both_print(&watch, &follow, last_number(&polity));
    for round in 0..ROUNDS {
        // In round 2, the daemon is killed while it is idle. In the other rounds, it is killed while it works.
        polity.run(&on_data(&["send", &format!("question {round}")])).expect_code(0);
        if round == 2 {
            told(&polity, &["send", "--wait", "and another"]);
        }
        daemon.kill9();
        for follower in [&watch, &follow] {
            follower.stderr_wait_times("the daemon has gone", round + 1);
        }
        daemon = serve(&polity);
        told(&polity, &["send", "--wait", "still there?"]);
        // Only a command that is connected again can lose the daemon once more.
        both_print(&watch, &follow, last_number(&polity));
    }
    // Wait until all tasks have ended, so that no more events come.
    told(&polity, &["run", "--resume"]);
    wait_until("all tasks have ended", || rows(&polity, &["tasks", "--state", "open"]).is_empty());
    let last = last_number(&polity);

    let all: Vec<i64> =
        rows(&polity, &["events", "--after", "0"]).iter().filter_map(|event| event["seq"].as_i64()).collect();
    assert_eq!(all.last(), Some(&last));
    both_print(&watch, &follow, last);
    let followed = json_lines(&leave(follow, ROUNDS));
    let followed: Vec<i64> = followed.iter().filter_map(|event: &Value| event["seq"].as_i64()).collect();
    assert_eq!(followed, all);
    let watched = numbers(&leave(watch, ROUNDS));
    let begun = all.iter().position(|number| *number == watched[0]).expect("an event from the list");
    assert_eq!(watched, all[begun..]);
    assert!(watched.contains(&first) && watched.len() > 20);
}

#[test]
fn whoever_waits_gets_the_answer_once_from_the_next_daemon() {
    let gate = crate::support::hiring::Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |_| {
        closed.pass();
        Answer::say("42")
    });
    let (polity, daemon) = served(&server);
    let waiting = polity.spawn(&on_data(&["send", "--wait", "what?"]));
    let running = polity.spawn(&on_data(&["run", "and what?"]));
    let both_wait = || !server.requests().is_empty() && rows(&polity, &["tasks"]).len() == 2;
    wait_until("both prompts are accepted", both_wait);
    daemon.kill9();
    for process in [&waiting, &running] {
        process.stderr_line("the daemon has gone");
    }
    let _daemon = serve(&polity);
    gate.open();
    assert_eq!(waiting.wait().expect_code(0).stdout, "42\n");
    assert_eq!(running.wait().expect_code(0).stdout, "42\n");
    assert_eq!(rows(&polity, &["messages", "--from", "user"]).len(), 2);
}

/// The daemon is killed before the second line and before the third one.
#[test]
fn a_chat_in_a_pipe_says_once_for_each_restart_that_the_daemon_has_gone() {
    let count = AtomicUsize::new(1);
    let server = ScriptedServer::start(move |_| {
        Answer::say(format!("answer {}", count.fetch_add(1, Ordering::Relaxed)))
    });
    let (polity, mut daemon) = served(&server);
    let script = "after() { until [ -e \"$1\" ]; do sleep 0.1; done; }; \
                  { echo one?; after second; echo two?; after third; echo three?; } | \
                  \"$POLITY\" chat --data data";
    let chat = polity.script(script);
    for (kills, answer, next) in [(1, "answer 1", "second"), (2, "answer 2", "third")] {
        chat.stdout_line(answer);
        wait_until("the answer is marked as shown", || rows(&polity, &["messages", "--unshown"]).is_empty());
        daemon.kill9();
        std::fs::write(polity.home().join(next), "").expect("a file");
        chat.stderr_wait_times("the daemon has gone", kills);
        daemon = serve(&polity);
    }
    let ended = chat.wait().expect_code(0);
    assert_eq!(ended.stdout, "answer 1\nanswer 2\nanswer 3\n");
    assert_eq!(ended.stderr.matches("the daemon has gone").count(), 2, "{}", ended.stderr);
}
