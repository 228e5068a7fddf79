//! Asks the rights and the policy about the next calls of society tools, before anything is prepared for these calls.
//!
//! The transaction that runs the calls asks again. If it allows a call that is not ready, it ends before this call, and
//! the driver comes here again.

use super::outside::outside_tool;
use crate::approvals::{self, Question, Ruling};
use crate::handles::Handles;
use crate::tools::{PUT_ARTIFACT, not_permitted};
use polity_decide::arguments::{Call, SpawnAgent, SpawnAgentWithTask, group_of};
use polity_decide::turn::Turn;
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_store::{Conversation, Error, agents};
use std::collections::HashSet;

/// The names of the tools that hire an agent.
const HIRING: [&str; 2] = ["spawn_agent", "spawn_agent_with_task"];

/// The calls that are prepared for the next transaction: they need it, and the rights and the policy allow them now.
#[derive(Default)]
pub(super) struct Next<'t> {
    /// The calls that may store content. The content is put on disk.
    pub(super) contents: Vec<&'t ToolCall>,
    /// The calls that hire an agent with its own worktree. A check finds out whether a worktree can be made.
    pub(super) hires: Vec<&'t ToolCall>,
    /// The ids of all these calls.
    pub(super) ready: HashSet<String>,
}

/// What is prepared for a call.
pub(super) enum Preparation {
    Content,
    Worktree,
}

/// Returns the calls that the next transaction may run and for which something is prepared.
pub(super) async fn next<'t>(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    turn: &'t Turn,
) -> Result<Next<'t>, Error> {
    // When the next transaction begins, every started tool has ended or was given up. So the first call that the
    // transaction carries out is the first call that has not started.
    let unstarted = turn.pending().skip_while(|call| turn.has_started(call));
    let within = unstarted.take_while(|call| outside_tool(handles, call).is_none());
    let accepted = within.filter(|call| turn.refused(call).is_none());
    let found: Vec<_> = accepted.filter_map(|call| Some((call, preparation(call, snapshot)?))).collect();
    let mut next = Next::default();
    if found.is_empty() {
        return Ok(next);
    }
    let mut reader = handles.store.reader().await?;
    let chain = agents::chain(&mut reader, &conversation.agent).await?;
    let rights = snapshot.settings.rights(&chain);
    for (call, needs) in found {
        let is_permitted =
            not_permitted(&rights, snapshot, &call.name, group_of(&call.name).as_ref()).is_none();
        let ruling = match Question::of_society(call).filter(|_| is_permitted) {
            Some(question) => Some(approvals::rule(&mut reader, snapshot, conversation, question).await?),
            None => None,
        };
        let is_allowed = match ruling {
            Some(Ruling::Allow) => true,
            Some(Ruling::Ask(_)) => turn.is_allowed(call),
            Some(Ruling::Refuse(_)) | None => false,
        };
        if !is_allowed {
            continue;
        }
        next.ready.insert(call.id.clone());
        match needs {
            Preparation::Content => next.contents.push(call),
            Preparation::Worktree => next.hires.push(call),
        }
    }
    Ok(next)
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
