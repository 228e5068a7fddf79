//! Runs a part of a sandbox that is a separate process: the supervisor, the process inside the sandbox, the forwarder
//! or the probe. Each part is the daemon's own program, started with different arguments.

use std::ffi::OsString;
use std::process::ExitCode;

use crate::parts::{FORWARD, INSIDE, PROBE, SUPERVISE};

/// Runs one part of a sandbox. `arguments` are the arguments of the program that follow
/// [`Enter::first_arguments`](crate::Enter). The first of them is the name of the part.
///
/// A program calls this function before it starts a thread or an async runtime, and exits with the returned code. The
/// function returns when the part has ended or failed. The process inside the sandbox becomes the shell, so for this
/// part the function returns only after a failure.
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
