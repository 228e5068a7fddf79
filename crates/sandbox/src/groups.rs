//! Control groups (version 2). With them, the kernel itself limits memory and the number of processes: for one command
//! with all its processes, and for all commands of a task together.
//!
//! The supervisor samples a command up to 40 times a second, and sees nothing between two samples. A control group has
//! no such gaps, also counts what a process hides from `/proc`, and can kill all processes of a command at once.
//!
//! A control group can be used only if the system has delegated it to the daemon: the daemon may write to it, and no
//! other program is in it. This is the layout below the delegated control group:
//!
//! ```text
//! polity-daemon        the daemon and the supervisors: a control group with children must not contain processes itself
//! task-NAME            the commands of one task together
//!   command-PID        one command, named after its supervisor
//! command-PID          a command without a task, such as an MCP server
//! ```

mod command;

mod files;

mod find;

pub(crate) use command::Command;
pub(crate) use find::{Missing, find};

use std::io;
use std::path::Path;

use files::{DAEMON, enable, enabled, make, processes};

/// Maximum number of attempts to empty the delegated control group. One attempt may not be enough: while the daemon
/// moves its processes, one of them may start another.
const ATTEMPTS: usize = 100;

/// Moves the daemon and its processes into a control group of their own, so that the delegated control group can have
/// children with limits. Does nothing if this was done before.
pub(crate) fn prepare(delegated: &Path) -> io::Result<()> {
    if enabled(delegated) {
        return Ok(());
    }
    let daemon = delegated.join(DAEMON);
    make(&daemon)?;
    for _ in 0..ATTEMPTS {
        for process in processes(delegated)? {
            // Ignore an error: the process may have ended. If it is still there, the next step fails.
            let _ = std::fs::write(daemon.join("cgroup.procs"), process.to_string());
        }
        match enable(delegated) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {}
            result => return result,
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}
