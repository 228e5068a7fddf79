//! How a message looks to its receiver (contract section 7, seed agent-communication, requirement 10).
//!
//! The header comes from the envelope alone. Whatever the content says, none of its lines can look like one.

mod defuse;

pub(crate) use defuse::in_one_line;
pub use defuse::{defuse, json_line};

use crate::brief::TaskBrief;
use crate::contact::Source;
use crate::id::AgentId;
use crate::message::{Body, Expects, Introduced, Message, MessageType, Payload, SelfIntroduction, Sender};
use crate::text::{TextKey, Texts};
use serde_json::Value;

/// A message in words. Attachments go between the two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentation {
    /// Header, self-introduction and content.
    pub opening: String,
    /// How to answer; nothing for notices and for what the reader wrote to itself.
    pub closing: Option<String>,
}

/// Words a message for its receiver.
pub fn present(message: &Message, texts: &Texts) -> Presentation {
    let payload = match &message.body {
        Body::Notice(notice) => {
            let header = texts.get(TextKey::MessageFromSystem);
            return Presentation {
                opening: format!("{header}\n{}", defuse(&notice.text(texts), texts)),
                closing: None,
            };
        }
        Body::Payload(payload) => payload,
    };
    let mut lines = vec![header(message, texts)];
    if let Some(introduction) = &message.introduction {
        lines.push(self_introduction(introduction, texts));
        if let Some(reason) = payload.field("contact_reason") {
            lines.push(texts.fill(TextKey::MessageContactReason, &[("reason", &defuse(reason, texts))]));
        }
    }
    if let Some(words) = payload.words() {
        lines.push(defuse(words, texts));
    }
    lines.extend(fields_of_type(message, payload, texts));
    let closing = match &message.from {
        Sender::System => None,
        Sender::Party(id) if *id == message.to => None,
        Sender::Party(id) => Some(texts.fill(TextKey::MessageReplyHint, &[("id", id.as_str())])),
    };
    Presentation { opening: lines.join("\n"), closing }
}

fn header(message: &Message, texts: &Texts) -> String {
    match &message.from {
        Sender::System => texts.get(TextKey::MessageFromSystem).to_owned(),
        Sender::Party(id) if id.is_user() => texts.get(TextKey::MessageFromUser).to_owned(),
        Sender::Party(id) => {
            let role = role_name(id, &message.from_role, texts);
            texts.fill(TextKey::MessageFromAgent, &[("role", role), ("id", id.as_str())])
        }
    }
}

/// What a party is called: the person and root have names in the language of the prompts, all others their role's.
pub fn role_name<'a>(id: &AgentId, role: &'a str, texts: &'a Texts) -> &'a str {
    if id.is_user() {
        return texts.get(TextKey::SystemUserRole);
    }
    if id.is_root() { texts.get(TextKey::SystemRootRole) } else { role }
}

fn self_introduction(introduction: &SelfIntroduction, texts: &Texts) -> String {
    let source = match introduction.source {
        Source::Introduction => {
            let introducer = introduction.introduced_by.as_ref().map_or("", AgentId::as_str);
            texts.fill(TextKey::KnownByIntroduction, &[("introducer", introducer)])
        }
        Source::Preset => texts.get(TextKey::KnownByPreset).to_owned(),
        Source::Parent => texts.get(TextKey::KnownByParent).to_owned(),
        Source::Child => texts.get(TextKey::KnownByChild).to_owned(),
        Source::FirstMessage => texts.get(TextKey::KnownByFirstMessage).to_owned(),
        Source::System => texts.get(TextKey::KnownBySystem).to_owned(),
    };
    let duty = in_one_line(&introduction.duty);
    let values = [("role", introduction.role.as_str()), ("duty", &duty), ("source", &source)];
    texts.fill(TextKey::MessageSelfIntroduction, &values)
}

/// The fields that belong to the type, one a line, then all others as JSON.
fn fields_of_type(message: &Message, payload: &Payload, texts: &Texts) -> Vec<String> {
    let mut said = vec!["text", "contact_reason"];
    if payload.field("text").is_none() {
        said.push("content");
    }
    let mut lines = Vec::new();
    match payload.message_type {
        MessageType::TaskAssignment => {
            said.push("taskBrief");
            if let Ok(brief) = TaskBrief::parse(payload.fields.get("taskBrief")) {
                lines.extend(brief_lines(&brief, texts));
            }
        }
        MessageType::IntroductionRequest => said.extend(["reason", "required_capability"]),
        MessageType::IntroductionResponse => {
            said.extend(["usage_hint", "reason", "target_agent"]);
            let known = introduced(message.introduced.as_ref());
            lines.push(format!("target_agent: {}", defuse(&known, texts)));
        }
        MessageType::General
        | MessageType::StatusReport
        | MessageType::CollaborationRequest
        | MessageType::CollaborationResponse => {}
    }
    for name in said.iter().filter(|name| matches!(**name, "reason" | "required_capability" | "usage_hint")) {
        if let Some(value) = payload.field(name) {
            lines.push(format!("{name}: {}", defuse(value, texts)));
        }
    }
    if payload.message_type == MessageType::IntroductionRequest && message.expects == Expects::Answer {
        // An introducer that asks around passes on the id of the first request, so that the answer finds its way back.
        let id = payload.field("request_id").unwrap_or(message.id.as_str());
        lines.push(texts.fill(TextKey::MessageRequestId, &[("id", &defuse(id, texts))]));
        said.push("request_id");
    }
    let others =
        payload.fields.iter().filter(|(name, value)| !said.contains(&name.as_str()) && !value.is_null());
    lines.extend(others.map(|(name, value)| defuse(&format!("{name}: {}", json_line(value)), texts)));
    lines
}

fn introduced(introduced: Option<&Introduced>) -> String {
    introduced.map_or_else(|| "null".to_owned(), json_line)
}

/// The lines of a brief, as they stand in a message and in the system prompt.
pub fn brief_lines(brief: &TaskBrief, texts: &Texts) -> Vec<String> {
    let line = |key: TextKey, value: &str| texts.fill(key, &[("value", &defuse(value, texts))]);
    let constraints = match brief.constraints.as_slice() {
        [] => texts.get(TextKey::BriefNoConstraints).to_owned(),
        constraints => constraints.join("; "),
    };
    let mut lines = vec![
        line(TextKey::BriefObjective, &brief.objective),
        line(TextKey::BriefConstraints, &constraints),
        line(TextKey::BriefInputs, &in_words(&brief.inputs)),
        line(TextKey::BriefOutputs, &in_words(&brief.outputs)),
        line(TextKey::BriefCompletionCriteria, &in_words(&brief.completion_criteria)),
    ];
    let collaborators: Vec<String> = brief
        .collaborators
        .iter()
        .map(|collaborator| format!("{}: {}", collaborator.agent_id, collaborator.description))
        .collect();
    if !collaborators.is_empty() {
        lines.push(line(TextKey::BriefCollaborators, &collaborators.join("; ")));
    }
    let references: Vec<String> = brief.references.iter().map(in_words).collect();
    if !references.is_empty() {
        lines.push(line(TextKey::BriefReferences, &references.join("; ")));
    }
    if let Some(priority) = &brief.priority {
        lines.push(line(TextKey::BriefPriority, &in_words(priority)));
    }
    lines
}

fn in_words(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => json_line(other),
    }
}

#[cfg(test)]
mod tests;
