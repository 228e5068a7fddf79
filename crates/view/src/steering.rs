//! What comes back from what the person does, and what is told about what happens.

use crate::Entry;
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::MessageState;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The agents that something concerned.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Steered {
    /// The agents.
    pub agents: Vec<AgentId>,
}

/// A message of the person that was taken.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Posted {
    /// The message.
    pub id: MessageId,
    /// Its task.
    pub task: TaskId,
    /// Where it stands.
    pub state: MessageState,
    /// Whom it is for.
    pub to: AgentId,
    /// Whether it was taken before, under the same idempotency key.
    pub duplicate: bool,
}

/// Which events are meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct EventFilter {
    /// Only those of this task, and those about its agents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only those that are about this agent, and messages that it has sent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// Only those of one of these kinds, such as `message_accepted`; all where the list is empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// A page of events, oldest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EventPage {
    /// The events; none where there are no more. Those whose rows are damaged are left out.
    pub events: Vec<Entry>,
    /// `after` for the next page: nothing that was meant lies between here and there. For a page that was asked for
    /// with `before`, `before` for the page before it.
    pub next: i64,
    /// The oldest event that is still there, where there is one: what came before was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub oldest: Option<i64>,
}

/// What is known about the data, for those who look after a society.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DataFacts {
    /// Whether it can be written to now.
    pub writable: bool,
    /// What stands in the way of writing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
    /// The number of the newest migration.
    pub schema: i64,
    /// How many bytes of the database hold something.
    pub database_bytes: u64,
    /// How many tasks there are.
    pub tasks: u64,
    /// How many of them are open.
    pub open_tasks: u64,
    /// How many agents there are, those included that have ended; root and the person are not counted.
    pub agents: u64,
    /// How many of them have not ended.
    pub live_agents: u64,
    /// How many messages there are.
    pub messages: u64,
    /// How many of them wait to be read, or to be due.
    pub waiting_messages: u64,
    /// How many artifacts there are.
    pub artifacts: u64,
    /// How many bytes they have, as if none were stored twice.
    pub artifact_bytes: u64,
    /// How many events there are.
    pub events: u64,
    /// The number of the newest event.
    pub newest_event: i64,
}

/// Why something was not done (RFC 9457).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// A URI that names the sort of problem.
    #[serde(rename = "type")]
    pub problem_type: String,
    /// The sort of problem, in words.
    pub title: String,
    /// The HTTP status.
    pub status: u16,
    /// What is wrong this time.
    pub detail: String,
    /// The stable code.
    pub error: String,
    /// What belongs to the code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
}
