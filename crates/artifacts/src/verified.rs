//! Which blobs were found to be what they are called, so that not every reading of a part reads all.

use crate::BlobHash;
use lru::LruCache;
use std::fs::Metadata;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// How many blobs are remembered; the least recently used is forgotten first.
const PLACES: usize = 1024;

/// What a file was like when it was read as a whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Look {
    size: u64,
    changed: Option<SystemTime>,
}

impl Look {
    /// What a file is like now.
    pub(crate) fn of(file: &Metadata) -> Self {
        Self { size: file.len(), changed: file.modified().ok() }
    }
}

/// The blobs that were found to be sound, and what their files were like then.
#[derive(Debug)]
pub(crate) struct Verified(Mutex<LruCache<BlobHash, Look>>);

impl Default for Verified {
    fn default() -> Self {
        Self(Mutex::new(LruCache::unbounded()))
    }
}

impl Verified {
    /// Whether the blob was sound when its file was like this.
    pub(crate) fn is_known(&self, hash: &BlobHash, look: Look) -> bool {
        // Without a time nothing tells whether the file has changed.
        look.changed.is_some() && self.blobs().get(hash) == Some(&look)
    }

    /// Notes that the blob was sound when its file was like this.
    pub(crate) fn note(&self, hash: &BlobHash, look: Look) {
        let mut blobs = self.blobs();
        blobs.put(hash.clone(), look);
        while blobs.len() > PLACES {
            blobs.pop_lru();
        }
    }

    fn blobs(&self) -> std::sync::MutexGuard<'_, LruCache<BlobHash, Look>> {
        // Nothing that can panic happens while it is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
