//! How a command ends, and why a command cannot be run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domains::NotADomain;
use crate::output::Output;
use crate::view::Refused;

/// Longest text that Linux accepts as one argument of a program, without the zero at its end.
pub(crate) const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan asks for something that must not be granted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// A list of domains needs namespaces.
    #[error(
        "a list of domains needs the sandbox level \"full\"; set tools.sandbox.network to \"none\" or \"full\", or raise the level (polity doctor)"
    )]
    DomainsNeedFull,
    /// The list of domains has an entry that names no domain.
    #[error(transparent)]
    NotADomain(#[from] NotADomain),
    /// The command is too long for one argument.
    #[error(
        "the command has {0} bytes, and Linux accepts {LONGEST_COMMAND}; write it to a file and run that"
    )]
    CommandTooLong(usize),
    /// A byte that no argument can contain.
    #[error("the command contains a zero byte")]
    ZeroByte,
    /// A path of the plan cannot be used.
    #[error("failed to use {}: {source}", .path.display())]
    Path {
        /// The path.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The path of a directory is not text.
    #[error("the path {} is not UTF-8; choose a directory with another name", .0.display())]
    NotText(PathBuf),
    /// The supervisor could not be started or spoken to.
    #[error("failed to {action}: {source}")]
    Start {
        /// What failed.
        action: &'static str,
        /// Why.
        source: std::io::Error,
    },
    /// This system has no sandboxes.
    #[error("commands can be run only on Linux")]
    NotLinux,
    /// The sandbox could not be built; nothing of the command has run.
    #[error("the sandbox could not be built: {reason}")]
    Sandbox {
        /// What the supervisor, bubblewrap or the process inside said.
        reason: String,
    },
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why it ended.
    pub how: How,
    /// How long it ran.
    pub duration: Duration,
    /// What it wrote.
    pub output: Output,
    /// What it used at its peak.
    pub peak: Usage,
    /// Guarded paths that it changed, and that were put back.
    pub restored: Vec<PathBuf>,
}

/// Why a command ended. In every case all of its processes are gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The shell ended with this code; as shells report it, 128 + n means that signal n ended it.
    Exited(i32),
    /// It ran longer than [`Limits::timeout_ms`](crate::Limits::timeout_ms).
    TimedOut,
    /// It used more memory than [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    OutOfMemory,
    /// It had more processes than [`Limits::processes`](crate::Limits::processes).
    TooManyProcesses,
    /// It wrote more than [`Limits::output_bytes`](crate::Limits::output_bytes).
    TooMuchOutput,
    /// It added more than [`Limits::disk_bytes`](crate::Limits::disk_bytes) or [`Limits::files`](crate::Limits::files) on disk.
    TooMuchDisk,
    /// The caller cancelled it.
    Cancelled,
    /// Its supervisor died, for example because the machine ran out of memory.
    Lost,
}

/// The peak usage of a command, according to the samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Bytes of memory.
    pub memory_bytes: u64,
    /// Processes.
    pub processes: u64,
    /// Bytes added on disk. 0 if the file system's free space never shrank enough to count them.
    pub disk_bytes: u64,
    /// Files added on disk, counted under the same condition.
    pub files: u64,
}
