//! Runs tools that act outside. The start of a call is committed before the tool runs.
//!
//! *Calls → permitted → prepared → started (committed) → run → files stored → ended.* Nothing is prepared for a call
//! that the rights or the policy refuse. Successive calls run at the same time if they only read. If a crash
//! interrupted a call and the call may be repeated, it begins here again. Its start is already committed, but the
//! rights and the policy are checked again, as for a new call.

mod place;
mod reporter;
mod result;

pub(super) use place::{refused_worktree, settle};

use super::advance::Happened;
use super::call::{arguments, arguments_text, malformed};
use super::goes_on;
use crate::approvals::{self, Question, Ruling};
use crate::board::Moment;
use crate::commands::key_of_call;
use crate::handles::Handles;
use crate::head::head;
use crate::tools::not_permitted;
use futures::future::join_all;
use place::{caller, make_worktree};
use polity_decide::inline::without_bytes_in_diff;
use polity_decide::turn::Turn;
use polity_hands::call::{Attempt, Consent, Hosts, Invocation, Progress};
use polity_hands::tool::{Act, Effect, Shown, Tool, acts};
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_society::id::CallId;
use polity_society::policy::{Reach, Source};
use polity_society::refusal::Refusal;
use polity_society::rules::Rights;
use polity_store::record::Record;
use polity_store::turns::OpenTurn;
use polity_store::{Conversation, Error, Tx, agents, events, records, seen};
use polity_view::Event;
use reporter::Reporter;
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Returns the tool that a call names, if that tool acts outside.
pub(super) fn outside_tool(handles: &Handles, call: &ToolCall) -> Option<Arc<dyn Tool>> {
    let copies = handles.copying.as_ref().and_then(|copying| copying.tool_of(call));
    copies.or_else(|| handles.hands.find(&call.name))
}

/// Returns the calls that run at the same time. If the next call only reads, these are this call and the successive
/// calls that only read. Otherwise, this is the next call alone.
fn batch(handles: &Handles, turn: &Turn, next: &ToolCall) -> Vec<ToolCall> {
    let reads = |call: &&ToolCall| {
        let tool = outside_tool(handles, call);
        let effect = tool.zip(arguments(call)).map(|(tool, arguments)| tool.effect(arguments));
        effect == Some(Effect::Reads) && turn.refused(call).is_none() && !turn.has_started(call)
    };
    let together: Vec<ToolCall> = turn.pending().take_while(reads).cloned().collect();
    if together.is_empty() { vec![next.clone()] } else { together }
}

/// A call that is about to run, or is refused without being run.
struct Ready {
    call: ToolCall,
    tool: Option<Arc<dyn Tool>>,
    /// The evidence that the tool prepared. After a crash, the tool uses it to find out whether the call has happened.
    /// If the call does not run, this is the reason.
    prepared: Result<Value, Refusal>,
    /// Whether the person has already allowed this call.
    asked: Asked,
    /// Whether the call runs only because the person has said yes to it. [`begin`] finds this out.
    consent: Consent,
    /// What the person sees of the call; `None` if the person will probably not be asked about the call.
    preview: Option<Shown>,
    /// The sources from which the call can bring content into the workspace. Empty if the call does not run.
    brings: BTreeSet<Source>,
}

/// Whether the person was asked about a call and has allowed it.
#[derive(Clone)]
enum Asked {
    NotYet,
    /// `shown` names the state that the person was shown.
    Allowed {
        shown: Value,
    },
}

impl Ready {
    /// Returns the question that the policy is asked about this call.
    fn question(&self) -> Option<Question<'_>> {
        question(&self.call, self.tool.as_deref())
    }

    /// Returns what each act of the call reaches.
    fn reaches(&self) -> Vec<Reach> {
        acts_of(&self.call, self.tool.as_deref()).into_iter().map(|act| act.reach).collect()
    }
}

/// Returns the acts of a call. The list is empty if the tool does not exist or the arguments cannot be read.
fn acts_of(call: &ToolCall, tool: Option<&dyn Tool>) -> Vec<Act> {
    tool.zip(arguments(call)).map(|(tool, arguments)| acts(tool, arguments)).unwrap_or_default()
}

/// Returns the question that the policy is asked about a call; `None` if the call has no acts.
fn question<'c>(call: &'c ToolCall, tool: Option<&dyn Tool>) -> Option<Question<'c>> {
    let acts = acts_of(call, tool);
    (!acts.is_empty()).then_some(Question { call, acts })
}

/// Commits the start of the next call and of the calls that may run at the same time. Then runs these calls. Returns
/// `Happened::Nothing` if the driver is halted while the calls run.
pub(super) async fn run_outside(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: &mut Turn,
    next: &ToolCall,
    halt: &CancellationToken,
) -> Result<Happened, Error> {
    let snapshot = handles.registry.current();
    let caller = caller(handles, conversation).await?;
    let cancel = halt.child_token();
    // If this function ends early for any reason, the guard stops the tools that are running.
    let _ends = cancel.clone().drop_guard();
    let attempt = if turn.has_started(next) { Attempt::AfterCrash } else { Attempt::First };
    let calls = if attempt == Attempt::First { batch(handles, turn, next) } else { vec![next.clone()] };
    let names = calls.iter().map(|call| call.name.clone()).collect();
    let running = handles.board.show(conversation, Moment::Running(names));
    let rulings = ruled(handles, conversation, &snapshot, &calls).await?;
    let no_place = match rulings.iter().all(|ruling| matches!(ruling, Ruling::Refuse(_))) {
        true => Ok(()),
        false => make_worktree(handles, &caller, &cancel).await?,
    };
    let round = turn.rounds();
    let invocation = |call: &ToolCall, evidence: Value| Invocation {
        caller: caller.clone(),
        arguments: arguments(call).cloned().unwrap_or_default(),
        idempotency_key: key_of_call(open.id, round, &call.id),
        evidence,
        attempt,
        cancel: cancel.clone(),
        progress: Progress::none(),
        hosts: Hosts::any(),
        consent: Consent::NotNeeded,
    };
    let mut ready = Vec::with_capacity(calls.len());
    for (call, ruling) in calls.into_iter().zip(rulings) {
        let tool = outside_tool(handles, &call);
        let (allowed, may_be_asked) = match ruling {
            Ruling::Refuse(refusal) => (Err(refusal), false),
            Ruling::Ask(_) => (no_place.clone(), true),
            Ruling::Allow => (no_place.clone(), false),
        };
        let prepared = match (&tool, turn.evidence(&call)) {
            _ if allowed.is_err() => allowed.map(|()| Value::Null),
            (None, _) => Err(Refusal::OutcomeUnknown { tool: call.name.clone() }),
            (Some(_), Some(evidence)) => Ok(evidence.clone()),
            (Some(tool), None) if arguments(&call).is_some() => {
                let input = invocation(&call, Value::Null);
                tokio::select! {
                    prepared = tool.prepare(&input) => prepared.map(without_bytes),
                    () = halt.cancelled() => return Ok(Happened::Nothing),
                }
            }
            (Some(_), None) => Err(malformed(&call)),
        };
        let mut brings = BTreeSet::new();
        if let (Some(tool), Ok(_)) = (&tool, &prepared) {
            let input = invocation(&call, Value::Null);
            brings = tokio::select! {
                brings = tool.brings(&input) => brings,
                () = halt.cancelled() => return Ok(Happened::Nothing),
            };
        }
        let asked = match turn.shown(&call) {
            Some(shown) => Asked::Allowed { shown: shown.clone() },
            None => Asked::NotYet,
        };
        let mut preview = None;
        if let (Ok(_), Asked::NotYet, true, Some(tool)) = (&prepared, &asked, may_be_asked, &tool) {
            let input = invocation(&call, Value::Null);
            preview = tokio::select! {
                preview = tool.preview(&input) => preview,
                () = halt.cancelled() => return Ok(Happened::Nothing),
            };
            if let Some(Shown { text, .. }) = &mut preview {
                *text = without_bytes_in_diff(text);
            }
        }
        let consent = Consent::NotNeeded;
        ready.push(Ready { call, tool, prepared, asked, consent, preview, brings });
    }
    let Some((ready, records)) = begin(handles, conversation, open, &snapshot, attempt, ready).await? else {
        return Ok(Happened::Nothing);
    };
    records.iter().for_each(|record| turn.apply(record));
    if attempt == Attempt::First {
        polity_points::point!("outside::started");
    }
    if ready.is_empty() {
        // The turn waits until the person has answered.
        return Ok(Happened::Nothing);
    }
    let reached = |ready: &Ready| {
        // A call that the rights or the policy refuse has reached nothing. If an earlier process has started the call,
        // `begin` has noted then what the call could pass on.
        let is_forbidden =
            matches!(&ready.prepared, Err(Refusal::ToolNotPermitted { .. } | Refusal::DeniedByPolicy { .. }));
        if is_forbidden { Vec::new() } else { ready.reaches() }
    };
    let reaches: Vec<Vec<Reach>> = ready.iter().map(reached).collect();
    let hosts = hosts(handles, conversation, &snapshot, &ready).await?;
    let turn = &*turn;
    let runs = ready.into_iter().zip(hosts).map(|(Ready { call, tool, prepared, consent, .. }, hosts)| {
        let unknown = prepared.is_err().then(|| unknown_outcome(handles, &snapshot, turn, &call)).flatten();
        let input = prepared.map(|evidence| {
            let mut input = invocation(&call, evidence);
            let reporter = Reporter::new(handles, conversation, &call);
            input.progress = reporter.progress();
            input.hosts = hosts;
            input.consent = consent;
            (input, reporter)
        });
        let running = &running;
        async move {
            let begun = Instant::now();
            let ran = match (tool, input) {
                (Some(tool), Ok((input, _reporter))) => tool.run(input).await,
                (_, Err(refusal)) => Err(refusal),
                (None, Ok(_)) => Err(Refusal::OutcomeUnknown { tool: call.name.clone() }),
            };
            running.ended(&call.name);
            (call, ran, unknown, begun.elapsed())
        }
    });
    let ran = tokio::select! {
        // This branch comes first. The tools may end at the moment at which the driver is halted, and their results
        // must not be lost then.
        biased;
        ran = join_all(runs) => ran,
        () = halt.cancelled() => return Ok(Happened::Nothing),
    };
    polity_points::point!("outside::ran");
    let mut ended = Vec::with_capacity(ran.len());
    let mut unwritten = 0_u64;
    for ((call, ran, unknown, duration), reaches) in ran.into_iter().zip(reaches) {
        let call = result::Ran { call, reaches, result: ran, unknown, duration };
        let one = result::end(handles, conversation, &snapshot, call, unwritten).await?;
        unwritten = unwritten.saturating_add(one.bytes_of_artifacts());
        ended.push(one);
    }
    Ok(Happened::ToolsEnded(ended))
}

/// Returns what the rights and the policy say about each call at this moment. No rule of the policy depends on what a
/// tool prepares. [`begin`] asks the rights and the policy once more, because they may change while calls are prepared.
async fn ruled(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    calls: &[ToolCall],
) -> Result<Vec<Ruling>, Error> {
    let mut reader = handles.store.reader().await?;
    let chain = agents::chain(&mut reader, &conversation.agent).await?;
    let rights = snapshot.settings.rights(&chain);
    let mut rulings = Vec::with_capacity(calls.len());
    for call in calls {
        let tool = outside_tool(handles, call);
        let lacking = lacking_right(&rights, snapshot, call, tool.as_deref());
        let ruling = match (lacking, question(call, tool.as_deref())) {
            (Some(refusal), _) => Ruling::Refuse(refusal),
            (None, Some(question)) => approvals::rule(&mut reader, snapshot, conversation, question).await?,
            (None, None) => Ruling::Allow,
        };
        rulings.push(ruling);
    }
    Ok(rulings)
}

/// If the caller lacks the right to one of the acts of a call, returns the refusal of this call.
fn lacking_right(
    rights: &Rights,
    snapshot: &Snapshot,
    call: &ToolCall,
    tool: Option<&dyn Tool>,
) -> Option<Refusal> {
    let given = arguments(call).cloned().unwrap_or_default();
    let acts = tool.map(|tool| acts(tool, &given)).unwrap_or_default();
    acts.iter().find_map(|act| not_permitted(rights, snapshot, &call.name, Some(&act.group)))
}

/// The evidence of a call is recorded. If it contains the diff of a file, leaves binary data out of this diff.
fn without_bytes(mut evidence: Value) -> Value {
    if let Some(Value::String(diff)) = evidence.get_mut("diff") {
        *diff = without_bytes_in_diff(diff);
    }
    evidence
}

/// Returns, for each call, the hosts to which its web requests may go.
async fn hosts(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    ready: &[Ready],
) -> Result<Vec<Hosts>, Error> {
    let mut hosts = Vec::with_capacity(ready.len());
    let mut reader = handles.store.reader().await?;
    for question in ready.iter().map(Ready::question) {
        hosts.push(match question {
            Some(question) => approvals::hosts(&mut reader, snapshot, conversation, &question).await?,
            None => Hosts::any(),
        });
    }
    Ok(hosts)
}

/// Records and commits that the calls start, and which sources they can bring into the workspace. (After a crash, both
/// are already recorded.) Reads the rights of the agent in the same transaction, and refuses a call to a tool that the
/// agent may not use. If the person must be asked about a call, records the question. Then this call and all later
/// calls do not begin. Returns `None` if the turn does not continue.
async fn begin(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    snapshot: &Arc<Snapshot>,
    attempt: Attempt,
    ready: Vec<Ready>,
) -> Result<Option<(Vec<Ready>, Vec<Record>)>, Error> {
    let (owner, open, snapshot) = (conversation.clone(), open.clone(), Arc::clone(snapshot));
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            if !goes_on(tx, &owner, &open).await? {
                return Ok(None);
            }
            let chain = agents::chain(&mut tx.connection, &owner.agent).await?;
            let rights = snapshot.settings.rights(&chain);
            let (mut begun, mut written) = (Vec::with_capacity(ready.len()), Vec::new());
            for mut ready in ready {
                if let Some(refusal) = lacking_right(&rights, &snapshot, &ready.call, ready.tool.as_deref()) {
                    ready.prepared = Err(refusal);
                }
                if let (Ok(_), Some(question)) = (&ready.prepared, ready.question()) {
                    let ruling = approvals::rule(&mut tx.connection, &snapshot, &owner, question).await?;
                    match (ruling, ready.asked.clone()) {
                        (Ruling::Ask(_), Asked::Allowed { shown }) => {
                            ready.consent = Consent::Given { shown };
                        }
                        (Ruling::Ask(asking), Asked::NotYet) => {
                            let record = approvals::ask(
                                tx,
                                &snapshot,
                                &owner,
                                open.id,
                                &ready.call,
                                asking,
                                ready.preview,
                            )
                            .await?;
                            written.push(record);
                            break;
                        }
                        (Ruling::Refuse(refusal), _) => ready.prepared = Err(refusal),
                        (Ruling::Allow, _) => {}
                    }
                }
                if let (Ok(evidence), Attempt::First) = (&ready.prepared, attempt) {
                    let record = Record::ToolStarted {
                        call: CallId::new(ready.call.id.clone()),
                        evidence: evidence.clone(),
                    };
                    records::append(tx, &owner, open.id, &record).await?;
                    note_start(tx, &owner, &ready.call).await?;
                    approvals::pass_on_seen(tx, &owner, &ready.reaches()).await?;
                    approvals::pass_on_copied(tx, &owner, &ready.call).await?;
                    for source in &ready.brings {
                        seen::bring(tx, &owner, source, &ready.call.name).await?;
                    }
                    written.push(record);
                }
                begun.push(ready);
            }
            Ok(Some((begun, written)))
        })
    });
    write.await
}

/// An earlier process may have started a call that can change something. Nobody knows whether such a call has taken
/// effect. Returns the text that the model is told if such a call is not run again. Returns `None` for all other calls.
pub(super) fn unknown_outcome(
    handles: &Handles,
    snapshot: &Snapshot,
    turn: &Turn,
    call: &ToolCall,
) -> Option<String> {
    let (tool, arguments) = outside_tool(handles, call).zip(arguments(call))?;
    let may_have_changed = turn.has_started(call) && tool.effect(arguments) == Effect::Changes;
    let unknown = Refusal::OutcomeUnknown { tool: call.name.clone() };
    may_have_changed.then(|| unknown.message(&snapshot.prompts.texts))
}

async fn note_start(tx: &mut Tx, conversation: &Conversation, call: &ToolCall) -> Result<(), Error> {
    let event = Event::ToolStarted {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        call: CallId::new(call.id.clone()),
        tool: call.name.clone(),
        arguments: head(&arguments_text(call)),
    };
    events::append(tx, &event).await
}
