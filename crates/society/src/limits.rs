//! What stops a society from running away. The names are those of `limits` in `app.json`; the rules and the runtime
//! refuse or cut where one is reached.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limits that are in force. Where a limit is optional, `None` means that there is none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Limits {
    /// How many rounds of tool calls one turn may have.
    pub max_tool_rounds: u64,
    /// How many model calls one task may make.
    pub max_model_calls_per_task: Option<u64>,
    /// How many tokens, in and out together, one task may use.
    pub max_tokens_per_task: Option<u64>,
    /// What one task may cost, in the currency of the services' prices.
    pub max_cost_per_task: Option<f64>,
    /// How many seconds one task may take.
    pub max_seconds_per_task: Option<u64>,
    /// How many agents one task may hire.
    pub max_agents_per_task: u64,
    /// How many generations of agents may stand below root.
    pub max_depth: u64,
    /// How many children one agent may have.
    pub max_children: u64,
    /// How many messages one pair may exchange with no other work in between.
    pub max_pair_exchanges: u64,
    /// How many turns of an agent may fail in a row before it is parked.
    pub max_failed_turns: u64,
    /// How many messages may wait for one agent.
    pub max_queue: u64,
    /// How many characters one message may have.
    pub max_message_chars: u64,
    /// How many characters a tool result may have before it becomes an artifact.
    pub tool_result_chars: u64,
    /// How many characters of a text are shown before it is cut with a reference.
    pub inline_text_chars: u64,
    /// How many bytes one artifact may have.
    pub max_artifact_bytes: u64,
    /// How many bytes one request to a model may have.
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
