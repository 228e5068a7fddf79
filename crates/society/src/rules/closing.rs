//! What becomes of the text that ends a turn (contract section 7, "Closing text").

use crate::id::{AgentId, MessageId};
use crate::message::Finality;
use crate::rules::{OpenRequest, Pending};

/// The request that a turn works on, whatever has become of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkedOn {
    /// The request.
    pub id: MessageId,
    /// Who asked.
    pub from: AgentId,
}

/// How the turn began, as far as that decides what its text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prompting {
    /// With a message that changes nothing.
    Ordinary,
    /// With the reminder that the person has heard nothing: what is said now is the last word.
    Nudge,
    /// With the notice that its agent is one of a circle whose members wait for each other: somebody must speak first.
    Deadlock,
}

/// Whether what the person is told is final even though the agent waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// Final in any case: the person has heard nothing else.
    Yes,
    /// Interim while the agent waits.
    UnlessWaiting,
}

/// A text that was sent before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Earlier {
    /// The message.
    pub id: MessageId,
    /// Whether it was the last word.
    pub finality: Finality,
}

/// What the closing of a turn needs to know.
#[derive(Clone, Debug)]
pub struct ClosingFacts {
    /// What the turn works on.
    pub works_on: Option<WorkedOn>,
    /// How it began.
    pub prompting: Prompting,
    /// The open requests of this task that the agent has heard, oldest first.
    pub open_requests: Vec<OpenRequest>,
    /// What the agent waits for.
    pub pending: Vec<Pending>,
}

/// To whom a closing text goes, and for which requests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// The giver.
    pub to: AgentId,
    /// What the text is said to: open requests of the giver, or one that is settled already; none after a nudge when
    /// nothing is left to answer.
    pub subject: Subject,
    /// Whether the text waits for others.
    pub timing: Timing,
}

/// What a closing text is said to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Subject {
    /// It answers these requests, oldest first.
    Open(Vec<MessageId>),
    /// It follows an answer that was given before.
    Settled(MessageId),
    /// It answers nothing: a last word.
    Nothing,
}

impl Subject {
    /// The requests that are named.
    pub fn requests(&self) -> &[MessageId] {
        match self {
            Self::Open(requests) => requests,
            Self::Settled(request) => std::slice::from_ref(request),
            Self::Nothing => &[],
        }
    }
}

/// When a closing text is delivered, and as what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Now, as the last word.
    Final,
    /// Now, to the person, who hears more later.
    Interim,
    /// When the last wait has ended.
    Held,
}

/// What becomes of a closing text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It is sent, or held for later, as [`Address::timing`] says.
    Said(Address),
    /// The giver has it already: the earlier message answers what is open.
    Repeated {
        /// The earlier message.
        earlier: MessageId,
        /// The requests that it answers from now on.
        answers: Vec<MessageId>,
    },
    /// It stays in the agent's history.
    Note,
}

/// To whom the text that ends a turn goes; `None` where nobody has asked for it.
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

/// Whether the text has to wait, or is interim: a request that was made on behalf of what it answers is still open.
fn timing(facts: &ClosingFacts, to: &AgentId, subject: &Subject) -> Timing {
    let works_on = facts.works_on.as_ref().map(|request| &request.id);
    let concerns = |request: &MessageId| subject.requests().contains(request) || works_on == Some(request);
    let waits = facts.pending.iter().any(|pending| match &pending.on_behalf_of {
        Some(request) => concerns(request),
        // What was asked for nobody in particular may be for this. In a circle that would hold everybody for ever.
        None => !to.is_user() && facts.prompting == Prompting::Ordinary,
    });
    match (waits, facts.prompting) {
        (false, _) | (true, Prompting::Nudge) => Timing::Final,
        (true, Prompting::Ordinary | Prompting::Deadlock) if to.is_user() => Timing::Interim,
        (true, Prompting::Ordinary | Prompting::Deadlock) => Timing::Held,
    }
}

/// Decides what becomes of the text. `earlier` is a message with the same text that was sent for the same requests.
pub fn closing(address: Option<Address>, earlier: Option<Earlier>) -> Closing {
    let Some(address) = address else { return Closing::Note };
    let Some(earlier) = earlier else { return Closing::Said(address) };
    match (address.timing, address.subject) {
        (Timing::Final, Subject::Open(answers)) => Closing::Repeated { earlier: earlier.id, answers },
        // An interim text to the person that turns out to be the last word.
        (Timing::Final, Subject::Settled(_) | Subject::Nothing) if earlier.finality == Finality::Interim => {
            Closing::Repeated { earlier: earlier.id, answers: Vec::new() }
        }
        (Timing::Final | Timing::Interim | Timing::Held, _) => Closing::Note,
    }
}

#[cfg(test)]
mod tests;
