//! The directories of the blobs, one for each first byte of a hash. A directory is created when its first blob is
//! stored. If the daemon created all 256 directories at its start, this would take most of the time of the start.

use crate::directory::{make_inner_directory, sync};
use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The directories that exist and are synced, so that a power cut cannot remove them.
#[derive(Debug, Default)]
pub(crate) struct Shards(Mutex<HashSet<PathBuf>>);

impl Shards {
    /// Finds the directories of blobs in `root`, and syncs `root`. If a symbolic link or a file has the name of such a
    /// directory, fails and returns its path.
    pub(crate) fn open(root: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let failed = |error| (root.to_owned(), error);
        let mut found = HashSet::new();
        for entry in std::fs::read_dir(root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !entry.file_name().to_str().is_some_and(is_shard) {
                continue;
            }
            let path = entry.path();
            match entry.file_type() {
                Ok(file) if file.is_dir() => found.insert(path),
                Ok(file) if file.is_symlink() => return Err((path, polity_disk::Unfit::Link.into())),
                Ok(_) => return Err((path, io::ErrorKind::NotADirectory.into())),
                Err(error) => return Err((path, error)),
            };
        }
        sync(root).map_err(failed)?;
        Ok(Self(Mutex::new(found)))
    }

    /// Creates a directory in `root`, unless it exists.
    pub(crate) fn make(&self, root: &Path, shard: &Path) -> io::Result<()> {
        if self.existing().contains(shard) {
            return Ok(());
        }
        make_inner_directory(shard)?;
        polity_points::point!("blobs::shard_made");
        // Another writer may have created the directory without having synced it yet, so sync in every case.
        sync(root)?;
        self.existing().insert(shard.to_owned());
        Ok(())
    }

    fn existing(&self) -> MutexGuard<'_, HashSet<PathBuf>> {
        // The lock is never poisoned: no code that holds it can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns whether a directory with this name contains blobs.
fn is_shard(name: &str) -> bool {
    name.len() == 2 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}
