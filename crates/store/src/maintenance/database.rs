//! What keeps the database sound and bounded: a look at start, copies, events that have had their time, room that is
//! given back. [`check`] looks at everything; [`unneeded`] finds the artifacts that nobody can want any more.

use crate::{Error, Tx, create_private};
use polity_registry::Retention;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection};
use sqlx::{ConnectOptions, Connection};
use std::path::Path;
use std::time::{Duration, Instant};

const QUICK_CHECK: &str = "PRAGMA quick_check(1)";
const READ_HEADER: &str = "SELECT count(*) FROM sqlite_schema";
const COPY: &str = "VACUUM INTO ?1";
const SHRINK: &str = "VACUUM";
const MUCH_IS_FREE: &str =
    "SELECT freelist_count * 4 > page_count FROM pragma_freelist_count, pragma_page_count";
/// Numbers follow the clock, so the first event that is young enough has the old ones before it; where the clock was
/// put back, an old one stays a little longer. The newest event always stays.
const FIRST_KEPT: &str = "SELECT max(
        coalesce((SELECT seq FROM events WHERE created_at >= ?1 ORDER BY seq LIMIT 1), newest),
        newest - ?2 + 1)
    FROM (SELECT coalesce(max(seq), 0) AS newest FROM events)";
/// An event of an open task may be read by somebody who follows, and one that tells of an unread message will be shown
/// with it.
const COUNT_EXPIRED: &str = "SELECT count(*) FROM events WHERE seq < ?1 AND (task IS NULL OR task NOT IN (
        SELECT id FROM tasks WHERE state = 'open'
        UNION SELECT task FROM messages INDEXED BY messages_waiting WHERE receiver = 'user' AND state = 'queued'))";
const REMOVE_EXPIRED: &str = "DELETE FROM events WHERE seq IN (
        SELECT seq FROM events WHERE seq < ?1 AND (task IS NULL OR task NOT IN (
            SELECT id FROM tasks WHERE state = 'open'
            UNION SELECT task FROM messages INDEXED BY messages_waiting WHERE receiver = 'user' AND state = 'queued'))
        ORDER BY seq LIMIT ?2)";

/// Every statement of this file.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] =
    &[QUICK_CHECK, READ_HEADER, COPY, SHRINK, MUCH_IS_FREE, FIRST_KEPT, COUNT_EXPIRED, REMOVE_EXPIRED];

/// How long a start may look at the database: enough for more than a gigabyte.
const LOOK: Duration = Duration::from_secs(2);
/// How many steps of the look pass between two looks at the clock; a step is a page at most.
const STEPS: i32 = 100;
/// How many events one transaction removes at most, because others wait for it.
pub(super) const BATCH: u32 = 5_000;

/// Result codes of SQLite.
const READONLY: u32 = 8;
const INTERRUPT: u32 = 9;
const CORRUPT: u32 = 11;
const CANTOPEN: u32 = 14;
const NOTADB: u32 = 26;

/// The primary result code of a failed statement.
fn code(error: &sqlx::Error) -> Option<u32> {
    let extended: u32 = error.as_database_error()?.code()?.parse().ok()?;
    Some(extended & 0xff)
}

impl Error {
    /// What it means that a database file cannot be read.
    pub(crate) fn of_file(path: &Path, source: sqlx::Error) -> Self {
        let path = path.to_owned();
        match (code(&source), source.as_database_error()) {
            (Some(CORRUPT | NOTADB), Some(error)) => Self::Unsound { path, what: error.message().to_owned() },
            _ => Self::Open { path, source },
        }
    }
}

/// Makes sure that a database can be read, as far as that can be found out in little time.
pub(crate) async fn quick_check(connection: &mut SqliteConnection, file: &Path) -> Result<(), Error> {
    quick_check_until(connection, file, Instant::now() + LOOK).await
}

pub(super) async fn quick_check_until(
    connection: &mut SqliteConnection,
    file: &Path,
    deadline: Instant,
) -> Result<(), Error> {
    connection.lock_handle().await?.set_progress_handler(STEPS, move || Instant::now() < deadline);
    let verdict: Result<String, _> = sqlx::query_scalar(QUICK_CHECK).fetch_one(&mut *connection).await;
    connection.lock_handle().await?.remove_progress_handler();
    match verdict {
        Ok(verdict) => match findings(&verdict).next() {
            Some(what) => Err(Error::Unsound { path: file.to_owned(), what: what.to_owned() }),
            None => Ok(()),
        },
        Err(error) if code(&error) == Some(INTERRUPT) => {
            tracing::info!("the database is too large to look at all of it at start");
            Ok(())
        }
        Err(error) => Err(Error::of_file(file, error)),
    }
}

/// The lines of a verdict that tell of damage, without headings.
pub(super) fn findings(verdict: &str) -> impl Iterator<Item = &str> {
    verdict.lines().filter(|line| *line != "ok" && !line.is_empty() && !line.starts_with("***"))
}

/// Opens a database for reading, also while a daemon writes to it and where nobody can write.
pub(crate) async fn open_to_read(file: &Path) -> Result<SqliteConnection, Error> {
    open_to_read_with_options(file).await.map(|(_, connection)| connection)
}

/// The same, with the options by which more connections are opened.
pub(crate) async fn open_to_read_with_options(
    file: &Path,
) -> Result<(SqliteConnectOptions, SqliteConnection), Error> {
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .busy_timeout(Duration::from_secs(5))
        .disable_statement_logging();
    let (options, opened) = match open_with(&options).await {
        // A log cannot be begun beside the file. Where there is none, the file alone is the database.
        Err(error) if matches!(code(&error), Some(CANTOPEN | READONLY)) && !has_log(file) => {
            let options = options.immutable(true);
            let opened = open_with(&options).await;
            (options, opened)
        }
        opened => (options, opened),
    };
    opened.map(|connection| (options, connection)).map_err(|error| Error::of_file(file, error))
}

async fn open_with(options: &SqliteConnectOptions) -> Result<SqliteConnection, sqlx::Error> {
    let mut connection = options.connect().await?;
    sqlx::query(READ_HEADER).execute(&mut connection).await?;
    Ok(connection)
}

/// Whether something that was committed is not in the file itself yet.
fn has_log(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Copies a database into a file that is not there yet, for its owner alone: all that was committed, and nothing of
/// what is not. When this returns, the copy is on the disk.
pub(crate) async fn copy(connection: &mut SqliteConnection, from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |error| Error::Open { path: to.to_owned(), source: sqlx::Error::Io(error) };
    let Some(target) = to.to_str() else {
        return Err(failed(std::io::Error::other("the path is not UTF-8")));
    };
    // SQLite takes an empty file, and keeps its rights.
    create_private(to).map_err(failed)?;
    let copied = sqlx::query(COPY).bind(target).execute(connection).await;
    polity_points::point!("backup::database_copied");
    copied.map_err(|error| Error::of_file(from, error))?;
    std::fs::File::open(to).and_then(|copy| copy.sync_all()).map_err(failed)
}

/// Gives free room in a database that nobody has open back to the disk, where it is much.
pub(crate) async fn shrink(file: &Path) -> Result<(), Error> {
    let options = SqliteConnectOptions::new().filename(file).disable_statement_logging();
    polity_points::point!("gc::before_shrink");
    let mut connection = options.connect().await?;
    if sqlx::query_scalar(MUCH_IS_FREE).fetch_one(&mut connection).await? {
        sqlx::query(SHRINK).execute(&mut connection).await?;
    }
    polity_points::point!("gc::shrunk");
    Ok(connection.close().await?)
}

/// The number of the first event that is kept in any case.
async fn first_kept(
    connection: &mut SqliteConnection,
    retention: &Retention,
    now: i64,
) -> Result<i64, Error> {
    const DAY: i64 = 24 * 60 * 60 * 1000;
    // Without a bound everything is young enough, and there is room for all.
    let youngest = retention.events_days.map_or(i64::MIN, |days| now.saturating_sub(DAY * i64::from(days)));
    let most = retention.max_events.map_or(i64::from(u32::MAX), i64::from);
    Ok(sqlx::query_scalar(FIRST_KEPT).bind(youngest).bind(most).fetch_one(connection).await?)
}

/// How many events have had their time.
pub(crate) async fn count_expired(
    connection: &mut SqliteConnection,
    retention: &Retention,
    now: i64,
) -> Result<u64, Error> {
    let first = first_kept(connection, retention, now).await?;
    let count: i64 = sqlx::query_scalar(COUNT_EXPIRED).bind(first).fetch_one(connection).await?;
    Ok(count.unsigned_abs())
}

/// Removes events that have had their time, as many as one transaction should; says how many. Nothing else is touched.
pub(crate) async fn maintain(tx: &mut Tx, retention: &Retention, now: i64) -> Result<u64, Error> {
    let first = first_kept(&mut tx.connection, retention, now).await?;
    let query = sqlx::query(REMOVE_EXPIRED).bind(first).bind(BATCH);
    Ok(query.execute(&mut tx.connection).await?.rows_affected())
}
