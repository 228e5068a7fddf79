//! Asks the policy about each call, and asks the person if the policy says so.
//!
//! *Call → [`rule`] → allow, refuse or [`ask`] → the turn waits → [`answer`] or [`expire`] → the turn goes on.* The
//! question is stored as a row, and a record of the turn refers to it. So nothing runs while an agent waits, and a
//! question survives the end of the process.

mod ending;
mod seen;
mod words;

pub use ending::{AnswerError, PermissionError};
pub(crate) use ending::{answer, expire, remove_permission};
pub(crate) use seen::note as note_seen;
pub(crate) use words::permitted;

use crate::head::head;
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::id::{CallId, TurnId};
use polity_society::policy::{CallFacts, Decision, Often, Reach, Reason, Remembered, decide, remember};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_store::approvals::{NewApproval, Scope};
use polity_store::record::Record;
use polity_store::{
    Bell, Connection, Conversation, Error, Tx, agents, approvals, events, records, seen as sources,
};
use polity_view::Event;
use serde_json::{Value, json};

/// A call about which the policy is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) call: &'a ToolCall,
    pub(crate) group: ToolGroup,
    pub(crate) reach: Reach,
}

/// What the policy says about a call.
#[derive(Debug)]
pub(crate) enum Ruling {
    Allow,
    /// The person decides.
    Ask(Box<Asking>),
    Refuse(Refusal),
}

/// Why the person is asked about a call.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    facts: CallFacts,
    reason: Reason,
    often: Often,
}

/// Asks the policy about a call. The rights of the caller are checked elsewhere.
pub(crate) async fn rule(
    connection: &mut Connection,
    snapshot: &Snapshot,
    caller: &Conversation,
    question: Question<'_>,
) -> Result<Ruling, Error> {
    let policy = &snapshot.settings.tools.policy;
    if question.reach == Reach::Society && policy.is_empty() {
        return Ok(Ruling::Allow);
    }
    let agent = agents::get(&mut *connection, &caller.agent).await?;
    let role = agent.map(|agent| agent.role_name).unwrap_or_default();
    let tool = question.call.name.clone();
    let stored = approvals::permitted(&mut *connection, &caller.task, &tool, &role).await?;
    // If a later version of polity wrote a permission in a form that this version cannot parse, the permission allows
    // nothing.
    let remembered: Vec<Remembered> =
        stored.into_iter().filter_map(|calls| serde_json::from_value(calls).ok()).collect();
    let seen = sources::sources(connection, caller).await?;
    let servers = snapshot.settings.server_groups();
    let facts = CallFacts { tool, group: question.group, role, reach: question.reach, seen, servers };
    Ok(match decide(&facts, policy, &remembered) {
        Decision::Allow => Ruling::Allow,
        Decision::Ask(reason, often) => Ruling::Ask(Box::new(Asking { facts, reason, often })),
        Decision::Deny { rule } => Ruling::Refuse(Refusal::DeniedByPolicy { tool: facts.tool, rule }),
    })
}

/// Asks the person about a call. Returns the record that tells the turn which question it waits for.
pub(crate) async fn ask(
    tx: &mut Tx,
    snapshot: &Snapshot,
    asker: &Conversation,
    turn: TurnId,
    call: &ToolCall,
    asking: Box<Asking>,
    preview: Option<String>,
) -> Result<Record, Error> {
    let arguments = match &call.arguments {
        Arguments::Object(arguments) => Value::Object(arguments.clone()),
        Arguments::Malformed(text) => Value::String(text.clone()),
    };
    let Asking { facts, reason, often } = *asking;
    let mut way = Vec::new();
    for source in &facts.seen {
        way.extend(words::way(&mut tx.connection, asker, source).await?);
    }
    let call_id = CallId::new(call.id.clone());
    let asked = NewApproval {
        turn,
        call: call_id.clone(),
        tool: call.name.clone(),
        role: facts.role.clone(),
        arguments: arguments.clone(),
        preview,
        remembered: json!(remember(&facts)),
        why: words::why(&reason),
        scope: match often {
            Often::EachTime => Scope::Call,
            Often::OncePerTask => Scope::Task,
        },
        way,
        expires_at: tx.now.saturating_add(snapshot.settings.tools.approval_timeout),
    };
    let approval = approvals::insert(tx, asker, &asked).await?;
    let record = Record::Asked { call: call_id, approval: approval.clone() };
    records::append(tx, asker, turn, &record).await?;
    let event = Event::ApprovalRequested {
        task: asker.task.clone(),
        agent: asker.agent.clone(),
        approval,
        tool: call.name.clone(),
        arguments: head(&arguments.to_string()),
    };
    events::append(tx, &event).await?;
    tx.ring(Bell::Timer);
    Ok(record)
}
