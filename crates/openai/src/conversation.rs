//! A client sends the whole conversation with each request. This module finds the earlier messages and the current
//! question in the conversation, and computes the fingerprints that identify the task. Does no I/O.
//!
//! A conversation is the list of the messages of user and assistant. `system` and `developer` messages are not part of
//! the conversation, because clients write changing facts, such as the date, into them. The current question consists
//! of the person's messages after the last `assistant` message. If another model has called tools, the conversation can
//! end with the results of these tools. Then the question is the person's last message before the results, and all other
//! messages count as earlier.

use crate::part::{self, Attached};
use crate::problem::Problem;
use polity_society::id::AgentId;
use serde_json::{Value, json};
use std::ops::Range;
use strum::{EnumString, IntoStaticStr};

/// The author of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr, EnumString)]
#[strum(serialize_all = "lowercase")]
pub(crate) enum Speaker {
    User,
    /// The agent or model that answers.
    Assistant,
    /// A tool of the client, which a model outside the society has called.
    Tool,
}

/// The meaning of the field `role` of a message in a request body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// The message instructs the model.
    Instructs,
    /// The message is part of the conversation.
    Speaks(Speaker),
}

impl Speaker {
    /// Returns the meaning of a role, or `None` for an unknown role.
    pub(crate) fn of_role(role: &str) -> Option<Role> {
        match role {
            "system" | "developer" => Some(Role::Instructs),
            "function" => Some(Role::Speaks(Self::Tool)),
            name => name.parse().ok().map(Role::Speaks),
        }
    }

    fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A message of the conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChatMessage {
    pub(crate) speaker: Speaker,
    pub(crate) text: String,
    pub(crate) attached: Vec<Attached>,
}

impl ChatMessage {
    /// Creates a message with a normalized text. The normalized text is compared with other texts and sent to the
    /// agent.
    pub(crate) fn new(speaker: Speaker, text: &str, attached: Vec<Attached>) -> Self {
        Self { speaker, text: normal(text), attached }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.attached.is_empty()
    }
}

/// A conversation that contains a current question of the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// The client's instructions for the model.
    pub(crate) instructions: String,
    /// The fingerprint of the earlier conversation. It is known here only if the client sends the id of the last
    /// response instead of the earlier messages.
    pub(crate) previous: Option<String>,
    said: Vec<ChatMessage>,
    /// The part of `said` that contains the current question; never empty.
    asked: Range<usize>,
}

/// The two parties of a conversation. If two conversations have the same messages but different parties, they are
/// different conversations.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between<'a> {
    /// The agent that answers.
    pub(crate) agent: &'a AgentId,
    /// The name that the client gives to the person who asks. It is empty if the client gives no name.
    pub(crate) person: &'a str,
}

impl Conversation {
    /// Parses the messages of a request to `/v1/chat/completions`.
    pub(crate) fn read(messages: &[Value]) -> Result<Self, Problem> {
        let mut instructions: Vec<String> = Vec::new();
        let mut said = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            match one(message, &format!("messages[{index}]"))? {
                Read::Instructions(text) => instructions.push(text),
                Read::Message(words) => said.push(words),
            }
        }
        Self::new(&instructions, said, "messages")
    }

    /// Creates a conversation from messages. `at` is the name of the body's field that contains the messages; errors
    /// show this name.
    pub(crate) fn new(instructions: &[String], said: Vec<ChatMessage>, at: &str) -> Result<Self, Problem> {
        let answered =
            said.iter().rposition(|said| said.speaker == Speaker::Assistant).map_or(0, |at| at + 1);
        let is_asked = |said: &&ChatMessage| said.speaker == Speaker::User && !said.is_empty();
        let asked = if said[answered..].iter().any(|said| is_asked(&said)) {
            answered..said.len()
        } else {
            let from_tools = said.last().is_some_and(|last| last.speaker == Speaker::Tool);
            let last = said.iter().rposition(|said| is_asked(&said)).filter(|_| from_tools);
            let Some(last) = last else {
                let message = "the last message must have the role user, and must not be empty";
                return Err(Problem::invalid("invalid_value", at, message));
            };
            last..last + 1
        };
        Ok(Self { instructions: normal(&instructions.join("\n\n")), previous: None, said, asked })
    }

    /// Returns the messages of the current question. Leaves out tool results between these messages.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &ChatMessage> {
        self.said[self.asked.clone()].iter().filter(|said| said.speaker == Speaker::User)
    }

    /// Returns all messages that are not part of the current question.
    pub(crate) fn before(&self) -> impl Iterator<Item = &ChatMessage> {
        let is_asked =
            |(at, said): &(usize, &ChatMessage)| self.asked.contains(at) && said.speaker == Speaker::User;
        self.said.iter().enumerate().filter(move |place| !is_asked(place)).map(|(_, said)| said)
    }

    /// Returns the current question as one text.
    pub(crate) fn question(&self) -> String {
        let texts: Vec<&str> =
            self.asked().map(|said| said.text.as_str()).filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }

    /// If the conversation continues a task, returns the fingerprint that identifies this task. Otherwise returns
    /// `None`.
    pub(crate) fn ending(&self, between: Between<'_>) -> Option<String> {
        if let (Some(previous), 0) = (&self.previous, self.asked.start) {
            return Some(previous.clone());
        }
        let goes_on = self.asked.start > 0 && self.asked.end == self.said.len();
        goes_on.then(|| self.fingerprint(between, self.said[..self.asked.start].iter()))
    }

    /// Returns the fingerprint of this request. If the client sends the same request again, the fingerprint is the
    /// same.
    pub(crate) fn request(&self, between: Between<'_>) -> String {
        self.fingerprint(between, self.said.iter())
    }

    /// Returns the fingerprint that the conversation will have after this answer.
    pub(crate) fn reply(&self, between: Between<'_>, answer: &str) -> String {
        let answer = ChatMessage { speaker: Speaker::Assistant, text: normal(answer), attached: Vec::new() };
        self.fingerprint(between, self.said.iter().chain([&answer]))
    }

    /// Replaces the attached bytes by their fingerprints. The caller does this after it has sent the message, to free
    /// memory.
    pub(crate) fn forget_bytes(&mut self) {
        for attached in self.said.iter_mut().flat_map(|said| &mut said.attached) {
            *attached = Attached::Fingerprint(attached.fingerprint());
        }
    }

    /// Returns the length of all texts, in bytes.
    pub(crate) fn length(&self) -> usize {
        self.instructions.len() + self.said.iter().map(|said| said.text.len()).sum::<usize>()
    }

    /// Returns payload fields that contain the instructions and the earlier messages, for an agent that has not seen
    /// the conversation yet.
    pub(crate) fn background(&self) -> serde_json::Map<String, Value> {
        let mut fields = serde_json::Map::new();
        if !self.instructions.is_empty() {
            fields.insert("instructions".to_owned(), json!(self.instructions));
        }
        let said = |said: &ChatMessage| json!({"role": said.speaker.as_str(), "text": said.text});
        let before: Vec<Value> = self.before().map(said).collect();
        if !before.is_empty() {
            fields.insert("conversation".to_owned(), before.into());
        }
        fields
    }

    /// Returns all messages in order, for a model that is called without a society.
    pub(crate) fn said(&self) -> &[ChatMessage] {
        &self.said
    }

    /// Hashes messages. The length of each field is hashed before the field. So the hashed bytes of different
    /// conversations always differ.
    fn fingerprint<'a>(&self, between: Between<'_>, said: impl Iterator<Item = &'a ChatMessage>) -> String {
        let mut hasher = blake3::Hasher::new();
        let mut field = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes());
            hasher.update(bytes);
        };
        field(between.agent.as_str().as_bytes());
        field(between.person.as_bytes());
        if let Some(previous) = &self.previous {
            field(b"previous");
            field(previous.as_bytes());
        }
        for said in said {
            field(said.speaker.as_str().as_bytes());
            field(said.text.as_bytes());
            field(&(said.attached.len() as u64).to_le_bytes());
            for attached in &said.attached {
                field(&attached.fingerprint());
            }
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// A parsed message of a client.
enum Read {
    /// Instructions for the model.
    Instructions(String),
    /// A message of the conversation.
    Message(ChatMessage),
}

fn one(message: &Value, at: &str) -> Result<Read, Problem> {
    let invalid = |what: &str| Problem::invalid("invalid_value", at, what);
    let Some(fields) = message.as_object() else {
        return Err(invalid("a message is an object with role and content"));
    };
    let role = fields.get("role").and_then(Value::as_str);
    let Some(speaker) = role.and_then(Speaker::of_role) else {
        return Err(invalid("role must be system, developer, user, assistant or tool"));
    };
    let content = fields.get("content").unwrap_or(&Value::Null);
    let (mut text, attached) = part::content(content, &format!("{at}.content"))?;
    let Role::Speaks(speaker) = speaker else { return Ok(Read::Instructions(text)) };
    // A question of an agent may have been sent as `refusal`, next to an empty `content`.
    if let Some(refusal) = fields.get("refusal").and_then(Value::as_str).filter(|_| text.is_empty()) {
        refusal.clone_into(&mut text);
    }
    let calls = fields.get("tool_calls").and_then(Value::as_array).into_iter().flatten();
    let calls = calls.map(|call| called(&call["function"]["name"], &call["function"]["arguments"]));
    let old = fields.get("function_call").filter(|call| call.is_object());
    let calls = calls.chain(old.map(|call| called(&call["name"], &call["arguments"])));
    for call in calls {
        text = if text.is_empty() { call } else { format!("{text}\n{call}") };
    }
    Ok(Read::Message(ChatMessage::new(speaker, &text, attached)))
}

/// Renders a tool call as text.
pub(crate) fn called(name: &Value, arguments: &Value) -> String {
    let name = name.as_str().unwrap_or("a tool");
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    format!("called {name} {arguments}")
}

/// Normalizes the line ends of a text and removes the white space around it. Without this, the same text could differ
/// from request to request.
fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests;
