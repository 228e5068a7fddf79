//! The door: the one place where drafts of all parties become messages or are refused (contract sections 6 and 7). The
//! function [`admit`] is the door.

use crate::agent::{Party, Standing};
use crate::change::Change;
use crate::contact::{self, Contact, KnownParty, Source};
use crate::id::{AgentId, ArtifactId, MessageId, TaskId};
use crate::limits::Limits;
use crate::message::{
    Answers, Bearing, Body, Expects, Finality, Introduced, Message, MessageType, Payload, SelfIntroduction,
    Sender,
};
use crate::notice::Notice;
use crate::problem::{Fault, FieldProblem};
use crate::refusal::{ContactLine, Refusal};
use crate::rules::{LastWord, OpenRequest, Pending, Subject, named};
use crate::time::Timestamp;
use std::collections::BTreeSet;

/// A message that somebody wants to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    /// The receiver: an id, or the name of a contact's role.
    pub to: String,
    /// What the message says.
    pub payload: Payload,
    /// How [`admit`] finds the requests that the message answers.
    pub answering: Answering,
    /// When the message is due; `None` means at once.
    pub due_at: Option<Timestamp>,
}

/// How [`admit`] finds the requests that a draft answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answering {
    /// The draft answers the requests that its `request_id` names. If it names none, the draft answers the oldest open
    /// request that the receiver made to the sender.
    AsWritten,
    /// The draft is a closing text, which asks for nothing. The caller specifies what the text answers or follows.
    Closing(Subject),
}

/// Whether the receiver has the sender among its contacts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acquaintance {
    /// The receiver has the sender among its contacts.
    Known,
    /// The receiver does not have the sender among its contacts.
    New,
}

/// The facts that [`admit`] needs for its decision about a draft.
#[derive(Clone, Debug)]
pub struct DoorFacts {
    /// The task in which the draft is sent.
    pub task: TaskId,
    /// The party that sends the draft.
    pub sender: Party,
    /// The sender's contact registry.
    pub contacts: Vec<KnownParty>,
    /// Whether the receiver knows the sender.
    pub acquaintance: Acquaintance,
    /// The open requests that the sender has received and read, from all askers, oldest first.
    pub open_requests: Vec<OpenRequest>,
    /// The request that the sender works on, if there is one.
    pub works_on: Option<MessageId>,
    /// What the sender waits for: answers, delayed messages to itself, and background commands.
    pub pending: Vec<Pending>,
    /// Whether a message to the person is final even if the sender still waits for other parties.
    pub last_word: LastWord,
    /// Number of messages in the receiver's mailbox.
    pub queued: u64,
    /// How often the sender and the receiver have answered each other in a row. Other work of one of them ends the row.
    pub exchanges: u64,
    /// The artifacts that the payload mentions and the sender may open.
    pub openable: BTreeSet<ArtifactId>,
}

/// The name in `app.json` of the limit on exchanges between two agents.
pub const PAIR_LIMIT: &str = "maxPairExchanges";

/// The result for a draft that is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Admitted {
    /// The changes that need to be written.
    pub changes: Vec<Change>,
    /// The ids in `request_id` that match no open request.
    pub ignored: Vec<MessageId>,
}

/// Accepts a draft as a message, or refuses it.
pub fn admit(draft: Draft, facts: &DoorFacts, id: MessageId, limits: &Limits) -> Result<Admitted, Refusal> {
    let unknown = |meant: &str| Refusal::UnknownContact {
        meant: meant.to_owned(),
        contacts: contact::nearest_first(&facts.contacts, meant).into_iter().map(ContactLine::from).collect(),
    };
    let known = contact::find(&facts.contacts, &draft.to)?;
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

    let relation =
        if to_itself { Relation::to_oneself(facts) } else { relation(&draft, facts, &receiver.id) };
    let answers = if relation.in_reply_to.is_empty() { Answers::Nothing } else { Answers::ARequest };
    // A message of an agent to itself asks for nothing, because nobody would answer it.
    // A closing text asks for nothing either.
    let asks =
        !to_itself && draft.answering == Answering::AsWritten && draft.payload.message_type.asks(answers);
    let on_behalf_of = if asks { on_behalf_of(&draft.payload, facts) } else { None };
    let interim = receiver.id.is_user() && !asks && is_interim(&draft, facts, &relation);
    let message = Message {
        id: id.clone(),
        task: facts.task.clone(),
        from: Sender::Party(facts.sender.id.clone()),
        from_role: facts.sender.role_name.clone(),
        to: receiver.id.clone(),
        in_reply_to: relation.in_reply_to,
        about: relation.about,
        on_behalf_of,
        expects: if asks { Expects::Answer } else { Expects::Nothing },
        finality: if interim { Finality::Interim } else { Finality::Final },
        introduction: first_contact.then(|| self_introduction(&facts.sender, known)),
        introduced: target.map(describe),
        due_at: draft.due_at,
        body: Body::Payload(draft.payload),
    };
    changes.push(Change::MessageAccepted(Box::new(message)));
    if !interim {
        let answered = |request| Change::RequestAnswered { request, answer: id.clone() };
        changes.extend(relation.answers.into_iter().map(answered));
    }
    Ok(Admitted { changes, ignored: relation.ignored })
}

/// How a message relates to the requests that its receiver made.
#[derive(Debug, Default)]
struct Relation {
    /// The requests that the message answers or follows.
    in_reply_to: Vec<MessageId>,
    /// The requests in `in_reply_to` that are still open. The accepted message answers them.
    answers: Vec<MessageId>,
    /// The request that the message is about.
    about: Option<MessageId>,
    /// The ids in `request_id` that match no open request.
    ignored: Vec<MessageId>,
}

impl Relation {
    /// Returns the relation of a message that an agent sends to itself.
    /// The message is about the request that the agent works on.
    fn to_oneself(facts: &DoorFacts) -> Self {
        Self { about: facts.works_on.clone(), ..Self::default() }
    }
}

fn relation(draft: &Draft, facts: &DoorFacts, receiver: &AgentId) -> Relation {
    match &draft.answering {
        Answering::Closing(Subject::Open(requests)) => {
            Relation { in_reply_to: requests.clone(), answers: requests.clone(), ..Relation::default() }
        }
        // The request is answered already, so this message is a supplement. A supplement names the request both in
        // `in_reply_to` and in `about`.
        Answering::Closing(Subject::Settled(request)) => Relation {
            in_reply_to: vec![request.clone()],
            about: Some(request.clone()),
            ..Relation::default()
        },
        Answering::Closing(Subject::Nothing) => Relation::default(),
        Answering::AsWritten => as_written(&draft.payload, facts, receiver),
    }
}

fn as_written(payload: &Payload, facts: &DoorFacts, receiver: &AgentId) -> Relation {
    let bearing = payload.message_type.bearing();
    let has_asked = facts.open_requests.iter().any(|request| request.from == *receiver);
    let answers = if has_asked { Answers::ARequest } else { Answers::Nothing };
    // The ids in `request_id` mean different things. An answer names the requests that it answers, and the receiver
    // must have made them. A new request names the request on behalf of which it is made, and any party may have made
    // that one.
    let asks = payload.message_type.asks(answers);
    let open = facts.open_requests.iter();
    let among = open.filter(|request| asks || request.from == *receiver);
    let mut meant: Vec<MessageId> = Vec::new();
    let mut ignored = Vec::new();
    for id in payload.named_requests() {
        match named(among.clone(), &id) {
            Some(request) if meant.contains(&request.id) => {}
            Some(request) => meant.push(request.id.clone()),
            None => ignored.push(id),
        }
    }
    if asks {
        return Relation { ignored, ..Relation::default() };
    }
    if meant.is_empty() {
        meant.extend(among.clone().next().map(|request| request.id.clone()));
    }
    meant.sort();
    match bearing {
        Bearing::Reports => Relation { about: meant.into_iter().next(), ignored, ..Relation::default() },
        Bearing::Answers | Bearing::None => {
            Relation { in_reply_to: meant.clone(), answers: meant, about: None, ignored }
        }
    }
}

/// Returns the earlier request on behalf of which the sender makes a new request: the sender needs the answer to the
/// new request for its own answer to the earlier one. The earlier request is the open request that the sender names in
/// `request_id`. If the sender names none, it is the request that the sender works on.
fn on_behalf_of(payload: &Payload, facts: &DoorFacts) -> Option<MessageId> {
    let named = payload.named_requests().into_iter().find_map(|id| named(facts.open_requests.iter(), &id));
    named.map(|request| request.id.clone()).or_else(|| facts.works_on.clone())
}

/// Returns whether the message is interim: the person will get a further message later. A report is interim. Any other
/// message is interim if the sender still waits for something that it needs for a request that the message answers, or
/// for the request that the sender works on.
fn is_interim(draft: &Draft, facts: &DoorFacts, relation: &Relation) -> bool {
    if facts.last_word == LastWord::Yes {
        return false;
    }
    let reports =
        draft.answering == Answering::AsWritten && draft.payload.message_type.bearing() == Bearing::Reports;
    let waits = facts.pending.iter().any(|pending| {
        let of = pending.on_behalf_of.as_ref();
        of.is_some_and(|of| relation.in_reply_to.contains(of) || facts.works_on.as_ref() == Some(of))
    });
    reports || waits
}

/// Makes the message for a notice of the system. The door does not check a notice, because no party wrote it.
/// `about` is the request that the notice is about. The reader of the notice made this request or must answer it.
pub fn notice(id: MessageId, task: TaskId, to: AgentId, notice: Notice, about: Option<MessageId>) -> Message {
    Message {
        id,
        task,
        from: Sender::System,
        from_role: String::new(),
        to,
        body: Body::Notice(notice),
        in_reply_to: Vec::new(),
        about,
        on_behalf_of: None,
        expects: Expects::Nothing,
        finality: Finality::Final,
        introduction: None,
        introduced: None,
        due_at: None,
    }
}

/// Makes the person and an agent contacts of each other. The person may write to any agent.
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

/// Returns the party that an introduction names: one of the sender's contacts, or the sender itself.
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
    let target = match contact::find(&facts.contacts, meant)? {
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

#[cfg(test)]
mod tests;
