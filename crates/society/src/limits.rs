//! Limits that keep a society from running away, named as in `limits` of `app.json`.
//! The rules and the runtime refuse or cut what would exceed one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits in force. An optional limit that is `None` does not apply.
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
    /// Maximum number of times two agents may answer each other in a row while neither does other work.
    pub max_pair_exchanges: u64,
    /// Number of failed turns in a row after which an agent is parked.
    pub max_failed_turns: u64,
    /// Maximum number of messages in one mailbox.
    pub max_queue: u64,
    /// Maximum length of a message, in characters.
    pub max_message_chars: u64,
    /// Maximum length of a tool result, in characters. A longer result becomes an artifact.
    pub tool_result_chars: u64,
    /// Maximum length of a shown text, in characters. A longer text is cut and followed by its reference.
    pub inline_text_chars: u64,
    /// Maximum size of an artifact, in bytes.
    pub max_artifact_bytes: u64,
    /// Maximum size of the media in one request to a model, in bytes of base64.
    pub max_request_bytes: u64,
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
            max_request_bytes: 24 * 1024 * 1024,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
          "maxRequestBytes": 25165824
        }
        "#);
    }
}
