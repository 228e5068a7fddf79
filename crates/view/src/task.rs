//! Tasks and usage.

use crate::Outcome;
use polity_society::id::{AgentId, ServiceId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// A task: everything that one prompt of the person began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// The id of the task.
    pub id: TaskId,
    /// The first line of the prompt, at most 120 characters. Empty if the task was forgotten to free space.
    pub title: String,
    /// Whether anything is left to do.
    pub state: TaskState,
    /// The outcome, if nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The name of the limit in `app.json` that has stopped the task; `user` if the person has stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// The time at which the task began.
    pub created_at: i64,
    /// The time at which the messages and records of the task were removed to free space.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten_at: Option<i64>,
    /// Number of agents that were hired for the task, including ended agents.
    pub agents: u64,
    /// The tokens and the cost that the task has spent.
    pub usage: UsageSum,
    /// Number of unanswered questions from agents to the person.
    pub waiting_for_user: u64,
    /// The task that this task was copied from, if it is a fork. Absent once the first events of the task are removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<TaskId>,
}

/// Whether anything is left to do in a task.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum TaskState {
    /// Something is left to do.
    Open,
    /// Nothing is left to do.
    Idle,
}

impl TaskState {
    /// All states.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A filter for tasks. Lists begin with the newest task.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskFilter {
    /// Only tasks in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// The beginning of the page: the value of `next` from the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// The most tasks to return; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of tasks, newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// The beginning of the next page, if more tasks may follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// The usage of several model calls together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSum {
    /// Number of calls that were answered.
    pub calls: u64,
    /// Tokens of the requests.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// The cost in the currency of the services' prices. Absent if none of the services that answered has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// A filter for usage.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageFilter {
    /// Only usage for this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only usage by this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// Tokens and costs: the total, and lists by task, agent and service. If a list is too long, it contains only the
/// largest rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// The total.
    pub total: UsageSum,
    /// Usage by task, largest first.
    pub by_task: Vec<TaskUsage>,
    /// Usage by agent, largest first.
    pub by_agent: Vec<AgentUsage>,
    /// Usage by service and model, largest first.
    pub by_service: Vec<ServiceUsage>,
}

/// The usage of a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskUsage {
    /// The task that was worked on.
    pub task: TaskId,
    /// The tokens and the cost that were spent for the task.
    #[serde(flatten)]
    pub usage: UsageSum,
}

/// The usage of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUsage {
    /// The agent whose model was called.
    pub agent: AgentId,
    /// The tokens and the cost that the agent has spent.
    #[serde(flatten)]
    pub usage: UsageSum,
}

/// The usage of a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceUsage {
    /// The service that answered.
    pub service: ServiceId,
    /// The model that answered, by the name that the server uses.
    pub model: String,
    /// The usage of this model at the service.
    #[serde(flatten)]
    pub usage: UsageSum,
}
