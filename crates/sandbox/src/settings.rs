//! The person's settings for commands.

use crate::limits::Limits;
use crate::machine::Level;
use crate::plan::Network;
use std::path::PathBuf;

/// What the person permits to commands (`tools.sandbox` in app.json).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// What commands can reach over the network. Default: nothing.
    pub network: Network,
    /// Further directories and files that commands may read. Default: none.
    pub read: Vec<PathBuf>,
    /// Whether commands may run on a machine that has no sandbox. Default: no.
    pub allow_none: Unconfined,
    /// Limits on each command.
    pub limits: Limits,
    /// Limits on all commands of a task together.
    pub task_limits: TaskLimits,
}

impl Settings {
    /// Returns whether commands may run on a machine with this sandbox level.
    pub fn permit(&self, level: Level) -> bool {
        match level {
            Level::Full | Level::Partial => true,
            Level::None => self.allow_none == Unconfined::Allowed,
        }
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            network: Network::None,
            read: Vec::new(),
            allow_none: Unconfined::Refused,
            limits: Limits::default(),
            task_limits: TaskLimits::default(),
        }
    }
}

/// Whether commands may run on a machine that has no sandbox (`tools.sandbox.allowNone`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unconfined {
    /// No command runs on such a machine: agents do not get the tool group `command`.
    #[default]
    Refused,
    /// Commands run with the rights of the daemon, within their limits.
    Allowed,
}

impl From<bool> for Unconfined {
    fn from(allowed: bool) -> Self {
        if allowed { Self::Allowed } else { Self::Refused }
    }
}

/// Limits on all commands of a task together (`tools.sandbox.taskLimits`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskLimits {
    /// Bytes of memory of all commands that run at the same time. Default: 8 GiB.
    pub memory_bytes: u64,
    /// Number of processes of all commands at the same time. Default: 1,024.
    pub processes: u64,
    /// Bytes on disk of the home and the temporary directory of the task, and of a workspace that polity made.
    /// Default: 20 GiB.
    pub disk_bytes: u64,
    /// Running time of all commands since the beginning of the task, in milliseconds. If commands run at the same time,
    /// the time of each counts. Default: 24 hours.
    pub time_ms: u64,
    /// Bytes that all commands have printed since the beginning of the task. Default: 4 GiB.
    pub output_bytes: u64,
}

impl Default for TaskLimits {
    fn default() -> Self {
        Self {
            memory_bytes: 8 << 30,
            processes: 1_024,
            disk_bytes: 20 << 30,
            time_ms: 24 * 60 * 60 * 1000,
            output_bytes: 4 << 30,
        }
    }
}
