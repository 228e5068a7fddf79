//! Runs real commands at all levels of sandbox that this machine reaches.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "all of this is a test, which clippy sees only in functions marked as such"
)]

mod bench;

mod basics;

mod hostile;

mod domains;

mod groups;
