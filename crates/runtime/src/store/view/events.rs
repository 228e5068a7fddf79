//! Pages of events.

use super::Builder;
use crate::store::{Error, events};
use crate::view::{EventFilter, EventPage};
use serde_json::json;
use sqlx::{Row, SqliteConnection};

const ENDS: &str = "SELECT (SELECT min(seq) FROM events) AS oldest, (SELECT max(seq) FROM events) AS newest";

/// Every statement of this file.
#[cfg(test)]
pub(in crate::store) const STATEMENTS: &[&str] = &[ENDS];

/// Where a page lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// After this event: the oldest of those.
    After(i64),
    /// Before this event: the newest of those.
    Before(i64),
}

/// A page of events, oldest first. All is to be read at one moment: the connection has begun a transaction.
pub(crate) async fn list(
    connection: &mut SqliteConnection,
    side: Side,
    filter: &EventFilter,
    limit: u32,
) -> Result<EventPage, Error> {
    let ends = sqlx::query(ENDS).fetch_one(&mut *connection).await?;
    let mut query = Builder::new("SELECT seq, body, created_at FROM events WHERE seq ");
    match side {
        Side::After(seq) => query.push("> ").push_bind(seq),
        Side::Before(seq) => query.push("< ").push_bind(seq),
    };
    if let Some(task) = &filter.task {
        query.push(" AND (task = ").push_bind(task.as_str().to_owned());
        query.push(" OR task IS NULL AND agent IN (SELECT id FROM agents WHERE task = ");
        query.push_bind(task.as_str().to_owned()).push("))");
    }
    if let Some(agent) = &filter.agent {
        query.push(" AND (agent = ").push_bind(agent.as_str().to_owned());
        // Quotes within a text have a stroke before them: only the field itself looks so.
        query.push(" OR kind = 'message_accepted' AND instr(body, ");
        query.push_bind(format!("\"from\":{}", json!(agent))).push(") > 0)");
    }
    if !filter.kinds.is_empty() {
        query.push(" AND kind IN (SELECT value FROM json_each(");
        query.push_bind(json!(filter.kinds).to_string()).push("))");
    }
    query.push(match side {
        Side::After(_) => " ORDER BY seq LIMIT ",
        Side::Before(_) => " ORDER BY seq DESC LIMIT ",
    });
    query.push_bind(limit);
    let rows = query.build().fetch_all(connection).await?;
    let mut entries = rows.iter().map(events::read).collect::<Result<Vec<_>, _>>()?;
    let is_full = entries.len() >= limit as usize;
    let (oldest, newest) = (ends.get::<Option<i64>, _>("oldest"), ends.get::<Option<i64>, _>("newest"));
    let last = entries.last().map(|entry| entry.seq);
    let next = match side {
        Side::After(seq) => last.filter(|_| is_full).or(newest).unwrap_or(seq).max(seq),
        Side::Before(seq) => last.filter(|_| is_full).or(oldest).unwrap_or(seq).min(seq),
    };
    if matches!(side, Side::Before(_)) {
        entries.reverse();
    }
    Ok(EventPage { events: entries, next, oldest })
}
