//! How a message is presented to its receiver (contract section 7; seed "agent-communication", requirement 10).
//!
//! The header contains only facts that the system recorded, such as the sender. No line of the content can look like
//! a header.

pub(crate) use crate::brief::TaskBrief;
use crate::contact::Source;
use crate::defuse::{defuse, in_one_line, json_line};
use crate::id::{AgentId, MessageId};
use crate::message::{
    Body, Expects, Introduced, Message, MessageType, Payload, RESULT, RESULT_SCHEMA, SelfIntroduction, Sender,
};
use crate::text::{TextKey, Texts};
use crate::written::{in_words, says_something};
use serde_json::Value;
use std::collections::BTreeMap;

/// The text that the receiver of a message reads, in two parts. The attachments are placed between the two parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Presentation {
    /// Header, kind of message, self-introduction and content.
    pub opening: String,
    /// How to answer; present only for requests.
    pub closing: Option<String>,
}

/// The first words of requests, by the id of the request.
pub type FirstWords = BTreeMap<MessageId, String>;

/// Maximum number of characters that a message quotes from a request.
const QUOTED_CHARS: usize = 60;

/// Makes the text that the receiver of a message reads.
/// `asked` contains the first words of the requests that the message answers or is about.
pub fn present(message: &Message, asked: &FirstWords, texts: &Texts) -> Presentation {
    let mut lines = vec![header(message, texts)];
    let payload = match &message.body {
        Body::Notice(notice) => {
            lines.push(defuse(&notice.text(texts), texts));
            return Presentation { opening: lines.join("\n"), closing: None };
        }
        Body::Payload(payload) => payload,
    };
    lines.push(kind(message, payload, asked, texts));
    lines.extend(content(message, payload, texts));
    let closing = match (&message.from, message.expects) {
        (Sender::Party(id), Expects::Answer) => {
            Some(texts.fill(TextKey::MessageReplyHint, &[("id", id.as_str())]))
        }
        (Sender::Party(_), Expects::Nothing) | (Sender::System, _) => None,
    };
    Presentation { opening: lines.join("\n"), closing }
}

/// Returns the content of a message in words, without the header, the kind of message and the hint how to answer.
pub fn said(message: &Message, texts: &Texts) -> String {
    match &message.body {
        Body::Notice(notice) => defuse(&notice.text(texts), texts),
        Body::Payload(payload) => content(message, payload, texts).join("\n"),
    }
}

fn content(message: &Message, payload: &Payload, texts: &Texts) -> Vec<String> {
    let mut lines = Vec::new();
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
    lines
}

/// Returns the line with the kind of message. If the message is an answer or a report, it belongs to requests of the
/// reader, and the line names them.
fn kind(message: &Message, payload: &Payload, asked: &FirstWords, texts: &Texts) -> String {
    let quoted = |ids: &[MessageId]| {
        let each = ids.iter().map(|id| {
            let words = asked.get(id).map_or("", String::as_str);
            texts.fill(TextKey::MessageQuoted, &[("id", id.as_str()), ("words", &defuse(words, texts))])
        });
        each.collect::<Vec<_>>().join(", ")
    };
    let named = |key: TextKey, ids: &[MessageId]| texts.fill(key, &[("requests", &quoted(ids))]);
    if message.expects == Expects::Answer {
        let values = [("kind", payload.message_type.as_str()), ("id", message.id.as_str())];
        return texts.fill(TextKey::MessageKindRequest, &values);
    }
    if message.from == Sender::Party(message.to.clone()) {
        return texts.get(TextKey::MessageKindNote).to_owned();
    }
    match (message.in_reply_to.as_slice(), &message.about) {
        ([], None) => texts.get(TextKey::MessageKindInformation).to_owned(),
        ([], Some(about)) => named(TextKey::MessageKindReport, std::slice::from_ref(about)),
        (answered, Some(_)) => named(TextKey::MessageKindSupplement, answered),
        (answered, None) => named(TextKey::MessageKindAnswer, answered),
    }
}

/// Returns the first words of a message in one line. Later messages quote a request by these words.
pub fn first_words(message: &Message, texts: &Texts) -> String {
    let said = match &message.body {
        Body::Payload(payload) => {
            payload.words().map_or_else(|| content(message, payload, texts).join(" "), str::to_owned)
        }
        Body::Notice(notice) => notice.text(texts),
    };
    let line = in_one_line(&said);
    let mut characters = line.chars();
    let mut words: String = characters.by_ref().take(QUOTED_CHARS).collect();
    if characters.next().is_some() {
        words.push('…');
    }
    words
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

/// Returns the role name that readers see for a party. The person and root have names in the language of the prompts.
/// Every other party has the name of its role.
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

/// Returns the lines below the text of a message. If the content is not text, it comes first. Then comes each field of
/// the message type, on its own line. All other fields follow as JSON.
fn fields_of_type(message: &Message, payload: &Payload, texts: &Texts) -> Vec<String> {
    let mut said = vec!["text", "content"];
    let mut lines = Vec::new();
    // The field `checked_result` repeats the content as JSON, so it gets no line of its own.
    said.push(RESULT);
    if let Some((name, value)) = payload.content() {
        if !value.is_string() {
            lines.push(defuse(&json_line(value), texts));
        }
        if name == "text" && payload.fields.get("content").is_some_and(says_something) {
            said.retain(|name| *name != "content");
        }
    }
    // At first contact, the self-introduction already shows the reason for the contact.
    if message.introduction.is_some() && payload.field("contact_reason").is_some() {
        said.push("contact_reason");
    }
    let of_type: &[&'static str] = match payload.message_type {
        MessageType::TaskAssignment => {
            if let Ok(brief) = TaskBrief::parse(payload.fields.get("taskBrief")) {
                said.push("taskBrief");
                lines.extend(brief_lines(&brief, texts));
            }
            &[]
        }
        MessageType::IntroductionRequest => &["reason", "required_capability"],
        MessageType::IntroductionResponse => {
            said.push("target_agent");
            let known = introduced(message.introduced.as_ref());
            lines.push(format!("target_agent: {}", defuse(&known, texts)));
            &["usage_hint", "reason"]
        }
        MessageType::General
        | MessageType::StatusReport
        | MessageType::CollaborationRequest
        | MessageType::CollaborationResponse => &[],
    };
    for name in of_type {
        if let Some(value) = payload.field(name) {
            said.push(name);
            lines.push(format!("{name}: {}", defuse(value, texts)));
        }
    }
    if !payload.named_requests().is_empty() {
        // The second line of the message already names the requests that the field `request_id` lists.
        said.push("request_id");
    }
    if let Some(schema) = payload.result_schema().filter(|_| payload.fields.contains_key(RESULT_SCHEMA)) {
        said.push(RESULT_SCHEMA);
        lines.push(result_schema(&schema, texts));
    }
    let others =
        payload.fields.iter().filter(|(name, value)| !said.contains(&name.as_str()) && !value.is_null());
    lines.extend(others.map(|(name, value)| defuse(&format!("{name}: {}", json_line(value)), texts)));
    lines
}

fn introduced(introduced: Option<&Introduced>) -> String {
    introduced.map_or_else(|| "null".to_owned(), json_line)
}

/// Returns the lines of a brief, for a message or the system prompt.
pub fn brief_lines(brief: &TaskBrief, texts: &Texts) -> Vec<String> {
    let line = |key: TextKey, value: &str| texts.fill(key, &[("value", &defuse(value, texts))]);
    let mut lines = vec![line(TextKey::BriefObjective, &brief.objective)];
    if brief.constraints.is_empty() {
        lines.push(line(TextKey::BriefConstraints, texts.get(TextKey::BriefNoConstraints)));
    } else {
        lines.push(line(TextKey::BriefConstraints, "").trim_end().to_owned());
        lines.extend(brief.constraints.iter().map(|constraint| defuse(&format!("- {constraint}"), texts)));
    }
    lines.push(line(TextKey::BriefInputs, &in_words(&brief.inputs)));
    lines.push(line(TextKey::BriefOutputs, &in_words(&brief.outputs)));
    lines.push(line(TextKey::BriefCompletionCriteria, &in_words(&brief.completion_criteria)));
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
    lines.extend(brief.more.iter().map(|(name, value)| match value {
        Value::Object(_) if name == RESULT_SCHEMA => result_schema(value, texts),
        value => defuse(&format!("{name}: {}", in_words(value)), texts),
    }));
    lines
}

fn result_schema(schema: &Value, texts: &Texts) -> String {
    texts.fill(TextKey::MessageResultSchema, &[("schema", &defuse(&json_line(schema), texts))])
}

#[cfg(test)]
mod tests;
