//! The signals that the writer of the database sends to the supervisor after a commit. The supervisor starts and aborts
//! the work of agents.

use crate::Conversation;
use polity_society::id::{AgentId, TaskId};

/// A signal that rows of the database need the supervisor's attention. The supervisor reads the rows in order to decide
/// what to do. So it does no harm if a bell is lost, repeated or needless.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bell {
    /// This conversation got a message.
    Mailbox(Conversation),
    Timer,
    /// An agent was ended, paused or stopped. The supervisor aborts the agent's work in all tasks.
    Halt(AgentId),
    /// An agent was ended or stopped. The background commands of this agent end in all tasks.
    EndCommands(AgentId),
    /// A task was stopped. The background commands of all its agents end in this task.
    EndCommandsOf(TaskId),
    /// An agent was stopped in one task. The supervisor aborts the agent's work in this task.
    HaltIn(Conversation),
}
