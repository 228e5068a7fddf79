//! Checks the database quickly at start, copies it, removes expired events, and shrinks the file. The module [`check`]
//! reads the whole database; the module [`unneeded`] finds the artifacts that nobody can need any more.

use crate::{Error, Tx, create_private, trouble};
use polity_registry::Retention;
use polity_society::time::Timestamp;
use polity_sql::{Access, Connection, Options};
use std::path::Path;
use std::time::{Duration, Instant};

/// Checks each table separately, and the free pages together with `sqlite_schema`. A check of the whole file would also
/// check the full text index of the search. That takes half a minute for a million messages and cannot be interrupted.
const QUICK_CHECK: &str = "SELECT quick_check FROM (SELECT 'sqlite_schema' AS name
        UNION ALL SELECT name FROM sqlite_schema WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%')
    JOIN pragma_quick_check(name) WHERE quick_check <> 'ok' LIMIT 1";
const READ_HEADER: &str = "SELECT count(*) FROM sqlite_schema";
const COPY: &str = "VACUUM INTO ?1";
const SHRINK: &str = "VACUUM";
const MUCH_IS_FREE: &str =
    "SELECT freelist_count * 4 > page_count FROM pragma_freelist_count, pragma_page_count";
/// The number of the first event to keep. The first event that is young enough is kept, and all later events. Events
/// are numbered in order of time, so all earlier events are too old. If the clock was set back, an old event stays a
/// little longer. The newest event always stays.
const FIRST_KEPT: &str = "SELECT max(
        coalesce((SELECT seq FROM events WHERE created_at >= ?1 ORDER BY seq LIMIT 1), newest),
        newest - ?2 + 1)
    FROM (SELECT coalesce(max(seq), 0) AS newest FROM events)";
/// Counts the removable events before number ?1. Events of an open task stay, because a client may be following it.
/// Events of a task with an unread message to the person stay, because a client will show the message together with
/// these events.
const COUNT_EXPIRED: &str = "SELECT count(*) FROM events WHERE seq < ?1 AND (task IS NULL OR task NOT IN (
        SELECT id FROM tasks WHERE state = 'open'
        UNION SELECT task FROM messages INDEXED BY messages_waiting WHERE receiver = 'user' AND state = 'queued'))";
const REMOVE_EXPIRED: &str = "DELETE FROM events WHERE seq IN (
        SELECT seq FROM events WHERE seq < ?1 AND (task IS NULL OR task NOT IN (
            SELECT id FROM tasks WHERE state = 'open'
            UNION SELECT task FROM messages INDEXED BY messages_waiting WHERE receiver = 'user' AND state = 'queued'))
        ORDER BY seq LIMIT ?2)";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] =
    &[QUICK_CHECK, READ_HEADER, COPY, SHRINK, MUCH_IS_FREE, FIRST_KEPT, COUNT_EXPIRED, REMOVE_EXPIRED];

/// The check before a start ends after `AT_START * STEPS` steps of SQLite: after some 80,000 rows, or 30 milliseconds.
/// The bound is a number of steps, not a time, so that the same file is always checked to the same place.
const AT_START: u32 = 5_000;
/// The time limit of a check that a person has asked for. In this time, SQLite checks more than a gigabyte.
const LOOK: Duration = Duration::from_secs(2);
/// SQLite runs this many steps between two calls of the function `go_on`. One step reads at most a page.
const STEPS: i32 = 100;
/// The most events that one transaction removes. Other writes wait for the commit of the transaction, so the bound
/// keeps it short.
pub(super) const BATCH: u32 = 5_000;

/// Result codes of SQLite.
const READONLY: i32 = 8;
const INTERRUPT: i32 = 9;
const CORRUPT: i32 = 11;
const CANTOPEN: i32 = 14;
const NOTADB: i32 = 26;

impl Error {
    /// Converts an error that occurred when a database file was opened or read.
    pub(crate) fn of_file(path: &Path, source: polity_sql::Error) -> Self {
        let path = path.to_owned();
        match (source.code(), source.message()) {
            (Some(CORRUPT | NOTADB), Some(message)) => Self::Unsound { path, what: message.to_owned() },
            _ => Self::Open { path, source },
        }
    }

    /// Names the file and the way out if a database cannot be opened because it is damaged. The check at start covers
    /// only part of a large database, so any later statement of the start may be the first to meet the damage.
    pub(crate) fn of_opening(self, path: &Path) -> Self {
        match self {
            Self::Sql(source) if matches!(source.code(), Some(CORRUPT | NOTADB)) => {
                Self::of_file(path, source)
            }
            Self::Migrate { path, source } => match trouble::sql_of_migration(&source) {
                Some((code, what)) if matches!(code & 0xff, CORRUPT | NOTADB) => Self::Unsound { path, what },
                Some(_) | None => Self::Migrate { path, source },
            },
            other => other,
        }
    }
}

/// How much of a database a check has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checked {
    Whole,
    /// The check was ended before it had read everything.
    Partly,
}

/// Checks whether a database can be read. SQLite calls `go_on` after every [`STEPS`] steps. When `go_on` returns false,
/// the check ends early.
pub(crate) async fn quick_check(
    connection: &mut Connection,
    file: &Path,
    go_on: impl FnMut() -> bool + Send + 'static,
) -> Result<Checked, Error> {
    connection.watch_progress(STEPS, go_on)?;
    let verdict: Result<Option<String>, _> =
        polity_sql::query_scalar(QUICK_CHECK).fetch_optional(&mut *connection).await;
    connection.stop_watching()?;
    match verdict {
        Ok(verdict) => match verdict.as_deref().and_then(|verdict| findings(verdict).next()) {
            Some(what) => Err(Error::Unsound { path: file.to_owned(), what: what.to_owned() }),
            None => Ok(Checked::Whole),
        },
        Err(error) if error.code() == Some(INTERRUPT) => Ok(Checked::Partly),
        Err(error) => Err(Error::of_file(file, error)),
    }
}

/// Returns a `go_on` for a check at start. It ends the check before the check delays the start too much.
pub(crate) fn at_start() -> impl FnMut() -> bool {
    let mut left = AT_START;
    move || {
        left = left.saturating_sub(1);
        left > 0
    }
}

/// Returns a `go_on` that lets a check go on for the time [`LOOK`]. It is for a check that a person has asked for and
/// waits for.
pub(crate) fn for_a_look() -> impl FnMut() -> bool {
    let deadline = Instant::now() + LOOK;
    move || Instant::now() < deadline
}

/// Returns whether the last process that wrote to a database ended without closing it. In this case, the log (WAL) is
/// still there, because SQLite removes the log only when the last connection closes.
pub(crate) fn was_left_open(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Returns the lines of SQLite's verdict that report damage, without headings.
pub(super) fn findings(verdict: &str) -> impl Iterator<Item = &str> {
    verdict.lines().filter(|line| *line != "ok" && !line.is_empty() && !line.starts_with("***"))
}

/// Opens a database read-only. This also works while a daemon writes to it, and in a directory that is not writable.
pub(crate) async fn open_to_read(file: &Path) -> Result<Connection, Error> {
    open_to_read_with_options(file).await.map(|(_, connection)| connection)
}

/// Opens a database read-only, and also returns the options for further connections.
pub(crate) async fn open_to_read_with_options(file: &Path) -> Result<(Options, Connection), Error> {
    let options = Options::new(file, Access::Read);
    let (options, opened) = match open_with(&options).await {
        // SQLite cannot create its log (WAL) beside the file. There is no log yet, so the file contains the whole
        // database and can be opened as immutable.
        Err(error) if matches!(error.code(), Some(CANTOPEN | READONLY)) && !has_log(file) => {
            let options = Options { access: Access::ReadImmutable, ..options };
            let opened = open_with(&options).await;
            (options, opened)
        }
        opened => (options, opened),
    };
    opened.map(|connection| (options, connection)).map_err(|error| Error::of_file(file, error))
}

async fn open_with(options: &Options) -> Result<Connection, polity_sql::Error> {
    let mut connection = options.connect()?;
    polity_sql::query(READ_HEADER).execute(&mut connection).await?;
    Ok(connection)
}

/// Returns whether there is a log (WAL) with commits that may not be in the file itself yet.
fn has_log(file: &Path) -> bool {
    let mut log = file.as_os_str().to_owned();
    log.push("-wal");
    std::fs::metadata(log).is_ok_and(|log| log.len() > 0)
}

/// Copies the committed state of a database into a new file that only its owner may read. When this returns, the copy
/// has been synced to the disk.
pub(crate) async fn copy(connection: &mut Connection, from: &Path, to: &Path) -> Result<(), Error> {
    let failed = |error| Error::Open { path: to.to_owned(), source: polity_sql::Error::Io(error) };
    let Some(target) = to.to_str() else {
        return Err(failed(std::io::Error::other("the path is not UTF-8")));
    };
    // First create an empty file that only its owner may read. SQLite accepts an empty target file, and keeps its
    // permissions.
    create_private(to).map_err(failed)?;
    let copied = polity_sql::query(COPY).bind(target).execute(connection).await;
    polity_points::point!("backup::database_copied");
    copied.map_err(|error| Error::of_file(from, error))?;
    std::fs::File::open(to).and_then(|copy| copy.sync_all()).map_err(failed)
}

/// Makes the file smaller if it has many free pages. No other connection may have the database open.
pub(crate) async fn shrink(file: &Path) -> Result<(), Error> {
    let options = Options::new(file, Access::Write);
    polity_points::point!("gc::before_shrink");
    let mut connection = options.connect()?;
    if polity_sql::query_scalar(MUCH_IS_FREE).fetch_one(&mut connection).await? {
        polity_sql::query(SHRINK).execute(&mut connection).await?;
    }
    polity_points::point!("gc::shrunk");
    Ok(connection.close()?)
}

/// Returns the number of the first event to keep. All earlier events are too old, or exceed the maximum number.
async fn first_kept(
    connection: &mut Connection,
    retention: &Retention,
    now: Timestamp,
) -> Result<i64, Error> {
    const DAY: Duration = Duration::from_secs(24 * 60 * 60);
    // If no age is configured, every event is young enough. If no number is configured, there is room for all events.
    let youngest = retention.events_days.map_or(Timestamp::MIN, |days| now.saturating_sub(DAY * days));
    let most = retention.max_events.map_or(i64::from(u32::MAX), i64::from);
    Ok(polity_sql::query_scalar(FIRST_KEPT)
        .bind(youngest.as_millis())
        .bind(most)
        .fetch_one(connection)
        .await?)
}

/// Counts the expired events.
pub(crate) async fn count_expired(
    connection: &mut Connection,
    retention: &Retention,
    now: Timestamp,
) -> Result<u64, Error> {
    let first = first_kept(connection, retention, now).await?;
    let count: i64 = polity_sql::query_scalar(COUNT_EXPIRED).bind(first).fetch_one(connection).await?;
    Ok(count.unsigned_abs())
}

/// Removes expired events, at most [`BATCH`] of them, and returns how many. Rows of other tables stay.
pub(crate) async fn maintain(tx: &mut Tx, retention: &Retention, now: Timestamp) -> Result<u64, Error> {
    let first = first_kept(&mut tx.connection, retention, now).await?;
    let query = polity_sql::query(REMOVE_EXPIRED).bind(first).bind(BATCH);
    Ok(query.execute(&mut tx.connection).await?.rows_affected())
}
