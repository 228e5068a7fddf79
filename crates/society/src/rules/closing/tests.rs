use super::*;
use proptest::prelude::*;
use proptest::sample::select;
use std::collections::BTreeSet;

const ASKERS: [&str; 4] = ["user", "lead-1111", "reader-7k2f", "writer-3m9q"];

fn id(number: i64) -> MessageId {
    MessageId::from_sequence(number)
}

fn request(number: i64, from: &str) -> OpenRequest {
    OpenRequest { id: id(number), from: AgentId::new(from), chain: Vec::new() }
}

fn facts(works_on: Option<(i64, &str)>, open: &[(i64, &str)], pending: &[Option<i64>]) -> ClosingFacts {
    ClosingFacts {
        works_on: works_on.map(|(number, from)| WorkedOn { id: id(number), from: AgentId::new(from) }),
        prompting: Prompting::Ordinary,
        open_requests: open.iter().map(|(number, from)| request(*number, from)).collect(),
        pending: pending.iter().map(|of| Pending { on_behalf_of: of.map(id) }).collect(),
    }
}

/// Returns the address in a short form, such as `lead-1111 open 1,2 Final`.
fn shown(address: Option<Address>) -> String {
    let Some(Address { to, subject, timing }) = address else { return "nobody".to_owned() };
    let numbers: Vec<String> =
        subject.requests().iter().map(|request| request.sequence().unwrap().to_string()).collect();
    let subject = match subject {
        Subject::Open(_) => "open",
        Subject::Settled(_) => "settled",
        Subject::Nothing => "nothing",
    };
    format!("{to} {subject} {} {timing:?}", numbers.join(","))
}

#[track_caller]
fn check(works_on: Option<(i64, &str)>, open: &[(i64, &str)], pending: &[Option<i64>], expect: &str) {
    assert_eq!(shown(address(&facts(works_on, open, pending))), expect);
}

#[test]
fn to_whom_a_closing_text_goes_and_what_it_answers() {
    let (lead, reader) = ("lead-1111", "reader-7k2f");
    check(None, &[], &[], "nobody");
    check(Some((1, lead)), &[(1, lead)], &[], "lead-1111 open 1 Final");
    // The text also answers a follow-up of the same asker, but no request of another asker.
    check(Some((2, lead)), &[(1, lead), (2, lead), (3, reader)], &[], "lead-1111 open 1,2 Final");
    // If the request that the turn works on is answered already, the text follows the earlier answer as a supplement.
    check(Some((1, lead)), &[], &[], "lead-1111 settled 1 Final");
    check(Some((1, lead)), &[(2, reader)], &[], "lead-1111 settled 1 Final");
    // A turn that works on no request answers the asker that has waited longest.
    check(None, &[(2, reader), (3, lead)], &[], "reader-7k2f open 2 Final");
}

#[test]
fn a_text_waits_for_what_was_asked_on_behalf_of_the_request() {
    let (lead, user) = ("lead-1111", "user");
    check(Some((1, lead)), &[(1, lead)], &[Some(1)], "lead-1111 open 1 Held");
    // The agent waits for the answer to a request that it made on behalf of no other request. Nothing tells what the
    // agent needs the answer for. So the answer may matter for this text, and the text is held.
    check(Some((1, lead)), &[(1, lead)], &[None], "lead-1111 open 1 Held");
    // The agent waits on behalf of request 1, but the text answers request 2, so the text is sent at once.
    // For example, this agent has hired an agent, and request 2 is a question of the hired agent.
    check(Some((2, lead)), &[(2, lead)], &[Some(1)], "lead-1111 open 2 Final");
    // The text answers request 1 too. The agent still waits on behalf of request 1, so the text is held.
    check(Some((2, lead)), &[(1, lead), (2, lead)], &[Some(1)], "lead-1111 open 1,2 Held");
    check(Some((1, lead)), &[], &[Some(1)], "lead-1111 settled 1 Held");
    // The person gets the text at once.
    check(Some((1, user)), &[(1, user)], &[Some(1)], "user open 1 Interim");
    check(Some((1, user)), &[(1, user)], &[None], "user open 1 Final");
    check(Some((1, user)), &[(1, user)], &[Some(7)], "user open 1 Final");
}

#[test]
fn a_nudge_and_a_deadlock_have_somebody_speak() {
    let with = |prompting, works_on, open: &[(i64, &str)], pending: &[Option<i64>]| {
        shown(address(&ClosingFacts { prompting, ..facts(works_on, open, pending) }))
    };
    let user = "user";
    assert_eq!(with(Prompting::Nudge, Some((1, user)), &[(1, user)], &[Some(1)]), "user open 1 Final");
    assert_eq!(with(Prompting::Nudge, None, &[], &[]), "user nothing  Final");
    let lead = "lead-1111";
    assert_eq!(with(Prompting::Deadlock, Some((3, lead)), &[(3, lead)], &[None]), "lead-1111 open 3 Final");
    assert_eq!(with(Prompting::Deadlock, Some((3, lead)), &[(3, lead)], &[Some(3)]), "lead-1111 open 3 Held");
    assert_eq!(with(Prompting::Deadlock, None, &[], &[]), "nobody");
}

#[test]
fn a_text_that_was_sent_before_is_not_sent_again() {
    let earlier = |finality| Some(Earlier { id: id(9), finality });
    let at = |subject, timing| Some(Address { to: AgentId::new("lead-1111"), subject, timing });
    let open = || Subject::Open(vec![id(1)]);
    let settled = || Subject::Settled(id(1));
    let check = |address, earlier, expect| assert_eq!(closing(address, earlier), expect);
    check(None, None, Closing::Note);
    check(None, earlier(Finality::Final), Closing::Note);
    let said = at(open(), Timing::Held);
    check(said.clone(), None, Closing::Said(said.unwrap()));
    let answers = Closing::Repeated { earlier: id(9), answers: vec![id(1)] };
    check(at(open(), Timing::Final), earlier(Finality::Final), answers.clone());
    check(at(open(), Timing::Final), earlier(Finality::Interim), answers);
    let settles = Closing::Repeated { earlier: id(9), answers: Vec::new() };
    check(at(settled(), Timing::Final), earlier(Finality::Interim), settles);
    check(at(settled(), Timing::Final), earlier(Finality::Final), Closing::Note);
    for timing in [Timing::Interim, Timing::Held] {
        check(at(open(), timing), earlier(Finality::Interim), Closing::Note);
        check(at(settled(), timing), earlier(Finality::Interim), Closing::Note);
    }
}

fn any_facts() -> impl Strategy<Value = ClosingFacts> {
    let requests = proptest::collection::vec(select(ASKERS.to_vec()), 0..5);
    let works_on = proptest::option::of((1i64..8, select(ASKERS.to_vec())));
    let pending = proptest::collection::vec(proptest::option::of(1i64..8), 0..4);
    let prompting = select(vec![Prompting::Ordinary, Prompting::Nudge, Prompting::Deadlock]);
    (requests, works_on, pending, prompting).prop_map(|(requests, works_on, pending, prompting)| {
        let open: Vec<(i64, &str)> = (1..).zip(requests).collect();
        // The generator makes `works_on` without looking at the open requests. So an open request may have the same id
        // but another asker. Then the open request becomes `works_on`, because an id stands for only one request.
        let works_on = works_on.map(|(number, from)| {
            open.iter().find(|(open, _)| *open == number).copied().unwrap_or((number, from))
        });
        ClosingFacts { prompting, ..facts(works_on, &open, &pending) }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A closing text goes to a party that has asked, or to the person after a nudge.
    /// A text that goes to a party answers all open requests of this party.
    #[test]
    fn the_giver_has_asked_and_gets_all_its_answers(facts in any_facts()) {
        let Some(Address { to, subject, .. }) = address(&facts) else {
            prop_assert!(facts.works_on.is_none() && facts.open_requests.is_empty());
            return Ok(());
        };
        let of_giver: Vec<MessageId> = facts.open_requests.iter()
            .filter(|request| request.from == to).map(|request| request.id.clone()).collect();
        match subject {
            Subject::Open(requests) => prop_assert_eq!(requests, of_giver),
            Subject::Settled(request) => {
                prop_assert!(of_giver.is_empty());
                prop_assert_eq!(Some(request), facts.works_on.map(|request| request.id));
            }
            Subject::Nothing => prop_assert!(to.is_user() && facts.prompting == Prompting::Nudge),
        }
    }

    /// Only the person gets interim texts.
    /// A text for an agent is held while the writer of the text waits for other parties on behalf of the agent's
    /// request.
    #[test]
    fn who_waits_answers_the_person_alone(facts in any_facts()) {
        let Some(Address { to, subject, timing }) = address(&facts) else { return Ok(()) };
        let mut for_these: BTreeSet<MessageId> = subject.requests().iter().cloned().collect();
        for_these.extend(facts.works_on.map(|request| request.id));
        let waits = facts.pending.iter().any(|pending| pending.on_behalf_of.as_ref().is_some_and(|of| for_these.contains(of)));
        match timing {
            Timing::Held => prop_assert!(!to.is_user()),
            Timing::Interim => prop_assert!(to.is_user() && waits),
            Timing::Final => prop_assert!(!waits || facts.prompting == Prompting::Nudge),
        }
    }

    /// In a circle of waiting agents, the agent that got the last request can answer at once. This agent has made no
    /// further request on behalf of the last request.
    #[test]
    fn a_circle_is_broken_by_whoever_was_asked_last(facts in any_facts(), last in 100i64..200) {
        let asker = "lead-1111";
        let mut facts = ClosingFacts {
            works_on: Some(WorkedOn { id: id(last), from: AgentId::new(asker) }),
            prompting: Prompting::Deadlock,
            ..facts
        };
        facts.open_requests.retain(|request| request.from.as_str() != asker);
        facts.open_requests.push(request(last, asker));
        let timing = address(&facts).map(|address| address.timing);
        prop_assert_eq!(timing, Some(Timing::Final));
    }
}
