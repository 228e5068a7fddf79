//! Table `commands`: the commands that agents run in the background.

use super::{Conversation, Error, Tx};
use polity_society::id::{AgentId, CommandId, MessageId, TaskId, TurnId};
use polity_sql::Query;

/// Writes the start of a command. The end of the command may have been written before its start. Then the command has a
/// row already, and this statement changes nothing, so that the command stays ended.
const STARTED: &str =
    "INSERT INTO commands (id, agent, task, request, state) VALUES (?1, ?2, ?3, ?4, 'running')
    ON CONFLICT (id) DO NOTHING";
/// Writes that a command has ended if its turn was stopped before it wrote the start of the command.
const STOPPED_WITH_TURN: &str = "INSERT INTO commands (id, agent, task, state)
    SELECT ?1, agent, task, 'ended' FROM turns WHERE id = ?2 AND state = 'stopped'
    ON CONFLICT (id) DO NOTHING";
const ENDED: &str = "INSERT INTO commands (id, agent, task, state) VALUES (?1, ?2, ?3, 'ended')
    ON CONFLICT (id) DO UPDATE SET state = 'ended' WHERE state <> 'ended'";
const STOPPED: &str = "UPDATE commands INDEXED BY commands_running SET state = 'ended'
    WHERE state = 'running' AND agent = ?1 AND (?2 IS NULL OR task = ?2)";
const STOPPED_IN_TASK: &str = "UPDATE commands INDEXED BY commands_running_in SET state = 'ended'
    WHERE state = 'running' AND task = ?1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[STARTED, STOPPED_WITH_TURN, ENDED, STOPPED, STOPPED_IN_TASK];

/// Notes that an agent has started a command. Also stores the request that the agent's turn works on, because the
/// command serves this request.
pub async fn started(
    tx: &mut Tx,
    owner: &Conversation,
    id: &CommandId,
    request: Option<&MessageId>,
) -> Result<(), Error> {
    let query =
        polity_sql::query(STARTED).bind(id.as_str()).bind(owner.agent.as_str()).bind(owner.task.as_str());
    query.bind(request.map(MessageId::as_str)).execute(&mut tx.connection).await?;
    polity_points::point!("commands::started");
    Ok(())
}

/// Notes that a command has ended. Returns whether this is new. It is not new if the end was noted before, or if the
/// command was stopped together with its agent or its task. `turn` is the turn that started the command, if known.
pub async fn ended(
    tx: &mut Tx,
    owner: &Conversation,
    id: &CommandId,
    turn: Option<TurnId>,
) -> Result<bool, Error> {
    if let Some(turn) = turn {
        let query = polity_sql::query(STOPPED_WITH_TURN).bind(id.as_str()).bind(turn.number());
        query.execute(&mut tx.connection).await?;
    }
    let query =
        polity_sql::query(ENDED).bind(id.as_str()).bind(owner.agent.as_str()).bind(owner.task.as_str());
    let done = query.execute(&mut tx.connection).await?;
    polity_points::point!("commands::ended");
    Ok(done.rows_affected() == 1)
}

/// Notes that the background commands of one agent were stopped, in one task or in all tasks.
pub async fn stopped(tx: &mut Tx, agent: &AgentId, task: Option<&TaskId>) -> Result<(), Error> {
    stop(tx, polity_sql::query(STOPPED).bind(agent.as_str()).bind(task.map(TaskId::as_str))).await
}

/// Notes that the background commands of all agents in a task were stopped.
pub async fn stopped_in_task(tx: &mut Tx, task: &TaskId) -> Result<(), Error> {
    stop(tx, polity_sql::query(STOPPED_IN_TASK).bind(task.as_str())).await
}

async fn stop(tx: &mut Tx, query: Query<'_>) -> Result<(), Error> {
    query.execute(&mut tx.connection).await?;
    polity_points::point!("commands::stopped");
    Ok(())
}
