//! An open directory that an agent works in.

use crate::fault::FileError;
use crate::list::{self, Entries, Listing};
use crate::path::{PathFault, WorkspacePath};
use crate::read::{self, Metadata};
use crate::write::{self, Expected};
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use polity_society::policy::Source;
use polity_society::workspace::Access;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

/// Whether the content of a workspace's files can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// The files count as safe, for example because polity made the workspace. Reading a file has no effect on what
    /// an agent may do later.
    Trusted,
    /// Strangers may have written the files. If an agent reads a file, polity notes that the agent has seen content
    /// from the untrusted source [`Source::Files`].
    Untrusted,
}

impl Trust {
    /// Returns the source that an agent has seen after reading a file; `None` for trusted files.
    pub fn source(self) -> Option<Source> {
        match self {
            Self::Trusted => None,
            Self::Untrusted => Some(Source::Files),
        }
    }
}

/// A directory cannot be opened as a workspace.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the workspace {directory}")]
pub struct OpenError {
    /// The path that the caller gave.
    pub directory: PathBuf,
    /// The error of the operating system.
    pub source: io::Error,
}

/// An open directory that an agent works in.
#[derive(Debug)]
pub struct Workspace {
    dir: Dir,
    directory: PathBuf,
    given: PathBuf,
    access: Access,
    trust: Trust,
}

impl Workspace {
    /// Opens a directory. Its files are untrusted, unless the caller uses [`Self::with_trust`].
    pub fn open(directory: &Path, access: Access) -> Result<Self, OpenError> {
        let error = |source| OpenError { directory: directory.to_owned(), source };
        let real = directory.canonicalize().map_err(error)?;
        let dir = Dir::open_ambient_dir(&real, ambient_authority()).map_err(error)?;
        let given = std::path::absolute(directory).map_err(error)?;
        Ok(Self { dir, directory: real, given, access, trust: Trust::Untrusted })
    }

    /// Sets whether the content of the files can be trusted.
    #[must_use]
    pub fn with_trust(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }

    /// Returns the absolute path of the directory, with all symbolic links resolved.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns whether agents may change the workspace.
    pub fn access(&self) -> Access {
        self.access
    }

    /// Returns the source that an agent has seen after reading a file; `None` for trusted files.
    pub fn source(&self) -> Option<Source> {
        self.trust.source()
    }

    /// Parses a path that a model wrote.
    pub fn path(&self, written: &str) -> Result<WorkspacePath, PathFault> {
        WorkspacePath::parse(written, &[&self.directory, &self.given])
    }

    /// Returns the type and size of what a path leads to. Follows links that stay inside the workspace.
    pub fn metadata(&self, path: &WorkspacePath) -> Result<Metadata, FileError> {
        read::metadata(&self.dir, path)
    }

    /// Reads a file of at most `limit` bytes. Follows links that stay inside the workspace.
    pub fn read(&self, path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, FileError> {
        read::read(&self.dir, path, limit)
    }

    /// Opens a regular file for reading, and returns its size. Follows links that stay inside the workspace.
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

    /// Writes a file, if what exists at the path now is what the caller expects. Makes missing directories, keeps the
    /// permissions of an existing file, and follows no links.
    pub fn write(&self, path: &WorkspacePath, expected: Expected, content: &[u8]) -> Result<(), FileError> {
        self.check_write(path)?;
        write::write(&self.dir, &self.directory, path, expected, content)
    }

    /// A killed process may have left temporary files in the directory of a path. Removes these files.
    pub fn sweep(&self, path: &WorkspacePath) -> Result<(), FileError> {
        self.check_write(path)?;
        write::sweep(&self.dir, path)
    }

    /// Opens a directory. Follows links that stay inside the workspace.
    pub fn open_directory(&self, path: &WorkspacePath) -> Result<Dir, FileError> {
        read::open_directory(&self.dir, path)
    }
}

#[cfg(test)]
mod tests;
