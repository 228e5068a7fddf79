//! What the machine below is to blame for, and what a person can do about it. Pure.

use polity_artifacts::BlobError;
use std::error::Error;
use std::io;

/// What is wrong with the machine. All of it may pass: the same work is tried again then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There is no room on the disk.
    Full,
    /// Nothing may be written.
    ReadOnly,
    /// The disk does not do what it is told.
    Broken,
    /// Another process has locked the database.
    Locked,
    /// There is not enough memory.
    Memory,
    /// No more files may be open.
    Descriptors,
    /// A file cannot be opened, and SQLite does not say why.
    CannotOpen,
}

impl Trouble {
    /// What an error of the database tells, where it lies with the machine.
    pub(crate) fn of_sql(error: &sqlx::Error) -> Option<Self> {
        match error {
            sqlx::Error::Io(error) => Some(Self::of_io(error)),
            // All readers wait for the disk.
            sqlx::Error::PoolTimedOut => Some(Self::Broken),
            sqlx::Error::Database(error) => {
                let extended: i32 = error.code()?.parse().ok()?;
                // The primary codes of SQLite: BUSY, LOCKED, NOMEM, READONLY, IOERR, FULL, CANTOPEN.
                match extended & 0xff {
                    5 | 6 => Some(Self::Locked),
                    7 => Some(Self::Memory),
                    8 => Some(Self::ReadOnly),
                    10 => Some(Self::Broken),
                    13 => Some(Self::Full),
                    14 => Some(Self::CannotOpen),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// What an error of the file system tells.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        // There is no kind for these two; they have the same numbers wherever there are file descriptors.
        const NFILE: i32 = 23;
        const MFILE: i32 = 24;
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => Self::Full,
            (io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied, _) => Self::ReadOnly,
            (_, Some(NFILE | MFILE)) => Self::Descriptors,
            _ => Self::Broken,
        }
    }

    /// What a failure to store an artifact tells.
    pub(crate) fn of_blob(error: &BlobError) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.map_or(Self::Broken, Self::of_io)
    }

    /// What is wrong, and what to do.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Full => "the disk is full: free some room",
            Self::ReadOnly => "the data directory cannot be written to: make it writable",
            Self::Broken => "the disk fails: look into the log of the system",
            Self::Locked => "another program has locked the database: end it",
            Self::Memory => "there is not enough memory: end other programs",
            Self::Descriptors => "too many files are open: raise `ulimit -n`",
            Self::CannotOpen => {
                "a file of the database cannot be opened: make the data directory writable, and see that enough files \
                 may be open (`ulimit -n`)"
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_file_system() {
        let check = |number: i32, expect: Trouble| {
            assert_eq!(Trouble::of_io(&io::Error::from_raw_os_error(number)), expect, "{number}");
        };
        check(28, Trouble::Full);
        check(30, Trouble::ReadOnly);
        check(13, Trouble::ReadOnly);
        check(24, Trouble::Descriptors);
        check(23, Trouble::Descriptors);
        check(5, Trouble::Broken);
    }
}
