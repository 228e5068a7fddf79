//! The entry points of the program that contains this crate: the supervisor, the process inside, the forwarder, and the
//! probe.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::parts::{FORWARD, INSIDE, PROBE, SUPERVISE};

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
