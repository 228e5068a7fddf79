//! Failure points: named places in the code at which a test can make the process die, as if it had been killed there.
//!
//! Only builds with debug assertions have failure points, so the crash tests use the same binary as the other tests.
//! In a build with debug assertions, the process aborts at the point and at the pass that the environment variable
//! `POLITY_FAILURE_POINT` names, without unwinding or running destructors. In a release build, [`point!`] expands to
//! nothing: no code, no name, no access to the environment.
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
