//! Keeps tasks within their limits (contract section 10). A call is made only if the task would stay within its limits
//! even if every call in progress cost its full estimate.

use polity_llm::Usage;
use polity_registry::{Price, Service};
use polity_society::id::{AgentId, TaskId};
use polity_society::limits::Limits;
use polity_society::notice::Branch;
use polity_store::usage::{Share, Spent};
use polity_store::{Error, Store, tasks, usage};
use serde_json::Number;
use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

/// A limit that a task has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reached {
    /// The name of the limit in `app.json`.
    pub(crate) limit: &'static str,
    pub(crate) value: Number,
}

/// Whether a call may be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Leave {
    /// The call may be made.
    Granted,
    /// The call may fit later, if calls in progress turn out to cost less than they have reserved.
    Later,
    /// The call would exceed this limit.
    Refused(Reached),
}

/// Decides whether a call that may cost `need` is made. `spent` is the cost of finished calls; `reserved` is the most
/// that the calls in progress should cost.
pub(crate) fn judge(spent: Spent, reserved: Spent, need: Spent, limits: &Limits) -> Leave {
    let alone = spent + need;
    let together = alone + reserved;
    let counted = |name: &'static str, limit: Option<u64>, alone: u64, together: u64| {
        let limit = limit?;
        let refused = || Leave::Refused(Reached { limit: name, value: limit.into() });
        if alone > limit { Some(refused()) } else { (together > limit).then_some(Leave::Later) }
    };
    let of_money = |limit: Option<f64>| {
        let limit = limit?;
        // Limits are finite: the settings accept no other number.
        let value = Number::from_f64(limit)?;
        let refused = || Leave::Refused(Reached { limit: "maxCostPerTask", value });
        if alone.cost > limit { Some(refused()) } else { (together.cost > limit).then_some(Leave::Later) }
    };
    let verdicts = [
        counted("maxModelCallsPerTask", limits.max_model_calls_per_task, alone.calls, together.calls),
        counted("maxTokensPerTask", limits.max_tokens_per_task, alone.tokens, together.tokens),
        of_money(limits.max_cost_per_task),
    ];
    let mut later = Leave::Granted;
    for verdict in verdicts.into_iter().flatten() {
        match verdict {
            Leave::Refused(_) => return verdict,
            Leave::Granted | Leave::Later => later = verdict,
        }
    }
    later
}

/// Returns whether any limit depends on what was spent.
fn is_bounded(limits: &Limits) -> bool {
    limits.max_model_calls_per_task.is_some()
        || limits.max_tokens_per_task.is_some()
        || limits.max_cost_per_task.is_some()
}

/// Returns the limit with this name and its present value; `None` if the limit was removed, or is not a limit of tasks.
fn named(name: &str, limits: &Limits) -> Option<Reached> {
    let all = [
        ("maxModelCallsPerTask", limits.max_model_calls_per_task.map(Number::from)),
        ("maxTokensPerTask", limits.max_tokens_per_task.map(Number::from)),
        ("maxCostPerTask", limits.max_cost_per_task.and_then(Number::from_f64)),
        ("maxSecondsPerTask", limits.max_seconds_per_task.map(Number::from)),
    ];
    let (limit, value) = all.into_iter().find(|(limit, _)| *limit == name)?;
    Some(Reached { limit, value: value? })
}

/// Returns the limit that still keeps a stopped task from continuing. `name` is the limit that stopped the task; `need`
/// is the estimated cost of its next call.
pub(crate) fn still_reached(
    name: &str,
    spent: Spent,
    need: Spent,
    worked: Duration,
    limits: &Limits,
) -> Option<Reached> {
    let reached = named(name, limits)?;
    if reached.limit == "maxSecondsPerTask" {
        let most = Duration::from_secs(limits.max_seconds_per_task?);
        return (worked >= most).then_some(reached);
    }
    match judge(spent, Spent::default(), need, limits) {
        Leave::Refused(reached) => Some(reached),
        Leave::Granted | Leave::Later => None,
    }
}

/// Returns the most that a call should cost: its estimated prompt, and the longest answer that the service may give.
/// Without `maxTokens` nobody knows how long the answer gets, so only the prompt counts.
pub(crate) fn need(prompt_tokens: u64, service: &Service) -> Spent {
    let answer = service.endpoint.max_tokens.map_or(0, u64::from);
    let cost = service.price.map_or(0.0, |price| cost_of(price, prompt_tokens, answer));
    Spent { calls: 1, tokens: prompt_tokens.saturating_add(answer), cost }
}

/// Returns what a call has cost; `None` if the service has no price.
pub(crate) fn cost(usage: &Usage, service: &Service) -> Option<f64> {
    service.price.map(|price| cost_of(price, usage.prompt_tokens, usage.completion_tokens))
}

fn cost_of(price: Price, input: u64, output: u64) -> f64 {
    const MILLION: f64 = 1_000_000.0;
    (input as f64 * price.input + output as f64 * price.output) / MILLION
}

/// Returns what each branch has spent, in descending order. A branch is root alone, or an agent that root hired,
/// together with all descendants of that agent.
pub(crate) fn branches(shares: &[Share], parents: &HashMap<AgentId, AgentId>) -> Vec<Branch> {
    let mut branches: HashMap<&AgentId, (u64, u64, Option<f64>)> = HashMap::new();
    for share in shares {
        let mut top = &share.agent;
        // Damaged rows may form a circle, but no chain of parents is longer than the number of agents.
        for _ in 0..parents.len() {
            match parents.get(top) {
                Some(parent) if !parent.is_root() => top = parent,
                _ => break,
            }
        }
        let (calls, tokens, cost) = branches.entry(top).or_default();
        *calls += share.calls;
        *tokens += share.tokens;
        if let Some(more) = share.cost {
            *cost = Some(cost.unwrap_or_default() + more);
        }
    }
    let read = |(agent, (calls, tokens, cost)): (&AgentId, (u64, u64, Option<f64>))| Branch {
        agent: agent.clone(),
        calls,
        tokens,
        // Rounded to a millionth, to hide the errors of floating-point sums.
        cost: cost.and_then(|cost| Number::from_f64((cost * 1e6).round() / 1e6)),
    };
    let mut branches: Vec<Branch> = branches.into_iter().map(read).collect();
    branches.sort_by(|one, other| (other.tokens, &one.agent).cmp(&(one.tokens, &other.agent)));
    branches
}

/// The budgets of all tasks with work in progress.
#[derive(Debug, Default)]
pub(crate) struct Budgets(Mutex<HashMap<TaskId, Arc<Budget>>>);

/// The budget of one task.
#[derive(Debug)]
struct Budget {
    /// Held while the budget decides about a call, so that two calls do not both take what is left.
    deciding: tokio::sync::Mutex<()>,
    state: Mutex<State>,
    /// Notified when a reservation is given back.
    settled: Arc<Notify>,
}

#[derive(Debug)]
struct State {
    reserved: Spent,
    /// Time that agents had worked before `since`.
    worked: Duration,
    /// The number of agents at work. While it is above zero, the time since `since` counts too.
    working: u32,
    since: Instant,
}

/// The amount that a call has reserved. Dropping this value gives the amount back.
/// Drop it only after the real cost is written. Before that, nothing else counts the cost of the call.
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
    /// Only calls in progress keep the call from being made. The caller asks again when this future completes.
    Later(Pin<Box<OwnedNotified>>),
}

/// Held while an agent works for a task. As long as it is held, the working time of the task is counted.
#[derive(Debug)]
pub(crate) struct Working(Arc<Budget>);

impl Budget {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change of the state is complete, so a panic elsewhere cannot leave an inconsistent state.
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
                deciding: tokio::sync::Mutex::new(()),
                state: Mutex::new(state),
                settled: Arc::new(Notify::new()),
            })
        };
        // Another caller may have inserted the budget meanwhile.
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

    /// Forgets the budget of an idle task, unless something still uses it.
    /// The caller has already written the working time of the task.
    pub(crate) fn forget(&self, task: &TaskId) {
        let mut all = self.all();
        let unused = |budget: &Arc<Budget>| Arc::strong_count(budget) == 1;
        if all.get(task).is_some_and(unused) {
            all.remove(task);
        }
    }

    /// If a call is allowed, reserves the amount that it may cost.
    pub(crate) async fn reserve(
        &self,
        store: &Store,
        task: &TaskId,
        need: Spent,
        limits: &Limits,
    ) -> Result<Reserved, Error> {
        let budget = self.of(store, task).await?;
        // Enabled before anything is read, so that no notification is missed.
        let mut settled = Box::pin(Arc::clone(&budget.settled).notified_owned());
        settled.as_mut().enable();
        let _deciding = budget.deciding.lock().await;
        // The reserved amount is read before the spent amount:
        // a call that ends between the two reads then counts twice. It would be worse if the call did not count.
        let reserved = budget.state().reserved;
        let mut reader = store.reader().await?;
        // A limit that has refused one call of the task refuses all its other calls.
        let stopped_by = tasks::stopped_by(&mut reader, task).await?;
        if let Some(reached) = stopped_by.and_then(|limit| named(&limit, limits)) {
            return Ok(Reserved::Refused(reached));
        }
        let spent =
            if is_bounded(limits) { usage::of_task(&mut reader, task).await? } else { Spent::default() };
        drop(reader);
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
