//! The signals that the writer of the database sends after a commit. The supervisor, which starts and aborts the work
//! of agents, gets them.

use crate::Conversation;
use polity_society::id::AgentId;

/// A signal that rows of the database need the supervisor's attention. The supervisor decides by reading the rows, so a
/// lost, repeated or needless bell does no harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bell {
    /// This conversation got a message.
    Mailbox(Conversation),
    Timer,
    /// An agent was ended, paused or stopped. The supervisor aborts the agent's work in all tasks.
    Halt(AgentId),
    /// An agent was ended or stopped. The background commands of this agent end in all tasks.
    EndCommands(AgentId),
    /// An agent was stopped in one task. The supervisor aborts the agent's work in this task.
    HaltIn(Conversation),
}
