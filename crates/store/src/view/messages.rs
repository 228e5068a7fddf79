//! Reads messages with their artifacts, for the views.

use super::{Builder, artifacts, as_far_as_it_goes, cut_to_room, place_and_size, sound};
use crate::said::said;
use crate::{Error, messages};
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use polity_society::message::{Body, Expects, Finality, Message, MessageState};
use polity_society::text::Texts;
use polity_society::time::Timestamp;
use polity_sql::Connection;
use polity_sql::Row;
use polity_view::{ArtifactView, MessageFilter, MessageView, Order, page};
use serde_json::{Value, json};
use std::collections::HashMap;

const BY_ID: &str = "SELECT * FROM messages WHERE id IN (SELECT value FROM json_each(?1))";
const BY_SEQ: &str = "SELECT * FROM messages WHERE seq IN (SELECT value FROM json_each(?1)) ORDER BY seq";
/// The state of a message as people see it. This SQL must be exactly the expression in the index `messages_in_state`;
/// otherwise SQLite does not use the index.
const SHOWN_STATE: &str = "CASE WHEN answered_by IS NULL THEN state ELSE 'answered' END";

/// All statements of this file; tests check them against the schema.
#[cfg(test)]
pub(crate) const STATEMENTS: &[&str] = &[BY_ID, BY_SEQ];

/// Returns a page of messages, and where the next page begins.
pub async fn list(
    connection: &mut Connection,
    texts: &Texts,
    filter: &MessageFilter,
) -> Result<(Vec<MessageView>, Option<MessageId>), Error> {
    let limit = page(filter.limit);
    let rows = matching(filter, limit).build().fetch_all(&mut *connection).await?;
    let mut found: Vec<(i64, u64)> = rows.iter().map(place_and_size).collect();
    found.sort_unstable();
    if filter.order == Order::Newest {
        found.reverse();
    }
    let next = cut_to_room(&mut found, limit).map(MessageId::from_sequence);
    let places: Vec<i64> = found.into_iter().map(|(seq, _)| seq).collect();
    let mut rows =
        polity_sql::query(BY_SEQ).bind(json!(places).to_string()).fetch_all(&mut *connection).await?;
    if filter.order == Order::Newest {
        rows.reverse();
    }
    Ok((shown(connection, texts, rows.iter()).await?, next))
}

/// Builds the statement for a page: it finds the numbers and the sizes of the messages. It selects one message more
/// than the page has room for. If this message exists, there is a next page. The statement sorts without reading texts.
pub(super) fn matching(filter: &MessageFilter, limit: u32) -> Builder {
    let mut query = Builder::new("SELECT m.seq, octet_length(m.body) AS size FROM (");
    match filter.with.as_ref().map(AgentId::as_str) {
        None => {
            let parties =
                Parties { from: filter.from.as_deref(), to: filter.to.as_ref().map(AgentId::as_str) };
            part(&mut query, filter, None, parties, limit);
        }
        // The statement has two parts: the messages from the party `with`, and the messages to this party. Each part
        // reads its own index in order and stops at the limit.
        Some(with) => {
            let to = filter.to.as_ref().map(AgentId::as_str);
            let sent = Parties { from: filter.from.as_deref().or(Some(with)), to };
            let heard = Parties { from: filter.from.as_deref(), to: to.or(Some(with)) };
            query.push("SELECT * FROM (");
            part(&mut query, filter, Some(("sender", with)), sent, limit);
            query.push(") UNION SELECT * FROM (");
            part(&mut query, filter, Some(("receiver", with)), heard, limit);
            query.push(")").push(order(filter)).push_bind(i64::from(limit) + 1);
        }
    }
    query.push(") found CROSS JOIN messages m ON m.seq = found.seq");
    query
}

/// Only messages with this sender and this receiver match; `None` matches every party.
#[derive(Clone, Copy, Debug)]
struct Parties<'a> {
    from: Option<&'a str>,
    to: Option<&'a str>,
}

/// Adds a statement for the numbers of the first matching messages. `with` is a further condition: a column, and the
/// value that it must have.
fn part(
    query: &mut Builder,
    filter: &MessageFilter,
    with: Option<(&'static str, &str)>,
    parties: Parties<'_>,
    limit: u32,
) {
    query.push("SELECT seq FROM messages");
    if let Some(index) = index(filter, parties) {
        query.push(" INDEXED BY ").push(index);
    }
    query.push(" WHERE 1");
    if let Some(task) = &filter.task {
        query.push(" AND task = ").push_bind(task.as_str().to_owned());
    }
    if let Some(from) = &filter.from {
        query.push(" AND sender = ").push_bind(from.clone());
    }
    if let Some(to) = &filter.to {
        query.push(" AND receiver = ").push_bind(to.as_str().to_owned());
    }
    if let Some((column, with)) = with {
        query.push(" AND ").push(column).push(" = ").push_bind(with.to_owned());
    }
    if let Some(state) = filter.state {
        query.push(" AND ").push(SHOWN_STATE).push(" = ").push_bind(state.as_str());
        // SQLite uses the partial indexes over waiting messages only if the statement repeats their conditions.
        query.push(match state {
            MessageState::Queued => " AND state = 'queued' AND state IN ('queued', 'delayed')",
            MessageState::Delayed => " AND state = 'delayed' AND state IN ('queued', 'delayed')",
            _ => "",
        });
    }
    if let Some(message_type) = &filter.message_type {
        query.push(" AND type = ").push_bind(message_type.clone());
    }
    if filter.unshown {
        query.push(" AND receiver = 'user' AND state = 'queued'");
    }
    // An id that no message can have matches nothing, whether it is given as `after` or as `before`.
    if let Some(after) = &filter.after {
        query.push(" AND seq > ").push_bind(after.sequence().unwrap_or(i64::MAX));
    }
    if let Some(before) = &filter.before {
        query.push(" AND seq < ").push_bind(before.sequence().unwrap_or(i64::MIN));
    }
    query.push(order(filter)).push_bind(i64::from(limit) + 1);
}

fn order(filter: &MessageFilter) -> &'static str {
    match filter.order {
        Order::Oldest => " ORDER BY seq LIMIT ",
        Order::Newest => " ORDER BY seq DESC LIMIT ",
    }
}

/// Returns the index with the fewest rows to read. Without statistics, SQLite would choose an index that contains all
/// old messages of an agent or a task.
fn index(filter: &MessageFilter, parties: Parties<'_>) -> Option<&'static str> {
    use MessageState::{Answered, Delayed, Done, Queued};
    // An agent that was hired for one task has fewer messages than the task.
    let hired = |id: Option<&str>| id.is_some_and(|id| !matches!(id, "user" | "root" | "system"));
    let Parties { from, to } = parties;
    let waits = matches!(filter.state, Some(Queued | Delayed));
    match (filter.task.is_some(), from.is_some(), to.is_some()) {
        _ if filter.unshown || filter.state == Some(Queued) && to.is_some() => Some("messages_waiting"),
        (true, true, true) => Some("messages_between"),
        _ if hired(to) => Some("messages_to"),
        _ if hired(from) => Some("messages_from"),
        (true, _, _) if waits => Some("messages_unread"),
        (true, true, false) => Some("messages_between"),
        (true, false, true) => Some("messages_heard"),
        (true, false, false) => Some("messages_of_task"),
        // Few messages are in this state, because nearly all messages are done or answered.
        _ if filter.state.is_some_and(|state| !matches!(state, Done | Answered)) => Some("messages_in_state"),
        (false, _, true) => Some("messages_to"),
        (false, true, false) => Some("messages_from"),
        _ if filter.message_type.is_some() => Some("messages_of_type"),
        _ if filter.state.is_some() => Some("messages_in_state"),
        (false, false, false) => None,
    }
}

/// Returns the messages with these ids. Ids that do not exist are skipped.
pub async fn by_id(
    connection: &mut Connection,
    texts: &Texts,
    ids: &[MessageId],
) -> Result<HashMap<MessageId, MessageView>, Error> {
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = polity_sql::query(BY_ID).bind(json!(ids).to_string()).fetch_all(&mut *connection).await?;
    let messages = shown(connection, texts, rows.iter()).await?;
    Ok(messages.into_iter().map(|message| (message.id.clone(), message)).collect())
}

async fn shown(
    connection: &mut Connection,
    texts: &Texts,
    rows: impl Iterator<Item = &Row>,
) -> Result<Vec<MessageView>, Error> {
    let mut read = Vec::new();
    let mut attached = Vec::new();
    for row in rows {
        let message = sound("messages", row, messages::read);
        if let Ok(Message { body: Body::Payload(payload), .. }) = &message {
            attached.extend(payload.attachments.iter().cloned());
        }
        read.push((row, message));
    }
    let artifacts = artifacts::by_id(connection, &attached).await?;
    let show = |(row, message)| match message {
        Ok(message) => show(row, message, &artifacts, texts),
        Err(error) => show_damaged(row, &error),
    };
    Ok(read.into_iter().map(show).collect())
}

/// Builds the view of a message whose row is damaged, from the columns that can be read.
fn show_damaged(row: &Row, error: &Error) -> MessageView {
    tracing::warn!(%error, "a message is shown as damaged; run `polity db check` for details");
    let text = |column: &str| as_far_as_it_goes(row, column);
    let optional = |column: &str| row.try_get::<Option<String>, _>(column).ok().flatten();
    MessageView {
        id: MessageId::from_sequence(row.try_get("seq").unwrap_or_default()),
        task: TaskId::new(text("task")),
        from: text("sender"),
        from_role: text("sender_role"),
        to: AgentId::new(text("receiver")),
        message_type: text("type"),
        text: error.to_string(),
        payload: None,
        attachments: Vec::new(),
        in_reply_to: optional("in_reply_to")
            .and_then(|ids| serde_json::from_str(&ids).ok())
            .unwrap_or_default(),
        about: optional("about").map(MessageId::new),
        on_behalf_of: optional("on_behalf_of").map(MessageId::new),
        expects: text("expects").parse().unwrap_or(Expects::Nothing),
        finality: text("finality").parse().unwrap_or(Finality::Final),
        state: match optional("answered_by") {
            Some(_) => MessageState::Answered,
            None => text("state").parse().unwrap_or(MessageState::Done),
        },
        answered_by: optional("answered_by").map(MessageId::new),
        due_at: row.try_get("due_at").ok().flatten(),
        created_at: row.try_get("created_at").unwrap_or_default(),
        introduced_agent: None,
        damage: Some(error.to_string()),
    }
}

fn show(
    row: &Row,
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
        about: message.about,
        on_behalf_of: message.on_behalf_of,
        expects: message.expects,
        finality: message.finality,
        state: messages::state(row),
        answered_by,
        due_at: message.due_at.map(Timestamp::as_millis),
        created_at: row.get("created_at"),
        introduced_agent: message.introduced.map(|introduced| introduced.id),
        damage: None,
    }
}
