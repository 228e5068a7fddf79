//! Changes: facts that passed the rules and only need to be written.

use crate::agent::Agent;
use crate::contact::Contact;
use crate::id::{AgentId, ArtifactId, MessageId};
use crate::message::Message;
use crate::role::Role;

/// One fact that is to be written. The writer writes a list of changes in one transaction: all changes or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A role was made.
    RoleCreated(Role),
    /// An agent was hired.
    AgentCreated(Agent),
    /// The owner of a contact registry may write to one more party from now on. A contact registry is the list of the
    /// parties that its owner may write to. If it already has an entry for that party, the entry stays as it is.
    ContactAdded(Contact),
    /// A message was accepted.
    MessageAccepted(Box<Message>),
    /// An open request got its answer.
    RequestAnswered {
        /// The request that is no longer open.
        request: MessageId,
        /// The message that answers the request.
        answer: MessageId,
    },
    /// An agent may open an artifact from now on.
    AccessGranted {
        /// The agent that gets access.
        agent: AgentId,
        /// The artifact that the agent may open.
        artifact: ArtifactId,
    },
    /// An agent was ended. The messages that the agent has not read go back to their senders.
    AgentEnded {
        /// The agent that was ended.
        agent: AgentId,
        /// The party that ended the agent.
        by: AgentId,
        /// The reason that this party gave.
        reason: String,
    },
}
