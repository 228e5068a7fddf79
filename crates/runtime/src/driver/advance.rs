//! The transaction of a turn: writes what happened, and does the next steps. It ends before the first step that needs a
//! model, an outside tool, the answer of the person, or a preparation outside the transaction.

use super::bytes::{prepare_contents, put_on_disk};
use super::call::arguments;
use super::closing::{self, Finished, LastText};
use super::early::{self, Preparation, Readiness};
use super::outside::{outside_tool, refused_worktree, settle, unknown_outcome};
use super::service_of;
use crate::approvals::{self, Ruling};
use crate::budget::Reservation;
use crate::handles::Handles;
use crate::rest;
use crate::tools::{self, Context};
use polity_artifacts::{NewArtifact, Prepared};
use polity_decide::budget::Reached;
use polity_decide::idle::ends_with_turn;
use polity_decide::room;
use polity_decide::turn::{self, Reminded, Step, Turn, WhyRefused};
use polity_hands::tool::AfterCrash;
use polity_llm::ToolCall;
use polity_registry::Snapshot;
use polity_society::defuse::json_line;
use polity_society::id::{CallId, CommandId, ServiceId};
use polity_society::notice::Notice;
use polity_society::policy::Reach;
use polity_society::refusal::Refusal;
use polity_store::messages::{self, Settled};
use polity_store::mint;
use polity_store::record::{Content, Record, Replied, ToolResult};
use polity_store::turns::{self, MayGoOn, OpenTurn};
use polity_store::{Conversation, Error, Tx, agents, commands, events, records, sent, tasks, usage};
use polity_view::Event;
use serde_json::{Number, json};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// A field of a refusal. It tells the model that the same call was already run and interrupted, and that this run may
/// have taken effect.
pub(super) const UNKNOWN_OUTCOME: &str = "interrupted";

/// What happened since the last transaction.
#[derive(Clone)]
pub(super) enum Happened {
    /// Nothing, for example because the driver has only just loaded the turn.
    Nothing,
    /// The model answered.
    Replied {
        replied: Box<Replied>,
        event: Box<Event>,
        served: usage::Served,
        /// The request as it was sent.
        sent: Arc<sent::Sent>,
        /// The artifacts that were made of bytes in the answer. The bytes are on disk already.
        stored: Vec<Prepared>,
        #[expect(dead_code, reason = "held until the cost of the answer is written, then dropped")]
        reservation: Arc<Reservation>,
    },
    /// Calls of tools that act outside have ended. The list is in the order of the calls.
    ToolsEnded(Vec<Ended>),
    /// The model call failed without an answer, and no further attempt is made.
    Failed { service: ServiceId, reason: String },
    /// A limit of the task was reached.
    Limited(Reached),
}

/// A call of a tool that acts outside has ended.
#[derive(Clone)]
pub(super) struct Ended {
    pub(super) call: ToolCall,
    /// What the call reached outside the society, for example a web host or the workspace.
    pub(super) reaches: Vec<Reach>,
    pub(super) result: ToolResult,
    /// The code of the refusal, if the call was refused.
    pub(super) refused: Option<&'static str>,
    /// The artifacts that were made of the files in the result, and of encoded bytes in the text of the result. All
    /// bytes are on disk already.
    pub(super) stored: Vec<Prepared>,
    /// The artifact that the agent made of a file of the workspace. The bytes of the artifact are on disk already.
    pub(super) made: Option<Prepared>,
    pub(super) duration: Duration,
    /// The beginning of the result, which the event shows.
    pub(super) head: String,
    /// If the call started a background command, the id of this command.
    pub(super) goes_on: Option<CommandId>,
}

impl Ended {
    /// Returns the size of all artifacts that the call has made.
    pub(super) fn bytes_of_artifacts(&self) -> u64 {
        self.stored.iter().chain(&self.made).map(|prepared| prepared.artifact.size).sum()
    }
}

/// What is known about a call that has ended, besides its tool and its result.
#[derive(Default)]
struct Course<'a> {
    /// The code of the refusal, if the call was refused.
    refused: Option<&'a str>,
    /// How long the tool ran; `None` for a society tool.
    duration: Option<Duration>,
    /// The beginning of the result; `None` for a society tool.
    head: Option<String>,
}

impl<'a> Course<'a> {
    fn of_society(refused: Option<&'a str>) -> Self {
        Self { refused, ..Self::default() }
    }
}

/// Prepares the calls that the next steps run, as far as they are allowed, and commits the files of the agent if the
/// turn probably ends. Then runs one transaction: writes what happened, and does the next steps. Returns the first step
/// that the transaction could not do, or [`Step::Ended`]. If `halt` is cancelled, the check before a hire is given up,
/// and the hire is left to the next driver.
pub(super) async fn advance(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: Turn,
    happened: Happened,
    halt: &CancellationToken,
) -> Result<(Turn, Step), Error> {
    let snapshot = handles.registry.current();
    let mut ahead = turn.clone();
    if let Happened::Replied { replied, .. } = &happened {
        ahead.apply(&Record::Replied(replied.as_ref().clone()));
    }
    let max_rounds = snapshot.settings.limits.max_tool_rounds;
    if matches!((&happened, ahead.next(max_rounds)), (Happened::Nothing, Step::CallModel(_) | Step::Await(_)))
    {
        return Ok((turn, ahead.next(max_rounds)));
    }
    if ahead.acted_outside() && ends(&happened, &ahead.next(max_rounds)) {
        settle(handles, conversation, open).await;
    }
    let mut next = early::next(handles, conversation, &snapshot, &ahead).await?;
    let contents = next.iter().filter(|(_, needs)| *needs == Preparation::Content);
    let contents: Vec<&ToolCall> = contents.map(|(call, _)| *call).collect();
    let prepared = prepare_contents(handles, &snapshot, &contents).await?;
    let mut no_worktree = None;
    if next.iter().any(|(_, needs)| *needs == Preparation::Worktree) {
        tokio::select! {
            refused = refused_worktree(handles, conversation) => no_worktree = refused?,
            // The check may wait long for git, or for other agents of the task. Without it, nothing is prepared for the
            // hire, so the transaction ends before it.
            () = halt.cancelled() => next.retain(|(_, needs)| *needs != Preparation::Worktree),
        }
    }
    let ready = next.iter().map(|(call, _)| call.id.clone()).collect();
    let advance = Advance {
        handles: Arc::clone(handles),
        conversation: conversation.clone(),
        open: open.clone(),
        snapshot,
        prepared,
        no_worktree,
        ready,
    };
    handles.store.write(move |tx| Box::pin(advance.run(tx, turn, happened))).await
}

/// Returns whether the turn probably ends with this transaction.
fn ends(happened: &Happened, next: &Step) -> bool {
    let is_last = matches!(next, Step::Finish(_) | Step::Fail(_));
    is_last || matches!(happened, Happened::Failed { .. } | Happened::Limited(_))
}

/// The inputs of a transaction.
struct Advance {
    handles: Arc<Handles>,
    conversation: Conversation,
    open: OpenTurn,
    snapshot: Arc<Snapshot>,
    prepared: HashMap<String, Result<Prepared, Refusal>>,
    /// A pending call may hire an agent with its own worktree. If no worktree can be made, this is the refusal of that
    /// call.
    no_worktree: Option<Refusal>,
    /// The ids of the calls for which everything is prepared.
    ready: HashSet<String>,
}

/// Whether the transaction continues with the next step.
enum Go {
    On,
    /// The next step needs a model, an outside tool or a preparation.
    Stop,
    /// The turn has ended.
    Ended,
    /// The turn has ended, and the task with it.
    TaskEnded,
}

impl Advance {
    async fn run(self, tx: &mut Tx, mut turn: Turn, happened: Happened) -> Result<(Turn, Step), Error> {
        // While the model was answering, somebody may have ended the agent or stopped its turn.
        let (open, may_go_on) = turns::open_and_held(&mut tx.connection, &self.conversation).await?;
        if open.as_ref() != Some(&self.open) {
            if let Happened::Replied { served, .. } = &happened {
                // Nobody gets the answer of the model, but the task must pay for it.
                usage::insert(tx, &self.conversation, self.open.id, served).await?;
            }
            return Ok((turn, Step::Ended));
        }
        let worked = match happened {
            Happened::Nothing => None,
            _ => self.handles.budgets.worked(&self.conversation.task),
        };
        self.take_down(tx, &mut turn, happened).await?;
        let (step, go) = match may_go_on {
            // If the agent is paused or parked, the record of what happened is kept, but the turn does not continue
            // until the agent is resumed.
            MayGoOn::Held => (Step::Ended, Go::Ended),
            MayGoOn::Yes => self.steps(tx, &mut turn).await?,
        };
        match (go, worked) {
            // The end of the task has also written how long agents have worked for it.
            (Go::TaskEnded, _) | (_, None) => {}
            (_, Some(worked)) => tasks::set_worked(tx, &self.conversation.task, worked).await?,
        }
        Ok((turn, step))
    }

    /// Does the next steps. Returns the first step that the transaction cannot do, or [`Step::Ended`].
    async fn steps(&self, tx: &mut Tx, turn: &mut Turn) -> Result<(Step, Go), Error> {
        loop {
            let step = turn.next(self.snapshot.settings.limits.max_tool_rounds);
            match self.step(tx, turn, &step).await? {
                Go::On => {}
                Go::Stop => return Ok((step, Go::Stop)),
                ended @ (Go::Ended | Go::TaskEnded) => return Ok((Step::Ended, ended)),
            }
        }
    }

    async fn take_down(&self, tx: &mut Tx, turn: &mut Turn, happened: Happened) -> Result<(), Error> {
        match happened {
            Happened::Nothing => Ok(()),
            Happened::Replied { replied, mut event, served, sent: request, stored, reservation: _ } => {
                usage::insert(tx, &self.conversation, self.open.id, &served).await?;
                let record = Record::Replied(*replied);
                let place = records::append(tx, &self.conversation, self.open.id, &record).await?;
                let number =
                    sent::insert(tx, &self.conversation, self.open.id, &request, Some(place)).await?;
                if let Event::ModelAnswered { sent, .. } = event.as_mut() {
                    *sent = Some(number);
                }
                events::append(tx, &event).await?;
                self.store(tx, stored).await?;
                turn.apply(&record);
                Ok(())
            }
            Happened::ToolsEnded(all) => {
                for ended in all {
                    self.end_outside(tx, turn, ended).await?;
                }
                Ok(())
            }
            Happened::Failed { service, reason } => {
                self.record(tx, turn, Record::Failed { reason: reason.clone() }).await?;
                closing::fail(tx, &self.snapshot, &self.conversation, &self.open, &service, &reason).await
            }
            Happened::Limited(reached) => self.stop_at_limit(tx, turn, &reached).await,
        }
    }

    async fn store(&self, tx: &mut Tx, stored: Vec<Prepared>) -> Result<(), Error> {
        for prepared in stored {
            tools::store(tx, &self.conversation, prepared).await?;
        }
        Ok(())
    }

    /// Does one step that needs only the database.
    async fn step(&self, tx: &mut Tx, turn: &mut Turn, step: &Step) -> Result<Go, Error> {
        match step {
            Step::CallModel(_) | Step::Await(_) | Step::Ended => Ok(Go::Stop),
            Step::RunTool(call) if turn.refused(call).is_some() => {
                let result = turn.refused(call).cloned().unwrap_or_default();
                let code = result["error"].as_str().unwrap_or_default().to_owned();
                self.finish_call(tx, turn, call, ToolResult::Json(result), Course::of_society(Some(&code)))
                    .await?;
                Ok(Go::On)
            }
            Step::RunTool(call) if outside_tool(&self.handles, call).is_some() => Ok(Go::Stop),
            Step::RunTool(call) => {
                let (asker, readiness) = (&self.conversation, self.readiness(call));
                let connection = &mut tx.connection;
                match early::rule(connection, &self.snapshot, asker, turn, call, readiness).await? {
                    // For example, the call was not allowed before this transaction. The driver prepares it now.
                    Ruling::Allow if readiness == Readiness::NotReady => return Ok(Go::Stop),
                    Ruling::Allow => self.run_society_tool(tx, turn, call).await?,
                    Ruling::Refuse(refusal) => self.refuse(tx, turn, call, &refusal).await?,
                    Ruling::Ask(asking) => {
                        let record =
                            approvals::ask(tx, &self.snapshot, asker, self.open.id, call, asking, None)
                                .await?;
                        turn.apply(&record);
                    }
                }
                Ok(Go::On)
            }
            Step::RecordInterruption(call) => {
                let arguments = arguments(call).cloned().unwrap_or_default();
                let after_crash = outside_tool(&self.handles, call).map(|tool| tool.after_crash(&arguments));
                if matches!(after_crash, Some(AfterCrash::Repeat | AfterCrash::Verify)) {
                    return Ok(Go::Stop);
                }
                self.refuse(tx, turn, call, &Refusal::OutcomeUnknown { tool: call.name.clone() }).await?;
                Ok(Go::On)
            }
            Step::RefuseTool(call, why) => {
                let value = self.snapshot.settings.limits.max_tool_rounds;
                let refusal = match why.clone() {
                    WhyRefused::TooManyRounds => Refusal::LimitReached { limit: "maxToolRounds", value },
                    WhyRefused::Denied { reason } => {
                        Refusal::ApprovalDenied { tool: call.name.clone(), reason }
                    }
                    WhyRefused::Expired => Refusal::ApprovalExpired { tool: call.name.clone() },
                };
                self.refuse(tx, turn, call, &refusal).await?;
                Ok(Go::On)
            }
            Step::Notice(notice) => {
                if let Notice::SumUp { limit } = notice {
                    let value = Number::from(*limit);
                    self.note_limit(tx, &Reached { limit: "maxToolRounds", value }).await?;
                }
                self.record(tx, turn, Record::Noticed { notice: notice.clone() }).await?;
                Ok(Go::On)
            }
            Step::Finish(text) => {
                // Look for hired agents only if the turn has made calls. Without calls, it has hired nobody.
                if turn.rounds() > 0 && turn.reminded() == Reminded::No {
                    let unwritten =
                        agents::unwritten_children(&mut tx.connection, &self.conversation, self.open.id)
                            .await?;
                    if !unwritten.is_empty() {
                        let notice = Notice::UnwrittenChildren { agents: unwritten };
                        self.record(tx, turn, Record::Noticed { notice }).await?;
                        return Ok(Go::On);
                    }
                }
                let last = LastText { text: text.as_deref(), heard: turn.heard(), misfit: turn.misfit() };
                match closing::finish(tx, &self.handles, &self.snapshot, &self.conversation, &self.open, last)
                    .await?
                {
                    Finished::Ended => self.end_task(tx).await,
                    Finished::Returned(errors) => {
                        let notice = Notice::ResultDoesNotFit { errors };
                        self.record(tx, turn, Record::Noticed { notice }).await?;
                        Ok(Go::On)
                    }
                }
            }
            Step::Fail(reason) => {
                self.record(tx, turn, Record::Failed { reason: reason.clone() }).await?;
                let service = service_of(tx, &self.snapshot, &self.conversation).await?.id.clone();
                closing::fail(tx, &self.snapshot, &self.conversation, &self.open, &service, reason).await?;
                Ok(Go::On)
            }
        }
    }

    /// Ends the task together with the turn that has just ended, if nothing is left to do in the task. If something may
    /// be left, the supervisor checks the task when the driver has ended.
    async fn end_task(&self, tx: &mut Tx) -> Result<Go, Error> {
        let Conversation { agent, task } = &self.conversation;
        if !agent.is_root() {
            return Ok(Go::Ended);
        }
        let standing = tasks::standing(&mut tx.connection, task).await?;
        let background = crate::commands::background(&self.handles, task);
        match standing.filter(|standing| ends_with_turn(standing, background)) {
            Some(standing) => {
                let worked = self.handles.budgets.worked(task);
                rest::end_task(tx, &self.snapshot, task, standing, worked).await?;
                Ok(Go::TaskEnded)
            }
            None => Ok(Go::Ended),
        }
    }

    /// Returns whether everything is prepared for a call of a society tool.
    fn readiness(&self, call: &ToolCall) -> Readiness {
        let is_ready = self.ready.contains(&call.id) || early::preparation(call, &self.snapshot).is_none();
        if is_ready { Readiness::Ready } else { Readiness::NotReady }
    }

    async fn run_society_tool(&self, tx: &mut Tx, turn: &mut Turn, call: &ToolCall) -> Result<(), Error> {
        let done = if tools::is_society_tool(&call.name) {
            let context = Context {
                caller: &self.conversation,
                last_word: closing::last_word(&self.open),
                misfit: turn.misfit(),
                snapshot: &self.snapshot,
                no_worktree: self.no_worktree.clone(),
                prepared: &self.prepared,
            };
            tools::run(tx, &context, call).await?
        } else {
            tools::Done::refused(&tools::unknown(&call.name, &self.handles.hands), &self.snapshot)
        };
        let word = turn.called_as(call).map(|word| format!("{word} → {}", call.name));
        let done = done.noting(word.into_iter().collect());
        polity_points::point!("advance::tool_done");
        if let Some(record) = done.record {
            self.record(tx, turn, record).await?;
        }
        self.finish_call(tx, turn, call, done.result, Course::of_society(done.refused)).await
    }

    /// Records that a call of an outside tool has ended, and writes the rows of the artifacts that the tool made.
    async fn end_outside(&self, tx: &mut Tx, turn: &mut Turn, ended: Ended) -> Result<(), Error> {
        let Ended { call, reaches, result, refused, stored, made, duration, head, goes_on } = ended;
        if let Some(command) = goes_on {
            commands::started(tx, &self.conversation, &command, self.open.works_on.as_ref()).await?;
        }
        // Record the sources of this call before its artifacts are stored. An artifact gets all sources that its owner
        // has seen up to then.
        approvals::note_seen(tx, &self.conversation, &call, &reaches, refused, &result).await?;
        // Store these artifacts in a way that does not tell the asker about them. They are material for the agent's
        // work, and not its result.
        self.store(tx, stored).await?;
        if let Some(made) = made {
            tools::make(tx, &self.conversation, made).await?;
        }
        let course = Course { refused, duration: Some(duration), head: Some(head) };
        self.write_end(tx, turn, &call, result, course).await
    }

    async fn refuse(
        &self,
        tx: &mut Tx,
        turn: &mut Turn,
        call: &ToolCall,
        refusal: &Refusal,
    ) -> Result<(), Error> {
        let mut done = tools::Done::refused(refusal, &self.snapshot);
        let unknown = match refusal {
            Refusal::OutcomeUnknown { .. } => None,
            _ => unknown_outcome(&self.handles, &self.snapshot, turn, call),
        };
        if let (ToolResult::Json(told), Some(unknown)) = (&mut done.result, unknown) {
            told[UNKNOWN_OUTCOME] = json!(unknown);
        }
        self.finish_call(tx, turn, call, done.result, Course::of_society(done.refused)).await
    }

    /// Records that a call of a society tool has ended, or that a call was refused.
    async fn finish_call(
        &self,
        tx: &mut Tx,
        turn: &mut Turn,
        call: &ToolCall,
        result: ToolResult,
        course: Course<'_>,
    ) -> Result<(), Error> {
        approvals::note_seen(tx, &self.conversation, call, &[], course.refused, &result).await?;
        self.write_end(tx, turn, call, result, course).await
    }

    async fn write_end(
        &self,
        tx: &mut Tx,
        turn: &mut Turn,
        call: &ToolCall,
        result: ToolResult,
        course: Course<'_>,
    ) -> Result<(), Error> {
        let event = Event::ToolCalled {
            task: self.conversation.task.clone(),
            agent: self.conversation.agent.clone(),
            tool: call.name.clone(),
            call: Some(CallId::new(call.id.clone())),
            error: course.refused.map(str::to_owned),
            duration_ms: course
                .duration
                .map(|duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)),
            head: course.head,
        };
        events::append(tx, &event).await?;
        let result = self.bounded(tx, call, result).await?;
        self.record(tx, turn, turn::finished(call, result)).await
    }

    /// If a result is too long for a model, stores it as an artifact. The model then gets the beginning of the text and
    /// the reference of the artifact. The file is written while the transaction is open. This delays other writes to
    /// the database by a few milliseconds, but such long results are rare.
    async fn bounded(&self, tx: &mut Tx, call: &ToolCall, result: ToolResult) -> Result<ToolResult, Error> {
        let (text, extension, mime_type) = match &result {
            ToolResult::Json(value) | ToolResult::Outside { content: Content::Json(value), .. } => {
                (json_line(value), "json", "application/json")
            }
            ToolResult::Outside { content: Content::Text { text, .. }, .. } => {
                (text.clone(), "txt", "text/plain")
            }
            ToolResult::Artifact { .. } => return Ok(result),
        };
        let service = service_of(tx, &self.snapshot, &self.conversation).await?;
        let limits = room::within(&self.snapshot.settings.limits, &service);
        let limit = usize::try_from(limits.tool_result_chars).unwrap_or(usize::MAX);
        let characters = text.chars().count();
        if characters <= limit {
            return Ok(result);
        }
        let artifact = NewArtifact {
            bytes: text.clone().into(),
            declared_mime: Some(mime_type.to_owned()),
            filename: Some(format!("{}.{extension}", call.name)),
            label: Some("tool_result".to_owned()),
            ..NewArtifact::default()
        };
        let prepared = put_on_disk(&self.handles, mint::artifact(), artifact).await?;
        let reference = prepared.artifact.id.reference();
        tools::store(tx, &self.conversation, prepared).await?;
        // Escapes in JSON make a text longer, but the number of added characters is not known in advance. So the loop
        // halves the shown beginning of the text until the result fits.
        let mut shown_characters = limit;
        loop {
            let beginning: String = text.chars().take(shown_characters).collect();
            let mut shown = json!({"ref": reference, "characters": characters, "beginning": beginning});
            if let ToolResult::Outside { content: Content::Text { origin, .. }, .. } = &result {
                shown["origin"] = json!(origin);
            }
            if shown_characters == 0 || json_line(&shown).chars().count() <= limit {
                return Ok(match result {
                    ToolResult::Outside { artifacts, sources, .. } => {
                        ToolResult::Outside { content: Content::Json(shown), artifacts, sources }
                    }
                    ToolResult::Json(_) | ToolResult::Artifact { .. } => ToolResult::Json(shown),
                });
            }
            shown_characters /= 2;
        }
    }

    async fn record(&self, tx: &mut Tx, turn: &mut Turn, record: Record) -> Result<(), Error> {
        records::append(tx, &self.conversation, self.open.id, &record).await?;
        turn.apply(&record);
        Ok(())
    }

    async fn note_limit(&self, tx: &mut Tx, reached: &Reached) -> Result<(), Error> {
        let event = Event::LimitReached {
            task: self.conversation.task.clone(),
            agent: self.conversation.agent.clone(),
            limit: reached.limit.to_owned(),
            value: reached.value.clone(),
        };
        events::append(tx, &event).await
    }

    /// Ends the turn, because the task has reached a limit and may call no more models. Only the first such turn of a
    /// task tells the person about the limit.
    async fn stop_at_limit(&self, tx: &mut Tx, turn: &mut Turn, reached: &Reached) -> Result<(), Error> {
        let Reached { limit, value } = reached;
        let reason = format!("limit_reached: {limit} = {value}");
        self.record(tx, turn, Record::Stopped { reason: reason.clone() }).await?;
        messages::settle(tx, self.open.id, Settled::Failed).await?;
        turns::end(tx, self.open.id, turns::Ended::Stopped).await?;
        rest::after_waits(tx, &self.snapshot).await?;
        closing::note_end(tx, &self.conversation, Some(reason)).await?;
        if tasks::stop(tx, &self.conversation.task, limit).await? {
            self.note_limit(tx, reached).await?;
            closing::tell_limit(tx, &self.snapshot, &self.conversation, reached).await?;
        }
        Ok(())
    }
}
