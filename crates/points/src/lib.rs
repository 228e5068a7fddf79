//! Failure points: named places in the code at which a test can make the process die, as if it had been killed there.
//!
//! Every build with debug assertions has failure points, so the crash tests need no binary of their own. In such a
//! build, the environment variable `POLITY_FAILURE_POINT` contains the name of a point and a number n. The process
//! aborts when it passes this point for the nth time, without unwinding or running destructors. In a release build,
//! [`point!`] expands to nothing: no code, no name, no access to the environment.
//!
//! The name of a point tells where it is: `writer::before_commit`. `tests/daemon/crash/points.rs` lists all points.

#[cfg(debug_assertions)]
pub mod armed;

/// Marks a failure point. The process aborts here if a test has armed this point.
#[cfg(debug_assertions)]
#[macro_export]
macro_rules! point {
    ($name:literal) => {
        $crate::armed::pass($name)
    };
}

/// Marks a failure point. In a release build, the macro expands to nothing.
#[cfg(not(debug_assertions))]
#[macro_export]
macro_rules! point {
    ($name:literal) => {};
}
