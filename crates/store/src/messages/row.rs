//! Reads messages from rows.

use crate::{Conversation, Error, damaged};
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use polity_society::message::{
    Body, Expects, Finality, Message, MessageState, MessageType, NOTICE, Payload, Sender,
};
use polity_society::time::Timestamp;
use polity_sql::Row;

/// Returns the state of the message in a row. If the column `answered_by` has a value, the message was answered.
/// Otherwise, the column `state` contains the state.
pub(crate) fn state(row: &Row) -> MessageState {
    if row.get::<Option<String>, _>("answered_by").is_some() {
        return MessageState::Answered;
    }
    let name: String = row.get("state");
    // The schema allows only the names of `MessageState`, so `parse` finds the state.
    name.parse().unwrap_or(MessageState::Done)
}

/// Returns the mailbox of the receiver of the message in a row.
pub(super) fn mailbox(row: &Row) -> Conversation {
    Conversation {
        agent: AgentId::new(row.get::<String, _>("receiver")),
        task: TaskId::new(row.get::<String, _>("task")),
    }
}

/// Reads the message in a row.
pub(crate) fn read(row: &Row) -> Result<Message, Error> {
    let id: String = row.get("id");
    let text = |column: &str| row.get::<String, _>(column);
    let optional = |column: &str| row.get::<Option<String>, _>(column);
    let bad = |error: serde_json::Error| damaged("messages", &id, error);
    let message_type = text("type");
    let body = if message_type == NOTICE {
        Body::Notice(serde_json::from_str(&text("body")).map_err(bad)?)
    } else {
        Body::Payload(Payload {
            message_type: MessageType::from_name(&message_type)
                .ok_or_else(|| damaged("messages", &id, format!("unknown type {message_type}")))?,
            attachments: serde_json::from_str::<Vec<ArtifactId>>(&text("attachments")).map_err(bad)?,
            fields: serde_json::from_str(&text("body")).map_err(bad)?,
        })
    };
    Ok(Message {
        task: TaskId::new(text("task")),
        from: Sender::from_name(&text("sender")),
        from_role: text("sender_role"),
        to: AgentId::new(text("receiver")),
        body,
        in_reply_to: optional("in_reply_to")
            .map_or(Ok(Vec::new()), |text| serde_json::from_str(&text))
            .map_err(bad)?,
        about: optional("about").map(MessageId::new),
        on_behalf_of: optional("on_behalf_of").map(MessageId::new),
        expects: text("expects").parse().unwrap_or(Expects::Nothing),
        finality: text("finality").parse().unwrap_or(Finality::Final),
        introduction: optional("introduction")
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(bad)?,
        introduced: optional("introduced")
            .map(|text| serde_json::from_str(&text))
            .transpose()
            .map_err(bad)?,
        due_at: row.get::<Option<i64>, _>("due_at").map(Timestamp::from_millis),
        id: MessageId::new(id),
    })
}
