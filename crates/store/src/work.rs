//! Finds and drops the work of an agent: open turns, unread messages, unanswered requests, and what was made for them.

use super::messages::requests::{answerable, answerable_or_failed, was_read};
use super::{Conversation, Error, Tx};
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_sql::{Connection, Json, Row};
use std::collections::{BTreeMap, BTreeSet};

/// The agents that a statement is about.
macro_rules! them {
    () => {
        "(SELECT value FROM json_each(?1))"
    };
}
/// Finds the tasks in which agents have work.
macro_rules! with_work {
    () => {
        concat!(
            "SELECT agent, task FROM turns INDEXED BY turns_open_of WHERE state = 'open' AND agent IN ",
            them!(),
            "
    UNION SELECT receiver, task FROM messages INDEXED BY messages_waiting WHERE state = 'queued' AND receiver IN ",
            them!(),
            "
    UNION SELECT receiver, task FROM messages INDEXED BY messages_delayed WHERE state = 'delayed' AND receiver IN ",
            them!(),
            "
    UNION SELECT receiver, task FROM messages INDEXED BY messages_unanswered WHERE expects = 'answer'
    AND answered_by IS NULL AND ",
            was_read!(),
            " AND receiver IN ",
            them!()
        )
    };
}

const TASKS: &str = with_work!();
const TO_STOP: &str = concat!(
    with_work!(),
    "
    UNION SELECT agent, task FROM holds WHERE agent IN ",
    them!(),
    "
    UNION SELECT sender, task FROM messages INDEXED BY messages_asked WHERE expects = 'answer'
    AND answered_by IS NULL AND receiver = 'user' AND ",
    answerable!(),
    " AND sender IN ",
    them!(),
    "
    UNION SELECT agent, task FROM notes WHERE agent IN ",
    them!(),
    "
    UNION SELECT agent, task FROM outputs WHERE agent IN ",
    them!(),
    "
    UNION SELECT agent, task FROM commands INDEXED BY commands_running WHERE state = 'running' AND agent IN ",
    them!()
);
const DROP: &str = "UPDATE messages SET state = 'failed' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_waiting WHERE receiver = ?1 AND task = ?2 AND state = 'queued'
        UNION SELECT seq FROM messages INDEXED BY messages_delayed
        WHERE receiver = ?1 AND task = ?2 AND state = 'delayed')
    RETURNING seq, id, sender, expects = 'answer' AS is_request";
const DROP_DELAYED: &str = "UPDATE messages SET state = 'failed' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_delayed WHERE receiver = ?1 AND task = ?2 AND state = 'delayed'
        AND sender IN (SELECT value FROM json_each(?3)))";
const WITHDRAW: &str = concat!(
    "UPDATE messages SET state = 'bounced' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_open_requests WHERE receiver = ?1 AND task = ?2
        AND expects = 'answer' AND answered_by IS NULL
        AND ",
    answerable_or_failed!(),
    "
        AND sender = 'user' AND state IN ('in_turn', 'done', 'failed'))"
);
/// Whether the person has got a final message since sending the newest request that was taken back.
const TOLD_SINCE: &str = "SELECT EXISTS (SELECT 1 FROM messages INDEXED BY messages_heard
        WHERE task = ?1 AND receiver = 'user' AND sender <> 'system' AND finality = 'final' AND expects = 'nothing'
        AND state NOT IN ('delayed', 'failed')
        AND seq > (SELECT max(seq) FROM messages INDEXED BY messages_between WHERE task = ?1 AND sender = 'user'
            AND expects = 'answer' AND answered_by IS NULL AND state = 'bounced'))";
const DROP_QUESTIONS: &str = concat!(
    "UPDATE messages SET state = 'failed' WHERE seq IN (
        SELECT seq FROM messages INDEXED BY messages_asked WHERE sender = ?1 AND task = ?2
        AND expects = 'answer' AND answered_by IS NULL AND receiver = 'user'
        AND ",
    answerable!(),
    ")"
);

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] =
    &[TASKS, TO_STOP, DROP, DROP_DELAYED, WITHDRAW, TOLD_SINCE, DROP_QUESTIONS];

/// The tasks of each agent. Agents without such tasks are missing.
pub type TasksOf = BTreeMap<AgentId, BTreeSet<TaskId>>;

/// Returns the tasks in which these agents have work: an open turn, unread mail, or a request without an answer.
pub async fn tasks(connection: &mut Connection, agents: &[AgentId]) -> Result<TasksOf, Error> {
    found(connection, TASKS, agents).await
}

/// Returns the tasks in which these agents can be stopped. In such a task, the agent has work (see [`tasks`]), or is
/// parked, or has a question to the person that is unanswered or not due yet, or has texts or artifacts that it has not
/// delivered, or runs a command in the background.
pub async fn to_stop(connection: &mut Connection, agents: &[AgentId]) -> Result<TasksOf, Error> {
    found(connection, TO_STOP, agents).await
}

async fn found(
    connection: &mut Connection,
    statement: &'static str,
    agents: &[AgentId],
) -> Result<TasksOf, Error> {
    let rows = polity_sql::query(statement).bind(Json(agents)).fetch_all(connection).await?;
    let mut found = TasksOf::new();
    for row in &rows {
        let agent = AgentId::new(row.get::<String, _>("agent"));
        found.entry(agent).or_default().insert(TaskId::new(row.get::<String, _>("task")));
    }
    Ok(found)
}

/// Drops the queued and delayed messages of a mailbox. Returns the requests among them, oldest first, each with its
/// asker. The contents are not read, so that damaged messages can be dropped too.
pub async fn drop_unread(tx: &mut Tx, mailbox: &Conversation) -> Result<Vec<(AgentId, MessageId)>, Error> {
    let query = polity_sql::query(DROP).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let rows = query.fetch_all(&mut tx.connection).await?;
    polity_points::point!("work::dropped");
    let mut requests: Vec<&Row> = rows.iter().filter(|row| row.get("is_request")).collect();
    requests.sort_by_key(|row| row.get::<i64, _>("seq"));
    let read = |row: &Row| {
        let asker = AgentId::new(row.get::<String, _>("sender"));
        (asker, MessageId::new(row.get::<String, _>("id")))
    };
    Ok(requests.into_iter().map(read).collect())
}

/// Drops the messages of a mailbox that these senders have sent and that are not due yet.
pub async fn drop_delayed(tx: &mut Tx, mailbox: &Conversation, senders: &[AgentId]) -> Result<(), Error> {
    let query = polity_sql::query(DROP_DELAYED).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    query.bind(Json(senders)).execute(&mut tx.connection).await?;
    polity_points::point!("work::delayed_dropped");
    Ok(())
}

/// Takes back the person's unanswered requests to an agent. Returns whether there were any.
pub async fn withdraw(tx: &mut Tx, mailbox: &Conversation) -> Result<bool, Error> {
    let query = polity_sql::query(WITHDRAW).bind(mailbox.agent.as_str()).bind(mailbox.task.as_str());
    let done = query.execute(&mut tx.connection).await?;
    polity_points::point!("work::withdrawn");
    Ok(done.rows_affected() > 0)
}

/// Whether the person has got a final message since sending the newest request that was taken back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToldSince {
    Something,
    Nothing,
}

/// Returns whether the person has got a final message since sending the newest request that [`withdraw`] has taken
/// back in a task.
pub async fn told_since(connection: &mut Connection, task: &TaskId) -> Result<ToldSince, Error> {
    let told: bool = polity_sql::query_scalar(TOLD_SINCE).bind(task.as_str()).fetch_one(connection).await?;
    Ok(if told { ToldSince::Something } else { ToldSince::Nothing })
}

/// Drops the unanswered questions of an agent to the person, also those that are not due yet: nobody needs the answers
/// any more.
pub async fn drop_questions(tx: &mut Tx, asker: &Conversation) -> Result<(), Error> {
    let query = polity_sql::query(DROP_QUESTIONS).bind(asker.agent.as_str()).bind(asker.task.as_str());
    query.execute(&mut tx.connection).await?;
    polity_points::point!("work::questions_dropped");
    Ok(())
}
