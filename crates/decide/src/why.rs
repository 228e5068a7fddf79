//! Explains why something happened in the society: builds a chain of facts, and decides what the person can do.

mod asked;
mod at_work;
mod described;
mod refused;
mod stopped;

pub use asked::asked;
pub use at_work::{MOST_TOLD, OpenTask, Party, agent, followed, open_task, request};
pub use described::{Able, Help, Known, described};
pub use refused::{Denied, Denier, Refusal};
pub use stopped::{stopped, withdrawn};

use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_view::{Entry, Event, Fact, NextAttempt, Outcome, ResumeScope, SentRequest, Why, WhyRemedy};
use stopped::{stop_since, stopped_at};

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

/// Explains an event: a failed attempt, a skipped service, a failed turn, a reached limit, a refused call or a message
/// that came back to its sender. Returns `None` for every other event: it needs no explanation, or another function
/// explains it. `before` contains the earlier events of the agent, oldest first. If the event is a
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
        Event::LimitReached { limit, value, .. } => Some(limited(limit.clone(), Some(value.clone()))),
        Event::MessageBounced { message, to } => {
            let bounced = Fact::Bounced { message: message.clone(), to: to.clone() };
            Some(Why { chain: vec![bounced], remedies: Vec::new() })
        }
        _ => None,
    }
}

/// Whether something that was done to an agent still holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lasts {
    Still,
    NoLonger,
}

/// The facts about an agent that was parked.
#[derive(Clone, Debug)]
pub struct Parked<'a> {
    pub agent: &'a AgentId,
    /// The task in which the agent was parked.
    pub task: &'a TaskId,
    /// The failure for which the agent was parked.
    pub reason: &'a str,
    /// Whether the agent is still parked for this failure.
    pub lasts: Lasts,
    /// The number of failed turns in a row for which an agent is parked now.
    pub limit: u64,
    /// The events that tell how the turns of the agent ended, when it was parked and when it was stopped, oldest first.
    /// The last parking is the one to explain.
    pub turns: &'a [Entry],
    /// The events that explain a failed turn, oldest first.
    pub before: &'a [Entry],
}

/// Explains why an agent was parked: by the limit, by each turn that failed, and by the attempts of the last call.
pub fn parked(parked: &Parked<'_>) -> Why {
    let Parked { agent, task, reason, lasts, limit, turns, before } = parked;
    let failed = failed_turns(turns);
    let Why { chain: failures, mut remedies } = match failed.is_empty() {
        true => Why::default(),
        false => attempts(&attempts_of_ended(until_end(before))),
    };
    let reason = (*reason).to_owned();
    let mut chain = Vec::new();
    match lasts {
        Lasts::Still => {
            chain.push(Fact::Parked { agent: (*agent).clone(), task: (*task).clone(), reason });
            remedies.insert(0, released(agent));
        }
        Lasts::NoLonger if failed.is_empty() => {
            chain.push(Fact::TurnFailed { agent: (*agent).clone(), reason, at: None });
        }
        Lasts::NoLonger => {}
    }
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
    chain.extend(failures);
    Why { chain, remedies }
}

/// Returns the turns that failed in a row before the agent was parked, oldest first: when and why each failed. The event
/// of the parking tells how many turns counted. In addition, a turn that ended well, a stop and an earlier parking end
/// the row, because events of earlier versions do not tell the number.
fn failed_turns(turns: &[Entry]) -> Vec<(i64, &str)> {
    let mut found = Vec::new();
    let mut most = None;
    for entry in turns.iter().rev() {
        match &entry.event {
            Event::AgentParked { failed_turns, .. } if most.is_none() && found.is_empty() => {
                most = Some(
                    failed_turns.map_or(usize::MAX, |turns| usize::try_from(turns).unwrap_or(usize::MAX)),
                );
            }
            Event::TurnEnded { failure: Some(reason), .. } if found.len() < most.unwrap_or(usize::MAX) => {
                found.push((entry.at, reason.as_str()));
            }
            Event::TurnEnded { .. } | Event::AgentStopped { .. } | Event::AgentParked { .. } => break,
            _ => {}
        }
    }
    found.reverse();
    found
}

/// Explains why an agent is paused, or why it was.
pub fn paused(agent: &AgentId, lasts: Lasts) -> Why {
    let chain = vec![Fact::Paused { agent: agent.clone() }];
    let remedies = match lasts {
        // Who paused an agent has usually paused its descendants, too. So the opposite must resume all of them.
        Lasts::Still => vec![WhyRemedy::Resume { agent: agent.clone(), scope: ResumeScope::Subtree }],
        Lasts::NoLonger => Vec::new(),
    };
    Why { chain, remedies }
}

/// Returns the remedy that lets a parked agent go on. Other agents stay paused or parked.
fn released(agent: &AgentId) -> WhyRemedy {
    WhyRemedy::Resume { agent: agent.clone(), scope: ResumeScope::Agent }
}

/// Explains why an agent has ended.
pub fn agent_ended(agent: &AgentId, reason: &str) -> Why {
    let ended = Fact::AgentEnded { agent: agent.clone(), reason: reason.to_owned() };
    Why { chain: vec![ended], remedies: Vec::new() }
}

/// Explains why an agent pauses between attempts or is slow. The explanation lists the failed attempts of the last call
/// in the agent's open turn. Returns `None` if no attempt failed, or if the model has answered since. `events` contains
/// the events of the agent, oldest first.
pub fn struggling(events: &[Entry]) -> Option<Why> {
    let attempts_now = last_attempts(events);
    (!attempts_now.is_empty()).then(|| attempts(&attempts_now))
}

/// Explains why the last turn of an agent without an open turn failed. Returns `None` if this turn ended well, or if the
/// failure no longer counts, because the agent was stopped since, or was parked and released. `events` contains the
/// events of the agent, oldest first.
pub fn failure(events: &[Entry]) -> Option<Why> {
    let end = events.iter().rposition(|entry| ends_attempts(&entry.event))?;
    failed_at(events, end)
}

/// Explains why nobody has answered a request: by the first turn of its receiver that failed since then, or by the person
/// who stopped the receiver before that. Returns `None` if neither has happened. `events` contains the events of the
/// receiver, oldest first, and `since` is the time of the request.
pub fn failed_since(events: &[Entry], since: i64) -> Option<Why> {
    let is_end = |entry: &Entry| match &entry.event {
        Event::TurnEnded { failure, .. } => failure.is_some(),
        Event::AgentStopped { .. } => true,
        _ => false,
    };
    let end = events.iter().position(|entry| entry.at >= since && is_end(entry))?;
    stopped_at(events, end).or_else(|| failed_at(events, end))
}

/// Explains the failed turn whose end is the event at this place. Returns `None` if no failed turn ends there.
fn failed_at(events: &[Entry], end: usize) -> Option<Why> {
    let Event::TurnEnded { agent, failure: Some(reason), .. } = &events.get(end)?.event else { return None };
    let failed = Fact::TurnFailed { agent: agent.clone(), reason: reason.clone(), at: None };
    Some(because_of_attempts(failed, &events[..end]))
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
    /// The events that the person stopped agents in the task, oldest first.
    pub stops: &'a [Entry],
}

/// Explains the outcome of a task that has ended. A failure explains only a task that ended without an answer by itself:
/// it is no reason for an answer, or for the stop of a task.
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
        // If the person stopped the whole task, the explanation says so already.
        let stop = stop_since(ended.stops, request).filter(|_| ended.stopped_by != Some(stopped_by_user));
        chain.extend(stop);
    }
    let failed_by_itself =
        ended.stopped_by.is_none() && matches!(ended.outcome, Outcome::Unanswered | Outcome::NoModel);
    if !failed_by_itself {
        return Why { chain, remedies };
    }
    for (agent, reason) in ended.parked.iter().take(MOST) {
        let (task, reason) = (task.clone(), reason.clone());
        chain.push(Fact::Parked { agent: agent.clone(), task, reason });
        remedies.insert(0, released(agent));
    }
    let end = ended.of_root.iter().rposition(|entry| matches!(entry.event, Event::TurnEnded { .. }));
    if let Some(why) = end.and_then(|end| failed_at(ended.of_root, end)) {
        chain.extend(why.chain);
        remedies.extend(why.remedies);
    }
    Why { chain, remedies }
}

fn limited(limit: String, value: Option<serde_json::Number>) -> Why {
    let remedies = vec![WhyRemedy::RaiseLimit { limit: limit.clone() }];
    Why { chain: vec![Fact::LimitReached { limit, value }], remedies }
}

/// `before` contains the events before the end of the failed turn.
fn because_of_attempts(first: Fact, before: &[Entry]) -> Why {
    let Why { mut chain, remedies } = attempts(&attempts_of_ended(before));
    chain.insert(0, first);
    Why { chain, remedies }
}

/// Returns the events before the end of the last turn that has ended; all events if none has.
fn until_end(events: &[Entry]) -> &[Entry] {
    let end = events.iter().rposition(|entry| matches!(entry.event, Event::TurnEnded { .. }));
    &events[..end.unwrap_or(events.len())]
}

/// Returns the failed attempts for which a turn failed. `before` contains the events before the end of the turn. If the
/// last call would have made a further attempt, something else ended the turn, such as a limit. Then returns nothing.
fn attempts_of_ended(before: &[Entry]) -> Vec<&Event> {
    let found = last_attempts(before);
    let next = found.iter().rev().find_map(|event| match event {
        Event::ModelFailed { next, .. } => Some(*next),
        _ => None,
    });
    match next {
        None | Some(NextAttempt::GiveUp) => found,
        Some(_) => Vec::new(),
    }
}

/// Returns whether the attempts before an event belong to a turn that has ended, or no longer count.
fn ends_attempts(event: &Event) -> bool {
    matches!(event, Event::TurnEnded { .. } | Event::AgentStopped { .. } | Event::AgentParked { .. })
}

/// Returns the failed attempts of the last call in the open turn, and the services that the call skipped, oldest first.
/// If the call got an answer in the end, returns nothing. `events` contains the events of one agent, oldest first.
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
            event if ends_attempts(event) => break,
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
