//! What the daemon, the supervisor and the process inside the sandbox tell each other: one JSON value per line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ended::Usage;
use crate::limits::Limits;
use crate::machine::Level;
use crate::supervise::leash::Leash;
use crate::walls::Wall;
use crate::walls::landlock::Rule;

/// First line from the daemon to the supervisor. After it the daemon sends nothing; closing the connection stops the
/// command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// What the supervisor starts: bubblewrap, or the program inside at once.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) limits: Limits,
    /// Directories whose growth counts as disk use.
    pub(crate) growing: Vec<PathBuf>,
    /// The means to reach all processes of the command at the same time.
    pub(crate) leash: Leash,
    /// The workspace, if guarded paths must be put back there.
    pub(crate) guard: Option<Guard>,
    /// What is passed on to the process inside.
    pub(crate) inside: Inside,
}

/// Paths to put back when the command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Guard {
    pub(crate) workspace: PathBuf,
    /// Relative to the workspace.
    pub(crate) paths: Vec<PathBuf>,
}

/// The only line from the supervisor to the process inside.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Inside {
    pub(crate) level: Level,
    pub(crate) command: String,
    pub(crate) directory: PathBuf,
    pub(crate) limits: ProcessLimits,
    pub(crate) landlock: Vec<Rule>,
    pub(crate) wall: Option<Wall>,
    pub(crate) way_out: WayOut,
}

/// Whether connections are forwarded to a proxy of the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WayOut {
    None,
    Proxy,
}

/// Resource limits of each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
    pub(crate) memory_bytes: u64,
    pub(crate) file_bytes: u64,
    /// Maximum number of processes of the user in the sandbox's user namespace. Absent if the kernel does not count
    /// them per namespace.
    pub(crate) processes: Option<u64>,
}

/// A line from the process inside to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FromInside {
    /// All walls are installed; the shell starts now.
    Ready,
    /// A wall could not be built, or the shell could not be started.
    Failed(String),
}

/// A line from the supervisor to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FromSupervisor {
    /// All walls are installed; the shell starts now.
    Ready,
    /// The command uses this much now. Sent when it changes; lost if the daemon does not read.
    Uses(Usage),
    /// The command was not started, for this reason.
    Failed(String),
    /// The command and everything that it started are gone.
    Ended(Report),
}

/// How a command ended, as the supervisor saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) why: Why,
    pub(crate) peak: Usage,
    /// Guarded paths that were put back.
    pub(crate) restored: Vec<PathBuf>,
    /// Processes that could not be killed in time.
    pub(crate) left: u64,
}

/// Why a command ended, as the supervisor saw it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Why {
    /// The shell ended with this code; 128 + n for signal n.
    Exited(i32),
    /// The daemon closed the connection.
    Stopped,
    /// A limit was exceeded.
    Exceeded(Exceeded),
}

/// The limits that the supervisor watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Exceeded {
    Time,
    Memory,
    Processes,
    Disk,
}
