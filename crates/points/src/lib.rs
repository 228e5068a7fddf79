//! Failure points: named places in the code at which a test can make the process die, as if it had been killed there.
//!
//! Only builds with debug assertions have them, so the tests and the crash tests use one binary. There the process
//! aborts, without unwinding or running destructors, at the point and the hit that the variable `POLITY_FAILURE_POINT`
//! names. In a release build, [`point!`] expands to nothing: no code, no name, no access to the environment.
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

/// Marks a failure point. In a release build this expands to nothing.
#[cfg(not(debug_assertions))]
#[macro_export]
macro_rules! point {
    ($name:literal) => {};
}
