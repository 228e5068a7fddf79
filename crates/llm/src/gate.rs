//! Decides when a call to a service may begin.

use crate::chat::{Blame, CallError};
use crate::circuit::{Circuit, Found, Probe};
use std::collections::VecDeque;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;

/// The gate of one service, shared by all its callers.
///
/// The gate admits callers in the order in which they arrive, but not more callers at once than the service accepts. It
/// admits no caller during a pause that the service asked for. If the service fails again and again, the gate opens a
/// circuit. Then it admits no caller for a while. After that, it admits one caller at a time, until the service answers
/// a call.
#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
}

/// What a caller is willing to wait for at a gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Patience {
    /// The service may ask for a pause. If the pause is longer than this, the caller does not wait for its end.
    pub longest_pause: Duration,
    /// Whether the caller waits while the circuit is open.
    pub while_open: WhileOpen,
}

/// What a caller does while the circuit is open. The circuit opens after too many failures of the service. Then the
/// gate admits nobody for a while.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhileOpen {
    /// The caller waits until a probe shows whether the service works.
    Wait,
    /// The caller leaves at once, because it can ask another service.
    Leave,
}

/// Why the gate did not let a caller in.
#[derive(Clone, Debug)]
pub enum Shut {
    /// The service has asked for a pause that is longer than the caller's patience.
    Paused {
        /// Remaining time of the pause.
        left: Duration,
    },
    /// The circuit is open, and the caller does not wait.
    Open {
        /// Failed calls in a row.
        failures: u32,
        /// The last failure.
        last: CallError,
    },
    /// The caller waited until a probe showed whether the service works, and the probe failed.
    StillDown {
        /// The failure of the probe.
        last: CallError,
    },
}

/// The state of a gate at one moment, for display.
#[derive(Clone, Debug)]
pub struct GateStatus {
    /// Callers that were let in and have not left.
    pub in_flight: u64,
    /// Callers that wait to be let in.
    pub waiting: u64,
    /// Remaining time of a pause that the service asked for; `None` if there is no pause.
    pub paused_for: Option<Duration>,
    /// Whether the circuit lets callers in.
    pub circuit: GateCircuit,
    /// How the last call failed; `None` if it succeeded.
    pub last_failure: Option<CallError>,
    /// How long the service has been failing: the time since the first failure after its last answer. `None` if no call
    /// has failed since that answer.
    pub failing_for: Option<Duration>,
}

/// Whether the circuit of a gate lets callers in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GateCircuit {
    /// The circuit lets all callers in.
    Closed,
    /// The circuit lets no caller in for a while.
    Open,
    /// One caller may make a call. This call tests whether the service works.
    HalfOpen,
}

/// Permission to make one call. Dropping the pass frees the caller's place for another caller.
#[derive(Debug)]
#[must_use = "dropping the pass gives the place back at once"]
pub struct Pass {
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
    probe: Option<Probe>,
    /// The gate's generation when the caller was let in. If the gate now has another generation, another server has
    /// replaced the service since then.
    generation: u64,
    /// While this value lives, the gate counts the caller as admitted.
    inside: Option<Counted>,
}

/// Counts one caller that was let in, for as long as this value lives.
#[derive(Debug)]
struct Counted {
    shared: Arc<Shared>,
}

/// A place in the queue before a gate. A caller that drops its ticket leaves the queue.
#[derive(Debug)]
pub struct Ticket {
    shared: Arc<Shared>,
    number: TicketNumber,
}

/// The number of a ticket of one gate. Later tickets have higher numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TicketNumber(u64);

/// What a waiting caller sees from its place in the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The caller's place in the queue, from 1.
    pub place: u64,
    /// If the gate lets nobody in because of a pause or an open circuit, the time until this ends.
    pub closed_for: Option<Duration>,
}

#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    state: Mutex<State>,
    /// Wakes the waiting callers after each change of the pause or of the circuit.
    changed: watch::Sender<()>,
    /// Wakes the callers that pause after a failure, when the person wants to try the service again.
    again: watch::Sender<()>,
}

#[derive(Debug)]
struct State {
    /// Maximum number of callers that are admitted at the same time.
    limit: usize,
    /// When the limit is lowered, some places that are too many may still be in use. This is their number. They are
    /// removed when callers leave.
    owed: usize,
    /// When the pause that the service asked for ends.
    closed_until: Option<Instant>,
    circuit: Circuit,
    /// How many probes (calls that test whether the service works again) have failed since the gate was created.
    failed_probes: u64,
    /// How often another server has replaced the service.
    generation: u64,
    /// The tickets of the callers that wait before the gate, in the order of their numbers.
    before: VecDeque<TicketNumber>,
    next_ticket: u64,
    /// Number of callers that are admitted.
    inside: u64,
    /// How the last call failed; `None` if it succeeded.
    last_failure: Option<CallError>,
    /// The time at which the service began to fail: the first failure after its last answer. `None` if no call has
    /// failed since that answer.
    failing_since: Option<Instant>,
}

/// What a caller at the gate does next.
enum NextMove {
    Enter(Option<Probe>),
    Leave(Shut),
    /// Wait until the state of the gate changes, but at most until this time.
    Wait(Option<Instant>),
}

impl Gate {
    /// Creates a gate for this number of calls at once; `None` means no limit.
    pub fn new(max_concurrent: Option<NonZeroUsize>) -> Self {
        let limit = places(max_concurrent);
        let state = Mutex::new(State {
            limit,
            owed: 0,
            closed_until: None,
            circuit: Circuit::default(),
            failed_probes: 0,
            generation: 0,
            before: VecDeque::new(),
            next_ticket: 1,
            inside: 0,
            last_failure: None,
            failing_since: None,
        });
        let places = Arc::new(Semaphore::new(limit));
        Self {
            shared: Arc::new(Shared {
                places,
                state,
                changed: watch::Sender::new(()),
                again: watch::Sender::new(()),
            }),
        }
    }

    /// Joins the queue before the gate. The caller then waits with [`Ticket::enter`].
    pub fn join(&self) -> Ticket {
        let mut state = self.shared.state();
        let number = TicketNumber(state.next_ticket);
        state.next_ticket += 1;
        state.before.push_back(number);
        drop(state);
        Ticket { shared: Arc::clone(&self.shared), number }
    }

    /// Joins the queue and waits, as [`Ticket::enter`] does.
    ///
    /// # Errors
    ///
    /// Fails if the gate does not let the caller in.
    pub async fn enter(&self, patience: Patience) -> Result<Pass, Shut> {
        self.join().enter(patience).await
    }

    /// Returns what the caller with this ticket sees; `None` if the caller no longer waits.
    pub fn outlook(&self, ticket: TicketNumber) -> Option<Outlook> {
        let now = Instant::now();
        let state = self.shared.state();
        let index = state.before.binary_search(&ticket).ok()?;
        let opens = match state.circuit.look(now) {
            Found::Open { until, .. } => Some(until),
            Found::Closed | Found::Due { .. } | Found::Probing { .. } => None,
        };
        let opens = state.closed_until.max(opens).filter(|until| *until > now);
        Some(Outlook { place: index as u64 + 1, closed_for: opens.map(|until| until - now) })
    }

    /// Begins a pause, in which the gate admits no caller. This function can make the current pause longer, but not
    /// shorter. Calls that have begun continue.
    pub fn pause(&self, duration: Duration) {
        // If a pause is too long for the clock, it must be a mistake, so ignore it.
        let Some(until) = Instant::now().checked_add(duration) else {
            return;
        };
        let mut state = self.shared.state();
        state.closed_until = state.closed_until.max(Some(until));
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// Forgets the pause and all failures, because another server has replaced the service.
    pub fn forget(&self) {
        let mut state = self.shared.state();
        state.closed_until = None;
        state.circuit.forget();
        state.last_failure = None;
        state.failing_since = None;
        state.generation += 1;
        drop(state);
        self.shared.changed.send_replace(());
    }

    /// Ends the pause, even if the service asked for it, and wakes everybody who waits for [`Gate::tries`]. If the
    /// circuit is open, the next caller makes a probe now, and the others wait for the result. The state of the gate
    /// still shows the last failure.
    pub fn try_again(&self) {
        let mut state = self.shared.state();
        state.closed_until = None;
        state.circuit.try_now(Instant::now());
        drop(state);
        self.shared.changed.send_replace(());
        self.shared.again.send_replace(());
    }

    /// Returns a receiver that changes with each later call of [`Gate::try_again`].
    pub fn tries(&self) -> watch::Receiver<()> {
        self.shared.again.subscribe()
    }

    /// Returns the state of the gate now.
    pub fn status(&self) -> GateStatus {
        let now = Instant::now();
        let state = self.shared.state();
        GateStatus {
            in_flight: state.inside,
            waiting: state.before.len() as u64,
            paused_for: state.closed_until.filter(|until| *until > now).map(|until| until - now),
            circuit: match state.circuit.look(now) {
                Found::Closed => GateCircuit::Closed,
                Found::Open { .. } => GateCircuit::Open,
                Found::Due { .. } | Found::Probing { .. } => GateCircuit::HalfOpen,
            },
            last_failure: state.last_failure.clone(),
            failing_for: state.failing_since.map(|since| now.saturating_duration_since(since)),
        }
    }

    /// Changes the maximum number of callers that are admitted at the same time. Callers that are already admitted
    /// stay. New callers wait until a place is free.
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

impl Ticket {
    /// Returns the number of the ticket.
    pub fn number(&self) -> TicketNumber {
        self.number
    }

    /// Waits until the caller has a place (first come, first served), until no pause is left, and until the circuit
    /// lets the caller in. `patience` says what the caller waits for. The caller stands in the queue until it is let
    /// in.
    ///
    /// # Errors
    ///
    /// Fails if the gate does not let the caller in. The caller then holds no place.
    pub async fn enter(self, patience: Patience) -> Result<Pass, Shut> {
        let mut changes = self.shared.changed.subscribe();
        let failed_before = self.shared.state().failed_probes;
        // The caller watches the gate for changes while it stands in the queue. So if the circuit opens, and the caller
        // can ask another service, it leaves the queue at once.
        let mut place = Box::pin(self.shared.places.clone().acquire_owned());
        let mut pass = loop {
            if let NextMove::Leave(shut) = self.shared.state().step(patience, failed_before) {
                return Err(shut);
            }
            tokio::select! {
                biased;
                // Cannot fail: the semaphore is never closed.
                permit = &mut place => {
                    let (shared, permit) = (self.shared.clone(), permit.ok());
                    break Pass { shared, permit, probe: None, generation: 0, inside: None };
                }
                // Cannot fail: `self` owns the sender, so the channel stays open.
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
                NextMove::Enter(probe) => {
                    (pass.probe, pass.generation) = (probe, generation);
                    pass.inside = Some(Counted::new(&self.shared));
                    return Ok(pass);
                }
                NextMove::Leave(shut) => return Err(shut),
                NextMove::Wait(None) => {
                    let _ = changes.changed().await;
                }
                NextMove::Wait(Some(until)) => {
                    // The loop decides again after a change of the gate, or at the time `until` at the latest.
                    let _ = tokio::time::timeout_at(until, changes.changed()).await;
                }
            }
        }
    }
}

impl Pass {
    /// Returns whether the service is paused now. If it is, the pause began after this caller was let in, because
    /// nobody is let in during a pause.
    pub fn is_paused(&self) -> bool {
        self.shared.state().closed_until.is_some_and(|until| until > Instant::now())
    }

    /// Reports how the call went, and gives the place back. The function `pause` takes the number of failures in a row,
    /// and returns how long the service gets no calls.
    pub fn settle(mut self, failure: Option<&CallError>, pause: impl FnOnce(u32) -> Duration) {
        let blame = failure.map(|failure| (failure, failure.blames()));
        let mut state = self.shared.state();
        if self.generation != state.generation {
            // Another server has replaced the server of this call, so the result of the call tells nothing about the
            // new server.
            return;
        }
        match blame {
            // The call did not reach the server, so nothing changes. The pass is dropped here. If the call was the
            // probe, this allows another probe.
            Some((_, Blame::Nobody)) => return,
            None | Some((_, Blame::Caller)) => {
                state.last_failure = failure.cloned();
                state.failing_since = None;
                state.circuit.answered();
            }
            Some((failure, Blame::Server)) => {
                state.last_failure = Some(failure.clone());
                let now = Instant::now();
                state.failing_since.get_or_insert(now);
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
        // Keep the lock until the place is free. Otherwise somebody could lower the limit before that, and the place of
        // this caller would count as taken.
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
    fn new(shared: &Arc<Shared>) -> Self {
        shared.state().inside += 1;
        Self { shared: Arc::clone(shared) }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        state.inside = state.inside.saturating_sub(1);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Ok(index) = state.before.binary_search(&self.number) {
            state.before.remove(index);
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        // The lock is poisoned if another thread panicked. It can still be used, because a panic cannot leave the state
        // half changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Decides the next move of a caller that already has one of the limited places.
    fn enter(&mut self, patience: Patience, failed_before: u64) -> NextMove {
        let step = self.step(patience, failed_before);
        match step {
            // If a probe (a call that tests whether the service works again) is due, this caller makes it.
            NextMove::Enter(_) => NextMove::Enter(self.circuit.probe(Instant::now())),
            NextMove::Leave(_) | NextMove::Wait(_) => step,
        }
    }

    /// Decides the next move of a caller. `failed_before` is the number of probes that had already failed when the
    /// caller arrived.
    fn step(&self, patience: Patience, failed_before: u64) -> NextMove {
        let now = Instant::now();
        let paused_until = self.closed_until.filter(|until| *until > now);
        if let Some(left) =
            paused_until.map(|until| until - now).filter(|left| *left > patience.longest_pause)
        {
            return NextMove::Leave(Shut::Paused { left });
        }
        let leaves = patience.while_open == WhileOpen::Leave;
        let (opens_at, last) = match self.circuit.look(now) {
            Found::Closed => {
                return paused_until.map_or(NextMove::Enter(None), |until| NextMove::Wait(Some(until)));
            }
            Found::Open { failures, last, .. } | Found::Probing { failures, last } if leaves => {
                return NextMove::Leave(Shut::Open { failures, last });
            }
            Found::Open { until, last, .. } => (Some(until), last),
            Found::Due { last } => (Some(now), last),
            Found::Probing { last, .. } => (None, last),
        };
        if self.failed_probes > failed_before {
            return NextMove::Leave(Shut::StillDown { last });
        }
        match (opens_at, paused_until) {
            (None, _) => NextMove::Wait(None),
            (Some(opens), Some(until)) => NextMove::Wait(Some(opens.max(until))),
            (Some(opens), None) if opens > now => NextMove::Wait(Some(opens)),
            (Some(_), None) => NextMove::Enter(None),
        }
    }
}

fn places(max_concurrent: Option<NonZeroUsize>) -> usize {
    max_concurrent.map_or(Semaphore::MAX_PERMITS, |limit| limit.get().min(Semaphore::MAX_PERMITS))
}

#[cfg(test)]
mod tests;
