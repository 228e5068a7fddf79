//! Pages of events, facts about the data, problems, and the results of the person's actions.

use crate::Entry;
use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_society::message::MessageState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The agents that an action has changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Steered {
    /// Ids of the agents; empty if the action changed nothing.
    pub agents: Vec<AgentId>,
}

/// A message of the person that was accepted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// The id that the message got.
    pub id: MessageId,
    /// The task of the message; a new task if the message began one.
    pub task: TaskId,
    /// The state of the message now.
    pub state: MessageState,
    /// The receiver.
    pub to: AgentId,
    /// Whether an earlier request with the same idempotency key had already sent the message.
    pub duplicate: bool,
    /// What will not work in the task, as far as polity knows this before it asks a model.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<Warning>,
}

/// Something that will not work in a task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Warning {
    /// The kind of warning, for programs.
    pub code: WarningCode,
    /// What will not work and what to do, in the language of the society.
    pub text: String,
}

/// The kinds of [`Warning`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarningCode {
    /// No service takes this kind of attachment.
    NobodyTakes,
    /// The model of root gets no tools.
    NoTools,
    /// The message does not fit into the context window of root's model.
    DoesNotFit,
}

/// A new task that is a copy of another task up to a turn.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Forked {
    /// The new task.
    pub task: TaskId,
    /// The agent whose turn begins again. This is the id of its copy in the new task.
    pub agent: AgentId,
    /// The message with which the turn begins. This is the id of its copy in the new task.
    pub message: MessageId,
    /// The task that was copied.
    pub from: TaskId,
    /// The turn of the copied task that the new task begins again.
    pub turn: i64,
    /// Whether an earlier request with the same idempotency key had already made the fork.
    pub duplicate: bool,
}

/// What a fork of a task does differently.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewFork {
    /// The number of the turn that the new task begins again. Clients find the number in the records of a conversation:
    /// each record contains the number of its turn.
    pub turn: i64,
    /// Another service for the agent of the turn. For root, the service applies to the new task. For any other agent,
    /// it applies to the agent's role in the new task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceId>,
    /// A new text for the person's message that began the turn: a prompt, or an answer to a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

/// A daemon that was asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Leaving {
    /// The id of the daemon's process.
    pub pid: u32,
}

/// A filter for events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventFilter {
    /// Only events of this task, and events about its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only events about this agent, and about messages that it sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Only events of these kinds, such as `message_accepted`. An empty list admits all kinds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// A page of events, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The events; empty if there are no more. Events whose rows are damaged are left out.
    pub events: Vec<Entry>,
    /// To get the next page, pass this value as `after`. If this page was requested with `before`, pass this value as
    /// `before` instead, to get the page of older events.
    pub next: i64,
    /// The number of the oldest event that still exists. Older events were removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<i64>,
}

/// Facts about the stored data, for operators.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataFacts {
    /// Whether the database can be written to now.
    pub writable: bool,
    /// Why the database cannot be written to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The number of the newest migration.
    pub schema: i64,
    /// Bytes that the database uses, not counting its free pages.
    pub database_bytes: u64,
    /// Number of tasks.
    pub tasks: u64,
    /// Number of tasks that are open.
    pub open_tasks: u64,
    /// Number of agents, including ended agents; root and the person do not count.
    pub agents: u64,
    /// Number of agents that have not ended.
    pub live_agents: u64,
    /// Number of messages.
    pub messages: u64,
    /// Number of messages that are not read yet or not due yet.
    pub waiting_messages: u64,
    /// Number of artifacts.
    pub artifacts: u64,
    /// Bytes of all artifacts together. Artifacts with equal bytes count separately, although the bytes are stored
    /// once.
    pub artifact_bytes: u64,
    /// Number of events.
    pub events: u64,
    /// The sequence number of the newest event.
    pub newest_event: i64,
}

/// Why a request failed (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A URI that identifies the type of problem.
    #[serde(rename = "type")]
    pub problem_type: String,
    /// A short title for the type of problem.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong with this request.
    pub detail: String,
    /// A stable code for programs.
    pub error: String,
    /// Further values for this code, such as the limit that was exceeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}
