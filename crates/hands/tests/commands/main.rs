//! Runs real commands with the tools of the group `command`, at the levels that this machine reaches.

#![cfg(target_os = "linux")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "all of this is a test, which clippy sees only in functions marked as such"
)]

mod bench;

mod foreground;

mod background;

mod endings;

mod sources;

mod running;
