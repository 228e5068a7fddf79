//! Drives the turns of one conversation: asks what is next, does it, writes down what happened, feeds that back.
//!
//! All that a step changes is one transaction with the record that caused it, so a crash leaves either all of it or
//! nothing, and dropping the driver anywhere is safe.

mod closing;

use crate::ask::{Answer, Asked, Round, ask};
use crate::event::Event;
use crate::handles::Handles;
use crate::mint;
use crate::record::{Record, Replied, ToolResult};
use crate::store::messages::{self, Settled};
use crate::store::turns::{self, OpenTurn};
use crate::store::{Conversation, Error, Tx, agents, events, records, tasks, usage};
use crate::tools::outside::{Invocation, OutsideTool, Repeat};
use crate::tools::{self, Context, Incoming};
use crate::turn::{self, Reminded, Step, Turn};
use polity_artifacts::{NewArtifact, Prepared, prepare};
use polity_llm::{Arguments, ToolCall};
use polity_registry::Snapshot;
use polity_society::agent::Standing;
use polity_society::id::{CallId, ServiceId};
use polity_society::message::Expects;
use polity_society::notice::Notice;
use polity_society::refusal::Refusal;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// Works until nothing is left to do in a conversation. Beginning and resuming are the same call.
pub(crate) async fn run(handles: &Arc<Handles>, conversation: &Conversation) -> Result<(), Error> {
    while let Some((open, turn)) = take_up(handles, conversation).await? {
        drive(handles, conversation, &open, turn).await?;
    }
    Ok(())
}

/// The turn that goes on, or a new one for the message that has waited longest.
async fn take_up(handles: &Handles, conversation: &Conversation) -> Result<Option<(OpenTurn, Turn)>, Error> {
    let mut reader = handles.store.reader().await?;
    let mut open = turns::open(&mut reader, conversation).await?;
    if open.is_none() && messages::any_queued(&mut reader, conversation).await? {
        let conversation = conversation.clone();
        open = handles
            .store
            .write(move |tx| Box::pin(async move { begin(tx, &conversation).await }))
            .await?;
    }
    let Some(open) = open else { return Ok(None) };
    let expects = messages::get(&mut reader, &open.began_by)
        .await?
        .map_or(Expects::Nothing, |began| began.expects);
    let records = records::of_turn(&mut reader, open.id).await?;
    Ok(Some((open, Turn::replay(expects, &records))))
}

async fn begin(tx: &mut Tx, conversation: &Conversation) -> Result<Option<OpenTurn>, Error> {
    let agent = agents::get(&mut tx.connection, &conversation.agent).await?;
    if agent.is_none_or(|agent| agent.standing == Standing::Ended) {
        return Ok(None);
    }
    let Some(message) = messages::first_queued(&mut tx.connection, conversation).await? else {
        return Ok(None);
    };
    let open = turns::begin(tx, conversation, &message.id).await?;
    messages::take(tx, &message.id, open.id).await?;
    records::append(
        tx,
        conversation,
        open.id,
        &Record::Heard {
            message: message.id.clone(),
        },
    )
    .await?;
    let event = Event::TurnStarted {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        message: message.id,
    };
    events::append(tx, &event).await?;
    Ok(Some(open))
}

async fn drive(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    open: &OpenTurn,
    mut turn: Turn,
) -> Result<(), Error> {
    let mut happened = Happened::Nothing;
    loop {
        let (advanced, step) = advance(handles, conversation, open, turn, happened).await?;
        turn = advanced;
        happened = match step {
            Step::Ended => return Ok(()),
            Step::CallModel(tools) => {
                take_in(handles, conversation, open, &mut turn).await?;
                call_model(
                    handles,
                    conversation,
                    Round {
                        turn: open.id,
                        number: turn.rounds(),
                        tools,
                    },
                )
                .await?
            }
            Step::RunTool(call) => {
                run_outside(handles, conversation, open, &mut turn, &call, First::Yes).await?
            }
            // Only a call that may be repeated comes out of a transaction like this.
            Step::RecordInterruption(call) => {
                run_outside(handles, conversation, open, &mut turn, &call, First::No).await?
            }
            // Cannot happen: `advance` does these itself, and goes on until it meets one of those above.
            Step::RefuseTool(_) | Step::Notice(_) | Step::Finish(_) | Step::Fail(_) => Happened::Nothing,
        };
    }
}

/// Takes what has come meanwhile into the turn. Moved, never copied.
async fn take_in(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: &mut Turn,
) -> Result<(), Error> {
    let mut reader = handles.store.reader().await?;
    if !messages::any_queued(&mut reader, conversation).await? {
        return Ok(());
    }
    drop(reader);
    let (owner, id) = (conversation.clone(), open.id);
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            let mut heard = Vec::new();
            for message in messages::take_all(tx, &owner, id).await? {
                let record = Record::Heard { message };
                records::append(tx, &owner, id, &record).await?;
                heard.push(record);
            }
            Ok(heard)
        })
    });
    for record in write.await? {
        turn.apply(&record);
    }
    Ok(())
}

/// What happened since the last transaction.
enum Happened {
    /// Nothing: the turn was just taken up.
    Nothing,
    /// The model answered.
    Replied {
        replied: Replied,
        event: Event,
        served: usage::Served,
        stored: Vec<Prepared>,
    },
    /// A tool that reaches outside came to its end.
    ToolEnded {
        call: ToolCall,
        result: ToolResult,
        refused: Option<&'static str>,
    },
    /// The model gave no answer, for good.
    Failed { service: ServiceId, reason: String },
    /// A limit of the task was reached.
    Limited { limit: &'static str, value: u64 },
}

async fn call_model(handles: &Handles, conversation: &Conversation, round: Round) -> Result<Happened, Error> {
    let Answer {
        mut replied,
        served,
        shown,
    } = match ask(handles, conversation, round).await? {
        Asked::Answered(answer) => *answer,
        Asked::Failed { service, reason } => return Ok(Happened::Failed { service, reason }),
        Asked::Limited { limit, value } => return Ok(Happened::Limited { limit, value }),
    };
    let snapshot = handles.registry.current();
    let stored = take_bytes_out(handles, &snapshot, &mut replied.calls).await?;
    let event = Event::ModelAnswered {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        service: served.service.clone(),
        model: served.model.clone(),
        revision: served.revision,
        usage: served.usage,
        attempts: served.attempts,
        content: shown,
    };
    Ok(Happened::Replied {
        replied,
        event,
        served,
        stored,
    })
}

/// Bytes that a model passes in a call are stored, and a reference takes their place before anything is recorded.
async fn take_bytes_out(
    handles: &Handles,
    snapshot: &Snapshot,
    calls: &mut [ToolCall],
) -> Result<Vec<Prepared>, Error> {
    let mut stored = Vec::new();
    for call in calls {
        let Some(Ok(Incoming::Bytes(artifact))) = tools::incoming(call, &snapshot.settings.limits) else {
            continue;
        };
        let prepared = put_on_disk(handles, artifact).await?;
        if let Arguments::Object(arguments) = &mut call.arguments {
            arguments.insert(
                "content".to_owned(),
                Value::String(prepared.artifact.id.reference()),
            );
            arguments.remove("encoding");
        }
        stored.push(prepared);
    }
    Ok(stored)
}

async fn put_on_disk(handles: &Handles, artifact: NewArtifact) -> Result<Prepared, Error> {
    let prepared = prepare(&handles.blobs, artifact, mint::artifact(), crate::clock::now()).await;
    prepared.map_err(Error::Blob)
}

/// Puts on disk what the next society tools of the turn want stored, so that their transaction has only rows to write.
async fn prepare_pending(
    handles: &Handles,
    snapshot: &Snapshot,
    turn: &Turn,
) -> Result<HashMap<String, Result<Prepared, Refusal>>, Error> {
    let mut prepared = HashMap::new();
    for call in turn
        .pending()
        .take_while(|call| outside_tool(handles, call).is_none())
    {
        match tools::incoming(call, &snapshot.settings.limits) {
            Some(Ok(Incoming::Text(artifact) | Incoming::Bytes(artifact))) => {
                prepared.insert(call.id.clone(), Ok(put_on_disk(handles, artifact).await?));
            }
            Some(Err(refusal)) => {
                prepared.insert(call.id.clone(), Err(refusal));
            }
            Some(Ok(Incoming::Reference)) | None => {}
        }
    }
    Ok(prepared)
}

fn outside_tool<'h>(handles: &'h Handles, call: &ToolCall) -> Option<&'h OutsideTool> {
    handles
        .outside
        .iter()
        .find(|outside| outside.tool.name == call.name)
}

/// One transaction: what happened, and all that follows from it without asking anybody.
async fn advance(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: Turn,
    happened: Happened,
) -> Result<(Turn, Step), Error> {
    let snapshot = handles.registry.current();
    let mut ahead = turn.clone();
    if let Happened::Replied { replied, .. } = &happened {
        ahead.apply(&Record::Replied(replied.clone()));
    }
    let max_rounds = snapshot.settings.limits.max_tool_rounds;
    if matches!(
        (&happened, ahead.next(max_rounds)),
        (Happened::Nothing, Step::CallModel(_))
    ) {
        return Ok((turn, ahead.next(max_rounds)));
    }
    let prepared = prepare_pending(handles, &snapshot, &ahead).await?;
    let advance = Advance {
        handles: Arc::clone(handles),
        conversation: conversation.clone(),
        open: open.clone(),
        snapshot,
        prepared,
    };
    handles
        .store
        .write(move |tx| Box::pin(async move { advance.run(tx, turn, happened).await }))
        .await
}

/// What a transaction of a turn works with.
struct Advance {
    handles: Arc<Handles>,
    conversation: Conversation,
    open: OpenTurn,
    snapshot: Arc<Snapshot>,
    prepared: HashMap<String, Result<Prepared, Refusal>>,
}

/// Whether the transaction goes on with the next step.
enum Go {
    On,
    Stop,
}

impl Advance {
    async fn run(self, tx: &mut Tx, mut turn: Turn, happened: Happened) -> Result<(Turn, Step), Error> {
        // The agent may have been ended while its model was thinking.
        if turns::open(&mut tx.connection, &self.conversation)
            .await?
            .as_ref()
            != Some(&self.open)
        {
            return Ok((turn, Step::Ended));
        }
        self.take_down(tx, &mut turn, happened).await?;
        loop {
            let step = turn.next(self.snapshot.settings.limits.max_tool_rounds);
            if let Go::Stop = self.step(tx, &mut turn, &step).await? {
                return Ok((turn, step));
            }
        }
    }

    async fn take_down(&self, tx: &mut Tx, turn: &mut Turn, happened: Happened) -> Result<(), Error> {
        match happened {
            Happened::Nothing => Ok(()),
            Happened::Replied {
                replied,
                event,
                served,
                stored,
            } => {
                usage::insert(tx, &self.conversation, self.open.id, &served).await?;
                events::append(tx, &event).await?;
                for prepared in stored {
                    tools::store(tx, &self.conversation, prepared).await?;
                }
                self.record(tx, turn, Record::Replied(replied)).await
            }
            Happened::ToolEnded {
                call,
                result,
                refused,
            } => self.finish_call(tx, turn, &call, result, refused).await,
            Happened::Failed { service, reason } => {
                self.record(
                    tx,
                    turn,
                    Record::Failed {
                        reason: reason.clone(),
                    },
                )
                .await?;
                closing::fail(
                    tx,
                    &self.snapshot,
                    &self.conversation,
                    &self.open,
                    &service,
                    &reason,
                )
                .await
            }
            Happened::Limited { limit, value } => self.stop_at_limit(tx, turn, limit, value).await,
        }
    }

    /// Does one step that needs nobody outside the database.
    async fn step(&self, tx: &mut Tx, turn: &mut Turn, step: &Step) -> Result<Go, Error> {
        match step {
            Step::CallModel(_) | Step::Ended => Ok(Go::Stop),
            Step::RunTool(call) if outside_tool(&self.handles, call).is_some() => Ok(Go::Stop),
            Step::RunTool(call) => {
                self.run_society_tool(tx, turn, call).await?;
                Ok(Go::On)
            }
            Step::RecordInterruption(call) => {
                if outside_tool(&self.handles, call).is_some_and(|outside| outside.repeat == Repeat::Safe) {
                    return Ok(Go::Stop);
                }
                self.refuse(
                    tx,
                    turn,
                    call,
                    &Refusal::OutcomeUnknown {
                        tool: call.name.clone(),
                    },
                )
                .await?;
                Ok(Go::On)
            }
            Step::RefuseTool(call) => {
                let value = self.snapshot.settings.limits.max_tool_rounds;
                self.refuse(
                    tx,
                    turn,
                    call,
                    &Refusal::LimitReached {
                        limit: "maxToolRounds",
                        value,
                    },
                )
                .await?;
                Ok(Go::On)
            }
            Step::Notice(notice) => {
                if let Notice::SumUp { limit } = notice {
                    self.note_limit(tx, "maxToolRounds", *limit).await?;
                }
                self.record(
                    tx,
                    turn,
                    Record::Noticed {
                        notice: notice.clone(),
                    },
                )
                .await?;
                Ok(Go::On)
            }
            Step::Finish(text) => {
                if turn.reminded() == Reminded::No {
                    let unwritten =
                        agents::unwritten_children(&mut tx.connection, &self.conversation, self.open.id)
                            .await?;
                    if !unwritten.is_empty() {
                        let notice = Notice::UnwrittenChildren { agents: unwritten };
                        self.record(tx, turn, Record::Noticed { notice }).await?;
                        return Ok(Go::On);
                    }
                }
                closing::finish(
                    tx,
                    &self.snapshot,
                    &self.conversation,
                    &self.open,
                    text.as_deref(),
                    turn.heard(),
                )
                .await?;
                Ok(Go::Stop)
            }
            Step::Fail(reason) => {
                self.record(
                    tx,
                    turn,
                    Record::Failed {
                        reason: reason.clone(),
                    },
                )
                .await?;
                let service = self.service(tx).await?;
                closing::fail(
                    tx,
                    &self.snapshot,
                    &self.conversation,
                    &self.open,
                    &service,
                    reason,
                )
                .await?;
                Ok(Go::On)
            }
        }
    }

    async fn service(&self, tx: &mut Tx) -> Result<ServiceId, Error> {
        let agent = agents::get(&mut tx.connection, &self.conversation.agent).await?;
        let wanted = match agent.and_then(|agent| agent.service) {
            Some(service) => Some(service),
            None => tasks::service(&mut tx.connection, &self.conversation.task).await?,
        };
        Ok(
            crate::door::service_for(&self.snapshot.catalogue, wanted.as_ref())
                .id
                .clone(),
        )
    }

    async fn run_society_tool(&self, tx: &mut Tx, turn: &mut Turn, call: &ToolCall) -> Result<(), Error> {
        let done = if tools::is_society_tool(&call.name) {
            let context = Context {
                caller: &self.conversation,
                snapshot: &self.snapshot,
                prepared: &self.prepared,
            };
            tools::run(tx, &context, call).await?
        } else {
            tools::Done::refused(&tools::unknown(&call.name), &self.snapshot)
        };
        if let Some(record) = done.record {
            self.record(tx, turn, record).await?;
        }
        self.finish_call(tx, turn, call, done.result, done.refused).await
    }

    async fn refuse(
        &self,
        tx: &mut Tx,
        turn: &mut Turn,
        call: &ToolCall,
        refusal: &Refusal,
    ) -> Result<(), Error> {
        let done = tools::Done::refused(refusal, &self.snapshot);
        self.finish_call(tx, turn, call, done.result, done.refused).await
    }

    async fn finish_call(
        &self,
        tx: &mut Tx,
        turn: &mut Turn,
        call: &ToolCall,
        result: ToolResult,
        refused: Option<&'static str>,
    ) -> Result<(), Error> {
        let event = Event::ToolCalled {
            task: self.conversation.task.clone(),
            agent: self.conversation.agent.clone(),
            tool: call.name.clone(),
            error: refused.map(str::to_owned),
        };
        events::append(tx, &event).await?;
        self.record(tx, turn, turn::finished(call, result)).await
    }

    async fn record(&self, tx: &mut Tx, turn: &mut Turn, record: Record) -> Result<(), Error> {
        records::append(tx, &self.conversation, self.open.id, &record).await?;
        turn.apply(&record);
        Ok(())
    }

    async fn note_limit(&self, tx: &mut Tx, limit: &str, value: u64) -> Result<(), Error> {
        let event = Event::LimitReached {
            task: self.conversation.task.clone(),
            agent: self.conversation.agent.clone(),
            limit: limit.to_owned(),
            value,
        };
        events::append(tx, &event).await
    }

    /// The task may call no more models: the turn ends here, and the person is told once.
    async fn stop_at_limit(
        &self,
        tx: &mut Tx,
        turn: &mut Turn,
        limit: &str,
        value: u64,
    ) -> Result<(), Error> {
        let reason = format!("limit_reached: {limit} = {value}");
        self.record(
            tx,
            turn,
            Record::Stopped {
                reason: reason.clone(),
            },
        )
        .await?;
        messages::settle(tx, self.open.id, Settled::Failed).await?;
        turns::end(tx, self.open.id, turns::Ended::Stopped).await?;
        closing::note_end(tx, &self.conversation, Some(reason)).await?;
        if tasks::stop(tx, &self.conversation.task, limit).await? {
            self.note_limit(tx, limit, value).await?;
            closing::tell_limit(tx, &self.snapshot, &self.conversation, limit, value).await?;
        }
        Ok(())
    }
}

/// Whether a tool is run for the first time, as far as is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum First {
    Yes,
    No,
}

/// Runs a tool that leaves traces outside: that it starts is committed before it runs.
async fn run_outside(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: &mut Turn,
    call: &ToolCall,
    first: First,
) -> Result<Happened, Error> {
    let Some(outside) = outside_tool(handles, call) else {
        return Err(Error::Damaged {
            table: "records",
            what: format!("tool {} has gone", call.name),
        });
    };
    if first == First::Yes {
        let started = Record::ToolStarted {
            call: CallId::new(call.id.clone()),
        };
        let (owner, id, record) = (conversation.clone(), open.id, started.clone());
        let write = handles
            .store
            .write(move |tx| Box::pin(async move { records::append(tx, &owner, id, &record).await }));
        write.await?;
        turn.apply(&started);
    }
    let snapshot = handles.registry.current();
    let tool = call.name.clone();
    let done = match &call.arguments {
        Arguments::Object(arguments) => {
            let idempotency_key = format!("{}-{}", open.id, call.id);
            let invocation = Invocation {
                arguments: arguments.clone(),
                idempotency_key,
            };
            match (outside.run)(invocation).await {
                Ok(value) => Ok(value),
                Err(reason) => Err(Refusal::ToolFailed { tool, reason }),
            }
        }
        Arguments::Malformed(text) => Err(Refusal::ToolFailed {
            tool,
            reason: format!("the arguments are not a JSON object: {text}"),
        }),
    };
    let (result, refused) = match done {
        Ok(value) => (ToolResult::Json(value), None),
        Err(refusal) => {
            let done = tools::Done::refused(&refusal, &snapshot);
            (done.result, done.refused)
        }
    };
    Ok(Happened::ToolEnded {
        call: call.clone(),
        result,
        refused,
    })
}

/// Ends a turn that cannot be driven: its driver failed again and again for a reason of ours.
pub(crate) async fn abandon(
    handles: &Handles,
    conversation: &Conversation,
    reason: String,
) -> Result<(), Error> {
    let snapshot = handles.registry.current();
    let conversation = conversation.clone();
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            let Some(open) = turns::open(&mut tx.connection, &conversation).await? else {
                return Ok(());
            };
            records::append(
                tx,
                &conversation,
                open.id,
                &Record::Failed {
                    reason: reason.clone(),
                },
            )
            .await?;
            let service = snapshot.catalogue.default_service().id.clone();
            closing::fail(tx, &snapshot, &conversation, &open, &service, &reason).await
        })
    });
    write.await
}
