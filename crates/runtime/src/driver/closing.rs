//! The end of a turn, within the transaction that ends it: what becomes of the closing text, of the messages that the
//! turn took in, and who is told where it failed.

use crate::door;
use crate::event::Event;
use crate::store::messages::{self, Settled};
use crate::store::turns::{self, OpenTurn};
use crate::store::{Conversation, Error, Tx, agents, apply, events, usage};
use polity_registry::Snapshot;
use polity_society::agent::Standing;
use polity_society::change::Change;
use polity_society::id::{AgentId, ServiceId};
use polity_society::message::{Body, Message, Payload, Sender};
use polity_society::notice::Notice;
use polity_society::rules::{self, Answering, Beginning, Closing, ClosingFacts, Draft, LastWord, Nudge};

/// Ends a turn well. Its messages are consumed in the same transaction, and exactly those.
pub(super) async fn finish(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    text: Option<&str>,
    heard: u64,
) -> Result<(), Error> {
    if let Some(text) = text {
        say(tx, snapshot, conversation, open, text).await?;
    }
    let hit = messages::settle(tx, open.id, Settled::Done).await?;
    if hit != heard {
        return Err(Error::WrongRows { what: "consuming the messages of a turn", expected: heard, hit });
    }
    turns::end(tx, open.id, turns::Ended::Done).await?;
    note_end(tx, conversation, None).await
}

async fn say(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    text: &str,
) -> Result<(), Error> {
    let Some(began_by) = messages::get(&mut tx.connection, &open.began_by).await? else {
        return Ok(());
    };
    let mut waits_for = messages::awaited(&mut tx.connection, conversation).await?;
    waits_for.extend(messages::unheard(&mut tx.connection, conversation).await?);
    let facts = ClosingFacts {
        beginning: beginning(&began_by),
        open_requests: messages::open_requests(&mut tx.connection, conversation).await?,
        sent_to: messages::sent_in(&mut tx.connection, conversation, open.id).await?,
        waits_for,
    };
    let (to, request, last_word) = match rules::closing(&facts) {
        Closing::Answer { to, request, last_word } => (to, request, last_word),
        Closing::Note => return Ok(()),
    };
    let answering = request.map_or(Answering::Nothing, Answering::This);
    let draft = Draft { to: to.to_string(), payload: Payload::text(text), answering, due_at: None };
    if let Err(refusal) = door::send(tx, snapshot, conversation, draft, last_word).await? {
        // It stays in the history of the one who said it; the one it was for is told by the notices of its own case.
        tracing::warn!(agent = %conversation.agent, %to, code = refusal.code(), "a closing text was refused");
    }
    Ok(())
}

/// Whether what a turn tells the person is final in any case: it is where the system has reminded the agent.
pub(super) async fn last_word(tx: &mut Tx, open: &OpenTurn) -> Result<LastWord, Error> {
    let began_by = messages::get(&mut tx.connection, &open.began_by).await?;
    Ok(match began_by.map(|message| beginning(&message).nudge) {
        Some(Nudge::Yes) => LastWord::Yes,
        Some(Nudge::No) | None => LastWord::UnlessWaiting,
    })
}

fn beginning(message: &Message) -> Beginning {
    let nudge = match &message.body {
        Body::Notice(Notice::Nudge) => Nudge::Yes,
        Body::Notice(_) | Body::Payload(_) => Nudge::No,
    };
    Beginning { id: message.id.clone(), from: message.from.clone(), expects: message.expects, nudge }
}

/// Ends a turn that could not go on: its messages have failed, and the parent, or the person, is told.
pub(super) async fn fail(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    open: &OpenTurn,
    service: &ServiceId,
    reason: &str,
) -> Result<(), Error> {
    let taken = messages::of_turn(&mut tx.connection, open.id).await?;
    messages::settle(tx, open.id, Settled::Failed).await?;
    turns::end(tx, open.id, turns::Ended::Failed).await?;
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
    tell(tx, snapshot, conversation, parent.clone(), failed).await?;
    for message in taken {
        let Sender::Party(sender) = message.from else {
            continue;
        };
        if sender != parent && sender != conversation.agent {
            let notice = Notice::ReceiverFailed {
                agent: conversation.agent.clone(),
                message: message.id,
                reason: reason.to_owned(),
            };
            tell(tx, snapshot, conversation, sender, notice).await?;
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
    tell(tx, snapshot, conversation, AgentId::user(), notice).await
}

/// Has the system say something to somebody who can still hear it.
async fn tell(
    tx: &mut Tx,
    snapshot: &Snapshot,
    conversation: &Conversation,
    to: AgentId,
    notice: Notice,
) -> Result<(), Error> {
    let receiver = agents::get(&mut tx.connection, &to).await?;
    if receiver.is_none_or(|receiver| receiver.standing == Standing::Ended) {
        return Ok(());
    }
    let id = messages::next_id(tx).await?;
    let message = rules::notice(id, conversation.task.clone(), to, notice);
    apply::apply(tx, snapshot, vec![Change::MessageAccepted(Box::new(message))]).await
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
