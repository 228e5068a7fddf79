//! Keeps a society in SQLite: one writer that commits in groups, many readers.
//!
//! It is the only crate that speaks SQL, with `polity_artifacts::index`. It must not know turns, tools, prompts or models:
//! it writes what it is told and reads it back. The path of a write: a caller hands [`Store::write`] a job; the writer
//! runs the jobs that wait in one transaction, each behind a savepoint; after the commit it answers the callers, rings
//! the [`Bell`]s and announces the newest event.
//!
//! Functions over tables are free functions over `&mut Connection`, so that each of them can be part of any transaction.

#![expect(missing_docs, reason = "a function of a table and a column of a row are named after what SQL says")]

mod bell;
mod clock;
mod exchange;
mod said;
mod trouble;
mod writer;

pub mod record;

pub mod agents;
pub mod apply;
pub mod contacts;
pub mod events;
pub mod exchanges;
pub mod holds;
pub mod messages;
pub mod notes;
pub mod posts;
pub mod records;
pub mod roles;
pub mod tasks;
pub mod turns;
pub mod usage;
pub mod work;

pub mod view;

pub mod maintenance;
pub mod mint;

#[cfg(test)]
mod testing;
#[cfg(test)]
mod tests;

pub use bell::Bell;
pub use clock::now;
pub use exchange::Exchanges;
pub use polity_artifacts::index as artifacts;
pub use said::said;
pub use sqlx::SqliteConnection as Connection;
pub use writer::{Savepoint, Tx};

use futures::future::BoxFuture;
use maintenance::check::Schema;
use maintenance::database;
use polity_view::Event;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqliteConnection};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::mpsc;
use trouble::Trouble;

/// Names which conversation a thing belongs to: an agent's part in one task. Only root has several.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conversation {
    /// The agent.
    pub agent: polity_society::id::AgentId,
    /// The task.
    pub task: polity_society::id::TaskId,
}

static MIGRATIONS: Migrator = sqlx::migrate!("../../migrations");

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened or made.
    #[error(
        "failed to open the database {path}; {}",
        Trouble::of_sql(source).map_or("if it is damaged, restore a copy, or use another data directory", Trouble::advice)
    )]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: sqlx::Error,
    },
    /// The file is damaged.
    #[error(
        "the database {path} is damaged: {what}; `polity db check` tells more; restore a backup, or use another data \
         directory"
    )]
    Unsound {
        /// The file.
        path: PathBuf,
        /// What is wrong first of all.
        what: String,
    },
    /// The schema is one that this program does not know.
    #[error(
        "the database {path} was written by a newer polity (schema {found}, this one knows up to {known}); \
         use that version, or another data directory"
    )]
    Newer {
        /// The file.
        path: PathBuf,
        /// The newest migration in the file.
        found: i64,
        /// The newest migration of this program.
        known: i64,
    },
    /// The schema is not the one that this program reads, and whoever only reads does not change it.
    #[error(
        "the database {path} has an older schema, or none yet; start a polity on it once, which brings it up to date: \
         polity serve, or polity run"
    )]
    Older {
        /// The file.
        path: PathBuf,
    },
    /// The schema cannot be brought up to date.
    #[error("failed to bring the schema of the database {path} up to date")]
    Migrate {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: MigrateError,
    },
    /// A statement failed.
    #[error("failed to read or write the database{}", with_advice(Trouble::of_sql(.0)))]
    Sql(#[from] sqlx::Error),
    /// The bytes of an artifact could not be written.
    #[error("failed to store an artifact{}", with_advice(Some(Trouble::of_blob(.0))))]
    Blob(#[source] polity_artifacts::BlobError),
    /// The bytes of an artifact cannot be given.
    #[error("failed to read an artifact")]
    Content(#[source] polity_artifacts::BlobError),
    /// A row holds what no version of this program writes.
    #[error("damaged row in table {table}: {what}")]
    Damaged {
        /// The table.
        table: &'static str,
        /// What is wrong, and where.
        what: String,
    },
    /// A write did not hit the rows that it had to.
    #[error("{what}: expected {expected} rows, hit {hit}")]
    WrongRows {
        /// What was written.
        what: &'static str,
        /// How many rows it had to hit.
        expected: u64,
        /// How many it hit.
        hit: u64,
    },
    /// The transaction was not committed.
    #[error("failed to commit: {0}")]
    Commit(String),
    /// A write failed inside, without damage to others.
    #[error("a write panicked")]
    Panicked,
    /// The writer has ended, because the daemon is ending.
    #[error("the database is closed")]
    Closed,
    /// Something was to be written where a data directory was opened for reading alone.
    #[error(
        "the data directory is open for reading alone; start a polity that writes: polity serve, or polity run"
    )]
    ReadOnly,
}

/// How an error goes on that lies with the machine.
fn with_advice(trouble: Option<Trouble>) -> String {
    trouble.map_or_else(String::new, |trouble| format!("; {}", trouble.advice()))
}

impl Error {
    /// Whether it lies with the disk or the operating system, and may pass: the same work is tried again then.
    pub fn may_pass(&self) -> bool {
        match self {
            Self::Sql(error) => Trouble::of_sql(error).is_some(),
            Self::Blob(_) | Self::Commit(_) => true,
            Self::Open { .. }
            | Self::Unsound { .. }
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

/// How much a commit waits for the disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// What is acknowledged survives a power loss (`synchronous=FULL`).
    #[default]
    Full,
    /// What is acknowledged survives a crash of the process (`synchronous=NORMAL`).
    Normal,
}

/// What it means that there is no reader: after the end of the daemon there is none for anybody.
fn unread(error: sqlx::Error) -> Error {
    match error {
        sqlx::Error::PoolClosed => Error::Closed,
        error => Error::Sql(error),
    }
}

/// A cheap handle on the database.
#[derive(Clone, Debug)]
pub struct Store {
    readers: SqlitePool,
    writer: writer::Handle,
}

/// What the writer tells after each commit.
pub struct Signals {
    /// Mailboxes that got something.
    pub bells: mpsc::UnboundedReceiver<Bell>,
    /// The number of the newest event.
    pub events: tokio::sync::watch::Receiver<i64>,
}

/// Readers are few: a page of rows takes well under a millisecond.
const READERS: u32 = 4;

impl Store {
    /// Opens the database in a data directory, makes or updates its schema, and starts the writer.
    pub async fn open(file: &Path, durability: Durability) -> Result<(Self, Signals), Error> {
        let open = |source| Error::of_file(file, source);
        // SQLite gives the files beside it the rights of this one: what people tell a society is theirs.
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
        polity_points::point!("store::looked_at");
        migrate(&mut connection, file).await?;
        polity_points::point!("store::migrated");
        let newest_event = events::newest(&mut connection).await?;
        let readers = readers(options.read_only(true).create_if_missing(false)).await.map_err(open)?;
        let (writer, signals) = writer::start(connection, newest_event);
        Ok((Self { readers, writer }, signals))
    }

    /// Opens the database in a data directory for reading alone: it is not made, brought up to date or repaired. Gives
    /// the number of the newest event, too. Another process may be writing to it.
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
        let readers = readers(options).await.map_err(|source| Error::of_file(file, source))?;
        Ok((Self { readers, writer: writer::Handle::none() }, newest_event))
    }

    /// A connection to read with.
    pub async fn reader(&self) -> Result<sqlx::pool::PoolConnection<sqlx::Sqlite>, Error> {
        self.readers.acquire().await.map_err(unread)
    }

    /// A connection that reads all that it reads as it is at one moment.
    pub async fn moment(&self) -> Result<sqlx::Transaction<'static, sqlx::Sqlite>, Error> {
        self.readers.begin().await.map_err(unread)
    }

    /// Runs a job in a write transaction, and returns once it is committed. The job runs to its end even if the
    /// caller goes away; it must wait for nothing but the database.
    pub async fn write<T, F>(&self, job: F) -> Result<T, Error>
    where
        T: Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Error>> + Send + 'static,
    {
        self.writer.run(job).await
    }

    /// Fails where the database was opened for reading alone.
    pub fn check_writable(&self) -> Result<(), Error> {
        self.writer.check()
    }

    /// Records an event that stands for itself.
    pub async fn note(&self, event: Event) -> Result<(), Error> {
        self.write(move |tx| Box::pin(async move { events::append(tx, &event).await })).await
    }

    /// Waits until all that was asked for is written, and closes the database.
    pub async fn close(&self) {
        // The last connection takes the log into the file, and a reader could not.
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
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(file).map(drop)
}

async fn migrate(connection: &mut SqliteConnection, file: &Path) -> Result<(), Error> {
    let known = MIGRATIONS.iter().map(|migration| migration.version).max().unwrap_or_default();
    match MIGRATIONS.run(&mut *connection).await {
        Ok(()) => Ok(()),
        Err(MigrateError::VersionMissing(found)) => Err(Error::Newer { path: file.to_owned(), found, known }),
        Err(source) => Err(Error::Migrate { path: file.to_owned(), source }),
    }
}

/// Names a row that cannot be read.
pub fn damaged(table: &'static str, id: &str, reason: impl std::fmt::Display) -> Error {
    Error::Damaged { table, what: format!("{id}: {reason}") }
}
