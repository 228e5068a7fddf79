//! Which request an agent works on, and whom it waits for meanwhile (contract section 7, "Working on", "Answers").

use crate::id::{AgentId, MessageId};
use crate::message::{Expects, Message, Sender};

/// An open request to an agent that it has heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The request.
    pub id: MessageId,
    /// Who asked.
    pub from: AgentId,
    /// The requests on whose behalf it was made: the nearest first, the first of the chain last.
    pub chain: Vec<MessageId>,
}

impl OpenRequest {
    /// Whether an id names this request: its own, or one that was passed along the chain to it.
    fn is_meant_by(&self, named: &MessageId) -> bool {
        self.id == *named || self.chain.contains(named)
    }
}

/// Finds the request that an id names: the request itself, else the oldest that was made on its behalf.
pub fn named<'r>(
    requests: impl Iterator<Item = &'r OpenRequest> + Clone,
    id: &MessageId,
) -> Option<&'r OpenRequest> {
    let itself = requests.clone().find(|request| request.id == *id);
    itself.or_else(|| requests.clone().find(|request| request.is_meant_by(id)))
}

/// Something that an agent waits for: an open request of its own, an answer in its mailbox that it has not heard, or a
/// delayed message to itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The request on whose behalf it waits, if it works on one.
    pub on_behalf_of: Option<MessageId>,
}

/// A request as it is found by its id: who sent it to whom, and on whose behalf.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestRow {
    /// Its id.
    pub id: MessageId,
    /// Who asked.
    pub from: AgentId,
    /// Who was asked.
    pub to: AgentId,
    /// The request that its sender worked on when it asked.
    pub on_behalf_of: Option<MessageId>,
}

/// The requests that decide what a turn works on if this message begins it, the first that says something first.
pub fn subjects(message: &Message) -> impl Iterator<Item = &MessageId> {
    message.in_reply_to.iter().chain(&message.about)
}

/// The request that a turn works on, from the message that begins it. `subjects` are the requests of [`subjects`].
pub fn works_on(message: &Message, subjects: &[RequestRow]) -> Option<MessageId> {
    let is_request = message.expects == Expects::Answer;
    if is_request && message.from != Sender::Party(message.to.clone()) {
        return Some(message.id.clone());
    }
    subjects.iter().find_map(|request| {
        // A reminder names what its reader owes; an answer, a report or a notice what its reader asked.
        if request.to == message.to { Some(request.id.clone()) } else { request.on_behalf_of.clone() }
    })
}
