//! What is left to do when an agent has come to rest: no turn, no mail (contract section 7, "Nobody is left without an
//! answer").

use crate::id::{AgentId, ArtifactId, MessageId};
use crate::message::Finality;
use crate::rules::Pending;

/// Why an agent is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// A turn of its own has ended.
    TurnEnded,
    /// Something that it waited for has ended, and no message tells it so.
    WaitEnded,
}

/// Whether an agent was reminded of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reminded {
    /// Not yet.
    No,
    /// Once, which is all there is.
    Yes,
}

/// A request that the agent has heard and not answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The request.
    pub request: MessageId,
    /// Who asked.
    pub asker: AgentId,
    /// Whether the agent was reminded of it.
    pub reminded: Reminded,
}

/// An artifact that the agent stored while it worked on a request, and never named to whoever asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unnamed {
    /// The artifact.
    pub artifact: ArtifactId,
    /// The request.
    pub request: MessageId,
    /// Who asked.
    pub asker: AgentId,
    /// Whether the agent was reminded of it.
    pub reminded: Reminded,
}

/// A closing text that is held for a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    /// The request that its turn worked on.
    pub request: MessageId,
    /// Who asked.
    pub asker: AgentId,
    /// The requests that it answers, if they are still open.
    pub answers: Vec<MessageId>,
}

/// The last text that the person was told while the agent waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Provisional {
    /// The message.
    pub message: MessageId,
    /// Whether it is still interim.
    pub finality: Finality,
    /// The requests of the person that it was said to.
    pub requests: Vec<MessageId>,
}

/// What is known of an agent at rest.
#[derive(Clone, Debug)]
pub struct RestFacts {
    /// Why it is looked at.
    pub cause: Cause,
    /// What it waits for.
    pub pending: Vec<Pending>,
    /// What it owes, oldest first.
    pub owed: Vec<Owed>,
    /// What it stored and never named.
    pub unnamed: Vec<Unnamed>,
    /// Its held texts, oldest first.
    pub held: Vec<Held>,
    /// What it last told the person.
    pub provisional: Option<Provisional>,
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Due {
    /// The texts that are held for this request are delivered.
    Deliver(Held),
    /// An interim text to the person turns out to be final.
    Settle(Provisional),
    /// The agent is reminded of what it owes one asker.
    Remind {
        /// The asker.
        asker: AgentId,
        /// The requests that are open, oldest first; else those for which it stored something.
        requests: Vec<MessageId>,
    },
    /// The asker is told that no more is to come, and gets what there is.
    GiveUp {
        /// The asker.
        asker: AgentId,
        /// The requests that are open, oldest first.
        requests: Vec<MessageId>,
    },
}

/// What is to be done first; `None` where nothing is left. Each thing done changes the facts, so the caller asks again.
pub fn due(facts: &RestFacts) -> Option<Due> {
    if facts.cause == Cause::WaitEnded
        && let Some(due) = after_wait(facts)
    {
        return Some(due);
    }
    if !facts.pending.is_empty() {
        return None;
    }
    // Where the request was answered before, no reminder brings the text: it follows as a supplement.
    let is_owed = |request: &MessageId| facts.owed.iter().any(|owed| owed.request == *request);
    if let Some(held) = facts.held.iter().find(|held| !is_owed(&held.request)) {
        return Some(Due::Deliver(held.clone()));
    }
    // The person has a reminder of its own: the nudge, when the whole task has come to rest.
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

/// Whether a request is still to be answered.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Open {
    Yes,
    No,
}

/// What the end of a wait sets free: texts that were held for it, or an interim text that now is the last word.
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
