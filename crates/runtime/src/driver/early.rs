//! Asks the rights and the policy about the next calls of society tools, before anything is prepared for these calls.
//!
//! The transaction that runs the calls asks again, by the same function [`rule`]. If it allows a call that is not
//! ready, it ends before this call, and the driver comes here again.

use super::outside::outside_tool;
use crate::approvals::{self, Question, Ruling};
use crate::handles::Handles;
use crate::tools::{PUT_ARTIFACT, not_permitted};
use polity_decide::arguments::{Call, SpawnAgent, SpawnAgentWithTask, group_of};
use polity_decide::turn::Turn;
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_store::{Connection, Conversation, Error, agents};

/// The names of the tools that hire an agent.
const HIRING: [&str; 2] = ["spawn_agent", "spawn_agent_with_task"];

/// What is prepared for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Preparation {
    /// The call may store content. The content is put on disk.
    Content,
    /// The call hires an agent with its own worktree. A check finds out whether a worktree can be made.
    Worktree,
}

/// Whether everything is prepared for a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Readiness {
    Ready,
    NotReady,
}

/// Returns the calls for which something is prepared before the next transaction: the transaction may run them, and the
/// rights and the policy allow them now.
pub(super) async fn next<'t>(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    turn: &'t Turn,
) -> Result<Vec<(&'t ToolCall, Preparation)>, Error> {
    // When the next transaction begins, every started tool has ended or was given up. So the first call that the
    // transaction carries out is the first call that has not started.
    let unstarted = turn.pending().skip_while(|call| turn.has_started(call));
    let within = unstarted.take_while(|call| outside_tool(handles, call).is_none());
    let accepted = within.filter(|call| turn.refused(call).is_none());
    let found: Vec<_> = accepted.filter_map(|call| Some((call, preparation(call, snapshot)?))).collect();
    let mut allowed = Vec::with_capacity(found.len());
    if found.is_empty() {
        return Ok(allowed);
    }
    let mut reader = handles.store.reader().await?;
    for (call, needs) in found {
        let ruling = rule(&mut reader, snapshot, conversation, turn, call, Readiness::NotReady).await?;
        if matches!(ruling, Ruling::Allow) {
            allowed.push((call, needs));
        }
    }
    Ok(allowed)
}

/// Asks the policy and the rights about a call of a society tool. If the person has already allowed this call, the
/// person is not asked again. The person is never asked about a call to which the agent has no right. If the policy
/// allows a call that is ready, this function does not ask the rights, because the tool itself asks them before it runs.
pub(super) async fn rule(
    connection: &mut Connection,
    snapshot: &Snapshot,
    caller: &Conversation,
    turn: &Turn,
    call: &ToolCall,
    readiness: Readiness,
) -> Result<Ruling, Error> {
    let Some(question) = Question::of_society(call) else { return Ok(Ruling::Allow) };
    let ruling = match approvals::rule(connection, snapshot, caller, question).await? {
        Ruling::Ask(_) if turn.is_allowed(call) => Ruling::Allow,
        ruling => ruling,
    };
    if matches!(ruling, Ruling::Allow) && readiness == Readiness::Ready {
        return Ok(ruling);
    }
    let chain = agents::chain(connection, &caller.agent).await?;
    let rights = snapshot.settings.rights(&chain);
    let refusal = not_permitted(&rights, snapshot, &call.name, group_of(&call.name).as_ref());
    Ok(refusal.map_or(ruling, Ruling::Refuse))
}

/// Returns what must be prepared for a call of a society tool; `None` if nothing must be.
pub(super) fn preparation(call: &ToolCall, snapshot: &Snapshot) -> Option<Preparation> {
    if call.name == PUT_ARTIFACT {
        return Some(Preparation::Content);
    }
    if !HIRING.contains(&call.name.as_str()) {
        return None;
    }
    let own = match Call::parse(call, Some(&snapshot.catalogue)).call.ok()? {
        Call::SpawnAgent(SpawnAgent { workspace, .. })
        | Call::SpawnAgentWithTask(SpawnAgentWithTask { workspace, .. }) => workspace,
        _ => None,
    };
    own.map(|_| Preparation::Worktree)
}
