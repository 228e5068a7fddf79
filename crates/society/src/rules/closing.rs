//! What becomes of the text that ends a turn (contract section 7, "Closing text").

use crate::id::{AgentId, MessageId};
use crate::message::{Expects, Sender};
use std::collections::BTreeSet;

/// A request that is still open, and who sent it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    /// The request.
    pub id: MessageId,
    /// Who asked.
    pub from: AgentId,
}

/// The message that began the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Beginning {
    /// Its id.
    pub id: MessageId,
    /// Who sent it.
    pub from: Sender,
    /// Whether it asked for an answer.
    pub expects: Expects,
    /// Whether it is the system's reminder that the person has heard nothing.
    pub nudge: Nudge,
}

/// Whether a turn began with the system's reminder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nudge {
    /// It did: what is said now is the last word.
    Yes,
    /// It began with a message of somebody.
    No,
}

/// What the closing of a turn needs to know.
#[derive(Clone, Debug)]
pub struct ClosingFacts {
    /// What began the turn.
    pub beginning: Beginning,
    /// The open requests of this task to the agent, oldest first.
    pub open_requests: Vec<OpenRequest>,
    /// To whom the turn has already sent something.
    pub sent_to: BTreeSet<AgentId>,
    /// To whom the agent has open requests.
    pub waits_for: BTreeSet<AgentId>,
}

/// What becomes of a closing text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Closing {
    /// It is sent as an answer.
    Answer {
        /// To whom.
        to: AgentId,
        /// To which request; none for a last word after a reminder, when nothing is open any more.
        request: Option<MessageId>,
        /// Whether it stays the last word.
        last_word: LastWord,
    },
    /// It stays in the agent's history.
    Note,
}

/// Whether an answer to the person is final even though the agent waits for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LastWord {
    /// Final in any case.
    Yes,
    /// Interim while the agent waits.
    UnlessWaiting,
}

/// Decides what becomes of the text that ends a turn.
pub fn closing(facts: &ClosingFacts) -> Closing {
    let oldest_of = |from: &AgentId| facts.open_requests.iter().find(|request| request.from == *from);
    if facts.beginning.nudge == Nudge::Yes {
        let user = AgentId::user();
        if facts.sent_to.contains(&user) {
            return Closing::Note;
        }
        let request = oldest_of(&user).map(|request| request.id.clone());
        return Closing::Answer { to: user, request, last_word: LastWord::Yes };
    }
    let giver = match (&facts.beginning.from, facts.beginning.expects) {
        // A request that was answered by a message of the turn, or settled meanwhile, has no more to come.
        (Sender::Party(_), Expects::Answer) => {
            facts.open_requests.iter().find(|request| request.id == facts.beginning.id)
        }
        (Sender::Party(_) | Sender::System, _) => facts.open_requests.first(),
    };
    let Some(giver) = giver else { return Closing::Note };
    if facts.sent_to.contains(&giver.from) {
        return Closing::Note;
    }
    let others_awaited = facts.waits_for.iter().any(|awaited| *awaited != giver.from);
    if !giver.from.is_user() && others_awaited {
        return Closing::Note;
    }
    Closing::Answer {
        to: giver.from.clone(),
        request: Some(giver.id.clone()),
        last_word: LastWord::UnlessWaiting,
    }
}
