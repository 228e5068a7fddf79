//! Decides what is left to do for an agent that is at rest, with no turn and no mail.
//! See contract section 7, "Nobody is left without an answer".

use crate::id::{AgentId, ArtifactId, MessageId};
use crate::message::Finality;
use crate::rules::Pending;

/// The reason why the function [`due`] examines an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A turn of the agent has ended.
    TurnEnded,
    /// The agent has stopped waiting for another party, and no message tells the agent about this.
    WaitEnded,
}

/// Whether an agent got a reminder about a request or an artifact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reminded {
    /// The agent was not reminded yet.
    No,
    /// The agent was reminded once. There is no second reminder.
    Yes,
}

/// A request that the agent has read and not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The id of the request.
    pub request: MessageId,
    /// The party that asked.
    pub asker: AgentId,
    /// Whether the agent was reminded of the request.
    pub reminded: Reminded,
}

/// An artifact that the agent stored while it worked on a request, and never mentioned to the asker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// The id of the artifact.
    pub artifact: ArtifactId,
    /// The request that the agent worked on.
    pub request: MessageId,
    /// The party that asked.
    pub asker: AgentId,
    /// Whether the agent was reminded of the artifact.
    pub reminded: Reminded,
}

/// A text that ended a turn and is held. The agent still waits for answers that it needs for its request, so the text
/// is not sent yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The request that the agent worked on in the turn that ended with the text.
    pub request: MessageId,
    /// The party that asked.
    pub asker: AgentId,
    /// The requests that the text answers and that are still open.
    pub answers: Vec<MessageId>,
}

/// The last text that the agent sent to the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisional {
    /// The message that contains the text.
    pub message: MessageId,
    /// Whether the text is interim or final.
    pub finality: Finality,
    /// The requests of the person that the text answers.
    pub requests: Vec<MessageId>,
}

/// The facts about an agent at rest.
#[derive(Clone, Debug)]
pub struct RestFacts {
    /// Why the rules examine the agent.
    pub cause: Cause,
    /// What the agent waits for: answers, delayed messages to itself, and background commands.
    pub pending: Vec<Pending>,
    /// The requests that the agent owes an answer to, oldest first.
    pub owed: Vec<Owed>,
    /// The artifacts that the agent stored and never mentioned to the asker.
    pub unnamed: Vec<Unnamed>,
    /// The closing texts of the agent that are not sent yet, oldest first.
    pub held: Vec<Held>,
    /// The last text that the agent sent to the person, if there is one.
    pub provisional: Option<Provisional>,
}

/// The next thing to do for an agent at rest: an agent with no turn and no mail.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// Deliver the closing texts that are held for this request.
    Deliver(Held),
    /// Mark an interim text to the person as final.
    Settle(Provisional),
    /// Remind the agent of what it owes to one asker.
    Remind {
        /// The asker that waits.
        asker: AgentId,
        /// The open requests of the asker, oldest first. If none is open, the requests of the asker for which the agent
        /// stored artifacts.
        requests: Vec<MessageId>,
    },
    /// Tell the asker that no answer will follow, and give the asker the texts and artifacts that the agent made.
    GiveUp {
        /// The asker that waits.
        asker: AgentId,
        /// The open requests, oldest first.
        requests: Vec<MessageId>,
    },
}

/// Returns the next thing to do, or `None` if nothing is left to do. The caller does what the result says. This changes
/// the facts, so the caller then calls the function again with the new facts.
pub fn due(facts: &RestFacts) -> Option<Due> {
    if facts.cause == Cause::WaitEnded
        && let Some(due) = after_wait(facts)
    {
        return Some(due);
    }
    if !facts.pending.is_empty() {
        return None;
    }
    // A held text whose request is answered already is delivered now, as a supplement. The agent needs no reminder of
    // this request.
    let is_owed = |request: &MessageId| facts.owed.iter().any(|owed| owed.request == *request);
    if let Some(held) = facts.held.iter().find(|held| !is_owed(&held.request)) {
        return Some(Due::Deliver(held.clone()));
    }
    // Requests of the person cause no reminder. Instead, when the whole task is at rest, root gets the nudge: the
    // notice that the person has received no final message.
    let owed = facts.owed.iter().filter(|owed| !owed.asker.is_user());
    let mut requests: Vec<(&MessageId, &AgentId, Reminded, Open)> =
        owed.map(|owed| (&owed.request, &owed.asker, owed.reminded, Open::Yes)).collect();
    let unnamed = facts.unnamed.iter().filter(|unnamed| !unnamed.asker.is_user());
    requests.extend(unnamed.map(|unnamed| (&unnamed.request, &unnamed.asker, unnamed.reminded, Open::No)));
    requests.sort_by_key(|(request, ..)| *request);
    let asker = requests.first()?.1;
    let of_asker = |wanted: Option<Open>| {
        let chosen = requests.iter().filter(|(_, of, ..)| *of == asker);
        let mut ids: Vec<MessageId> = chosen
            .filter(|(.., open)| wanted.is_none_or(|wanted| wanted == *open))
            .map(|(request, ..)| (*request).clone())
            .collect();
        ids.dedup();
        ids
    };
    let fresh = requests.iter().any(|(_, of, reminded, _)| *of == asker && *reminded == Reminded::No);
    if fresh {
        let open = of_asker(Some(Open::Yes));
        let requests = if open.is_empty() { of_asker(None) } else { open };
        return Some(Due::Remind { asker: asker.clone(), requests });
    }
    Some(Due::GiveUp { asker: asker.clone(), requests: of_asker(Some(Open::Yes)) })
}

/// Whether a request still needs an answer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Yes,
    No,
}

/// Returns what is due when a wait has ended: to deliver a held text, or to mark an interim text as final.
fn after_wait(facts: &RestFacts) -> Option<Due> {
    let waits_for = |request: &MessageId| {
        facts.pending.iter().any(|pending| pending.on_behalf_of.as_ref() == Some(request))
    };
    let waits_for_nobody_in_particular = facts.pending.iter().any(|pending| pending.on_behalf_of.is_none());
    let is_free = |held: &&Held| !waits_for(&held.request) && !held.answers.iter().any(waits_for);
    if !waits_for_nobody_in_particular && let Some(held) = facts.held.iter().find(is_free) {
        return Some(Due::Deliver(held.clone()));
    }
    let provisional = facts.provisional.as_ref()?;
    let is_last = provisional.finality == Finality::Interim && !provisional.requests.iter().any(waits_for);
    is_last.then(|| Due::Settle(provisional.clone()))
}

#[cfg(test)]
mod tests;
