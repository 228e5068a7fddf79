//! The workspace of an agent: an open directory that no path leaves.
//!
//! Every operation starts at a directory handle of cap-std. On Linux, cap-std has the kernel resolve the whole path
//! beneath the handle (`openat2` with `RESOLVE_BENEATH`); where this system call does not exist or a sandbox forbids it,
//! and on macOS, cap-std opens the path name by name and follows links itself. Our own use of `openat2` would need the
//! same second way, which is the part that is easily done wrong. Writes go further: they follow no link at all.
//!
//! [`path`] reads what models write, [`protected`] says what is never written; both are pure. The operations block, so
//! async code calls them in `spawn_blocking`.

pub mod fault;
mod hash;
mod list;
pub mod path;
pub mod protected;
mod read;
mod write;

pub use fault::{FileError, Kind};
pub use hash::ContentHash;
pub use list::{Entries, Entry, Listing};
pub use path::{PathFault, WorkspacePath};
pub use read::Metadata;
pub(crate) use read::open_file as open_in;
pub(crate) use write::is_temporary;
pub use write::{Expected, TEMPORARY_PREFIX};

use crate::call::{Access, Caller, Source};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use futures::future::BoxFuture;
use polity_society::refusal::Refusal;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Opens the workspaces of callers.
pub trait Places: Send + Sync {
    /// Opens the workspace in which the caller works, and makes it if need be.
    fn open<'a>(&'a self, caller: &'a Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>>;
}

/// Whether the person vouches for the files of a workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The person vouches for the files.
    Trusted,
    /// An agent that reads a file of the workspace has seen [`Source::Files`].
    Untrusted,
}

/// A directory cannot be opened as a workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {directory}")]
pub struct OpenError {
    /// The directory.
    pub directory: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// An open directory in which an agent works.
#[derive(Debug)]
pub struct Workspace {
    dir: Dir,
    directory: PathBuf,
    given: PathBuf,
    access: Access,
    trust: Trust,
}

impl Workspace {
    /// Opens a directory. Its files count as untrusted until [`Self::with_trust`] says otherwise.
    pub fn open(directory: &Path, access: Access) -> Result<Self, OpenError> {
        let error = |source| OpenError { directory: directory.to_owned(), source };
        let real = directory.canonicalize().map_err(error)?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(error)?;
        let given = std::path::absolute(directory).map_err(error)?;
        Ok(Self { dir, directory: real, given, access, trust: Trust::Untrusted })
    }

    /// Says whether the person vouches for the files.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Returns the absolute path of the directory, without symbolic links.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether agents may change the workspace.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the source that an agent has seen after it has read a file.
    pub fn source(&self) -> Option<Source> {
        match self.trust {
            Trust::Trusted => None,
            Trust::Untrusted => Some(Source::Files),
        }
    }

    /// Reads a path that a model wrote.
    pub fn path(&self, written: &str) -> Result<WorkspacePath, PathFault> {
        WorkspacePath::parse(written, &[&self.directory, &self.given])
    }

    /// Returns what a path leads to. Links are followed inside the workspace.
    pub fn metadata(&self, path: &WorkspacePath) -> Result<Metadata, FileError> {
        read::metadata(&self.dir, path)
    }

    /// Reads a file of at most `limit` bytes. Links are followed inside the workspace.
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, FileError> {
        read::read(&self.dir, path, limit)
    }

    /// Opens a regular file for reading, and returns its size. Links are followed inside the workspace.
    pub fn open_file(&self, path: &WorkspacePath) -> Result<(File, u64), FileError> {
        read::open(&self.dir, path)
    }

    /// Lists a directory and its subdirectories.
    pub fn list(&self, path: &WorkspacePath) -> Result<Listing, FileError> {
        list::list(&self.dir, path)
    }

    /// Lists a directory without its subdirectories.
    pub fn entries(&self, path: &WorkspacePath) -> Result<Entries, FileError> {
        list::entries(&self.dir, path)
    }

    /// Returns an error if agents may not write this path.
    pub fn check_write(&self, path: &WorkspacePath) -> Result<(), FileError> {
        match self.access {
            Access::Read => Err(FileError::ReadOnly),
            Access::Write => write::check_protection(path),
        }
    }

    /// Puts a file with this content at the path if the path holds what is expected. Makes missing directories, keeps
    /// the permissions of a file that exists, and follows no link.
    pub fn write(&self, path: &WorkspacePath, expected: Expected, content: &[u8]) -> Result<(), FileError> {
        self.check_write(path)?;
        write::write(&self.dir, &self.directory, path, expected, content)
    }

    /// Removes the temporary files that a killed process left beside a path.
    pub fn sweep(&self, path: &WorkspacePath) -> Result<(), FileError> {
        self.check_write(path)?;
        write::sweep(&self.dir, path)
    }

    /// Opens a directory. Links are followed inside the workspace.
    pub(crate) fn open_directory(&self, path: &WorkspacePath) -> Result<Dir, FileError> {
        read::open_directory(&self.dir, path)
    }
}

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
