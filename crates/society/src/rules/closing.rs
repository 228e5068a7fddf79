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
    /// The request of somebody else that it passes on (its `request_id`).
    pub passes_on: Option<MessageId>,
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
    /// Those who wait for each other, where the system has just told the agent that it is one of them.
    pub circle: BTreeSet<AgentId>,
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
    // Somebody of a circle must speak first, although it waits itself.
    let of_circle = |request: &&OpenRequest| {
        facts.circle.contains(&request.from) && !facts.sent_to.contains(&request.from)
    };
    if let Some(asker) = facts.open_requests.iter().find(of_circle) {
        return Closing::Answer {
            to: asker.from.clone(),
            request: Some(asker.id.clone()),
            last_word: LastWord::UnlessWaiting,
        };
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Party, Standing};
    use crate::change::Change;
    use crate::contact::{KnownParty, Source};
    use crate::content::Capabilities;
    use crate::id::TaskId;
    use crate::limits::Limits;
    use crate::message::{Finality, Message, Payload};
    use crate::rules::{Acquaintance, Answering, DoorFacts, Draft, Waiting, admit};
    use proptest::prelude::*;
    use proptest::sample::select;

    const OTHERS: [&str; 4] = ["user", "lead-1111", "reader-7k2f", "writer-3m9q"];
    const ME: &str = "me-2222";

    fn party(id: &str) -> Party {
        Party {
            id: AgentId::new(id),
            task: None,
            role_name: id.to_owned(),
            interface_spec: None,
            objective: None,
            standing: Standing::Active,
            depth: 1,
            capabilities: Capabilities::default(),
        }
    }

    fn agents() -> impl Strategy<Value = BTreeSet<AgentId>> {
        proptest::collection::btree_set(select(OTHERS.map(AgentId::new).to_vec()), 0..4)
    }

    /// Facts as the runtime gathers them: what began the turn is among the open requests if it asked and is not answered.
    fn facts() -> impl Strategy<Value = ClosingFacts> {
        let requests = proptest::collection::vec(select(OTHERS.to_vec()), 0..4);
        let from = select(vec!["system", "user", "lead-1111", "reader-7k2f", ME]);
        let told = (agents(), agents(), prop_oneof![3 => Just(BTreeSet::new()), 1 => agents()]);
        (requests, from, any::<bool>(), any::<bool>(), any::<bool>(), told).prop_map(
            |(requests, from, asked, answered, nudged, (sent_to, waits_for, circle))| {
                let from = Sender::from_name(from);
                let nudge = if nudged && from == Sender::System { Nudge::Yes } else { Nudge::No };
                let expects =
                    if asked && from != Sender::System { Expects::Answer } else { Expects::Nothing };
                let numbered = (1..).zip(requests);
                let mut open_requests: Vec<OpenRequest> = numbered
                    .map(|(number, from)| OpenRequest {
                        id: MessageId::from_sequence(number),
                        from: AgentId::new(from),
                        passes_on: None,
                    })
                    .collect();
                let id = MessageId::from_sequence(10);
                if let (Expects::Answer, false, Some(asker)) = (expects, answered, from.party()) {
                    open_requests.push(OpenRequest { id: id.clone(), from: asker.clone(), passes_on: None });
                }
                ClosingFacts {
                    beginning: Beginning { id, from, expects, nudge },
                    open_requests,
                    sent_to,
                    waits_for,
                    circle: if nudge == Nudge::No { circle } else { BTreeSet::new() },
                }
            },
        )
    }

    /// The message that the closing text becomes.
    fn sent(facts: &ClosingFacts, to: &AgentId, request: Option<MessageId>) -> (Message, Option<MessageId>) {
        let contact =
            |id: &str| KnownParty { party: party(id), source: Source::System, introduced_by: None, since: 0 };
        let of_receiver = facts.open_requests.iter().filter(|request| request.from == *to);
        let door = DoorFacts {
            task: TaskId::new("t-1"),
            sender: party(ME),
            contacts: OTHERS.map(contact).to_vec(),
            acquaintance: Acquaintance::Known,
            open_requests: of_receiver.cloned().collect(),
            waiting: Waiting::ForNobody,
            queued: 0,
            exchanges: 0,
            openable: BTreeSet::new(),
        };
        let draft = Draft {
            to: to.to_string(),
            payload: Payload::text("so"),
            answering: request.map_or(Answering::Nothing, Answering::This),
            due_at: None,
        };
        let changes = admit(draft, &door, MessageId::from_sequence(99), &Limits::default()).unwrap();
        let mut message = None;
        let mut answered = None;
        for change in changes {
            match change {
                Change::MessageAccepted(accepted) => message = Some(*accepted),
                Change::RequestAnswered { request, .. } => answered = Some(request),
                _ => {}
            }
        }
        (message.unwrap(), answered)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// What is said at the end of a turn goes to somebody who has asked and was not answered; after a reminder to the person.
        #[test]
        fn the_giver_has_an_open_request_or_is_the_person(facts in facts()) {
            let Closing::Answer { to, request, last_word } = closing(&facts) else { return Ok(()) };
            prop_assert!(!facts.sent_to.contains(&to), "it was told in this turn");
            match facts.beginning.nudge {
                Nudge::Yes => prop_assert!(to.is_user() && last_word == LastWord::Yes),
                Nudge::No => prop_assert!(request.is_some() && last_word == LastWord::UnlessWaiting),
            }
            if let Some(request) = request {
                let answered = OpenRequest { id: request, from: to, passes_on: None };
                prop_assert!(facts.open_requests.contains(&answered));
            }
        }

        /// An answer asks for nothing, so what begins a turn with one never goes back and forth.
        #[test]
        fn an_answer_is_never_answered(facts in facts()) {
            let Closing::Answer { to, request, .. } = closing(&facts) else { return Ok(()) };
            let (message, answered) = sent(&facts, &to, request.clone());
            prop_assert_eq!(message.expects, Expects::Nothing);
            prop_assert_eq!(message.finality, Finality::Final);
            prop_assert_eq!(&message.in_reply_to, &request);
            prop_assert_eq!(answered, request);
        }

        /// Closing after closing answers each request once, and then there is nothing left to say.
        #[test]
        fn closings_come_to_an_end(facts in facts()) {
            let mut facts = ClosingFacts { sent_to: BTreeSet::new(), waits_for: BTreeSet::new(), ..facts };
            facts.beginning.nudge = Nudge::No;
            facts.beginning.expects = Expects::Nothing;
            for left in (0..facts.open_requests.len()).rev() {
                let Closing::Answer { request, .. } = closing(&facts) else {
                    return Err(TestCaseError::fail("a request is open"));
                };
                facts.open_requests.retain(|open| Some(&open.id) != request.as_ref());
                prop_assert_eq!(facts.open_requests.len(), left);
            }
            prop_assert_eq!(closing(&facts), Closing::Note);
        }

        /// Whoever is told of a circle answers somebody in it who was not told anything yet, if anybody of it has asked.
        #[test]
        fn a_circle_is_broken_by_whoever_is_told(facts in facts()) {
            let asks = |request: &OpenRequest| facts.circle.contains(&request.from) && !facts.sent_to.contains(&request.from);
            if !facts.open_requests.iter().any(asks) {
                return Ok(());
            }
            let Closing::Answer { to, .. } = closing(&facts) else {
                return Err(TestCaseError::fail("nobody speaks"));
            };
            prop_assert!(facts.circle.contains(&to));
        }

        /// An agent that waits for others tells an agent nothing yet; the person always hears.
        #[test]
        fn who_waits_answers_the_person_alone(facts in facts()) {
            let Closing::Answer { to, .. } = closing(&facts) else { return Ok(()) };
            let waits = facts.waits_for.iter().any(|awaited| *awaited != to);
            prop_assert!(to.is_user() || !waits || facts.circle.contains(&to));
        }
    }
}
