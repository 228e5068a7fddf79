//! The signals of the writer to the supervisor after a commit.

use crate::Conversation;
use polity_society::id::AgentId;

/// A signal that rows need the supervisor's attention. The supervisor acts on the rows alone, so it does no harm if a
/// bell is lost, rings twice or rings for nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bell {
    /// This conversation got a message.
    Mailbox(Conversation),
    Timer,
    /// An agent was ended, paused or stopped. The supervisor aborts its work in all tasks.
    Halt(AgentId),
    /// An agent was ended or stopped. Its commands end in all tasks.
    EndCommands(AgentId),
    /// An agent was stopped in one task. The supervisor aborts its work there.
    HaltIn(Conversation),
}
