//! The end of a background command, as passed to the listener that notifies the agent.

use super::note::{Note, Over};
use crate::call::Source;
use futures::future::BoxFuture;
use polity_society::command::CommandEnd;
use polity_society::id::{AgentId, CommandId, TaskId};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The notice of a command's end quotes at most this many characters of the command.
const COMMAND_CHARS: usize = 200;

/// The end of a background command. After a crash, the same end may be reported again with equal fields. But the agent
/// must get exactly one notice of this end. So the listener must ignore an end that it has already recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandEnded {
    /// The agent that started the command.
    pub agent: AgentId,
    /// The task for which the agent started the command.
    pub task: TaskId,
    /// The id that `bash` returned to the agent.
    pub id: CommandId,
    /// The idempotency key of the call that started the command. Empty if an earlier version started it.
    pub call: String,
    /// The command, cut to 200 characters.
    pub command: String,
    /// Whether the command exited, exceeded a limit, or was interrupted.
    pub end: CommandEnd,
    /// The last lines of the output.
    pub last_lines: String,
    /// The outside sources from which the output may come.
    pub sources: BTreeSet<Source>,
}

impl CommandEnded {
    /// Returns the end that a note records, or `None` if the command is still running.
    pub(super) fn of(note: &Note) -> Option<Self> {
        let Over { end, last_lines, .. } = note.over.clone()?;
        let mut command: String = note.command.chars().take(COMMAND_CHARS).collect();
        if command.len() < note.command.len() {
            command.push('…');
        }
        let Note { id, agent, task, call, sources, .. } = note.clone();
        Some(Self { agent, task, id, call, command, end, last_lines, sources })
    }
}

/// Whether the listener has recorded the end of a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// The notice for the agent is committed to the database.
    Recorded,
    /// The notice could not be committed. The next start of polity reports the end again.
    NotRecorded,
}

/// Records a notice of the end of a command for its agent, and wakes the agent.
pub type Listener = Arc<dyn Fn(CommandEnded) -> BoxFuture<'static, Told> + Send + Sync>;
