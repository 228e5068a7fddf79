//! Remembers which blobs were stored lately. The row of a blob is written after the blob, so for a moment no row refers
//! to the blob. A cleaning may run at the same time, and must not remove such a blob.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a blob counts as stored lately. Its row is written within seconds.
const LATELY: Duration = Duration::from_secs(60 * 60);
/// When this many blobs are remembered, `note` forgets the blobs that do not count as stored lately any more.
const KEPT: usize = 1_000;

/// The hashes of the blobs that this process has stored lately.
#[derive(Debug, Default)]
pub(crate) struct Recent(Mutex<HashMap<String, Instant>>);

impl Recent {
    /// Notes a blob before it is stored, even if the store already contains the same bytes.
    pub(crate) fn note(&self, hash: &str) {
        let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= KEPT {
            recent.retain(|_, stored| stored.elapsed() < LATELY);
        }
        recent.insert(hash.to_owned(), Instant::now());
    }

    /// Calls `remove` unless the blob was stored lately. During this call, [`note`](Self::note) waits for the lock. So
    /// whoever wants to store the same bytes at this time waits, then finds that the blob is gone, and writes it again.
    pub(crate) fn unless_noted<T>(&self, hash: &str, remove: impl FnOnce() -> T) -> Option<T> {
        let recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = recent.get(hash).is_some_and(|stored| stored.elapsed() < LATELY);
        (!noted).then(remove)
    }
}
