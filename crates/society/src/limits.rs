//! Limits on the size, the duration and the cost of a society. The fields have the same names as in `limits` of
//! `app.json`.
//! If an action would exceed a limit, the rules or the runtime refuse the action. If a text is too long, they cut it.

use crate::refusal::Refusal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits that apply now. An optional limit that is `None` does not apply.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// Maximum number of rounds of tool calls in one turn.
    pub max_tool_rounds: u64,
    /// Maximum number of model calls in one task.
    pub max_model_calls_per_task: Option<u64>,
    /// Maximum number of tokens in one task, input and output together.
    pub max_tokens_per_task: Option<u64>,
    /// Maximum cost of one task, in the currency of the services' prices.
    pub max_cost_per_task: Option<f64>,
    /// Maximum duration of one task, in seconds.
    pub max_seconds_per_task: Option<u64>,
    /// Maximum number of active agents in one task.
    pub max_agents_per_task: u64,
    /// Maximum number of generations of agents below root.
    pub max_depth: u64,
    /// Maximum number of active children of one agent in one task.
    pub max_children: u64,
    /// How often two agents may answer each other in a row, at most, while neither of them does other work.
    pub max_pair_exchanges: u64,
    /// Number of failed turns in a row after which an agent is parked.
    pub max_failed_turns: u64,
    /// Maximum number of messages in one mailbox.
    pub max_queue: u64,
    /// Maximum length of a message, in characters.
    pub max_message_chars: u64,
    /// Maximum length of a tool result, in characters. A longer result becomes an artifact.
    pub tool_result_chars: u64,
    /// Maximum number of characters that a model gets from a text artifact. A longer text is cut, and a reference to
    /// the artifact follows it.
    pub inline_text_chars: u64,
    /// Maximum size of an artifact, in bytes.
    pub max_artifact_bytes: u64,
    /// Maximum size of all artifacts of one task together, in bytes. Each of several equal artifacts counts, although
    /// their bytes are stored only once.
    pub max_artifact_bytes_per_task: u64,
    /// Maximum size of the media in one request to a model, in bytes after base64 encoding.
    pub max_request_bytes: u64,
}

/// The name in `app.json` of the limit on the size of an artifact.
pub const ARTIFACT_LIMIT: &str = "maxArtifactBytes";

/// The name in `app.json` of the limit on the size of all artifacts of a task.
pub const TASK_ARTIFACTS_LIMIT: &str = "maxArtifactBytesPerTask";

/// The error for an artifact that has more bytes than [`ARTIFACT_LIMIT`] allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// The size of the artifact, in bytes.
    pub size: u64,
    /// The value of the limit.
    pub limit: u64,
}

impl From<TooLarge> for Refusal {
    fn from(TooLarge { size: _, limit }: TooLarge) -> Self {
        Self::LimitReached { limit: ARTIFACT_LIMIT, value: limit }
    }
}

impl Limits {
    /// Refuses an artifact that is too large.
    /// The system's own artifacts, such as a tool result that is too long for a model, are not checked.
    pub fn check_artifact(&self, size: u64) -> Result<(), TooLarge> {
        let limit = self.max_artifact_bytes;
        if size > limit { Err(TooLarge { size, limit }) } else { Ok(()) }
    }
}

impl Limits {
    /// Refuses the artifacts of a task if they together have more bytes than [`TASK_ARTIFACTS_LIMIT`] allows.
    pub fn check_artifacts_of_task(&self, bytes: u64) -> Result<(), Refusal> {
        let value = self.max_artifact_bytes_per_task;
        if bytes > value { Err(Refusal::LimitReached { limit: TASK_ARTIFACTS_LIMIT, value }) } else { Ok(()) }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_tool_rounds: 200,
            max_model_calls_per_task: Some(2000),
            max_tokens_per_task: Some(5_000_000),
            max_cost_per_task: None,
            max_seconds_per_task: None,
            max_agents_per_task: 200,
            max_depth: 8,
            max_children: 32,
            max_pair_exchanges: 100,
            max_failed_turns: 5,
            max_queue: 100_000,
            max_message_chars: 200_000,
            tool_result_chars: 30_000,
            inline_text_chars: 20_000,
            max_artifact_bytes: 64 * 1024 * 1024,
            max_artifact_bytes_per_task: 1024 * 1024 * 1024,
            max_request_bytes: 24 * 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_artifact_may_be_as_large_as_the_limit() {
        let limits = Limits { max_artifact_bytes: 4, ..Limits::default() };
        assert_eq!(limits.check_artifact(4), Ok(()));
        let too_large = TooLarge { size: 5, limit: 4 };
        assert_eq!(limits.check_artifact(5), Err(too_large));
        let refusal = Refusal::LimitReached { limit: "maxArtifactBytes", value: 4 };
        assert_eq!(Refusal::from(too_large), refusal);
    }

    #[test]
    fn the_artifacts_of_a_task_may_be_as_large_as_the_limit() {
        let limits = Limits { max_artifact_bytes_per_task: 4, ..Limits::default() };
        assert_eq!(limits.check_artifacts_of_task(4), Ok(()));
        let refusal = Refusal::LimitReached { limit: "maxArtifactBytesPerTask", value: 4 };
        assert_eq!(limits.check_artifacts_of_task(5), Err(refusal));
    }

    #[test]
    fn names_and_defaults_are_those_of_the_contract() {
        insta::assert_snapshot!(serde_json::to_string_pretty(&Limits::default()).unwrap(), @r#"
        {
          "maxToolRounds": 200,
          "maxModelCallsPerTask": 2000,
          "maxTokensPerTask": 5000000,
          "maxCostPerTask": null,
          "maxSecondsPerTask": null,
          "maxAgentsPerTask": 200,
          "maxDepth": 8,
          "maxChildren": 32,
          "maxPairExchanges": 100,
          "maxFailedTurns": 5,
          "maxQueue": 100000,
          "maxMessageChars": 200000,
          "toolResultChars": 30000,
          "inlineTextChars": 20000,
          "maxArtifactBytes": 67108864,
          "maxArtifactBytesPerTask": 1073741824,
          "maxRequestBytes": 25165824
        }
        "#);
    }
}
