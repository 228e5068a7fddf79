//! What the writer tells the supervisor after a commit.

use crate::Conversation;
use polity_society::id::AgentId;

/// Something that the supervisor should look at. Rows are the truth, bells are doorbells: a bell may be lost, doubled or
/// rung for nothing without harm.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bell {
    /// A message was put into this conversation's mailbox.
    Mailbox(Conversation),
    /// A message was delayed.
    Timer,
    /// An agent was ended, paused or stopped: drop what it does, in every task.
    Halt(AgentId),
    /// An agent was stopped in one task: drop what it does there.
    HaltIn(Conversation),
}
