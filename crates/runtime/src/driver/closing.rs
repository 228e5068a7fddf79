//! The end of a turn, within the transaction that ends it: what becomes of the closing text, of the messages that the
//! turn took in, and who is told where it failed.

use super::bytes::put_on_disk;
use crate::door;
use crate::event::Event;
use crate::handles::Handles;
use crate::mint;
use crate::store::messages::{self, Settled};
use crate::store::turns::{self, OpenTurn};
use crate::store::{Conversation, Error, Tx, agents, apply, events, usage};
use crate::tools;
use polity_artifacts::NewArtifact;
use polity_registry::Snapshot;
use polity_routing::inline_text;
use polity_society::content::Artifact;
use polity_society::id::{AgentId, MessageId, ServiceId};
use polity_society::message::{Body, Message, Payload};
use polity_society::notice::Notice;
use polity_society::refusal::Refusal;
use polity_society::rules::{self, Answering, Beginning, Closing, ClosingFacts, Draft, LastWord, Nudge};
use std::collections::BTreeSet;

/// Ends a turn well. Its messages are consumed in the same transaction, and exactly those.
pub(crate) async fn finish(
    tx: &mut Tx,
    handles: &Handles,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    text: Option<&str>,
    heard: u64,
) -> Result<(), Error> {
    let unsaid = match text {
        Some(text) => say(tx, handles, snapshot, conversation, open, text).await?,
        None => None,
    };
    polity_points::point!("closing::said");
    let hit = messages::settle(tx, open.id, Settled::Done).await?;
    if hit != heard {
        return Err(Error::WrongRows { what: "consuming the messages of a turn", expected: heard, hit });
    }
    turns::end(tx, open.id, turns::Ended::Done).await?;
    if let Some(Unsaid { to, request, reason }) = unsaid {
        messages::fail(tx, &request).await?;
        let notice = Notice::ReceiverFailed { agent: conversation.agent.clone(), message: request, reason };
        apply::tell(tx, snapshot, &conversation.task, &to, notice).await?;
    }
    polity_points::point!("closing::finished");
    note_end(tx, conversation, None).await
}

/// An answer that could not be delivered: whoever waits for it must not wait for ever.
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
) -> Result<Option<Unsaid>, Error> {
    let Some(began_by) = messages::get(&mut tx.connection, &open.began_by).await? else {
        return Ok(None);
    };
    let mut waits_for = messages::awaited(&mut tx.connection, conversation).await?;
    waits_for.extend(messages::unheard(&mut tx.connection, conversation).await?);
    let facts = ClosingFacts {
        beginning: beginning(&began_by),
        open_requests: messages::open_requests(&mut tx.connection, conversation).await?,
        sent_to: messages::sent_in(&mut tx.connection, conversation, open.id).await?,
        waits_for,
        circle: circle(&began_by),
    };
    let (to, request, last_word) = match rules::closing(&facts) {
        Closing::Answer { to, request, last_word } => (to, request, last_word),
        Closing::Note => return Ok(None),
    };
    let request_or_beginning = request.clone().unwrap_or(began_by.id);
    let answering = request.map_or(Answering::Nothing, Answering::This);
    let draft = |text: &str| Draft {
        to: to.to_string(),
        payload: Payload::text(text),
        answering: answering.clone(),
        due_at: None,
    };
    let mut refusal = match door::send(tx, snapshot, conversation, draft(text), last_word).await? {
        Ok(_) => return Ok(None),
        Err(refusal) => refusal,
    };
    if matches!(refusal, Refusal::LimitReached { limit: "maxMessageChars", .. }) {
        let whole = keep_whole(tx, handles, conversation, text).await?;
        let mut shown = snapshot.settings.limits.max_message_chars;
        // A text in JSON is longer than the text, and the note needs room too: how much is found by trying.
        while shown > 0 {
            shown /= 2;
            let characters = usize::try_from(shown).unwrap_or(usize::MAX);
            let beginning = inline_text(text, &whole, characters, &snapshot.prompts.texts);
            match door::send(tx, snapshot, conversation, draft(&beginning), last_word).await? {
                Ok(_) => return Ok(None),
                Err(again) => refusal = again,
            }
        }
    }
    tracing::warn!(agent = %conversation.agent, %to, code = refusal.code(), "a closing text was refused");
    let reason = refusal.message(&snapshot.prompts.texts);
    Ok(Some(Unsaid { to, request: request_or_beginning, reason }))
}

/// Stores a text that is too long for a message, for its writer and whoever is told of it.
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

/// Whether what a turn tells the person is final in any case: it is where the system has reminded the agent.
pub(crate) async fn last_word(tx: &mut Tx, open: &OpenTurn) -> Result<LastWord, Error> {
    let began_by = messages::get(&mut tx.connection, &open.began_by).await?;
    Ok(match began_by.map(|message| beginning(&message).nudge) {
        Some(Nudge::Yes) => LastWord::Yes,
        Some(Nudge::No) | None => LastWord::UnlessWaiting,
    })
}

/// Those who wait for each other, where that is what the message says.
fn circle(message: &Message) -> BTreeSet<AgentId> {
    match &message.body {
        Body::Notice(Notice::Deadlock { agents, .. }) => agents.iter().cloned().collect(),
        Body::Notice(_) | Body::Payload(_) => BTreeSet::new(),
    }
}

fn beginning(message: &Message) -> Beginning {
    let nudge = match &message.body {
        Body::Notice(Notice::Nudge) => Nudge::Yes,
        Body::Notice(_) | Body::Payload(_) => Nudge::No,
    };
    Beginning { id: message.id.clone(), from: message.from.clone(), expects: message.expects, nudge }
}

/// Ends a turn that could not go on: its messages have failed, and the parent, or the person, is told.
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
    let failed = Notice::AgentFailed {
        agent: conversation.agent.clone(),
        role: agent.role_name,
        service: service.clone(),
        reason: reason.to_owned(),
    };
    apply::tell(tx, snapshot, &conversation.task, &parent, failed).await?;
    // Whoever asked, in this turn or before it, waits no longer; the person can still be answered.
    for request in asked {
        if request.from.is_user() {
            continue;
        }
        messages::fail(tx, &request.id).await?;
        if request.from != parent && request.from != conversation.agent {
            let notice = Notice::ReceiverFailed {
                agent: conversation.agent.clone(),
                message: request.id,
                reason: reason.to_owned(),
            };
            apply::tell(tx, snapshot, &conversation.task, &request.from, notice).await?;
        }
    }
    Ok(())
}

/// Tells the person that a limit stopped the task, and which branch used how much.
pub(super) async fn tell_limit(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    limit: &str,
    value: u64,
) -> Result<(), Error> {
    let used = usage::by_agent(&mut tx.connection, &conversation.task).await?;
    let branches: Vec<String> = used
        .into_iter()
        .map(|(agent, calls, tokens)| format!("{agent}: {calls} calls, {tokens} tokens"))
        .collect();
    let notice = Notice::LimitReached {
        limit: limit.to_owned(),
        value: value.to_string(),
        branches: branches.join("; "),
    };
    apply::tell(tx, snapshot, &conversation.task, &AgentId::user(), notice).await
}

/// Notes that a turn has ended.
pub(super) async fn note_end(
    tx: &mut Tx,
    conversation: &Conversation,
    failure: Option<String>,
) -> Result<(), Error> {
    let event =
        Event::TurnEnded { task: conversation.task.clone(), agent: conversation.agent.clone(), failure };
    events::append(tx, &event).await
}
