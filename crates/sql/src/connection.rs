//! A connection: how it is opened, and how it runs statements.

use crate::query::{Done, Sql};
use crate::value::{Argument, Value};
use crate::{Error, Row};
use rusqlite::config::DbConfig;
use rusqlite::{CachedStatement, OpenFlags};
use std::fmt::Write as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};

/// What a connection may do with the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read and write, and create the file if it is missing.
    Create,
    /// Read and write a file that exists.
    Write,
    /// Only read. Another process may be writing.
    Read,
    /// Only read a file that nobody changes. SQLite then needs no lock and no log beside the file.
    ReadImmutable,
}

/// Whether a database gets a log (WAL), and when SQLite then syncs the log, so that commits are durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Journal {
    /// Leaves the journal mode of the file as it is.
    AsItIs,
    /// Uses a log, and syncs it at each commit.
    WalFull,
    /// Uses a log, and syncs it only when its contents are moved into the database file.
    WalNormal,
}

/// Where a connection runs its statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// For statements that read or write few rows: on the calling thread.
    Quick,
    /// For statements that may read many rows: on the calling thread, too. But first, the async runtime moves its other
    /// tasks away from this thread.
    Slow,
}

/// How to open a connection.
#[derive(Clone, Debug)]
pub struct Options {
    /// The file of the database.
    pub path: PathBuf,
    /// What connections may do with the file.
    pub access: Access,
    /// When a commit counts as durable.
    pub journal: Journal,
    /// How many KiB of the database's pages a connection keeps in memory at most.
    pub cache: u32,
    /// Where connections run their statements.
    pub pace: Pace,
    /// Counts the statements that connections with these options run.
    pub statements: Arc<AtomicU64>,
}

/// How many prepared statements a connection keeps. The whole program has fewer statements than this.
const PREPARED: usize = 400;
/// SQLite's own limit for cached pages, in KiB.
const CACHE: u32 = 2_000;
/// How long a statement waits while another process has locked the database.
const PATIENCE: Duration = Duration::from_secs(5);

impl Options {
    /// Returns options for quick statements. A connection with these options leaves the journal mode of the file as it
    /// is.
    pub fn new(path: &Path, access: Access) -> Self {
        Self {
            path: path.to_owned(),
            access,
            journal: Journal::AsItIs,
            cache: CACHE,
            pace: Pace::Quick,
            statements: Arc::default(),
        }
    }

    /// Opens a connection.
    ///
    /// # Errors
    ///
    /// Fails if the file cannot be opened, or is no database.
    pub fn connect(&self) -> Result<Connection, Error> {
        let common = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let opened = match self.access {
            Access::Create => rusqlite::Connection::open_with_flags(
                &self.path,
                common | OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
            ),
            Access::Write => {
                rusqlite::Connection::open_with_flags(&self.path, common | OpenFlags::SQLITE_OPEN_READ_WRITE)
            }
            Access::Read => {
                rusqlite::Connection::open_with_flags(&self.path, common | OpenFlags::SQLITE_OPEN_READ_ONLY)
            }
            Access::ReadImmutable => rusqlite::Connection::open_with_flags(
                immutable(&self.path),
                common | OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI,
            ),
        };
        let connection = opened?;
        connection.busy_timeout(PATIENCE)?;
        connection.set_prepared_statement_cache_capacity(PREPARED);
        // Without this setting, SQLite prepares some statements again whenever an argument (such as a `LIMIT`) changes.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        // Savepoints and sorted rows stay in memory; otherwise SQLite writes temporary files for them.
        connection.execute_batch("PRAGMA foreign_keys = ON; PRAGMA temp_store = MEMORY")?;
        // A negative number is a size in KiB; a positive one would be a number of pages.
        connection.execute_batch(&format!("PRAGMA cache_size = -{}", self.cache))?;
        connection.execute_batch(match self.journal {
            Journal::AsItIs => "",
            Journal::WalFull => "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL",
            Journal::WalNormal => "PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL",
        })?;
        Ok(Connection { inner: connection, pace: self.pace, statements: Arc::clone(&self.statements) })
    }
}

/// Returns the URI that opens a file as immutable.
fn immutable(path: &Path) -> String {
    let mut uri = "file:".to_owned();
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' | b'~' => {
                uri.push(char::from(*byte))
            }
            // Writing to a `String` never fails.
            other => _ = write!(uri, "%{other:02X}"),
        }
    }
    uri.push_str("?immutable=1");
    uri
}

/// A connection to a database.
#[derive(Debug)]
pub struct Connection {
    inner: rusqlite::Connection,
    pace: Pace,
    statements: Arc<AtomicU64>,
}

impl Connection {
    /// Changes where the connection runs its statements.
    pub fn set_pace(&mut self, pace: Pace) {
        self.pace = pace;
    }

    /// Closes the connection. The last connection that closes moves the contents of the log into the database file.
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails.
    pub fn close(self) -> Result<(), Error> {
        self.inner.close().map_err(|(_, error)| error.into())
    }

    /// Makes SQLite call a function after every `steps` steps of a statement. If the function returns false, the
    /// statement ends with the code `INTERRUPT` (9).
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails.
    pub fn watch_progress(
        &mut self,
        steps: i32,
        mut go_on: impl FnMut() -> bool + Send + 'static,
    ) -> Result<(), Error> {
        Ok(self.inner.progress_handler(steps, Some(move || !go_on()))?)
    }

    /// Ends [`Connection::watch_progress`].
    ///
    /// # Errors
    ///
    /// Fails if SQLite fails.
    pub fn stop_watching(&mut self) -> Result<(), Error> {
        Ok(self.inner.progress_handler(0, None::<fn() -> bool>)?)
    }

    pub(crate) fn execute(&mut self, sql: &Sql, arguments: Vec<Argument<'_>>) -> Result<Done, Error> {
        self.paced(|connection| {
            let mut statement = connection.prepare(sql, arguments)?;
            let is_reader = statement.readonly();
            let mut rows = statement.raw_query();
            while rows.next()?.is_some() {}
            drop(rows);
            drop(statement);
            Ok(Done { changed: if is_reader { 0 } else { connection.inner.changes() } })
        })
    }

    /// Calls a function with each row until the function returns false.
    pub(crate) fn each(
        &mut self,
        sql: &Sql,
        arguments: Vec<Argument<'_>>,
        mut each: impl FnMut(Row) -> bool,
    ) -> Result<(), Error> {
        self.paced(|connection| {
            let mut statement = connection.prepare(sql, arguments)?;
            let names: Arc<[Box<str>]> = statement.column_names().into_iter().map(Box::from).collect();
            let mut rows = statement.raw_query();
            while let Some(row) = rows.next()? {
                let values = (0..names.len()).map(|at| row.get_ref(at).map(Value::read));
                let values = values.collect::<Result<_, _>>()?;
                if !each(Row { names: Arc::clone(&names), values }) {
                    break;
                }
            }
            Ok(())
        })
    }

    pub(crate) fn execute_all(&mut self, sql: &str) -> Result<(), Error> {
        self.paced(|connection| Ok(connection.inner.execute_batch(sql)?))
    }

    fn prepare(&self, sql: &Sql, arguments: Vec<Argument<'_>>) -> Result<CachedStatement<'_>, Error> {
        self.statements.fetch_add(1, Ordering::Relaxed);
        tracing::trace!(sql = sql.as_str(), "runs a statement");
        let arguments = Argument::check(arguments)?;
        let mut statement = self.inner.prepare_cached(sql.as_str())?;
        // A statement may be given more arguments than it uses.
        let wanted = statement.parameter_count();
        for (at, argument) in arguments.iter().enumerate().take(wanted) {
            statement.raw_bind_parameter(at + 1, argument.bound())?;
        }
        Ok(statement)
    }

    /// Runs a function on the calling thread. If the pace is slow, the async runtime first moves its other tasks away
    /// from this thread.
    fn paced<T>(&mut self, run: impl FnOnce(&mut Self) -> T) -> T {
        let is_shared = || {
            Handle::try_current().is_ok_and(|handle| handle.runtime_flavor() == RuntimeFlavor::MultiThread)
        };
        if self.pace == Pace::Slow && is_shared() {
            tokio::task::block_in_place(|| run(self))
        } else {
            run(self)
        }
    }
}
