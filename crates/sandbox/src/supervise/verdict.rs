//! Decides from a sample whether a command exceeds a limit.

use std::time::Duration;

use crate::ended::Usage;
use crate::limits::Limits;
use crate::message::Exceeded;

/// Returns the first limit that the command exceeds, or `None` if it exceeds no limit.
pub(super) fn exceeded(limits: &Limits, elapsed: Duration, usage: &Usage) -> Option<Exceeded> {
    if usage.processes > limits.processes {
        Some(Exceeded::Processes)
    } else if usage.memory_bytes > limits.memory_bytes {
        Some(Exceeded::Memory)
    } else if usage.disk_bytes > limits.disk_bytes || usage.files > limits.files {
        Some(Exceeded::Disk)
    } else if elapsed >= limits.timeout() {
        Some(Exceeded::Time)
    } else {
        None
    }
}

/// Combines two samples: each value of the result is the greater value of the two.
pub(super) fn greater(one: Usage, other: Usage) -> Usage {
    Usage {
        memory_bytes: one.memory_bytes.max(other.memory_bytes),
        processes: one.processes.max(other.processes),
        disk_bytes: one.disk_bytes.max(other.disk_bytes),
        files: one.files.max(other.files),
    }
}

#[cfg(test)]
mod tests;
