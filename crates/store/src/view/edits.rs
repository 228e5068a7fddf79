//! Reads what the tools for files wrote, from the records of calls.

use super::sound;
use crate::Error;
use polity_society::id::{AgentId, CallId, TaskId};
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{EditView, FileChangeView};

/// The most changes that the statement returns.
const MOST: i64 = 200;
/// The most bytes of differences that a list contains. A single longer difference is also shown.
const MAX_PATCHES: usize = 1 << 20;

/// The agents that may have made calls in a task: each of them has called a model.
const CALLERS: &str = "SELECT DISTINCT agent FROM model_calls WHERE task = ?1";

/// The started calls of these agents in a task whose evidence has a diff and whose result comes from the tool. The
/// result of a refused call does not.
const OF_AGENTS: &str = "SELECT s.seq, s.agent, s.turn, s.created_at, json_extract(s.body, '$.call') AS call,
    json_extract(s.body, '$.evidence.path') AS path, json_extract(s.body, '$.evidence.diff') AS patch,
    json_extract(s.body, '$.evidence.before') IS NULL AS added
    FROM json_each(?2) w
    CROSS JOIN records s INDEXED BY records_of_conversation ON s.agent = w.value AND s.task = ?1
    WHERE substr(s.body, 1, 24) = '{\"record\":\"tool_started\"' AND json_extract(s.body, '$.evidence.diff') IS NOT NULL
    AND EXISTS (SELECT 1 FROM records f INDEXED BY records_of_turn WHERE f.turn = s.turn AND f.seq > s.seq
        AND substr(f.body, 1, 25) = '{\"record\":\"tool_finished\"'
        AND json_extract(f.body, '$.call') = json_extract(s.body, '$.call')
        AND json_type(f.body, '$.result.outside') IS NOT NULL)
    ORDER BY s.seq DESC LIMIT ?3";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[CALLERS, OF_AGENTS];

/// Returns the agents that may have made calls in a task.
pub async fn callers(connection: &mut Connection, task: &TaskId) -> Result<Vec<AgentId>, Error> {
    let ids: Vec<String> =
        polity_sql::query_scalar(CALLERS).bind(task.as_str()).fetch_all(connection).await?;
    Ok(ids.into_iter().map(AgentId::new).collect())
}

/// Returns what these agents wrote in a task with the tools for files, the latest first.
pub async fn of_agents(
    connection: &mut Connection,
    task: &TaskId,
    agents: &[AgentId],
) -> Result<Vec<EditView>, Error> {
    let query = polity_sql::query(OF_AGENTS).bind(task.as_str()).bind(polity_sql::Json(agents)).bind(MOST);
    let rows = query.fetch_all(&mut *connection).await?;
    let mut edits = Vec::new();
    let mut patches = 0_usize;
    for row in &rows {
        let edit = sound("records", row, read)?;
        patches = patches.saturating_add(edit.patch.len());
        if patches > MAX_PATCHES && !edits.is_empty() {
            break;
        }
        edits.push(edit);
    }
    Ok(edits)
}

fn read(row: &Row) -> Result<EditView, Error> {
    let change = match row.get::<i64, _>("added") {
        0 => FileChangeView::Changed,
        _ => FileChangeView::Added,
    };
    Ok(EditView {
        agent: AgentId::new(row.get::<String, _>("agent")),
        turn: row.get("turn"),
        call: CallId::new(row.get::<String, _>("call")),
        at: row.get("created_at"),
        path: row.get("path"),
        change,
        patch: row.get("patch"),
    })
}
