//! For a while, the disk is full, can only be read, or fails to sync. The daemon must not tell anybody a fact that is
//! not on the disk yet. Once the disk works again, the daemon must go on by itself.

use fastrand::Rng;
use polity_tests::{Answer, Layer, Order, ScriptedServer};
use serde_json::json;

use crate::power::{Disturbance, Left, Recorded};
use crate::support::database::Database;
use crate::support::files::write;
use crate::support::serving::Serving;
use crate::support::{home, run};

const NO_SPACE: i64 = 28;
const READ_ONLY: i64 = 30;
const BROKEN: i64 = 5;

/// Plays a society on a disk that fails for a while, and simulates power cuts.
///
/// The log of the daemon must contain `says`. After each power cut, the database must still contain every fact that the
/// daemon told before.
#[track_caller]
fn check(disturbances: &'static [Disturbance], says: &str) {
    let recorded = Recorded::play(disturbances, &json!({}));
    let stderr = &recorded.output.stderr;
    assert!(stderr.contains(says), "the log does not contain {says:?}: {stderr}");
    recorded.cut_everywhere(&[Left::Nothing], &mut Rng::with_seed(28));
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_full_disk_stops_nobody_for_good() {
    const FULL: &[(Order, i64)] = &[(Order::Write, NO_SPACE)];
    const DISTURBANCES: &[Disturbance] = &[
        Disturbance { after: 1, orders: FULL },
        Disturbance { after: 6, orders: FULL },
        Disturbance { after: 16, orders: FULL },
    ];
    check(DISTURBANCES, "the disk is full: free some room");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_disk_that_may_not_be_written_to_stops_nobody_for_good() {
    const READS: &[(Order, i64)] = &[(Order::Write, READ_ONLY), (Order::Change, READ_ONLY)];
    const DISTURBANCES: &[Disturbance] =
        &[Disturbance { after: 4, orders: READS }, Disturbance { after: 14, orders: READS }];
    check(DISTURBANCES, "a write was not committed");
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_disk_that_fails_to_sync_stops_nobody_for_good_and_nothing_lost_is_told() {
    const FAILS: &[(Order, i64)] = &[(Order::Sync, BROKEN)];
    const DISTURBANCES: &[Disturbance] = &[
        Disturbance { after: 1, orders: FAILS },
        Disturbance { after: 6, orders: FAILS },
        Disturbance { after: 11, orders: FAILS },
        Disturbance { after: 16, orders: FAILS },
    ];
    check(DISTURBANCES, "the disk fails: look into the log of the system");
}

/// Checks that a start is refused with exit code 2 and this text. The prompt of this start must leave nothing behind.
#[track_caller]
fn check_start(orders: &[(Order, i64)], says: &str) {
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let mut polity = home(&server, &json!({}));
    let layer = Layer::below(&mut polity);
    // Try an empty data directory first, then a data directory with a society.
    for asked in [0, 1] {
        for &(order, number) in orders {
            layer.order(order, number);
        }
        let refused = run(&polity, &["again"]).expect_code(2);
        assert!(refused.stderr.contains(says), "{}", refused.stderr);
        assert_eq!(server.request_count(), asked, "a model was called");
        for &(order, _) in orders {
            layer.order(order, 0);
        }
        assert_eq!(run(&polity, &["hello"]).expect_code(0).stdout, "done\n");
        assert_eq!(server.request_count(), asked + 1, "the refused prompt was begun");
    }
}

#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_start_on_a_disk_that_cannot_be_written_to_is_refused() {
    check_start(&[(Order::Write, NO_SPACE)], "full");
    check_start(&[(Order::Write, READ_ONLY), (Order::Change, READ_ONLY)], "Read-only file system");
    check_start(&[(Order::Sync, BROKEN)], "the disk fails: look into the log of the system");
}

/// While nothing can be written, a daemon still shows what it has, and accepts nothing. After that, it accepts a message
/// and begins one task for it.
#[test]
#[cfg_attr(not(all(target_os = "linux", target_env = "gnu")), ignore = "needs Linux with glibc")]
fn a_daemon_on_a_disk_that_cannot_be_written_to_is_read_and_accepts_nothing() {
    const FULL: &[(Order, i64)] = &[(Order::Write, NO_SPACE)];
    const READS: &[(Order, i64)] = &[(Order::Write, READ_ONLY), (Order::Change, READ_ONLY)];
    let server = ScriptedServer::start(|_| Answer::say("done"));
    let mut polity = home(&server, &json!({}));
    let attached = write(&polity, "notes.txt", b"the notes");
    let layer = Layer::below(&mut polity);
    run(&polity, &["keep this", "--attach", &attached]).expect_code(0);
    let [[artifact]] = &Database::read(&polity.data_dir()).texts::<1>("SELECT id FROM artifacts")[..] else {
        panic!("expected one artifact")
    };
    let content = format!("GET /api/artifacts/{artifact}/content");
    let serving = Serving::start(&polity);
    let tasks = || {
        let answer = serving.call("GET /api/tasks", b"");
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["tasks"].as_array().expect("tasks").len()
    };
    for (orders, before) in [(FULL, 1), (READS, 2)] {
        for &(order, number) in orders {
            layer.order(order, number);
        }
        assert_eq!(tasks(), before);
        let read = serving.call(&content, b"");
        assert_eq!((read.status, read.body.as_str()), (200, "the notes"));
        let refused = serving.call("POST /api/messages", br#"{"text": "refused"}"#);
        assert_eq!(refused.status, 503, "{refused:?}");
        let advice = "the data directory cannot be used just now; try again later, the log says why";
        assert!(refused.body.contains(advice), "{refused:?}");
        for &(order, _) in orders {
            layer.order(order, 0);
        }
        let accepted = serving.call("POST /api/messages", br#"{"text": "accepted"}"#);
        assert_eq!(accepted.status, 201, "{accepted:?}");
        assert_eq!(tasks(), before + 1);
    }
}
