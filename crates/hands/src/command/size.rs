//! Measures how much disk space the directories of a task take.

use polity_society::id::TaskId;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// After a measurement that took the time `t`, polity waits for the time `SHARE * t` before it measures again, but for
/// at most a minute. So polity normally spends less than a twentieth of its time on measurements.
const SHARE: u32 = 20;

/// Maximum number of files and directories that one measurement counts. Further files and directories do not add to
/// the size.
const MOST_ENTRIES: usize = 2_000_000;

/// The measured sizes of the tasks' directories.
#[derive(Debug, Default)]
pub(super) struct Sizes(Mutex<HashMap<TaskId, Measured>>);

#[derive(Clone, Copy, Debug)]
struct Measured {
    bytes: u64,
    /// The earliest time of the next measurement.
    next: Instant,
}

impl Sizes {
    /// Returns the size in bytes of a task's directories. May return an earlier measurement that is at most a
    /// minute old.
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

    /// Removes the stored size of a task.
    pub(super) fn forget(&self, task: &TaskId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(task);
    }
}

/// Returns the number of bytes that the directories take on disk. Does not follow symbolic links.
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
