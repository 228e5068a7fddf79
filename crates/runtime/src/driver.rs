//! Drives the turns of one conversation: asks the turn for its next step, carries the step out, writes what happened
//! as a record, and applies the record to the turn.
//!
//! Everything that a step changes is written in one transaction, together with the record that caused the change. So
//! after a crash, the database contains either all changes of a step or none of them. For the same reason, a driver may
//! be dropped at any point.

mod advance;
mod bytes;
mod call;
pub(crate) mod closing;
mod compaction;
mod early;
mod outside;

use crate::ask::{Answer, Asked, Round, ask};
use crate::handles::Handles;
use advance::{Happened, advance};
use bytes::take_bytes_out;
use compaction::compact;
use outside::{outside_tool, run_outside, settle};
use polity_decide::intake::{self, Intake};
use polity_decide::policy::Tried;
use polity_decide::room;
use polity_decide::turn::{Step, Turn};
use polity_registry::{Service, Snapshot};
use polity_society::agent::Standing;
use polity_society::id::{TaskId, TurnId};
use polity_society::message::Expects;
use polity_society::rules;
use polity_store::record::Record;
use polity_store::turns::{self, MayGoOn, OpenTurn, ToDo};
use polity_store::{Conversation, Error, Tx, agents, events, holds, messages, records, tasks, usage};
use polity_view::Event;
use polity_view::in_full;
use std::sync::Arc;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// The first pause before the driver repeats a write that the disk refused. The pause doubles up to `LONGEST_PAUSE`.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(25);

/// Runs the turns of a conversation until nothing is left to do, or until the driver is halted.
/// A halted driver abandons the model call or tool that it waits for, but finishes a write.
/// This function both begins new turns and resumes interrupted turns.
pub(crate) async fn run(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    halt: &CancellationToken,
) -> Result<(), Error> {
    let _working = handles.budgets.work(&handles.store, &conversation.task).await?;
    while !halt.is_cancelled() {
        let Some((open, turn)) = take_up(handles, conversation).await? else { break };
        drive(handles, conversation, &open, turn, halt).await?;
    }
    if halt.is_cancelled() || handles.draining.is_cancelled() {
        // The halt may have interrupted a wait for a model's answer. This wait counts as working time, even though the
        // answer did not come.
        note_time(handles, &conversation.task).await?;
    }
    Ok(())
}

/// Writes how long agents have worked for a task.
async fn note_time(handles: &Handles, task: &TaskId) -> Result<(), Error> {
    let Some(worked) = handles.budgets.worked(task) else { return Ok(()) };
    let task = task.clone();
    let write =
        handles.store.write(move |tx| Box::pin(async move { tasks::set_worked(tx, &task, worked).await }));
    write.await
}

/// Returns the open turn, or begins a turn for the message that has waited longest.
async fn take_up(handles: &Handles, conversation: &Conversation) -> Result<Option<(OpenTurn, Turn)>, Error> {
    if handles.draining.is_cancelled() {
        return Ok(None);
    }
    let mut reader = handles.store.reader().await?;
    let begun = match turns::to_do(&mut reader, conversation).await? {
        ToDo::Turn(open) => {
            let began = messages::get(&mut reader, &open.began_by).await?;
            let expects = began.map_or(Expects::Nothing, |began| began.expects);
            let records = records::of_turn(&mut reader, open.id).await?;
            Some(Begun { open, expects, records })
        }
        ToDo::Held | ToDo::Nothing => None,
        ToDo::Mail => {
            let (conversation, snapshot) = (conversation.clone(), handles.registry.current());
            // Give the connection back now, so that others can use it while this driver waits for the write below.
            drop(reader);
            let begin = handles
                .store
                .write(move |tx| Box::pin(async move { begin(tx, &snapshot, &conversation).await }));
            begin.await?
        }
    };
    let Some(Begun { open, expects, records }) = begun else { return Ok(None) };
    polity_points::point!("driver::taken_up");
    let turn = Turn::replay(expects, &records);
    let waits = matches!(turn.next(u64::MAX), Step::Await(_));
    Ok((!waits).then_some((open, turn)))
}

/// A turn that has begun, with the facts from which the driver replays it.
struct Begun {
    open: OpenTurn,
    /// What the message that began the turn expects.
    expects: Expects,
    records: Vec<Record>,
}

async fn begin(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
) -> Result<Option<Begun>, Error> {
    let agent = agents::in_task(&mut tx.connection, conversation).await?;
    let Some(agent) = agent.filter(|agent| agent.standing != Standing::Ended) else { return Ok(None) };
    let Some(message) = messages::next_for_turn(&mut tx.connection, conversation).await? else {
        return Ok(None);
    };
    let subjects = messages::requests(&mut tx.connection, rules::subjects(&message)).await?;
    let works_on = rules::works_on(&message, &subjects);
    let open = turns::begin(tx, conversation, &message.id, works_on).await?;
    messages::take(tx, &message.id, open.id).await?;
    let heard = Record::Heard { message: message.id.clone() };
    records::append(tx, conversation, open.id, &heard).await?;
    let service = snapshot.catalogue.service_for(agent.service.as_ref());
    let status = note_status(tx, service, conversation, open.id).await?;
    let event = Event::TurnStarted {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        message: message.id,
    };
    events::append(tx, &event).await?;
    let records = std::iter::once(heard).chain(status).collect();
    Ok(Some(Begun { open, expects: message.expects, records }))
}

async fn drive(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    open: &OpenTurn,
    mut turn: Turn,
    halt: &CancellationToken,
) -> Result<(), Error> {
    let mut happened = Happened::Nothing;
    polity_points::point!("driver::replayed");
    loop {
        let (advanced, step) = write_down(handles, conversation, open, turn, happened, halt).await?;
        polity_points::point!("driver::written");
        turn = advanced;
        // Stop driving the turn here. The next driver continues the turn at this point.
        if handles.draining.is_cancelled() || halt.is_cancelled() {
            return settle_if_stopped(handles, conversation, open, &turn).await;
        }
        happened = match step {
            // If a turn waits for the person's answer, the driver ends. The answer starts a new driver.
            Step::Ended | Step::Await(_) => {
                return settle_if_stopped(handles, conversation, open, &turn).await;
            }
            // A call of a society tool was not ready. The next `advance` prepares it.
            Step::RunTool(call) if outside_tool(handles, &call).is_none() => Happened::Nothing,
            Step::CallModel(tools) => {
                take_in(handles, conversation, open, &mut turn).await?;
                polity_points::point!("driver::before_model");
                let round = Round { turn: open.id, number: turn.rounds(), tools };
                call_model(handles, conversation, open, round, halt).await?
            }
            // `RecordInterruption` names a call that a crash interrupted. `advance` returns this step only if the call
            // may run again, so the call runs here like a new call. If the call must not run twice, `advance` has
            // recorded the interruption itself.
            Step::RunTool(call) | Step::RecordInterruption(call) => {
                run_outside(handles, conversation, open, &mut turn, &call, halt).await?
            }
            // Cannot happen: `advance` carries out these steps itself and never returns them.
            Step::RefuseTool(..) | Step::Notice(_) | Step::Finish(_) | Step::Fail(_) => Happened::Nothing,
        };
    }
}

/// The person may have stopped the agent, or an agent above it may have ended it. Then this turn has ended without its
/// driver. Commits what the agent has changed in such a turn. If the turn has ended by itself, its changes are committed
/// already.
async fn settle_if_stopped(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: &Turn,
) -> Result<(), Error> {
    let has_ended = matches!(turn.next(u64::MAX), Step::Finish(_) | Step::Fail(_) | Step::Ended);
    if has_ended || !turn.acted_outside() || handles.draining.is_cancelled() {
        return Ok(());
    }
    let mut reader = handles.store.reader().await?;
    let open_now = turns::open(&mut reader, conversation).await?;
    drop(reader);
    if open_now.as_ref() != Some(open) {
        settle(handles, conversation, open).await;
    }
    Ok(())
}

/// Returns whether an agent is still allowed to continue its turn. Somebody may have ended, stopped or paused the
/// agent since the turn began.
async fn goes_on(tx: &mut Tx, conversation: &Conversation, turn: &OpenTurn) -> Result<bool, Error> {
    let (open, may_go_on) = turns::open_and_held(&mut tx.connection, conversation).await?;
    Ok(open.as_ref() == Some(turn) && may_go_on == MayGoOn::Yes)
}

/// Writes what happened. Tries again while the disk refuses the write, because a lost answer of a model would have to
/// be paid for again.
async fn write_down(
    handles: &Arc<Handles>,
    conversation: &Conversation,
    open: &OpenTurn,
    turn: Turn,
    happened: Happened,
    halt: &CancellationToken,
) -> Result<(Turn, Step), Error> {
    let mut pause = FIRST_PAUSE;
    polity_points::point!("driver::before_write");
    loop {
        match advance(handles, conversation, open, turn.clone(), happened.clone(), halt).await {
            Err(error) if error.may_pass() && !matches!(happened, Happened::Nothing) => {
                tracing::error!(agent = %conversation.agent, error = %in_full(&error), "failed to write what happened in a turn; trying again after a pause");
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            advanced => return advanced,
        }
    }
}

/// Moves queued messages into the turn, oldest first. Does not move more messages than one request to the model may
/// show. The records of the turn contain only the ids of the messages.
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
    let (owner, turn_now, id, unseen) = (conversation.clone(), open.clone(), open.id, turn.unseen());
    let snapshot = handles.registry.current();
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            let mut heard = Vec::new();
            if !goes_on(tx, &owner, &turn_now).await? {
                return Ok(heard);
            }
            let service = service_of(tx, &snapshot, &owner).await?;
            let most = Intake::of(&service, &snapshot.settings.limits);
            let mail =
                messages::mail(&mut tx.connection, &owner, id, unseen, most.messages, most.inline_text_chars)
                    .await?;
            let waiting: Vec<_> = mail.waiting.iter().map(|(_, size)| *size).collect();
            let taken = intake::taken(&mail.unseen, &waiting, most);
            let Some((last, _)) = mail.waiting.iter().take(taken).next_back() else { return Ok(heard) };
            for message in messages::take_through(tx, &owner, id, *last).await? {
                let record = Record::Heard { message };
                records::append(tx, &owner, id, &record).await?;
                heard.push(record);
            }
            note_status(tx, &service, &owner, id).await?;
            Ok(heard)
        })
    });
    let heard = write.await?;
    polity_points::point!("driver::took_in");
    for record in heard {
        turn.apply(&record);
    }
    Ok(())
}

/// If the conversation has nearly filled the context window, records how full the window is (docs/contract.md,
/// section 7, "Status lines"), and returns the record. The driver calls this function when a turn takes in messages.
async fn note_status(
    tx: &mut Tx,
    service: &Service,
    conversation: &Conversation,
    turn: TurnId,
) -> Result<Option<Record>, Error> {
    let Some(window) = service.context_window else { return Ok(None) };
    let Some(used) = usage::in_context(&mut tx.connection, conversation).await? else { return Ok(None) };
    if !room::is_filling(used, window) {
        return Ok(None);
    }
    let record = Record::Status { used, window };
    records::append(tx, conversation, turn, &record).await?;
    Ok(Some(record))
}

/// Returns the service whose model an agent asks in a task.
async fn service_of(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
) -> Result<Arc<Service>, Error> {
    let agent = agents::in_task(&mut tx.connection, conversation).await?;
    let wanted = agent.and_then(|agent| agent.service);
    Ok(Arc::clone(snapshot.catalogue.service_for(wanted.as_ref())))
}

async fn call_model(
    handles: &Handles,
    conversation: &Conversation,
    open: &OpenTurn,
    round: Round,
    halt: &CancellationToken,
) -> Result<Happened, Error> {
    let mut tried = Tried::nothing();
    let answer = loop {
        match ask(handles, conversation, round, &mut tried, halt).await? {
            Asked::Answered(answer) => break answer,
            Asked::Failed { service, reason, .. } => return Ok(Happened::Failed { service, reason }),
            Asked::Limited(reached) => return Ok(Happened::Limited(reached)),
            Asked::Left => return Ok(Happened::Nothing),
            Asked::TooLong(compaction) => {
                if let Some(happened) =
                    compact(handles, conversation, open, &compaction, &tried, halt).await?
                {
                    return Ok(happened);
                }
            }
        }
    };
    let Answer { mut replied, served, sent, reservation } = *answer;
    polity_points::point!("driver::answered");
    let snapshot = handles.registry.current();
    let stored = take_bytes_out(handles, conversation, &snapshot, &mut replied).await?;
    polity_points::point!("driver::bytes_taken_out");
    let event = Event::ModelAnswered {
        task: conversation.task.clone(),
        agent: conversation.agent.clone(),
        service: served.service.clone(),
        model: served.model.clone(),
        revision: served.revision,
        usage: served.usage,
        attempts: served.attempts,
        content: sent.shown.clone(),
        sent: None,
    };
    let (replied, event, reservation) = (Box::new(replied), Box::new(event), Arc::new(reservation));
    Ok(Happened::Replied { replied, event, served, sent: Arc::new(sent), stored, reservation })
}

/// The result of [`abandon`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Abandoned {
    /// The open turn was ended.
    Turn,
    /// No turn was open.
    Nothing,
}

/// Ends a turn whose driver failed again and again because of damage or a defect.
pub(crate) async fn abandon(
    handles: &Handles,
    conversation: &Conversation,
    reason: String,
) -> Result<Abandoned, Error> {
    let snapshot = handles.registry.current();
    let conversation = conversation.clone();
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            let Some(open) = turns::open(&mut tx.connection, &conversation).await? else {
                return Ok(Abandoned::Nothing);
            };
            closing::answer_pending(tx, &snapshot, &conversation, &open).await?;
            records::append(tx, &conversation, open.id, &Record::Failed { reason: reason.clone() }).await?;
            let service = snapshot.catalogue.default_service().id.clone();
            closing::fail(tx, &snapshot, &conversation, &open, &service, &reason).await?;
            polity_points::point!("driver::abandoned");
            Ok(Abandoned::Turn)
        })
    });
    write.await
}

/// Parks a conversation that cannot continue. A parked conversation does nothing until its agent is resumed or stopped.
/// The parent is told. Does nothing if the person has stopped the conversation's work after the last failure: the
/// conversation then has nothing to do any more.
pub(crate) async fn park(
    handles: &Handles,
    conversation: &Conversation,
    reason: String,
) -> Result<(), Error> {
    let snapshot = handles.registry.current();
    let conversation = conversation.clone();
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            if !turns::has_work(&mut tx.connection, &conversation).await?
                || !holds::insert(tx, &conversation, &reason).await?
            {
                return Ok(());
            }
            let parking = closing::Parking { reason: &reason, failures: 0 };
            closing::tell_parked(tx, &snapshot, &conversation, parking, None).await
        })
    });
    write.await
}

#[cfg(test)]
mod tests;
