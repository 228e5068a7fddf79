//! Explains why something happened in the society: builds a chain of facts, and decides what the person can do.

mod at_work;
mod described;
mod refused;

pub use at_work::{MOST_TOLD, OpenTask, Party, agent, followed, open_task, request};
pub use described::{Able, Help, Known, described};
pub use refused::{Denied, Denier, Refusal};

use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_view::{Entry, Event, Fact, NextAttempt, Outcome, SentRequest, Why, WhyRemedy};

/// An explanation has several lists: remedies of one kind, failed attempts, open requests, and parked agents. This is
/// the maximum length of each list.
const MOST: usize = 3;
/// Maximum number of failed turns that the explanation of a parked agent lists.
const MOST_TURNS: usize = 10;
/// The name of the limit in `app.json` that parks an agent.
const MAX_FAILED_TURNS: &str = "maxFailedTurns";

/// Returns the remedy that runs the turn of a request again.
pub fn run_again(sent: &SentRequest, service: Option<ServiceId>) -> WhyRemedy {
    WhyRemedy::RunAgain { agent: sent.agent.clone(), task: sent.task.clone(), turn: sent.turn, service }
}

/// A service with which the turn of a failed request could run again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Candidate {
    pub service: ServiceId,
    /// How many things the model of this service would miss: tools, and artifacts of the request that it does not take.
    pub lacks: usize,
}

/// Returns the service with which the turn of a failed request should run again: the one that misses the least, and
/// none that this explanation names as failed. Returns `None` if there is no such service.
pub fn another_service(why: &Why, candidates: &[Candidate]) -> Option<ServiceId> {
    let has_failed = |service: &ServiceId| {
        why.chain.iter().any(|fact| match fact {
            Fact::AttemptFailed { service: failed, .. } | Fact::ServiceSkipped { service: failed, .. } => {
                failed == service
            }
            _ => false,
        })
    };
    let others = candidates.iter().filter(|candidate| !has_failed(&candidate.service));
    others.min_by_key(|candidate| candidate.lacks).map(|candidate| candidate.service.clone())
}

/// Returns the number of the request of the last failed attempt in an explanation.
pub fn failed_request(why: &Why) -> Option<i64> {
    why.chain.iter().rev().find_map(|fact| match fact {
        Fact::AttemptFailed { sent, .. } => *sent,
        _ => None,
    })
}

/// Explains an event: a failed attempt, a skipped service, a failed turn, a paused agent, a reached limit, a refused
/// call or a message that came back to its sender. Returns `None` for every other event: it needs no explanation, or
/// another function explains it. `before` contains the earlier events of the agent, oldest first. If the event is a
/// refused call, `refusal` contains the facts about the refusal.
pub fn event(event: &Event, before: &[Entry], refusal: Refusal) -> Option<Why> {
    match event {
        Event::ModelFailed { .. } | Event::ServiceSkipped { .. } => Some(attempts(&[event])),
        Event::ToolCalled { task, agent, tool, call, error: Some(code), .. } => {
            let call = refused::Call { task, caller: agent, tool, id: call.as_ref(), code };
            Some(refused::explained(&call, refusal))
        }
        Event::TurnEnded { agent, failure: Some(reason), .. } => {
            let failed = Fact::TurnFailed { agent: agent.clone(), reason: reason.clone(), at: None };
            Some(because_of_attempts(failed, before))
        }
        Event::AgentPaused { agent } => Some(paused(agent)),
        Event::LimitReached { limit, value, .. } => Some(limited(limit.clone(), Some(value.clone()))),
        Event::MessageBounced { message, to } => {
            let bounced = Fact::Bounced { message: message.clone(), to: to.clone() };
            Some(Why { chain: vec![bounced], remedies: Vec::new() })
        }
        _ => None,
    }
}

/// The facts about a parked agent.
#[derive(Clone, Debug)]
pub struct Parked<'a> {
    pub agent: &'a AgentId,
    /// The task in which the agent is parked.
    pub task: &'a TaskId,
    /// The failure for which the agent was parked.
    pub reason: &'a str,
    /// The number of failed turns in a row for which an agent is parked now.
    pub limit: u64,
    /// The events that tell how the turns of the agent ended, when it was parked and when it was stopped, oldest first.
    pub turns: &'a [Entry],
    /// The events that explain a failed turn, oldest first.
    pub before: &'a [Entry],
}

/// Explains why an agent is parked: by the limit, by each turn that failed, and by the attempts of the last call.
pub fn parked(parked: &Parked<'_>) -> Why {
    let Parked { agent, task, reason, limit, turns, before } = parked;
    let reason = (*reason).to_owned();
    let mut chain = vec![Fact::Parked { agent: (*agent).clone(), task: (*task).clone(), reason }];
    let failed = failed_turns(turns);
    // An agent can also be parked for another reason, for example if its turn cannot be read.
    if failed.len() as u64 >= *limit {
        chain.push(Fact::FailedTurns {
            agent: (*agent).clone(),
            count: failed.len() as u64,
            limit: MAX_FAILED_TURNS.to_owned(),
            value: *limit,
        });
    }
    let first = failed.len().saturating_sub(MOST_TURNS);
    chain.extend(failed.into_iter().skip(first).map(|(at, reason)| Fact::TurnFailed {
        agent: (*agent).clone(),
        reason: reason.to_owned(),
        at: Some(at),
    }));
    let Why { chain: failures, mut remedies } = attempts(&last_attempts(before));
    chain.extend(failures);
    remedies.insert(0, WhyRemedy::Resume { agent: (*agent).clone() });
    Why { chain, remedies }
}

/// Returns the turns that failed in a row before the agent was parked, oldest first: when and why each failed. A turn
/// that ended well, a stop and an earlier parking end the row.
fn failed_turns(turns: &[Entry]) -> Vec<(i64, &str)> {
    let mut found = Vec::new();
    for entry in turns.iter().rev() {
        match &entry.event {
            Event::TurnEnded { failure: Some(reason), .. } => found.push((entry.at, reason.as_str())),
            Event::TurnEnded { failure: None, .. } | Event::AgentStopped { .. } => break,
            Event::AgentParked { .. } if !found.is_empty() => break,
            _ => {}
        }
    }
    found.reverse();
    found
}

/// Explains why an agent is paused.
pub fn paused(agent: &AgentId) -> Why {
    let chain = vec![Fact::Paused { agent: agent.clone() }];
    Why { chain, remedies: vec![WhyRemedy::Resume { agent: agent.clone() }] }
}

/// Explains why an agent pauses between attempts or is slow. The explanation lists the failed attempts of the agent's
/// last call to its model. Returns `None` if no attempt failed, or if the model has answered since. `events` contains
/// the events of the agent, oldest first.
pub fn struggling(events: &[Entry]) -> Option<Why> {
    let attempts_now = last_attempts(events);
    (!attempts_now.is_empty()).then(|| attempts(&attempts_now))
}

/// A request of a task that nobody has answered.
#[derive(Clone, Debug)]
pub struct OpenRequest {
    pub message: MessageId,
    pub from: String,
    pub to: AgentId,
    pub since: i64,
}

impl OpenRequest {
    fn fact(self) -> Fact {
        let Self { message, from, to, since } = self;
        Fact::Unanswered { message, from, to, since: Some(since) }
    }
}

/// The facts about a task that has ended.
#[derive(Clone, Debug)]
pub struct Ended<'a> {
    pub task: &'a TaskId,
    pub outcome: Outcome,
    /// The limit that stopped the task, or `user` if the person stopped it.
    pub stopped_by: Option<&'a str>,
    /// The requests that nobody has answered, oldest first.
    pub open: &'a [OpenRequest],
    /// The agents that are parked in the task, each with the reason.
    pub parked: &'a [(AgentId, String)],
    /// The events of root in the task, oldest first.
    pub of_root: &'a [Entry],
}

/// Explains the outcome of a task that has ended.
pub fn task(ended: &Ended<'_>, stopped_by_user: &str) -> Why {
    let task = ended.task;
    let mut chain = vec![Fact::TaskEnded { task: task.clone(), outcome: ended.outcome }];
    let mut remedies = Vec::new();
    match ended.outcome {
        Outcome::Answered | Outcome::AwaitsUser => {}
        Outcome::Unanswered | Outcome::NoModel | Outcome::Limited => {
            remedies.push(WhyRemedy::Write { agent: AgentId::root(), task: task.clone() });
        }
    }
    match ended.stopped_by {
        Some(by) if by == stopped_by_user => chain.push(Fact::StoppedByUser { task: task.clone() }),
        Some(limit) => {
            let Why { chain: limits, remedies: raise } = limited(limit.to_owned(), None);
            chain.extend(limits);
            remedies.splice(0..0, raise);
        }
        None => {}
    }
    for request in ended.open.iter().take(MOST) {
        if request.to.is_user() {
            let (agent, message) = (AgentId::new(request.from.clone()), request.message.clone());
            remedies.insert(0, WhyRemedy::Answer { message, agent, task: task.clone() });
        }
        chain.push(request.clone().fact());
    }
    for (agent, reason) in ended.parked.iter().take(MOST) {
        let (task, reason) = (task.clone(), reason.clone());
        chain.push(Fact::Parked { agent: agent.clone(), task, reason });
        remedies.insert(0, WhyRemedy::Resume { agent: agent.clone() });
    }
    let of_root = ended.of_root.iter().map(|entry| &entry.event);
    if let Some(Event::TurnEnded { agent, failure: Some(reason), .. }) =
        of_root.rev().find(|event| matches!(event, Event::TurnEnded { .. }))
    {
        let failed = Fact::TurnFailed { agent: agent.clone(), reason: reason.clone(), at: None };
        let why = because_of_attempts(failed, ended.of_root);
        chain.extend(why.chain);
        remedies.extend(why.remedies);
    }
    Why { chain, remedies }
}

fn limited(limit: String, value: Option<serde_json::Number>) -> Why {
    let remedies = vec![WhyRemedy::RaiseLimit { limit: limit.clone() }];
    Why { chain: vec![Fact::LimitReached { limit, value }], remedies }
}

fn because_of_attempts(first: Fact, before: &[Entry]) -> Why {
    let Why { mut chain, remedies } = attempts(&last_attempts(before));
    chain.insert(0, first);
    Why { chain, remedies }
}

/// Returns the failed attempts of the last call to a model, and the services that the call skipped, oldest first. If
/// the call got an answer in the end, returns nothing. `events` contains the events of one agent, oldest first.
fn last_attempts(events: &[Entry]) -> Vec<&Event> {
    let mut found = Vec::new();
    for Entry { event, .. } in events.iter().rev() {
        match event {
            Event::ModelFailed { attempt, .. } => {
                found.push(event);
                if *attempt <= 1 {
                    break;
                }
            }
            Event::ServiceSkipped { .. } => found.push(event),
            Event::ModelAnswered { .. } => break,
            _ => {}
        }
    }
    found.reverse();
    found
}

/// Explains failed attempts and skipped services. Explains only the last [`MOST`] of them.
fn attempts(failed: &[&Event]) -> Why {
    let mut why = Why::default();
    let first = failed.len().saturating_sub(MOST);
    for event in failed.iter().skip(first) {
        match event {
            Event::ModelFailed { agent, service, attempt, kind, status, reason, next, sent, .. } => {
                why.chain.push(Fact::AttemptFailed {
                    agent: agent.clone(),
                    service: service.clone(),
                    attempt: *attempt,
                    kind: *kind,
                    status: *status,
                    reason: reason.clone(),
                    sent: *sent,
                });
                why.chain.push(Fact::Then { next: *next });
                let check = WhyRemedy::CheckService { service: service.clone() };
                if *next != NextAttempt::DescribeMedia && !why.remedies.contains(&check) {
                    why.remedies.push(check);
                }
            }
            Event::ServiceSkipped { service, fallback, reason, .. } => {
                let (service, fallback) = (service.clone(), fallback.clone());
                why.chain.push(Fact::ServiceSkipped { service, fallback, reason: reason.clone() });
            }
            _ => {}
        }
    }
    why
}

#[cfg(test)]
mod tests;
