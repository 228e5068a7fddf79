//! The commands of agents that are running.

use polity_society::id::{AgentId, CommandId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A filter for running commands.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct CommandFilter {
    /// Only commands of this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only commands of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
}

/// A command that is running.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandView {
    /// The task for which the agent started the command.
    pub task: TaskId,
    /// The agent that started the command.
    pub agent: AgentId,
    /// The id of a command in the background. A command in the foreground has none: the agent waits for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<CommandId>,
    /// The beginning of the command.
    pub command: String,
    /// The time at which the command started.
    pub since: i64,
    /// The last lines of the output so far: at most 12 lines and 1,500 bytes.
    pub output: String,
    /// Total number of bytes of the output so far.
    pub output_bytes: u64,
    /// Bytes of memory of all processes of the command.
    pub memory_bytes: u64,
    /// Number of processes.
    pub processes: u64,
    /// Bytes that the command added on disk. As long as the free space of the disk has not become noticeably smaller,
    /// polity does not measure this, and the value is 0.
    pub disk_bytes: u64,
}
