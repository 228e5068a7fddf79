//! Ends a turn in one transaction: delivers the closing text (the last text of the model), and sets the final state of
//! the messages that the turn took in. If the turn failed, it also tells the parent and the askers.

use super::bytes::put_on_disk;
use crate::door;
use crate::handles::Handles;
use crate::rest;
use crate::tools;
use polity_artifacts::NewArtifact;
use polity_decide::budget::{Reached, branches};
use polity_decide::result::Misfit;
use polity_decide::turn::{self, Turn};
use polity_registry::Snapshot;
use polity_routing::inline_text;
use polity_society::content::Artifact;
use polity_society::id::{AgentId, MessageId, ServiceId};
use polity_society::message::{Body, Expects, Payload, RESULT};
use polity_society::notice::Notice;
use polity_society::refusal::Refusal;
use polity_society::rules::{
    self, Address, Answering, Closing, ClosingFacts, Draft, Earlier, LastWord, OpenRequest, Prompting,
    Timing, WorkedOn,
};
use polity_store::messages::{self, RequestsOf, Settled};
use polity_store::mint;
use polity_store::record::Record;
use polity_store::turns::{self, OpenTurn};
use polity_store::{Conversation, Error, Tx, agents, apply, events, holds, keep, notes, records, usage};
use polity_view::Event;
use polity_view::in_full;
use std::collections::BTreeSet;

/// The last text of a turn, and the facts that are needed to end the turn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LastText<'t> {
    /// The last text of the model, if there is one.
    pub(crate) text: Option<&'t str>,
    /// How many messages the turn has taken from the mailbox.
    pub(crate) heard: u64,
    /// What happens to a text that does not fit the schema of its request.
    pub(crate) misfit: Misfit,
}

/// The outcome of ending a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Finished {
    /// The turn has ended.
    Ended,
    /// The text does not fit the schema of its request. Contains the faults. Nothing was sent, and the model must be
    /// told about the faults.
    Returned(Vec<String>),
}

/// Ends a turn that succeeded. In the same transaction, marks as done exactly the messages that the turn took in.
pub(crate) async fn finish(
    tx: &mut Tx,
    handles: &Handles,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    last: LastText<'_>,
) -> Result<Finished, Error> {
    let LastText { text, heard, misfit } = last;
    let said = match text {
        Some(text) => say(tx, handles, snapshot, conversation, open, text, misfit).await?,
        None => ClosingText::Done,
    };
    let unsaid = match said {
        ClosingText::Done => None,
        ClosingText::Refused(unsaid) => Some(unsaid),
        ClosingText::Returned(errors) => return Ok(Finished::Returned(errors)),
    };
    polity_points::point!("closing::said");
    let hit = messages::settle(tx, open.id, Settled::Done).await?;
    if hit != heard {
        return Err(Error::WrongRows { what: "consuming the messages of a turn", expected: heard, hit });
    }
    turns::end(tx, open.id, turns::Ended::Done).await?;
    if let Some(Unsaid { to, request, reason }) = unsaid {
        messages::fail(tx, &request).await?;
        let notice =
            Notice::ReceiverFailed { agent: conversation.agent.clone(), message: request.clone(), reason };
        apply::tell(tx, snapshot, &conversation.task, &to, notice, Some(request)).await?;
    }
    rest::after_turn(tx, snapshot, conversation).await?;
    polity_points::point!("closing::finished");
    note_end(tx, conversation, None).await?;
    Ok(Finished::Ended)
}

/// What happened to a closing text.
enum ClosingText {
    /// The text needs no further handling. There are four cases. The text was sent. Or it is held until the agent no
    /// longer waits for others. Or it repeats an earlier message. Or it stays only in the agent's history.
    Done,
    /// The door refused the text, so nobody got it.
    Refused(Unsaid),
    /// The text does not fit the schema of its request.
    Returned(Vec<String>),
}

/// An answer that could not be delivered. The asker must be told, or the asker would wait for ever.
struct Unsaid {
    to: AgentId,
    request: MessageId,
    reason: String,
}

async fn say(
    tx: &mut Tx,
    handles: &Handles,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    text: &str,
    misfit: Misfit,
) -> Result<ClosingText, Error> {
    let requests = messages::requests_of(&mut tx.connection, conversation).await?;
    let facts = facts(tx, open, &requests).await?;
    let address = rules::address(&facts);
    let earlier = match &address {
        Some(Address { to, subject, .. }) => {
            messages::said_before(&mut tx.connection, conversation, to, subject.requests(), text).await?
        }
        None => None,
    };
    let earlier = match (earlier, &address) {
        (Some(earlier), Some(Address { subject, .. })) => {
            fitting(tx, conversation, earlier, subject.requests()).await?
        }
        (earlier, _) => earlier,
    };
    let Address { to, subject, timing } = match rules::closing(address, earlier) {
        Closing::Said(address) => address,
        Closing::Repeated { earlier, answers } => {
            rest::settle(tx, conversation, &earlier, &answers).await?;
            notes::drop(tx, conversation, &answers).await?;
            return Ok(ClosingText::Done);
        }
        Closing::Note => return Ok(ClosingText::Done),
    };
    let request = open.works_on.clone().or_else(|| subject.requests().first().cloned());
    if let (Timing::Held, Some(request)) = (timing, &request) {
        let text = bounded(tx, handles, snapshot, conversation, text).await?;
        notes::hold(tx, conversation, request, subject.requests(), &text).await?;
        return Ok(ClosingText::Done);
    }
    let last_word = last_word(open);
    let draft = |text: &str| Draft {
        to: to.to_string(),
        payload: Payload::text(text),
        answering: Answering::Closing(subject.clone()),
        due_at: None,
    };
    let sent =
        door::send_fitting(tx, snapshot, conversation, draft(text), last_word, misfit, requests.clone());
    let sent = keep(sent.await)?;
    if let Err(Refusal::ResultDoesNotFit { errors }) = sent {
        return Ok(ClosingText::Returned(errors));
    }
    // The new text replaces the held texts: unsent texts that the agent wrote earlier for the same requests.
    if requests.holds_texts {
        notes::drop(tx, conversation, &[subject.requests(), request.as_slice()].concat()).await?;
    }
    let mut refusal = match sent {
        Ok(_) => return Ok(ClosingText::Done),
        Err(refusal) => refusal,
    };
    if matches!(refusal, Refusal::LimitReached { limit: "maxMessageChars", .. }) {
        let whole = keep_whole(tx, handles, conversation, text).await?;
        let mut shown = snapshot.settings.limits.max_message_chars;
        // Escapes in JSON make a text longer, and the note about the rest of the text needs room, too. So the loop
        // halves the shown beginning of the text until the message fits.
        while shown > 0 {
            shown /= 2;
            let characters = usize::try_from(shown).unwrap_or(usize::MAX);
            let beginning = inline_text(text, &whole, characters, &snapshot.prompts.texts);
            match keep(door::send(tx, snapshot, conversation, draft(&beginning), last_word).await)? {
                Ok(_) => return Ok(ClosingText::Done),
                Err(again) => refusal = again,
            }
        }
    }
    tracing::warn!(agent = %conversation.agent, %to, code = refusal.code(), "the door refused a closing text");
    let reason = refusal.message(&snapshot.prompts.texts);
    Ok(request.map_or(ClosingText::Done, |request| ClosingText::Refused(Unsaid { to, request, reason })))
}

/// A closing text repeats the text of the message `earlier`. Returns `earlier` if this message can be the answer to the
/// requests. If a request has a schema, the message must fit the schema.
async fn fitting(
    tx: &mut Tx,
    conversation: &Conversation,
    earlier: Earlier,
    requests: &[MessageId],
) -> Result<Option<Earlier>, Error> {
    let Some(agent) = agents::get(&mut tx.connection, &conversation.agent).await? else {
        return Ok(Some(earlier));
    };
    if door::schemas(tx, conversation, &agent, requests).await?.is_empty() {
        return Ok(Some(earlier));
    }
    let said = messages::get(&mut tx.connection, &earlier.id).await?;
    let fits =
        said.is_some_and(|said| matches!(said.body, Body::Payload(said) if said.fields.contains_key(RESULT)));
    Ok(fits.then_some(earlier))
}

/// Reads the facts from which the rules decide who gets the closing text of a turn.
async fn facts(tx: &mut Tx, open: &OpenTurn, requests: &RequestsOf) -> Result<ClosingFacts, Error> {
    let still_open = requests.open.iter().find(|request| open.works_on.as_ref() == Some(&request.id));
    let works_on = match still_open {
        Some(request) => Some(WorkedOn { id: request.id.clone(), from: request.from.clone() }),
        None => {
            let closed = messages::requests(&mut tx.connection, open.works_on.iter()).await?;
            closed.into_iter().next().map(|request| WorkedOn { id: request.id, from: request.from })
        }
    };
    Ok(ClosingFacts {
        works_on,
        prompting: open.prompting,
        open_requests: requests.open.clone(),
        pending: [&*requests.pending, &requests.unheard].concat(),
    })
}

/// Shortens a text that is too long for a message or a notice: stores the whole text, and returns its beginning.
async fn bounded(
    tx: &mut Tx,
    handles: &Handles,
    snapshot: &Snapshot,
    conversation: &Conversation,
    text: &str,
) -> Result<String, Error> {
    let limits = &snapshot.settings.limits;
    // One character of a text may take six characters in JSON: an escape such as `\u0001`.
    let most = limits.inline_text_chars.min(limits.max_message_chars / 6);
    let most = usize::try_from(most).unwrap_or(usize::MAX);
    if text.chars().nth(most).is_none() {
        return Ok(text.to_owned());
    }
    let whole = keep_whole(tx, handles, conversation, text).await?;
    Ok(inline_text(text, &whole, most, &snapshot.prompts.texts).into_owned())
}

/// Stores as an artifact a text that is too long for a message. The message then refers to the artifact.
async fn keep_whole(
    tx: &mut Tx,
    handles: &Handles,
    conversation: &Conversation,
    text: &str,
) -> Result<Artifact, Error> {
    let artifact = NewArtifact {
        bytes: text.to_owned().into(),
        declared_mime: Some("text/markdown".to_owned()),
        label: Some("answer".to_owned()),
        ..NewArtifact::default()
    };
    let prepared = put_on_disk(handles, mint::artifact(), artifact).await?;
    let artifact = prepared.artifact.clone();
    tools::store(tx, conversation, prepared).await?;
    polity_points::point!("closing::whole_kept");
    Ok(artifact)
}

/// Returns when the texts that a turn sends to the person are final. Usually they are final unless the agent still
/// waits for other agents. If the turn began with a nudge, they are always final. A nudge is a notice to root that the
/// person has heard nothing final.
pub(crate) fn last_word(open: &OpenTurn) -> LastWord {
    match open.prompting {
        Prompting::Nudge => LastWord::Yes,
        Prompting::Ordinary | Prompting::Deadlock => LastWord::UnlessWaiting,
    }
}

/// Ends a turn that could not continue: marks its messages as failed, and tells the parent or the person.
pub(crate) async fn fail(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    service: &ServiceId,
    reason: &str,
) -> Result<(), Error> {
    let asked = messages::open_requests(&mut tx.connection, conversation).await?;
    messages::settle(tx, open.id, Settled::Failed).await?;
    turns::end(tx, open.id, turns::Ended::Failed).await?;
    polity_points::point!("closing::failed");
    note_end(tx, conversation, Some(reason.to_owned())).await?;
    let Some(agent) = agents::get(&mut tx.connection, &conversation.agent).await? else {
        return Ok(());
    };
    let parent = agent.parent.unwrap_or_else(AgentId::user);
    let failures = turns::failures(&mut tx.connection, conversation).await?;
    if failures >= snapshot.settings.limits.max_failed_turns
        && holds::insert(tx, conversation, reason).await?
    {
        let about = oldest_of(&asked, &parent);
        tell_parked(tx, snapshot, conversation, Parking { reason, failures }, about).await?;
        return tell_askers(tx, snapshot, conversation, asked, &parent, reason).await;
    }
    let failed = Notice::AgentFailed {
        agent: conversation.agent.clone(),
        role: agent.role_name,
        service: service.clone(),
        reason: reason.to_owned(),
    };
    let about = oldest_of(&asked, &parent);
    apply::tell(tx, snapshot, &conversation.task, &parent, failed, about).await?;
    tell_askers(tx, snapshot, conversation, asked, &parent, reason).await
}

/// Returns the oldest of these requests that the asker made.
fn oldest_of(asked: &[OpenRequest], asker: &AgentId) -> Option<MessageId> {
    asked.iter().find(|request| request.from == *asker).map(|request| request.id.clone())
}

/// Askers may have open requests to the failed agent. Tells them that no answer will come. Does not tell the parent,
/// because the parent was told already. Does not tell the person, because the agent can still answer the person in a
/// later turn.
async fn tell_askers(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    asked: Vec<OpenRequest>,
    parent: &AgentId,
    reason: &str,
) -> Result<(), Error> {
    let mut told = BTreeSet::from([parent.clone(), conversation.agent.clone()]);
    for request in asked {
        if request.from.is_user() {
            continue;
        }
        messages::fail(tx, &request.id).await?;
        if told.insert(request.from.clone()) {
            let notice = Notice::ReceiverFailed {
                agent: conversation.agent.clone(),
                message: request.id.clone(),
                reason: reason.to_owned(),
            };
            apply::tell(tx, snapshot, &conversation.task, &request.from, notice, Some(request.id)).await?;
        }
    }
    rest::hand_over(tx, snapshot, conversation).await?;
    rest::after_waits(tx, snapshot).await
}

/// Ends a turn because the person stopped it. Every open call gets a result, and the messages of the turn are marked as
/// failed. This works even if the records of the turn are damaged. No driver can end such a turn, because each driver
/// fails. The caller then calls [`rest::after_waits`].
pub(crate) async fn stop(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
) -> Result<(), Error> {
    let reason = "stopped by the user".to_owned();
    match answer_pending(tx, snapshot, conversation, open).await {
        // The records of this turn cannot be read, so no request to a model will contain its calls. The calls therefore
        // need no results.
        Err(error @ Error::Damaged { .. }) => {
            tracing::error!(agent = %conversation.agent, error = %in_full(&error), "the calls of a stopped turn get no results");
        }
        answered => answered?,
    }
    records::append(tx, conversation, open.id, &Record::Stopped { reason: reason.clone() }).await?;
    messages::settle(tx, open.id, Settled::Failed).await?;
    turns::end(tx, open.id, turns::Ended::Stopped).await?;
    note_end(tx, conversation, Some(reason)).await
}

/// Gives a result to every open call of a turn that ends early, because a request to a model must not contain calls
/// without results.
pub(super) async fn answer_pending(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
) -> Result<(), Error> {
    let written = records::of_turn(&mut tx.connection, open.id).await?;
    let turn = Turn::replay(Expects::Nothing, &written);
    for call in turn.pending() {
        let tool = call.name.clone();
        let refusal = if turn.has_started(call) {
            Refusal::OutcomeUnknown { tool }
        } else {
            Refusal::ToolFailed { tool, reason: "not run: the turn ended before".to_owned() }
        };
        let result = tools::Done::refused(&refusal, snapshot).result;
        records::append(tx, conversation, open.id, &turn::finished(call, result)).await?;
    }
    Ok(())
}

/// Why a conversation is parked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Parking<'a> {
    pub(super) reason: &'a str,
    /// How many turns have failed in a row; 0 if the conversation is parked for another reason.
    pub(super) failures: u64,
}

/// Tells the parent of a parked agent that the agent is parked. If the parent is the person, the person is told.
pub(super) async fn tell_parked(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    parking: Parking<'_>,
    about: Option<MessageId>,
) -> Result<(), Error> {
    let Conversation { agent, task } = conversation.clone();
    let reason = parking.reason.to_owned();
    let parked = Event::AgentParked {
        task: task.clone(),
        agent: agent.clone(),
        reason: reason.clone(),
        failed_turns: Some(parking.failures),
    };
    events::append(tx, &parked).await?;
    let row = agents::get(&mut tx.connection, &agent).await?;
    let (parent, role) = row.map(|row| (row.parent, row.role_name)).unwrap_or_default();
    let notice = Notice::Parked { agent, role, reason };
    apply::tell(tx, snapshot, &task, &parent.unwrap_or_else(AgentId::user), notice, about).await
}

/// Tells the person that a limit stopped the task, and how much each branch of the tree of agents has spent.
pub(super) async fn tell_limit(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    reached: &Reached,
) -> Result<(), Error> {
    let shares = usage::by_agent(&mut tx.connection, &conversation.task).await?;
    let parents = agents::parents(&mut tx.connection, &conversation.task).await?;
    let notice = Notice::LimitReached {
        limit: reached.limit.to_owned(),
        value: reached.value.to_string(),
        branches: branches(&shares, &parents),
    };
    apply::tell(tx, snapshot, &conversation.task, &AgentId::user(), notice, None).await
}

/// Appends the event that a turn has ended.
pub(super) async fn note_end(
    tx: &mut Tx,
    conversation: &Conversation,
    failure: Option<String>,
) -> Result<(), Error> {
    let event =
        Event::TurnEnded { task: conversation.task.clone(), agent: conversation.agent.clone(), failure };
    events::append(tx, &event).await
}
