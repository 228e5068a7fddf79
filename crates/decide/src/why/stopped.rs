//! Explains what happened because the person stopped agents or tasks.

use super::OpenRequest;
use polity_society::id::{AgentId, TaskId};
use polity_view::{Entry, Event, Fact, Why, WhyRemedy};

/// Explains why an agent does nothing, if the last of its events says that the person stopped it. `events` contains the
/// events of the agent, oldest first.
pub fn stopped(events: &[Entry]) -> Option<Why> {
    let (task, agent, fact) = stop(events.last()?)?;
    Some(Why { chain: vec![fact], remedies: vec![write(agent, task)] })
}

/// Explains why a request of the person was taken back. `stops` contains the events that the person stopped the receiver
/// in this task, oldest first. `all_of_it` is the task if the person stopped it as a whole.
pub fn withdrawn(request: &OpenRequest, task: &TaskId, all_of_it: Option<&TaskId>, stops: &[Entry]) -> Why {
    let OpenRequest { message, to, .. } = request;
    let mut chain = vec![Fact::Withdrawn { message: message.clone(), to: to.clone() }];
    let by_task = all_of_it.map(|task| Fact::StoppedByUser { task: task.clone() });
    chain.extend(by_task.or_else(|| stop_since(stops, request)));
    Why { chain, remedies: vec![write(to, task)] }
}

/// Returns the fact that the person stopped the receiver of a request after the request was sent. `stops` contains the
/// events about stopped agents of the task, oldest first.
pub(super) fn stop_since(stops: &[Entry], request: &OpenRequest) -> Option<Fact> {
    let mut since = stops.iter().filter(|entry| entry.at >= request.since).filter_map(stop);
    since.find(|(_, agent, _)| **agent == request.to).map(|(.., fact)| fact)
}

/// Returns the fact that the person stopped an agent at this time in this task.
pub(super) fn stop_when(stops: &[Entry], agent: &AgentId, task: &TaskId, at: i64) -> Option<Fact> {
    let mut then = stops.iter().filter(|entry| entry.at == at).filter_map(stop);
    then.find(|(of, stopped, _)| *of == task && *stopped == agent).map(|(.., fact)| fact)
}

/// Explains why the turn whose end is the event at this place brought no answer, if the person stopped it. A stop first
/// ends the turn, if one is open, and then reports the stop, both at the same time.
pub(super) fn stopped_at(events: &[Entry], end: usize) -> Option<Why> {
    let entry = events.get(end)?;
    let next = events.get(end + 1).filter(|next| next.at == entry.at);
    let (task, agent, fact) = stop(entry).or_else(|| stop(next?))?;
    Some(Why { chain: vec![fact], remedies: vec![write(agent, task)] })
}

/// Returns the task, the agent and the fact, if an event reports that the person stopped an agent.
fn stop(entry: &Entry) -> Option<(&TaskId, &AgentId, Fact)> {
    let Event::AgentStopped { task, agent } = &entry.event else { return None };
    let fact = Fact::AgentStopped { agent: agent.clone(), task: task.clone(), at: entry.at };
    Some((task, agent, fact))
}

fn write(agent: &AgentId, task: &TaskId) -> WhyRemedy {
    WhyRemedy::Write { agent: agent.clone(), task: task.clone() }
}
