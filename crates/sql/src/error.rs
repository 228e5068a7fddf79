//! The error of a statement.

use crate::value::Mismatch;
use std::io;

/// Why a statement failed, or why a value could not be read from a row.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// SQLite reported an error.
    #[error("error returned from database: (code: {code}) {message}")]
    Database {
        /// The extended result code of SQLite.
        code: i32,
        /// What SQLite says about the error.
        message: String,
    },
    /// The file of the database could not be opened or created.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The statement should have returned a row, but returned none.
    #[error("no row was found")]
    NoRow,
    /// A row does not have the column.
    #[error("there is no column {0}")]
    NoColumn(String),
    /// The value of a column has another type than the caller expects.
    #[error("column {column}: {mismatch}")]
    Column {
        column: String,
        #[source]
        mismatch: Mismatch,
    },
    /// An argument cannot be written as JSON.
    #[error("an argument cannot be written as JSON")]
    Argument(#[source] serde_json::Error),
    /// No connection became free in time.
    #[error("no connection to the database became free in time")]
    TimedOut,
    /// The connections have been closed.
    #[error("the database is closed")]
    Closed,
}

impl Error {
    /// Returns the primary result code of SQLite; `None` if SQLite did not report the error.
    pub fn code(&self) -> Option<i32> {
        match self {
            Self::Database { code, .. } => Some(code & 0xff),
            _ => None,
        }
    }

    /// Returns what SQLite says about the error; `None` if SQLite did not report it.
    pub fn message(&self) -> Option<&str> {
        match self {
            Self::Database { message, .. } => Some(message),
            _ => None,
        }
    }
}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        match &error {
            rusqlite::Error::SqliteFailure(failure, message) => Self::Database {
                code: failure.extended_code,
                message: message
                    .clone()
                    .unwrap_or_else(|| rusqlite::ffi::code_to_str(failure.extended_code).to_owned()),
            },
            // SQLite did not report this error. The caller has used the statement in a wrong way.
            _ => Self::Database { code: rusqlite::ffi::SQLITE_MISUSE, message: error.to_string() },
        }
    }
}
