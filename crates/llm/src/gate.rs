//! When a call to a service may begin.

use crate::chat::{Blame, CallError};
use crate::circuit::{Circuit, Found, Probe};
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// The gate of one service, shared by all who call it.
///
/// It lets in as many at once as the service takes, in the order of their coming, and nobody while the service has
/// asked to be left alone. Where the service fails again and again it opens a circuit: for a while nobody is let in, then
/// one at a time, until one is answered.
#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
}

/// What a caller is willing to wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The longest pause that the service has asked for.
    pub longest_pause: Duration,
    /// Whether it waits while the service is given time to recover.
    pub while_open: WhileOpen,
}

/// What a caller does while the circuit is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileOpen {
    /// It waits until somebody finds out whether the service lives.
    Wait,
    /// It goes at once: it can ask somebody else.
    Leave,
}

/// Why a caller was not let in.
#[derive(Clone, Debug)]
pub enum Shut {
    /// The service has asked to be left alone for longer than the caller waits.
    Paused {
        /// So much of the pause is left.
        left: Duration,
    },
    /// The circuit is open, and the caller does not wait.
    Open {
        /// So many calls in a row have failed.
        failures: u32,
        /// The last of them.
        last: CallError,
    },
    /// The caller has waited for another call to find out whether the service lives, and that call failed.
    StillDown {
        /// How it failed.
        last: CallError,
    },
}

/// Leave to make one call; gives the place back when dropped.
#[derive(Debug)]
#[must_use = "the place is given back at once if the pass is dropped"]
pub struct Pass {
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
    probe: Option<Probe>,
    /// Which server it lets the caller ask.
    generation: u64,
}

#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    state: Mutex<State>,
    /// Wakes those who wait, after each change of what they wait for.
    changed: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    /// How many may be inside.
    limit: usize,
    /// Places that were taken away while somebody was in them.
    owed: usize,
    /// When the pause ends.
    closed_until: Option<Instant>,
    circuit: Circuit,
    /// How many probes have failed, ever.
    failed_probes: u64,
    /// How often the service has become another one.
    generation: u64,
}

/// What one who stands at the gate does next.
enum Step {
    Enter(Option<Probe>),
    Leave(Shut),
    /// Waits for a change, but no longer than until then.
    Wait(Option<Instant>),
}

impl Gate {
    /// Opens a gate for so many calls at once; `None` for any number.
    pub fn new(max_concurrent: Option<NonZeroUsize>) -> Self {
        let limit = places(max_concurrent);
        let state = Mutex::new(State {
            limit,
            owed: 0,
            closed_until: None,
            circuit: Circuit::default(),
            failed_probes: 0,
            generation: 0,
        });
        let places = Arc::new(Semaphore::new(limit));
        Self { shared: Arc::new(Shared { places, state, changed: watch::Sender::new(()) }) }
    }

    /// Waits for a place, in the order of coming, for the end of any pause, and for the service to recover, as far as the
    /// caller has patience.
    ///
    /// # Errors
    ///
    /// Fails where the caller is not let in; nothing is held then.
    pub async fn enter(&self, patience: Patience) -> Result<Pass, Shut> {
        let mut changes = self.shared.changed.subscribe();
        let failed_before = self.shared.state().failed_probes;
        // Those who queue hear of changes too: whoever can ask somebody else does not stand in line for nothing.
        let mut place = Box::pin(self.shared.places.clone().acquire_owned());
        let mut pass = loop {
            if let Step::Leave(shut) = self.shared.state().step(patience, failed_before) {
                return Err(shut);
            }
            tokio::select! {
                biased;
                // Cannot fail: the semaphore is never closed.
                permit = &mut place => {
                    let (shared, permit) = (self.shared.clone(), permit.ok());
                    break Pass { shared, permit, probe: None, generation: 0 };
                }
                // Cannot fail: the sender is in `self`.
                _ = changes.changed() => {}
            }
        };
        loop {
            changes.mark_unchanged();
            let (step, generation) = {
                let mut state = self.shared.state();
                (state.enter(patience, failed_before), state.generation)
            };
            match step {
                Step::Enter(probe) => {
                    (pass.probe, pass.generation) = (probe, generation);
                    return Ok(pass);
                }
                Step::Leave(shut) => return Err(shut),
                Step::Wait(None) => {
                    let _ = changes.changed().await;
                }
                Step::Wait(Some(until)) => {
                    // What comes first; either way the next look decides.
                    let _ = tokio::time::timeout_at(until, changes.changed()).await;
                }
            }
        }
    }

    /// Lets nobody in for a while. A pause under way is extended, never shortened; calls already made go on.
    pub fn pause(&self, duration: Duration) {
        // A pause beyond the end of time is one that nobody can mean.
        let Some(until) = Instant::now().checked_add(duration) else {
            return;
        };
        let mut state = self.shared.state();
        state.closed_until = state.closed_until.max(Some(until));
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// Forgets the pause and all failures: the service is another one now.
    pub fn forget(&self) {
        let mut state = self.shared.state();
        state.closed_until = None;
        state.circuit.forget();
        state.generation += 1;
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// Changes how many may be inside at once. Those who are stay; new ones wait until there is room.
    pub fn set_max_concurrent(&self, max_concurrent: Option<NonZeroUsize>) {
        let limit = places(max_concurrent);
        let mut state = self.shared.state();
        if let Some(more) = limit.checked_sub(state.limit) {
            let paid = state.owed.min(more);
            state.owed -= paid;
            self.shared.places.add_permits(more - paid);
        } else {
            let fewer = state.limit - limit;
            state.owed += fewer - self.shared.places.forget_permits(fewer);
        }
        state.limit = limit;
    }
}

impl Pass {
    /// Tells whether the service has asked to be left alone since the caller was let in.
    pub fn is_paused(&self) -> bool {
        self.shared.state().closed_until.is_some_and(|until| until > Instant::now())
    }

    /// Says how the call went, and gives the place back. `pause` says how long the service is left alone after so many
    /// failures in a row.
    pub fn settle(mut self, failure: Option<&CallError>, pause: impl FnOnce(u32) -> Duration) {
        let blame = failure.map(|failure| (failure, failure.blames()));
        let mut state = self.shared.state();
        if self.generation != state.generation {
            // It tells of a server that nobody asks any more.
            return;
        }
        match blame {
            // Whoever was the probe has not found out; dropping says so.
            Some((_, Blame::Nobody)) => return,
            None | Some((_, Blame::Caller)) => state.circuit.answered(),
            Some((failure, Blame::Server)) => {
                let now = Instant::now();
                state.circuit.failed(self.probe, failure, now, pause);
                let found = state.circuit.look(now);
                if self.probe.is_some() && !matches!(found, Found::Closed) {
                    state.failed_probes += 1;
                }
            }
        }
        drop(state);
        self.probe = None;
        self.shared.changed.send_replace(());
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // Under the lock, so that no place is given back and counted as owed at once.
        let mut state = self.shared.state();
        if let Some(probe) = self.probe.take() {
            state.circuit.abandoned(probe, Instant::now());
            self.shared.changed.send_replace(());
        }
        let Some(permit) = self.permit.take() else { return };
        if state.owed > 0 {
            state.owed -= 1;
            permit.forget();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is whole, so a panic elsewhere leaves nothing half-done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// What somebody does who has a place already.
    fn enter(&mut self, patience: Patience, failed_before: u64) -> Step {
        let step = self.step(patience, failed_before);
        match step {
            // Where a probe is due, the caller is it.
            Step::Enter(_) => Step::Enter(self.circuit.probe(Instant::now())),
            Step::Leave(_) | Step::Wait(_) => step,
        }
    }

    /// What somebody does who has waited since so many probes had failed.
    fn step(&self, patience: Patience, failed_before: u64) -> Step {
        let now = Instant::now();
        let paused_until = self.closed_until.filter(|until| *until > now);
        if let Some(left) =
            paused_until.map(|until| until - now).filter(|left| *left > patience.longest_pause)
        {
            return Step::Leave(Shut::Paused { left });
        }
        let leaves = patience.while_open == WhileOpen::Leave;
        let (opens_at, last) = match self.circuit.look(now) {
            Found::Closed => return paused_until.map_or(Step::Enter(None), |until| Step::Wait(Some(until))),
            Found::Open { failures, last, .. } | Found::Probing { failures, last } if leaves => {
                return Step::Leave(Shut::Open { failures, last });
            }
            Found::Open { until, last, .. } => (Some(until), last),
            Found::Due { last } => (Some(now), last),
            Found::Probing { last, .. } => (None, last),
        };
        if self.failed_probes > failed_before {
            return Step::Leave(Shut::StillDown { last });
        }
        match (opens_at, paused_until) {
            (None, _) => Step::Wait(None),
            (Some(opens), Some(until)) => Step::Wait(Some(opens.max(until))),
            (Some(opens), None) if opens > now => Step::Wait(Some(opens)),
            (Some(_), None) => Step::Enter(None),
        }
    }
}

fn places(max_concurrent: Option<NonZeroUsize>) -> usize {
    max_concurrent.map_or(Semaphore::MAX_PERMITS, |limit| limit.get().min(Semaphore::MAX_PERMITS))
}

#[cfg(test)]
mod tests {
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

    /// Ten seconds for each failure in a row.
    fn pause(failures: u32) -> Duration {
        Duration::from_secs(10) * failures
    }

    /// Has enough calls fail.
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
        assert!(gate.enter(LEAVES).await.is_err(), "its own failures do count");
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
        // Somebody stands in line already when the service asks to be left alone.
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
        let probe = tokio::select! { biased; pass = &mut one => pass, _ = &mut other => panic!("the first comes first") };
        assert_eq!(began.elapsed().as_secs(), 50);
        assert!((&mut other).now_or_never().is_none(), "one at a time");
        assert!(matches!(gate.enter(LEAVES).await, Err(Shut::Open { .. })));
        // The probe fails: that is the other's failure too, and the next pause is longer.
        probe.unwrap().settle(Some(&down()), pause);
        assert!(matches!(other.await, Err(Shut::StillDown { .. })));
        assert_eq!(began.elapsed().as_secs(), 50);
        let probe = enter(&gate).await;
        assert_eq!(began.elapsed().as_secs(), 110);
        // An answer, whatever it says, lets everybody in.
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
        // One that could not even be sent says nothing of the server.
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

    #[derive(Clone, Debug)]
    enum Act {
        Enter,
        Leave(usize),
        Limit(usize),
    }

    fn act() -> impl Strategy<Value = Act> {
        prop_oneof![Just(Act::Enter), any::<usize>().prop_map(Act::Leave), (0..6_usize).prop_map(Act::Limit)]
    }

    /// What one agent does at a gate: it makes calls one after the other, each of which takes so many milliseconds and
    /// goes well or not, or it is gone before the end.
    type Calls = Vec<(u64, Option<bool>)>;

    /// What an agent was seen to do.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Seen {
        Came(usize),
        Entered(usize),
    }

    /// Who came and who was let in, in order, and when.
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
        // Longer than anything that is bounded can take; only somebody who is never woken needs it.
        let all = futures::future::join_all(plays);
        tokio::time::timeout(Duration::from_secs(3_600 * 24 * 365), all).await.expect("nobody hangs");
        let seen = seen.lock().unwrap();
        seen.clone()
    }

    fn paused() -> tokio::runtime::Runtime {
        tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(256))]

        /// Whatever the server does, and whoever goes away, everybody is let in or told that it is down.
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

        /// While one waits, each other is let in once at the most, however many calls it has still to make.
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
                    // Those who are let in at the same instant are seen in any order.
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
                        // Zero is no limit.
                        let new = NonZeroUsize::new(new);
                        limit = new.map_or(usize::MAX, NonZeroUsize::get);
                        gate.set_max_concurrent(new);
                    }
                }
            }
        }
    }
}
