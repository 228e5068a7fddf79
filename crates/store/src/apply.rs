//! Writes the changes that the rules have allowed: rows, the events about these rows, and bells (signals that make the
//! supervisor look at a conversation).

use super::{
    Conversation, Error, Tx, agents, artifacts, commands, contacts, events, holds, messages, records, roles,
    seen, turns, work,
};
use crate::Bell;
use crate::record::Record;
use polity_registry::Snapshot;
use polity_society::agent::Standing;
use polity_society::change::Change;
use polity_society::id::{AgentId, MessageId, TaskId};
use polity_society::message::{Body, Expects, Message, Sender};
use polity_society::notice::Notice;
use polity_society::rules;
use polity_view::Event;

/// An event contains at most this many characters of a message between agents.
const EXCERPT_CHARS: usize = 200;

/// Writes changes in order. If a change cannot be written, the caller's whole job fails, and the writer undoes the job.
pub async fn apply(tx: &mut Tx, snapshot: &Snapshot, changes: Vec<Change>) -> Result<(), Error> {
    let mut ended = Vec::new();
    let mut changes = changes.into_iter().peekable();
    while let Some(change) = changes.next() {
        match change {
            Change::RoleCreated(role) => {
                roles::insert(tx, &role).await?;
                let event = Event::RoleCreated {
                    task: role.task,
                    role: role.id,
                    name: role.name.to_string(),
                    creator: role.creator,
                    service: role.service,
                };
                events::append(tx, &event).await?;
            }
            Change::AgentCreated(agent) => {
                agents::insert(tx, &agent).await?;
                let event = Event::AgentCreated {
                    task: agent.task,
                    agent: agent.id,
                    parent: agent.parent,
                    role: agent.role,
                    objective: excerpt(&agent.brief.objective),
                };
                events::append(tx, &event).await?;
            }
            Change::ContactAdded(contact) => {
                // Contacts often come in pairs, because two parties become contacts of each other.
                let mut contacts = vec![contact];
                while let Some(Change::ContactAdded(next)) =
                    changes.next_if(|next| matches!(next, Change::ContactAdded(_)))
                {
                    contacts.push(next);
                }
                for contact in contacts::insert(tx, contacts).await? {
                    seen::offered(tx, &contact).await?;
                    let event = Event::ContactAdded {
                        owner: contact.owner,
                        agent: contact.agent,
                        source: contact.source,
                        introduced_by: contact.introduced_by,
                    };
                    events::append(tx, &event).await?;
                }
            }
            Change::MessageAccepted(message) => accept(tx, snapshot, &message).await?,
            Change::RequestAnswered { request, answer } => messages::answer(tx, &request, &answer).await?,
            Change::AccessGranted { agent, artifact } => {
                artifacts::grant(&mut tx.connection, &agent, &artifact).await?;
            }
            Change::AgentEnded { agent, by, reason } => {
                if end_agent(tx, &agent, reason.clone()).await? {
                    ended.push((agent, by, reason));
                }
            }
        }
    }
    // Send the notices after all changes are written: a later change may end an agent, and an ended agent must get no
    // notice.
    for (agent, by, reason) in ended {
        return_mail(tx, snapshot, &agent).await?;
        close_requests(tx, snapshot, &agent, &by, &reason).await?;
    }
    Ok(())
}

async fn accept(tx: &mut Tx, snapshot: &Snapshot, message: &Message) -> Result<(), Error> {
    messages::insert(tx, message).await?;
    let (message_type, text, attachments) = match &message.body {
        Body::Payload(payload) => {
            let words = payload.words().map_or_else(|| payload.to_json_text(), str::to_owned);
            (Some(payload.message_type), words, payload.attachments.clone())
        }
        Body::Notice(notice) => (None, notice.text(&snapshot.prompts.texts), Vec::new()),
    };
    let event = Event::MessageAccepted {
        task: message.task.clone(),
        message: message.id.clone(),
        from: message.from.as_str().to_owned(),
        to: message.to.clone(),
        message_type: Event::type_name(message_type),
        text: if message.to.is_user() { text } else { excerpt(&text) },
        attachments,
        in_reply_to: message.in_reply_to.clone(),
        finality: message.finality,
    };
    events::append(tx, &event).await?;
    if message.due_at.is_some() {
        tx.ring(Bell::Timer);
    }
    if !message.to.is_user() {
        tx.ring(Bell::Mailbox(Conversation { agent: message.to.clone(), task: message.task.clone() }));
    }
    Ok(())
}

/// Ends an agent, stops its turn and drops its questions to the person. Returns false if the agent had ended before.
async fn end_agent(tx: &mut Tx, agent: &AgentId, reason: String) -> Result<bool, Error> {
    if !agents::end(tx, agent).await? {
        return Ok(false);
    }
    if let Some(task) = agents::get(&mut tx.connection, agent).await?.and_then(|row| row.task) {
        let conversation = Conversation { agent: agent.clone(), task };
        if let Some(turn) = turns::open_of(&mut tx.connection, agent).await? {
            records::append(tx, &conversation, turn, &Record::Stopped { reason: reason.clone() }).await?;
            turns::end(tx, turn, turns::Ended::Stopped).await?;
        }
        work::drop_questions(tx, &conversation).await?;
    }
    // Nobody can resume an ended agent, so it must not stay parked.
    holds::release(tx, agent, None).await?;
    events::append(tx, &Event::AgentEnded { agent: agent.clone(), reason }).await?;
    tx.ring(Bell::Halt(agent.clone()));
    commands::stopped(tx, agent, None).await?;
    tx.ring(Bell::EndCommands(agent.clone()));
    Ok(true)
}

/// Bounces the messages of an ended agent: the messages that it got and has not finished working on. Tells the senders
/// of these messages.
async fn return_mail(tx: &mut Tx, snapshot: &Snapshot, agent: &AgentId) -> Result<(), Error> {
    for message in messages::bounce_all(tx, agent).await? {
        let event = Event::MessageBounced { message: message.id.clone(), to: agent.clone() };
        events::append(tx, &event).await?;
        let about = (message.expects == Expects::Answer).then(|| message.id.clone());
        let notice = Notice::Bounced { to: agent.clone(), message: message.id };
        if let Sender::Party(sender) = &message.from {
            tell(tx, snapshot, &message.task, sender, notice, about).await?;
        }
    }
    Ok(())
}

/// Closes the requests that an ended agent has read but will never answer. The askers of these requests stop waiting.
/// Each asker is told why, unless the asker itself has ended the agent.
async fn close_requests(
    tx: &mut Tx,
    snapshot: &Snapshot,
    agent: &AgentId,
    by: &AgentId,
    reason: &str,
) -> Result<(), Error> {
    for request in messages::close_requests(tx, agent).await? {
        let notice =
            Notice::Terminated { agent: agent.clone(), by: Some(by.clone()), reason: reason.to_owned() };
        if let Sender::Party(asker) = &request.from
            && asker != by
        {
            tell(tx, snapshot, &request.task, asker, notice, Some(request.id)).await?;
        }
    }
    Ok(())
}

/// Sends a notice of the system to a party that has not ended. `about` is the request that the notice concerns.
pub async fn tell(
    tx: &mut Tx,
    snapshot: &Snapshot,
    task: &TaskId,
    to: &AgentId,
    notice: Notice,
    about: Option<MessageId>,
) -> Result<(), Error> {
    let row = agents::get(&mut tx.connection, to).await?;
    if row.is_none_or(|row| row.standing == Standing::Ended) {
        return Ok(());
    }
    let id = messages::next_id(tx).await?;
    accept(tx, snapshot, &rules::notice(id, task.clone(), to.clone(), notice, about)).await
}

/// Returns the beginning of a text for an event. If the text is longer, the beginning ends with `…`.
pub fn excerpt(text: &str) -> String {
    let mut characters = text.chars();
    let mut excerpt: String = characters.by_ref().take(EXCERPT_CHARS).collect();
    if characters.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}
