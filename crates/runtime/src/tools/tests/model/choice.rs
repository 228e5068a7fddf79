//! Converts the drawn numbers into ids and arguments. Each number picks one of the things that exist in the reference
//! model.

use super::operation::{
    Actor, Brief, ClosingText, Flaw, Hire, Named, Payload, ROLE_NAMES, RoleMeant, Which, Whom,
};
use super::society::{Code, DraftPayload, Society, Wish};
use crate::testing;
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, TaskId};
use polity_society::message::{Finality, MessageType};
use polity_society::name::Name;
use polity_store::Conversation;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The two tasks. Root and the person serve both.
pub(super) const TASKS: [&str; 2] = ["t-1", "t-2"];

/// The maximum number of characters of a message.
pub(super) const MAX_MESSAGE_CHARS: usize = 2000;

/// The parties that may perform an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Callers {
    Agents,
    AgentsAndThePerson,
}

fn pick<T>(of: &[T], number: u8) -> Option<&T> {
    of.get(usize::from(number) % of.len().max(1))
}

/// Picks a conversation that fulfils a condition.
pub(super) fn pick_conversation(
    society: &Society,
    number: u8,
    holds: impl Fn(&Conversation) -> bool,
) -> Option<Conversation> {
    let mut conversations = Vec::new();
    for agent in society.everybody.iter().filter(|id| !id.is_user() && society.is_live(id)) {
        for task in TASKS.map(TaskId::new) {
            let serves = society.rows.agents[agent].task.as_ref().is_none_or(|own| *own == task);
            let conversation = Conversation { agent: agent.clone(), task };
            if serves && holds(&conversation) {
                conversations.push(conversation);
            }
        }
    }
    pick(&conversations, number).cloned()
}

pub(super) fn actor(society: &Society, actor: Actor, callers: Callers) -> Conversation {
    let number = match actor {
        Actor::InTurn(number) => {
            let turns = society.open_turns();
            if let Some(turn) = pick(&turns, number) {
                return Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
            }
            number
        }
        Actor::Anybody(number) => number,
        Actor::Person(number) => {
            let task = TaskId::new(TASKS[usize::from(number) % TASKS.len()]);
            return Conversation { agent: AgentId::user(), task };
        }
    };
    let mut live: Vec<&AgentId> = society.everybody.iter().filter(|id| society.is_live(id)).collect();
    if callers == Callers::Agents {
        live.retain(|id| !id.is_user());
    }
    // If nobody is picked, take root, which always exists.
    let agent = pick(&live, number / 2).map_or_else(AgentId::root, |id| (*id).clone());
    let own = society.rows.agents[&agent].task.clone();
    Conversation { agent, task: own.unwrap_or_else(|| TaskId::new(TASKS[usize::from(number % 2)])) }
}

/// Returns the text with which the actor names a party: an id or a role name.
pub(super) fn whom(society: &Society, by: &Conversation, whom: Whom) -> String {
    let contact = |number| {
        let contacts: BTreeSet<&AgentId> =
            society.contacts(by).into_iter().map(|contact| &contact.agent).collect();
        // Ids may differ between runs, but agents are hired in the same order in every run. So sort the contacts by
        // this order.
        let in_order: Vec<_> = society.everybody.iter().filter(|id| contacts.contains(id)).collect();
        pick(&in_order, number).map(|id| (*id).clone())
    };
    let id = match whom {
        Whom::Contact(number) => contact(number),
        Whom::RoleOfContact(number) => {
            return contact(number).map_or_else(String::new, |id| society.role_name(&id));
        }
        Whom::Asker(number) => {
            let requests = society.open_requests(by);
            pick(&requests, number).map(|request| request.sender.clone()).or_else(|| contact(number))
        }
        Whom::Descendant(number) => pick(&society.descendants(by), number).cloned(),
        Whom::Anybody(number) => pick(&society.everybody, number).cloned(),
        Whom::RoleOfAnybody(number) => {
            return pick(&society.everybody, number).map_or_else(String::new, |id| society.role_name(id));
        }
        Whom::Itself => Some(by.agent.clone()),
        Whom::Nobody => None,
    };
    id.map_or_else(|| "nobody-1".to_owned(), |id| id.to_string())
}

/// Returns the artifact that the actor means.
pub(super) fn which(society: &Society, by: &AgentId, which: Which) -> ArtifactId {
    let artifact = match which {
        Which::Openable(number) => pick(&society.openable(by), number).map(|id| (*id).clone()),
        Which::Any(number) => {
            let all: Vec<_> = society.rows.artifacts.keys().collect();
            pick(&all, number).map(|id| (*id).clone())
        }
        Which::Missing => None,
    };
    artifact.unwrap_or_else(|| ArtifactId::new("nowhere"))
}

pub(super) fn role_name(number: u8) -> &'static str {
    // The last name is invalid, so the code picks it less often than the other names.
    let number = usize::from(number) % (3 * ROLE_NAMES.len() - 2);
    if number < ROLE_NAMES.len() { ROLE_NAMES[number] } else { ROLE_NAMES[number % (ROLE_NAMES.len() - 1)] }
}

/// Returns the id or name of the role that the actor means.
pub(super) fn role(society: &Society, by: &Conversation, role: RoleMeant) -> String {
    match role {
        RoleMeant::Usable(number) => {
            let usable = |id: &&RoleId| matches!(society.usable_role(by, id.as_str()), Ok(Some(_)));
            let usable: Vec<&RoleId> = society.all_roles.iter().filter(usable).collect();
            let name = pick(&usable, number).map(|id| society.rows.roles[*id].name.clone());
            name.unwrap_or_else(|| role_name(number).to_owned())
        }
        RoleMeant::Id(number) => {
            pick(&society.all_roles, number).map_or_else(|| "role-none".to_owned(), ToString::to_string)
        }
        RoleMeant::Name(number) => role_name(number).to_owned(),
    }
}

/// Returns a text, and the artifacts that it names.
fn words(
    society: &Society,
    by: &AgentId,
    number: u8,
    mentions: Option<Which>,
) -> (String, BTreeSet<ArtifactId>) {
    let named: BTreeSet<ArtifactId> =
        mentions.into_iter().map(|mentioned| which(society, by, mentioned)).collect();
    let mut words = format!("看{number}");
    for artifact in &named {
        words.push_str(&format!("（见 {}）", artifact.reference()));
    }
    (words, named)
}

/// Returns the task brief that the actor writes, and the hiring that the reference model should perform.
pub(super) fn hire(society: &Society, by: &Conversation, hire: &Hire) -> (Value, Wish) {
    let Brief { flaw, collaborators, mentions } = &hire.brief;
    let (words, named) = words(society, &by.agent, 0, *mentions);
    let collaborators: Vec<String> =
        collaborators.iter().map(|collaborator| whom(society, by, *collaborator)).collect();
    let mut brief = testing::brief();
    brief["inputs"] = json!(words);
    brief["collaborators"] = json!(collaborators);
    if *flaw != Flaw::None {
        brief["outputs"] = json!("");
    }
    let name = hire.name.map(|name| Name::parse(name).map(|name| name.to_string()).map_err(drop));
    let wish = Wish {
        role: role(society, by, hire.role),
        // If a number picks no contact, the id of the collaborator is empty. A brief with such a collaborator is
        // invalid.
        brief_is_whole: *flaw == Flaw::None && collaborators.iter().all(|id| !id.is_empty()),
        collaborators,
        named,
        name,
    };
    (brief, wish)
}

/// Returns the payload that the actor writes, as JSON. Also returns the payload in the form of the reference model, or
/// a refusal code if the payload is invalid. If the message is sent together with a hiring, `lent` contains what the
/// brief of that hiring says; an assignment then needs no brief of its own.
pub(super) fn payload(
    society: &Society,
    by: &Conversation,
    payload: &Payload,
    lent: Option<&Wish>,
) -> (Value, Result<DraftPayload, Code>) {
    let attachments: Vec<ArtifactId> =
        payload.attachments.iter().map(|attached| which(society, &by.agent, *attached)).collect();
    let (mut words, mut named) = words(society, &by.agent, payload.words, payload.mentions);
    if payload.flaw == Flaw::Long {
        words.push_str(&"长".repeat(MAX_MESSAGE_CHARS));
    }
    let mut written = json!({"text": words});
    let words_written = words;
    let mut is_whole = payload.flaw != Flaw::Incomplete;
    if payload.kind != MessageType::General {
        written["message_type"] = json!(payload.kind);
    }
    if !attachments.is_empty() {
        written["attachments"] = attachments.iter().map(|id| Value::from(id.reference())).collect();
    }
    let requests: Vec<MessageId> =
        payload.requests.iter().map(|meant| named_request(society, by, *meant)).collect();
    match requests.as_slice() {
        [] => {}
        [one] => written["request_id"] = json!(one),
        several => written["request_id"] = json!(several),
    }
    let mut target = None;
    match payload.kind {
        MessageType::TaskAssignment => match lent {
            Some(wish) => named.extend(wish.named.iter().cloned()),
            None if is_whole => written["taskBrief"] = testing::brief(),
            None => {}
        },
        MessageType::IntroductionRequest if is_whole => {
            written["reason"] = json!("有图");
            written["required_capability"] = json!("vision");
        }
        MessageType::IntroductionResponse if is_whole => {
            target = payload.target.map(|target| whom(society, by, target));
            written["target_agent"] = target.as_ref().map_or(Value::Null, |id| json!({"id": id}));
            written["usage_hint"] = json!("附上图片");
        }
        // These message types have no required field that could be left out. So write an unknown type to make the
        // payload invalid.
        MessageType::General
        | MessageType::StatusReport
        | MessageType::CollaborationRequest
        | MessageType::CollaborationResponse
            if !is_whole =>
        {
            written["message_type"] = json!("gossip");
        }
        _ => {}
    }
    // An assignment that is sent together with a hiring needs no brief of its own.
    is_whole |= payload.kind == MessageType::TaskAssignment && lent.is_some();
    named.extend(attachments.iter().cloned());
    let mut unique = Vec::new();
    for id in attachments {
        if !unique.contains(&id) {
            unique.push(id);
        }
    }
    let letter = DraftPayload {
        kind: payload.kind,
        attachments: unique,
        named,
        target,
        requests,
        words: words_written,
        is_long: payload.flaw == Flaw::Long,
    };
    (written, if is_whole { Ok(letter) } else { Err("invalid_message") })
}

/// Returns the id that the sender writes in `request_id`.
fn named_request(society: &Society, by: &Conversation, meant: Named) -> MessageId {
    let open = society.open_requests(by);
    let id = match meant {
        Named::Open(number) => pick(&open, number).map(|request| request.id.clone()),
        Named::PassedOn(number) => {
            let passed_on: Vec<MessageId> =
                open.iter().filter_map(|request| request.on_behalf_of.clone()).collect();
            pick(&passed_on, number).map(|first| {
                // If the number is even and `first` was made on behalf of another request, take that other request.
                let further = society.rows.messages[first].on_behalf_of.as_ref();
                further.filter(|_| number % 2 == 0).unwrap_or(first).clone()
            })
        }
        Named::Any(number) => {
            let all: Vec<&MessageId> = society.rows.messages.keys().collect();
            pick(&all, number).map(|id| (*id).clone())
        }
        Named::Missing => None,
    };
    id.unwrap_or_else(|| MessageId::new("m-none"))
}

/// Picks a request whose receiver is in a turn and whose asker is at rest.
/// The asker must hold a closing text, or must have sent an interim message to the person.
/// Returns the receiver's conversation, the request, and the asker's conversation.
pub(super) fn overtaking(society: &Society, number: u8) -> Option<(Conversation, MessageId, Conversation)> {
    let mut all = Vec::new();
    for turn in society.open_turns() {
        let asked = Conversation { agent: turn.agent.clone(), task: turn.task.clone() };
        for request in society.open_requests(&asked) {
            let asker = Conversation { agent: request.sender.clone(), task: request.task.clone() };
            let holds = society.rows.notes.values().any(|note| note.agent == asker.agent);
            let has_told = society
                .rows
                .messages
                .values()
                .any(|message| message.sender == asker.agent && message.finality == Finality::Interim);
            let is_at_rest = !asker.agent.is_user() && society.open_turn(&asker).is_none();
            if is_at_rest && society.is_live(&asker.agent) && (holds || has_told) {
                all.push((asked.clone(), request.id.clone(), asker));
            }
        }
    }
    pick(&all, number).cloned()
}

/// Returns the closing text that was drawn, as a payload; `None` if the turn ends without a text.
pub(super) fn closing_text(society: &Society, by: &Conversation, said: ClosingText) -> Option<DraftPayload> {
    match said {
        ClosingText::Silence => None,
        ClosingText::Words(number, mentions) => {
            Some(DraftPayload::plain(words(society, &by.agent, number, mentions).0))
        }
        ClosingText::Again => {
            let mut newest_first = society.rows.messages.values().rev();
            let own = newest_first.find(|message| message.sender == by.agent && message.task == by.task);
            let words = own.and_then(|message| message.words.as_ref());
            // Add white space around the text. The rules must still treat the text as a repetition.
            Some(DraftPayload::plain(
                words.map_or_else(|| "看".to_owned(), |words| format!("\n{} ", words.trim())),
            ))
        }
    }
}
