//! The result of a command, and the reasons why a command cannot be run.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domains::NotADomain;
use crate::output::Output;
use crate::view::Refused;

/// Maximum length of a command in bytes. The shell gets the whole command as one argument. On Linux, an argument has at
/// most 128 KiB, including the zero byte at its end.
pub(crate) const LONGEST_COMMAND: usize = 128 * 1024 - 1;

/// Why a command could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The plan asks for something that must not be granted.
    #[error(transparent)]
    Refused(#[from] Refused),
    /// The plan has a list of domains. Such a list needs the sandbox level `full`, which the machine lacks.
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
    /// The command contains a zero byte, which no argument of a program can contain.
    #[error("the command contains a zero byte")]
    ZeroByte,
    /// A path of the plan cannot be used.
    #[error("failed to use {}: {source}", .path.display())]
    Path {
        /// The path in the plan.
        path: PathBuf,
        /// The error of the file system.
        source: std::io::Error,
    },
    /// The path of a directory is not UTF-8.
    #[error("the path {} is not UTF-8; choose a directory with another name", .0.display())]
    NotText(PathBuf),
    /// The daemon could not start the supervisor or communicate with it.
    #[error("failed to {action}: {source}")]
    Start {
        /// The action that failed, such as `write the output to its file`.
        action: &'static str,
        /// The error of the system.
        source: std::io::Error,
    },
    /// This system has no sandboxes.
    #[error("commands can be run only on Linux")]
    NotLinux,
    /// The sandbox could not be built, so the command was not started.
    #[error("the sandbox could not be built: {reason}")]
    Sandbox {
        /// The message of the supervisor, bubblewrap or the process inside the sandbox.
        reason: String,
    },
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// Why the command ended.
    pub how: How,
    /// How long the command ran.
    pub duration: Duration,
    /// What the command wrote to standard output and standard error.
    pub output: Output,
    /// The highest usage that the supervisor measured. Each value is the highest of its own measurements.
    pub peak: Usage,
    /// Guarded paths that the command changed and that the supervisor restored.
    pub restored: Vec<PathBuf>,
}

/// Why a command ended. Whatever the reason is, the processes of the command were killed, too. The kernel cannot always
/// end them in time. Then the supervisor reports how many are left, and a warning is logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum How {
    /// The shell ended with this code. The code 128 + n means that signal n ended the shell.
    Exited(i32),
    /// The command ran longer than [`Limits::timeout_ms`](crate::Limits::timeout_ms).
    TimedOut,
    /// The command used more memory than [`Limits::memory_bytes`](crate::Limits::memory_bytes).
    OutOfMemory,
    /// Together, the commands that share limits used more memory than
    /// [`Together::memory_bytes`](crate::Together::memory_bytes) allows. The kernel chose to end this command.
    TogetherOutOfMemory,
    /// The command had more processes than [`Limits::processes`](crate::Limits::processes).
    TooManyProcesses,
    /// The command wrote more output than [`Limits::output_bytes`](crate::Limits::output_bytes).
    TooMuchOutput,
    /// The command added more bytes on disk than [`Limits::disk_bytes`](crate::Limits::disk_bytes), or more files than
    /// [`Limits::files`](crate::Limits::files).
    TooMuchDisk,
    /// The caller cancelled the command.
    Cancelled,
    /// The supervisor of the command died, for example because the machine ran out of memory.
    Lost,
}

/// What a command uses. The supervisor measures these values repeatedly while the command runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Bytes of memory of all processes of the command.
    pub memory_bytes: u64,
    /// Number of processes.
    pub processes: u64,
    /// Bytes that the command added on disk. The supervisor counts these bytes only if the free space of the file
    /// system has become noticeably smaller. Otherwise the number is 0.
    pub disk_bytes: u64,
    /// Number of files that the command added on disk. Like `disk_bytes`, the number is 0 if the supervisor has not
    /// counted.
    pub files: u64,
}
