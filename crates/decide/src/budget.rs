//! What a task may spend (contract section 10), and what calls to a model cost.

use polity_llm::Usage;
use polity_registry::{Price, Service};
use polity_society::id::AgentId;
use polity_society::limits::Limits;
use polity_society::notice::Branch;
use polity_store::usage::{Share, Spent};
use serde_json::Number;
use std::collections::HashMap;
use std::time::Duration;

/// A limit that a task has reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reached {
    /// The name of the limit in `app.json`.
    pub limit: &'static str,
    pub value: Number,
}

/// Whether a call to a model may be made.
#[derive(Clone, Debug, PartialEq)]
pub enum Leave {
    /// The call may be made.
    Granted,
    /// The call does not fit now. It may fit later, because calls in progress may cost less than is reserved for them.
    Later,
    /// The call would exceed this limit.
    Refused(Reached),
}

/// Decides whether a call that may cost `need` is made. `spent` is the cost of finished calls; `reserved` is the
/// estimated maximum cost of the calls in progress.
pub fn judge(spent: Spent, reserved: Spent, need: Spent, limits: &Limits) -> Leave {
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

/// Returns the limit with this name, and the value that the limit has now. Returns `None` if the limit was removed,
/// or if it is not a limit of tasks.
pub fn named(name: &str, limits: &Limits) -> Option<Reached> {
    let all = [
        ("maxModelCallsPerTask", limits.max_model_calls_per_task.map(Number::from)),
        ("maxTokensPerTask", limits.max_tokens_per_task.map(Number::from)),
        ("maxCostPerTask", limits.max_cost_per_task.and_then(Number::from_f64)),
        ("maxSecondsPerTask", limits.max_seconds_per_task.map(Number::from)),
    ];
    let (limit, value) = all.into_iter().find(|(limit, _)| *limit == name)?;
    Some(Reached { limit, value: value? })
}

/// A limit has stopped a task. Returns the limit that the task would reach if it continued now, or `None` if it can
/// continue. `name` is the limit that stopped the task. `need` is the estimated cost of the task's next call.
pub fn still_reached(
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

/// Estimates the maximum cost of a call. The prompt counts, and the longest answer that the service may give. If the
/// service has no `maxTokens`, the maximum length of the answer is unknown, so only the prompt counts.
pub fn need(prompt_tokens: u64, service: &Service) -> Spent {
    let answer = service.endpoint.max_tokens.map_or(0, u64::from);
    let cost = service.price.map_or(0.0, |price| cost_of(price, prompt_tokens, answer));
    Spent { calls: 1, tokens: prompt_tokens.saturating_add(answer), cost }
}

/// Returns what a call has cost; `None` if the service has no price.
pub fn cost(usage: &Usage, service: &Service) -> Option<f64> {
    service.price.map(|price| cost_of(price, usage.prompt_tokens, usage.completion_tokens))
}

fn cost_of(price: Price, input: u64, output: u64) -> f64 {
    const MILLION: f64 = 1_000_000.0;
    (input as f64 * price.input + output as f64 * price.output) / MILLION
}

/// Returns what each branch has spent; the branch with the most tokens comes first. A branch is root alone, or an agent
/// that root hired, together with all descendants of that agent.
pub fn branches(shares: &[Share], parents: &HashMap<AgentId, AgentId>) -> Vec<Branch> {
    let mut branches: HashMap<&AgentId, (u64, u64, Option<f64>)> = HashMap::new();
    for share in shares {
        let mut top = &share.agent;
        // No chain of parents is longer than the number of agents. So this limit ends the loop even if damaged rows
        // form a circle of parents.
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
        // The cost is rounded to a millionth, to hide the errors of floating-point sums.
        cost: cost.and_then(|cost| Number::from_f64((cost * 1e6).round() / 1e6)),
    };
    let mut branches: Vec<Branch> = branches.into_iter().map(read).collect();
    branches.sort_by(|one, other| (other.tokens, &one.agent).cmp(&(one.tokens, &other.agent)));
    branches
}

#[cfg(test)]
mod tests;
