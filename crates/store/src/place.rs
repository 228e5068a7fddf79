//! Detects whether the files of the open database have been removed or replaced.
//!
//! A process can still write to an open file that somebody has removed. SQLite then commits as usual, and everything is
//! lost when the process ends. So before the writer acknowledges a transaction, it checks that the paths still lead to
//! the files that were opened.

use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// A file of the open database is not at its path any more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{path} is not the file that was opened")]
pub struct Gone {
    pub path: PathBuf,
}

/// The device number and the inode number of a file. At any time, no two files have the same pair of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    device: u64,
    number: u64,
}

impl Identity {
    fn of(file: &Metadata) -> Self {
        Self { device: file.dev(), number: file.ino() }
    }
}

/// The files of the open database.
#[derive(Debug)]
pub(crate) struct Place(Vec<(PathBuf, Identity)>);

impl Place {
    /// Notes the files of a database that has just been opened.
    pub(crate) fn of(file: &Path) -> io::Result<Self> {
        let mut noted = vec![(file.to_owned(), Identity::of(&fs::metadata(file)?))];
        // SQLite puts its log (WAL) beside the file itself, not beside a link to it. The log keeps its name as long
        // as a connection is open. A database that is opened as immutable has no log.
        let mut log = file.canonicalize()?.into_os_string();
        log.push("-wal");
        if let Ok(found) = fs::metadata(&log) {
            noted.push((log.into(), Identity::of(&found)));
        }
        Ok(Self(noted))
    }

    /// Fails if a path leads to no file or to another file.
    pub(crate) fn check(&self) -> Result<(), Gone> {
        for (path, opened) in &self.0 {
            let is_there = match fs::metadata(path) {
                Ok(found) => Identity::of(&found) == *opened,
                // Any other failure does not tell whether the file is there, so assume that it is there.
                Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
            };
            if !is_there {
                return Err(Gone { path: path.clone() });
            }
        }
        Ok(())
    }
}
