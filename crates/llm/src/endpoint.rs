//! Describes how to reach a chat model, and how its server differs from other servers.

use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};

/// One model on one server.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// The base URL. If the paths of the server begin with `/v1`, the base URL ends with `/v1`. The scheme `rehearsal:`
    /// selects the built-in model.
    pub base_url: String,
    /// The model's name on the server.
    pub model: String,
    /// The key, or `${NAME}`. With `${NAME}`, each call reads the key from the environment. `Debug` never shows the
    /// key.
    pub api_key: SecretString,
    /// Additional headers. Their values may use `${NAME}` too.
    pub headers: Vec<(String, SecretString)>,
    /// Time limit for a whole call.
    pub timeout: Duration,
    /// Time limits for the stages of a call.
    pub timeouts: Timeouts,
    /// Maximum number of tokens of an answer; with `None`, the server decides.
    pub max_tokens: Option<u32>,
    /// Fields that are merged into each request body. They are merged last, so they override all other fields.
    pub extra_body: Map<String, Value>,
    /// How this server differs from other servers.
    pub dialect: Dialect,
}

impl Endpoint {
    /// Returns whether another endpoint has the same base URL, model, key and headers. If it has, the pauses and
    /// failures of each endpoint also apply to the other one.
    pub fn is_same_server(&self, other: &Self) -> bool {
        let header =
            |(name, value): &(String, SecretString)| (name.clone(), value.expose_secret().to_owned());
        self.base_url == other.base_url
            && self.model == other.model
            && self.api_key.expose_secret() == other.api_key.expose_secret()
            && self.headers.iter().map(header).eq(other.headers.iter().map(header))
    }

    /// Creates an endpoint without key and headers, with the default limits and dialect.
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

/// Time limits for the stages of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Limit for making a connection.
    pub connect: Duration,
    /// Limit for the first byte of the answer's body, counted from the beginning of the call. With `None`, only the
    /// limit of the whole call applies. The default is `None`, because on a small machine, a model may need many
    /// minutes to read the request before it writes.
    pub first_byte: Option<Duration>,
    /// Limit for the time between two pieces of the answer. Any bytes count as a piece, even bytes that only keep the
    /// connection alive.
    pub between_bytes: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(10), first_byte: None, between_bytes: Duration::from_secs(300) }
    }
}

/// The switches that describe how one server differs from other servers. With the defaults, requests work even on the
/// strictest server.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Dialect {
    /// Which message carries the media of a tool result.
    pub tool_result_media: ToolResultMedia,
    /// Whether to put a short assistant message between a tool message and a user message.
    pub bridge_after_tool: BridgeAfterTool,
    /// Role of the message with the instructions.
    pub system_role: SystemRole,
    /// Whether the server streams its answers.
    pub stream: Stream,
    /// Which ids of tool calls the server accepts.
    pub tool_call_ids: ToolCallIds,
    /// Name of the body field that limits the length of the answer.
    pub max_tokens_field: MaxTokensField,
    /// Whether to ask for the usage in a streamed answer.
    pub stream_usage: StreamUsage,
}

/// Which message carries the media of a tool result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ToolResultMedia {
    /// One user message after the batch of results.
    #[default]
    After,
    /// The tool message itself, as parts of its content.
    Inline,
}

/// Role of the message with the instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SystemRole {
    /// The role `system`.
    #[default]
    System,
    /// The role `developer`.
    Developer,
    /// There is no separate message: the first user message begins with the instructions.
    User,
}

/// Which ids of tool calls the server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum ToolCallIds {
    /// Any id.
    #[default]
    Any,
    /// Only ids of exactly nine letters or digits.
    Alnum9,
}

/// Name of the body field that limits the length of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MaxTokensField {
    /// The field `max_tokens`.
    #[default]
    MaxTokens,
    /// The field `max_completion_tokens`.
    MaxCompletionTokens,
}

/// Declares a switch. In the configuration, the switch is `true` or `false`. In the code, it is an enum with two named
/// variants.
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
    /// The switch `bridgeAfterTool`. Some servers refuse a user message that follows directly after a tool message.
    BridgeAfterTool {
        /// Put a short assistant message between the tool message and the user message.
        true = Bridge,
        /// Put nothing between the tool message and the user message.
        false = None,
        default = None
    }
);
switch!(
    /// The switch `stream`.
    Stream {
        /// The server sends an answer in pieces, as a stream of events.
        true = Streamed,
        /// The server sends an answer as one JSON body.
        false = Whole,
        default = Streamed
    }
);
switch!(
    /// The switch `streamUsage`.
    StreamUsage {
        /// Each streamed request contains `stream_options.include_usage`.
        true = Asked,
        /// No request contains `stream_options.include_usage`.
        false = NotAsked,
        default = Asked
    }
);
