//! A conversation as clients send it, whole each time: what was said before, what is asked now, and the fingerprints by
//! which the task is found again. Pure.
//!
//! The rule: a conversation is the list of what user and assistant have said. `system` and `developer` messages are no
//! part of it, because clients write the date and the like into them. What the person says after the last `assistant`
//! message is asked now. Where the conversation ends with tools that were called for another model, the last that the
//! person said before them is asked; all else was said before.

use crate::part::{self, Attached};
use crate::problem::Problem;
use polity_society::id::AgentId;
use serde_json::{Value, json};
use std::ops::Range;

/// Who has said something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Speaker {
    /// The person.
    User,
    /// Whoever answers.
    Assistant,
    /// A tool of the client, in a conversation that was not held with a society.
    Tool,
}

/// What a role in a body stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It tells the model what to be.
    Instructs,
    /// It says something.
    Speaks(Speaker),
}

impl Speaker {
    /// What a role stands for, if it is one.
    pub(crate) fn of_role(role: &str) -> Option<Role> {
        match role {
            "system" | "developer" => Some(Role::Instructs),
            "user" => Some(Role::Speaks(Self::User)),
            "assistant" => Some(Role::Speaks(Self::Assistant)),
            "tool" | "function" => Some(Role::Speaks(Self::Tool)),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

/// Something that was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Said {
    /// By whom.
    pub(crate) speaker: Speaker,
    /// The words.
    pub(crate) text: String,
    /// What went with them.
    pub(crate) attached: Vec<Attached>,
}

impl Said {
    /// These words, as they are compared and sent on.
    pub(crate) fn new(speaker: Speaker, text: &str, attached: Vec<Attached>) -> Self {
        Self { speaker, text: normal(text), attached }
    }

    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.attached.is_empty()
    }
}

/// A conversation in which the person asks something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// What the client tells the model to be.
    pub(crate) instructions: String,
    /// The fingerprint of the conversation before, where the client names its last response instead of sending it.
    pub(crate) previous: Option<String>,
    said: Vec<Said>,
    /// Which of it is asked now: never empty.
    asked: Range<usize>,
}

/// Whose conversation it is and with whom: the same words between others are another conversation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Between<'a> {
    /// Who answers.
    pub(crate) agent: &'a AgentId,
    /// Who asks, as far as the client says.
    pub(crate) person: &'a str,
}

impl Conversation {
    /// Reads the messages of a request to `/v1/chat/completions`.
    pub(crate) fn read(messages: &[Value]) -> Result<Self, Problem> {
        let mut instructions: Vec<String> = Vec::new();
        let mut said = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            match one(message, &format!("messages[{index}]"))? {
                Read::Instructions(text) => instructions.push(text),
                Read::Said(words) => said.push(words),
            }
        }
        Self::new(&instructions, said, "messages")
    }

    /// A conversation of these messages; `at` says where they stand in the body.
    pub(crate) fn new(instructions: &[String], said: Vec<Said>, at: &str) -> Result<Self, Problem> {
        let answered =
            said.iter().rposition(|said| said.speaker == Speaker::Assistant).map_or(0, |at| at + 1);
        let is_asked = |said: &&Said| said.speaker == Speaker::User && !said.is_empty();
        let asked = if said[answered..].iter().any(|said| is_asked(&said)) {
            answered..said.len()
        } else {
            let from_tools = said.last().is_some_and(|last| last.speaker == Speaker::Tool);
            let last = said.iter().rposition(|said| is_asked(&said)).filter(|_| from_tools);
            let Some(last) = last else {
                let message = "the last message must be of the role user, and say something";
                return Err(Problem::invalid("invalid_value", at, message));
            };
            last..last + 1
        };
        Ok(Self { instructions: normal(&instructions.join("\n\n")), previous: None, said, asked })
    }

    /// What is asked now. A result of a client's tool among it was no question.
    pub(crate) fn asked(&self) -> impl Iterator<Item = &Said> {
        self.said[self.asked.clone()].iter().filter(|said| said.speaker == Speaker::User)
    }

    /// What was said before.
    pub(crate) fn before(&self) -> impl Iterator<Item = &Said> {
        let is_asked = |(at, said): &(usize, &Said)| self.asked.contains(at) && said.speaker == Speaker::User;
        self.said.iter().enumerate().filter(move |place| !is_asked(place)).map(|(_, said)| said)
    }

    /// What the person says now, as one text.
    pub(crate) fn question(&self) -> String {
        let texts: Vec<&str> =
            self.asked().map(|said| said.text.as_str()).filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }

    /// Under which the task is found that this conversation goes on with; none where it has only begun.
    pub(crate) fn ending(&self, between: Between<'_>) -> Option<String> {
        if let (Some(previous), 0) = (&self.previous, self.asked.start) {
            return Some(previous.clone());
        }
        let goes_on = self.asked.start > 0 && self.asked.end == self.said.len();
        goes_on.then(|| self.fingerprint(between, self.said[..self.asked.start].iter()))
    }

    /// Under which the same request is found.
    pub(crate) fn request(&self, between: Between<'_>) -> String {
        self.fingerprint(between, self.said.iter())
    }

    /// Under which the conversation will be found once this is answered.
    pub(crate) fn reply(&self, between: Between<'_>, answer: &str) -> String {
        let answer = Said { speaker: Speaker::Assistant, text: normal(answer), attached: Vec::new() };
        self.fingerprint(between, self.said.iter().chain([&answer]))
    }

    /// Keeps of what is attached its fingerprint alone, which is all that is needed once the message was sent.
    pub(crate) fn forget_bytes(&mut self) {
        for attached in self.said.iter_mut().flat_map(|said| &mut said.attached) {
            *attached = Attached::Fingerprint(attached.fingerprint());
        }
    }

    /// What an agent that is new to the conversation is told of it: fields of the first message.
    pub(crate) fn background(&self) -> serde_json::Map<String, Value> {
        let mut fields = serde_json::Map::new();
        if !self.instructions.is_empty() {
            fields.insert("instructions".to_owned(), json!(self.instructions));
        }
        let said = |said: &Said| json!({"role": said.speaker.as_str(), "text": said.text});
        let before: Vec<Value> = self.before().map(said).collect();
        if !before.is_empty() {
            fields.insert("conversation".to_owned(), before.into());
        }
        fields
    }

    /// Everything that was said, in its order, for a model that is asked without a society.
    pub(crate) fn said(&self) -> &[Said] {
        &self.said
    }

    /// The hash of what was said. Every field has its length in front, so that no two conversations read the same.
    fn fingerprint<'a>(&self, between: Between<'_>, said: impl Iterator<Item = &'a Said>) -> String {
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

/// What one message of a client is.
enum Read {
    /// What the model is to be.
    Instructions(String),
    /// Something that was said.
    Said(Said),
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
    // What an assistant would not say in the wanted form stands beside its content.
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
    Ok(Read::Said(Said::new(speaker, &text, attached)))
}

/// A call of a tool, in words.
pub(crate) fn called(name: &Value, arguments: &Value) -> String {
    let name = name.as_str().unwrap_or("a tool");
    let arguments = arguments.as_str().map_or_else(|| arguments.to_string(), str::to_owned);
    format!("called {name} {arguments}")
}

/// Text as it is compared and sent on: clients differ in line ends and in the space around it.
fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").trim().to_owned()
}

#[cfg(test)]
mod tests;
