//! Reads where an artifact was used, from the events.

use super::sound;
use crate::{Error, events};
use polity_society::id::{ArtifactId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{ArtifactUses, Entry};
use serde_json::json;

/// The most events that each of the two statements returns.
const MOST: i64 = 500;
/// The search for uses in other tasks reads only this many of the newest events. A search through all events would take
/// too long.
const RECENT: i64 = 20_000;

const IN_TASK: &str = "SELECT seq, body, created_at FROM events INDEXED BY events_of_task
    WHERE task = ?1 AND kind IN ('message_accepted', 'model_answered') AND instr(body, ?2) > 0
    ORDER BY seq DESC LIMIT ?3";
const ELSEWHERE: &str = "SELECT seq, body, created_at FROM events
    WHERE seq > (SELECT coalesce(max(seq), 0) FROM events) - ?4 AND task IS NOT ?1
        AND kind IN ('message_accepted', 'model_answered') AND instr(body, ?2) > 0
    ORDER BY seq DESC LIMIT ?3";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[IN_TASK, ELSEWHERE];

/// Returns where an artifact of a task was used: in this task, and recently in other tasks.
pub async fn of(connection: &mut Connection, id: &ArtifactId, task: &TaskId) -> Result<ArtifactUses, Error> {
    // Search for the id together with the quotes around it. Then only a JSON string that is the id matches. A text of a
    // message that contains the quoted id does not match, because JSON puts a backslash before a quote in a text.
    let named = json!(id).to_string();
    let mut found: Vec<Entry> = Vec::new();
    let mut more = false;
    for statement in [IN_TASK, ELSEWHERE] {
        let query = polity_sql::query(statement).bind(task.as_str()).bind(&named).bind(MOST);
        let query = if statement == ELSEWHERE { query.bind(RECENT) } else { query };
        let rows = query.fetch_all(&mut *connection).await?;
        more |= rows.len() as i64 >= MOST;
        found.extend(rows.iter().filter_map(read));
    }
    found.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
    Ok(ArtifactUses { more, ..ArtifactUses::of(id, found) })
}

/// Returns the event of a row, or `None` if the row is damaged.
fn read(row: &Row) -> Option<Entry> {
    sound("events", row, events::read)
        .inspect_err(|error| {
            let seq: Option<i64> = row.try_get("seq").ok();
            tracing::warn!(%error, seq, "an event cannot be shown; run `polity db check` for details");
        })
        .ok()
}
