//! What goes to a chat model and what comes back, before any wire format.

use crate::classify::complains_of_media;
use crate::data::Data;
use crate::endpoint::Endpoint;
use futures::future::BoxFuture;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;
use std::time::Duration;

/// Something that answers chat requests: a server over HTTP, or a model that lives in the process.
pub trait ChatModel: Send + Sync {
    /// Makes one attempt. Nothing is retried here; dropping the future cancels the call.
    fn call<'a>(
        &'a self,
        endpoint: &'a Endpoint,
        request: &'a Request,
    ) -> BoxFuture<'a, Result<Reply, CallError>>;
}

/// One request: a whole conversation, and what the model may do.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The conversation. The first is the only `System` one.
    pub messages: Vec<Message>,
    /// The tools that may be called; none leaves them out of the request.
    pub tools: Vec<Tool>,
    /// Whether tools may be called now.
    pub tool_choice: ToolChoice,
}

/// A tool as the model sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Tool {
    /// Its name.
    pub name: String,
    /// What it does, in the language of the prompts.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

/// Whether a model may call tools in its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToolChoice {
    /// As it likes (`auto`).
    #[default]
    Auto,
    /// Not now (`none`): it is to sum up.
    None,
}

/// One message of a conversation.
#[derive(Clone, Debug)]
pub enum Message {
    /// The instructions.
    System(String),
    /// What comes from outside: people, other agents, the system.
    User(Vec<Part>),
    /// What the model said before.
    Assistant {
        /// Its text, if it said any.
        text: Option<String>,
        /// The tools that it called.
        tool_calls: Vec<ToolCall>,
        /// Fields of the answer that only the service that sent them understands. Left empty by the caller where
        /// another service is asked.
        extra: Map<String, Value>,
    },
    /// The result of one tool call.
    Tool {
        /// The call that it answers.
        call_id: String,
        /// The result: one JSON text.
        content: String,
        /// Media that belong to the result. Where they go is the dialect's business: by default into one user
        /// message after the whole batch.
        media: Vec<Media>,
    },
}

/// A medium with the line of text that names it.
#[derive(Clone, Debug)]
pub struct Media {
    /// Names the artifact, the file and the call it came from.
    pub label: String,
    /// The medium.
    pub part: Part,
}

/// A part of a user message.
#[derive(Clone)]
pub enum Part {
    /// Text.
    Text(String),
    /// A picture: goes out as `image_url` with a data URL.
    Image {
        /// Such as `image/png`.
        mime_type: String,
        /// The bytes.
        data: Data,
    },
    /// Sound in a format that `input_audio` has.
    Audio {
        /// Which of them.
        format: AudioFormat,
        /// The bytes.
        data: Data,
    },
    /// Any other file: goes out as `file` with `file_data`.
    File {
        /// The name that the server is told.
        filename: String,
        /// Such as `application/pdf`.
        mime_type: String,
        /// The bytes.
        data: Data,
    },
}

impl fmt::Debug for Part {
    /// Shows sizes, never bytes: requests appear in logs and in failed tests.
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

/// The formats that `input_audio` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AudioFormat {
    /// RIFF WAVE.
    Wav,
    /// MPEG layer 3.
    Mp3,
}

impl AudioFormat {
    /// The word on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Wav => "wav",
            Self::Mp3 => "mp3",
        }
    }
}

/// A model's wish to call a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolCall {
    /// The call's id. As the model gave it, or empty where it gave none: whoever records the answer makes ids unique.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments.
    pub arguments: Arguments,
    /// Fields beside these that only the service understands (a thought signature, say).
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
}

/// The arguments of a call: an object, or what the model wrote instead.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arguments {
    /// A JSON object. An empty text counts as `{}`.
    Object(Map<String, Value>),
    /// Not a JSON object: the text as it came. On the wire it is sent back as `{}`.
    Malformed(String),
}

/// A whole answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Reply {
    /// What the model said; `None` rather than empty.
    pub text: Option<String>,
    /// The tools it wants called, in order.
    pub tool_calls: Vec<ToolCall>,
    /// Why it stopped, as the server said it: `stop`, `tool_calls`, `length`, …
    pub finish_reason: String,
    /// What it cost.
    pub usage: Usage,
    /// The model that the server says answered, where it says so.
    pub model: Option<String>,
    /// Fields of the message that are not of the standard (`reasoning_content`, …), to be sent back to this service.
    pub extra: Map<String, Value>,
}

/// Tokens of one call.
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum UsageSource {
    /// The server.
    Reported,
    /// Nobody: the numbers are guessed from the lengths of the texts.
    #[default]
    Estimated,
}

/// Why an attempt brought no answer.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct CallError {
    /// What sort of failure it is; what to do about it follows from this.
    pub kind: FailureKind,
    /// What the server or the network said, short, without keys or media.
    pub message: String,
    /// The HTTP status, where there was one.
    pub status: Option<u16>,
    /// How long the server asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// What a failure says about the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blame {
    /// It is down, overloaded or broken.
    Server,
    /// It lives: what it answered is about the request or the caller.
    Caller,
    /// Nothing: it was not asked at all.
    Nobody,
}

impl CallError {
    /// Whether the server may have failed because of the media in the request. Ask this only of a request with media:
    /// of one without, the same status or the same words say nothing about media.
    pub fn may_refuse_media(&self) -> bool {
        match (self.kind, self.status) {
            (FailureKind::Misconfigured | FailureKind::CallNotParsed, _) => false,
            (FailureKind::MediaRefused, _) | (_, Some(400 | 413 | 415 | 422)) => true,
            // An answer that began well and then told of a refusal; its real status is not known.
            (FailureKind::Refused, Some(200)) => true,
            (FailureKind::Refused | FailureKind::Unauthorized | FailureKind::Passing, Some(_)) => {
                complains_of_media(&self.message.to_lowercase())
            }
            _ => false,
        }
    }

    /// What the failure says about the server, whatever is done about it.
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
            | FailureKind::Refused
            | FailureKind::NotAnAnswer
            | FailureKind::Misconfigured => Blame::Caller,
        }
    }
}

/// The sorts of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// No connection: refused, unknown host, TLS.
    Unreachable,
    /// Connected, but too slow.
    TimedOut,
    /// 429.
    RateLimited,
    /// 408, 409, or a 5xx: may pass.
    Passing,
    /// 401 or 403: the key is wrong or missing.
    Unauthorized,
    /// The request is longer than the model's context window.
    ContextOverflow,
    /// A 4xx or 5xx whose text blames an image, audio or file part.
    MediaRefused,
    /// The server could not read the tool call that its model has written: the same request mostly fails again, one that
    /// says how to call tools mostly does not.
    CallNotParsed,
    /// Another 4xx: the same request will fail again.
    Refused,
    /// The answer broke off before its end.
    BrokenOff,
    /// The answer is not one of a chat model: HTML, JSON of another shape, too large.
    NotAnAnswer,
    /// The endpoint cannot be used as it is configured (bad URL, an environment variable that is not set).
    Misconfigured,
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
            Self::Refused => "request refused",
            Self::BrokenOff => "answer broken off",
            Self::NotAnAnswer => "not an answer",
            Self::Misconfigured => "service misconfigured",
        })
    }
}
