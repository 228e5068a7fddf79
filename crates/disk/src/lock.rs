//! The lock on a data directory: only one process may use it at a time.
//!
//! A process locks both the lock file and the directory itself. If somebody removes the lock file, a second process
//! can create a new lock file and lock it. But the second process cannot lock the directory, because the first process
//! still has the lock on the directory.

use crate::{Links, open, open_or_create};
use std::fs::{File, TryLockError};
use std::io;
use std::path::Path;

/// The name of the lock file in a data directory.
pub const LOCK: &str = "polity.lock";

/// A locked data directory. The lock ends when this value is dropped or the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
    /// An error if directories cannot be locked, as on some network file systems.
    directory: io::Result<File>,
}

impl Lock {
    /// Locks a data directory.
    ///
    /// # Errors
    ///
    /// Fails if another process holds the lock, or checks it at this moment. Also fails if the lock file cannot be
    /// opened.
    pub fn take(directory: &Path) -> Result<Self, TryLockError> {
        let file = open_or_create(&directory.join(LOCK), Links::Refused).map_err(TryLockError::Error)?;
        file.try_lock()?;
        let locked = File::open(directory).map_err(TryLockError::Error).and_then(|directory| {
            directory.try_lock()?;
            Ok(directory)
        });
        match locked {
            Ok(directory) => Ok(Self { _file: file, directory: Ok(directory) }),
            Err(TryLockError::WouldBlock) => Err(TryLockError::WouldBlock),
            Err(TryLockError::Error(error)) => Ok(Self { _file: file, directory: Err(error) }),
        }
    }

    /// Returns why the directory itself could not be locked, or `None` if it is locked. If it is not locked, somebody who
    /// removes the lock file lets a second process in.
    pub fn weakness(&self) -> Option<&io::Error> {
        self.directory.as_ref().err()
    }
}

/// Whether a process has locked a data directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holder {
    /// No process has locked the directory.
    Nobody,
    /// A process has locked the directory.
    Somebody,
}

/// Returns whether a process has locked a data directory. Several processes can check at the same time.
///
/// # Errors
///
/// Fails if the lock file exists and cannot be opened or locked.
pub fn holder(directory: &Path) -> io::Result<Holder> {
    let of_file = match open(&directory.join(LOCK), Links::Refused) {
        Ok(file) => glance(&file)?,
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Holder::Nobody
        }
        Err(error) => return Err(error),
    };
    if of_file == Holder::Somebody {
        return Ok(of_file);
    }
    // Nobody has locked the lock file. If the lock on the directory cannot be checked, this alone decides.
    Ok(File::open(directory).and_then(|directory| glance(&directory)).unwrap_or(Holder::Nobody))
}

fn glance(file: &File) -> io::Result<Holder> {
    // If this takes the lock, the lock ends as soon as the caller drops the file.
    match file.try_lock_shared() {
        Ok(()) => Ok(Holder::Nobody),
        Err(TryLockError::WouldBlock) => Ok(Holder::Somebody),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_holds_although_its_file_is_removed_or_replaced() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(holder(dir.path()).unwrap(), Holder::Nobody);
        let lock = Lock::take(dir.path()).unwrap();
        let is_held = || {
            assert_eq!(holder(dir.path()).unwrap(), Holder::Somebody);
            assert!(matches!(Lock::take(dir.path()), Err(TryLockError::WouldBlock)));
        };
        is_held();
        std::fs::remove_file(dir.path().join(LOCK)).unwrap();
        is_held();
        std::fs::write(dir.path().join(LOCK), "").unwrap();
        is_held();
        drop(lock);
        assert_eq!(holder(dir.path()).unwrap(), Holder::Nobody);
        drop(Lock::take(dir.path()).unwrap());
    }

    #[test]
    fn somebody_who_checks_is_no_holder() {
        let dir = tempfile::tempdir().unwrap();
        drop(Lock::take(dir.path()).unwrap());
        let checking = File::open(dir.path()).unwrap();
        checking.try_lock_shared().unwrap();
        assert_eq!(holder(dir.path()).unwrap(), Holder::Nobody);
        assert!(matches!(Lock::take(dir.path()), Err(TryLockError::WouldBlock)));
        assert_eq!(holder(&dir.path().join("nowhere")).unwrap(), Holder::Nobody);
    }
}
