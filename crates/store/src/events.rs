//! Table `events`: what happened in a society, for the people and programs that watch the society.

use super::{Error, Tx, damaged};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_sql::Connection;
use polity_sql::Json;
use polity_sql::Row;
use polity_view::{Entry, Event};

const INSERT: &str = "INSERT INTO events (task, agent, kind, body, created_at)
    SELECT value ->> 0, value ->> 1, value ->> 2, value ->> 3, ?2 FROM json_each(?1) ORDER BY key RETURNING seq";
const NEWEST: &str = "SELECT coalesce(max(seq), 0) FROM events";
const GET: &str = "SELECT seq, body, created_at FROM events WHERE seq = ?1";
const OF_MESSAGE: &str = "SELECT seq, body, created_at FROM events
    WHERE kind = 'message_accepted' AND task = ?2 AND json_extract(body, '$.message') = ?1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, NEWEST, GET, OF_MESSAGE];

/// The columns of an event that is not written yet: `task`, `agent`, `kind` and `body`.
pub(crate) type Unwritten = (Option<String>, Option<String>, &'static str, String);

/// Appends an event. The writer writes the events of a job together, with one statement, when the job has ended. Until
/// then, statements of the job do not find the event.
pub async fn append(tx: &mut Tx, event: &Event) -> Result<(), Error> {
    let value = serde_json::to_value(event).map_err(|error| damaged("events", "new", error))?;
    tracing::debug!(event = %value, "recorded");
    tx.unwritten.push((
        event.task().map(TaskId::to_string),
        event.agent().map(AgentId::to_string),
        event.kind().as_str(),
        value.to_string(),
    ));
    Ok(())
}

/// Writes the events of a job that has ended. They get their numbers in the order in which the job appended them.
pub(crate) async fn write_all(tx: &mut Tx) -> Result<(), Error> {
    let events = std::mem::take(&mut tx.unwritten);
    if events.is_empty() {
        return Ok(());
    }
    let query = polity_sql::query_scalar(INSERT).bind(Json(&events)).bind(tx.now.as_millis());
    let numbers: Vec<i64> = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("events::appended");
    // SQLite may return the numbers in any order.
    if let Some(newest) = numbers.into_iter().max() {
        tx.event_written(newest);
    }
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
