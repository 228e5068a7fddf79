//! The mailbox's door: the one place where a draft becomes a message, whoever wrote it (contract sections 6 and 7).

use crate::agent::{Party, Standing};
use crate::change::Change;
use crate::contact::{self, Contact, KnownParty, Source};
use crate::id::{AgentId, ArtifactId, MessageId, TaskId};
use crate::limits::Limits;
use crate::message::{
    Answers, Body, Expects, Finality, Introduced, Message, MessageType, Payload, SelfIntroduction, Sender,
};
use crate::notice::Notice;
use crate::problem::{Fault, FieldProblem};
use crate::refusal::{ContactLine, Refusal};
use crate::rules::OpenRequest;
use std::collections::BTreeSet;

/// Something that somebody wants sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// Whom it is for: an id, or the name of a contact's role.
    pub to: String,
    /// What it says.
    pub payload: Payload,
    /// Which request it answers.
    pub answering: Answering,
    /// When it is due, in milliseconds since 1970, if not at once.
    pub due_at: Option<i64>,
}

/// How the request that a draft answers is found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answering {
    /// The one it names, else the oldest that the receiver has open.
    Oldest,
    /// This one: a closing text knows whom it answers.
    This(MessageId),
    /// None, and it asks for nothing: a last word when nothing is open any more.
    Nothing,
}

/// Whether the receiver has the sender among its contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// It has.
    Known,
    /// This would be the first it hears of the sender.
    New,
}

/// Whether the sender has open requests to others than the receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It has.
    ForOthers,
    /// It has none.
    ForNobody,
}

/// What the door needs to know.
#[derive(Clone, Debug)]
pub struct DoorFacts {
    /// The task in which it is sent.
    pub task: TaskId,
    /// Who sends.
    pub sender: Party,
    /// The sender's registry.
    pub contacts: Vec<KnownParty>,
    /// Whether the receiver knows the sender.
    pub acquaintance: Acquaintance,
    /// The receiver's open requests to the sender, oldest first.
    pub open_requests: Vec<OpenRequest>,
    /// Whether the sender waits.
    pub waiting: Waiting,
    /// How many messages wait in the receiver's mailbox.
    pub queued: u64,
    /// How often the two have answered each other in a row, while neither did anything else.
    pub exchanges: u64,
    /// Of the artifacts that the payload mentions, those that the sender may open.
    pub openable: BTreeSet<ArtifactId>,
}

/// The name of the limit on exchanges between one pair.
pub const PAIR_LIMIT: &str = "maxPairExchanges";

/// Lets a draft in, or refuses it.
pub fn admit(
    draft: Draft,
    facts: &DoorFacts,
    id: MessageId,
    limits: &Limits,
) -> Result<Vec<Change>, Refusal> {
    let unknown = |meant: &str| Refusal::UnknownContact {
        meant: meant.to_owned(),
        contacts: contact::nearest_first(&facts.contacts, meant).into_iter().map(ContactLine::from).collect(),
    };
    let known = contact::find(&facts.contacts, &draft.to);
    let to_itself = known.is_none() && draft.to.trim() == facts.sender.id.as_str();
    let receiver = match known {
        Some(known) => &known.party,
        None if to_itself => &facts.sender,
        None => return Err(unknown(&draft.to)),
    };
    if receiver.standing == Standing::Ended {
        return Err(Refusal::AgentTerminated { agent: receiver.id.to_string() });
    }
    check_size(&draft.payload, limits)?;
    if let Some(missing) = draft.payload.attachments.iter().find(|id| !facts.openable.contains(id)) {
        return Err(Refusal::ArtifactNotFound { reference: missing.reference() });
    }
    if facts.queued >= limits.max_queue {
        return Err(Refusal::MailboxFull { agent: receiver.id.to_string(), limit: limits.max_queue });
    }
    if facts.exchanges > 0 && facts.exchanges >= limits.max_pair_exchanges {
        return Err(Refusal::LimitReached { limit: PAIR_LIMIT, value: limits.max_pair_exchanges });
    }
    let target = introduced_party(&draft.payload, receiver, facts, unknown)?;

    let mut changes = Vec::new();
    if let Some(target) = target.filter(|target| target.id != facts.sender.id) {
        changes.push(Change::ContactAdded(Contact {
            owner: receiver.id.clone(),
            agent: target.id.clone(),
            source: Source::Introduction,
            introduced_by: Some(facts.sender.id.clone()),
        }));
    }
    let first_contact = !to_itself && facts.acquaintance == Acquaintance::New;
    if first_contact {
        changes.push(Change::ContactAdded(Contact {
            owner: receiver.id.clone(),
            agent: facts.sender.id.clone(),
            source: Source::FirstMessage,
            introduced_by: None,
        }));
    }
    for artifact in &facts.openable {
        changes.push(Change::AccessGranted { agent: receiver.id.clone(), artifact: artifact.clone() });
    }

    let in_reply_to = answered_request(&draft, facts);
    let answers = if in_reply_to.is_some() { Answers::ARequest } else { Answers::Nothing };
    // A note to oneself asks for nothing: nobody would answer it.
    let asks =
        !to_itself && draft.answering != Answering::Nothing && draft.payload.message_type.asks(answers);
    // To an agent an answer is an answer; only what the person is told can be provisional.
    let interim = receiver.id.is_user() && !asks && facts.waiting == Waiting::ForOthers;
    let message = Message {
        id: id.clone(),
        task: facts.task.clone(),
        from: Sender::Party(facts.sender.id.clone()),
        from_role: facts.sender.role_name.clone(),
        to: receiver.id.clone(),
        in_reply_to: in_reply_to.clone(),
        expects: if asks { Expects::Answer } else { Expects::Nothing },
        finality: if interim { Finality::Interim } else { Finality::Final },
        introduction: first_contact.then(|| self_introduction(&facts.sender, known)),
        introduced: target.map(describe),
        due_at: draft.due_at,
        body: Body::Payload(draft.payload),
    };
    changes.push(Change::MessageAccepted(Box::new(message)));
    if let Some(request) = in_reply_to.filter(|_| !interim) {
        changes.push(Change::RequestAnswered { request, answer: id });
    }
    Ok(changes)
}

/// A notice of the system. It passes no check, because it needs no contact and nobody wrote it.
pub fn notice(id: MessageId, task: TaskId, to: AgentId, notice: Notice) -> Message {
    Message {
        id,
        task,
        from: Sender::System,
        from_role: String::new(),
        to,
        body: Body::Notice(notice),
        in_reply_to: None,
        expects: Expects::Nothing,
        finality: Finality::Final,
        introduction: None,
        introduced: None,
        due_at: None,
    }
}

/// The person may write to any agent; doing so makes the two contacts.
pub fn introduce_person(agent: &AgentId) -> Vec<Change> {
    let entry = |owner: AgentId, agent: AgentId| {
        Change::ContactAdded(Contact { owner, agent, source: Source::System, introduced_by: None })
    };
    vec![entry(AgentId::user(), agent.clone()), entry(agent.clone(), AgentId::user())]
}

fn check_size(payload: &Payload, limits: &Limits) -> Result<(), Refusal> {
    let characters = payload.to_json_text().chars().count() as u64;
    if characters > limits.max_message_chars {
        return Err(Refusal::LimitReached { limit: "maxMessageChars", value: limits.max_message_chars });
    }
    Ok(())
}

/// Whom an introduction names: one of the introducer's own contacts, or the introducer itself.
fn introduced_party<'a>(
    payload: &Payload,
    receiver: &Party,
    facts: &'a DoorFacts,
    unknown: impl Fn(&str) -> Refusal,
) -> Result<Option<&'a Party>, Refusal> {
    if payload.message_type != MessageType::IntroductionResponse {
        return Ok(None);
    }
    let Some(meant) = payload.introduced() else {
        return Ok(None);
    };
    let target = match contact::find(&facts.contacts, meant) {
        Some(known) => &known.party,
        None if meant.trim() == facts.sender.id.as_str() => &facts.sender,
        None => return Err(unknown(meant)),
    };
    if target.id == receiver.id {
        let problem = Fault::Rule("must be somebody else than the receiver".to_owned());
        return Err(Refusal::InvalidMessage(vec![FieldProblem::new("target_agent", problem)]));
    }
    if target.standing == Standing::Ended {
        return Err(Refusal::AgentTerminated { agent: target.id.to_string() });
    }
    Ok(Some(target))
}

fn answered_request(draft: &Draft, facts: &DoorFacts) -> Option<MessageId> {
    match &draft.answering {
        Answering::This(request) => return Some(request.clone()),
        Answering::Nothing => return None,
        Answering::Oldest => {}
    }
    if !draft.payload.message_type.may_answer() {
        return None;
    }
    let named = draft.payload.field("request_id").map(MessageId::new);
    let open = &facts.open_requests;
    // Whoever asks around passes the id of the first request on: an answer that names it is one to the last.
    let meant = named.and_then(|named| {
        let itself = open.iter().find(|request| request.id == named);
        itself.or_else(|| open.iter().find(|request| request.passes_on.as_ref() == Some(&named)))
    });
    meant.or_else(|| open.first()).map(|request| request.id.clone())
}

fn self_introduction(sender: &Party, known: Option<&KnownParty>) -> SelfIntroduction {
    SelfIntroduction {
        role: sender.role_name.clone(),
        duty: sender.duty(),
        source: known.map_or(Source::System, |known| known.source),
        introduced_by: known.and_then(|known| known.introduced_by.clone()),
    }
}

fn describe(target: &Party) -> Introduced {
    Introduced {
        id: target.id.clone(),
        role_name: target.role_name.clone(),
        interface_spec: target.interface_spec.clone(),
        input: target.capabilities.input.clone(),
        output: target.capabilities.output.clone(),
    }
}
