//! Decides what happens to the closing text: the text that ends a turn (contract section 7, "Closing text"). The text
//! goes to the party that has asked for it. This party is called the giver.

use crate::id::{AgentId, MessageId};
use crate::message::Finality;
use crate::rules::{OpenRequest, Pending};

/// The request that a turn works on, whether it is still open or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkedOn {
    /// The id of the request.
    pub id: MessageId,
    /// The party that asked.
    pub from: AgentId,
}

/// How a turn began. This affects what happens to its closing text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompting {
    /// The turn began with a message that does not affect the closing text.
    Ordinary,
    /// The turn began with the nudge, which tells root that the person has received no final message. So the closing
    /// text is final.
    Nudge,
    /// The turn began with the notice of a deadlock: agents wait for each other in a circle. The circle ends only when
    /// one agent answers without waiting. So the closing text waits for fewer answers than usual.
    Deadlock,
}

/// Whether a message to the person is final even if the agent still waits for other parties.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// The message is final even if the agent waits, because the person has received no final message yet.
    Yes,
    /// The message is interim if the agent waits, else final.
    UnlessWaiting,
}

/// A message that was sent before and has the same text as the closing text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The id of the message.
    pub id: MessageId,
    /// Whether the message was interim or final.
    pub finality: Finality,
}

/// The facts that decide what happens to a closing text.
#[derive(Clone, Debug)]
pub struct ClosingFacts {
    /// The request that the turn works on, if there is one.
    pub works_on: Option<WorkedOn>,
    /// How the turn began.
    pub prompting: Prompting,
    /// The open requests of this task that the agent has read, oldest first.
    pub open_requests: Vec<OpenRequest>,
    /// What the agent still waits for: answers, delayed messages to itself, and background commands.
    pub pending: Vec<Pending>,
}

/// The receiver of a closing text, the time of its delivery, and the requests that it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The receiver of the text: the giver, who has asked for it.
    pub to: AgentId,
    /// What the text answers or follows. The text answers the open requests of the giver. If there are none, the text
    /// follows the answer to an earlier request of the giver. After a nudge (a reminder to write to the person), there
    /// may be no request at all. Then the subject is `Nothing`.
    pub subject: Subject,
    /// When the text is delivered.
    pub timing: Timing,
}

/// What a closing text answers or follows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// The text answers these open requests, oldest first.
    Open(Vec<MessageId>),
    /// The text follows an earlier answer to this request.
    Settled(MessageId),
    /// The text answers no request. The person gets it as a final text.
    Nothing,
}

impl Subject {
    /// Returns the requests that the text answers or follows.
    pub fn requests(&self) -> &[MessageId] {
        match self {
            Self::Open(requests) => requests,
            Self::Settled(request) => std::slice::from_ref(request),
            Self::Nothing => &[],
        }
    }
}

/// When a closing text is delivered, and whether it is final.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// The text is delivered now, as a final text.
    Final,
    /// The text is delivered to the person now, as an interim text. The person gets a further text later.
    Interim,
    /// The text is delivered later, when the agent no longer waits for other parties on behalf of the requests that
    /// the text answers.
    Held,
}

/// What happens to a closing text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// The text is sent or held, as [`Address::timing`] specifies.
    Said(Address),
    /// The receiver already has the same text in an earlier message, so this earlier message answers the open requests.
    Repeated {
        /// The earlier message with the same text.
        earlier: MessageId,
        /// The open requests that the earlier message answers from now on.
        answers: Vec<MessageId>,
    },
    /// The text is not sent, and only stays in the agent's history.
    Note,
}

/// Returns the receiver and the timing of the text that ends a turn; `None` if nobody has asked for the text.
pub fn address(facts: &ClosingFacts) -> Option<Address> {
    let oldest = facts.open_requests.first();
    let to = match (&facts.works_on, oldest, facts.prompting) {
        (Some(request), _, _) => request.from.clone(),
        (None, Some(request), _) => request.from.clone(),
        (None, None, Prompting::Nudge) => AgentId::user(),
        (None, None, Prompting::Ordinary | Prompting::Deadlock) => return None,
    };
    let of_giver = facts.open_requests.iter().filter(|request| request.from == to);
    let open: Vec<MessageId> = of_giver.map(|request| request.id.clone()).collect();
    let subject = match (&facts.works_on, open.is_empty()) {
        (_, false) => Subject::Open(open),
        (Some(request), true) => Subject::Settled(request.id.clone()),
        (None, true) => Subject::Nothing,
    };
    let timing = timing(facts, &to, &subject);
    Some(Address { to, subject, timing })
}

/// Returns when a text is delivered. The agent may still wait for other parties on behalf of the requests that the text
/// answers or follows. In this case, a text to an agent is held until the wait ends, and a text to the person is sent
/// at once as interim. Otherwise, the text is final.
fn timing(facts: &ClosingFacts, to: &AgentId, subject: &Subject) -> Timing {
    let works_on = facts.works_on.as_ref().map(|request| &request.id);
    let concerns = |request: &MessageId| subject.requests().contains(request) || works_on == Some(request);
    let waits = facts.pending.iter().any(|pending| match &pending.on_behalf_of {
        Some(request) => concerns(request),
        // The agent waits for something that belongs to no request. Nothing tells what the agent needs it for, so it
        // may matter for the text, and a text to an agent is held. In a deadlock the text is not held: otherwise all
        // agents in the circle would wait for ever.
        None => !to.is_user() && facts.prompting == Prompting::Ordinary,
    });
    match (waits, facts.prompting) {
        (false, _) | (true, Prompting::Nudge) => Timing::Final,
        (true, Prompting::Ordinary | Prompting::Deadlock) if to.is_user() => Timing::Interim,
        (true, Prompting::Ordinary | Prompting::Deadlock) => Timing::Held,
    }
}

/// Decides what happens to the text. `earlier` is a message with the same text that was sent for the same requests.
pub fn closing(address: Option<Address>, earlier: Option<Earlier>) -> Closing {
    let Some(address) = address else { return Closing::Note };
    let Some(earlier) = earlier else { return Closing::Said(address) };
    match (address.timing, address.subject) {
        (Timing::Final, Subject::Open(answers)) => Closing::Repeated { earlier: earlier.id, answers },
        // The earlier interim text to the person becomes final.
        (Timing::Final, Subject::Settled(_) | Subject::Nothing) if earlier.finality == Finality::Interim => {
            Closing::Repeated { earlier: earlier.id, answers: Vec::new() }
        }
        (Timing::Final | Timing::Interim | Timing::Held, _) => Closing::Note,
    }
}

#[cfg(test)]
mod tests;
