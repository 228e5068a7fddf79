//! Failure points. A failure point is a named place in the code. A test can make the process die there, as if somebody
//! had killed the process.
//!
//! Every build with debug assertions has failure points, so the crash tests need no binary of their own. In such a
//! build, a test sets the environment variable `POLITY_FAILURE_POINT` to the name of a point and a number n. When the
//! process passes this point for the nth time, it aborts, without unwinding or running destructors. In a release build,
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
