//! Tasks, and what was spent for them.

use crate::Outcome;
use polity_society::id::{AgentId, ServiceId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A task: what one prompt of the person began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskView {
    /// Its id.
    pub id: TaskId,
    /// The first line of its prompt, 120 characters at most; empty where the prompt was removed to make room.
    pub title: String,
    /// Whether anything is left to do.
    pub state: TaskState,
    /// How it stands, where nothing is left to do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Outcome>,
    /// The limit of `app.json` that has stopped it, or `user`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped_by: Option<String>,
    /// When it was begun.
    pub created_at: i64,
    /// When what was said and done in it was removed to make room.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgotten_at: Option<i64>,
    /// How many agents were hired for it, those included that have ended.
    pub agents: u64,
    /// What it has spent.
    pub usage: UsageSum,
    /// How many questions of its agents wait for the person's answer.
    pub waiting_for_user: u64,
}

/// Whether anything is left to do in a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum TaskState {
    /// It is.
    Open,
    /// It is not.
    Idle,
}

/// Which tasks are meant. They come newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TaskFilter {
    /// Only those that are in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<TaskState>,
    /// Where the page begins: `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// A page of tasks, the newest first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskPage {
    /// The tasks.
    pub tasks: Vec<TaskView>,
    /// Where the next page begins, if there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
}

/// What model calls have taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageSum {
    /// How many calls were answered.
    pub calls: u64,
    /// Tokens of the requests.
    pub prompt_tokens: u64,
    /// Tokens of the answers.
    pub completion_tokens: u64,
    /// What it has cost, in the currency of the services' prices, where a service that answered has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<f64>,
}

/// Whose usage is meant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageFilter {
    /// Only what was spent for this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only what this agent has spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// What was spent, in all and by whom. Where there are many tasks or agents, those that have spent most.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageView {
    /// All of it.
    pub total: UsageSum,
    /// By task, what has spent most first.
    pub by_task: Vec<TaskUsage>,
    /// By agent, likewise.
    pub by_agent: Vec<AgentUsage>,
    /// By service and model, likewise.
    pub by_service: Vec<ServiceUsage>,
}

/// What was spent for a task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TaskUsage {
    /// The task.
    pub task: TaskId,
    /// What was spent.
    #[serde(flatten)]
    pub usage: UsageSum,
}

/// What an agent has spent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentUsage {
    /// The agent.
    pub agent: AgentId,
    /// What it has spent.
    #[serde(flatten)]
    pub usage: UsageSum,
}

/// What was spent at a service.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceUsage {
    /// The service.
    pub service: ServiceId,
    /// The model that answered, as the server calls it.
    pub model: String,
    /// What was spent.
    #[serde(flatten)]
    pub usage: UsageSum,
}
