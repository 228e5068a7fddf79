//! The entry points of the program that contains this crate: the supervisor, the process inside, the forwarder, and the
//! probe.

use std::ffi::OsString;
use std::process::ExitCode;

/// First argument of the supervisor.
pub(crate) const SUPERVISE: &str = "supervise";

/// First argument of the process inside.
pub(crate) const INSIDE: &str = "inside";

/// First argument of the forwarder.
pub(crate) const FORWARD: &str = "forward";

/// First argument of the probe.
pub(crate) const PROBE: &str = "probe";

/// Runs the part of the sandbox that the arguments name: what follows [`Enter::first_arguments`](crate::Enter).
///
/// A program calls this before it starts a thread or an async runtime, and exits with the result. It returns only if the
/// part has ended or failed; the process inside becomes the command.
pub fn enter(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let part = arguments.into_iter().next().unwrap_or_default();
    if part == SUPERVISE {
        crate::supervise::run()
    } else if part == INSIDE {
        crate::inside::run()
    } else if part == FORWARD {
        crate::forward::run()
    } else if part == PROBE {
        crate::probe::inside()
    } else {
        ExitCode::from(64)
    }
}
