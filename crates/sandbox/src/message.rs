//! The messages between the daemon, the supervisor and the process inside the sandbox: one JSON value per line.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::ended::Usage;
use crate::limits::Limits;
use crate::machine::Level;
use crate::plan::Together;
use crate::supervise::leash::Leash;
use crate::walls::Wall;
use crate::walls::landlock::Rule;

/// The only line from the daemon to the supervisor. The daemon stops the command by closing the connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Launch {
    /// The program that the supervisor starts: bubblewrap at the sandbox level `full`, else the process inside the
    /// sandbox directly.
    pub(crate) program: PathBuf,
    pub(crate) arguments: Vec<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) limits: Limits,
    /// Directories whose growth counts as disk use.
    pub(crate) growing: Vec<PathBuf>,
    /// Where the supervisor makes the control group of the command; absent if the system has delegated none to the
    /// daemon.
    pub(crate) place: Option<Place>,
    /// How the supervisor kills all processes of the command at the same time.
    pub(crate) leash: Leash,
    /// The guarded paths to restore; absent if the command cannot change the workspace.
    pub(crate) guard: Option<Guard>,
    /// The message that the supervisor passes on to the process inside the sandbox.
    pub(crate) inside: Inside,
}

/// Where the supervisor makes the control group of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Place {
    /// The control group that the system has delegated to the daemon.
    pub(crate) delegated: PathBuf,
    /// The limits that the command shares with other commands.
    pub(crate) together: Option<Together>,
}

/// The guarded paths that the supervisor restores when the command has ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Guard {
    pub(crate) workspace: PathBuf,
    /// The paths that are not mounted read-only, relative to the workspace.
    pub(crate) paths: Vec<PathBuf>,
    /// The directories, relative to the workspace, in which the command must not make any of `names`.
    pub(crate) directories: Vec<PathBuf>,
    /// The paths that the command must not make, relative to each of `directories`.
    pub(crate) names: Vec<PathBuf>,
}

/// The only line from the supervisor to the process inside the sandbox.
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

/// Whether a forwarder passes the connections of the command on to a proxy in the daemon.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum WayOut {
    None,
    Proxy,
}

/// The limits that the kernel enforces on each process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessLimits {
    pub(crate) memory_bytes: u64,
    pub(crate) file_bytes: u64,
    /// Maximum number of processes in the sandbox's user namespace. Absent if the kernel does not count processes per
    /// namespace.
    pub(crate) processes: Option<u64>,
}

/// A line from the process inside the sandbox to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FromInside {
    /// Landlock and seccomp are installed, and the shell starts now.
    Ready,
    /// Landlock or seccomp could not be installed, or the shell could not be started.
    Failed(String),
}

/// A line from the supervisor to the daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum FromSupervisor {
    /// Landlock and seccomp are installed, and the shell starts now.
    Ready,
    /// The command uses this much now. The supervisor sends this line when the usage changes. If the daemon does not
    /// read its lines in time, the line is dropped.
    Uses(Usage),
    /// The command was not started, for this reason.
    Failed(String),
    /// The command has ended, and so have all processes that it started, except those that `left` counts.
    Ended(Report),
}

/// How a command ended, according to the supervisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    pub(crate) why: Why,
    pub(crate) peak: Usage,
    /// Guarded paths that the command had changed and that the supervisor has restored.
    pub(crate) restored: Vec<PathBuf>,
    /// Number of processes that could not be killed in time.
    pub(crate) left: u64,
}

/// Why a command ended, according to the supervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Why {
    /// The shell ended with this code. The code 128 + n means that signal n ended the shell.
    Exited(i32),
    /// The daemon closed the connection.
    Stopped,
    /// The command exceeded a limit.
    Exceeded(Exceeded),
}

/// The limits that the supervisor or the kernel enforces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Exceeded {
    Time,
    Memory,
    Processes,
    Disk,
    /// The memory limit that several commands share. The supervisor reports it only if the kernel enforces the limit
    /// with a control group. Otherwise the daemon adds up the samples of these commands.
    TogetherMemory,
}
