//! The end of a background command, for whoever tells its agent.

use super::note::{Note, Over};
use futures::future::BoxFuture;
use polity_society::command::CommandEnd;
use polity_society::id::{AgentId, CommandId, TaskId};
use std::sync::Arc;

/// Maximum number of characters of a command in the report of its end.
const COMMAND_CHARS: usize = 200;

/// A background command has ended. Its agent must be told once: the same end may be reported again after a crash, and
/// is then equal in every field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnded {
    /// The agent that runs the command.
    pub agent: AgentId,
    /// The task in which the agent runs it.
    pub task: TaskId,
    /// The id of the command.
    pub id: CommandId,
    /// The beginning of the command.
    pub command: String,
    /// How the command ended.
    pub end: CommandEnd,
    /// The last lines that the command printed.
    pub last_lines: String,
}

impl CommandEnded {
    /// Returns the end that a note records; `None` if the command still runs.
    pub(super) fn of(note: &Note) -> Option<Self> {
        let Over { end, last_lines, .. } = note.over.clone()?;
        let mut command: String = note.command.chars().take(COMMAND_CHARS).collect();
        if command.len() < note.command.len() {
            command.push('…');
        }
        let Note { id, agent, task, .. } = note.clone();
        Some(Self { agent, task, id, command, end, last_lines })
    }
}

/// Whether the end of a command is recorded, so that its agent will hear of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// It is recorded.
    Recorded,
    /// It could not be recorded. The next start reports it again.
    NotRecorded,
}

/// Records the end of a command, and wakes its agent.
pub type Listener = Arc<dyn Fn(CommandEnded) -> BoxFuture<'static, Told> + Send + Sync>;
