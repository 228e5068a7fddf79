//! Table `holds`: conversations that are parked.

use super::{Conversation, Error, Tx};
use polity_society::id::{AgentId, TaskId};
use sqlx::{Row, SqliteConnection};

const INSERT: &str =
    "INSERT INTO holds (agent, task, reason, created_at) VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING";
const HELD: &str = "SELECT EXISTS (SELECT 1 FROM holds WHERE agent = ?1 AND task = ?2)";
const RELEASE: &str = "DELETE FROM holds RETURNING agent, task";

/// Every statement of this file.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, HELD, RELEASE];

/// Parks a conversation; says whether it was not parked before.
pub(crate) async fn insert(tx: &mut Tx, conversation: &Conversation, reason: &str) -> Result<bool, Error> {
    let query = sqlx::query(INSERT).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    let done = query.bind(reason).bind(tx.now).execute(&mut tx.connection).await?;
    polity_points::point!("holds::inserted");
    Ok(done.rows_affected() == 1)
}

/// Whether a conversation is parked.
pub(crate) async fn held(
    connection: &mut SqliteConnection,
    conversation: &Conversation,
) -> Result<bool, Error> {
    let query = sqlx::query_scalar(HELD).bind(conversation.agent.as_str());
    Ok(query.bind(conversation.task.as_str()).fetch_one(connection).await?)
}

/// Lets every parked conversation go on; says which they are.
pub(crate) async fn release_all(tx: &mut Tx) -> Result<Vec<Conversation>, Error> {
    let rows = sqlx::query(RELEASE).fetch_all(&mut tx.connection).await?;
    polity_points::point!("holds::released");
    let released = rows.iter().map(|row| Conversation {
        agent: AgentId::new(row.get::<String, _>("agent")),
        task: TaskId::new(row.get::<String, _>("task")),
    });
    Ok(released.collect())
}
