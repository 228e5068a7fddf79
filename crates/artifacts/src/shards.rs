//! The directories of the blobs, one for each first byte of a hash. A directory is created when its first blob is
//! stored, because 256 `mkdir` calls would take most of the time of a start.

use crate::directory::{make_inner_directory, sync};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// Which of the 256 directories exist for certain, also after a power cut.
#[derive(Debug)]
pub(crate) struct Shards([AtomicBool; 256]);

impl Default for Shards {
    fn default() -> Self {
        Self([const { AtomicBool::new(false) }; 256])
    }
}

impl Shards {
    /// Finds the directories that exist, and syncs `root`, so that they stay. Fails if one of them is a symbolic link,
    /// and then returns its path.
    pub(crate) fn open(root: &Path) -> Result<Self, (PathBuf, io::Error)> {
        let failed = |error| (root.to_owned(), error);
        let shards = Self::default();
        for entry in std::fs::read_dir(root).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let Some(first) = entry.file_name().to_str().and_then(first_byte) else { continue };
            make_inner_directory(&entry.path()).map_err(|error| (entry.path(), error))?;
            shards.is_made(first).store(true, Ordering::Release);
        }
        sync(root).map_err(failed)?;
        Ok(shards)
    }

    /// Creates a directory of blobs, unless it exists for certain.
    pub(crate) fn make(&self, root: &Path, shard: &Path) -> io::Result<()> {
        let first = shard.file_name().and_then(|name| name.to_str()).and_then(first_byte);
        let made = first.map(|first| self.is_made(first));
        if made.is_some_and(|made| made.load(Ordering::Acquire)) {
            return Ok(());
        }
        make_inner_directory(shard)?;
        polity_points::point!("blobs::shard_made");
        // Another writer may have created the directory, and not synced it yet. So sync even if it was there.
        sync(root)?;
        if let Some(made) = made {
            made.store(true, Ordering::Release);
        }
        Ok(())
    }

    fn is_made(&self, first: u8) -> &AtomicBool {
        &self.0[usize::from(first)]
    }
}

/// Returns the first byte of the hashes whose blobs are in the directory with this name.
fn first_byte(name: &str) -> Option<u8> {
    let first = u8::from_str_radix(name, 16).ok()?;
    (format!("{first:02x}") == name).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_lower_case_digits_name_a_directory() {
        assert_eq!(first_byte("5f"), Some(0x5f));
        for name in ["5F", "5", "+5", "05f", "tmp", ""] {
            assert_eq!(first_byte(name), None, "{name}");
        }
    }
}
