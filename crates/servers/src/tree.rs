//! Kills the process of a server with everything that it has started.
//!
//! It is not enough to kill the process group: a child that calls `setsid`, as a detached browser does, leaves the
//! group. And when the parent of such a child has ended, nothing shows any more who has started the child. So each
//! server gets an environment variable with a value of its own, and its children inherit the variable. On systems
//! without `/proc`, only the process group is killed.

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};

/// The environment variable with the mark of a server.
pub(crate) const MARK: &str = "POLITY_SERVER";

/// Maximum number of searches for processes. Each search finds the processes that were started during the search before
/// it. So a few searches are enough, unless a server starts processes without end.
const SEARCHES: usize = 100;

/// A value that only one server has in its environment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Mark(String);

/// A process, as `/proc` describes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Process {
    id: i32,
    parent: i32,
    group: i32,
}

impl Mark {
    pub(crate) fn new() -> Self {
        // Each `RandomState` has a random key of its own, so the hash of nothing is a random number.
        Self(format!("{}-{:016x}", std::process::id(), RandomState::new().build_hasher().finish()))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    /// Kills the process group of a server, all processes with this mark, and all their descendants. Blocks for some
    /// milliseconds, but does not wait until the processes have ended.
    ///
    /// First suspends all these processes with SIGSTOP, so that no process starts another one while the others are
    /// killed, and no parent ends before its children are found.
    pub(crate) fn kill_all(&self, leader: Pid) {
        let mut stopped = BTreeSet::new();
        for _ in 0..SEARCHES {
            let found = self.find(leader.as_raw_nonzero().get(), &processes());
            let new: Vec<i32> = found.difference(&stopped).copied().collect();
            if new.is_empty() {
                break;
            }
            new.iter().for_each(|process| send(*process, Signal::STOP));
            stopped.extend(new);
        }
        stopped.iter().for_each(|process| send(*process, Signal::KILL));
        // An error means that no process of the group is left.
        let _ = kill_process_group(leader, Signal::KILL);
    }

    /// Returns the processes that belong to the server, among all processes of the machine.
    fn find(&self, leader: i32, processes: &[Process]) -> BTreeSet<i32> {
        let mut children: BTreeMap<i32, Vec<i32>> = BTreeMap::new();
        for process in processes {
            children.entry(process.parent).or_default().push(process.id);
        }
        let is_marked = |process: &&Process| process.group == leader || self.is_in_environment_of(process.id);
        let mut open: Vec<i32> = processes.iter().filter(is_marked).map(|process| process.id).collect();
        let mut found = BTreeSet::new();
        while let Some(process) = open.pop() {
            if found.insert(process) {
                open.extend(children.get(&process).into_iter().flatten());
            }
        }
        found
    }

    fn is_in_environment_of(&self, process: i32) -> bool {
        let Ok(environment) = std::fs::read(format!("/proc/{process}/environ")) else { return false };
        let is_mark = |variable: &[u8]| {
            let value = variable.strip_prefix(MARK.as_bytes()).and_then(|rest| rest.strip_prefix(b"="));
            value == Some(self.0.as_bytes())
        };
        environment.split(|byte| *byte == 0).any(is_mark)
    }
}

/// Sends a signal to a process, unless it has ended.
fn send(process: i32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(process) {
        let _ = kill_process(pid, signal);
    }
}

/// Returns all processes of the machine.
fn processes() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|id: i32| read(id, &std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?))
        .collect()
}

/// Reads the text of `/proc/PID/stat`. Before the parent comes the name of the program, in parentheses. The name may
/// contain any characters, so the search begins at the last `)`.
fn read(id: i32, stat: &str) -> Option<Process> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(1).map(str::parse::<i32>);
    let (parent, group) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some(Process { id, parent, group })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_program_cannot_pretend_to_be_its_parent() {
        let read = |stat: &str| read(7, stat).map(|process| (process.parent, process.group));
        assert_eq!(read("7 (sh) S 5 6 6 0 -1"), Some((5, 6)));
        assert_eq!(read("7 (a) S 1 1 ) S 5 6 6 0 -1"), Some((5, 6)));
        assert_eq!(read("7 (sh"), None);
        assert_eq!(read("7 (sh) S"), None);
    }

    #[test]
    fn descendants_belong_to_the_server_wherever_they_went() {
        let process = |id, parent, group| Process { id, parent, group };
        // 20 leads the group. 21 has left it, and 22 is a child of 21. 30 and 31 are strangers.
        let all = [
            process(20, 1, 20),
            process(21, 20, 21),
            process(22, 21, 22),
            process(30, 1, 30),
            process(31, 30, 31),
        ];
        assert_eq!(Mark::new().find(20, &all), BTreeSet::from([20, 21, 22]));
        assert_eq!(Mark::new().find(19, &all), BTreeSet::new());
        assert_ne!(Mark::new(), Mark::new());
    }
}
