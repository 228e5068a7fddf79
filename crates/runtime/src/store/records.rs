//! Table `records`.

use super::{Conversation, Error, Tx, damaged, messages};
use crate::record::Record;
use polity_society::message::Message;
use sqlx::{Row, SqliteConnection};
use std::collections::{HashMap, HashSet};

const INSERT: &str =
    "INSERT INTO records (agent, task, turn, message, body, created_at) VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
const OF_TURN: &str = "SELECT seq, turn, body FROM records WHERE turn = ?1 ORDER BY seq";
const OF_CONVERSATION: &str =
    "SELECT seq, turn, body FROM records WHERE agent = ?1 AND task = ?2 ORDER BY seq";
const MESSAGES_OF: &str = "SELECT m.* FROM records r JOIN messages m ON m.id = r.message
    WHERE r.agent = ?1 AND r.task = ?2 AND r.message IS NOT NULL";

/// Every statement of this file.
#[cfg(test)]
pub(super) const STATEMENTS: &[&str] = &[INSERT, OF_TURN, OF_CONVERSATION, MESSAGES_OF];

pub(crate) async fn append(
    tx: &mut Tx,
    conversation: &Conversation,
    turn: i64,
    record: &Record,
) -> Result<(), Error> {
    let body = serde_json::to_string(record).map_err(|error| damaged("records", "new", error))?;
    let message = match record {
        Record::Heard { message } => Some(message.as_str()),
        _ => None,
    };
    sqlx::query(INSERT)
        .bind(conversation.agent.as_str())
        .bind(conversation.task.as_str())
        .bind(turn)
        .bind(message)
        .bind(body)
        .bind(tx.now)
        .execute(&mut tx.connection)
        .await?;
    Ok(())
}

/// The records of one turn, in order.
pub(crate) async fn of_turn(connection: &mut SqliteConnection, turn: i64) -> Result<Vec<Record>, Error> {
    let rows = sqlx::query(OF_TURN).bind(turn).fetch_all(connection).await?;
    rows.iter().map(read).collect()
}

/// A conversation as it was recorded: all its turns, and the messages that they heard.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    /// The records of all turns, in order, each with its turn.
    pub(crate) records: Vec<(i64, Record)>,
    /// The messages, by id.
    pub(crate) messages: HashMap<String, Message>,
}

impl History {
    /// The ids of all calls that were ever made in it.
    pub(crate) fn call_ids(&self) -> HashSet<&str> {
        let replies = self.records.iter().filter_map(|(_, record)| match record {
            Record::Replied(replied) => Some(replied.calls.as_slice()),
            _ => None,
        });
        replies.flatten().map(|call| call.id.as_str()).collect()
    }
}

pub(crate) async fn history(
    connection: &mut SqliteConnection,
    conversation: &Conversation,
) -> Result<History, Error> {
    let query =
        sqlx::query(OF_CONVERSATION).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    let rows = query.fetch_all(&mut *connection).await?;
    let with_turn = |row| Ok::<_, Error>((sqlx::Row::get(row, "turn"), read(row)?));
    let records = rows.iter().map(with_turn).collect::<Result<Vec<_>, _>>()?;
    let query = sqlx::query(MESSAGES_OF).bind(conversation.agent.as_str()).bind(conversation.task.as_str());
    let rows = query.fetch_all(connection).await?;
    let heard = rows.iter().map(messages::read).collect::<Result<Vec<_>, _>>()?;
    let messages = heard.into_iter().map(|message| (message.id.to_string(), message)).collect();
    Ok(History { records, messages })
}

fn read(row: &sqlx::sqlite::SqliteRow) -> Result<Record, Error> {
    let body: String = row.get("body");
    serde_json::from_str(&body)
        .map_err(|error| damaged("records", &row.get::<i64, _>("seq").to_string(), error))
}
