//! Makes the worktrees in which agents work, and commits, at the end of each turn, what the agent has changed.

use crate::handles::Handles;
use futures::FutureExt;
use polity_hands::call::{Caller, Place};
use polity_society::refusal::Refusal;
use polity_store::turns::OpenTurn;
use polity_store::{Conversation, Error, Store, agents, records, tasks};
use polity_view::in_full;
use std::collections::HashSet;
use tokio_util::sync::CancellationToken;

/// Returns the calling agent with its task and role, and the directory in which it works.
pub(super) async fn caller(handles: &Handles, conversation: &Conversation) -> Result<Caller, Error> {
    let mut reader = handles.store.reader().await?;
    let role = agents::get(&mut reader, &conversation.agent).await?.map(|agent| agent.role_name);
    let Conversation { agent, task } = conversation.clone();
    let root = tasks::workspace(&mut reader, &task).await?;
    let worktree = agents::worktree(&mut reader, &agent).await?.map(|(owner, _)| owner);
    let place = Place { root, worktree };
    Ok(Caller { agent, task, role: role.unwrap_or_default(), place })
}

/// If the caller works in a worktree that does not exist yet, makes this worktree. The new worktree contains the
/// files of the workspace in which the hirer works.
pub(super) async fn make_worktree(
    handles: &Handles,
    caller: &Caller,
    cancel: &CancellationToken,
) -> Result<Result<(), Refusal>, Error> {
    let (Some(workspaces), Some(_)) = (handles.hands.workspaces(), &caller.place.worktree) else {
        return Ok(Ok(()));
    };
    let mut reader = handles.store.reader().await?;
    let mut chain = Vec::new();
    let mut agent = caller.agent.clone();
    while let Some((owner, hirer)) = agents::worktree(&mut reader, &agent).await? {
        chain.push((owner, hirer.clone()));
        agent = hirer;
    }
    drop(reader);
    // If the hirer of an agent has a worktree, the worktree of the agent begins with the files of the hirer's
    // worktree. So the worktrees are made from the highest agent down.
    for (owner, hirer) in chain.into_iter().rev() {
        let conversation = Conversation { agent: hirer, task: caller.task.clone() };
        let hirer = self::caller(handles, &conversation).await?;
        if let Err(refusal) = workspaces.hire(&hirer, &owner, cancel).await {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(()))
}

/// Checks whether a worktree can be made for an agent that the conversation's agent hires. Returns the refusal if no
/// worktree can be made. The new worktree begins with the files of the hirer. So the check may create the directory in
/// which the hirer works. Call it only if the hire is allowed.
pub(in crate::driver) async fn refused_worktree(
    handles: &Handles,
    conversation: &Conversation,
) -> Result<Option<Refusal>, Error> {
    let Some(workspaces) = handles.hands.workspaces() else { return Ok(None) };
    let caller = caller(handles, conversation).await?;
    // No token cancels the check, not even at the end of the daemon, because a check that was cancelled would refuse
    // the hire. A driver that is halted drops the check.
    let never = CancellationToken::new();
    if let Err(refusal) = workspaces.can_hire(&caller, &never).await {
        return Ok(Some(refusal));
    }
    if let Err(refusal) = make_worktree(handles, &caller, &never).await? {
        return Ok(Some(refusal));
    }
    let opened = workspaces.directory(&caller.task, &caller.place, &never).await;
    Ok(opened.err())
}

/// Commits what an agent has changed in its workspace. Leaves out the files that only other agents have begun to write
/// in turns that are still open. A failure is only logged. What is not committed stays on disk, and the commit at the
/// end of a later turn includes it.
pub(in crate::driver) async fn settle(handles: &Handles, conversation: &Conversation, open: &OpenTurn) {
    if let Err(reason) = try_settle(handles, conversation, open).await {
        tracing::warn!(agent = %conversation.agent, %reason, "failed to commit what an agent changed");
    }
    polity_points::point!("outside::settled");
}

async fn try_settle(handles: &Handles, conversation: &Conversation, open: &OpenTurn) -> Result<(), String> {
    let Some(workspaces) = handles.hands.workspaces() else { return Ok(()) };
    let caller = caller(handles, conversation).await.map_err(|error| in_full(&error))?;
    let (store, settling) = (handles.store.clone(), caller.clone());
    let unfinished = move || {
        let (store, caller) = (store.clone(), settling.clone());
        async move { begun_by_others(&store, &caller).await.map_err(|error| in_full(&error)) }.boxed()
    };
    let settled = workspaces.settle(&caller, open.id, &unfinished, &handles.draining).await;
    settled.map(drop).map_err(|refusal| format!("{refusal:?}"))
}

/// Returns the paths that other agents have begun to write in turns that are still open, in the workspace in which the
/// caller works. A path that the open turn of the caller has begun to write, too, is not among them. What commands
/// wrote is not recorded, so it is not among them either.
async fn begun_by_others(store: &Store, caller: &Caller) -> Result<HashSet<String>, Error> {
    let mut reader = store.reader().await?;
    let mut writing = records::writing(&mut reader, &caller.task).await?;
    let own = writing.remove(&caller.agent).unwrap_or_default();
    let mut others = HashSet::new();
    for (agent, paths) in writing {
        let worktree = agents::worktree(&mut reader, &agent).await?.map(|(owner, _)| owner);
        if worktree == caller.place.worktree {
            others.extend(paths);
        }
    }
    others.retain(|path| !own.contains(path));
    Ok(others)
}
