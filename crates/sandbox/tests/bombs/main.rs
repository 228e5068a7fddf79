//! Runs commands that use up what the machine has: processes, memory, disk, output and time. Beside such a bomb,
//! another test may not even be able to start a thread. So the bombs have a test program of their own: cargo runs test
//! programs one after another.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is a test, which clippy sees only in functions marked as such"
)]

#[path = "../sandbox/bench.rs"]
#[expect(dead_code, reason = "the bombs need only a part of the bench")]
mod bench;

use std::time::Instant;

use polity_sandbox::{How, Level};

use bench::{Bench, Heart, PAUSE, small};

/// Commands that use up processes, memory, output or disk, each with the limit that must end it.
const BOMBS: &[(&str, &str, How)] = &[
    ("processes", ":(){ :|:& };:; sleep 100", How::TooManyProcesses),
    ("processes that leave their parents", "perl -e 'while(1){fork; setpgrp}'", How::TooManyProcesses),
    ("zombies", "perl -e 'while(1){fork or exit}'", How::TooManyProcesses),
    (
        "memory in many processes",
        "for i in 1 2 3 4 5 6 7 8; do perl -e '$x=\"a\"x60000000; sleep 100' & done; sleep 100",
        How::OutOfMemory,
    ),
    (
        "files in memory",
        "perl -e 'for my $i (1..100){my $f=syscall(319,my $v17=\"x\",0); open(my $h,\">&=\",$f); push @h,$h; syswrite($h,\"a\"x8000000); } sleep 100'",
        How::OutOfMemory,
    ),
    (
        "disk",
        "i=0; while true; do i=$((i+1)); head -c 8000000 /dev/zero > f$i || exit 7; done",
        How::TooMuchDisk,
    ),
    (
        "disk without a name",
        "perl -e 'for my $i (1..1000){open(my $h,\">\",\"f\"); unlink \"f\"; push @h,$h; syswrite($h,\"a\"x8000000)} sleep 100'",
        How::TooMuchDisk,
    ),
    (
        "disk in the home",
        "i=0; while true; do i=$((i+1)); head -c 8000000 /dev/zero > $HOME/f$i || exit 7; done",
        How::TooMuchDisk,
    ),
    (
        "disk in temporary files",
        "i=0; while true; do i=$((i+1)); head -c 8000000 /dev/zero > $TMPDIR/f$i || exit 7; done",
        How::TooMuchDisk,
    ),
    ("files", "perl -e 'for my $i (1..1000000){open(F,\">\",\"f$i\")}'", How::TooMuchDisk),
    ("output", "yes", How::TooMuchOutput),
    ("output by two", "yes >&2 & yes", How::TooMuchOutput),
    ("time", "while true; do :; done", How::TimedOut),
    ("time, stopped", "kill -STOP $$", How::TimedOut),
];

#[tokio::test(flavor = "multi_thread")]
async fn every_bomb_ends_by_its_limit() {
    assert!(BOMBS.len() >= 14, "the list must not become shorter unnoticed");
    let heart = Heart::start();
    for level in [Level::Full, Level::Partial] {
        for (name, command, how) in BOMBS {
            let Some(mut bench) = Bench::at(level).await else { break };
            bench.plan.limits = small();
            if *how == How::TimedOut {
                bench.plan.limits.timeout_ms = 700;
            }
            let begun = Instant::now();
            let ended = bench.run(command).await;
            println!("{name} ({level:?}): {:?} after {:?}, {:?}", ended.how, begun.elapsed(), ended.peak);
            assert_eq!(
                ended.how,
                *how,
                "{name} ({level:?}): {:?}: {}",
                ended.peak,
                String::from_utf8_lossy(&ended.output.first)
            );
            bench.check_canaries(name);
            assert!(
                heart.longest_pause() < PAUSE,
                "{name}: the daemon stood still for {:?}",
                heart.longest_pause()
            );
        }
    }
    println!("the daemon's longest pause was {:?}", heart.longest_pause());
}
