//! The request that an agent works on, and what the agent waits for.
//! See contract section 7, "Working on" and "Answers".

use crate::id::{AgentId, MessageId};
use crate::message::{Expects, Message, Sender};

/// An open request that its receiver has read: a turn of the receiver has taken the request in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The id of the request.
    pub id: MessageId,
    /// The party that asked.
    pub from: AgentId,
    /// The earlier requests behind this one. If this request was made on behalf of a request B, then B comes first. If
    /// B was made on behalf of a request C, C comes next, and so on.
    pub chain: Vec<MessageId>,
}

impl OpenRequest {
    /// Returns whether an id names this request: its own id, or an id in its `chain`.
    fn is_meant_by(&self, named: &MessageId) -> bool {
        self.id == *named || self.chain.contains(named)
    }
}

/// Finds the request that an id names: the request with this id, else the oldest request whose `chain` contains the id.
pub fn named<'r>(
    requests: impl Iterator<Item = &'r OpenRequest> + Clone,
    id: &MessageId,
) -> Option<&'r OpenRequest> {
    let itself = requests.clone().find(|request| request.id == *id);
    itself.or_else(|| requests.clone().find(|request| request.is_meant_by(id)))
}

/// Something that an agent waits for: the answer to its open request, an unread answer in its mailbox, a delayed
/// message to itself, or the end of a background command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The request on behalf of which the agent waits: after the wait, the agent can answer this request. `None` if the
    /// agent does not wait on behalf of a request.
    pub on_behalf_of: Option<MessageId>,
}

/// A stored request: who sent it to whom, and for which earlier request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// The id of the request.
    pub id: MessageId,
    /// The party that asked.
    pub from: AgentId,
    /// The party that was asked.
    pub to: AgentId,
    /// The earlier request on behalf of which the asker made this request: the asker needs the answer to this request
    /// for its own answer to the earlier one. `None` if there is no such request.
    pub on_behalf_of: Option<MessageId>,
}

/// Returns the requests that a message answers or is about. If a turn begins with this message, [`works_on`] uses these
/// requests to find the request that the turn works on.
pub fn subjects(message: &Message) -> impl Iterator<Item = &MessageId> {
    message.in_reply_to.iter().chain(&message.about)
}

/// Returns the request that a turn works on, given the message that begins the turn.
/// The caller gets the ids from the function [`subjects`], and passes the rows with these ids.
pub fn works_on(message: &Message, subjects: &[RequestRow]) -> Option<MessageId> {
    let is_request = message.expects == Expects::Answer;
    if is_request && message.from != Sender::Party(message.to.clone()) {
        return Some(message.id.clone());
    }
    subjects.iter().find_map(|request| {
        // A reminder is about a request that the reader must answer. The turn works on this request.
        // Other messages are about a request that the reader made on behalf of an earlier request.
        // The turn works on the earlier request.
        if request.to == message.to { Some(request.id.clone()) } else { request.on_behalf_of.clone() }
    })
}

#[cfg(test)]
mod tests;
