//! Messages, conversations, and previews of requests to models.

use super::ArtifactView;
use super::agent::is_false;
use crate::Shown;
use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_society::message::{Expects, Finality, MessageState};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessageView {
    /// The id of the message. Ids sort in the order of acceptance.
    pub id: MessageId,
    /// The task that the message belongs to.
    pub task: TaskId,
    /// The sender: an agent's id, `user`, or `system`.
    pub from: String,
    /// The role that the sender had when it sent the message; empty for the system.
    pub from_role: String,
    /// The receiver.
    pub to: AgentId,
    /// The type of the message; `notice` for a notice of the system.
    #[serde(rename = "type")]
    pub message_type: String,
    /// The text of the message, unchanged. If the sender wrote no text, polity makes a text from the other fields.
    pub text: String,
    /// The fields of the message other than its text, as the sender gave them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
    /// The artifacts that are attached.
    pub attachments: Vec<ArtifactView>,
    /// The requests that the message answers, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_reply_to: Vec<MessageId>,
    /// The request that a report, a notice or a supplement belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<MessageId>,
    /// The earlier request on behalf of which the sender made this request: the sender needs the answer to this request
    /// for its own answer to the earlier one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<MessageId>,
    /// Whether the message asks for an answer.
    pub expects: Expects,
    /// Whether the message is final or interim. After an interim message, more messages will follow.
    pub finality: Finality,
    /// The state of the message.
    pub state: MessageState,
    /// The message that answered this request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<MessageId>,
    /// The time at which a delayed message is, or was, due.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<i64>,
    /// The time at which the society accepted the message.
    pub created_at: i64,
    /// The agent that the message introduces to the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_agent: Option<AgentId>,
    /// A description of the damage, if the message's row in the database is damaged. `text` then contains the same
    /// description, and the other fields contain only what could be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// The order of the messages in a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// Oldest first.
    #[default]
    Oldest,
    /// Newest first.
    Newest,
}

/// A filter for messages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageFilter {
    /// Only messages of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only messages from this sender: an agent's id, `user`, or `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only messages to this receiver.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
    /// Only messages from or to this party.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<AgentId>,
    /// Only messages in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<MessageState>,
    /// Only messages of this type; `notice` for notices of the system.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    /// Only messages to the person that the person has not been shown.
    #[serde(skip_serializing_if = "is_false")]
    pub unshown: bool,
    /// Only messages that were accepted after this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<MessageId>,
    /// Only messages that were accepted before this message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<MessageId>,
    /// The order of the messages.
    pub order: Order,
    /// The most messages to return; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of messages. The page ends early if its texts exceed about 8 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagePage {
    /// The messages in the requested order.
    pub messages: Vec<MessageView>,
    /// The last message of the page. Absent if no more messages follow. To get the next page, pass this id as `after`.
    /// If the newest messages come first, pass it as `before` instead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<MessageId>,
}

/// The records of an agent in a task. The page ends early if its texts exceed about 8 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationView {
    /// The agent that has the conversation.
    pub agent: AgentId,
    /// The task in which the agent has the conversation.
    pub task: TaskId,
    /// The newest records of the conversation, oldest first. If the request has the parameter `before`, only records
    /// with a number below `before` count.
    pub entries: Vec<EntryView>,
    /// To get older records, pass this value as `before` in the next request. Absent if there are no older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// One record of a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    /// The number of the record. Later records have higher numbers.
    pub seq: i64,
    /// The turn that the record belongs to.
    pub turn: i64,
    /// The time of the record.
    pub at: i64,
    /// If the record is an answer of a model: the number of the sent request that the model answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<i64>,
    /// The record as a JSON object. The field `record` contains the type of the record. If the type is `heard`, the
    /// field `message` contains the whole message. If the message was removed, it contains only the id. If the row in
    /// the database is damaged, the type is `damaged`, and the field `reason` contains what is wrong.
    pub record: Map<String, Value>,
}

/// The request that an agent's model would get now, given what the agent has read so far.
///
/// The next real request can differ. If messages are waiting (`queued`), the turn first takes them in. If the turn
/// has reached its limit of tool rounds, the model is asked to sum up its results. If the conversation has outgrown
/// the window, the model is first asked for a summary. If the service fails, its fallback gets the request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestPreview {
    /// The agent whose model would be asked.
    pub agent: AgentId,
    /// The task of the conversation.
    pub task: TaskId,
    /// The service that would be asked.
    pub service: ServiceId,
    /// The model of that service.
    pub model: String,
    /// The revision of the configuration that the call would use.
    pub revision: u64,
    /// The estimated size of the request in tokens.
    pub estimated_tokens: u64,
    /// How the request shows the artifacts of the conversation.
    pub shown: Vec<Shown>,
    /// Number of queued messages, which the agent has not read.
    pub queued: u64,
    /// The body of the request. Long base64 texts are replaced by their lengths, unless the client requested them in
    /// full.
    pub request: Value,
}
