//! Asks the policy (the person's rules about tool calls) whether a call may run, and asks the person if the policy
//! demands this.
//!
//! *Call → [`rule`] → allow, refuse or [`ask`] → the turn waits → [`answer`] or [`expire`] → the turn continues.* The
//! question is stored as a row, and a record of the turn refers to this row. So no code runs while an agent waits for
//! the answer, and a question survives the end of the process.

mod ending;
mod seen;
mod words;

pub use ending::{AnswerError, PermissionError};
pub(crate) use ending::{answer, expire, remove_permission};
pub(crate) use seen::{note as note_seen, pass_on as pass_on_seen, pass_on_copied};
pub(crate) use words::permitted;

use crate::head::head;
use polity_decide::arguments::group_of;
use polity_hands::call::Hosts;
use polity_hands::tool::{Act, Shown};
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::id::{CallId, TurnId};
use polity_society::policy::{
    CallFacts, Decision, Effect, Often, Reach, Reason, Remembered, Source, decide, host_name, remember,
};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ServerGroups;
use polity_store::approvals::{NewApproval, Scope};
use polity_store::record::Record;
use polity_store::{
    Bell, Connection, Conversation, Error, Tx, agents, approvals, events, records, seen as sources,
};
use polity_view::Event;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A tool call about which the policy is asked.
#[derive(Clone, Debug)]
pub(crate) struct Question<'a> {
    pub(crate) call: &'a ToolCall,
    /// Every act of the call: the tool group that the act needs, and what the act reaches.
    pub(crate) acts: Vec<Act>,
}

impl<'a> Question<'a> {
    /// Returns the question about a call of a society tool; `None` if there is no society tool with this name.
    pub(crate) fn of_society(call: &'a ToolCall) -> Option<Self> {
        let acts = vec![Act { group: group_of(&call.name)?, reach: Reach::Society }];
        Some(Self { call, acts })
    }
}

/// What the policy says about a call.
#[derive(Debug)]
pub(crate) enum Ruling {
    Allow,
    /// The person decides.
    Ask(Box<Asking>),
    Refuse(Refusal),
}

/// A call about which the person must be asked, and the reason.
#[derive(Clone, Debug)]
pub(crate) struct Asking {
    facts: CallFacts,
    reason: Reason,
    often: Often,
}

/// Facts that the policy needs to decide about a call: the role of the caller, the tool, the sources in `seen`, the
/// groups of the MCP servers, and the permissions that the person gave earlier. `seen` lists the outside sources, such
/// as the web, whose content the caller has got.
struct Known {
    role: String,
    tool: String,
    seen: BTreeSet<Source>,
    servers: ServerGroups,
    remembered: Vec<Remembered>,
}

impl Known {
    async fn of(
        connection: &mut Connection,
        snapshot: &Snapshot,
        caller: &Conversation,
        call: &ToolCall,
    ) -> Result<Self, Error> {
        let agent = agents::get(&mut *connection, &caller.agent).await?;
        let role = agent.map(|agent| agent.role_name).unwrap_or_default();
        let tool = call.name.clone();
        let stored = approvals::permitted(&mut *connection, &caller.task, &tool, &role).await?;
        // A permission that a later version of polity wrote may have an unknown form. Such a permission allows nothing.
        let remembered = stored.into_iter().filter_map(|calls| serde_json::from_value(calls).ok()).collect();
        let seen = sources::sources(connection, caller).await?;
        Ok(Self { role, tool, seen, servers: snapshot.settings.server_groups(), remembered })
    }

    fn facts(&self, act: Act) -> CallFacts {
        CallFacts {
            tool: self.tool.clone(),
            group: act.group,
            role: self.role.clone(),
            reach: act.reach,
            seen: self.seen.clone(),
            servers: self.servers.clone(),
        }
    }
}

/// Asks the policy about a call. Other functions check the rights of the caller. A call may do several things (acts).
/// If the policy denies one of these acts, the call is refused. Otherwise, if the policy asks the person about one of
/// these acts, the person is asked about the call.
pub(crate) async fn rule(
    connection: &mut Connection,
    snapshot: &Snapshot,
    caller: &Conversation,
    question: Question<'_>,
) -> Result<Ruling, Error> {
    let policy = &snapshot.settings.tools.policy;
    if policy.is_empty() && question.acts.iter().all(|act| act.reach == Reach::Society) {
        return Ok(Ruling::Allow);
    }
    let known = Known::of(connection, snapshot, caller, question.call).await?;
    let mut ruling = Ruling::Allow;
    for act in question.acts {
        let facts = known.facts(act);
        match decide(&facts, policy, &known.remembered) {
            Decision::Deny { rule } => {
                return Ok(Ruling::Refuse(Refusal::DeniedByPolicy { tool: facts.tool, rule }));
            }
            Decision::Ask(reason, often) if matches!(ruling, Ruling::Allow) => {
                ruling = Ruling::Ask(Box::new(Asking { facts, reason, often }));
            }
            Decision::Ask(..) | Decision::Allow => {}
        }
    }
    Ok(ruling)
}

/// Returns the hosts to which the web requests of a call may go. One is the host of the call itself, because the policy
/// was already asked about it. The others are the hosts that the policy allows without a question to the person. A
/// redirect to any other host is not followed.
pub(crate) async fn hosts(
    connection: &mut Connection,
    snapshot: &Snapshot,
    caller: &Conversation,
    question: &Question<'_>,
) -> Result<Hosts, Error> {
    let policy = snapshot.settings.tools.policy.clone();
    let web = question.acts.iter().find_map(|act| match &act.reach {
        Reach::Web { host, .. } => Some((act.group.clone(), host.as_deref().and_then(host_name))),
        _ => None,
    });
    let Some((group, first)) = web.filter(|_| !policy.is_empty()) else { return Ok(Hosts::any()) };
    let known = Known::of(connection, snapshot, caller, question.call).await?;
    Ok(Hosts::new(move |host| {
        if first.is_some() && host_name(host) == first {
            return Ok(());
        }
        // A redirect to another host may only read: the web tools refuse a redirect that could change something.
        let reach = Reach::Web { host: Some(host.to_owned()), effect: Effect::Reads };
        match decide(&known.facts(Act { group: group.clone(), reach }), &policy, &known.remembered) {
            Decision::Allow => Ok(()),
            Decision::Deny { rule } => {
                Err(format!("rule {} of tools.policy in app.json denies it", rule.saturating_add(1)))
            }
            Decision::Ask(..) => {
                Err("the person must be asked about this host; call it by its own address".to_owned())
            }
        }
    }))
}

/// Asks the person about a call. Returns the record that tells the turn which question it waits for.
pub(crate) async fn ask(
    tx: &mut Tx,
    snapshot: &Snapshot,
    asker: &Conversation,
    turn: TurnId,
    call: &ToolCall,
    asking: Box<Asking>,
    shown: Option<Shown>,
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
    let Shown { text, state } = shown.unwrap_or_default();
    let call_id = CallId::new(call.id.clone());
    let asked = NewApproval {
        turn,
        call: call_id.clone(),
        tool: call.name.clone(),
        role: facts.role.clone(),
        arguments: arguments.clone(),
        preview: Some(text).filter(|text| !text.is_empty()),
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
    let record = Record::Asked { call: call_id, approval: approval.clone(), shown: state };
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
