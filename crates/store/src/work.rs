//! Finds and drops the work of an agent: open turns, unread messages and unanswered requests.

use super::{Conversation, Error, Tx, messages};
use polity_society::id::{AgentId, TaskId};
use polity_society::message::Message;
use polity_sql::Connection;

const TASKS: &str = "SELECT task FROM turns WHERE agent = ?1 AND state = 'open'
    UNION SELECT task FROM messages INDEXED BY messages_waiting WHERE receiver = ?1 AND state = 'queued'
    UNION SELECT task FROM messages INDEXED BY messages_delayed WHERE receiver = ?1 AND state = 'delayed'
    UNION SELECT task FROM messages INDEXED BY messages_open_requests WHERE receiver = ?1 AND expects = 'answer'
    AND answered_by IS NULL AND state IN ('in_turn', 'done')";
const DROP: &str = "UPDATE messages SET state = 'failed' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_waiting WHERE receiver = ?1 AND task = ?2 AND state = 'queued'
        UNION SELECT seq FROM messages INDEXED BY messages_delayed
        WHERE receiver = ?1 AND task = ?2 AND state = 'delayed') RETURNING *";
const DROP_DELAYED: &str = "UPDATE messages SET state = 'failed' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_delayed WHERE receiver = ?1 AND task = ?2 AND state = 'delayed'
        AND sender IN (SELECT value FROM json_each(?3)))";
const WITHDRAW: &str = "UPDATE messages SET state = 'bounced' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_open_requests WHERE receiver = ?1 AND task = ?2
        AND expects = 'answer' AND answered_by IS NULL AND sender = 'user' AND state IN ('in_turn', 'done', 'failed'))";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[TASKS, DROP, DROP_DELAYED, WITHDRAW];

/// Returns the tasks in which an agent has work: an open turn, unread mail, or a request that it has not answered.
pub async fn tasks(connection: &mut Connection, agent: &AgentId) -> Result<Vec<TaskId>, Error> {
    let tasks: Vec<String> =
        polity_sql::query_scalar(TASKS).bind(agent.as_str()).fetch_all(connection).await?;
    Ok(tasks.into_iter().map(TaskId::new).collect())
}

/// Drops the queued and delayed messages of a mailbox, and returns them, oldest first.
pub async fn drop_unread(tx: &mut Tx, mailbox: &Conversation) -> Result<Vec<Message>, Error> {
    let query = polity_sql::query(DROP).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let rows = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("work::dropped");
    let mut dropped = rows.iter().map(messages::read).collect::<Result<Vec<_>, _>>()?;
    dropped.sort_by(|a, b| a.id.cmp(&b.id));
    Ok(dropped)
}

/// Drops the messages of a mailbox that these senders have sent and that are not due yet.
pub async fn drop_delayed(tx: &mut Tx, mailbox: &Conversation, senders: &[AgentId]) -> Result<(), Error> {
    let query = polity_sql::query(DROP_DELAYED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    query.bind(polity_sql::Json(senders)).execute(&mut tx.connection).await?;
    polity_points::point!("work::delayed_dropped");
    Ok(())
}

/// Takes back the person's unanswered requests to an agent.
pub async fn withdraw(tx: &mut Tx, mailbox: &Conversation) -> Result<(), Error> {
    let query = polity_sql::query(WITHDRAW).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("work::withdrawn");
    Ok(())
}
