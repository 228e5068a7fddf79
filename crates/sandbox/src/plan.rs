//! The plan of a command: what to run and with which rights. Plain data from the caller.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::limits::Limits;

/// One command and everything that it may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The text that the shell runs. Linux limits it to 128 KiB.
    pub command: String,
    /// The directory in which the shell starts.
    pub workspace: PathBuf,
    /// Whether the command may change the workspace.
    pub access: Access,
    /// What the command must not change in the workspace.
    pub guarded: Guarded,
    /// Further directories and files that the command may read (`tools.sandbox.read`). Paths that do not exist are
    /// ignored. The command can also connect to a Unix socket in such a directory.
    pub readable: Vec<PathBuf>,
    /// The directories and files that the git repository of the workspace has outside the workspace. The command may
    /// read these paths, even if they are inside a hidden directory.
    pub repository: Vec<PathBuf>,
    /// Directories and files that the command must never see, even if they are inside a directory that the command may
    /// read. These are the data directory and the configuration directory of polity.
    pub hidden: Vec<PathBuf>,
    /// The home directory of the task, which the command may change. The variable `HOME` names this directory.
    pub home: PathBuf,
    /// The temporary directory of the task, which the command may change. At the sandbox level `full` it is `/tmp`.
    pub temporary: PathBuf,
    /// What the command can reach over the network.
    pub network: Network,
    /// The environment of the daemon. The command gets only the variables that [`environment`](crate::environment)
    /// passes on.
    pub environment: BTreeMap<String, String>,
    /// Limits on time, memory, processes, output and disk.
    pub limits: Limits,
    /// The limits that the command shares with other commands, if any.
    pub together: Option<Together>,
    /// The file for the whole output. The file is created, or emptied if it exists. It must be in a directory that
    /// the command cannot change.
    pub output: PathBuf,
    /// The parts of the output that are kept in memory.
    pub excerpt: Excerpt,
}

/// The limits that the commands of one task share. The caller enforces them on every system, with the usage that
/// [`Viewer`](crate::Viewer) shows. This crate enforces them, too, if the system has delegated a control group to the
/// daemon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Together {
    /// Commands with the same name share the limits.
    pub name: String,
    /// Bytes of memory of all processes of the commands.
    pub memory_bytes: u64,
    /// Number of processes of the commands.
    pub processes: u64,
}

/// What a command must not change in its workspace: files such as `.git/config`, which can start programs outside the
/// sandbox.
///
/// At the sandbox level `full`, paths that exist are mounted read-only. If the command changes a guarded path that is
/// not mounted read-only, the supervisor restores the path afterwards, and adds the path to
/// [`Ended::restored`](crate::Ended::restored).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Paths relative to the workspace, whether they exist or not.
    pub paths: Vec<PathBuf>,
    /// The directories of the workspace in which the command must not make those of `names` that do not exist yet. The
    /// empty path is the workspace itself.
    pub directories: Vec<PathBuf>,
    /// The paths that the command must not make, relative to each of `directories`.
    pub names: Vec<PathBuf>,
}

/// Whether the command may change the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The command may change files.
    ReadWrite,
    /// The command may only read.
    ReadOnly,
}

/// What the command can reach over the network (`tools.sandbox.network`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Network {
    /// No network. At the sandbox level `full`, the command has a loopback of its own; at `partial`, it gets no
    /// internet sockets.
    None,
    /// Only these domains, through a proxy in the daemon. This needs the sandbox level `full`.
    Domains(Vec<String>),
    /// The network of the host.
    Full,
}

/// How many bytes of a command's output are kept in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Excerpt {
    /// Bytes from the beginning.
    pub first: usize,
    /// Bytes from the end.
    pub last: usize,
}

impl Default for Excerpt {
    fn default() -> Self {
        Self { first: 8 << 10, last: 24 << 10 }
    }
}

/// How to start the program that contains [`enter`](crate::enter). This crate starts the program outside and inside
/// the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enter {
    /// Absolute path of the program, usually the running program itself.
    pub program: PathBuf,
    /// The first arguments of the program. They make the program call [`enter`](crate::enter) with the arguments that
    /// follow.
    pub first_arguments: Vec<String>,
}
