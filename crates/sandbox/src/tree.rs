//! Finds the processes of a command in the host's `/proc`, and measures the memory that they use.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;

use rustix::process::Pid;

/// Maximum number of processes whose descriptors are searched for files in memory. If a command has more processes,
/// only this many of them are searched.
const SEARCHED: usize = 256;

/// Maximum number of descriptors of one process that are searched.
const DESCRIPTORS: usize = 4096;

/// The processes of a command at one moment, and their memory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) processes: Vec<i32>,
    pub(crate) memory_bytes: u64,
}

/// The number of threads of the whole machine. If this number grows, a command may be making many processes. Reading
/// this number is cheap.
#[derive(Debug)]
pub(crate) struct Threads {
    least: u64,
}

impl Threads {
    pub(crate) fn new() -> Self {
        Self { least: threads().unwrap_or(0) }
    }

    /// Returns whether the number of threads of the machine has grown by more than `number / 2` above its lowest value
    /// so far.
    pub(crate) fn grew_by(&mut self, number: u64) -> bool {
        let now = threads().unwrap_or(u64::MAX);
        self.least = self.least.min(now);
        now - self.least > number / 2
    }
}

fn threads() -> Option<u64> {
    threads_of(&std::fs::read_to_string("/proc/loadavg").ok()?)
}

/// Reads the number of threads from the text of `/proc/loadavg`: the 80 in `0.20 0.18 0.12 1/80 11206`.
fn threads_of(text: &str) -> Option<u64> {
    text.split_whitespace().nth(3)?.split_once('/')?.1.parse().ok()
}

/// Samples all descendants of a process. If there are `most` or more descendants, their memory is not measured,
/// because the number of processes already exceeds its limit.
pub(crate) fn sample(root: Pid, most: u64) -> Sample {
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    let processes = descendants(root, most);
    if processes.len() >= most {
        return Sample { processes, memory_bytes: 0 };
    }
    let private: u64 = processes.iter().map(|process| private_bytes(*process)).sum();
    let memory_bytes = private + memory_files(&processes);
    Sample { processes, memory_bytes }
}

/// Returns the descendants of a process. Stops soon after it has found `most` of them.
pub(crate) fn descendants(root: Pid, most: usize) -> Vec<i32> {
    let root = root.as_raw_nonzero().get();
    children_by_task(root, most).unwrap_or_else(|| below(root, &all_parents()))
}

/// Returns the children of a process.
pub(crate) fn children(process: i32) -> Vec<i32> {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else { return Vec::new() };
    tasks
        .flatten()
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|text| text.split_whitespace().filter_map(|child| child.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// Returns the descendants of a process, read from the files `/proc/PID/task/TID/children`. The time depends only on
/// the number of threads of the command. Returns `None` if the kernel was built without these files.
fn children_by_task(root: i32, most: usize) -> Option<Vec<i32>> {
    std::fs::read(format!("/proc/{root}/task/{root}/children")).ok()?;
    let mut found = Vec::new();
    let mut known = BTreeSet::from([root]);
    let mut open = vec![root];
    while let Some(process) = open.pop() {
        for child in children(process).into_iter().filter(|child| known.insert(*child)) {
            found.push(child);
            open.push(child);
        }
        if found.len() >= most {
            break;
        }
    }
    Some(found)
}

/// Returns the parent of each process of the host.
fn all_parents() -> BTreeMap<i32, i32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return BTreeMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(|process: i32| {
            let line = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            Some((process, parent(&line)?))
        })
        .collect()
}

/// Reads the parent from the text of `/proc/PID/stat`. Before the parent comes the name of the program, in parentheses.
/// The name may contain any characters, so the search begins at the last `)`.
fn parent(line: &str) -> Option<i32> {
    let (_, rest) = line.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// Returns all descendants of a process, given the parent of each process.
fn below(root: i32, parents: &BTreeMap<i32, i32>) -> Vec<i32> {
    let mut found = BTreeSet::from([root]);
    loop {
        let before = found.len();
        found.extend(
            parents
                .iter()
                .filter(|(_, parent)| found.contains(parent))
                .map(|(process, _)| *process)
                .collect::<Vec<_>>(),
        );
        if found.len() == before {
            break;
        }
    }
    found.remove(&root);
    found.into_iter().collect()
}

/// Returns the bytes of memory that only this process uses, including swapped memory.
fn private_bytes(process: i32) -> u64 {
    std::fs::read_to_string(format!("/proc/{process}/status"))
        .map(|text| private_of(&text))
        .unwrap_or_default()
}

/// Adds up the sizes in the text of `/proc/PID/status`.
fn private_of(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| {
            let (name, rest) = line.split_once(':')?;
            ["RssAnon", "VmSwap"].contains(&name).then_some(rest)
        })
        .filter_map(|rest| rest.split_whitespace().next()?.parse::<u64>().ok())
        .map(|kilobytes| kilobytes.saturating_mul(1024))
        .sum()
}

/// Returns the total size in bytes of the files from `memfd_create` that the processes hold open. Such files exist
/// only in memory. A file counts once, even if several processes hold the file open. Files in `/dev/shm` do not count
/// here, because that directory has a maximum size of its own.
fn memory_files(processes: &[i32]) -> u64 {
    open_files(processes, |target| target.starts_with("/memfd:"))
}

/// Returns the total size in bytes of the deleted files on disk that a process still holds open. Such files still
/// take space, but no walk over a directory finds them.
pub(crate) fn deleted_bytes(processes: &[i32]) -> u64 {
    open_files(processes, |target| target.ends_with(" (deleted)") && !target.starts_with("/memfd:"))
}

fn open_files(processes: &[i32], fits: impl Fn(&str) -> bool) -> u64 {
    let mut files: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for process in processes.iter().take(SEARCHED) {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{process}/fd")) else { continue };
        for entry in entries.flatten().take(DESCRIPTORS) {
            let path: PathBuf = entry.path();
            let Ok(target) = std::fs::read_link(&path) else { continue };
            if fits(&target.to_string_lossy())
                && let Ok(file) = std::fs::metadata(&path)
                && file.is_file()
            {
                files.insert((file.dev(), file.ino()), file.blocks().saturating_mul(512));
            }
        }
    }
    files.values().sum()
}

#[cfg(test)]
mod tests;
