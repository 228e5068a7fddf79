//! How large the directories of a task are.

use polity_society::id::TaskId;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Measuring may take up to about `1 / SHARE` of the time.
const SHARE: u32 = 20;

/// Maximum number of entries that are counted. Further entries do not add to the size.
const MOST_ENTRIES: usize = 2_000_000;

/// The sizes of the directories of tasks, measured from time to time.
#[derive(Debug, Default)]
pub(super) struct Sizes(Mutex<HashMap<TaskId, Measured>>);

#[derive(Clone, Copy, Debug)]
struct Measured {
    bytes: u64,
    /// The earliest time of the next measurement.
    next: Instant,
}

impl Sizes {
    /// Returns the size of these directories of a task. It may have been measured a short while ago.
    pub(super) async fn of(&self, task: &TaskId, directories: Vec<PathBuf>) -> u64 {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(task).copied();
        if let Some(known) = known.filter(|known| Instant::now() < known.next) {
            return known.bytes;
        }
        let begin = Instant::now();
        let measured = tokio::task::spawn_blocking(move || size(directories)).await;
        let bytes = measured.unwrap_or_else(|_| known.map_or(0, |known| known.bytes));
        let next = Instant::now() + (begin.elapsed() * SHARE).min(Duration::from_secs(60));
        let measured = Measured { bytes, next };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(task.clone(), measured);
        bytes
    }

    /// Forgets a task.
    pub(super) fn forget(&self, task: &TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
    }
}

/// Returns how many bytes directories take on disk. Symbolic links are not followed.
fn size(mut open: Vec<PathBuf>) -> u64 {
    let (mut bytes, mut seen) = (0_u64, 0);
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else { continue };
        for entry in entries.flatten() {
            let Ok(found) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(found.blocks().saturating_mul(512));
            seen += 1;
            if found.is_dir() {
                open.push(entry.path());
            }
            if seen >= MOST_ENTRIES {
                return bytes;
            }
        }
    }
    bytes
}
