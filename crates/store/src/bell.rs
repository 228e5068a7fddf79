//! The signals of the writer to the supervisor after a commit.

use crate::Conversation;
use polity_society::id::AgentId;

/// A signal that rows need the supervisor's attention. The supervisor decides by reading the rows, so a lost,
/// repeated or needless bell does no harm.
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
