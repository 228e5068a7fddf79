//! Remembers the blobs whose bytes were checked against their hash. Without this memory, polity would have to read
//! the whole file for each part of a blob that it reads.

use crate::BlobHash;
use lru::LruCache;
use std::fs::Metadata;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// Maximum number of blobs to remember; the least recently used one is forgotten first.
const PLACES: usize = 1024;

/// A file's size and modification time, to notice that it has changed since it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    size: u64,
    changed: Option<SystemTime>,
}

impl Look {
    /// Takes the size and the modification time from a file's current metadata.
    pub(crate) fn of(file: &Metadata) -> Self {
        Self { size: file.len(), changed: file.modified().ok() }
    }
}

/// The blobs whose bytes matched their hash, each with the size and modification time of its file at that moment.
#[derive(Debug)]
pub(crate) struct Verified(Mutex<LruCache<BlobHash, Look>>);

impl Default for Verified {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl Verified {
    /// Whether the blob's bytes matched its hash when its file had this size and time.
    pub(crate) fn is_known(&self, hash: &BlobHash, look: Look) -> bool {
        // Without a modification time, a change of the file could go unnoticed.
        look.changed.is_some() && self.blobs().get(hash) == Some(&look)
    }

    /// Remembers that the blob's bytes match its hash. This is valid as long as its file has this size and time.
    pub(crate) fn note(&self, hash: &BlobHash, look: Look) {
        let mut blobs = self.blobs();
        blobs.put(hash.clone(), look);
        while blobs.len() > PLACES {
            blobs.pop_lru();
        }
    }

    fn blobs(&self) -> std::sync::MutexGuard<'_, LruCache<BlobHash, Look>> {
        // The lock is never poisoned: no code that holds it can panic.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
