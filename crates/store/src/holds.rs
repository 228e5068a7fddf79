//! Tables `holds` and `releases`. A row of `holds` is a parked conversation: it could not continue, so it does nothing
//! until its agent is resumed or stopped. This releases the conversation. A row of `releases` contains a turn of a
//! conversation: turns that failed before this turn, and the turn itself, no longer count.

use super::{Conversation, Error, Tx};
use polity_society::id::{AgentId, TaskId};
use polity_sql::Connection;
use polity_sql::Json;
use std::collections::BTreeSet;

/// Whether the conversation of the agent ?1 in the task ?2 may not go on: it is parked, or its agent is paused.
macro_rules! held {
    () => {
        "(EXISTS (SELECT 1 FROM holds WHERE agent = ?1 AND task = ?2)
        OR EXISTS (SELECT 1 FROM agents WHERE id = ?1 AND paused_at IS NOT NULL))"
    };
}
pub(crate) use held;

const INSERT: &str =
    "INSERT INTO holds (agent, task, reason, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const RELEASE: &str = "DELETE FROM holds WHERE agent = ?1 AND (?2 IS NULL OR task = ?2) RETURNING task";
const RELEASED: &str = "INSERT INTO releases (agent, task, turn)
    VALUES (?1, ?2, coalesce((SELECT max(id) FROM turns WHERE agent = ?1 AND task = ?2), 0))
    ON CONFLICT DO UPDATE SET turn = excluded.turn";
const PARKED: &str = "SELECT DISTINCT agent FROM holds WHERE agent IN (SELECT value FROM json_each(?1))";
const FORGET_FAILURES: &str = "INSERT INTO releases (agent, task, turn)
    SELECT t.agent, t.task, max(t.id) FROM json_each(?1) stopped
    CROSS JOIN turns t INDEXED BY turns_failed ON t.agent = stopped.value
    WHERE t.state = 'failed' GROUP BY t.agent, t.task
    ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)";
const FORGET_FAILURES_IN: &str = "INSERT INTO releases (agent, task, turn)
    SELECT t.agent, t.task, max(t.id) FROM json_each(?1) stopped
    CROSS JOIN turns t INDEXED BY turns_failed ON t.agent = stopped.value AND t.task = ?2
    WHERE t.state = 'failed' GROUP BY t.agent, t.task
    ON CONFLICT DO UPDATE SET turn = max(turn, excluded.turn)";
const OF_TASK: &str = "SELECT agent, reason FROM holds WHERE task = ?1 ORDER BY created_at, agent";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[INSERT, RELEASE, RELEASED, PARKED, FORGET_FAILURES, FORGET_FAILURES_IN, OF_TASK];

/// Parks a conversation. Returns false if it was parked already.
pub async fn insert(tx: &mut Tx, conversation: &Conversation, reason: &str) -> Result<bool, Error> {
    let query = polity_sql::query(INSERT).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    let done = query.bind(reason).bind(tx.now.as_millis()).execute(&mut tx.connection).await?;
    polity_points::point!("holds::inserted");
    Ok(done.rows_affected() == 1)
}

/// Returns the agents that are parked in a task, each with the reason.
pub async fn of_task(connection: &mut Connection, task: &TaskId) -> Result<Vec<(AgentId, String)>, Error> {
    let rows = polity_sql::query(OF_TASK).bind(task.as_str()).fetch_all(connection).await?;
    let read = |row: &polity_sql::Row| (AgentId::new(row.get::<String, _>("agent")), row.get("reason"));
    Ok(rows.iter().map(read).collect())
}

/// Releases the parked conversations of an agent, in one task or in all tasks, and returns them. Several failed turns
/// in a row park a conversation. The turns that failed before the release no longer count towards this.
pub async fn release(
    tx: &mut Tx,
    agent: &AgentId,
    task: Option<&TaskId>,
) -> Result<Vec<Conversation>, Error> {
    let query = polity_sql::query(RELEASE).bind(agent.as_str()).bind(task.map(TaskId::as_str));
    let rows = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("holds::released");
    let released: Vec<TaskId> = rows.iter().map(|row| TaskId::new(row.get::<String, _>("task"))).collect();
    for task in &released {
        let query = polity_sql::query(RELEASED).bind(agent.as_str()).bind(task.as_str());
        query.execute(&mut tx.connection).await?;
    }
    Ok(released.into_iter().map(|task| Conversation { agent: agent.clone(), task }).collect())
}

/// Returns those of these agents that are parked in any task.
pub async fn parked(connection: &mut Connection, agents: &[AgentId]) -> Result<BTreeSet<AgentId>, Error> {
    let ids: Vec<String> = polity_sql::query_scalar(PARKED).bind(Json(agents)).fetch_all(connection).await?;
    Ok(ids.into_iter().map(AgentId::new).collect())
}

/// Forgets the failed turns of agents, in one task or in all tasks: they no longer count towards parking an agent. The
/// conversations need not be parked.
pub async fn forget_failures(tx: &mut Tx, agents: &[AgentId], task: Option<&TaskId>) -> Result<(), Error> {
    let query = match task {
        Some(task) => polity_sql::query(FORGET_FAILURES_IN).bind(Json(agents)).bind(task.as_str()),
        None => polity_sql::query(FORGET_FAILURES).bind(Json(agents)),
    };
    query.execute(&mut tx.connection).await?;
    polity_points::point!("holds::failures_forgotten");
    Ok(())
}
