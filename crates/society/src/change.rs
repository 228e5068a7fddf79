//! Facts that passed the rules and only need writing.

use crate::agent::Agent;
use crate::contact::Contact;
use crate::id::{AgentId, ArtifactId, MessageId};
use crate::message::Message;
use crate::role::Role;

/// One fact. A list of them is written whole, in one transaction, or not at all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A role was made.
    RoleCreated(Role),
    /// An agent was hired.
    AgentCreated(Agent),
    /// Somebody can write to somebody from now on. Nothing happens where the two are contacts already.
    ContactAdded(Contact),
    /// A message was accepted.
    MessageAccepted(Box<Message>),
    /// A request has its answer.
    RequestAnswered {
        /// The request.
        request: MessageId,
        /// The answer.
        answer: MessageId,
    },
    /// An agent may open an artifact from now on.
    AccessGranted {
        /// The agent.
        agent: AgentId,
        /// The artifact.
        artifact: ArtifactId,
    },
    /// An agent was ended; its unread mail goes back.
    AgentEnded {
        /// The agent.
        agent: AgentId,
        /// Who ended it.
        by: AgentId,
        /// Why.
        reason: String,
    },
}
