//! Measures the processor time of a process, to the nanosecond, and its memory.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::time::ClockId;
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

/// What a process used for one part of a scenario.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Used {
    /// User and system time of all threads.
    pub(crate) cpu: Duration,
    pub(crate) wall: Duration,
}

/// Measures the parts of a scenario in one process.
pub(crate) struct Meter {
    clock: ClockId,
    cpu: Duration,
    wall: Instant,
}

impl Meter {
    /// Begins to measure the first part in a process.
    pub(crate) fn of(process: u32) -> Result<Self> {
        let process = Pid::from_raw(i32::try_from(process)?);
        let clock = ClockId::pid_cpu_clock_id(process).context("failed to find the process's clock")?;
        Ok(Self { clock, cpu: Duration::from(clock.now()?), wall: Instant::now() })
    }

    /// Ends a part and begins the next part. Returns what the process used for the ended part.
    pub(crate) fn lap(&mut self) -> Result<Used> {
        let (cpu, wall) = (Duration::from(self.clock.now()?), Instant::now());
        let used = Used { cpu: cpu.saturating_sub(self.cpu), wall: wall - self.wall };
        (self.cpu, self.wall) = (cpu, wall);
        Ok(used)
    }
}

/// Returns all processor time that a process has used since its start.
pub(crate) fn cpu(process: u32) -> Result<Duration> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(process)?))?;
    Ok(Duration::from(clock.now()?))
}

/// Returns the resident memory of a process, in MB. `field` is `VmRSS` for the current value and `VmHWM` for the peak.
pub(crate) fn memory(process: u32, field: &str) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    let kibibytes = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<f64>().ok());
    Ok(kibibytes.with_context(|| format!("process {process} has no {field}"))? * 1024.0 / 1e6)
}
