//! Table `posts`: the messages that the person wrote with an idempotency key.

use super::{Error, Tx};
use polity_society::id::{MessageId, TaskId};
use polity_sql::Connection;

const INSERT: &str =
    "INSERT INTO posts (key, content, message, task, created_at) VALUES (?1, ?2, ?3, ?4, ?5)";
const GET: &str = "SELECT content, message FROM posts WHERE key = ?1";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, GET];

/// A message that the person wrote with an idempotency key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyedMessage {
    /// The hash of the content. If the same key is used again, the hash shows whether the content is the same.
    pub content: String,
    /// The id that the message got when it was accepted.
    pub message: MessageId,
}

pub async fn insert(tx: &mut Tx, key: &str, post: &KeyedMessage, task: &TaskId) -> Result<(), Error> {
    polity_sql::query(INSERT)
        .bind(key)
        .bind(&post.content)
        .bind(post.message.as_str())
        .bind(task.as_str())
        .bind(tx.now.as_millis())
        .execute(&mut tx.connection)
        .await?;
    polity_points::point!("posts::inserted");
    Ok(())
}

pub async fn get(connection: &mut Connection, key: &str) -> Result<Option<KeyedMessage>, Error> {
    let row = polity_sql::query(GET).bind(key).fetch_optional(connection).await?;
    Ok(row.map(|row| KeyedMessage {
        content: row.get("content"),
        message: MessageId::new(row.get::<String, _>("message")),
    }))
}
