use super::*;
use proptest::prelude::*;
use proptest::sample::select;

fn id(number: i64) -> MessageId {
    MessageId::from_sequence(number)
}

fn owed(number: i64, asker: &str, reminded: Reminded) -> Owed {
    Owed { request: id(number), asker: AgentId::new(asker), reminded }
}

fn unnamed(number: i64, asker: &str, reminded: Reminded) -> Unnamed {
    Unnamed { artifact: ArtifactId::new("a"), request: id(number), asker: AgentId::new(asker), reminded }
}

fn held(number: i64, asker: &str, answers: &[i64]) -> Held {
    Held {
        request: id(number),
        asker: AgentId::new(asker),
        answers: answers.iter().copied().map(id).collect(),
    }
}

fn waits(of: &[Option<i64>]) -> Vec<Pending> {
    of.iter().map(|of| Pending { on_behalf_of: of.map(id) }).collect()
}

fn nothing(cause: Cause) -> RestFacts {
    RestFacts {
        cause,
        pending: Vec::new(),
        owed: Vec::new(),
        unnamed: Vec::new(),
        held: Vec::new(),
        provisional: None,
    }
}

const LEAD: &str = "lead-1111";
const READER: &str = "reader-7k2f";

fn remind(asker: &str, requests: &[i64]) -> Option<Due> {
    Some(Due::Remind { asker: AgentId::new(asker), requests: requests.iter().copied().map(id).collect() })
}

fn give_up(asker: &str, requests: &[i64]) -> Option<Due> {
    Some(Due::GiveUp { asker: AgentId::new(asker), requests: requests.iter().copied().map(id).collect() })
}

#[test]
fn whoever_owes_an_answer_is_reminded_once_and_then_given_up() {
    let turn = || nothing(Cause::TurnEnded);
    assert_eq!(due(&turn()), None);
    let open = RestFacts { owed: vec![owed(1, LEAD, Reminded::No)], ..turn() };
    assert_eq!(due(&open), remind(LEAD, &[1]));
    // An agent that still waits for somebody may answer later, so nothing is due.
    assert_eq!(due(&RestFacts { pending: waits(&[Some(9)]), ..open.clone() }), None);
    assert_eq!(due(&RestFacts { pending: waits(&[None]), ..open }), None);
    let reminded = RestFacts { owed: vec![owed(1, LEAD, Reminded::Yes)], ..turn() };
    assert_eq!(due(&reminded), give_up(LEAD, &[1]));
    // If a request comes after the reminder, the agent gets a reminder for it too.
    let both = vec![owed(1, LEAD, Reminded::Yes), owed(2, LEAD, Reminded::No)];
    assert_eq!(due(&RestFacts { owed: both, ..turn() }), remind(LEAD, &[1, 2]));
}

#[test]
fn one_asker_after_the_other() {
    let facts = RestFacts {
        owed: vec![owed(1, LEAD, Reminded::Yes), owed(2, READER, Reminded::No), owed(3, LEAD, Reminded::Yes)],
        ..nothing(Cause::TurnEnded)
    };
    assert_eq!(due(&facts), give_up(LEAD, &[1, 3]));
    let facts = RestFacts { owed: facts.owed[1..2].to_vec(), ..facts };
    assert_eq!(due(&facts), remind(READER, &[2]));
}

#[test]
fn the_person_is_left_to_the_nudge() {
    let facts = RestFacts {
        owed: vec![owed(1, "user", Reminded::No)],
        unnamed: vec![unnamed(1, "user", Reminded::No)],
        ..nothing(Cause::TurnEnded)
    };
    assert_eq!(due(&facts), None);
}

#[test]
fn what_was_stored_and_not_named_is_asked_for_even_after_an_answer() {
    let stored = |reminded| RestFacts {
        unnamed: vec![unnamed(4, LEAD, reminded), unnamed(4, LEAD, reminded)],
        ..nothing(Cause::TurnEnded)
    };
    assert_eq!(due(&stored(Reminded::No)), remind(LEAD, &[4]));
    assert_eq!(due(&stored(Reminded::Yes)), give_up(LEAD, &[]));
    // The reminder names only the open request, and not the request for which the artifacts were stored.
    let both = RestFacts { owed: vec![owed(5, LEAD, Reminded::No)], ..stored(Reminded::No) };
    assert_eq!(due(&both), remind(LEAD, &[5]));
}

#[test]
fn a_held_text_is_delivered_when_its_last_wait_ends_in_silence() {
    let facts = |cause, pending: &[Option<i64>]| RestFacts {
        pending: waits(pending),
        owed: vec![owed(1, LEAD, Reminded::No), owed(2, LEAD, Reminded::No)],
        held: vec![held(2, LEAD, &[1, 2])],
        ..nothing(cause)
    };
    let delivered = Some(Due::Deliver(held(2, LEAD, &[1, 2])));
    assert_eq!(due(&facts(Cause::WaitEnded, &[])), delivered);
    assert_eq!(due(&facts(Cause::WaitEnded, &[Some(7)])), delivered);
    assert_eq!(due(&facts(Cause::WaitEnded, &[Some(2)])), None);
    // The held text also answers request 1, and the agent still waits on behalf of request 1.
    assert_eq!(due(&facts(Cause::WaitEnded, &[Some(1)])), None);
    assert_eq!(due(&facts(Cause::WaitEnded, &[None])), None);
    // A later turn ended without a text, so the agent is reminded of the requests that the held text answers.
    assert_eq!(due(&facts(Cause::TurnEnded, &[])), remind(LEAD, &[1, 2]));
    // If another message has already answered the request of the held text, no reminder is due. The held text is
    // delivered as a supplement.
    let settled = |pending: &[Option<i64>]| {
        let held = vec![held(2, LEAD, &[2])];
        RestFacts { owed: vec![owed(5, LEAD, Reminded::No)], held, ..facts(Cause::TurnEnded, pending) }
    };
    assert_eq!(due(&settled(&[])), Some(Due::Deliver(held(2, LEAD, &[2]))));
    assert_eq!(due(&settled(&[Some(9)])), None);
}

#[test]
fn an_interim_text_turns_out_final_when_its_last_wait_ends_in_silence() {
    let provisional = |finality| Provisional { message: id(8), finality, requests: vec![id(1)] };
    let facts = |cause, finality, pending: &[Option<i64>]| RestFacts {
        pending: waits(pending),
        owed: vec![owed(1, "user", Reminded::No)],
        provisional: Some(provisional(finality)),
        ..nothing(cause)
    };
    let settled = Some(Due::Settle(provisional(Finality::Interim)));
    assert_eq!(due(&facts(Cause::WaitEnded, Finality::Interim, &[])), settled);
    assert_eq!(due(&facts(Cause::WaitEnded, Finality::Interim, &[Some(7)])), settled);
    assert_eq!(due(&facts(Cause::WaitEnded, Finality::Interim, &[Some(1)])), None);
    assert_eq!(due(&facts(Cause::WaitEnded, Finality::Final, &[])), None);
    assert_eq!(due(&facts(Cause::TurnEnded, Finality::Interim, &[])), None);
}

fn any_facts() -> impl Strategy<Value = RestFacts> {
    let asker = || select(vec!["user", LEAD, READER]);
    let reminded = || select(vec![Reminded::No, Reminded::Yes]);
    let owes = proptest::collection::vec((asker(), reminded()), 0..5);
    let stored = proptest::collection::vec((1i64..9, asker(), reminded()), 0..4);
    let holds = proptest::collection::vec((1i64..9, asker()), 0..3);
    let pending = proptest::collection::vec(proptest::option::of(1i64..9), 0..3);
    let cause = select(vec![Cause::TurnEnded, Cause::WaitEnded]);
    (owes, stored, holds, pending, cause).prop_map(|(owes, stored, holds, pending, cause)| RestFacts {
        owed: (1..).zip(owes).map(|(number, (asker, reminded))| owed(number, asker, reminded)).collect(),
        unnamed: stored
            .into_iter()
            .map(|(number, asker, reminded)| unnamed(number, asker, reminded))
            .collect(),
        held: holds.into_iter().map(|(number, asker)| held(number, asker, &[number])).collect(),
        pending: waits(&pending),
        ..nothing(cause)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// The caller does what is due until nothing is left. This loop ends, and sends at most one reminder per request.
    /// After the loop, an agent that waits for nobody owes an answer only to the person.
    #[test]
    fn nobody_is_left_without_an_answer(facts in any_facts()) {
        let mut facts = facts;
        let mut reminded_of: Vec<MessageId> = Vec::new();
        for _ in 0..100 {
            let Some(next) = due(&facts) else { break };
            match next {
                Due::Deliver(delivered) => {
                    facts.held.retain(|held| *held != delivered);
                    facts.owed.retain(|owed| !delivered.answers.contains(&owed.request));
                }
                Due::Settle(_) => facts.provisional = None,
                Due::Remind { asker, .. } => {
                    prop_assert!(facts.pending.is_empty() && !asker.is_user());
                    for owed in facts.owed.iter_mut().filter(|owed| owed.asker == asker && owed.reminded == Reminded::No) {
                        prop_assert!(!reminded_of.contains(&owed.request));
                        reminded_of.push(owed.request.clone());
                        owed.reminded = Reminded::Yes;
                    }
                    facts.unnamed.iter_mut().filter(|unnamed| unnamed.asker == asker).for_each(|unnamed| unnamed.reminded = Reminded::Yes);
                }
                Due::GiveUp { asker, .. } => {
                    prop_assert!(facts.owed.iter().all(|owed| owed.asker != asker || owed.reminded == Reminded::Yes));
                    facts.owed.retain(|owed| owed.asker != asker);
                    facts.unnamed.retain(|unnamed| unnamed.asker != asker);
                }
            }
        }
        prop_assert_eq!(due(&facts), None);
        if facts.pending.is_empty() {
            prop_assert!(facts.owed.iter().all(|owed| owed.asker.is_user()));
            prop_assert!(facts.unnamed.iter().all(|unnamed| unnamed.asker.is_user()));
            // Every text that is still held belongs to a request that still needs an answer. As checked above, all
            // such requests are requests of the person. For their answers, root gets the nudge.
            let owed: Vec<&MessageId> = facts.owed.iter().map(|owed| &owed.request).collect();
            prop_assert!(facts.held.iter().all(|held| owed.contains(&&held.request)));
        }
    }
}
