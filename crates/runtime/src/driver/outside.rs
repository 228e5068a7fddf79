//! Runs tools that act outside. The start of a call is committed before the tool runs.
//!
//! *Calls → prepared → started (committed) → run → files stored → ended.* Calls that only read run at the same time.

use super::advance::{Ended, Happened};
use super::bytes::{put_in_store, take_result_out};
use super::goes_on;
use crate::handles::Handles;
use crate::tools::{self, not_permitted};
use futures::future::join_all;
use polity_artifacts::{NewArtifact, Prepared};
use polity_decide::turn::Turn;
use polity_hands::call::{self, Attempt, Caller, Invocation, Place, Progress};
use polity_hands::tool::{Effect, Tool};
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::id::CallId;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::rules::Rights;
use polity_store::record::{Content, Record, ToolResult};
use polity_store::turns::OpenTurn;
use polity_store::{Conversation, Error, Tx, agents, events, records, tasks};
use polity_view::Event;
use serde_json::{Map, Value};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// The shortest time between two progress events of a call.
const PROGRESS_PAUSE: Duration = Duration::from_millis(250);

/// An event shows at most this many characters of a result, and of a call's arguments.
const HEAD_CHARS: usize = 400;

/// Returns the tool that a call names, if that tool acts outside.
pub(super) fn outside_tool(handles: &Handles, call: &ToolCall) -> Option<Arc<dyn Tool>> {
    handles.hands.find(&call.name)
}

/// The arguments of a call; none if the model did not write an object.
pub(super) fn arguments(call: &ToolCall) -> Option<&Map<String, Value>> {
    match &call.arguments {
        Arguments::Object(arguments) => Some(arguments),
        Arguments::Malformed(_) => None,
    }
}

/// Returns the calls that run at the same time: the next call alone, or several calls in a row that only read.
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
    /// The evidence that the tool prepared, or the reason why the call does not run.
    prepared: Result<Value, Refusal>,
}

/// Runs the next call, and the calls that may run at the same time. Commits their start before that. If the driver is
/// halted meanwhile, this returns `Happened::Nothing`.
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
    let no_place = make_worktree(handles, &caller, &cancel).await?;
    let round = turn.rounds();
    let invocation = |call: &ToolCall, evidence: Value| Invocation {
        caller: caller.clone(),
        arguments: arguments(call).cloned().unwrap_or_default(),
        // Call ids are unique only among visible calls: an earlier call that was summed up may have had the same id.
        idempotency_key: format!("{}-{}-{}", open.id, round, call.id),
        evidence,
        attempt,
        cancel: cancel.clone(),
        progress: Progress::none(),
    };
    let mut ready = Vec::with_capacity(calls.len());
    for call in calls {
        let tool = outside_tool(handles, &call);
        let prepared = match (&tool, turn.evidence(&call)) {
            _ if no_place.is_err() => no_place.clone().map(|()| Value::Null),
            (None, _) => Err(Refusal::OutcomeUnknown { tool: call.name.clone() }),
            (Some(_), Some(evidence)) => Ok(evidence.clone()),
            (Some(tool), None) if arguments(&call).is_some() => {
                let input = invocation(&call, Value::Null);
                tokio::select! {
                    prepared = tool.prepare(&input) => prepared,
                    () = halt.cancelled() => return Ok(Happened::Nothing),
                }
            }
            (Some(_), None) => Err(malformed(&call)),
        };
        ready.push(Ready { call, tool, prepared });
    }
    if attempt == Attempt::First {
        match start(handles, conversation, open, &snapshot, ready).await? {
            Some((started, records)) => {
                records.iter().for_each(|record| turn.apply(record));
                ready = started;
                polity_points::point!("outside::started");
            }
            None => return Ok(Happened::Nothing),
        }
    }
    let runs = ready.into_iter().map(|Ready { call, tool, prepared }| {
        let input = prepared.map(|evidence| {
            let mut input = invocation(&call, evidence);
            let reporter = Reporter::new(handles, conversation, &call);
            input.progress = reporter.progress();
            (input, reporter)
        });
        async move {
            let begun = Instant::now();
            let ran = match (tool, input) {
                (Some(tool), Ok((input, _reporter))) => tool.run(input).await,
                (_, Err(refusal)) => Err(refusal),
                (None, Ok(_)) => Err(Refusal::OutcomeUnknown { tool: call.name.clone() }),
            };
            (call, ran, begun.elapsed())
        }
    });
    let ran = tokio::select! {
        // Tools that have ended have a known outcome, so this branch comes first.
        biased;
        ran = join_all(runs) => ran,
        () = halt.cancelled() => return Ok(Happened::Nothing),
    };
    polity_points::point!("outside::ran");
    let mut ended = Vec::with_capacity(ran.len());
    for (call, result, duration) in ran {
        ended.push(end(handles, conversation, &snapshot, call, result, duration).await?);
    }
    Ok(Happened::ToolsEnded(ended))
}

/// Returns the calling agent with its task and role, and the directory in which it works.
async fn caller(handles: &Handles, conversation: &Conversation) -> Result<Caller, Error> {
    let mut reader = handles.store.reader().await?;
    let role = agents::get(&mut reader, &conversation.agent).await?.map(|agent| agent.role_name);
    let Conversation { agent, task } = conversation.clone();
    let root = tasks::workspace(&mut reader, &task).await?;
    let worktree = agents::worktree(&mut reader, &agent).await?.map(|(owner, _)| owner);
    let place = Place { root, worktree };
    Ok(Caller { agent, task, role: role.unwrap_or_default(), place })
}

/// Makes the own worktree in which an agent works, if it is not there yet. Its base is the workspace of the hirer.
async fn make_worktree(
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
    // The worktree of an agent may be based on that of its hirer, so the highest one comes first.
    for (owner, hirer) in chain.into_iter().rev() {
        let conversation = Conversation { agent: hirer, task: caller.task.clone() };
        let hirer = self::caller(handles, &conversation).await?;
        if let Err(refusal) = workspaces.hire(&hirer, &owner, cancel).await {
            return Ok(Err(refusal));
        }
    }
    Ok(Ok(()))
}

/// Returns why the agent cannot hire anybody with an own worktree, if one of its next calls wants that and it is so.
pub(super) async fn refused_worktree(
    handles: &Handles,
    conversation: &Conversation,
    turn: &Turn,
) -> Result<Option<Refusal>, Error> {
    let wants = |call: &ToolCall| {
        let wish = arguments(call).and_then(|arguments| arguments.get(tools::WORKSPACE));
        wish.is_some_and(|wish| !wish.is_null())
    };
    let Some(workspaces) = handles.hands.workspaces().filter(|_| turn.pending().any(wants)) else {
        return Ok(None);
    };
    let caller = caller(handles, conversation).await?;
    let opened = workspaces.directory(&caller.task, &caller.place, &handles.draining).await;
    Ok(match opened {
        Ok(opened) if opened.git.is_some() => None,
        Ok(_) => {
            let reason = "a worktree needs git and a repository with at least one commit";
            Some(Refusal::WorkspaceRefused { reason: reason.to_owned() })
        }
        Err(refusal) => Some(refusal),
    })
}

/// Commits what an agent has changed in its workspace. A failure is logged: the files are there, and the end of the next
/// turn commits them.
pub(super) async fn settle(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
) -> Result<(), Error> {
    let Some(workspaces) = handles.hands.workspaces() else { return Ok(()) };
    let caller = caller(handles, conversation).await?;
    if let Err(refusal) = workspaces.settle(&caller, open.id, &handles.draining).await {
        tracing::warn!(agent = %conversation.agent, ?refusal, "failed to commit what an agent changed");
    }
    polity_points::point!("outside::settled");
    Ok(())
}

fn malformed(call: &ToolCall) -> Refusal {
    let text = match &call.arguments {
        Arguments::Malformed(text) => text.chars().take(HEAD_CHARS).collect(),
        Arguments::Object(_) => String::new(),
    };
    let fault = Fault::Rule(format!("not a JSON object: {text}"));
    Refusal::InvalidArguments(vec![FieldProblem::new("arguments", fault)])
}

/// Records that the calls start, and commits this. A call to a tool that the agent may not use is refused here,
/// in the same transaction that reads its rights. Returns `None` if the turn does not continue.
async fn start(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    snapshot: &Arc<Snapshot>,
    ready: Vec<Ready>,
) -> Result<Option<(Vec<Ready>, Vec<Record>)>, Error> {
    let (owner, open, snapshot) = (conversation.clone(), open.clone(), Arc::clone(snapshot));
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            if !goes_on(tx, &owner, &open).await? {
                return Ok(None);
            }
            let chain = agents::chain(&mut tx.connection, &owner.agent).await?;
            let rights = Rights::of(&snapshot.settings.root_tools, &chain);
            let (mut started, mut written) = (Vec::with_capacity(ready.len()), Vec::new());
            for mut ready in ready {
                let group = ready.tool.as_ref().map(|tool| tool.group());
                let denied = not_permitted(&rights, &snapshot, &ready.call.name, group.as_ref());
                if let Some(refusal) = denied {
                    ready.prepared = Err(refusal);
                }
                if let Ok(evidence) = &ready.prepared {
                    let record = Record::ToolStarted {
                        call: CallId::new(ready.call.id.clone()),
                        evidence: evidence.clone(),
                    };
                    records::append(tx, &owner, open.id, &record).await?;
                    note_start(tx, &owner, &ready.call).await?;
                    written.push(record);
                }
                started.push(ready);
            }
            Ok(Some((started, written)))
        })
    });
    write.await
}

async fn note_start(tx: &mut Tx, conversation: &Conversation, call: &ToolCall) -> Result<(), Error> {
    let event = Event::ToolStarted {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        call: CallId::new(call.id.clone()),
        tool: call.name.clone(),
        arguments: head(
            &arguments(call)
                .map(|arguments| Value::Object(arguments.clone()).to_string())
                .unwrap_or_default(),
        ),
    };
    events::append(tx, &event).await
}

/// Returns the beginning of a text.
fn head(text: &str) -> String {
    match text.char_indices().nth(HEAD_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Stores the files of a result, and removes encoded bytes from its text.
async fn end(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    call: ToolCall,
    result: Result<call::Output, Refusal>,
    duration: Duration,
) -> Result<Ended, Error> {
    let (mut result, refused, files) = match result {
        Ok(output) => {
            let (result, files) = taken_apart(output);
            (result, None, files)
        }
        Err(refusal) => {
            (ToolResult::Json(refusal.to_json(&snapshot.prompts.texts)), Some(refusal.code()), Vec::new())
        }
    };
    let mut stored = take_bytes_out(handles, conversation, snapshot, &mut result).await?;
    let mut left_out = Vec::new();
    for file in files {
        if let Err(too_large) = snapshot.settings.limits.check_artifact(file.bytes.len() as u64) {
            left_out.push(Refusal::from(too_large).message(&snapshot.prompts.texts));
            continue;
        }
        let artifact = NewArtifact {
            bytes: file.bytes,
            declared_mime: file.declared_mime,
            filename: file.filename,
            label: Some("tool_result".to_owned()),
            ..NewArtifact::default()
        };
        let prepared = put_in_store(handles, artifact).await?;
        if let ToolResult::Outside { artifacts, .. } = &mut result {
            artifacts.push(prepared.artifact.id.clone());
        }
        stored.push(prepared);
    }
    if let ToolResult::Outside { content, .. } = &mut result
        && !left_out.is_empty()
    {
        note_left_out(content, &left_out);
    }
    let shown = match &result {
        ToolResult::Outside { content: Content::Text { text, .. }, .. } => head(text),
        ToolResult::Outside { content: Content::Json(value), .. } | ToolResult::Json(value) => {
            head(&value.to_string())
        }
        ToolResult::Artifact { artifact, .. } => artifact.reference(),
    };
    Ok(Ended { call, result, refused, stored, duration, head: shown })
}

/// Splits the output of a tool into the result to record and the files to store.
fn taken_apart(output: call::Output) -> (ToolResult, Vec<call::File>) {
    let call::Output { content, files, source } = output;
    let content = match content {
        call::Content::Json(value) => Content::Json(value),
        call::Content::Text { origin, text } => Content::Text { origin, text },
    };
    let source = source.map(|source| source.to_string());
    (ToolResult::Outside { content, artifacts: Vec::new(), source }, files)
}

/// Takes encoded bytes out of a result. Returns the artifacts that they became.
async fn take_bytes_out(
    handles: &Handles,
    conversation: &Conversation,
    snapshot: &Snapshot,
    result: &mut ToolResult,
) -> Result<Vec<Prepared>, Error> {
    match result {
        ToolResult::Artifact { .. } => Ok(Vec::new()),
        ToolResult::Json(value) | ToolResult::Outside { content: Content::Json(value), .. } => {
            take_result_out(handles, conversation, snapshot, value).await
        }
        ToolResult::Outside { content: Content::Text { text, .. }, .. } => {
            let mut value = Value::String(std::mem::take(text));
            let stored = take_result_out(handles, conversation, snapshot, &mut value).await?;
            if let Value::String(without) = value {
                *text = without;
            }
            Ok(stored)
        }
    }
}

/// Adds a note to a result about its files that are too large to be stored.
fn note_left_out(content: &mut Content, left_out: &[String]) {
    match content {
        Content::Json(Value::Object(object)) => {
            object.insert("notStored".to_owned(), left_out.into());
        }
        Content::Json(other) => {
            *other = serde_json::json!({"result": other.take(), "notStored": left_out});
        }
        Content::Text { text, .. } => {
            text.push('\n');
            text.push_str(&left_out.join("\n"));
        }
    }
}

/// Writes the progress of a call as events, with a pause between two of them.
struct Reporter {
    newest: watch::Sender<String>,
    writer: JoinHandle<()>,
}

impl Reporter {
    fn new(handles: &Arc<Handles>, conversation: &Conversation, call: &ToolCall) -> Self {
        let (newest, mut changed) = watch::channel(String::new());
        let (handles, owner) = (Arc::clone(handles), conversation.clone());
        let (id, tool) = (CallId::new(call.id.clone()), call.name.clone());
        let writer = tokio::spawn(async move {
            while changed.changed().await.is_ok() {
                let text = changed.borrow_and_update().clone();
                let event = Event::ToolProgress {
                    task: owner.task.clone(),
                    agent: owner.agent.clone(),
                    call: id.clone(),
                    tool: tool.clone(),
                    text: head(&text),
                };
                let write =
                    handles.store.write(move |tx| Box::pin(async move { events::append(tx, &event).await }));
                if let Err(error) = write.await {
                    tracing::warn!(%error, "failed to write the progress of a tool");
                }
                tokio::time::sleep(PROGRESS_PAUSE).await;
            }
        });
        Self { newest, writer }
    }

    fn progress(&self) -> Progress {
        let newest = self.newest.clone();
        Progress::new(move |text| {
            newest.send_replace(text.to_owned());
        })
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.writer.abort();
    }
}
