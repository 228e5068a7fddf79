//! Faults of the machine: clocks that change, files that cannot be opened, a process that is suspended, a database
//! that another program has locked. Faults of the disk are tested in `disk.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use polity_tests::{
    Answer, Conversation, Layer, Order, Polity, Running, ScriptedServer, doubled_reports, society,
};
use serde_json::{Value, json};

use crate::crash::end;
use crate::power::{Disturbance, Recorded};
use crate::support::database::Database;
use crate::support::hiring::Gate;
use crate::support::{home, last_asked, run, service, start};

const SECOND: i64 = 1_000_000_000;
const TEN_YEARS: i64 = 10 * 365 * 24 * 60 * 60 * SECOND;
const TOO_MANY_FILES: i64 = 24;
const PATIENCE: Duration = Duration::from_secs(60);
/// Maximum number of clock changes in one society.
const STEPS: i64 = 200;

/// Creates a home whose commands load the library of `tests/layer`, which can change the results of system calls.
fn home_on_layer(server: &ScriptedServer, app: &Value) -> (Polity, Layer) {
    let mut polity = home(server, app);
    let layer = Layer::below(&mut polity);
    (polity, layer)
}

/// Sets the wall clock and the monotonic clock. The process is suspended meanwhile, so it never reads one new time
/// together with one old time.
fn set_clocks(layer: &Layer, running: &Running, wall: i64, count: i64) {
    running.freeze();
    layer.order(Order::Wall, wall);
    layer.order(Order::Count, count);
    running.thaw();
}

/// A script in which root sends itself a message that is due in a minute, and ends its turn when the message arrives.
fn waits_a_minute(asked: &Conversation) -> Answer {
    let wakes = asked.heard().iter().filter(|heard| heard.text.contains("wake up")).count();
    match wakes {
        0 if asked.has_called("send_message") => Answer::say("waiting"),
        0 => {
            let payload = json!({"message_type": "status_report", "text": "wake up"});
            Answer::call("send_message", json!({"to": "root", "payload": payload, "delayMs": 60_000}))
        }
        wakes => Answer::say(format!("woken: {wakes}")),
    }
}

/// Sets the wall clock to a time that is wrong by `wall`. Checks that a delayed message arrives once.
///
/// Returns the number of seconds until the message arrived, measured with the monotonic clock.
#[track_caller]
fn check_delay(wall: i64) -> i64 {
    let server = ScriptedServer::start(waits_a_minute);
    let (polity, layer) = home_on_layer(&server, &json!({}));
    let mut running = start(&polity, &["wait"]);
    server.wait_until(PATIENCE, |requests| requests.len() >= 2);
    // This line shows that the turn is over: now the society waits only for the delayed message.
    running.stdout_line("waiting");
    let mut passed = 0;
    while !running.has_ended() {
        // Move the clocks forward by 31 seconds. The daemon reads the clock again after at most thirty seconds, so this
        // step ends its wait, and the daemon notices every step.
        passed += 31;
        assert!(passed < 31 * STEPS, "the message has not arrived");
        set_clocks(&layer, &running, wall + passed * SECOND, passed * SECOND);
        std::thread::sleep(Duration::from_millis(200));
    }
    let ended = running.wait().expect_code(0);
    assert!(ended.stdout.ends_with("woken: 1\n"), "{}", ended.stdout);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    passed
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_delayed_message_comes_once_wherever_the_clock_is_set_to() {
    // The clock is correct, or ten years behind. In both cases, the message comes after its minute, not earlier and not
    // ten years later.
    assert!(check_delay(0) >= 60);
    assert!(check_delay(-TEN_YEARS) >= 60);
    check_delay(TEN_YEARS);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_society_lives_with_a_clock_that_jumps() {
    let layer: Arc<OnceLock<Layer>> = Arc::default();
    let below = Arc::clone(&layer);
    let (play, asked) = (society(2, 3), AtomicUsize::new(0));
    let server = ScriptedServer::start(move |conversation: &Conversation| -> Answer {
        let asked = asked.fetch_add(1, Ordering::SeqCst);
        // The clock jumps ten years ahead, then ten years back, and is then correct again.
        below.get().expect("a layer").order(Order::Wall, [TEN_YEARS, -TEN_YEARS, 0][asked % 3]);
        play(conversation)
    });
    let mut polity = home(&server, &json!({}));
    layer.get_or_init(|| Layer::below(&mut polity));
    let ended = run(&polity, &["build it"]).expect_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    end::check(&polity.data_dir(), 2, 3);
    for request in server.requests() {
        assert_eq!(doubled_reports(&request.conversation()), []);
    }
    let mut database = Database::read(&polity.data_dir());
    let accepted = database.texts::<1>("SELECT id FROM messages ORDER BY seq");
    assert!(accepted.is_sorted(), "{accepted:?}");
    let years =
        database.number("SELECT (max(created_at) - min(created_at)) / 1000 / 86400 / 365 FROM messages");
    assert!(years >= 10, "the clock has not jumped");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn the_latest_task_is_the_one_that_was_begun_last_whatever_the_clock_said() {
    let server = ScriptedServer::start(|asked: &Conversation| -> Answer {
        if asked.last_user_text().contains("be silent") {
            Answer::error(400, json!({}))
        } else {
            Answer::say("done")
        }
    });
    let (polity, layer) = home_on_layer(&server, &json!({}));
    layer.order(Order::Wall, TEN_YEARS);
    run(&polity, &["speak"]).expect_code(0);
    layer.order(Order::Wall, 0);
    let code = run(&polity, &["be silent"]).code;
    assert_ne!(code, Some(0));
    assert_eq!(run(&polity, &["--resume"]).code, code);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_clock_that_is_set_forward_makes_no_event_old() {
    let server = ScriptedServer::start(waits_a_minute);
    let (polity, layer) = home_on_layer(&server, &json!({}));
    let first = start(&polity, &["wait"]);
    first.stdout_line("waiting");
    // Each of the two tasks waits for a minute. The first task ends before the second begins.
    set_clocks(&layer, &first, 61 * SECOND, 61 * SECOND);
    first.wait().expect_code(0);
    let mut second = start(&polity, &["wait again"]);
    second.stdout_line("waiting");
    let mut hours = 0;
    while !second.has_ended() {
        hours += 1;
        assert!(hours < STEPS, "the second task has not ended");
        set_clocks(&layer, &second, TEN_YEARS + hours * 3_700 * SECOND, hours * 3_700 * SECOND);
        std::thread::sleep(Duration::from_millis(200));
    }
    second.wait().expect_code(0);
    assert_eq!(Database::read(&polity.data_dir()).number("SELECT min(seq) FROM events"), 1);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_daemon_that_may_open_no_more_files_goes_on_when_it_may() {
    const NONE_LEFT: &[(Order, i64)] = &[(Order::Descriptor, TOO_MANY_FILES)];
    const DISTURBANCES: &[Disturbance] =
        &[Disturbance { after: 4, orders: NONE_LEFT }, Disturbance { after: 14, orders: NONE_LEFT }];
    let retry = json!({"retry": {"maxAttempts": 1000, "baseDelayMs": 10, "maxDelayMs": 50}});
    Recorded::play(DISTURBANCES, &retry);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_start_that_may_open_no_files_is_refused() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let (polity, layer) = home_on_layer(&server, &json!({}));
    run(&polity, &["hello"]).expect_code(0);
    layer.order(Order::Descriptor, TOO_MANY_FILES);
    let refused = run(&polity, &["again"]).expect_code(2);
    assert!(refused.stderr.contains("Too many open files"), "{}", refused.stderr);
}

#[test]
fn a_start_raises_a_low_soft_limit_of_open_files() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let polity = home(&server, &json!({}));
    let ended =
        polity.script("ulimit -S -n 12; exec \"$POLITY\" run --data data hello").wait().expect_code(0);
    assert_eq!(ended.stdout, "done\n");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_start_waits_until_it_may_open_files() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let (polity, layer) = home_on_layer(&server, &json!({}));
    run(&polity, &["hello"]).expect_code(0);
    layer.order(Order::Descriptor, TOO_MANY_FILES);
    let refused = layer.refused();
    let running = start(&polity, &["again"]);
    layer.wait_for_refusals(refused + 1);
    layer.order(Order::Descriptor, 0);
    assert_eq!(running.wait().expect_code(0).stdout, "done\n");
}

/// A daemon that cannot start yet waits without end, because there may be nobody who would start it again.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_daemon_waits_with_its_start_until_it_may_open_files() {
    const WAITS: &str = "waiting for free file descriptors";
    // Number of refused attempts that the test waits for. `polity run` would give up after fewer.
    const CHECKS: i64 = 60;
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let (polity, layer) = home_on_layer(&server, &json!({}));
    layer.order(Order::Descriptor, TOO_MANY_FILES);
    let refused = layer.refused();
    let running = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    running.stderr_line(WAITS);
    layer.wait_for_refusals(refused + CHECKS);
    layer.order(Order::Descriptor, 0);
    running.stderr_line("ready: http://");
    running.terminate();
    let ended = running.wait().expect_code(0);
    assert_eq!(ended.stderr.matches(WAITS).count(), 1, "{}", ended.stderr);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_call_that_took_too_long_while_the_process_was_stopped_is_made_again() {
    let asked = AtomicUsize::new(0);
    let server = ScriptedServer::start(move |_: &Conversation| -> Answer {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => Answer::hang(),
            _ => Answer::say("done"),
        }
    });
    let (polity, layer) = home_on_layer(&server, &json!({}));
    let mut service = service("one", &server, &["text"]);
    service["timeoutMs"] = json!(30_000);
    polity.write_config("llmservices.json", &json!({"services": [service]}).to_string());
    let running = start(&polity, &["hello"]);
    server.wait_until(PATIENCE, |requests| !requests.is_empty());
    set_clocks(&layer, &running, 60 * SECOND, 60 * SECOND);
    assert_eq!(running.wait().expect_code(0).stdout, "done\n");
    assert_eq!(server.request_count(), 2);
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_society_that_was_stopped_for_minutes_goes_on() {
    let play = society(2, 3);
    let server = ScriptedServer::start(move |asked: &Conversation| -> Answer { play(asked) });
    let (polity, layer) = home_on_layer(&server, &json!({}));
    let running = start(&polity, &["build it"]);
    for minutes in 1..=4 {
        let so_far = usize::try_from(minutes * 5).expect("few");
        server.wait_until(PATIENCE, |requests| requests.len() >= so_far);
        set_clocks(&layer, &running, minutes * 60 * SECOND, minutes * 60 * SECOND);
    }
    running.wait().expect_code(0);
    end::check(&polity.data_dir(), 2, 3);
}

/// Locks the database in the middle of a turn, as another program would. When polity has reported the lock, keeps it
/// for a further time of `longer`. Then removes the lock, and checks that each step of the turn happened once.
fn check_locked_database(longer: Duration) {
    let gate = Gate::default();
    let passed = gate.clone();
    let server = ScriptedServer::start(move |asked: &Conversation| -> Answer {
        if asked.has_called("put_artifact") {
            return Answer::say("done");
        }
        passed.pass();
        Answer::call("put_artifact", json!({"type": "note", "content": "once"}))
    });
    let polity = home(&server, &json!({}));
    let running = start(&polity, &["hello"]);
    server.wait_until(PATIENCE, |requests| !requests.is_empty());
    let mut other = Database::write(&polity.data_dir());
    other.execute("BEGIN IMMEDIATE");
    gate.open();
    running.stderr_line("another program has locked the database: end it");
    std::thread::sleep(longer);
    assert_eq!(server.request_count(), 1, "a result was used before it was written");
    other.execute("ROLLBACK");
    assert_eq!(running.wait().expect_code(0).stdout, "done\n");
    assert_eq!(server.request_count(), 2, "an answered request was made again");
    assert_eq!(last_asked(&server).results_of("put_artifact").len(), 1);
    assert_eq!(other.number("SELECT count(*) FROM artifacts"), 1);
}

#[test]
fn a_database_that_another_program_has_locked_stops_nobody_for_good() {
    check_locked_database(Duration::ZERO);
}

#[test]
#[ignore = "takes a minute: `just attack`"]
fn a_database_that_is_locked_for_a_minute_stops_nobody_for_good() {
    check_locked_database(Duration::from_secs(60));
}

#[test]
fn a_start_on_a_locked_database_is_refused() {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let polity = home(&server, &json!({}));
    run(&polity, &["hello"]).expect_code(0);
    let mut other = Database::write(&polity.data_dir());
    other.execute("BEGIN IMMEDIATE");
    let refused = run(&polity, &["again"]).expect_code(2);
    assert!(refused.stderr.contains("another program has locked the database: end it"), "{}", refused.stderr);
    other.execute("ROLLBACK");
    // An exclusive lock also prevents other programs from reading the database.
    other.execute("PRAGMA locking_mode = EXCLUSIVE");
    other.execute("BEGIN EXCLUSIVE");
    other.execute("DELETE FROM holds");
    other.execute("COMMIT");
    let refused = run(&polity, &["again"]).expect_code(2);
    assert!(refused.stderr.contains("another program has locked the database: end it"), "{}", refused.stderr);
    assert_eq!(server.request_count(), 1, "the refused prompt was begun");
}
