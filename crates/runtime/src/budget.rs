//! Keeps tasks within their limits (docs/contract.md, section 10). A model call is made only if the task stays within
//! its limits even when every call in progress costs its full estimate ([`polity_decide::budget`]).

use polity_decide::budget::{Leave, Reached, judge, named};
use polity_society::id::TaskId;
use polity_society::limits::Limits;
use polity_store::usage::{Since, Spent};
use polity_store::{Error, Store, tasks, usage};
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// The budgets of all tasks with work in progress.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Mutex<HashMap<TaskId, Arc<Budget>>>);

/// The budget of one task.
#[derive(Debug)]
struct Budget {
    /// Locked while the budget decides about a call. Otherwise two calls could reserve the same remaining amount.
    counted: tokio::sync::Mutex<Counted>,
    state: Mutex<State>,
    /// Notified when a reservation is given back.
    settled: Arc<Notify>,
}

/// What the task has spent in its calls up to the call `through`. The rows of these calls need not be read again,
/// because the rows of calls never change. Only the rows of later calls must be read.
#[derive(Debug, Default)]
struct Counted {
    spent: Spent,
    /// The number of the last call that `spent` contains; 0 if it contains none.
    through: i64,
}

#[derive(Debug)]
struct State {
    reserved: Spent,
    /// Time that agents had worked before `since`.
    worked: Duration,
    /// The number of agents at work. While this number is above zero, the time since `since` also counts as working
    /// time.
    working: u32,
    since: Instant,
}

/// The amount that a call has reserved. Dropping this value gives the amount back. Drop this value only after the real
/// cost is written. Otherwise, the cost of the call would not be counted in the meantime.
#[derive(Debug)]
pub(crate) struct Reservation {
    budget: Arc<Budget>,
    amount: Spent,
}

/// The outcome of an attempt to reserve.
pub(crate) enum Reserved {
    /// The call may be made.
    Granted(Reservation),
    /// The call would exceed this limit.
    Refused(Reached),
    /// Calls in progress have reserved too much for this call to be made now. They may cost less in the end, so the
    /// call may be possible later. The future completes when one of the calls in progress has ended. The caller then
    /// tries to reserve again.
    Later(Pin<Box<OwnedNotified>>),
}

/// A guard that a driver keeps while its agent works for a task. While any guard of a task exists, the working time
/// of the task is counted.
#[derive(Debug)]
pub(crate) struct Working(Arc<Budget>);

impl Budget {
    fn state(&self) -> MutexGuard<'_, State> {
        // If another thread panicked while it held the lock, every change of the state is still complete, so the lock
        // can be used.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn worked(&self) -> Duration {
        if self.working == 0 { self.worked } else { self.worked + self.since.elapsed() }
    }
}

impl Budgets {
    fn all(&self) -> MutexGuard<'_, HashMap<TaskId, Arc<Budget>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn of(&self, store: &Store, task: &TaskId) -> Result<Arc<Budget>, Error> {
        if let Some(budget) = self.all().get(task) {
            return Ok(Arc::clone(budget));
        }
        let mut reader = store.reader().await?;
        let worked = tasks::worked(&mut reader, task).await?;
        let new = || {
            let state = State { reserved: Spent::default(), worked, working: 0, since: Instant::now() };
            Arc::new(Budget {
                counted: tokio::sync::Mutex::default(),
                state: Mutex::new(state),
                settled: Arc::new(Notify::new()),
            })
        };
        // While this function read the rows, another caller may have inserted the budget.
        Ok(Arc::clone(self.all().entry(task.clone()).or_insert_with(new)))
    }

    /// Counts working time for a task until the returned guard is dropped.
    pub(crate) async fn work(&self, store: &Store, task: &TaskId) -> Result<Working, Error> {
        let budget = self.of(store, task).await?;
        let mut state = budget.state();
        if state.working == 0 {
            state.since = Instant::now();
        }
        state.working += 1;
        drop(state);
        Ok(Working(budget))
    }

    /// Returns how long agents have worked for a task; `None` if no agent has worked since the task was last idle.
    pub(crate) fn worked(&self, task: &TaskId) -> Option<Duration> {
        self.all().get(task).map(|budget| budget.state().worked())
    }

    /// Forgets the budget of an idle task, unless a driver or a call still uses the budget.
    /// The caller has already written the working time of the task.
    pub(crate) fn forget(&self, task: &TaskId) {
        let mut all = self.all();
        let unused = |budget: &Arc<Budget>| Arc::strong_count(budget) == 1;
        if all.get(task).is_some_and(unused) {
            all.remove(task);
        }
    }

    /// Decides whether a call may be made. If so, reserves `need`: the estimated cost of the call.
    pub(crate) async fn reserve(
        &self,
        store: &Store,
        task: &TaskId,
        need: Spent,
        limits: &Limits,
    ) -> Result<Reserved, Error> {
        let budget = self.of(store, task).await?;
        // Receive notifications from now on. Otherwise a notification between the reads below and the wait would be
        // missed.
        let mut settled = Box::pin(Arc::clone(&budget.settled).notified_owned());
        settled.as_mut().enable();
        let mut counted = budget.counted.lock().await;
        // Read the reserved amount before the spent amount. If a call ends between the two reads, it then counts twice.
        // In the other order, it would not count at all, which is worse.
        let reserved = budget.state().reserved;
        let mut reader = store.reader().await?;
        let Since { spent, through, stopped_by } = usage::since(&mut reader, task, counted.through).await?;
        drop(reader);
        // If a limit has refused one call of the task, this limit refuses all other calls of the task.
        if let Some(reached) = stopped_by.and_then(|limit| named(&limit, limits)) {
            return Ok(Reserved::Refused(reached));
        }
        let spent = counted.spent + spent;
        *counted = Counted { spent, through };
        Ok(match judge(spent, reserved, need, limits) {
            Leave::Granted => {
                let mut state = budget.state();
                state.reserved = state.reserved + need;
                drop(state);
                Reserved::Granted(Reservation { budget: Arc::clone(&budget), amount: need })
            }
            Leave::Refused(reached) => Reserved::Refused(reached),
            Leave::Later => Reserved::Later(settled),
        })
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let mut state = self.budget.state();
        let Spent { calls, tokens, cost } = self.amount;
        state.reserved.calls = state.reserved.calls.saturating_sub(calls);
        state.reserved.tokens = state.reserved.tokens.saturating_sub(tokens);
        state.reserved.cost = if state.reserved.calls == 0 { 0.0 } else { state.reserved.cost - cost };
        drop(state);
        self.budget.settled.notify_waiters();
    }
}

impl Drop for Working {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.worked = state.worked();
        state.since = Instant::now();
        state.working = state.working.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests;
