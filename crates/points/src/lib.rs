//! Failure points: named places at which a test has the process die, as if it had been killed there.
//!
//! [`point!`] is nothing at all without the feature `armed`: no code, no name, no variable of the environment that is
//! looked at. With it, a process aborts, without unwinding and without destructors, at the point and the hit that the
//! variable `POLITY_FAILURE_POINT` names. Only the binary that the tests of the whole daemon kill is built so.
//!
//! A point says where it stands: `writer::before_commit`. `tests/daemon/crash/points.rs` holds the list of all of them.

#[cfg(any(feature = "armed", test))]
pub mod armed;

/// Passes a failure point: the process may die here, where a test wants it to.
#[cfg(feature = "armed")]
#[macro_export]
macro_rules! point {
    ($name:literal) => {
        $crate::armed::pass($name)
    };
}

/// Passes a failure point: without the feature `armed`, this is nothing.
#[cfg(not(feature = "armed"))]
#[macro_export]
macro_rules! point {
    ($name:literal) => {};
}
