//! The limits of one command, with their names in the settings.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// The limits of one command (`tools.sandbox.limits.*`).
///
/// If a command exceeds a limit, the supervisor ends the command, and [`How`](crate::How) names the limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct Limits {
    /// Wall time in milliseconds. Default: 10 minutes.
    pub timeout_ms: u64,
    /// Memory in bytes of all processes of the command together, including files in memory. Default: 4 GiB.
    ///
    /// If a single process asks for more memory than this limit, the kernel refuses the request. So the process may
    /// fail before the supervisor ends the command.
    pub memory_bytes: u64,
    /// Number of processes at the same time, including zombies. Default: 512.
    pub processes: u64,
    /// Bytes of standard output and standard error together. Default: 64 MiB.
    pub output_bytes: u64,
    /// Bytes that the command may add on disk: in the workspace, in the home and in the temporary directory. Default:
    /// 10 GiB.
    pub disk_bytes: u64,
    /// Files and directories that the command may add on disk. Default: 500,000.
    pub files: u64,
}

impl Limits {
    /// Returns the maximum wall time as a duration.
    pub fn timeout(&self) -> Duration {
        Duration::from_millis(self.timeout_ms)
    }
}

/// Returns the limit on the number of threads that the kernel enforces. `processes` is the limit that the supervisor
/// enforces.
///
/// The kernel counts the threads of all processes. Its limit is higher than the limit of the supervisor. So the
/// supervisor ends the command, and reports the reason, before the kernel refuses to start a thread.
#[cfg(target_os = "linux")]
pub(crate) fn threads(processes: u64) -> u64 {
    processes.saturating_mul(2).saturating_add(64)
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            timeout_ms: 10 * 60 * 1000,
            memory_bytes: 4 << 30,
            processes: 512,
            output_bytes: 64 << 20,
            disk_bytes: 10 << 30,
            files: 500_000,
        }
    }
}
