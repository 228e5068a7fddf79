//! The records of turns. The history of a conversation consists of records only, so everything that a turn learns must
//! become a record.

use polity_llm::ToolCall;
use polity_society::approval::Judgement;
use polity_society::id::{ApprovalId, ArtifactId, CallId, MessageId, ServiceId};
use polity_society::notice::Notice;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

/// One thing that happened in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Record {
    /// The turn took in a message.
    Heard { message: MessageId },
    /// The system told the agent something within the turn.
    Noticed { notice: Notice },
    /// The model answered.
    Replied(Replied),
    /// The driver (the code that runs a turn) started a call of a tool that acts outside the society.
    ToolStarted {
        call: CallId,
        /// What the tool needs after a crash to find out whether the call has happened.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        evidence: Value,
    },
    /// The person was asked whether a call may be made.
    Asked {
        call: CallId,
        approval: ApprovalId,
        /// Names what the person was shown, such as the hash of files that other agents may change before the answer.
        #[serde(default, skip_serializing_if = "Value::is_null")]
        shown: Value,
    },
    /// The question whether a call may be made has ended.
    Judged {
        call: CallId,
        #[serde(flatten)]
        judgement: Judgement,
    },
    /// A tool call was finished.
    ToolFinished { call: CallId, result: ToolResult },
    /// A summary replaced the older entries of the history.
    Compacted {
        summary: String,
        /// At least this many of the newest entries stay unchanged.
        keep_recent: u64,
        /// Determines which other entries stay unchanged.
        #[serde(default)]
        keeps: Keeps,
    },
    /// The system told the agent that its context window is filling up.
    Status {
        /// Tokens of the last request and its answer.
        used: u64,
        /// The size of the window, in tokens.
        window: u64,
    },
    /// The turn failed.
    Failed { reason: String },
    /// The turn was ended from outside: its agent ended, the person stopped the turn, or the task reached a limit.
    Stopped { reason: String },
}

/// Which entries of a history a summary leaves unchanged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Keeps {
    /// All entries of the turn that asked for the summary. Some earlier turns may also keep all their entries.
    #[default]
    Turn,
    /// The newest entries only, because the turn itself is too long for the window.
    Newest,
}

/// An answer of a model, as the store keeps it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Replied {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The tool calls; their ids are unique in the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
    /// Fields that only the service understands. Later requests to this service contain these fields unchanged.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub extra: Map<String, Value>,
    /// The results of calls that are refused before they run, by call id. The results are stored here, because polity
    /// could not compute them again: the record does not contain the faulty parts of the calls. When the driver reaches
    /// a refused call, it records the stored result.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub refused: Map<String, Value>,
    /// The tool names that the model wrote wrongly, by call id. `calls` contains the right names instead.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub called_as: BTreeMap<String, String>,
    /// The service that answered.
    pub service: Option<ServiceId>,
    /// How the text was understood.
    #[serde(default, skip_serializing_if = "Taken::is_text")]
    pub taken: Taken,
}

/// How the text of an answer was understood.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Taken {
    /// The model wrote an ordinary text.
    #[default]
    Text,
    /// The model wrote tool calls as text.
    Calls,
    /// The model wrote a tool call as text, in a form that cannot be parsed.
    BrokenCall,
    /// The model wrote a text that contains the remains of a tool call, but the remains do not count as a call.
    FailedCall,
    /// The model wrote thoughts, and neither text nor calls.
    Thoughts,
}

impl Taken {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_text(&self) -> bool {
        *self == Self::Text
    }
}

impl Replied {
    /// Returns whether the answer has neither text nor calls.
    pub fn is_empty(&self) -> bool {
        self.text.is_none() && self.calls.is_empty()
    }
}

/// The result of a tool call, before it is rendered for a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolResult {
    /// JSON, passed to the model unchanged.
    Json(Value),
    /// An artifact. The runtime decides for each request in which form the model sees the artifact.
    Artifact {
        artifact: ArtifactId,
        /// The first character to show, if the artifact is a text.
        offset: u64,
        /// The most characters to show, if the artifact is a text.
        limit: Option<u64>,
        /// The names of the arguments that the tool does not know.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        ignored: Vec<String>,
    },
    /// The result of a tool that acts outside the society. The runtime decides for each request in which form the model
    /// sees the files.
    Outside {
        content: Content,
        /// The files of the result, in order.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        artifacts: Vec<ArtifactId>,
        /// The sources of the content, as the policy names them: `web`, `files` or `mcp:<server>`.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sources: Vec<String>,
    },
}

/// The content of a result from outside.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Content {
    /// JSON, passed to the model unchanged.
    Json(Value),
    /// A text, which the model gets as a quotation.
    Text {
        /// Where the text comes from, on one line: a path or an address.
        origin: String,
        text: String,
    },
}

impl ToolResult {
    /// Returns whether the result refuses the call, or a part of the call, with this code.
    pub fn refuses_with(&self, code: &str) -> bool {
        let (Self::Json(value) | Self::Outside { content: Content::Json(value), .. }) = self else {
            return false;
        };
        let parts = value.get("refused").and_then(Value::as_array).into_iter().flatten();
        parts.chain([value]).any(|part| part.get("error").and_then(Value::as_str) == Some(code))
    }

    /// Returns whether the result reports that a message was sent.
    pub fn has_sent(&self) -> bool {
        matches!(self, Self::Json(value) if value.get("messageIds").is_some())
    }
}
