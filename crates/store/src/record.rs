//! What happened in a turn. Records are all that a history is made of; what a turn learns must be one.

use polity_llm::ToolCall;
use polity_society::id::{ArtifactId, CallId, MessageId, ServiceId};
use polity_society::notice::Notice;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One thing that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Record {
    /// A message was taken into the turn.
    Heard {
        /// The message; its text is in the messages.
        message: MessageId,
    },
    /// The system said something within the turn.
    Noticed {
        /// What.
        notice: Notice,
    },
    /// The model answered.
    Replied(Replied),
    /// A tool that reaches outside was started.
    ToolStarted {
        /// Its call.
        call: CallId,
    },
    /// A call has its result.
    ToolFinished {
        /// The call.
        call: CallId,
        /// The result.
        result: ToolResult,
    },
    /// Earlier entries were replaced by a summary.
    Compacted {
        /// What the summary says.
        summary: String,
        /// How many of the newest entries, at least, stay whole.
        keep_recent: u64,
        /// What else stays.
        #[serde(default)]
        keeps: Keeps,
    },
    /// The context window is filling up.
    Status {
        /// How many tokens the last request and its answer had.
        used: u64,
        /// How many the window has.
        window: u64,
    },
    /// The turn could not go on.
    Failed {
        /// Why.
        reason: String,
    },
    /// The turn was ended from outside.
    Stopped {
        /// Why.
        reason: String,
    },
}

/// What a summary leaves whole.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// The turn that asked for it, and whole turns before.
    #[default]
    Turn,
    /// The newest entries alone, because the turn itself is too long for the window.
    Newest,
}

/// An answer of a model, as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replied {
    /// What it said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// What it wants called; the ids are unique in the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Fields that only the service that sent them understands.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// The results of calls that are refused whatever is recorded of them: what was wrong with them is left out there. By
    /// call; each is answered when its turn has come.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub refused: Map<String, Value>,
    /// The names that the model used where a tool has another name, by call id.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub called_as: BTreeMap<String, String>,
    /// The service that answered.
    pub service: Option<ServiceId>,
    /// What its text was taken for.
    #[serde(default, skip_serializing_if = "Taken::is_text")]
    pub taken: Taken,
}

/// What the text of an answer was taken for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// A text.
    #[default]
    Text,
    /// Calls that its model wrote as text.
    Calls,
    /// A call that its model wrote as text, in a form that cannot be read.
    BrokenCall,
}

impl Taken {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

impl Replied {
    /// Whether it says nothing at all.
    pub fn is_empty(&self) -> bool {
        self.text.is_none() && self.calls.is_empty()
    }
}

/// The result of a tool call, before it is shown to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResult {
    /// JSON, as it is.
    Json(Value),
    /// An artifact: what the model sees of it is decided at each call.
    Artifact {
        /// Which.
        artifact: ArtifactId,
        /// From which character of a text on.
        offset: u64,
        /// How many characters of a text at most.
        limit: Option<u64>,
        /// The arguments of the call that the tool does not know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
    },
}

impl ToolResult {
    /// Whether it refuses the call, or a part of it, with this code.
    pub fn refuses_with(&self, code: &str) -> bool {
        let Self::Json(value) = self else { return false };
        let parts = value.get("refused").and_then(Value::as_array).into_iter().flatten();
        parts.chain([value]).any(|part| part.get("error").and_then(Value::as_str) == Some(code))
    }

    /// Whether it says that a message was sent.
    pub fn has_sent(&self) -> bool {
        matches!(self, Self::Json(value) if value.get("messageIds").is_some())
    }
}
