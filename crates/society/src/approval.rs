//! Answers of the person to the question whether an agent may make a call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// What the person answers.
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
pub enum Answer {
    /// This call may be made.
    Yes,
    /// This call and equal calls may be made until the end of the task.
    Task,
    /// This call and equal calls may always be made.
    Always,
    /// This call may not be made.
    No,
}

/// The result of a question about a call. The agent that wants to make the call gets this result.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "judgement", rename_all = "snake_case")]
pub enum Judgement {
    /// The call may be made.
    Allowed,
    /// The person refused the call.
    Denied {
        /// The reason that the person gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// Nobody answered in time, which counts as no.
    Expired,
}

impl Judgement {
    /// Returns what an answer means for the call. `reason` is used only if the answer is no.
    pub fn of(answer: Answer, reason: Option<String>) -> Self {
        match answer {
            Answer::Yes | Answer::Task | Answer::Always => Self::Allowed,
            Answer::No => Self::Denied { reason },
        }
    }
}
