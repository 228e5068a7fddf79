//! Keeps the database within `retention.maxDatabaseBytes`: what was said and done in the tasks that were over first is
//! forgotten. Who was hired and in which role stays; that takes little room, and other rows name it.

use super::unneeded;
use crate::event::Event;
use crate::store::{Error, Tx, events};
use polity_society::id::TaskId;
use sqlx::sqlite::SqliteConnection;

const USED: &str = "SELECT (page_count - freelist_count) * page_size
    FROM pragma_page_count, pragma_freelist_count, pragma_page_size";
/// The newest task stays: somebody may ask how it ended.
const OLDEST: &str = "SELECT id FROM tasks WHERE id IN (SELECT value FROM json_each(?1))
    AND forgotten_at IS NULL AND rowid < (SELECT max(rowid) FROM tasks) ORDER BY rowid LIMIT 1";
const FORGOTTEN: &str = "UPDATE tasks SET forgotten_at = ?2 WHERE id = ?1";
const EVENTS: &str = "DELETE FROM events WHERE task = ?1";
const CALLS: &str = "DELETE FROM model_calls WHERE task = ?1";
const RECORDS: &str = "DELETE FROM records WHERE task = ?1";
const MESSAGES: &str = "DELETE FROM messages WHERE task = ?1";
const HIRED: &str =
    "UPDATE agents SET hired_in = NULL WHERE hired_in IN (SELECT id FROM turns WHERE task = ?1)";
const RELEASES: &str = "DELETE FROM releases WHERE task = ?1";
const TURNS: &str = "DELETE FROM turns WHERE task = ?1";

/// Every statement of this file.
#[cfg(test)]
pub(in crate::store) const STATEMENTS: &[&str] =
    &[USED, OLDEST, FORGOTTEN, EVENTS, CALLS, RECORDS, MESSAGES, HIRED, RELEASES, TURNS];

/// How many bytes of the database hold something; what was freed is used again.
pub(crate) async fn used(connection: &mut SqliteConnection) -> Result<u64, Error> {
    let used: i64 = sqlx::query_scalar(USED).fetch_one(connection).await?;
    Ok(used.unsigned_abs())
}

/// Forgets the oldest task that is over, if the database has more than so many bytes. Says whether it did.
pub(crate) async fn forget_oldest(tx: &mut Tx, most: u64) -> Result<bool, Error> {
    if used(&mut tx.connection).await? <= most {
        return Ok(false);
    }
    let over = unneeded::over(&mut tx.connection, i64::MAX).await?;
    let candidates = serde_json::json!(over).to_string();
    let oldest: Option<String> =
        sqlx::query_scalar(OLDEST).bind(candidates).fetch_optional(&mut tx.connection).await?;
    let Some(task) = oldest else { return Ok(false) };
    let artifacts = unneeded::of_tasks(&mut tx.connection, std::slice::from_ref(&task)).await?;
    unneeded::remove(tx, &artifacts).await?;
    for statement in [EVENTS, CALLS, RECORDS, MESSAGES, HIRED, RELEASES, TURNS] {
        sqlx::query(statement).bind(&task).execute(&mut tx.connection).await?;
        polity_points::point!("forget::removed");
    }
    sqlx::query(FORGOTTEN).bind(&task).bind(tx.now).execute(&mut tx.connection).await?;
    events::append(tx, &Event::TaskForgotten { task: TaskId::new(task) }).await?;
    Ok(true)
}
