//! Measures how much a command adds on disk.
//!
//! Walking over a large workspace many times a second would cost too much. So the supervisor watches the free space of
//! the file systems, which costs almost nothing, and walks over the directories only if the free space has shrunk by
//! more than a quarter of the limit. A walk counts only files that changed since the command began, because other
//! programs also add files to the same file systems.

use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::limits::Limits;

/// A walk over the directories begins when the free space, or the number of free files, has become smaller by more than
/// the limit divided by `PART`.
const PART: u64 = 4;

/// Minimum pause after a walk, as a multiple of the time that the walk took.
const SHARE: u32 = 10;

/// A walk stops when it has counted this many files more than the limit allows.
const BEYOND: u64 = 1_000;

/// The bytes and files that a command has added.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Added {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// Free space and free files of one file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Free {
    pub(super) bytes: u64,
    pub(super) files: u64,
}

/// The meter for what a command adds on disk.
#[derive(Debug)]
pub(super) struct Meter {
    places: Vec<(PathBuf, Option<Free>)>,
    /// When the command began, in seconds since 1970.
    began: i64,
    last: Added,
    next: Instant,
}

impl Meter {
    /// Begins to measure these directories.
    pub(super) fn new(places: &[PathBuf]) -> Self {
        let began = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self {
            places: places.iter().map(|place| (place.clone(), free(place))).collect(),
            began: i64::try_from(began).unwrap_or(i64::MAX),
            last: Added::default(),
            next: Instant::now(),
        }
    }

    /// Measures what the command has added so far. `deleted` returns the bytes of deleted files that a process still
    /// holds open.
    pub(super) fn measure(&mut self, limits: &Limits, deleted: impl FnOnce() -> u64) -> Added {
        let begin = Instant::now();
        if begin < self.next {
            return self.last;
        }
        let gone =
            self.places.iter().filter_map(|(place, before)| Some(gone((*before)?, free(place)?))).fold(
                Added::default(),
                |one, other| Added { bytes: one.bytes.max(other.bytes), files: one.files.max(other.files) },
            );
        if !is_suspicious(limits, gone) {
            return self.last;
        }
        let mut walk = Walk {
            began: self.began,
            most: limits.files.saturating_add(BEYOND),
            seen: BTreeSet::new(),
            added: Added::default(),
            sight: Sight::Whole,
        };
        for (place, _) in &self.places {
            walk.directory(place);
        }
        walk.added.bytes = walk.added.bytes.saturating_add(deleted());
        self.last = match walk.sight {
            Sight::Whole => walk.added,
            // A command can hide files from a walk, for example in a path that is too long to open. If the walk could
            // not see everything, all free space that the file system has lost since the beginning counts as used by
            // the command.
            Sight::Partial => {
                Added { bytes: walk.added.bytes.max(gone.bytes), files: walk.added.files.max(gone.files) }
            }
        };
        self.next = Instant::now() + (begin.elapsed() * SHARE).max(Duration::from_millis(50));
        self.last
    }
}

/// Returns how many free bytes and free files a file system has lost.
fn gone(before: Free, now: Free) -> Added {
    Added { bytes: before.bytes.saturating_sub(now.bytes), files: before.files.saturating_sub(now.files) }
}

/// Returns whether a file system has lost so much free space that a walk is necessary.
fn is_suspicious(limits: &Limits, gone: Added) -> bool {
    gone.bytes > limits.disk_bytes / PART || gone.files > limits.files / PART
}

fn free(place: &Path) -> Option<Free> {
    let found = rustix::fs::statvfs(place).ok()?;
    Some(Free { bytes: found.f_bavail.saturating_mul(found.f_frsize), files: found.f_ffree })
}

/// One walk over the directories that a command can change.
struct Walk {
    began: i64,
    most: u64,
    seen: BTreeSet<(u64, u64)>,
    added: Added,
    sight: Sight,
}

/// Whether a walk saw everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sight {
    Whole,
    Partial,
}

impl Walk {
    /// Counts the changed files in a directory and below. Symbolic links are not followed, and a file with several
    /// names counts once.
    fn directory(&mut self, place: &Path) {
        let mut open = vec![place.to_owned()];
        while let Some(directory) = open.pop() {
            let entries = match std::fs::read_dir(&directory) {
                Ok(entries) => entries,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(_) => {
                    self.sight = Sight::Partial;
                    continue;
                }
            };
            for entry in entries.flatten() {
                let Ok(found) = entry.metadata() else { continue };
                // The `ctime` of a file is the time of the last change to its metadata. A command cannot set it, so a
                // command cannot hide a change.
                if found.ctime() >= self.began && self.seen.insert((found.dev(), found.ino())) {
                    self.added.files += 1;
                    self.added.bytes = self.added.bytes.saturating_add(found.blocks().saturating_mul(512));
                }
                if found.is_dir() {
                    open.push(entry.path());
                }
                if self.added.files > self.most {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
