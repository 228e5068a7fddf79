//! When a call to a service may begin.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// The gate of one service, shared by all who call it.
///
/// It lets in as many at once as the service takes, in the order of their coming, and nobody while the service has
/// asked to be left alone.
#[derive(Clone, Debug)]
pub struct Gate {
    shared: Arc<Shared>,
}

/// Leave to make one call; gives the place back when dropped.
#[derive(Debug)]
#[must_use = "the place is given back at once if the pass is dropped"]
pub struct Pass {
    shared: Arc<Shared>,
    permit: Option<OwnedSemaphorePermit>,
}

#[derive(Debug)]
struct Shared {
    places: Arc<Semaphore>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// How many may be inside.
    limit: usize,
    /// Places that were taken away while somebody was in them.
    owed: usize,
    /// When the pause ends.
    closed_until: Option<Instant>,
}

impl Gate {
    /// Opens a gate for so many calls at once; `None` for any number.
    pub fn new(max_concurrent: Option<NonZeroUsize>) -> Self {
        let limit = places(max_concurrent);
        let state = Mutex::new(State { limit, owed: 0, closed_until: None });
        Self { shared: Arc::new(Shared { places: Arc::new(Semaphore::new(limit)), state }) }
    }

    /// Waits for a place, in the order of coming, and for the end of any pause.
    pub async fn enter(&self) -> Pass {
        // Cannot fail: the semaphore is never closed.
        let permit = self.shared.places.clone().acquire_owned().await.ok();
        let pass = Pass { shared: self.shared.clone(), permit };
        // The pause may be extended while it is waited out.
        while let Some(until) = self.shared.closed_until() {
            tokio::time::sleep_until(until).await;
        }
        pass
    }

    /// Lets nobody in for a while. A pause under way is extended, never shortened; calls already made go on.
    pub fn pause(&self, duration: Duration) {
        // A pause beyond the end of time is one that nobody can mean.
        let Some(until) = Instant::now().checked_add(duration) else {
            return;
        };
        let mut state = self.shared.state();
        state.closed_until = state.closed_until.max(Some(until));
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

impl Drop for Pass {
    fn drop(&mut self) {
        // Under the lock, so that no place is given back and counted as owed at once.
        let mut state = self.shared.state();
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

    fn closed_until(&self) -> Option<Instant> {
        self.state().closed_until.filter(|until| *until > Instant::now())
    }
}

fn places(max_concurrent: Option<NonZeroUsize>) -> usize {
    max_concurrent.map_or(Semaphore::MAX_PERMITS, |limit| limit.get().min(Semaphore::MAX_PERMITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;
    use proptest::prelude::*;

    fn gate(limit: usize) -> Gate {
        Gate::new(NonZeroUsize::new(limit))
    }

    #[tokio::test]
    async fn as_many_as_the_limit_are_inside() {
        let gate = gate(2);
        let first = gate.enter().await;
        let _second = gate.enter().await;
        assert!(gate.enter().now_or_never().is_none());
        drop(first);
        assert!(gate.enter().now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_limit_all_are_let_in() {
        let gate = Gate::new(None);
        let mut passes = Vec::new();
        for _ in 0..1_000 {
            passes.push(tokio::time::timeout(Duration::from_secs(1), gate.enter()).await.unwrap());
        }
    }

    #[tokio::test]
    async fn who_comes_first_enters_first() {
        let gate = gate(1);
        let pass = gate.enter().await;
        let (mut first, mut second) = (Box::pin(gate.enter()), Box::pin(gate.enter()));
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
        let _pass = gate.clone().enter().await;
        assert_eq!(start.elapsed().as_secs(), 30);
        let _pass = gate.enter().await;
        assert_eq!(start.elapsed().as_secs(), 30);
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
        let (_pass, ()) = tokio::join!(gate.enter(), extend);
        assert_eq!(start.elapsed().as_secs(), 24);
    }

    #[tokio::test(start_paused = true)]
    async fn who_gives_up_waiting_gives_the_place_back() {
        let gate = gate(1);
        gate.pause(Duration::from_secs(10));
        assert!(gate.enter().now_or_never().is_none());
        tokio::time::advance(Duration::from_secs(11)).await;
        assert!(gate.enter().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_pause_without_end_is_ignored() {
        let gate = gate(1);
        gate.pause(Duration::MAX);
        assert!(gate.enter().now_or_never().is_some());
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

    proptest! {
        #[test]
        fn whoever_comes_is_let_in_if_and_only_if_there_is_room(acts in proptest::collection::vec(act(), 1..60)) {
            let (gate, mut limit, mut inside) = (gate(3), 3, Vec::new());
            for act in acts {
                match act {
                    Act::Enter => {
                        let had_room = inside.len() < limit;
                        let pass = gate.enter().now_or_never();
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
