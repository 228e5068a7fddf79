//! Where a chat model is reached, and the ways in which its server differs from others.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;

/// One model on one server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The base URL, with `/v1` where the server wants it. The scheme `rehearsal:` names the built-in model.
    pub base_url: String,
    /// The model's name on that server.
    pub model: String,
    /// The key, or a `${NAME}` to be read from the environment when the call is made. `Debug` never shows it.
    pub api_key: SecretString,
    /// More headers; their values may be `${NAME}` too.
    pub headers: Vec<(String, SecretString)>,
    /// How long a whole call may take.
    pub timeout: Duration,
    /// How long its stages may take.
    pub timeouts: Timeouts,
    /// The most tokens an answer may have.
    pub max_tokens: Option<u32>,
    /// Merged into each request body, last.
    pub extra_body: Map<String, Value>,
    /// What this server wants done differently.
    pub dialect: Dialect,
}

impl Endpoint {
    /// Whether another endpoint is the same server, asked with the same leave: what one of them has said about when it
    /// may be asked holds for the other.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let header =
            |(name, value): &(String, SecretString)| (name.clone(), value.expose_secret().to_owned());
        self.base_url == other.base_url
            && self.model == other.model
            && self.api_key.expose_secret() == other.api_key.expose_secret()
            && self.headers.iter().map(header).eq(other.headers.iter().map(header))
    }

    /// An endpoint with nothing special about it.
    pub fn new(base_url: impl Into<String>, model: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            model: model.into(),
            api_key: SecretString::default(),
            headers: Vec::new(),
            timeout: Duration::from_secs(600),
            timeouts: Timeouts::default(),
            max_tokens: None,
            extra_body: Map::new(),
            dialect: Dialect::default(),
        }
    }
}

/// How long the stages of a call may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Until there is a connection.
    pub connect: Duration,
    /// Until the first byte of the answer's body, from the beginning of the call; `None` for as long as the whole call
    /// may take, because a model on a small machine reads long before it says anything.
    pub first_byte: Option<Duration>,
    /// Between two pieces of the answer. Any bytes count, those that only say that the server lives too.
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: None, between_bytes: Duration::from_secs(300) }
    }
}

/// The switches of contract section 4. The default is the strictest server's taste.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dialect {
    /// Where media of a tool result go.
    pub tool_result_media: ToolResultMedia,
    /// Whether a short assistant message stands between a tool message and a user message.
    pub bridge_after_tool: BridgeAfterTool,
    /// The role of the instructions.
    pub system_role: SystemRole,
    /// Whether answers are streamed.
    pub stream: Stream,
    /// Which ids of tool calls the server takes.
    pub tool_call_ids: ToolCallIds,
    /// The field that bounds the answer.
    pub max_tokens_field: MaxTokensField,
    /// Whether a streamed answer is asked for its usage.
    pub stream_usage: StreamUsage,
}

/// Where media of a tool result go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolResultMedia {
    /// Into one user message after the batch.
    #[default]
    After,
    /// Into the tool message itself, as parts.
    Inline,
}

/// The role of the instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SystemRole {
    /// `system`.
    #[default]
    System,
    /// `developer`.
    Developer,
    /// None of its own: they open the first user message.
    User,
}

/// Which ids of tool calls the server takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ToolCallIds {
    /// Any.
    #[default]
    Any,
    /// Nine letters and digits.
    Alnum9,
}

/// The field that bounds the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxTokensField {
    /// `max_tokens`.
    #[default]
    MaxTokens,
    /// `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Declares a switch that people write as `true` or `false`, and code as two named cases.
macro_rules! switch {
    ($(#[$doc:meta])* $name:ident { $(#[$on_doc:meta])* true = $on:ident, $(#[$off_doc:meta])* false = $off:ident, default = $default:ident }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(from = "bool", into = "bool")]
        pub enum $name {
            $(#[$on_doc])* $on,
            $(#[$off_doc])* $off,
        }

        impl Default for $name {
            fn default() -> Self {
                Self::$default
            }
        }

        impl From<bool> for $name {
            fn from(on: bool) -> Self {
                if on { Self::$on } else { Self::$off }
            }
        }

        impl From<$name> for bool {
            fn from(value: $name) -> Self {
                value == $name::$on
            }
        }
    };
}

switch!(
    /// `bridgeAfterTool`.
    BridgeAfterTool {
        /// A short assistant message is put in.
        true = Bridge,
        /// Nothing is put in.
        false = None,
        default = None
    }
);
switch!(
    /// `stream`.
    Stream {
        /// Answers come in pieces.
        true = Streamed,
        /// Answers come whole.
        false = Whole,
        default = Streamed
    }
);
switch!(
    /// `streamUsage`.
    StreamUsage {
        /// `stream_options.include_usage` is sent.
        true = Asked,
        /// It is not.
        false = NotAsked,
        default = Asked
    }
);
