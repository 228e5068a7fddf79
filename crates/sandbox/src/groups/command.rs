//! The control group of one command. The supervisor makes it, starts the command in it, and removes it.

use std::io;
use std::path::{Path, PathBuf};

use super::files::{DAEMON, enable, enabled, make};
use crate::limits::{Limits, threads};
use crate::message::{Exceeded, Place};
use crate::plan::Together;

/// Maximum number of attempts to make the control group of a command inside the control group of its task. An attempt
/// fails if another supervisor removes the empty control group of the task at the same time.
const ATTEMPTS: usize = 100;

/// The control group of one command.
#[derive(Debug)]
pub(crate) struct Command {
    /// The control group of the daemon and the supervisors.
    daemon: PathBuf,
    /// The control group of the task, and how often the task had reached its memory limit before this command began.
    task: Option<(PathBuf, u64)>,
    own: PathBuf,
}

impl Command {
    /// Makes the control group of a command and sets its limits.
    pub(crate) fn make(place: &Place, limits: &Limits) -> io::Result<Self> {
        let daemon = place.delegated.join(DAEMON);
        let task = place.together.as_ref().map(|together| place.delegated.join(task_name(together)));
        let own = task.as_ref().unwrap_or(&place.delegated).join(format!("command-{}", std::process::id()));
        match (&task, &place.together) {
            (Some(task), Some(together)) => make_inside(task, &own, together)?,
            _ => make(&own)?,
        }
        limit(&own, limits.memory_bytes, limits.processes)?;
        // If the memory is used up, the kernel must kill all processes of the command. If it killed only one of them,
        // the command could go on with wrong results.
        std::fs::write(own.join("memory.oom.group"), "1")?;
        let task = task.map(|task| {
            let before = times_full(&task);
            (task, before)
        });
        Ok(Self { daemon, task, own })
    }

    /// Moves the supervisor into the control group. A process that it starts now begins in the control group, so no
    /// process can escape from it.
    pub(crate) fn enter(&self) -> io::Result<()> {
        std::fs::write(self.own.join("cgroup.procs"), "0")
    }

    /// Moves the supervisor back to the daemon, so that the limits of the command do not apply to the supervisor.
    pub(crate) fn leave(&self) -> io::Result<()> {
        std::fs::write(self.daemon.join("cgroup.procs"), "0")
    }

    /// If the command has reached a limit that the kernel enforces, returns this limit.
    pub(crate) fn exceeded(&self) -> Option<Exceeded> {
        let memory = self.own.join("memory.events");
        let task_is_full = || {
            let (task, before) = self.task.as_ref()?;
            (times_full(task) > *before).then_some(Exceeded::TogetherMemory)
        };
        if count(&memory, "oom_kill") > 0 {
            // The kernel has killed a process. If neither the command nor the task has reached its limit, the machine
            // itself ran out of memory; then no limit is returned.
            let own = (count(&memory, "oom") > 0).then_some(Exceeded::Memory);
            own.or_else(task_is_full)
        } else {
            (count(&self.own.join("pids.events"), "max") > 0).then_some(Exceeded::Processes)
        }
    }

    /// Kills all processes in the control group. Linux 5.14 and newer can do this in one step; on older versions,
    /// nothing happens.
    pub(crate) fn kill(&self) {
        let _ = std::fs::write(self.own.join("cgroup.kill"), "1");
    }
}

impl Drop for Command {
    fn drop(&mut self) {
        // Ignore errors: a control group with processes or children stays.
        let _ = std::fs::remove_dir(&self.own);
        if let Some((task, _)) = &self.task {
            let _ = std::fs::remove_dir(task);
        }
    }
}

/// Makes the control groups of a task and of a command of the task.
fn make_inside(task: &Path, own: &Path, together: &Together) -> io::Result<()> {
    let attempt = || {
        make(task)?;
        limit(task, together.memory_bytes, together.processes)?;
        if !enabled(task) {
            enable(task)?;
        }
        make(own)
    };
    // When another command of the task ends, its supervisor removes the control group of the task if the group is
    // empty. Then try again.
    let mut result = attempt();
    for _ in 1..ATTEMPTS {
        match &result {
            Err(error) if is_gone(error) => result = attempt(),
            Ok(()) | Err(_) => break,
        }
    }
    result
}

/// Returns whether a control group was removed while it was used.
fn is_gone(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::NotFound || error.raw_os_error() == Some(libc::ENODEV)
}

/// Returns how often the commands of a task together have reached their memory limit.
fn times_full(task: &Path) -> u64 {
    count(&task.join("memory.events.local"), "oom")
}

/// Returns the name of the control group of a task.
fn task_name(together: &Together) -> String {
    let plain = |character: char| if character.is_ascii_alphanumeric() { character } else { '-' };
    format!("task-{}", together.name.chars().map(plain).take(100).collect::<String>())
}

/// Sets the limits of a control group.
fn limit(group: &Path, memory_bytes: u64, processes: u64) -> io::Result<()> {
    std::fs::write(group.join("memory.max"), memory_bytes.to_string())?;
    std::fs::write(group.join("pids.max"), threads(processes).to_string())
}

/// Reads one number from a file such as `memory.events`, whose lines look like `oom_kill 1`.
fn count(file: &Path, name: &str) -> u64 {
    count_in(&std::fs::read_to_string(file).unwrap_or_default(), name)
}

fn count_in(text: &str, name: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(key, _)| *key == name)
        .and_then(|(_, number)| number.trim().parse().ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_read_by_its_whole_name() {
        let text = "low 0\nhigh 0\nmax 7\noom 2\noom_kill 3\noom_group_kill 1\n";
        assert_eq!(count_in(text, "oom"), 2);
        assert_eq!(count_in(text, "oom_kill"), 3);
        assert_eq!(count_in(text, "absent"), 0);
    }

    #[test]
    fn a_task_cannot_name_another_directory() {
        let together = Together { name: "../a/b_c.d".to_owned(), memory_bytes: 1, processes: 1 };
        assert_eq!(task_name(&together), "task----a-b-c-d");
    }
}
