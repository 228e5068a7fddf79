//! The trash of a blob store. It keeps discarded blobs for a while, so that a mistake can be undone.
//!
//! The file of a discarded blob is `trash/BATCH/ab/cdef…`. The batch is the time at which its blobs were discarded, in
//! milliseconds since 1970. To restore a batch, copy its directories into the store. This module moves and removes
//! blobs by renaming and removing one file after the other. So a crash leaves each blob in the store or in the trash.

use crate::blobs::{Blob, BlobError, BlobHash, BlobStore, TEMPORARY, list, path_of};
use crate::directory::{make_inner_directory, sync};
use crate::recent::Recent;
use polity_society::time::Timestamp;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The directory of discarded blobs in a store.
pub const TRASH: &str = "trash";

/// The blobs to remove from the trash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expired {
    /// The blobs that were discarded before this time.
    Before(Timestamp),
    /// All blobs in the trash.
    Everything,
}

impl Expired {
    fn includes(self, discarded_at: i64) -> bool {
        match self {
            Self::Before(time) => discarded_at < time.as_millis(),
            Self::Everything => true,
        }
    }
}

impl BlobStore {
    /// Moves blobs into the trash. Skips blobs that do not exist, and blobs that this store or a clone of it has stored
    /// lately. The caller must make sure that nobody needs the blobs, and that no other process is storing the same
    /// bytes at this moment.
    pub async fn discard(&self, blobs: Vec<Blob>, now: Timestamp) -> Result<(), BlobError> {
        let (root, recent) = (Arc::clone(&self.root), Arc::clone(&self.recent));
        let work = move || discard(&root, &recent, &blobs, now);
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    /// Returns whether a blob was stored lately, so that [`BlobStore::discard`] skips it.
    pub fn was_stored_lately(&self, hash: &BlobHash) -> bool {
        self.recent.unless_noted(hash.as_str(), || ()).is_none()
    }

    /// Returns whether the store has no blobs and its trash is empty. If the directory of the store does not exist, the
    /// store counts as empty. If a directory cannot be read, the store counts as not empty.
    pub fn is_empty(&self) -> bool {
        let has_entries = |path: &Path| match fs::read_dir(path) {
            Ok(mut entries) => entries.next().is_some(),
            Err(error) => error.kind() != io::ErrorKind::NotADirectory,
        };
        match fs::read_dir(&self.root) {
            Ok(mut inner) => inner.all(|inner| {
                inner.is_ok_and(|inner| inner.file_name() == TEMPORARY || !has_entries(&inner.path()))
            }),
            Err(error) => error.kind() == io::ErrorKind::NotFound,
        }
    }

    /// Lists the discarded blobs that `expired` selects.
    pub async fn discarded(&self, expired: Expired) -> Result<Vec<Blob>, BlobError> {
        let root = Arc::clone(&self.root);
        let work = move || {
            let found = batches(&root, expired)
                .and_then(|batches| batches.iter().map(|batch| list(batch)).collect::<io::Result<Vec<_>>>());
            Ok(found.map_err(failed(&root))?.concat())
        };
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    /// Removes the discarded blobs that `expired` selects. After that, nobody can restore these blobs.
    pub async fn empty_trash(&self, expired: Expired) -> Result<(), BlobError> {
        let root = Arc::clone(&self.root);
        let work = move || {
            for batch in batches(&root, expired).map_err(failed(&root))? {
                fs::remove_dir_all(&batch).map_err(failed(&batch))?;
                polity_points::point!("trash::batch_removed");
            }
            Ok(())
        };
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> BlobError {
    let path = path.to_owned();
    move |source| BlobError::Trash { path, source }
}

fn discard(root: &Path, recent: &Recent, blobs: &[Blob], now: Timestamp) -> Result<(), BlobError> {
    if blobs.is_empty() {
        return Ok(());
    }
    let trash = root.join(TRASH);
    let batch = trash.join(now.as_millis().to_string());
    let mut changed = BTreeSet::from([root.to_owned(), trash.clone(), batch.clone()]);
    for directory in [&trash, &batch] {
        make_inner_directory(directory).map_err(failed(directory))?;
    }
    for Blob { hash, .. } in blobs {
        let (Some(from), Some(to)) = (path_of(root, hash), path_of(&batch, hash)) else { continue };
        if let Some(directory) = to.parent() {
            make_inner_directory(directory).map_err(failed(directory))?;
        }
        polity_points::point!("trash::before_discard");
        match recent.unless_noted(hash.as_str(), || fs::rename(&from, &to)) {
            Some(Ok(())) => {
                changed.extend([&from, &to].into_iter().filter_map(|path| path.parent()).map(Path::to_owned))
            }
            Some(Err(error)) if error.kind() != io::ErrorKind::NotFound => return Err(failed(&from)(error)),
            // The blob does not exist, or it was stored lately.
            Some(Err(_)) | None => {}
        }
        polity_points::point!("trash::discarded");
    }
    for directory in &changed {
        sync(directory).map_err(failed(directory))?;
    }
    Ok(())
}

/// Returns the directories of the batches that `expired` selects. Ignores other files in the trash.
fn batches(root: &Path, expired: Expired) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(root.join(TRASH)) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut found = Vec::new();
    for entry in entries {
        let entry = entry?;
        let discarded_at = entry.file_name().to_str().and_then(|name| name.parse::<i64>().ok());
        if entry.file_type()?.is_dir() && discarded_at.is_some_and(|at| expired.includes(at)) {
            found.push(entry.path());
        }
    }
    found.sort();
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis)
    }

    #[tokio::test]
    async fn what_was_stored_lately_is_not_discarded() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlobStore::open(directory.path()).await.unwrap();
        let blob = store.put(Bytes::from_static(b"first")).await.unwrap();
        assert!(store.was_stored_lately(&blob.hash));
        store.clone().discard(vec![blob.clone()], at(1000)).await.unwrap();
        assert_eq!(store.read(&blob.hash).await.unwrap(), "first");
        // The store of another process has stored no blob lately, so it discards this blob.
        let other = BlobStore::as_it_is(directory.path());
        assert!(!other.was_stored_lately(&blob.hash));
        other.discard(vec![blob.clone()], at(1000)).await.unwrap();
        assert!(matches!(store.read(&blob.hash).await, Err(BlobError::Missing { .. })));
        // The first store writes the same bytes again, although it still remembers that it has stored them lately.
        store.put(Bytes::from_static(b"first")).await.unwrap();
        assert_eq!(store.read(&blob.hash).await.unwrap(), "first");
    }

    #[tokio::test]
    async fn what_is_discarded_can_be_copied_back_until_it_has_expired() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlobStore::open(directory.path()).await.unwrap();
        let first = store.put(Bytes::from_static(b"first")).await.unwrap();
        let second = store.put(Bytes::from_static(b"second")).await.unwrap();
        let missing = Blob { hash: BlobHash::of(b"missing"), size: 0 };
        let cleaner = BlobStore::as_it_is(directory.path());
        cleaner.discard(vec![first.clone(), missing], at(1000)).await.unwrap();
        assert!(matches!(store.read(&first.hash).await, Err(BlobError::Missing { .. })));
        assert_eq!(store.list().await.unwrap(), std::slice::from_ref(&second));
        cleaner.discard(vec![second.clone()], at(2000)).await.unwrap();
        assert!(!store.is_empty(), "the trash counts");

        assert_eq!(store.discarded(Expired::Before(at(2000))).await.unwrap(), std::slice::from_ref(&first));
        store.empty_trash(Expired::Before(at(2000))).await.unwrap();
        assert_eq!(store.discarded(Expired::Everything).await.unwrap(), std::slice::from_ref(&second));
        let (batch, place) =
            (directory.path().join(TRASH).join("2000"), path_of(directory.path(), &second.hash));
        fs::rename(path_of(&batch, &second.hash).unwrap(), place.unwrap()).unwrap();
        assert_eq!(store.read(&second.hash).await.unwrap(), "second");

        fs::remove_file(path_of(directory.path(), &second.hash).unwrap()).unwrap();
        store.empty_trash(Expired::Everything).await.unwrap();
        assert!(store.is_empty());
        // The store can be opened again although its trash directory exists.
        assert!(BlobStore::open(directory.path()).await.unwrap().is_empty());
    }

    #[tokio::test]
    async fn what_somebody_else_put_into_the_trash_stays() {
        let directory = tempfile::tempdir().unwrap();
        let store = BlobStore::open(directory.path()).await.unwrap();
        let notes = directory.path().join(TRASH).join("notes");
        fs::create_dir_all(&notes).unwrap();
        store.empty_trash(Expired::Everything).await.unwrap();
        assert!(notes.exists());
    }
}
