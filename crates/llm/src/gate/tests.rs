use super::*;
use crate::chat::FailureKind;
use futures::FutureExt;
use proptest::prelude::*;

fn gate(limit: usize) -> Gate {
    Gate::new(NonZeroUsize::new(limit))
}

const WAITS: Patience = Patience { longest_pause: Duration::MAX, while_open: WhileOpen::Wait };
const LEAVES: Patience = Patience { longest_pause: Duration::MAX, while_open: WhileOpen::Leave };

async fn enter(gate: &Gate) -> Pass {
    gate.enter(WAITS).await.unwrap()
}

fn failure(kind: FailureKind, status: Option<u16>) -> CallError {
    CallError { kind, message: "down".to_owned(), status, retry_after: None }
}

fn down() -> CallError {
    failure(FailureKind::Unreachable, None)
}

/// Returns a pause of ten seconds for each failure in a row.
fn pause(failures: u32) -> Duration {
    Duration::from_secs(10) * failures
}

/// Opens the circuit with five failed calls.
async fn open(gate: &Gate) {
    for _ in 0..5 {
        enter(gate).await.settle(Some(&down()), pause);
    }
}

#[tokio::test]
async fn as_many_as_the_limit_are_inside() {
    let gate = gate(2);
    let first = enter(&gate).await;
    let _second = enter(&gate).await;
    assert!(enter(&gate).now_or_never().is_none());
    drop(first);
    assert!(enter(&gate).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_gate_tells_how_it_stands() {
    let gate = gate(1);
    let counts = |gate: &Gate| (gate.status().in_flight, gate.status().waiting);
    assert_eq!(counts(&gate), (0, 0));
    let first = enter(&gate).await;
    let mut second = Box::pin(enter(&gate));
    assert!(second.as_mut().now_or_never().is_none());
    assert_eq!(counts(&gate), (1, 1));
    drop(second);
    assert_eq!(counts(&gate), (1, 0));
    first.settle(Some(&failure(FailureKind::Unauthorized, Some(401))), pause);
    assert_eq!(counts(&gate), (0, 0));
    assert_eq!(gate.status().last_failure.unwrap().kind, FailureKind::Unauthorized);
    enter(&gate).await.settle(None, pause);
    assert!(gate.status().last_failure.is_none());

    assert_eq!(gate.status().circuit, GateCircuit::Closed);
    open(&gate).await;
    assert_eq!(gate.status().circuit, GateCircuit::Open);
    tokio::time::advance(pause(5)).await;
    assert_eq!(gate.status().circuit, GateCircuit::HalfOpen);
    let probe = enter(&gate).await;
    assert_eq!(gate.status().circuit, GateCircuit::HalfOpen);
    // This caller has a place, but it must wait for the end of a pause. So it is not admitted yet.
    probe.settle(None, pause);
    gate.pause(Duration::from_secs(60));
    let mut paused = Box::pin(enter(&gate));
    assert!(paused.as_mut().now_or_never().is_none());
    assert_eq!((counts(&gate), gate.status().paused_for), ((0, 1), Some(Duration::from_secs(60))));
}

#[tokio::test(start_paused = true)]
async fn without_a_limit_all_are_let_in() {
    let gate = Gate::new(None);
    let mut passes = Vec::new();
    for _ in 0..1_000 {
        passes.push(tokio::time::timeout(Duration::from_secs(1), enter(&gate)).await.unwrap());
    }
}

#[tokio::test]
async fn who_comes_first_enters_first() {
    let gate = gate(1);
    let pass = enter(&gate).await;
    let (mut first, mut second) = (Box::pin(enter(&gate)), Box::pin(enter(&gate)));
    assert!((&mut first).now_or_never().is_none());
    assert!((&mut second).now_or_never().is_none());
    drop(pass);
    assert!((&mut second).now_or_never().is_none());
    let pass = (&mut first).now_or_never().unwrap();
    assert!((&mut second).now_or_never().is_none());
    drop(pass);
    assert!((&mut second).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pause_holds_everybody_and_is_never_shortened() {
    let gate = gate(4);
    let start = Instant::now();
    gate.pause(Duration::from_secs(30));
    gate.pause(Duration::from_secs(5));
    let _pass = enter(&gate).await;
    assert_eq!(start.elapsed().as_secs(), 30);
    let _pass = enter(&gate).await;
    assert_eq!(start.elapsed().as_secs(), 30);
}

#[tokio::test(start_paused = true)]
async fn what_an_old_server_did_counts_for_nothing_with_a_new_one() {
    let gate = gate(10);
    let mut old = Vec::new();
    for _ in 0..10 {
        old.push(enter(&gate).await);
    }
    gate.forget();
    for pass in old {
        pass.settle(Some(&down()), pause);
    }
    assert!(gate.enter(LEAVES).await.is_ok());
    open(&gate).await;
    assert!(gate.enter(LEAVES).await.is_err(), "failures of the new server count");
}

#[tokio::test(start_paused = true)]
async fn who_is_inside_hears_of_a_pause_until_it_is_over() {
    let gate = gate(2);
    let pass = enter(&gate).await;
    assert!(!pass.is_paused());
    gate.pause(Duration::from_secs(10));
    assert!(pass.is_paused());
    tokio::time::advance(Duration::from_secs(10)).await;
    assert!(!pass.is_paused());
}

#[tokio::test(start_paused = true)]
async fn a_pause_that_is_extended_while_waited_for_is_waited_out() {
    let gate = gate(1);
    let start = Instant::now();
    gate.pause(Duration::from_secs(10));
    let extend = async {
        tokio::time::sleep(Duration::from_secs(4)).await;
        gate.pause(Duration::from_secs(20));
    };
    let (_pass, ()) = tokio::join!(enter(&gate), extend);
    assert_eq!(start.elapsed().as_secs(), 24);
}

#[tokio::test(start_paused = true)]
async fn who_gives_up_waiting_gives_the_place_back() {
    let gate = gate(1);
    gate.pause(Duration::from_secs(10));
    assert!(enter(&gate).now_or_never().is_none());
    tokio::time::advance(Duration::from_secs(11)).await;
    assert!(enter(&gate).now_or_never().is_some());
}

#[tokio::test]
async fn a_pause_without_end_is_ignored() {
    let gate = gate(1);
    gate.pause(Duration::MAX);
    assert!(enter(&gate).now_or_never().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_pause_longer_than_the_patience_is_not_waited_for() {
    let gate = gate(1);
    let patience = Patience { longest_pause: Duration::from_secs(60), ..WAITS };
    let inside = enter(&gate).await;
    // A caller is already in the queue when the service asks for a pause.
    let in_line = gate.enter(patience);
    let asks = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        gate.pause(Duration::from_secs(3_600));
    };
    let began = Instant::now();
    let (shut, ()) = tokio::join!(in_line, asks);
    assert!(matches!(shut, Err(Shut::Paused { left }) if left.as_secs() == 3_600), "{shut:?}");
    assert_eq!(began.elapsed().as_secs(), 1);
    drop(inside);
    tokio::time::advance(Duration::from_secs(3_590)).await;
    let _pass = gate.enter(patience).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 3_601);
}

#[tokio::test(start_paused = true)]
async fn while_it_is_open_those_who_can_go_and_the_others_wait_for_one_probe() {
    let gate = gate(8);
    open(&gate).await;
    let shut = gate.enter(LEAVES).await.unwrap_err();
    assert!(matches!(shut, Shut::Open { failures: 5, .. }), "{shut:?}");
    let began = Instant::now();
    let (mut one, mut other) = (Box::pin(gate.enter(WAITS)), Box::pin(gate.enter(WAITS)));
    let probe =
        tokio::select! { biased; pass = &mut one => pass, _ = &mut other => panic!("the first comes first") };
    assert_eq!(began.elapsed().as_secs(), 50);
    assert!((&mut other).now_or_never().is_none(), "one at a time");
    assert!(matches!(gate.enter(LEAVES).await, Err(Shut::Open { .. })));
    // The probe fails. The waiting caller then fails too, and the next pause is longer.
    probe.unwrap().settle(Some(&down()), pause);
    assert!(matches!(other.await, Err(Shut::StillDown { .. })));
    assert_eq!(began.elapsed().as_secs(), 50);
    let probe = enter(&gate).await;
    assert_eq!(began.elapsed().as_secs(), 110);
    // Any answer of the server lets all callers in, even a refusal.
    let waiting = gate.enter(WAITS);
    probe.settle(Some(&failure(FailureKind::Refused, Some(400))), pause);
    let _pass = waiting.await.unwrap();
    let _pass = gate.enter(LEAVES).await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 110);
}

#[tokio::test(start_paused = true)]
async fn those_in_line_for_a_place_hear_that_the_circuit_has_opened() {
    let gate = gate(1);
    for _ in 0..4 {
        enter(&gate).await.settle(Some(&down()), pause);
    }
    let inside = enter(&gate).await;
    let mut in_line = Box::pin(gate.enter(LEAVES));
    assert!((&mut in_line).now_or_never().is_none());
    let last = async { inside.settle(Some(&down()), pause) };
    let (shut, ()) = tokio::join!(in_line, last);
    assert!(matches!(shut, Err(Shut::Open { .. })), "{shut:?}");
}

#[tokio::test(start_paused = true)]
async fn a_probe_that_is_dropped_makes_way_for_another() {
    let gate = gate(2);
    open(&gate).await;
    let probe = enter(&gate).await;
    let mut next = Box::pin(gate.enter(WAITS));
    assert!((&mut next).now_or_never().is_none());
    drop(probe);
    let probe = next.await.unwrap();
    let mut next = Box::pin(gate.enter(WAITS));
    assert!((&mut next).now_or_never().is_none());
    // A probe that could not be sent tells nothing about the server.
    probe.settle(Some(&failure(FailureKind::Misconfigured, None)), pause);
    let _probe = next.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn another_server_starts_afresh() {
    let gate = gate(1);
    open(&gate).await;
    gate.pause(Duration::from_secs(3_600));
    let began = Instant::now();
    let other = async { gate.forget() };
    let (pass, ()) = tokio::join!(gate.enter(WAITS), other);
    assert!(pass.is_ok());
    assert_eq!(began.elapsed().as_secs(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_service_that_is_tried_again_gets_one_call_at_first() {
    let gate = gate(8);
    open(&gate).await;
    gate.pause(Duration::from_secs(3_600));
    let began = Instant::now();
    let tries = gate.tries();
    let mut waiting: Vec<_> = (0..3).map(|_| Box::pin(gate.enter(WAITS))).collect();
    assert!(waiting.iter_mut().all(|caller| caller.now_or_never().is_none()));
    assert!(!tries.has_changed().unwrap());
    gate.try_again();
    assert!(tries.has_changed().unwrap());
    let mut entered: Vec<_> = waiting.iter_mut().filter_map(|caller| caller.now_or_never()).collect();
    assert_eq!((entered.len(), gate.status().in_flight), (1, 1), "the probe");
    assert!(gate.status().last_failure.is_some());
    // The person tries again during the probe. This begins no second probe.
    gate.try_again();
    assert!(gate.enter(WAITS).now_or_never().is_none());
    entered.remove(0).unwrap().settle(Some(&down()), pause);
    let mut waiting = waiting.split_off(1);
    let told = waiting.iter_mut().filter_map(|caller| caller.now_or_never());
    assert_eq!(told.filter(|told| matches!(told, Err(Shut::StillDown { .. }))).count(), 2);
    gate.try_again();
    enter(&gate).await.settle(None, pause);
    let _passes = (enter(&gate).await, enter(&gate).await);
    assert_eq!(began.elapsed().as_secs(), 0);
}

#[derive(Clone, Debug)]
enum Act {
    Enter,
    Leave(usize),
    Limit(usize),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![Just(Act::Enter), any::<usize>().prop_map(Act::Leave), (0..6_usize).prop_map(Act::Limit)]
}

/// The calls of one agent, in order. For each call: its length in milliseconds, and whether the call succeeds. `None`
/// means that the agent drops the pass without a result.
type Calls = Vec<(u64, Option<bool>)>;

/// An event of the agent with this number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen {
    Came(usize),
    Entered(usize),
}

/// Lets the agents make their calls. Returns what happened, in order and with the times: which agent came to the gate,
/// and which agent was admitted.
async fn play(limit: usize, agents: Vec<Calls>) -> Vec<(Seen, Instant)> {
    let gate = gate(limit);
    let seen = Arc::new(Mutex::new(Vec::new()));
    let plays = agents.into_iter().enumerate().map(|(agent, calls)| {
        let (gate, seen) = (gate.clone(), seen.clone());
        async move {
            for (millis, outcome) in calls {
                seen.lock().unwrap().push((Seen::Came(agent), Instant::now()));
                let Ok(pass) = gate.enter(WAITS).await else { continue };
                seen.lock().unwrap().push((Seen::Entered(agent), Instant::now()));
                tokio::time::sleep(Duration::from_millis(millis)).await;
                match outcome {
                    Some(true) => pass.settle(None, pause),
                    Some(false) => pass.settle(Some(&down()), pause),
                    None => drop(pass),
                }
            }
        }
    });
    // The test uses a simulated clock, so the timeout of a year passes only if a caller is never woken.
    let all = futures::future::join_all(plays);
    tokio::time::timeout(Duration::from_secs(3_600 * 24 * 365), all).await.expect("no caller waits forever");
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// In the end, the gate lets every caller in, or tells the caller that the server is down. This holds whatever the
    /// server does, and whichever other callers leave.
    #[test]
    fn nobody_waits_for_ever(
        limit in 0..4_usize,
        agents in prop::collection::vec(
            prop::collection::vec((0..50_u64, prop::option::weighted(0.8, prop::bool::weighted(0.3))), 0..12),
            1..6,
        ),
    ) {
        paused().block_on(play(limit, agents));
    }

    /// While an agent waits, no other agent is let in more than once, even if the other agent has many calls to make.
    #[test]
    fn many_calls_of_one_starve_nobody(
        limit in 1..4_usize,
        many in prop::collection::vec(1..20_u64, 20..60),
        few in prop::collection::vec(prop::collection::vec(1..20_u64, 1..4), 1..6),
    ) {
        let well = |calls: Vec<u64>| calls.into_iter().map(|millis| (millis, Some(true))).collect();
        let agents: Vec<Calls> = std::iter::once(many).chain(few).map(well).collect();
        let count = agents.len();
        let calls: usize = agents.iter().map(Vec::len).sum();
        let seen = paused().block_on(play(limit, agents));
        prop_assert_eq!(seen.len(), calls * 2);
        for (at, (came, _)) in seen.iter().enumerate() {
            let Seen::Came(agent) = *came else { continue };
            let later = &seen[at..];
            let entered = later.iter().find(|(what, _)| *what == Seen::Entered(agent)).unwrap().1;
            let mut passed = vec![0; count];
            for (what, when) in later {
                // Agents that are let in at the same instant may appear in any order.
                if let Seen::Entered(who) = *what && *when < entered {
                    passed[who] += 1;
                }
            }
            prop_assert!(passed.iter().all(|times| *times <= 1), "{passed:?} while {agent} waits");
        }
    }
}

proptest! {
    #[test]
    fn whoever_comes_is_let_in_if_and_only_if_there_is_room(acts in proptest::collection::vec(act(), 1..60)) {
        let (gate, mut limit, mut inside) = (gate(3), 3, Vec::new());
        for act in acts {
            match act {
                Act::Enter => {
                    let had_room = inside.len() < limit;
                    let pass = enter(&gate).now_or_never();
                    prop_assert_eq!(pass.is_some(), had_room);
                    inside.extend(pass);
                }
                Act::Leave(which) if !inside.is_empty() => drop(inside.swap_remove(which % inside.len())),
                Act::Leave(_) => {}
                Act::Limit(new) => {
                    // Zero means no limit.
                    let new = NonZeroUsize::new(new);
                    limit = new.map_or(usize::MAX, NonZeroUsize::get);
                    gate.set_max_concurrent(new);
                }
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_sees_its_place_and_when_the_gate_opens() {
    let gate = Gate::new(NonZeroUsize::new(1));
    let inside = enter(&gate).await;
    let tickets: Vec<Ticket> = (0..3).map(|_| gate.join()).collect();
    let numbers: Vec<TicketNumber> = tickets.iter().map(Ticket::number).collect();
    let places = || -> Vec<Option<u64>> {
        numbers.iter().map(|number| gate.outlook(*number).map(|outlook| outlook.place)).collect()
    };
    assert_eq!((places(), gate.status().waiting), (vec![Some(1), Some(2), Some(3)], 3));
    let mut tickets = tickets.into_iter();
    let (first, second, third) = (tickets.next(), tickets.next(), tickets.next().unwrap());
    // The second caller leaves the queue.
    drop(second);
    assert_eq!((places(), gate.status().waiting), (vec![Some(1), None, Some(2)], 2));
    drop((inside, first));
    gate.pause(Duration::from_secs(9));
    let outlook = gate.outlook(numbers[2]).unwrap();
    assert_eq!(outlook, Outlook { place: 1, closed_for: Some(Duration::from_secs(9)) });
    let _pass = third.enter(WAITS).await.unwrap();
    assert_eq!((places(), gate.status().in_flight), (vec![None; 3], 1));
}
