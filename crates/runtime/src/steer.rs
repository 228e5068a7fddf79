//! The person's control over working agents: pause, resume, stop.
//!
//! Each action is one transaction, so every write of an agent happens either before or after the action. If an agent
//! hired a child before the action, the action includes the child. Right after the action, the agent is paused or
//! stopped, so it hires no child that the action would miss.

mod outcome;

use crate::driver::closing;
use crate::rest;
use outcome::{Scope, Touched, Withdrawn};
use polity_decide::idle::can_try_again;
use polity_registry::Snapshot;
use polity_society::agent::Standing;
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::notice::Notice;
use polity_store::Bell;
use polity_store::{
    Conversation, Error, Stopped, Store, Tx, agents, apply, commands, events, holds, messages, notes, tasks,
    turns, work,
};
use polity_view::Event;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;

/// The agents that an action applies to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// Only this agent.
    Agent(AgentId),
    /// An agent and all its descendants.
    Subtree(AgentId),
    /// Root and all other agents, but not the person.
    Everybody,
}

/// Why an action was not performed.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// There is no agent with this id.
    #[error("there is no agent `{0}`")]
    Unknown(AgentId),
    /// The agent has ended.
    #[error("the agent `{0}` has ended")]
    Ended(AgentId),
    /// There is no task with this id.
    #[error("there is no task `{0}`")]
    NoTask(TaskId),
    /// The id is that of the person, who is not an agent.
    #[error("`user` is the person, not an agent")]
    User,
    /// The change could not be stored.
    #[error("failed to store the change")]
    Store(#[from] Error),
}

/// Pauses agents, even in the middle of a model call. When an agent is resumed, it repeats the work that it has not
/// recorded. Returns the agents that were not paused before.
pub(crate) async fn pause(store: &Store, target: Target) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            let mut agents = meant(tx, target).await?;
            let paused = agents::pause(tx, &agents).await?;
            agents.retain(|agent| paused.contains(agent));
            for agent in &agents {
                events::append(tx, &Event::AgentPaused { agent: agent.clone() }).await?;
                tx.ring(Bell::Halt(agent.clone()));
            }
            Ok(agents)
        })
    });
    write.await
}

/// Resumes paused and parked agents. Returns the agents that were paused or parked.
pub(crate) async fn resume(store: &Store, target: Target) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            let mut agents = meant(tx, target).await?;
            let paused = agents::unpause(tx, &agents).await?;
            let parked = holds::parked(&mut tx.connection, &agents).await?;
            agents.retain(|agent| paused.contains(agent) || parked.contains(agent));
            let mut work = work::tasks(&mut tx.connection, &agents).await?;
            for agent in &agents {
                let mut to_do = work.remove(agent).unwrap_or_default();
                if parked.contains(agent) {
                    for Conversation { task, .. } in holds::release(tx, agent, None).await? {
                        tasks::wake(tx, &task).await?;
                        to_do.insert(task);
                    }
                }
                for task in to_do {
                    tx.ring(Bell::Mailbox(Conversation { agent: agent.clone(), task }));
                }
                events::append(tx, &Event::AgentResumed { agent: agent.clone() }).await?;
            }
            Ok(agents)
        })
    });
    write.await
}

/// Stops the work of agents: their turns and commands stop, requests to them fail, their questions to the person are
/// dropped, and so are the texts and artifacts that they have not delivered. They are parked no longer, and their failed
/// turns no longer count. The askers of the failed requests are told, except the person and the agents that this
/// action also stops. The agents stay in the society, and can get new messages; a paused agent stays paused. Returns
/// the agents that had something to stop.
pub(crate) async fn stop(
    store: &Store,
    snapshot: Arc<Snapshot>,
    target: Target,
) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            let alone = matches!(target, Target::Agent(_));
            let meant = meant(tx, target).await?;
            let scope = match (meant.iter().any(AgentId::is_root), alone) {
                (false, _) => Scope::Workers,
                (true, true) => Scope::Root,
                (true, false) => Scope::Everybody,
            };
            let mut touched: BTreeMap<TaskId, Touched> = BTreeMap::new();
            let mut stopped = Vec::new();
            holds::forget_failures(tx, &meant, None).await?;
            let mut to_stop = work::to_stop(&mut tx.connection, &meant).await?;
            for agent in &meant {
                // Ring this bell even for an agent with nothing to stop, because a command that has just started is in
                // no row yet.
                tx.ring(Bell::EndCommands(agent.clone()));
                let Some(tasks) = to_stop.remove(agent) else { continue };
                tx.ring(Bell::Halt(agent.clone()));
                stopped.push(agent.clone());
                for task in tasks {
                    touch(tx, &mut touched, &task).await?;
                    let conversation = Conversation { agent: agent.clone(), task: task.clone() };
                    let withdrawn = stop_one(tx, &snapshot, &conversation, &meant).await?;
                    if let Some(touched) = touched.get_mut(&task) {
                        touched.note(withdrawn);
                    }
                }
            }
            if scope == Scope::Everybody {
                for task in tasks::open(&mut tx.connection).await? {
                    touch(tx, &mut touched, &task).await?;
                }
            }
            release_others(tx, &snapshot, &meant).await?;
            for (task, touched) in touched {
                if !alone {
                    let to_user = Conversation { agent: AgentId::user(), task: task.clone() };
                    work::drop_delayed(tx, &to_user, &meant).await?;
                }
                touched.settle(tx, &task, scope).await?;
                // Makes the supervisor check whether the task is over now.
                tx.ring(Bell::Mailbox(Conversation { agent: AgentId::user(), task }));
            }
            Ok(stopped)
        })
    });
    write.await
}

/// Stops a task: ends the work and the commands of agents in this task, and lets the requests to them fail. The work of
/// the same agents in other tasks continues. Returns the agents that had something to stop in the task.
pub(crate) async fn stop_task(
    store: &Store,
    snapshot: Arc<Snapshot>,
    task: TaskId,
) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            if !tasks::exists(&mut tx.connection, &task).await? {
                return Err(Stopped::Refused(SteerError::NoTask(task)));
            }
            let all = agents::live_subtree(&mut tx.connection, &AgentId::root()).await?;
            let mut touched = Touched::read(tx, &task).await?;
            let mut stopped = Vec::new();
            holds::forget_failures(tx, &all, Some(&task)).await?;
            let to_stop = work::to_stop(&mut tx.connection, &all).await?;
            for agent in &all {
                if !to_stop.get(agent).is_some_and(|tasks| tasks.contains(&task)) {
                    continue;
                }
                let conversation = Conversation { agent: agent.clone(), task: task.clone() };
                let withdrawn = stop_one(tx, &snapshot, &conversation, &all).await?;
                if let Some(touched) = &mut touched {
                    touched.note(withdrawn);
                }
                tx.ring(Bell::HaltIn(conversation));
                stopped.push(agent.clone());
            }
            release_others(tx, &snapshot, &all).await?;
            // A task that had its answer is not marked as stopped. Its commands would keep such a task open.
            tx.ring(Bell::EndCommandsOf(task.clone()));
            let to_user = Conversation { agent: AgentId::user(), task: task.clone() };
            work::drop_delayed(tx, &to_user, &all).await?;
            if let Some(touched) = touched {
                touched.settle(tx, &task, Scope::Everybody).await?;
            }
            // Makes the supervisor notice that the task is over.
            tx.ring(Bell::Mailbox(to_user));
            Ok(stopped)
        })
    });
    write.await
}

/// If no model could be used in a task, lets root try again: root gets a notice that begins a new turn. This is one
/// transaction, so a second call changes nothing while root tries. Returns root if it tries again.
pub(crate) async fn try_again(
    store: &Store,
    snapshot: Arc<Snapshot>,
    task: TaskId,
) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write_unless_refused(move |tx| {
        Box::pin(async move {
            let Some(standing) = tasks::standing(&mut tx.connection, &task).await? else {
                return Err(Stopped::Refused(SteerError::NoTask(task)));
            };
            if !can_try_again(&standing) {
                return Ok(Vec::new());
            }
            // A parked root would not read the notice.
            holds::release(tx, &AgentId::root(), Some(&task)).await?;
            tasks::wake(tx, &task).await?;
            rest::try_again(tx, &snapshot, &task).await?;
            Ok(vec![AgentId::root()])
        })
    });
    write.await
}

/// Returns the agents of a target that have not ended, parents before children.
async fn meant(tx: &mut Tx, target: Target) -> Result<Vec<AgentId>, Stopped<SteerError>> {
    let (top, all) = match target {
        Target::Agent(agent) => (agent, false),
        Target::Subtree(agent) => (agent, true),
        Target::Everybody => (AgentId::root(), true),
    };
    if top.is_user() {
        return Err(Stopped::Refused(SteerError::User));
    }
    match agents::get(&mut tx.connection, &top).await?.map(|row| row.standing) {
        None => return Err(Stopped::Refused(SteerError::Unknown(top))),
        Some(Standing::Ended) => return Err(Stopped::Refused(SteerError::Ended(top))),
        Some(Standing::Active) => {}
    }
    if !all {
        return Ok(vec![top]);
    }
    Ok(agents::live_subtree(&mut tx.connection, &top).await?)
}

/// Reads the state of a task, unless it was read before in this stop.
async fn touch(tx: &mut Tx, touched: &mut BTreeMap<TaskId, Touched>, task: &TaskId) -> Result<(), Error> {
    if let Entry::Vacant(entry) = touched.entry(task.clone())
        && let Some(read) = Touched::read(tx, task).await?
    {
        entry.insert(read);
    }
    Ok(())
}

/// Does what is due for agents that have waited only for turns that were stopped. The stopped agents themselves deliver
/// nothing any more. `meant` are all agents that the action stops.
async fn release_others(tx: &mut Tx, snapshot: &Snapshot, meant: &[AgentId]) -> Result<(), Error> {
    tx.released.retain(|waited| !meant.contains(&waited.agent));
    rest::after_waits(tx, snapshot).await
}

/// Stops the work of one agent in one task. `meant` are all agents that the same action stops. Returns which requests of
/// the person were taken back.
async fn stop_one(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    meant: &[AgentId],
) -> Result<Withdrawn, Error> {
    let Conversation { agent, task } = conversation;
    let mut asked: Vec<(AgentId, MessageId)> = messages::open_requests(&mut tx.connection, conversation)
        .await?
        .into_iter()
        .map(|request| (request.from, request.id))
        .collect();
    let open = turns::open(&mut tx.connection, conversation).await?;
    if let Some(open) = &open {
        closing::stop(tx, snapshot, conversation, open).await?;
    }
    for (_, request) in &asked {
        messages::fail(tx, request).await?;
    }
    asked.extend(work::drop_unread(tx, conversation).await?);
    // Withdraw the person's requests to this agent, so that no later message of the agent counts as their answer.
    let is_withdrawn = work::withdraw(tx, conversation).await?;
    work::drop_questions(tx, conversation).await?;
    // Whether the agent has an open turn or waits for others, nothing of the stopped work is delivered later.
    notes::forget_all(tx, conversation).await?;
    holds::release(tx, agent, Some(task)).await?;
    commands::stopped(tx, agent, Some(task)).await?;
    events::append(tx, &Event::AgentStopped { task: task.clone(), agent: agent.clone() }).await?;
    // The person stopped the work, so the person needs no notice.
    asked.retain(|(asker, _)| !asker.is_user() && !meant.contains(asker));
    // Each asker gets one notice. It names the newest request of the asker, because the newest comes last in `asked`.
    let newest: BTreeMap<AgentId, MessageId> = asked.into_iter().collect();
    if !newest.is_empty() && !tasks::is_open(&mut tx.connection, task).await? {
        // The task is not open. Open it again, because the notices give the askers work.
        tasks::wake(tx, task).await?;
    }
    for (asker, message) in newest {
        let notice = Notice::Stopped { agent: agent.clone(), message: message.clone() };
        apply::tell(tx, snapshot, task, &asker, notice, Some(message)).await?;
    }
    Ok(match (is_withdrawn, agent.is_root()) {
        (false, _) => Withdrawn::Nothing,
        (true, false) => Withdrawn::FromWorkers,
        (true, true) => Withdrawn::FromRoot,
    })
}

#[cfg(test)]
mod tests;
