//! Keeps the database within `retention.maxDatabaseBytes`: forgets the messages and records of the oldest ended tasks.
//! Agents and their roles stay, since they take little space and other rows refer to them.

use super::unneeded;
use crate::{Error, Tx, events};
use polity_society::id::{ArtifactId, TaskId};
use polity_society::time::Timestamp;
use polity_sql::Connection;
use polity_view::Event;
use std::collections::BTreeSet;

const USED: &str = "SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
/// Finds the oldest task among ?1 that is not forgotten yet. The newest task of the society is never chosen, because
/// somebody may ask how that task ended.
const OLDEST: &str = "SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(?1))
    AND forgotten_at IS NULL AND rowid < (SELECT max(rowid) FROM tasks) ORDER BY rowid LIMIT 1";
const STILL_OVER: &str = "SELECT EXISTS (SELECT 1 FROM tasks WHERE id = ?1 AND state = 'idle')";
const FORGOTTEN: &str = "UPDATE tasks SET forgotten_at = ?2 WHERE id = ?1";
const EVENTS: &str = "DELETE FROM events WHERE task = ?1";
const CALLS: &str = "DELETE FROM model_calls WHERE task = ?1";
const RECORDS: &str = "DELETE FROM records WHERE turn IN (SELECT id FROM turns WHERE task = ?1)";
const MESSAGES: &str = "DELETE FROM messages WHERE task = ?1";
const HIRED: &str =
    "UPDATE agents SET hired_in = NULL WHERE hired_in IN (SELECT id FROM turns WHERE task = ?1)";
const RELEASES: &str = "DELETE FROM releases WHERE task = ?1";
const POSTS: &str = "DELETE FROM posts WHERE task = ?1";
const EXCHANGES: &str = "DELETE FROM exchanges WHERE task = ?1";
const NOTES: &str = "DELETE FROM notes WHERE task = ?1";
const OUTPUTS: &str = "DELETE FROM outputs WHERE task = ?1";
const INHERITED: &str = "DELETE FROM inherited WHERE task = ?1";
const APPROVALS: &str = "DELETE FROM approvals WHERE task = ?1";
const PERMISSIONS: &str = "DELETE FROM permissions WHERE task = ?1";
const COMMANDS: &str = "DELETE FROM commands WHERE task = ?1";
/// The rows of artifacts that other tasks name stay: who opens such an artifact there gets its sources.
const SEEN: &str = "DELETE FROM seen WHERE task = ?1
    AND holder NOT IN (SELECT 'artifact:' || id FROM artifacts WHERE task = ?1)";
const SENT: &str = "DELETE FROM sent WHERE task = ?1";
const SENT_TEXTS: &str = "DELETE FROM sent_texts WHERE task = ?1";
const TURNS: &str = "DELETE FROM turns WHERE task = ?1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[
    USED,
    OLDEST,
    STILL_OVER,
    FORGOTTEN,
    EVENTS,
    CALLS,
    RECORDS,
    MESSAGES,
    HIRED,
    RELEASES,
    POSTS,
    EXCHANGES,
    NOTES,
    OUTPUTS,
    INHERITED,
    APPROVALS,
    PERMISSIONS,
    COMMANDS,
    SEEN,
    SENT,
    SENT_TEXTS,
    TURNS,
];

/// Returns how many bytes of the database file are in use. Free pages do not count, because SQLite reuses them.
pub(crate) async fn used(connection: &mut Connection) -> Result<u64, Error> {
    let used: i64 = polity_sql::query_scalar(USED).fetch_one(connection).await?;
    Ok(used.unsigned_abs())
}

/// The task to forget next.
pub(crate) struct Oldest {
    task: String,
    /// The artifacts of the task that no other task names.
    artifacts: BTreeSet<ArtifactId>,
}

/// Returns the oldest ended task if the database uses more than `most` bytes. The search reads many rows, so it runs
/// before the write transaction, not in it.
pub(crate) async fn oldest(connection: &mut Connection, most: u64) -> Result<Option<Oldest>, Error> {
    if used(connection).await? <= most {
        return Ok(None);
    }
    let over = unneeded::over(connection, Timestamp::MAX).await?;
    let candidates = serde_json::json!(over).to_string();
    let oldest: Option<String> =
        polity_sql::query_scalar(OLDEST).bind(candidates).fetch_optional(&mut *connection).await?;
    let Some(task) = oldest else { return Ok(None) };
    let artifacts = unneeded::of_tasks(connection, std::slice::from_ref(&task)).await?;
    Ok(Some(Oldest { task, artifacts }))
}

/// Forgets a task unless somebody has continued it. Returns whether the task was forgotten.
pub(crate) async fn forget(tx: &mut Tx, oldest: Oldest) -> Result<bool, Error> {
    let Oldest { task, artifacts } = oldest;
    let still_over: bool =
        polity_sql::query_scalar(STILL_OVER).bind(&task).fetch_one(&mut tx.connection).await?;
    if !still_over {
        return Ok(false);
    }
    unneeded::remove(tx, &artifacts).await?;
    for statement in [
        EVENTS,
        CALLS,
        RECORDS,
        MESSAGES,
        HIRED,
        RELEASES,
        POSTS,
        EXCHANGES,
        NOTES,
        OUTPUTS,
        INHERITED,
        APPROVALS,
        PERMISSIONS,
        COMMANDS,
        SEEN,
        SENT,
        SENT_TEXTS,
        TURNS,
    ] {
        polity_sql::query(statement).bind(&task).execute(&mut tx.connection).await?;
        polity_points::point!("forget::removed");
    }
    polity_sql::query(FORGOTTEN).bind(&task).bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    events::append(tx, &Event::TaskForgotten { task: TaskId::new(task) }).await?;
    Ok(true)
}
