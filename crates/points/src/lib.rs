//! Failure points: named places in the code at which a test can make the process die, as if it had been killed there.
//!
//! Without the feature `armed`, [`point!`] expands to nothing: no code, no name, no access to the environment. With the
//! feature, the process aborts, without unwinding or running destructors, at the point and the hit that the variable
//! `POLITY_FAILURE_POINT` names. Only the binary that the crash tests kill is built with the feature.
//!
//! The name of a point tells where it is: `writer::before_commit`. `tests/daemon/crash/points.rs` lists all points.

#[cfg(any(feature = "armed", test))]
pub mod armed;

/// Marks a failure point. The process aborts here if a test has armed this point.
#[cfg(feature = "armed")]
#[macro_export]
macro_rules! point {
    ($name:literal) => {
        $crate::armed::pass($name)
    };
}

/// Marks a failure point. Without the feature `armed`, this expands to nothing.
#[cfg(not(feature = "armed"))]
#[macro_export]
macro_rules! point {
    ($name:literal) => {};
}
