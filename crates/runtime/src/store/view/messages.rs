//! Messages, with their artifacts.

use super::{Builder, artifacts, cut};
use crate::said::said;
use crate::store::{Error, messages};
use crate::view::{ArtifactView, MessageFilter, MessageView, Order, page};
use polity_society::id::{AgentId, ArtifactId, MessageId};
use polity_society::message::{Body, Message, MessageState};
use polity_society::text::Texts;
use serde_json::{Value, json};
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqliteConnection};
use std::collections::HashMap;

const BY_ID: &str = "SELECT * FROM messages WHERE id IN (SELECT value FROM json_each(?1))";

/// Every statement of this file.
#[cfg(test)]
pub(in crate::store) const STATEMENTS: &[&str] = &[BY_ID];

/// A page of messages, and where the next one begins.
pub(crate) async fn list(
    connection: &mut SqliteConnection,
    texts: &Texts,
    filter: &MessageFilter,
) -> Result<(Vec<MessageView>, Option<MessageId>), Error> {
    let limit = page(filter.limit);
    let mut query = Builder::new("SELECT * FROM messages WHERE 1");
    if let Some(task) = &filter.task {
        // Who was hired for one task has fewer messages than the task; with the sign its index is not taken.
        let hired = |id: &str| !matches!(id, "user" | "root" | "system");
        let parties = [filter.from.as_deref(), filter.to.as_ref().map(AgentId::as_str)];
        let with = filter.with.as_ref().map(AgentId::as_str);
        let by_party = parties.into_iter().chain([with]).flatten().any(hired);
        query.push(if by_party { " AND +task = " } else { " AND task = " });
        query.push_bind(task.as_str().to_owned());
    }
    if let Some(from) = &filter.from {
        query.push(" AND sender = ").push_bind(from.clone());
    }
    if let Some(to) = &filter.to {
        query.push(" AND receiver = ").push_bind(to.as_str().to_owned());
    }
    if let Some(with) = &filter.with {
        query.push(" AND (sender = ").push_bind(with.as_str().to_owned());
        query.push(" OR receiver = ").push_bind(with.as_str().to_owned()).push(")");
    }
    match filter.state {
        // An answer is noted beside the state.
        Some(MessageState::Answered) => {
            query.push(" AND answered_by IS NOT NULL");
        }
        Some(state) => {
            query.push(" AND answered_by IS NULL AND state = ").push_bind(state.as_str());
        }
        None => {}
    }
    if let Some(message_type) = &filter.message_type {
        query.push(" AND type = ").push_bind(message_type.clone());
    }
    if filter.unshown {
        query.push(" AND receiver = 'user' AND state = 'queued'");
    }
    // What is no id of a message was accepted neither before nor after any.
    if let Some(after) = &filter.after {
        query.push(" AND seq > ").push_bind(after.sequence().unwrap_or(i64::MAX));
    }
    if let Some(before) = &filter.before {
        query.push(" AND seq < ").push_bind(before.sequence().unwrap_or(i64::MIN));
    }
    query.push(match filter.order {
        Order::Oldest => " ORDER BY seq LIMIT ",
        Order::Newest => " ORDER BY seq DESC LIMIT ",
    });
    query.push_bind(i64::from(limit) + 1);
    let rows = query.build().fetch_all(&mut *connection).await?;
    let mut found: Vec<(i64, &SqliteRow)> = rows.iter().map(|row| (row.get("seq"), row)).collect();
    let next = cut(&mut found, limit).map(MessageId::from_sequence);
    let messages = shown(connection, texts, found.iter().map(|(_, row)| *row)).await?;
    Ok((messages, next))
}

/// Those of the messages that are there, by id.
pub(crate) async fn by_id(
    connection: &mut SqliteConnection,
    texts: &Texts,
    ids: &[MessageId],
) -> Result<HashMap<MessageId, MessageView>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(BY_ID).bind(json!(ids).to_string()).fetch_all(&mut *connection).await?;
    let messages = shown(connection, texts, rows.iter()).await?;
    Ok(messages.into_iter().map(|message| (message.id.clone(), message)).collect())
}

async fn shown(
    connection: &mut SqliteConnection,
    texts: &Texts,
    rows: impl Iterator<Item = &SqliteRow>,
) -> Result<Vec<MessageView>, Error> {
    let mut read = Vec::new();
    let mut attached = Vec::new();
    for row in rows {
        let message = messages::read(row)?;
        if let Body::Payload(payload) = &message.body {
            attached.extend(payload.attachments.iter().cloned());
        }
        read.push((row, message));
    }
    let artifacts = artifacts::by_id(connection, &attached).await?;
    Ok(read.into_iter().map(|(row, message)| show(row, message, &artifacts, texts)).collect())
}

fn show(
    row: &SqliteRow,
    message: Message,
    artifacts: &HashMap<ArtifactId, ArtifactView>,
    texts: &Texts,
) -> MessageView {
    let answered_by = row.get::<Option<String>, _>("answered_by").map(MessageId::new);
    let text = said(&message, texts);
    let (payload, attachments) = match message.body {
        Body::Payload(mut payload) => {
            for field in ["text", "content"] {
                if payload.fields.get(field).and_then(Value::as_str).is_some_and(|said| said == text) {
                    payload.fields.remove(field);
                    break;
                }
            }
            let attachments = payload.attachments.iter().filter_map(|id| artifacts.get(id).cloned());
            (Some(payload.fields).filter(|rest| !rest.is_empty()), attachments.collect())
        }
        Body::Notice(_) => (None, Vec::new()),
    };
    MessageView {
        from: message.from.as_str().to_owned(),
        id: message.id,
        task: message.task,
        from_role: message.from_role,
        to: message.to,
        message_type: row.get("type"),
        text,
        payload,
        attachments,
        in_reply_to: message.in_reply_to,
        expects: message.expects,
        finality: message.finality,
        state: messages::state(row),
        answered_by,
        due_at: message.due_at,
        created_at: row.get("created_at"),
        introduced_agent: message.introduced.map(|introduced| introduced.id),
    }
}
