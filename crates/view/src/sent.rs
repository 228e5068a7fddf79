//! Requests exactly as the servers of models got them.

use crate::Shown;
use polity_society::id::{AgentId, ServiceId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// What became of a request.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum SentOutcome {
    /// The model answered.
    Answered,
    /// The attempt failed.
    Failed,
}

impl SentOutcome {
    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A request that was sent to a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SentRequest {
    /// The number of the request. Later requests have higher numbers.
    pub number: i64,
    /// The agent whose turn made the request.
    pub agent: AgentId,
    /// The task of the turn.
    pub task: TaskId,
    /// The turn that made the request.
    pub turn: i64,
    /// The service that got the request.
    pub service: ServiceId,
    /// The name of the model: the name in the answer of the server, or else the name in the configuration.
    pub model: String,
    /// The revision of the configuration for which the request was made.
    pub revision: u64,
    /// What became of the request.
    pub outcome: SentOutcome,
    /// The number of the record that contains the answer. Absent if there is no such record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record: Option<i64>,
    /// The time at which the outcome was recorded.
    pub at: i64,
    /// How the request showed the artifacts of the conversation.
    pub shown: Vec<Shown>,
    /// The body of the request as it was sent, byte for byte. Only the media in base64 are replaced: in place of each
    /// medium, there are its reference and its length, in angle brackets. Absent if the task had no room left for the
    /// texts of requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<String>,
}
