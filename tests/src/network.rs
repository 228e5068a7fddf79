//! Runs a test in a network namespace of its own, in which all ports are free.

use std::process::{Command, Stdio};

/// Runs an ignored test of the running program in a network namespace of its own, and waits until it has passed. On a
/// machine that does not allow this, only prints that the test was skipped. `test` is the full name of the test.
///
/// # Panics
/// If the test fails. The message contains its output.
#[track_caller]
pub fn in_own_network(test: &str) {
    let own = |command: &str| {
        let mut unshared = Command::new("unshare");
        unshared.args(["--map-root-user", "--net", "sh", "-c", command]).stdin(Stdio::null());
        unshared
    };
    let tried = own("ip link set lo up").output();
    if !tried.is_ok_and(|tried| tried.status.success()) {
        #[expect(
            clippy::print_stdout,
            reason = "who reads the log of the tests must see that this one did nothing"
        )]
        {
            println!("skipped: this machine allows no network namespace");
        }
        return;
    }
    let program = std::env::current_exe().expect("this program");
    let ended = own("ip link set lo up && exec \"$PROGRAM\" --exact \"$TEST\" --ignored --nocapture")
        .env("PROGRAM", program)
        .env("TEST", test)
        .output()
        .expect("a process");
    let said =
        format!("{}{}", String::from_utf8_lossy(&ended.stdout), String::from_utf8_lossy(&ended.stderr));
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
}
