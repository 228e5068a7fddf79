//! Release builds have no failure points.

#![expect(clippy::expect_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Builds the example in this profile into a separate directory, and returns the path of the program.
fn example(profile: &str, directory: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let built = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["build", "--quiet", "--offline", "--package", "polity-points", "--example", "passing"])
        .args(["--profile", profile, "--target-dir"])
        .arg(target)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    target.join(directory).join("examples").join(format!("passing{}", std::env::consts::EXE_SUFFIX))
}

/// Runs the example with its only failure point armed.
fn armed(example: &Path, log: &Path) -> Output {
    let mut command = Command::new(example);
    command.env("POLITY_FAILURE_POINT", "passing::passed@1").env("POLITY_FAILURE_POINT_LOG", log);
    command.output().expect("a process")
}

#[test]
fn a_release_build_has_no_failure_points() {
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("points-{}.log", std::process::id()));
    let released = armed(&example("release", "release"), &log);
    assert!(released.status.success() && released.stdout == b"passed\n", "{released:?}");
    assert!(!log.exists());

    // The same program, built with debug assertions, aborts at the point.
    let debug = armed(&example("dev", "debug"), &log);
    assert!(!debug.status.success() && debug.stdout.is_empty(), "{debug:?}");
    assert_eq!(std::fs::read_to_string(&log).expect("the log"), "passing::passed\n");
    std::fs::remove_file(&log).expect("the log can be removed");
}
