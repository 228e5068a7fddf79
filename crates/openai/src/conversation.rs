//! A conversation as clients send it, whole each time: what was said before, what is asked now, and the fingerprints by
//! which the task is found again. Pure.
//!
//! The rule: a conversation is the list of what user and assistant have said. `system` and `developer` messages are no
//! part of it, because clients write the date and the like into them. What stands up to the last `assistant` message was
//! said before; what comes after it is asked now.

use crate::part::{self, Attached};
use crate::problem::Problem;
use polity_society::id::AgentId;
use serde_json::{Value, json};

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

impl Speaker {
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

/// A conversation whose last word is the person's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Conversation {
    /// What the client tells the model to be.
    pub(crate) instructions: String,
    /// What was said before.
    pub(crate) before: Vec<Said>,
    /// What is asked now: never empty, and the person's alone.
    pub(crate) asked: Vec<Said>,
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
    /// Reads the messages of a request.
    pub(crate) fn read(messages: &[Value]) -> Result<Self, Problem> {
        let mut instructions: Vec<String> = Vec::new();
        let mut said = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            let at = format!("messages[{index}]");
            let invalid = |what: &str| Problem::invalid("invalid_value", at.clone(), what);
            let Some(message) = message.as_object() else {
                return Err(invalid("a message is an object with role and content"));
            };
            let role = message.get("role").and_then(Value::as_str);
            let speaker = match role {
                Some("system" | "developer") => None,
                Some("user") => Some(Speaker::User),
                Some("assistant") => Some(Speaker::Assistant),
                Some("tool" | "function") => Some(Speaker::Tool),
                Some(_) | None => {
                    return Err(invalid("role must be system, developer, user, assistant or tool"));
                }
            };
            let content = message.get("content").unwrap_or(&Value::Null);
            let (text, attached) = part::content(content, &format!("{at}.content"))?;
            match speaker {
                None => instructions.push(text),
                Some(speaker) => said.push(Said { speaker, text: normal(&text), attached }),
            }
        }
        let last_answer = said.iter().rposition(|said| said.speaker == Speaker::Assistant);
        let asked = said.split_off(last_answer.map_or(0, |at| at + 1));
        let at = "messages";
        if asked.iter().any(|said| said.speaker == Speaker::Tool) {
            let message = "the society calls no tools of the client, so no results of them can be for it";
            return Err(Problem::invalid("unsupported_value", at, message));
        }
        if !asked.iter().any(|said| !said.text.is_empty() || !said.attached.is_empty()) {
            let message = "the last message must be of the role user, and say something";
            return Err(Problem::invalid("invalid_value", at, message));
        }
        Ok(Self { instructions: normal(&instructions.join("\n\n")), before: said, asked })
    }

    /// What the person says now, as one text.
    pub(crate) fn question(&self) -> String {
        let texts: Vec<&str> =
            self.asked.iter().map(|said| said.text.as_str()).filter(|text| !text.is_empty()).collect();
        texts.join("\n\n")
    }

    /// Under which the task is found that this conversation goes on with; none where it has only begun.
    pub(crate) fn ending(&self, between: Between<'_>) -> Option<String> {
        (!self.before.is_empty()).then(|| fingerprint(between, self.before.iter()))
    }

    /// Under which the same request is found.
    pub(crate) fn request(&self, between: Between<'_>) -> String {
        fingerprint(between, self.before.iter().chain(&self.asked))
    }

    /// Under which the conversation will be found once this is answered.
    pub(crate) fn reply(&self, between: Between<'_>, answer: &str) -> String {
        let answer = Said { speaker: Speaker::Assistant, text: normal(answer), attached: Vec::new() };
        fingerprint(between, self.before.iter().chain(&self.asked).chain([&answer]))
    }

    /// Keeps of what is attached its fingerprint alone, which is all that is needed once the message was sent.
    pub(crate) fn forget_bytes(&mut self) {
        for attached in self.before.iter_mut().chain(&mut self.asked).flat_map(|said| &mut said.attached) {
            *attached = Attached::Fingerprint(attached.fingerprint());
        }
    }

    /// What whoever has not been part of the conversation so far is to know of it: fields of the first message.
    pub(crate) fn background(&self) -> serde_json::Map<String, Value> {
        let mut fields = serde_json::Map::new();
        if !self.instructions.is_empty() {
            fields.insert("instructions".to_owned(), json!(self.instructions));
        }
        if !self.before.is_empty() {
            let said = |said: &Said| json!({"role": said.speaker.as_str(), "text": said.text});
            fields.insert("conversation".to_owned(), self.before.iter().map(said).collect());
        }
        fields
    }
}

/// Text as it is compared and sent on: clients differ in line ends and in the space around it.
fn normal(text: &str) -> String {
    text.replace("\r\n", "\n").trim().to_owned()
}

/// The hash of a conversation. Every field has its length in front, so that no two conversations read the same.
fn fingerprint<'a>(between: Between<'_>, said: impl Iterator<Item = &'a Said>) -> String {
    let mut hasher = blake3::Hasher::new();
    let mut field = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    field(between.agent.as_str().as_bytes());
    field(between.person.as_bytes());
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

#[cfg(test)]
mod tests;
