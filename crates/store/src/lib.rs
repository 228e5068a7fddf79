//! Stores a society in SQLite. One writer commits jobs in groups; several readers read at the same time.
//!
//! Only this crate and `polity_artifacts::index` contain SQL. This crate knows nothing about turns, tools, prompts or
//! models: it stores and returns what its callers pass. The path of a write: a caller hands [`Store::write`] a job. The
//! writer runs all waiting jobs in one transaction. If there are several, it sets a savepoint before each, so that it
//! can undo one job alone. After the commit, the writer answers the callers, rings the [`Bell`]s (signals to the
//! supervisor) and announces the newest event.
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
mod readers;
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

// Circle: `lost` uses the file names that `maintenance` declares, and `maintenance` calls functions of `lost`.
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
pub use polity_sql::Connection;
pub use readers::{Moment, Reader};
pub use said::said;
pub use stopped::{Stopped, keep};
pub use writer::{Savepoint, Tx};

use futures::future::BoxFuture;
use maintenance::check::Schema;
use maintenance::database::{self, Checked};
use place::Place;
use polity_sql::{Access, Journal, Options, Pace};
use polity_view::Event;
use readers::Readers;
use sqlx::migrate::{MigrateError, Migrator};
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::mpsc;
use trouble::Trouble;

/// Identifies a conversation: one agent in one task. Only the agent `root` takes part in several tasks, so only root
/// has several conversations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Conversation {
    pub agent: polity_society::id::AgentId,
    pub task: polity_society::id::TaskId,
}

/// How many KiB of pages the writer keeps. With thousands of agents, each commit touches pages all over the database; in
/// a cache of SQLite's usual 2 MB, the writer would find few of them, and fewer the larger the database grows.
const WRITER_CACHE: u32 = 32 * 1024;

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
        source: polity_sql::Error,
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
    /// The schema is older than the schema of this program. Only [`Store::open`], which opens the database for writing,
    /// updates an old schema.
    #[error(
        "the database {path} has an older schema, or none yet; start a polity on it once, which brings it up to date: \
         polity serve, or polity run"
    )]
    Older { path: PathBuf },
    /// A migration failed.
    #[error(
        "failed to bring the schema of the database {path} up to date{}",
        with_advice(Trouble::of_migration(source))
    )]
    Migrate {
        path: PathBuf,
        #[source]
        source: MigrateError,
    },
    #[error("failed to read or write the database{}", with_advice(Trouble::of_sql(.0)))]
    Sql(#[from] polity_sql::Error),
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

/// A handle on the database. It is cheap to clone.
#[derive(Clone, Debug)]
pub struct Store {
    readers: Readers,
    writer: writer::Handle,
    place: Arc<Place>,
    statements: Arc<AtomicU64>,
}

/// The signals that the writer sends after each commit.
pub struct Signals {
    pub bells: mpsc::UnboundedReceiver<Bell>,
    /// The number of the newest event.
    pub events: tokio::sync::watch::Receiver<i64>,
    /// Whether the caller must check the database with [`maintenance::check_structure`] while it is used. This is
    /// needed if the last process did not close the database, and the database was too large to be checked completely
    /// at start.
    pub to_check: bool,
}

impl Store {
    /// Opens the database of a data directory for writing, creates or migrates its schema, and starts the writer.
    pub async fn open(file: &Path, durability: Durability) -> Result<(Self, Signals), Error> {
        Self::open_to_write(file, durability).await.map_err(|error| error.of_opening(file))
    }

    async fn open_to_write(file: &Path, durability: Durability) -> Result<(Self, Signals), Error> {
        let open = |source| Error::of_file(file, source);
        // Check this first: `create_private` below creates a missing file, which would hide that the database was
        // lost.
        maintenance::refuse_lost(file)?;
        // Only the user who runs the daemon may read the file, because it contains what people tell the society. SQLite
        // creates its log beside the file, with the same permissions.
        create_private(file).map_err(|error| open(polity_sql::Error::Io(error)))?;
        let options = Options {
            journal: match durability {
                Durability::Full => Journal::WalFull,
                Durability::Normal => Journal::WalNormal,
            },
            cache: WRITER_CACHE,
            ..Options::new(file, Access::Create)
        };
        polity_points::point!("store::created");
        let was_left_open = database::was_left_open(file);
        let mut connection = options.connect().map_err(open)?;
        let checked = database::quick_check(&mut connection, file, database::at_start()).await?;
        maintenance::refuse_lost_rows(&mut connection, file).await?;
        polity_points::point!("store::looked_at");
        migrate(&mut connection, file).await?;
        polity_points::point!("store::migrated");
        let newest_event = events::newest(&mut connection).await?;
        let statements = Arc::clone(&options.statements);
        let to_read = Options { statements: Arc::clone(&statements), ..Options::new(file, Access::Read) };
        let readers = Readers::open(&to_read).map_err(open)?;
        let place = Arc::new(Place::of(file).map_err(|error| open(polity_sql::Error::Io(error)))?);
        let started = writer::start(connection, newest_event, Arc::clone(&place));
        let (writer, mut signals) = started.map_err(|error| open(polity_sql::Error::Io(error)))?;
        signals.to_check = was_left_open && checked == Checked::Partly;
        Ok((Self { readers, writer, place, statements }, signals))
    }

    /// Opens the database of a data directory read-only; also returns the number of the newest event.
    ///
    /// This function does not create, migrate or repair the database. Another process may be writing to the database.
    pub async fn open_to_read(file: &Path) -> Result<(Self, i64), Error> {
        Self::open_as_it_is(file).await.map_err(|error| error.of_opening(file))
    }

    async fn open_as_it_is(file: &Path) -> Result<(Self, i64), Error> {
        let (options, mut connection) = database::open_to_read_with_options(file).await?;
        database::quick_check(&mut connection, file, database::at_start()).await?;
        match maintenance::check::schema(&mut connection).await? {
            Schema::Known => {}
            Schema::Older => return Err(Error::Older { path: file.to_owned() }),
            Schema::Newer { found, known } => {
                return Err(Error::Newer { path: file.to_owned(), found, known });
            }
        }
        let newest_event = events::newest(&mut connection).await?;
        let failed = |source| Error::of_file(file, source);
        let readers = Readers::open(&options).map_err(failed)?;
        let place = Arc::new(Place::of(file).map_err(|error| failed(polity_sql::Error::Io(error)))?);
        Ok((
            Self { readers, writer: writer::Handle::none(), place, statements: options.statements },
            newest_event,
        ))
    }

    /// Returns a connection for reading.
    pub async fn reader(&self) -> Result<Reader, Error> {
        self.readers.reader(Pace::Quick).await
    }

    /// Begins a read transaction: all reads in the transaction see the same state of the database.
    pub async fn moment(&self) -> Result<Moment, Error> {
        self.readers.moment().await
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

    /// Does the same as [`Store::write`] for a job that can refuse what it is asked to do. A refusal undoes nothing:
    /// the writer still commits what the job has written before the refusal.
    pub async fn write_unless_refused<T, R, F>(&self, job: F) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<Error> + Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Stopped<R>>> + Send + 'static,
    {
        self.write(move |tx| Box::pin(async move { keep(job(tx).await) })).await?
    }

    /// Does the same as [`Store::write_unless_refused`], but the writer undoes what the job has written before a refusal.
    pub async fn write_or_undo<T, R, F>(&self, job: F) -> Result<T, R>
    where
        T: Send + 'static,
        R: From<Error> + Send + 'static,
        F: for<'t> FnOnce(&'t mut Tx) -> BoxFuture<'t, Result<T, Stopped<R>>> + Send + 'static,
    {
        self.writer
            .run(move |tx| {
                Box::pin(async move {
                    job(tx).await.map_err(|stopped| match stopped {
                        Stopped::Refused(refused) => refused,
                        Stopped::Broken(error) => error.into(),
                    })
                })
            })
            .await
    }

    /// Returns how many statements the database has run since it was opened.
    pub fn statements(&self) -> u64 {
        self.statements.load(Ordering::Relaxed)
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
        // The connection that closes last moves the log (WAL) into the file. A reader cannot do this, so the readers
        // close first.
        self.readers.close().await;
        polity_points::point!("store::before_close");
        self.writer.close().await;
        polity_points::point!("store::closed");
    }
}

fn create_private(file: &Path) -> std::io::Result<()> {
    polity_disk::open_or_create(file, polity_disk::Links::Followed).map(drop)
}

/// Brings the schema of a database up to date.
async fn migrate(connection: &mut Connection, file: &Path) -> Result<(), Error> {
    match maintenance::check::schema(connection).await? {
        Schema::Known => return Ok(()),
        Schema::Newer { found, known } => return Err(Error::Newer { path: file.to_owned(), found, known }),
        Schema::Older => {}
    }
    let failed = |source| Error::Migrate { path: file.to_owned(), source };
    let options = SqliteConnectOptions::new().filename(file).foreign_keys(true).disable_statement_logging();
    let mut connection = options.connect().await.map_err(|error| failed(error.into()))?;
    // One transaction for all migrations: a crash leaves the old schema or the new one, and a new database is synced
    // once instead of once for each migration.
    let mut whole = connection.begin().await.map_err(|error| failed(error.into()))?;
    MIGRATIONS.run(&mut *whole).await.map_err(failed)?;
    whole.commit().await.map_err(|error| failed(error.into()))?;
    connection.close().await.map_err(|error| failed(error.into()))
}

/// Builds the error for a damaged row.
pub fn damaged(table: &'static str, id: &str, reason: impl std::fmt::Display) -> Error {
    Error::Damaged { table, what: format!("{id}: {reason}") }
}
