//! Messages, conversations, and the request that a model would be sent now.

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
    /// Its id; ids sort by acceptance.
    pub id: MessageId,
    /// The task that it belongs to.
    pub task: TaskId,
    /// Who sent it: an agent's id, `user`, or `system`.
    pub from: String,
    /// The role of the sender when it sent; empty for the system.
    pub from_role: String,
    /// Whom it is for.
    pub to: AgentId,
    /// Its type; `notice` where the system speaks.
    #[serde(rename = "type")]
    pub message_type: String,
    /// What it says in words, as it was said.
    pub text: String,
    /// The rest of what was said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Map<String, Value>>,
    /// Its artifacts.
    pub attachments: Vec<ArtifactView>,
    /// The requests that it answers, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_reply_to: Vec<MessageId>,
    /// The request that a report or a notice is about, or that a supplement belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<MessageId>,
    /// For a request: the request that its sender worked on when it asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_behalf_of: Option<MessageId>,
    /// Whether it asks for an answer.
    pub expects: Expects,
    /// Whether it is the last word.
    pub finality: Finality,
    /// Where it stands.
    pub state: MessageState,
    /// The message that answers it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<MessageId>,
    /// When it is, or was, due, where it was sent with a delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub due_at: Option<i64>,
    /// When it was accepted.
    pub created_at: i64,
    /// Whom it introduces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_agent: Option<AgentId>,
    /// What is wrong with its row of the database, where that is damaged. `text` says so too, and the rest is as far as it
    /// can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// In which order rows come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// The oldest first.
    #[default]
    Oldest,
    /// The newest first.
    Newest,
}

/// Which messages are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MessageFilter {
    /// Only those of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only those that this one has sent: an agent's id, `user`, or `system`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only those to this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<AgentId>,
    /// Only those that this one has sent or that are to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<AgentId>,
    /// Only those that stand there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<MessageState>,
    /// Only those of this type; `notice` for those of the system.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub message_type: Option<String>,
    /// Only those to the person that the person has not been shown.
    #[serde(skip_serializing_if = "is_false")]
    pub unshown: bool,
    /// Only those that were accepted after this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<MessageId>,
    /// Only those that were accepted before this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<MessageId>,
    /// In which order they come.
    pub order: Order,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of messages. It ends early where its texts have some 8 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MessagePage {
    /// The messages.
    pub messages: Vec<MessageView>,
    /// The last of them, if there may be more: `after` for the next page, or `before` where the newest come first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<MessageId>,
}

/// An agent's part in a task, as it is stored; less of it than was asked for where its texts have some 8 MiB.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConversationView {
    /// The agent.
    pub agent: AgentId,
    /// The task.
    pub task: TaskId,
    /// What happened, oldest first; the newest part of it that lies before `before`.
    pub entries: Vec<EntryView>,
    /// `before` for the part that comes before this one, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// One thing that happened in a conversation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntryView {
    /// Its number; numbers grow.
    pub seq: i64,
    /// The turn that it belongs to.
    pub turn: i64,
    /// When.
    pub at: i64,
    /// What: an object whose `record` says of which sort it is. Where a message was `heard`, `message` is that message,
    /// or its id alone where it was removed. Where its row of the database is damaged, `record` is `damaged`, and `reason`
    /// says what is wrong.
    pub record: Map<String, Value>,
}

/// What a model would be sent now, for what its agent has read so far. The next real request differs where messages wait
/// (`queued`), which it takes in first; where the model has had its last round of tools, after which it is asked to sum
/// up; where the conversation has outgrown the window, and a summary is asked for first; and where its service fails and
/// another stands in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestPreview {
    /// Whose model.
    pub agent: AgentId,
    /// In which task.
    pub task: TaskId,
    /// The service that would be asked.
    pub service: ServiceId,
    /// Its model.
    pub model: String,
    /// The revision of the services, as calls are recorded with it.
    pub revision: u64,
    /// How many tokens it is estimated at.
    pub estimated_tokens: u64,
    /// How the artifacts of the conversation are shown in it.
    pub shown: Vec<Shown>,
    /// How many messages wait that its agent has not read.
    pub queued: u64,
    /// The body, field by field as it would be sent. Where it is not asked for in full, long base64 is replaced by its
    /// length.
    pub request: Value,
}
