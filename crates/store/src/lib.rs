//! Stores a society in SQLite. One writer commits jobs in groups; many readers read at the same time.
//!
//! Only this crate and `polity_artifacts::index` contain SQL. This crate knows nothing about turns, tools, prompts or
//! models: it stores and returns what its callers pass. The path of a write: a caller hands [`Store::write`] a job; the
//! writer runs all waiting jobs in one transaction, each after a savepoint. After the commit the writer answers the
//! callers, rings the [`Bell`]s (signals to the supervisor) and announces the newest event.
//!
//! The functions for a table are free functions that take a connection, so each can be part of any transaction.

#![expect(
    missing_docs,
    reason = "functions over a table and fields of a row are named like the SQL that they stand for"
)]

mod bell;
mod clock;
mod exchange;
mod place;
mod said;
mod stopped;
mod trouble;
mod writer;

pub mod record;

pub mod agents;
pub mod apply;
pub mod approvals;
pub mod commands;
pub mod contacts;
pub mod events;
pub mod exchanges;
pub mod fork;
pub mod holds;
pub mod messages;
pub mod notes;
pub mod posts;
pub mod records;
pub mod roles;
pub mod seen;
pub mod sent;
pub mod tasks;
pub mod turns;
pub mod usage;
pub mod work;

pub mod view;

// Circle: `lost` uses names of files that `maintenance` declares, and functions of `maintenance` call `lost` first.
pub mod maintenance;
pub mod mint;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use bell::Bell;
pub use clock::now;
pub use exchange::Exchanges;
pub use place::Gone;
pub use polity_artifacts::index as artifacts;
pub use said::said;
pub use sqlx::SqliteConnection as Connection;
pub use stopped::{Stopped, keep};
pub use writer::{Savepoint, Tx};

use futures::future::BoxFuture;
use maintenance::check::Schema;
use maintenance::database;
use place::Place;
use polity_view::Event;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqliteConnection};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use trouble::Trouble;

/// Identifies a conversation: one agent in one task. Only the agent `root` takes part in several tasks, so only root
/// has several conversations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conversation {
    pub agent: polity_society::id::AgentId,
    pub task: polity_society::id::TaskId,
}

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// An error of the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or created.
    #[error(
        "failed to open the database {path}; {}",
        Trouble::of_sql(source).map_or("if it is damaged, restore a copy, or use another data directory", Trouble::advice)
    )]
    Open {
        path: PathBuf,
        #[source]
        source: sqlx::Error,
    },
    /// The file is damaged.
    #[error(
        "the database {path} is damaged: {what}; run `polity db check` for details; restore a backup, or use \
         another data directory"
    )]
    Unsound {
        path: PathBuf,
        /// The first damage that SQLite reports.
        what: String,
    },
    /// The data directory contains artifacts of a society, but its database is missing or empty.
    #[error(
        "the data directory {data} holds artifacts of a society, but its database polity.db is missing or empty; put \
         polity.db back (with polity.db-wal, if there is one) or restore a backup; for a new society, choose another \
         directory with --data"
    )]
    Lost { data: PathBuf },
    /// A newer version of polity wrote the file. This version does not know the schema of the file.
    #[error(
        "the database {path} was written by a newer polity (schema {found}, this one knows up to {known}); \
         use that version, or another data directory"
    )]
    Newer {
        path: PathBuf,
        /// The newest migration in the file.
        found: i64,
        /// The newest migration that this program knows.
        known: i64,
    },
    /// The schema is older than this program's. The program updates it only if it opens the database for writing.
    #[error(
        "the database {path} has an older schema, or none yet; start a polity on it once, which brings it up to date: \
         polity serve, or polity run"
    )]
    Older { path: PathBuf },
    /// A migration failed.
    #[error("failed to bring the schema of the database {path} up to date")]
    Migrate {
        path: PathBuf,
        #[source]
        source: MigrateError,
    },
    #[error("failed to read or write the database{}", with_advice(Trouble::of_sql(.0)))]
    Sql(#[from] sqlx::Error),
    /// The bytes of an artifact could not be written.
    #[error("failed to store an artifact{}", with_advice(Some(Trouble::of_blob(.0))))]
    Blob(#[source] polity_artifacts::BlobError),
    /// The bytes of an artifact could not be read.
    #[error("failed to read an artifact")]
    Content(#[source] polity_artifacts::BlobError),
    /// A row contains something that no version of this program writes.
    #[error("damaged row in table {table}: {what}")]
    Damaged {
        table: &'static str,
        /// What is wrong, with the id of the row.
        what: String,
    },
    /// A write did not change the expected number of rows.
    #[error("{what}: expected {expected} rows, hit {hit}")]
    WrongRows {
        /// The name of the write, for example "ending a turn".
        what: &'static str,
        expected: u64,
        hit: u64,
    },
    /// The transaction of the write was not committed.
    #[error("failed to commit: {0}")]
    Commit(String),
    /// The job of a write panicked. Other jobs of the same transaction are not affected.
    #[error("a write panicked")]
    Panicked,
    /// The writer has ended, because the daemon is shutting down.
    #[error("the database is closed")]
    Closed,
    /// A write was requested, but the data directory was opened read-only.
    #[error("the data directory is open read-only; start a polity that writes: polity serve, or polity run")]
    ReadOnly,
}

/// Returns what to append to an error message: advice for the person if the machine caused the error, else nothing.
fn with_advice(trouble: Option<Trouble>) -> String {
    trouble.map_or_else(String::new, |trouble| format!("; {}", trouble.advice()))
}

impl Error {
    /// Returns whether the disk or the operating system caused the error. The same work may then succeed later, so
    /// callers retry it.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Sql(error) => Trouble::of_sql(error).is_some(),
            Self::Blob(_) | Self::Commit(_) => true,
            Self::Open { .. }
            | Self::Unsound { .. }
            | Self::Lost { .. }
            | Self::Newer { .. }
            | Self::Older { .. }
            | Self::Migrate { .. }
            | Self::Content(_)
            | Self::Damaged { .. }
            | Self::WrongRows { .. }
            | Self::Panicked
            | Self::Closed
            | Self::ReadOnly => false,
        }
    }
}

/// When a commit counts as durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// An acknowledged write survives a power loss (`synchronous=FULL`).
    #[default]
    Full,
    /// An acknowledged write survives a crash of the process, but perhaps not a power loss (`synchronous=NORMAL`).
    Normal,
}

/// Converts an error of the reader pool. A closed pool means that the daemon is shutting down.
fn unread(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolClosed => Error::Closed,
        error => Error::Sql(error),
    }
}

/// A handle on the database. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    readers: SqlitePool,
    writer: writer::Handle,
    place: Arc<Place>,
}

/// The signals that the writer sends after each commit.
pub struct Signals {
    pub bells: mpsc::UnboundedReceiver<Bell>,
    /// The number of the newest event.
    pub events: tokio::sync::watch::Receiver<i64>,
}

/// The number of reader connections. Few are enough: reading a page of rows takes well under a millisecond.
const READERS: u32 = 4;

impl Store {
    /// Opens the database of a data directory for writing, creates or migrates its schema, and starts the writer.
    pub async fn open(file: &Path, durability: Durability) -> Result<(Self, Signals), Error> {
        let open = |source| Error::of_file(file, source);
        // Check this first: `create_private` below creates a missing file, which would hide that the database was
        // lost.
        maintenance::refuse_lost(file)?;
        // Only the user who runs the daemon may read the file, because it contains what people tell the society. SQLite
        // creates its log beside the file, with the same permissions.
        create_private(file).map_err(|error| open(sqlx::Error::Io(error)))?;
        let options = SqliteConnectOptions::new()
            .filename(file)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(match durability {
                Durability::Full => SqliteSynchronous::Full,
                Durability::Normal => SqliteSynchronous::Normal,
            })
            .foreign_keys(true)
            .busy_timeout(Duration::from_secs(5))
            .disable_statement_logging();
        polity_points::point!("store::created");
        let mut connection = options.connect().await.map_err(open)?;
        database::quick_check(&mut connection, file).await?;
        maintenance::refuse_lost_rows(&mut connection, file).await?;
        polity_points::point!("store::looked_at");
        migrate(&mut connection, file).await?;
        polity_points::point!("store::migrated");
        let newest_event = events::newest(&mut connection).await?;
        let readers = readers(options.read_only(true).create_if_missing(false)).await.map_err(open)?;
        let place = Arc::new(Place::of(file).map_err(|error| open(sqlx::Error::Io(error)))?);
        let (writer, signals) = writer::start(connection, newest_event, Arc::clone(&place));
        Ok((Self { readers, writer, place }, signals))
    }

    /// Opens the database of a data directory read-only; also returns the number of the newest event.
    ///
    /// This function does not create, migrate or repair the database. Another process may be writing to the database.
    pub async fn open_to_read(file: &Path) -> Result<(Self, i64), Error> {
        let (options, mut connection) = database::open_to_read_with_options(file).await?;
        database::quick_check(&mut connection, file).await?;
        match maintenance::check::schema(&mut connection).await? {
            Schema::Known => {}
            Schema::Older => return Err(Error::Older { path: file.to_owned() }),
            Schema::Newer { found, known } => {
                return Err(Error::Newer { path: file.to_owned(), found, known });
            }
        }
        let newest_event = events::newest(&mut connection).await?;
        let failed = |source| Error::of_file(file, source);
        let readers = readers(options).await.map_err(failed)?;
        let place = Arc::new(Place::of(file).map_err(|error| failed(sqlx::Error::Io(error)))?);
        Ok((Self { readers, writer: writer::Handle::none(), place }, newest_event))
    }

    /// Returns a connection for reading.
    pub async fn reader(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>, Error> {
        self.readers.acquire().await.map_err(unread)
    }

    /// Begins a read transaction: all reads in the transaction see the same state of the database.
    pub async fn moment(&self) -> Result<sqlx::Transaction<'static, sqlx::Sqlite>, Error> {
        self.readers.begin().await.map_err(unread)
    }

    /// Runs a job in a write transaction, and returns once the transaction is committed.
    ///
    /// The job runs to its end even if the caller is dropped. It may wait for the database, but for nothing else.
    pub async fn write<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Error>> + Send + 'static,
    {
        self.writer.run(job).await
    }

    /// Does the same as [`Store::write`] for a job that can refuse its request. If the job refuses, the writer still
    /// commits the writes that the job made before the refusal.
    pub async fn write_unless_refused<T, R, F>(&self, job: F) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<Error> + Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Stopped<R>>> + Send + 'static,
    {
        self.write(move |tx| Box::pin(async move { keep(job(tx).await) })).await?
    }

    /// Fails if the database was opened read-only.
    pub fn check_writable(&self) -> Result<(), Error> {
        self.writer.check()
    }

    /// Fails if the files of the database have been removed or replaced since they were opened. Everything that is
    /// written to removed files would be lost.
    pub fn check_place(&self) -> Result<(), Gone> {
        self.place.check()
    }

    /// Records an event in a transaction of its own.
    pub async fn note(&self, event: Event) -> Result<(), Error> {
        self.write(move |tx| Box::pin(async move { events::append(tx, &event).await })).await
    }

    /// Waits until the writer has finished its queued jobs, and closes the database.
    pub async fn close(&self) {
        // The readers close first: the last connection to close moves the log (WAL) into the file, which a reader
        // cannot do.
        self.readers.close().await;
        polity_points::point!("store::before_close");
        self.writer.close().await;
        polity_points::point!("store::closed");
    }
}

async fn readers(options: SqliteConnectOptions) -> Result<SqlitePool, sqlx::Error> {
    SqlitePoolOptions::new().max_connections(READERS).test_before_acquire(false).connect_with(options).await
}

fn create_private(file: &Path) -> std::io::Result<()> {
    polity_disk::open_or_create(file, polity_disk::Links::Followed).map(drop)
}

async fn migrate(connection: &mut SqliteConnection, file: &Path) -> Result<(), Error> {
    let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    match MIGRATIONS.run(&mut *connection).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(found)) => Err(Error::Newer { path: file.to_owned(), found, known }),
        Err(source) => Err(Error::Migrate { path: file.to_owned(), source }),
    }
}

/// Builds the error for a damaged row.
pub fn damaged(table: &'static str, id: &str, reason: impl std::fmt::Display) -> Error {
    Error::Damaged { table, what: format!("{id}: {reason}") }
}
