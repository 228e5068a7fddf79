//! Requests to chat models and their replies, independent of any wire format.

use crate::data::Data;
use crate::endpoint::Endpoint;
use crate::listen::Listener;
use crate::tool::Tool;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};

/// A model that answers chat requests, behind an HTTP server or inside this process.
pub trait ChatModel: Send + Sync {
    /// Makes one attempt and never retries. Dropping the future cancels the call. `listener` hears a streamed answer
    /// while it arrives.
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
        listener: &'a dyn Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>>;
}

/// One request: a whole conversation, and the tools that the model may call.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The conversation, oldest message first. Only the first message may be a `System` message.
    pub messages: Vec<Message>,
    /// The tools that the model may call. If there are none, the body has no `tools` field.
    pub tools: Vec<Tool>,
    /// Whether the model may call tools in this answer.
    pub tool_choice: ToolChoice,
}

impl Request {
    /// Returns a copy of the request with a reference in place of each medium. The body of the copy contains the name
    /// and the length of each medium, where the original body contains the base64 text. Nothing else differs.
    #[must_use]
    pub fn by_reference(&self) -> Self {
        let message = |message: &Message| match message {
            Message::User(parts) => Message::User(parts.iter().map(Part::by_reference).collect()),
            Message::Tool { call_id, content, media } => {
                let reference =
                    |media: &Media| Media { label: media.label.clone(), part: media.part.by_reference() };
                let (call_id, content) = (call_id.clone(), content.clone());
                Message::Tool { call_id, content, media: media.iter().map(reference).collect() }
            }
            other @ (Message::System(_) | Message::Assistant { .. }) => other.clone(),
        };
        let messages = self.messages.iter().map(message).collect();
        Self { messages, tools: self.tools.clone(), tool_choice: self.tool_choice }
    }
}

/// Whether a model may call tools in its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// The model decides (`auto`).
    #[default]
    Auto,
    /// The model must not call tools (`none`), for instance because it should only sum up.
    None,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub enum Message {
    /// The instructions (system prompt).
    System(String),
    /// Input to the model, from people, other agents or the system.
    User(Vec<Part>),
    /// An earlier answer of the model.
    Assistant {
        /// The text of the answer; `None` if the answer had only calls.
        text: Option<String>,
        /// The tool calls of the answer, in order.
        tool_calls: Vec<ToolCall>,
        /// Further fields of the answer. Only the service that sent these fields understands them. So if the caller
        /// asks another service, it leaves them out.
        extra: Map<String, Value>,
    },
    /// The result of one tool call.
    Tool {
        /// The id of the call that produced the result.
        call_id: String,
        /// The result, as one JSON text.
        content: String,
        /// Media that belong to the result. By default, they go into one user message after the whole batch of results.
        /// The dialect, which describes the peculiarities of one server, can say that they go elsewhere.
        media: Vec<Media>,
    },
}

/// A picture, a sound or another file, with the line of text that names it.
#[derive(Clone, Debug)]
pub struct Media {
    /// A line that tells the model from which artifact, file and call the medium came.
    pub label: String,
    /// The picture, the sound or the file.
    pub part: Part,
}

/// A part of a user message.
#[derive(Clone)]
pub enum Part {
    /// Text, sent as a `text` part or as a plain string.
    Text(String),
    /// A picture, sent as `image_url` with a data URL.
    Image {
        /// MIME type, such as `image/png`.
        mime_type: String,
        /// The picture, not yet encoded as base64.
        data: Data,
    },
    /// Sound, sent as `input_audio`.
    Audio {
        /// The format, which the server needs to decode the sound.
        format: AudioFormat,
        /// The sound, not yet encoded as base64.
        data: Data,
    },
    /// Any other file, sent as `file` with `file_data`.
    File {
        /// The file name that is sent to the server.
        filename: String,
        /// MIME type, such as `application/pdf`.
        mime_type: String,
        /// The file, not yet encoded as base64.
        data: Data,
    },
}

impl Part {
    fn by_reference(&self) -> Self {
        let mut part = self.clone();
        match &mut part {
            Self::Text(_) => {}
            Self::Image { data, .. } | Self::Audio { data, .. } | Self::File { data, .. } => {
                *data = data.by_reference();
            }
        }
        part
    }
}

impl fmt::Debug for Part {
    /// Logs and failed tests show requests. So of a medium, this shows only the size, and not the bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.debug_tuple("Text").field(text).finish(),
            Self::Image { mime_type, data } => write!(f, "Image({mime_type}, {} bytes)", data.len()),
            Self::Audio { format, data } => write!(f, "Audio({}, {} bytes)", format.as_str(), data.len()),
            Self::File { filename, mime_type, data } => {
                write!(f, "File({filename:?}, {mime_type}, {} bytes)", data.len())
            }
        }
    }
}

/// The audio formats that `input_audio` accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum AudioFormat {
    /// The format WAV.
    Wav,
    /// The format MP3.
    Mp3,
}

impl AudioFormat {
    /// Returns the name of the format in the API.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A tool call that a model asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The id that the model gave; empty if the model gave none. Two calls may have the same id, so the caller that
    /// records the answer makes the ids unique.
    pub id: String,
    /// The name of the tool, as the model wrote it.
    pub name: String,
    /// The arguments, parsed if they are a JSON object.
    pub arguments: Arguments,
    /// Further fields that only the service understands, such as a thought signature.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The arguments of a call: an object, or a text if the model wrote no object.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON object. An empty text counts as `{}`.
    Object(Map<String, Value>),
    /// A text that is not a JSON object, unchanged. Later requests to the server contain `{}` instead of this text.
    Malformed(String),
}

/// A complete answer of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// The text of the answer; `None` if it is blank.
    pub text: Option<String>,
    /// The tool calls that the model asks for, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Why the model stopped, in the server's words: `stop`, `tool_calls`, `length`, …
    pub finish_reason: String,
    /// How many tokens the call used.
    pub usage: Usage,
    /// The name of the model that answered, if the server reports it.
    pub model: Option<String>,
    /// Message fields that the API does not define (`reasoning_content`, …). Later requests to this service contain
    /// them.
    pub extra: Map<String, Value>,
}

/// The tokens that one call used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Usage {
    /// Tokens of the request.
    pub prompt_tokens: u64,
    /// Tokens of the answer.
    pub completion_tokens: u64,
    /// Where the numbers come from.
    pub source: UsageSource,
}

/// Who counted the tokens.
#[derive(
    Clone,
    Copy,
    Debug,
    Default,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum UsageSource {
    /// The server counted the tokens.
    Reported,
    /// Nobody counted the tokens. They are estimated from the lengths of the texts.
    #[default]
    Estimated,
}

impl UsageSource {
    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The failure of one attempt to get an answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct CallError {
    /// The kind of failure. The caller uses it to decide what to do next.
    pub kind: FailureKind,
    /// The message of the server or of the network. It is short, and contains no keys and no media.
    pub message: String,
    /// The HTTP status, if the failure has one.
    pub status: Option<u16>,
    /// How long the server asks the caller to wait.
    pub retry_after: Option<Duration>,
}

/// What a failure shows about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// The server is down, overloaded or broken.
    Server,
    /// The server answered, so it works. The cause is the request or the caller.
    Caller,
    /// The failure shows nothing about the server, because the server was not asked.
    Nobody,
}

impl CallError {
    /// Returns what the failure shows about the server.
    pub fn blames(&self) -> Blame {
        let is_refusal = self.status.is_some_and(|status| (300..500).contains(&status));
        match self.kind {
            FailureKind::Unreachable | FailureKind::TimedOut | FailureKind::BrokenOff => Blame::Server,
            FailureKind::Passing if !is_refusal => Blame::Server,
            FailureKind::Misconfigured | FailureKind::Refused if self.status.is_none() => Blame::Nobody,
            FailureKind::Passing
            | FailureKind::RateLimited
            | FailureKind::Unauthorized
            | FailureKind::ContextOverflow
            | FailureKind::MediaRefused
            | FailureKind::CallNotParsed
            | FailureKind::ToolsRefused
            | FailureKind::NoSuchModel
            | FailureKind::NothingLoaded
            | FailureKind::WrongAddress
            | FailureKind::Refused
            | FailureKind::NotAnAnswer
            | FailureKind::Misconfigured => Blame::Caller,
        }
    }
}

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// There is no connection: it was refused or took too long, the host is unknown, or TLS failed.
    Unreachable,
    /// The answer took longer than a time limit allows.
    TimedOut,
    /// HTTP 429: too many requests for now.
    RateLimited,
    /// HTTP 408, 409 or 5xx: the failure may be temporary.
    Passing,
    /// HTTP 401 or 403: the key is wrong or missing.
    Unauthorized,
    /// The request is longer than the model's context window.
    ContextOverflow,
    /// HTTP 4xx or 5xx with a text that blames an image, audio or file part.
    MediaRefused,
    /// The server could not parse the tool call that its model wrote. If the caller sends the same request again, the
    /// request usually fails again. If the request also explains how to call tools, it usually succeeds.
    CallNotParsed,
    /// The server accepts no tools for this model, so every request that offers tools fails.
    ToolsRefused,
    /// The server has no model of this name.
    NoSuchModel,
    /// The server has models, but none is loaded.
    NothingLoaded,
    /// No chat model answers below the configured base URL. The message names another base URL, at which the server
    /// does answer.
    WrongAddress,
    /// Any other HTTP status 4xx. The same request will fail again.
    Refused,
    /// The answer broke off before its end.
    BrokenOff,
    /// The answer does not come from a chat model: it is HTML, JSON of another shape, or too large.
    NotAnAnswer,
    /// The endpoint cannot be used as it is configured. For example, its URL is bad, or an environment variable is not
    /// set.
    Misconfigured,
}

impl FailureKind {
    /// All kinds.
    pub const ALL: &'static [Self] = Self::VARIANTS;
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unreachable => "server unreachable",
            Self::TimedOut => "timed out",
            Self::RateLimited => "rate limited",
            Self::Passing => "server error",
            Self::Unauthorized => "not authorized",
            Self::ContextOverflow => "context window exceeded",
            Self::MediaRefused => "media refused",
            Self::CallNotParsed => "the server could not read the model's tool call",
            Self::ToolsRefused => "the model takes no tools",
            Self::NoSuchModel => "no such model",
            Self::NothingLoaded => "no model is loaded",
            Self::WrongAddress => "wrong baseURL",
            Self::Refused => "request refused",
            Self::BrokenOff => "answer broken off",
            Self::NotAnAnswer => "not an answer",
            Self::Misconfigured => "service misconfigured",
        })
    }
}
