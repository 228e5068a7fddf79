//! Messages with a delay arrive once and in order. This is so even if the process is killed or the clock changes before
//! they arrive.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use polity_tests::{Answer, Call, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::hired;
use crate::support::play::{Play, WAITING, batch, hears, role, spawn, words};
use crate::support::{asked_by, home, letters, run, start};

const LATE: [&str; 3] = ["the first late one", "the second late one", "the third late one"];
const NOTE: &str = "a note to myself";

fn delayed(to: &str, text: &str, delay: u64) -> Call {
    Call::new("send_message", json!({"to": to, "payload": {"text": text}, "delayMs": delay}))
}

/// Root hires a worker. Then root sends four delayed messages: three to the worker, and one to root itself. The play
/// ends when all messages have arrived.
fn play(delay: u64) -> Play {
    let write = batch(move |asked| {
        let worker = hired(asked, "worker").expect("hired");
        let mut calls: Vec<Call> = LATE.iter().map(|text| delayed(&worker, text, delay)).collect();
        calls.push(delayed("root", NOTE, delay));
        calls
    });
    let has_all = |asked: &Conversation| LATE.iter().all(|text| hears(asked, text));
    Play::default()
        .ending("root", vec![role("worker"), spawn("worker"), write], |asked| {
            let all = hears(asked, NOTE) && hears(asked, "I have all three");
            Answer::say(if all { "all is there" } else { WAITING })
        })
        .ending("worker", vec![], move |asked| {
            Answer::say(if has_all(asked) { "I have all three" } else { WAITING })
        })
}

/// Returns the delayed messages that an agent has received, in order.
fn late(asked: &Conversation) -> Vec<String> {
    let heard = asked.heard();
    let said = heard.iter().map(|heard| words(heard).trim().to_owned());
    said.filter(|said| said.contains("late one") || said == NOTE).collect()
}

#[track_caller]
fn assert_in_order_and_once(server: &ScriptedServer) {
    let requests = asked_by(server, "root");
    let root = requests.last().expect("a request");
    let worker = asked_by(server, &hired(root, "worker").expect("hired")).pop().expect("a request");
    assert_eq!(late(&worker), LATE, "{:#?}", worker.heard());
    assert_eq!(late(root), [NOTE], "{:#?}", root.heard());
    server.assert_clean();
}

/// Root sends the messages to the worker and to itself.
#[test]
fn delayed_messages_come_in_order_and_once() {
    let performed = play(20).perform();
    assert_in_order_and_once(&performed.server);
    let said = letters(&performed.lines).pop().expect("an answer");
    assert_eq!(said["text"], "all is there");
}

/// Runs a process until it has accepted all delayed messages, and then kills it. Then runs the SQL statement `due`,
/// which changes the time at which these messages are due.
fn left(server: &ScriptedServer, due: &'static str) -> Polity {
    let polity = home(server, &json!({}));
    let running = start(&polity, &["go", "--json"]);
    running.stdout_line(NOTE);
    running.kill9();
    let mut database = Database::write(&polity.data_dir());
    assert_eq!(database.number("SELECT count(*) FROM messages WHERE state = 'delayed'"), 4);
    database.execute(due);
    polity
}

const LONG_PAST: &str = "UPDATE messages SET due_at = 1 WHERE state = 'delayed'";
const FAR_OFF: &str = "UPDATE messages SET due_at = 9000000000000000 WHERE state = 'delayed'";

/// The messages become due while no process runs. The next two processes deliver the messages. The test kills both
/// processes, each while an agent handles the last message.
#[test]
fn delayed_messages_survive_every_kill_and_come_once() {
    let holds = Arc::new(AtomicBool::new(true));
    let held = Arc::clone(&holds);
    let script = play(3_600_000).script();
    let server =
        ScriptedServer::start(move |asked| match held.load(Ordering::SeqCst) && hears(asked, LATE[2]) {
            true => Answer::hang(),
            false => script(asked),
        });
    let polity = left(&server, LONG_PAST);
    for _ in 0..2 {
        let running = start(&polity, &["--resume"]);
        let before = server.request_count();
        server.wait_until(Duration::from_secs(60), |requests| {
            requests[before..].iter().any(|request| hears(&request.conversation(), LATE[2]))
        });
        running.kill9();
    }
    holds.store(false, Ordering::SeqCst);
    let ended = run(&polity, &["--resume"]).expect_code(0);
    assert!(ended.stdout.ends_with("all is there\n"), "{}", ended.stdout);
    assert_in_order_and_once(&server);
    let mut database = Database::read(&polity.data_dir());
    assert_eq!(database.number("SELECT count(*) FROM messages WHERE state IN ('delayed', 'queued', 'in_turn') AND receiver <> 'user'"), 0);
    // All messages are delivered, so another run calls no model.
    let before = server.request_count();
    assert_eq!(run(&polity, &["--resume"]).expect_code(0).stdout, "");
    assert_eq!(server.request_count(), before);
}

/// The clock is set years ahead, so all messages are due at once. They must arrive once and in order.
#[test]
fn a_clock_years_ahead_delivers_once() {
    let server = ScriptedServer::start(play(3_600_000).script());
    let polity = left(&server, LONG_PAST);
    run(&polity, &["--resume"]).expect_code(0);
    assert_in_order_and_once(&server);
}

/// Runs a process until it has printed `begun` and all its work is done except the delayed messages. Then kills the
/// process.
fn work_until_nothing_is_left(polity: &Polity, prompt: &str, begun: &str) {
    let mut running = start(polity, &[prompt, "--json"]);
    running.stdout_line(begun);
    let mut database = Database::read(&polity.data_dir());
    let left = "SELECT (SELECT count(*) FROM turns WHERE state = 'open')
        + (SELECT count(*) FROM messages WHERE state = 'queued' AND receiver <> 'user')";
    let deadline = Instant::now() + Duration::from_secs(60);
    while database.number(left) > 0 {
        assert!(Instant::now() < deadline && !running.has_ended(), "the society has not come to rest");
        std::thread::sleep(Duration::from_millis(10));
    }
    running.kill9();
}

/// The clock is set years back, so no message is due. So the daemon must call no model, and the process must end at its
/// timeout.
#[test]
fn a_clock_years_behind_waits_without_a_flood() {
    let server = ScriptedServer::start(play(3_600_000).script());
    let polity = left(&server, FAR_OFF);
    // First let a process finish the turns that the kill interrupted.
    work_until_nothing_is_left(&polity, "--resume", "\"services\"");
    let before = server.request_count();
    let ended = run(&polity, &["--resume", "--timeout", "2s", "--json"]).expect_code(124);
    assert_eq!(server.request_count(), before, "a model was asked although no message is due");
    assert!(ended.stdout.lines().count() < 20, "{}", ended.stdout);
    // Make the messages overdue, as if the clock were correct again.
    Database::write(&polity.data_dir()).execute(LONG_PAST);
    run(&polity, &["--resume"]).expect_code(0);
    assert_in_order_and_once(&server);
}

/// A delay is at most 30 days. A limit is needed because a waiting message keeps its task open.
#[test]
fn a_delay_of_more_than_thirty_days_is_refused() {
    let most: u64 = 30 * 24 * 60 * 60 * 1000;
    let delays: Vec<Value> = vec![json!(u64::MAX), json!(most + 1), json!(most), json!(0)];
    let write = batch(move |_| {
        let each = delays.iter();
        each.map(|delay| Call::new("send_message", json!({"to": "worker", "payload": "x", "delayMs": delay})))
            .collect()
    });
    let play = Play::default()
        .ending("root", vec![role("worker"), spawn("worker"), write], |_| Answer::say(WAITING))
        .ending("worker", vec![], |_| Answer::say("done"));
    let server = ScriptedServer::start(play.script());
    let polity = home(&server, &json!({}));
    work_until_nothing_is_left(&polity, "go", "\"task_started\"");
    let sent = asked_by(&server, "root").pop().expect("a request").results_of("send_message");
    let errors: Vec<Option<&str>> = sent.iter().map(|sent| sent.error()).collect();
    assert_eq!(errors, [Some("invalid_arguments"), Some("invalid_arguments"), None, None], "{sent:#?}");
    let mut database = Database::read(&polity.data_dir());
    assert_eq!(database.number("SELECT count(*) FROM messages WHERE state = 'delayed'"), 1);
    assert!(server.request_count() < 20, "{}", server.request_count());
}
