//! Table `events`: what happened in a society, for the people and programs that watch the society.

use super::{Error, Tx, damaged};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{Entry, Event};

const INSERT: &str =
    "INSERT INTO events (task, agent, kind, body, created_at) VALUES (?1, ?2, ?3, ?4, ?5) RETURNING seq";
const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM events";
const GET: &str = "SELECT seq, body, created_at FROM events WHERE seq = ?1";
const OF_MESSAGE: &str = "SELECT seq, body, created_at FROM events
    WHERE kind = 'message_accepted' AND task = ?2 AND json_extract(body, '$.message') = ?1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, NEWEST, GET, OF_MESSAGE];

pub async fn append(tx: &mut Tx, event: &Event) -> Result<(), Error> {
    let value = serde_json::to_value(event).map_err(|error| damaged("events", "new", error))?;
    tracing::debug!(event = %value, "recorded");
    let row = polity_sql::query(INSERT)
        .bind(event.task().map(TaskId::as_str))
        .bind(event.agent().map(AgentId::as_str))
        .bind(event.kind().as_str())
        .bind(value.to_string())
        .bind(tx.now.as_millis())
        .fetch_one(&mut tx.connection)
        .await?;
    polity_points::point!("events::appended");
    tx.event_written(row.get("seq"));
    Ok(())
}

pub async fn newest(connection: &mut Connection) -> Result<i64, Error> {
    Ok(polity_sql::query_scalar(NEWEST).fetch_one(connection).await?)
}

/// Returns the event of this number.
pub async fn get(connection: &mut Connection, number: i64) -> Result<Option<Entry>, Error> {
    polity_sql::query(GET).bind(number).fetch_optional(connection).await?.as_ref().map(read).transpose()
}

/// Returns the event that tells that a message was accepted.
pub async fn of_message(
    connection: &mut Connection,
    message: &MessageId,
    task: &TaskId,
) -> Result<Option<Entry>, Error> {
    let query = polity_sql::query(OF_MESSAGE).bind(message.as_str()).bind(task.as_str());
    query.fetch_optional(connection).await?.as_ref().map(read).transpose()
}

pub(crate) fn read(row: &Row) -> Result<Entry, Error> {
    let seq: i64 = row.get("seq");
    let event = serde_json::from_str(&row.get::<String, _>("body"))
        .map_err(|error| damaged("events", &seq.to_string(), error))?;
    Ok(Entry { seq, at: row.get("created_at"), event })
}
