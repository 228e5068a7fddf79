//! Arranges the messages of a conversation in the order and with the roles that servers accept.

use super::parts::{WireContent, WirePart, labelled};
use crate::chat::{Arguments, Media, Message, ToolCall};
use crate::endpoint::{BridgeAfterTool, Dialect, SystemRole, ToolCallIds, ToolResultMedia};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash, Hasher};

/// The templates of some servers refuse a user message directly after a tool result. For these servers, an assistant
/// message with this text comes between the two. The text must not be empty, and should mean nothing.
const BRIDGE: &str = ".";

/// A message as it goes over the wire.
#[derive(Debug, Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
pub(super) enum WireMessage<'a> {
    System { content: &'a str },
    Developer { content: &'a str },
    User { content: WireContent<'a> },
    Assistant(AssistantContent<'a>),
    Tool { tool_call_id: Cow<'a, str>, content: WireContent<'a> },
}

/// Arranges a conversation as the dialect requires.
pub(super) fn arrange<'a>(messages: &'a [Message], dialect: &Dialect) -> Vec<WireMessage<'a>> {
    let mut arranged = Arranged { dialect, messages: Vec::new(), media: Vec::new() };
    let mut instructions = None;
    for message in messages {
        // The media of a batch of results come after the whole batch. So if another message comes, put the media before
        // it.
        if !matches!(message, Message::Tool { .. }) {
            arranged.put_media();
        }
        match message {
            Message::System(text) => match dialect.system_role {
                SystemRole::System => arranged.messages.push(WireMessage::System { content: text }),
                SystemRole::Developer => arranged.messages.push(WireMessage::Developer { content: text }),
                SystemRole::User => instructions = Some(text),
            },
            Message::User(parts) => {
                let parts = parts.iter().map(WirePart::from).collect();
                arranged.put_user(opened_by(instructions.take(), parts));
            }
            Message::Assistant { text, tool_calls, extra } => {
                arranged.put_instructions(instructions.take());
                arranged.put_assistant(text.as_deref(), tool_calls, extra);
            }
            Message::Tool { call_id, content, media } => {
                arranged.put_instructions(instructions.take());
                arranged.put_result(call_id, content, media);
            }
        }
    }
    arranged.put_instructions(instructions);
    arranged.put_media();
    arranged.messages
}

/// The messages so far, and the media of the current batch of results.
struct Arranged<'d, 'a> {
    dialect: &'d Dialect,
    messages: Vec<WireMessage<'a>>,
    media: Vec<&'a Media>,
}

impl<'a> Arranged<'_, 'a> {
    fn put_instructions(&mut self, instructions: Option<&'a String>) {
        if let Some(text) = instructions {
            self.put_user(vec![WirePart::text(text)]);
        }
    }

    fn put_user(&mut self, content: Vec<WirePart<'a>>) {
        if content.is_empty() {
            return;
        }
        let follows_result = matches!(self.messages.last(), Some(WireMessage::Tool { .. }));
        match self.dialect.bridge_after_tool {
            BridgeAfterTool::Bridge if follows_result => {
                self.messages.push(WireMessage::Assistant(AssistantContent::text(BRIDGE)));
            }
            BridgeAfterTool::Bridge | BridgeAfterTool::None => {}
        }
        self.messages.push(WireMessage::User { content: WireContent(content) });
    }

    fn put_assistant(&mut self, text: Option<&'a str>, calls: &'a [ToolCall], extra: &'a Map<String, Value>) {
        let text = text.filter(|text| !text.trim().is_empty());
        if text.is_none() && calls.is_empty() {
            // An empty assistant message tells nothing, and servers refuse it. So leave it out.
            return;
        }
        let ids = self.dialect.tool_call_ids;
        let tool_calls = calls.iter().map(|call| WireCall::new(call, ids)).collect();
        self.messages.push(WireMessage::Assistant(AssistantContent { text, tool_calls, extra: Some(extra) }));
    }

    fn put_result(&mut self, call_id: &'a str, text: &'a str, media: &'a [Media]) {
        let mut content = vec![WirePart::text(text)];
        match self.dialect.tool_result_media {
            ToolResultMedia::After => self.media.extend(media),
            ToolResultMedia::Inline => content.extend(media.iter().flat_map(labelled)),
        }
        let tool_call_id = wire_id(call_id, self.dialect.tool_call_ids);
        self.messages.push(WireMessage::Tool { tool_call_id, content: WireContent(content) });
    }

    fn put_media(&mut self) {
        let media = std::mem::take(&mut self.media);
        self.put_user(media.into_iter().flat_map(labelled).collect());
    }
}

/// Puts the instructions before the first user text, for servers that have no role for instructions.
fn opened_by<'a>(instructions: Option<&'a String>, mut parts: Vec<WirePart<'a>>) -> Vec<WirePart<'a>> {
    let Some(instructions) = instructions else {
        return parts;
    };
    if let Some(WirePart::Text { text }) = parts.first_mut() {
        *text = format!("{instructions}\n\n{text}").into();
    } else {
        parts.insert(0, WirePart::text(instructions));
    }
    parts
}

/// The content of an assistant message, with the fields that only its service understands.
#[derive(Debug)]
pub(super) struct AssistantContent<'a> {
    text: Option<&'a str>,
    tool_calls: Vec<WireCall<'a>>,
    extra: Option<&'a Map<String, Value>>,
}

impl<'a> AssistantContent<'a> {
    fn text(text: &'a str) -> Self {
        Self { text: Some(text), tool_calls: Vec::new(), extra: None }
    }
}

impl Serialize for AssistantContent<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        // If there is no text, leave `content` out. The API allows `null` in a message with calls, but some servers
        // refuse `null`.
        if let Some(text) = self.text {
            map.serialize_entry("content", text)?;
        }
        if !self.tool_calls.is_empty() {
            map.serialize_entry("tool_calls", &self.tool_calls)?;
        }
        for (name, value) in self.extra.into_iter().flatten() {
            if !matches!(name.as_str(), "role" | "content" | "tool_calls") {
                map.serialize_entry(name, value)?;
            }
        }
        map.end()
    }
}

#[derive(Debug)]
struct WireCall<'a> {
    id: Cow<'a, str>,
    call: &'a ToolCall,
}

impl<'a> WireCall<'a> {
    fn new(call: &'a ToolCall, ids: ToolCallIds) -> Self {
        Self { id: wire_id(&call.id, ids), call }
    }
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    #[serde(serialize_with = "arguments")]
    arguments: &'a Arguments,
}

/// Writes arguments as a string that contains a JSON object. Some servers answer a request with an error if it contains
/// malformed arguments, and every later request would contain them, too. So malformed arguments become an empty object.
fn arguments<S: Serializer>(arguments: &&Arguments, serializer: S) -> Result<S::Ok, S::Error> {
    match arguments {
        Arguments::Object(object) => {
            let text = serde_json::to_string(object).map_err(serde::ser::Error::custom)?;
            serializer.serialize_str(&text)
        }
        Arguments::Malformed(_) => serializer.serialize_str("{}"),
    }
}

impl Serialize for WireCall<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ToolCall { name, arguments, extra, .. } = self.call;
        let mut map = serializer.serialize_map(Some(3 + extra.len()))?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("type", "function")?;
        map.serialize_entry("function", &CalledFunction { name: &wire_name(name), arguments })?;
        for (field, value) in extra {
            if !matches!(field.as_str(), "id" | "type" | "function" | "index") {
                map.serialize_entry(field, value)?;
            }
        }
        map.end()
    }
}

/// Longest tool name that servers accept, in bytes.
const LONGEST_NAME: usize = 64;

/// Converts the tool name in a model's call to a form that servers accept. A model may invent an invalid name, and
/// servers would refuse every later request that contains this name. The names of existing tools are valid, so they
/// stay unchanged.
fn wire_name(name: &str) -> Cow<'_, str> {
    let is_allowed = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '-');
    if !name.is_empty() && name.len() <= LONGEST_NAME && name.chars().all(is_allowed) {
        return name.into();
    }
    let allowed = name.chars().map(|character| if is_allowed(character) { character } else { '_' });
    let cleaned: String = allowed.take(LONGEST_NAME).collect();
    if cleaned.is_empty() { "unnamed".into() } else { cleaned.into() }
}

/// Converts the id of a call to a form that the server accepts. A call and its result get the same id.
fn wire_id(id: &str, ids: ToolCallIds) -> Cow<'_, str> {
    match ids {
        ToolCallIds::Any => id.into(),
        ToolCallIds::Alnum9 if id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()) => {
            id.into()
        }
        ToolCallIds::Alnum9 => nine_characters(id).into(),
    }
}

fn nine_characters(id: &str) -> String {
    const DIGITS: [char; 32] = [
        '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'J', 'K',
        'M', 'N', 'P', 'Q', 'R', 'S', 'T', 'V', 'W', 'X', 'Y', 'Z',
    ];
    // The same id must give the same nine characters in every request. So do not use `RandomState`.
    let mut hasher = DefaultHasher::new();
    id.hash(&mut hasher);
    let hash = hasher.finish();
    // Cannot fail: an index of five bits is below 32, and there are 32 digits.
    (0..9).map(|place| DIGITS[(hash >> (5 * place) & 31) as usize]).collect()
}

#[cfg(test)]
mod tests;
