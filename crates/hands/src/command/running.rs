//! A running command, as a person who watches its agent sees it.

use polity_sandbox::Usage;
use polity_society::id::{AgentId, CommandId, TaskId};
use std::time::SystemTime;

/// A command that is running, in the foreground or in the background.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCommand {
    /// The agent that started the command.
    pub agent: AgentId,
    /// The task for which the agent started the command.
    pub task: TaskId,
    /// The id that `bash` returned to the agent; `None` for a command in the foreground.
    pub id: Option<CommandId>,
    /// The command, in full.
    pub command: String,
    /// When the command started.
    pub since: SystemTime,
    /// The last lines of the output so far.
    pub last_lines: String,
    /// Total number of bytes of the output so far.
    pub output_bytes: u64,
    /// What the command uses, according to the latest sample. All numbers are 0 before the first sample.
    pub usage: Usage,
}
