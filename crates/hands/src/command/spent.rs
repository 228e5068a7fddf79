//! Keeps on disk what the commands of each task have used, so that a restart does not reset the limits of a task.

use polity_society::id::TaskId;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// The name of the file in the directory of a task.
const FILE: &str = "spent.json";

/// What all commands of a task have used, from the beginning of the task on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Spent {
    /// The sum of the milliseconds that each command ran.
    pub(super) time_ms: u64,
    /// The sum of the bytes that each command printed.
    pub(super) output_bytes: u64,
}

impl Spent {
    pub(super) fn plus(self, other: Self) -> Self {
        Self {
            time_ms: self.time_ms.saturating_add(other.time_ms),
            output_bytes: self.output_bytes.saturating_add(other.output_bytes),
        }
    }
}

/// The files with what the commands of tasks have used. The methods block.
#[derive(Debug)]
pub(super) struct Ledger {
    state: PathBuf,
    /// Held while `write` gets a sum and replaces the file. Otherwise an older sum could replace a newer one.
    writing: Mutex<()>,
}

impl Ledger {
    /// `state` is the directory that contains a directory for each task.
    pub(super) fn new(state: PathBuf) -> Self {
        Self { state, writing: Mutex::default() }
    }

    /// Reads what the commands of a task have used. If the file is missing or damaged, they count as having used
    /// nothing.
    pub(super) fn read(&self, task: &TaskId) -> Spent {
        let file = self.file(task);
        match fs::read(&file) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(path = %file.display(), %error, "the sums of a task's commands are damaged");
                Spent::default()
            }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Spent::default(),
            Err(error) => {
                tracing::warn!(path = %file.display(), %error, "the sums of a task's commands cannot be read");
                Spent::default()
            }
        }
    }

    /// Writes the sums that `spent` returns. A command must not wait for the disk, so this method does not wait until
    /// the disk has stored the sums. A power cut may lose them.
    pub(super) fn write(&self, task: &TaskId, spent: impl FnOnce() -> Spent) {
        let _alone = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.file(task);
        if let Err(error) = replace(&file, &spent()) {
            tracing::warn!(path = %file.display(), %error, "the sums of a task's commands are not kept");
        }
    }

    fn file(&self, task: &TaskId) -> PathBuf {
        self.state.join(task.as_str()).join(FILE)
    }
}

fn replace(file: &Path, spent: &Spent) -> io::Result<()> {
    let unfinished = file.with_extension("new");
    fs::write(&unfinished, serde_json::to_vec(spent)?)?;
    fs::rename(&unfinished, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_kept_for_each_task() {
        let state = tempfile::TempDir::new().unwrap();
        let ledger = Ledger::new(state.path().to_owned());
        let (one, other) = (TaskId::new("t-1"), TaskId::new("t-2"));
        fs::create_dir(state.path().join("t-1")).unwrap();
        let spent = Spent { time_ms: 5, output_bytes: u64::MAX };
        ledger.write(&one, || spent.plus(Spent { time_ms: 1, output_bytes: 1 }));
        let ledger = Ledger::new(state.path().to_owned());
        assert_eq!(ledger.read(&one), Spent { time_ms: 6, output_bytes: u64::MAX });
        assert_eq!(ledger.read(&other), Spent::default());
        // If the directory of a task was removed, `write` does not make it again.
        ledger.write(&other, || spent);
        assert_eq!(ledger.read(&other), Spent::default());
        fs::write(state.path().join("t-1").join(FILE), "{").unwrap();
        assert_eq!(ledger.read(&one), Spent::default());
    }
}
