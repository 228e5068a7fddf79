//! What the person does to agents at work: pause them, let them go on, stop what they do.
//!
//! Each is one transaction, in line with all that agents write: a child that was hired before it is among those that it
//! meets, and whoever would hire one after it finds that it may not go on.

use crate::driver::closing;
use polity_registry::Snapshot;
use polity_society::agent::Standing;
use polity_society::id::{AgentId, TaskId};
use polity_society::message::{Message, Sender};
use polity_society::notice::Notice;
use polity_store::Bell;
use polity_store::{
    Conversation, Error, Store, Tx, agents, apply, events, holds, messages, tasks, turns, work,
};
use polity_view::Event;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Whom it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One agent.
    Agent(AgentId),
    /// An agent and all below it.
    Subtree(AgentId),
    /// All agents.
    Everybody,
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum SteerError {
    /// There is no such agent.
    #[error("there is no agent `{0}`")]
    Unknown(AgentId),
    /// The agent has ended.
    #[error("the agent `{0}` has ended")]
    Ended(AgentId),
    /// There is no such task.
    #[error("there is no task `{0}`")]
    NoTask(TaskId),
    /// The person is no agent.
    #[error("`user` is the person, not an agent")]
    User,
    /// It could not be written.
    #[error("failed to write it")]
    Store(#[from] Error),
}

/// Has agents do nothing from now on, not even finish what they are asking a model. What they have not written they do
/// again once they are resumed. Gives those that were not paused before.
pub(crate) async fn pause(store: &Store, target: Target) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write(move |tx| {
        Box::pin(async move {
            let meant = match meant(tx, target).await? {
                Ok(meant) => meant,
                Err(error) => return Ok(Err(error)),
            };
            let mut paused = Vec::new();
            for agent in meant {
                if agents::pause(tx, &agent).await? {
                    events::append(tx, &Event::AgentPaused { agent: agent.clone() }).await?;
                    tx.ring(Bell::Halt(agent.clone()));
                    paused.push(agent);
                }
            }
            Ok(Ok(paused))
        })
    });
    write.await?
}

/// Lets agents that were paused or parked go on. Gives those that were.
pub(crate) async fn resume(store: &Store, target: Target) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write(move |tx| {
        Box::pin(async move {
            let meant = match meant(tx, target).await? {
                Ok(meant) => meant,
                Err(error) => return Ok(Err(error)),
            };
            let mut resumed = Vec::new();
            for agent in meant {
                let was_paused = agents::unpause(tx, &agent).await?;
                let released = holds::release(tx, &agent).await?;
                if !was_paused && released.is_empty() {
                    continue;
                }
                for conversation in &released {
                    tasks::wake(tx, &conversation.task).await?;
                }
                let mut to_do: BTreeSet<TaskId> =
                    released.into_iter().map(|conversation| conversation.task).collect();
                to_do.extend(work::tasks(&mut tx.connection, &agent).await?);
                for task in to_do {
                    tx.ring(Bell::Mailbox(Conversation { agent: agent.clone(), task }));
                }
                events::append(tx, &Event::AgentResumed { agent: agent.clone() }).await?;
                resumed.push(agent);
            }
            Ok(Ok(resumed))
        })
    });
    write.await?
}

/// Ends what agents are doing, and what waits for them: their turns stop, what they were asked fails, and those who
/// asked and were not stopped themselves are told. They stay, and can be written to. Gives those that had work.
pub(crate) async fn stop(
    store: &Store,
    snapshot: Arc<Snapshot>,
    target: Target,
) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write(move |tx| {
        Box::pin(async move {
            let alone = matches!(target, Target::Agent(_));
            let meant = match meant(tx, target).await? {
                Ok(meant) => meant,
                Err(error) => return Ok(Err(error)),
            };
            let mut touched = BTreeSet::new();
            let mut stopped = Vec::new();
            for agent in &meant {
                let to_do = work::tasks(&mut tx.connection, agent).await?;
                if !to_do.is_empty() {
                    tx.ring(Bell::Halt(agent.clone()));
                    stopped.push(agent.clone());
                }
                for task in to_do {
                    let conversation = Conversation { agent: agent.clone(), task: task.clone() };
                    stop_one(tx, &snapshot, &conversation, &meant).await?;
                    touched.insert(task);
                }
            }
            if !alone && meant.iter().any(AgentId::is_root) {
                touched.extend(tasks::open(&mut tx.connection).await?);
            }
            for task in touched {
                if meant.iter().any(AgentId::is_root) {
                    // Root is not reminded that the person has no answer: that is what the person wanted.
                    tasks::stop(tx, &task, tasks::STOPPED_BY_USER).await?;
                }
                if !alone {
                    let to_user = Conversation { agent: AgentId::user(), task: task.clone() };
                    work::drop_delayed(tx, &to_user, &meant).await?;
                }
                // Looked at by the supervisor: it may be over now.
                tx.ring(Bell::Mailbox(Conversation { agent: AgentId::user(), task }));
            }
            Ok(Ok(stopped))
        })
    });
    write.await?
}

/// Ends a task: what its agents do in it stops, and what they were asked in it fails. What they do in other tasks goes on.
/// Gives those that had work in it.
pub(crate) async fn stop_task(
    store: &Store,
    snapshot: Arc<Snapshot>,
    task: TaskId,
) -> Result<Vec<AgentId>, SteerError> {
    let write = store.write(move |tx| {
        Box::pin(async move {
            if !tasks::exists(&mut tx.connection, &task).await? {
                return Ok(Err(SteerError::NoTask(task)));
            }
            let all = agents::live_subtree(&mut tx.connection, &AgentId::root()).await?;
            let mut stopped = Vec::new();
            for agent in &all {
                if !work::tasks(&mut tx.connection, agent).await?.contains(&task) {
                    continue;
                }
                let conversation = Conversation { agent: agent.clone(), task: task.clone() };
                stop_one(tx, &snapshot, &conversation, &all).await?;
                tx.ring(Bell::HaltIn(conversation));
                stopped.push(agent.clone());
            }
            if tasks::open(&mut tx.connection).await?.contains(&task) {
                tasks::stop(tx, &task, tasks::STOPPED_BY_USER).await?;
                let to_user = Conversation { agent: AgentId::user(), task };
                work::drop_delayed(tx, &to_user, &all).await?;
                // Looked at by the supervisor: it is over now.
                tx.ring(Bell::Mailbox(to_user));
            }
            Ok(Ok(stopped))
        })
    });
    write.await?
}

/// The live agents that are meant, those above before those below.
async fn meant(tx: &mut Tx, target: Target) -> Result<Result<Vec<AgentId>, SteerError>, Error> {
    let (top, all) = match target {
        Target::Agent(agent) => (agent, false),
        Target::Subtree(agent) => (agent, true),
        Target::Everybody => (AgentId::root(), true),
    };
    if top.is_user() {
        return Ok(Err(SteerError::User));
    }
    match agents::get(&mut tx.connection, &top).await?.map(|row| row.standing) {
        None => return Ok(Err(SteerError::Unknown(top))),
        Some(Standing::Ended) => return Ok(Err(SteerError::Ended(top))),
        Some(Standing::Active) => {}
    }
    if !all {
        return Ok(Ok(vec![top]));
    }
    Ok(Ok(agents::live_subtree(&mut tx.connection, &top).await?))
}

/// Ends what one agent does in one task.
async fn stop_one(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    stopped: &[AgentId],
) -> Result<(), Error> {
    let mut asked: Vec<(AgentId, _)> = messages::open_requests(&mut tx.connection, conversation)
        .await?
        .into_iter()
        .map(|request| (request.from, request.id))
        .collect();
    if let Some(open) = turns::open(&mut tx.connection, conversation).await? {
        closing::stop(tx, snapshot, conversation, &open).await?;
    }
    for (_, request) in &asked {
        messages::fail(tx, request).await?;
    }
    for message in work::drop_unread(tx, conversation).await? {
        asked.extend(unanswered(message));
    }
    // What the person asked is taken back: nothing that is said later answers it.
    work::withdraw(tx, conversation).await?;
    let event = Event::AgentStopped { task: conversation.task.clone(), agent: conversation.agent.clone() };
    events::append(tx, &event).await?;
    for (asker, message) in asked {
        // The person knows: it was the one who did this.
        if !asker.is_user() && !stopped.contains(&asker) {
            let notice = Notice::Stopped { agent: conversation.agent.clone(), message: message.clone() };
            apply::tell(tx, snapshot, &conversation.task, &asker, notice, Some(message)).await?;
        }
    }
    Ok(())
}

/// Who waits for an answer to a message that will never be read.
fn unanswered(message: Message) -> Option<(AgentId, polity_society::id::MessageId)> {
    match (message.from, message.expects) {
        (Sender::Party(asker), polity_society::message::Expects::Answer) => Some((asker, message.id)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
