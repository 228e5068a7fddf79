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

/// How a gate stands, to be shown.
#[derive(Clone, Debug)]
pub struct GateStatus {
    /// How many were let in and have not come out.
    pub in_flight: u64,
    /// How many stand before it.
    pub waiting: u64,
    /// How much of a pause is left that the service has asked for.
    pub paused_for: Option<Duration>,
    /// Whether anybody is let in.
    pub circuit: GateCircuit,
    /// How the last call has failed; nothing where it was answered.
    pub last_failure: Option<CallError>,
}

/// Whether a gate lets anybody in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateCircuit {
    /// It does.
    Closed,
    /// Nobody, for a while.
    Open,
    /// One call finds out, or is about to, whether the service lives.
    HalfOpen,
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
    /// Counts it among those inside.
    inside: Option<Counted>,
}

/// Counts one who is at a gate, for as long as it is held.
#[derive(Debug)]
struct Counted {
    shared: Arc<Shared>,
    stands: Stands,
}

/// Where one stands who is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stands {
    Before,
    Inside,
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
    /// How many stand before it, and how many are inside.
    before: u64,
    inside: u64,
    /// How the last call has failed.
    last_failure: Option<CallError>,
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
            before: 0,
            inside: 0,
            last_failure: None,
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
        let _before = Counted::new(&self.shared, Stands::Before);
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
                    break Pass { shared, permit, probe: None, generation: 0, inside: None };
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
                    pass.inside = Some(Counted::new(&self.shared, Stands::Inside));
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
        state.last_failure = None;
        state.generation += 1;
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// How it stands now.
    pub fn status(&self) -> GateStatus {
        let now = Instant::now();
        let state = self.shared.state();
        GateStatus {
            in_flight: state.inside,
            waiting: state.before,
            paused_for: state.closed_until.filter(|until| *until > now).map(|until| until - now),
            circuit: match state.circuit.look(now) {
                Found::Closed => GateCircuit::Closed,
                Found::Open { .. } => GateCircuit::Open,
                Found::Due { .. } | Found::Probing { .. } => GateCircuit::HalfOpen,
            },
            last_failure: state.last_failure.clone(),
        }
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
            None | Some((_, Blame::Caller)) => {
                state.last_failure = failure.cloned();
                state.circuit.answered();
            }
            Some((failure, Blame::Server)) => {
                state.last_failure = Some(failure.clone());
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

impl Counted {
    fn new(shared: &Arc<Shared>, stands: Stands) -> Self {
        *shared.state().count(stands) += 1;
        Self { shared: Arc::clone(shared), stands }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        let count = state.count(self.stands);
        *count = count.saturating_sub(1);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is whole, so a panic elsewhere leaves nothing half-done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn count(&mut self, stands: Stands) -> &mut u64 {
        match stands {
            Stands::Before => &mut self.before,
            Stands::Inside => &mut self.inside,
        }
    }

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
mod tests;
