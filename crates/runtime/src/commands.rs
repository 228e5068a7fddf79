//! Commands: tells agents how their background commands ended, stops the commands of ended agents and of finished
//! tasks, and shows the person the commands that run.

use crate::handles::Handles;
use crate::head::head;
use polity_decide::idle::Background;
use polity_hands::command::{BASH, CommandEnded, RunningCommand, Told};
use polity_registry::Registry;
use polity_society::id::{AgentId, TaskId, TurnId};
use polity_society::notice::Notice;
use polity_store::{Bell, Conversation, Error, Store, apply, commands, messages, seen, tasks};
use polity_view::{CommandFilter, CommandView, in_full};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::UNIX_EPOCH;

/// Finds out which sandbox this machine offers for commands. If an earlier process of polity has started commands,
/// tells the agents how these commands ended. The society calls this function before agents work.
pub(crate) async fn begin(handles: &Handles) {
    let Some(commands) = handles.hands.commands() else { return };
    commands.machine().await;
    let (store, registry) = (handles.store.clone(), Arc::clone(&handles.registry));
    commands.listen(Arc::new(move |ended| {
        let (store, registry) = (store.clone(), Arc::clone(&registry));
        Box::pin(async move { report(&store, &registry, ended).await })
    }));
    for ended in commands.recover().await {
        let id = ended.id.clone();
        if report(&handles.store, &handles.registry, ended).await == Told::Recorded {
            commands.acknowledge(&id).await;
        }
    }
}

async fn report(store: &Store, registry: &Registry, ended: CommandEnded) -> Told {
    match tell(store, registry, ended).await {
        Ok(()) => Told::Recorded,
        Err(error) => {
            tracing::error!(error = %in_full(&error), "failed to tell an agent that its command has ended");
            Told::NotRecorded
        }
    }
}

/// Returns the idempotency key of a call. Call ids are unique only among the calls in the visible history. An earlier
/// call that a summary has replaced may have had the same id. So the key also contains the turn and the round.
pub(crate) fn key_of_call(turn: TurnId, round: u64, call: &str) -> String {
    format!("{turn}-{round}-{call}")
}

/// Returns the turn that made the call with this key.
fn turn_of_key(key: &str) -> Option<TurnId> {
    let (turn, _) = key.split_once('-')?;
    turn.parse().ok().map(TurnId::new)
}

/// Tells an agent that its command has ended. Does nothing if the agent was told before, if the command was stopped
/// together with its agent, or if the task of the command is over. The notice quotes the output of the command. So the
/// sources of the output are noted as sources that the agent has seen.
pub(crate) async fn tell(store: &Store, registry: &Registry, ended: CommandEnded) -> Result<(), Error> {
    let snapshot = registry.current();
    let write = store.write(move |tx| {
        Box::pin(async move {
            let CommandEnded { agent, task, id, call, command, end, last_lines, sources } = ended;
            let owner = Conversation { agent: agent.clone(), task: task.clone() };
            let is_new = commands::ended(tx, &owner, &id, turn_of_key(&call)).await?;
            if !is_new || !tasks::is_open(&mut tx.connection, &task).await? {
                return Ok(());
            }
            let notice = Notice::CommandEnded { id, command, end, lines: last_lines };
            if !messages::was_told(&mut tx.connection, &task, &agent, 0, &notice).await? {
                for source in &sources {
                    seen::read(tx, &owner, source, BASH).await?;
                }
                apply::tell(tx, &snapshot, &task, &agent, notice, None).await?;
            }
            Ok(())
        })
    });
    write.await
}

/// Returns whether a command of a task runs in the background.
pub(crate) fn background(handles: &Handles, task: &TaskId) -> Background {
    match handles.hands.commands() {
        Some(commands) if commands.are_running(task) => Background::Running,
        Some(_) | None => Background::Quiet,
    }
}

/// Returns the running commands that a filter selects, the oldest first.
pub(crate) fn running(handles: &Handles, filter: &CommandFilter) -> Vec<CommandView> {
    let Some(commands) = handles.hands.commands() else { return Vec::new() };
    let CommandFilter { task: of_task, agent: of_agent } = filter;
    let is_meant = |agent: &AgentId, task: &TaskId| {
        of_agent.as_ref().is_none_or(|wanted| wanted == agent)
            && of_task.as_ref().is_none_or(|wanted| wanted == task)
    };
    commands.running(is_meant).into_iter().map(shown).collect()
}

fn shown(running: RunningCommand) -> CommandView {
    let RunningCommand { agent, task, id, command, since, last_lines, output_bytes, usage } = running;
    let since = since.duration_since(UNIX_EPOCH).unwrap_or_default();
    CommandView {
        task,
        agent,
        id,
        command: head(&command),
        since: i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        output: last_lines,
        output_bytes,
        memory_bytes: usage.memory_bytes,
        processes: usage.processes,
        disk_bytes: usage.disk_bytes,
    }
}

/// Ends the commands of an agent. Without these commands, some of their tasks may be over. So the supervisor then
/// checks these tasks.
pub(crate) fn end_of_agent(handles: &Handles, agent: AgentId) {
    let Some(commands) = handles.hands.commands().cloned() else { return };
    let store = handles.store.clone();
    tokio::spawn(async move {
        let tasks = commands.tasks_of(&agent);
        commands.stop_of_agent(&agent).await;
        check(&store, tasks).await;
    });
}

/// Ends the commands of a task that was stopped. Without these commands, the task may be over. So the supervisor then
/// checks the task.
pub(crate) fn end_of_stopped_task(handles: &Handles, task: TaskId) {
    let Some(commands) = handles.hands.commands().cloned() else { return };
    let store = handles.store.clone();
    tokio::spawn(async move {
        commands.stop_of_task(&task).await;
        check(&store, BTreeSet::from([task])).await;
    });
}

/// Makes the supervisor check whether these tasks are over.
async fn check(store: &Store, tasks: BTreeSet<TaskId>) {
    let check = store.write(move |tx| {
        Box::pin(async move {
            for task in tasks {
                tx.ring(Bell::Mailbox(Conversation { agent: AgentId::user(), task }));
            }
            Ok(())
        })
    });
    if let Err(error) = check.await {
        tracing::warn!(error = %in_full(&error), "failed to have the tasks of stopped commands checked");
    }
}

/// Ends the commands of a task that is over.
pub(crate) fn end_of_task(handles: &Handles, task: TaskId) {
    let Some(commands) = handles.hands.commands().cloned() else { return };
    tokio::spawn(async move { commands.stop_of_task(&task).await });
}

/// Ends all commands, because this process is about to end. The next process reports these commands as interrupted.
pub(crate) async fn end_all(handles: &Handles) {
    if let Some(commands) = handles.hands.commands() {
        commands.stop_all().await;
    }
}

#[cfg(test)]
mod tests;
