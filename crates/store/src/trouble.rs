//! Recognises faults of the machine in errors, and advises the person what to do. Pure functions.

use polity_artifacts::BlobError;
use sqlx::migrate::MigrateError;
use std::error::Error;
use std::io;

/// A fault of the machine. The fault may end without a change to polity, so polity tries the same work again later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The disk is full.
    Full,
    /// Writing is not allowed.
    ReadOnly,
    /// The disk fails.
    Broken,
    /// Another process has locked the database.
    Locked,
    /// Memory is exhausted.
    Memory,
    /// The limit of open files is reached.
    Descriptors,
    /// A file cannot be opened, and SQLite does not report the reason.
    CannotOpen,
}

impl Trouble {
    /// Returns the fault that caused an error of the database, or `None` if the machine did not cause it.
    pub(crate) fn of_sql(error: &polity_sql::Error) -> Option<Self> {
        match error {
            polity_sql::Error::Io(error) => Some(Self::of_io(error)),
            // No reader connection became free in time, because the disk is too slow or fails.
            polity_sql::Error::TimedOut => Some(Self::Broken),
            polity_sql::Error::Database { code, .. } => Self::of_code(*code),
            _ => None,
        }
    }

    /// Returns the fault that made a migration fail, or `None` if the machine did not cause the failure.
    pub(crate) fn of_migration(error: &MigrateError) -> Option<Self> {
        let (code, _) = sql_of_migration(error)?;
        Self::of_code(code)
    }

    /// Returns the fault that an extended result code of SQLite means.
    fn of_code(extended: i32) -> Option<Self> {
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

    /// Returns the fault that caused an error of the file system.
    pub(crate) fn of_io(error: &io::Error) -> Self {
        // `ErrorKind` has no variants for ENFILE and EMFILE. Their numbers are the same on every Unix.
        const NFILE: i32 = 23;
        const MFILE: i32 = 24;
        match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded, _) => Self::Full,
            (io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied, _) => Self::ReadOnly,
            (_, Some(NFILE | MFILE)) => Self::Descriptors,
            _ => Self::Broken,
        }
    }

    /// Returns the fault that caused a failure to store an artifact.
    pub(crate) fn of_blob(error: &BlobError) -> Self {
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        cause.map_or(Self::Broken, Self::of_io)
    }

    /// Returns what is wrong, and what the person can do.
    pub(crate) fn advice(self) -> &'static str {
        match self {
            Self::Full => "the disk is full: free some room",
            Self::ReadOnly => "the data directory cannot be written to: make it writable",
            Self::Broken => "the disk fails: look into the log of the system",
            Self::Locked => "another program has locked the database: end it",
            Self::Memory => "there is not enough memory: end other programs",
            Self::Descriptors => "too many files are open: raise `ulimit -n`",
            Self::CannotOpen => {
                "a file of the database cannot be opened: make the data directory writable, or raise the limit \
                 of open files (`ulimit -n`)"
            }
        }
    }
}

/// Returns the extended result code and the message of SQLite if SQLite made a migration fail.
pub(crate) fn sql_of_migration(error: &MigrateError) -> Option<(i32, String)> {
    let mut cause: Option<&(dyn Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(failure) = error.downcast_ref::<sqlx::Error>() {
            let failure = failure.as_database_error()?;
            return Some((failure.code()?.parse().ok()?, failure.message().to_owned()));
        }
        cause = error.source();
    }
    None
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
