//! Stores bytes in files, each named by the hash of its content.

#[cfg(test)]
mod tests;

use crate::directory::{make_directory, make_inner_directory, sync};
use crate::recent::Recent;
use crate::shards::Shards;
use crate::verified::{Look, Verified};
use bytes::Bytes;
use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The name of a blob: the BLAKE3 hash of its bytes, as 64 hexadecimal digits.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobHash(String);

impl BlobHash {
    /// Wraps the text of a hash, for example a text from a database row. The text is not checked here. If it is not a
    /// hash, no blob has this name, and an attempt to read the blob fails with [`BlobError::Missing`].
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Hashes these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::hash(bytes).to_hex().to_string())
    }

    /// Returns the hash as text: 64 hexadecimal digits, unless [`new`](Self::new) was called with another text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BlobHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobHash({})", self.0)
    }
}

/// The name and size of a blob in the store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blob {
    /// The blob's name, which is the hash of its bytes.
    pub hash: BlobHash,
    /// Size in bytes.
    pub size: u64,
}

/// An error of the blob store.
#[derive(Debug, thiserror::Error)]
pub enum BlobError {
    /// The store's directories could not be created or synced, or leftovers of a crash could not be removed.
    #[error("failed to open the blob store at {}", path.display())]
    Open {
        /// The directory that could not be created, synced or cleaned up.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// The bytes could not be stored.
    #[error("failed to store blob {hash}")]
    Put {
        /// The hash of the bytes.
        hash: BlobHash,
        /// The error of the file system.
        source: io::Error,
    },
    /// The store has no such blob.
    #[error("blob {hash} is missing")]
    Missing {
        /// The hash that the caller asked for.
        hash: BlobHash,
    },
    /// The file no longer contains the bytes that were stored.
    #[error("blob {hash} is damaged: its bytes now hash to {found}")]
    Damaged {
        /// The hash that the caller asked for.
        hash: BlobHash,
        /// The hash of the bytes that the file contains now.
        found: BlobHash,
    },
    /// The thread that reads or writes the files did not finish its work, usually because the process is ending.
    #[error("the blob store's task was cut off before it finished")]
    CutOff(#[source] tokio::task::JoinError),
    /// The file exists but could not be read.
    #[error("failed to read blob {hash}")]
    Read {
        /// The hash that the caller asked for.
        hash: BlobHash,
        /// The error of the file system.
        source: io::Error,
    },
    /// The blobs in the store could not be listed.
    #[error("failed to list the blobs in {}", path.display())]
    List {
        /// The root directory of the store.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
    /// Blobs could not be moved into the trash, or be removed from it.
    #[error("failed to discard blobs at {}", path.display())]
    Trash {
        /// The file or directory that could not be moved or removed.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// A blob's open file, positioned at its beginning.
#[derive(Debug)]
pub struct BlobFile {
    /// The file, open for reading only.
    pub file: std::fs::File,
    /// Size in bytes.
    pub size: u64,
}

/// A directory of blobs: `ab/cdef…` for each blob, `tmp/` for files that are being written, and `trash/` for blobs that
/// were discarded.
/// Only one process at a time may write to this directory. A clone of this value uses the same directory.
#[derive(Clone, Debug)]
pub struct BlobStore {
    pub(crate) root: Arc<Path>,
    shards: Arc<Shards>,
    verified: Arc<Verified>,
    pub(crate) recent: Arc<Recent>,
}

pub(crate) const TEMPORARY: &str = "tmp";
/// A file with more bytes than this is first compared with its hash, and only then read into memory as a whole.
const LARGE: u64 = 64 * 1024 * 1024;

impl BlobStore {
    /// Opens the store, and creates missing directories, which only the owner can read.
    /// Removes files that a crash left half written.
    pub async fn open(directory: impl Into<PathBuf>) -> Result<Self, BlobError> {
        let root: PathBuf = directory.into();
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| BlobError::Open { path, source }
        };
        let work = move || {
            make_directory(&root).map_err(failed(&root))?;
            let temporary = root.join(TEMPORARY);
            make_inner_directory(&temporary).map_err(failed(&temporary))?;
            sweep(&temporary).map_err(failed(&temporary))?;
            polity_points::point!("blobs::swept");
            let shards = Shards::open(&root).map_err(|(path, source)| BlobError::Open { path, source })?;
            // Sync the parent directory too: the directory of the store may have just been created in it.
            if let Some(parent) = root.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                sync(parent).map_err(failed(parent))?;
            }
            Ok(Self { shards: Arc::new(shards), ..Self::as_it_is(root) })
        };
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    /// Opens the store for reading only: callers must not call [`put`](Self::put). This function creates and removes
    /// nothing, so another process may write to the same directory at the same time.
    pub fn as_it_is(directory: impl Into<PathBuf>) -> Self {
        Self {
            root: directory.into().into(),
            shards: Arc::default(),
            verified: Arc::default(),
            recent: Arc::default(),
        }
    }

    /// Stores bytes. When this function has returned, even a power cut cannot lose the bytes. Bytes that are already
    /// stored are not written again.
    pub async fn put(&self, bytes: Bytes) -> Result<Blob, BlobError> {
        let store = self.clone();
        let work = move || {
            let hash = BlobHash::of(&bytes);
            store.recent.note(hash.as_str());
            match store.write_once(&hash, &bytes) {
                Ok(()) => Ok(Blob { hash, size: bytes.len() as u64 }),
                Err(source) => Err(BlobError::Put { hash, source }),
            }
        };
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    /// Reads a blob and checks its bytes against its hash.
    pub async fn read(&self, hash: &BlobHash) -> Result<Bytes, BlobError> {
        let Some(path) = path_of(&self.root, hash) else {
            return Err(BlobError::Missing { hash: hash.clone() });
        };
        let wanted = hash.clone();
        let work = move || {
            let failed = |source: io::Error| match source.kind() {
                io::ErrorKind::NotFound => BlobError::Missing { hash: wanted.clone() },
                _ => BlobError::Read { hash: wanted.clone(), source },
            };
            let mut file = open(&path).map_err(failed)?;
            let size = file.metadata().map_err(failed)?.len();
            if size > LARGE {
                // Somebody may have replaced the blob by a huge file. Such a file must not fill the memory, so hash
                // it first.
                let found = hash_of(&mut file).map_err(failed)?;
                if found != wanted {
                    return Err(BlobError::Damaged { hash: wanted, found });
                }
                file.rewind().map_err(failed)?;
            }
            let bytes = polity_disk::read_to_end(&mut file, size).map_err(failed)?;
            let found = BlobHash::of(&bytes);
            if found != wanted {
                return Err(BlobError::Damaged { hash: wanted, found });
            }
            Ok(Bytes::from(bytes))
        };
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    /// Checks a blob's bytes against its hash, and opens it to be read piece by piece. A file that was checked before
    /// and still has the same size and modification time is not checked again.
    pub async fn file(&self, hash: &BlobHash) -> Result<BlobFile, BlobError> {
        let Some(path) = path_of(&self.root, hash) else {
            return Err(BlobError::Missing { hash: hash.clone() });
        };
        let wanted = hash.clone();
        let verified = Arc::clone(&self.verified);
        let work = move || {
            let failed = |source: io::Error| match source.kind() {
                io::ErrorKind::NotFound => BlobError::Missing { hash: wanted.clone() },
                _ => BlobError::Read { hash: wanted.clone(), source },
            };
            let mut file = open(&path).map_err(failed)?;
            // Take the metadata before reading the file. If the file changes during the read, it no longer has the
            // metadata that are remembered here, so the next call checks it again.
            let metadata = file.metadata().map_err(failed)?;
            let look = Look::of(&metadata);
            if verified.is_known(&wanted, look) {
                return Ok(BlobFile { file, size: metadata.len() });
            }
            let found = hash_of(&mut file).map_err(failed)?;
            if found != wanted {
                return Err(BlobError::Damaged { hash: wanted, found });
            }
            file.rewind().map_err(failed)?;
            verified.note(&wanted, look);
            Ok(BlobFile { file, size: metadata.len() })
        };
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    /// Lists all blobs, sorted by hash. Files that are not blobs are skipped; a missing directory counts as empty.
    pub async fn list(&self) -> Result<Vec<Blob>, BlobError> {
        let root = Arc::clone(&self.root);
        let work = move || list(&root).map_err(|source| BlobError::List { path: root.to_path_buf(), source });
        tokio::task::spawn_blocking(work).await.map_err(BlobError::CutOff)?
    }

    fn write_once(&self, hash: &BlobHash, bytes: &[u8]) -> io::Result<()> {
        let Some((path, directory)) =
            path_of(&self.root, hash).and_then(|path| Some((path.clone(), path.parent()?.to_owned())))
        else {
            return Err(io::Error::other("the name of the blob is not a BLAKE3 hash"));
        };
        self.shards.make(&self.root, &directory)?;
        // A symbolic link does not count as the file: the new file replaces the link.
        let is_there = std::fs::symlink_metadata(&path)
            .is_ok_and(|file| file.is_file() && file.len() == bytes.len() as u64);
        if !is_there {
            let temporary = temporary_path(&self.root);
            let written = write_file(&temporary, bytes).and_then(|()| std::fs::rename(&temporary, &path));
            polity_points::point!("blobs::renamed");
            if let Err(error) = written {
                // Report the failed write, not a failed removal. If the temporary file stays, the next `open` removes
                // it.
                let _ = std::fs::remove_file(&temporary);
                return Err(error);
            }
        }
        // Sync even if the file was already there: the writer that put it there may not have synced the directory yet.
        sync(&directory)?;
        polity_points::point!("blobs::stored");
        Ok(())
    }
}

pub(crate) fn list(root: &Path) -> io::Result<Vec<Blob>> {
    let mut blobs = Vec::new();
    let shards = match std::fs::read_dir(root) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(blobs),
        shards => shards?,
    };
    for shard in shards {
        let shard = shard?;
        if !shard.file_type()?.is_dir() {
            continue;
        }
        for file in std::fs::read_dir(shard.path())? {
            let file = file?;
            let hash = BlobHash(format!("{}{}", shard.file_name().display(), file.file_name().display()));
            if path_of(root, &hash).is_none_or(|path| path != file.path()) {
                continue;
            }
            match file.metadata() {
                Ok(found) if found.is_file() => blobs.push(Blob { hash, size: found.len() }),
                Ok(_) => {}
                // Somebody removed the file after the directory was read.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    blobs.sort_by(|a, b| a.hash.cmp(&b.hash));
    Ok(blobs)
}

/// Returns the path of a blob; `None` if the text is not a hash. So the path is always inside the store's directory.
pub(crate) fn path_of(root: &Path, hash: &BlobHash) -> Option<PathBuf> {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    let is_hash = hash.0.len() == 2 * blake3::OUT_LEN && hash.0.bytes().all(is_digit);
    let (shard, rest) = hash.0.split_at_checked(2).filter(|_| is_hash)?;
    Some(root.join(shard).join(rest))
}

/// Opens the file of a blob. Fails if the file or its directory is a symbolic link.
fn open(path: &Path) -> io::Result<File> {
    // The path of a blob always has a directory and a file name of hexadecimal digits, so `NotFound` is never returned
    // here.
    let name = path.file_name().and_then(|name| name.to_str());
    let (Some(directory), Some(name)) = (path.parent(), name) else {
        return Err(io::ErrorKind::NotFound.into());
    };
    polity_disk::open_in(directory, name)
}

/// Hashes the rest of a file without reading it into memory as a whole.
fn hash_of(file: &mut File) -> io::Result<BlobHash> {
    let mut hasher = blake3::Hasher::new();
    io::copy(file, &mut hasher)?;
    Ok(BlobHash(hasher.finalize().to_hex().to_string()))
}

fn sweep(directory: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        std::fs::remove_file(entry?.path())?;
    }
    Ok(())
}

fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    polity_points::point!("blobs::begun");
    let (first, second) = bytes.split_at(bytes.len() / 2);
    file.write_all(first)?;
    polity_points::point!("blobs::half_written");
    file.write_all(second)?;
    polity_points::point!("blobs::written");
    file.sync_all()?;
    polity_points::point!("blobs::before_rename");
    Ok(())
}

/// Returns a path that no other writer uses: the names are numbered, and only one process writes to the store.
fn temporary_path(root: &Path) -> PathBuf {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    root.join(TEMPORARY).join(format!("{}-{number}", std::process::id()))
}
