//! Reads pages of events.

use super::{Builder, sound};
use crate::{Error, events};
use polity_society::id::TaskId;
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::Entry;
use polity_view::{EventFilter, EventPage};
use serde_json::json;

const ENDS: &str = "SELECT (SELECT min(seq) FROM events) AS oldest, (SELECT max(seq) FROM events) AS newest";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[ENDS];

/// Where a page of events begins, and in which direction it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The oldest events after this number.
    After(i64),
    /// The newest events before this number.
    Before(i64),
}

/// Returns a page of events, oldest first.
///
/// The connection must have begun a transaction, so that all reads see the same state of the database. Damaged rows
/// are skipped, because a client could otherwise never get past them. A page without events is the last page.
pub async fn list(
    connection: &mut Connection,
    mut side: Side,
    filter: &EventFilter,
    limit: u32,
) -> Result<EventPage, Error> {
    let ends = polity_sql::query(ENDS).fetch_one(&mut *connection).await?;
    let (oldest, newest) = (ends.get::<Option<i64>, _>("oldest"), ends.get::<Option<i64>, _>("newest"));
    loop {
        let rows = matching(side, filter, limit).build().fetch_all(&mut *connection).await?;
        let mut events: Vec<Entry> = rows.iter().filter_map(read).collect();
        let last = rows.last().map(|row| row.get::<i64, _>("seq")).filter(|_| rows.len() >= limit as usize);
        let (next, beyond) = match side {
            Side::After(seq) => {
                let next = last.or(newest).unwrap_or(seq).max(seq);
                (next, Side::After(next))
            }
            Side::Before(seq) => {
                let next = last.or(oldest).unwrap_or(seq).min(seq);
                (next, Side::Before(next))
            }
        };
        if events.is_empty() && last.is_some() {
            side = beyond;
            continue;
        }
        if matches!(side, Side::Before(_)) {
            events.reverse();
        }
        return Ok(EventPage { events, next, oldest });
    }
}

/// Returns the event of a row, or `None` if the row is damaged.
fn read(row: &Row) -> Option<Entry> {
    match sound("events", row, events::read) {
        Ok(entry) => Some(entry),
        Err(error) => {
            tracing::warn!(%error, "an event cannot be shown; run `polity db check` for details");
            None
        }
    }
}

/// Builds the statement for the events on one side of a number, nearest first.
pub(super) fn matching(side: Side, filter: &EventFilter, limit: u32) -> Builder {
    let mut query = Builder::new("SELECT * FROM (");
    match &filter.task {
        None => part(&mut query, " WHERE 1", None, side, filter, limit),
        // One part selects the events of the task, the other part the events of its agents. Each part reads the index
        // in order and stops at the limit. With a single OR condition, SQLite would sort all events of the task.
        Some(task) => {
            let (of_task, of_agents) = (
                " INDEXED BY events_of_task WHERE task = ",
                " INDEXED BY events_of_task WHERE task IS NULL AND agent IN (SELECT id FROM agents WHERE task = ",
            );
            part(&mut query, of_task, Some((task, "")), side, filter, limit);
            query.push(") UNION ALL SELECT * FROM (");
            part(&mut query, of_agents, Some((task, ")")), side, filter, limit);
        }
    }
    query.push(")").push(order(side)).push_bind(limit);
    query
}

/// Adds a statement for the first matching events on one side. The WHERE clause begins with `condition`. If `task` is
/// given, the clause goes on with the task id (as a bound value), and then with the text that comes with the id.
fn part(
    query: &mut Builder,
    condition: &'static str,
    task: Option<(&TaskId, &'static str)>,
    side: Side,
    filter: &EventFilter,
    limit: u32,
) {
    query.push("SELECT seq, body, created_at FROM events").push(condition);
    if let Some((task, rest)) = task {
        query.push_bind(task.as_str().to_owned()).push(rest);
    }
    match side {
        Side::After(seq) => query.push(" AND seq > ").push_bind(seq),
        Side::Before(seq) => query.push(" AND seq < ").push_bind(seq),
    };
    if let Some(agent) = &filter.agent {
        query.push(" AND (agent = ").push_bind(agent.as_str().to_owned());
        // Only the field `from` matches this. A text that quotes such a field does not match, because JSON escapes the
        // quotes inside a text with a backslash.
        query.push(" OR kind = 'message_accepted' AND instr(body, ");
        query.push_bind(format!("\"from\":{}", json!(agent))).push(") > 0)");
    }
    if !filter.kinds.is_empty() {
        query.push(" AND kind IN (SELECT value FROM json_each(");
        query.push_bind(json!(filter.kinds).to_string()).push("))");
    }
    query.push(order(side)).push_bind(limit);
}

fn order(side: Side) -> &'static str {
    match side {
        Side::After(_) => " ORDER BY seq LIMIT ",
        Side::Before(_) => " ORDER BY seq DESC LIMIT ",
    }
}
