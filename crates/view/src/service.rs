//! Services and the configuration.

use super::UsageSum;
use polity_society::content::Capabilities;
use polity_society::id::{ArtifactId, ServiceId};
use polity_society::limits::Limits;
use polity_society::text::Language;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A service: its configuration and its current state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceView {
    /// The id of the service.
    pub id: ServiceId,
    /// The name for people.
    pub name: String,
    /// The name that the server uses for the model.
    pub model: String,
    /// The base URL of the server, without secrets.
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// The input and output capabilities of the model.
    pub capabilities: Capabilities,
    /// Whether agents get tools on this service. They get tools, unless the configuration declares output capabilities
    /// and `tool_calling` is not among them.
    pub calls_tools: bool,
    /// Tags by which the service is chosen for a role.
    pub capability_tags: Vec<String>,
    /// The kinds of work for which the service is suitable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The size of the context window in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// Estimated tokens of the rules that every request to the model contains if root uses this service. The definitions
    /// of tools are not included.
    #[serde(default)]
    pub rules_tokens: u64,
    /// Maximum number of calls that the service takes at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u64>,
    /// The service that is asked if this service fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ServiceId>,
    /// The price of the service's tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceView>,
    /// Whether this is the default service.
    pub is_default: bool,
    /// Whether the API key of the service is available. A key that comes from an environment variable is available if
    /// the variable is set now.
    pub key_set: bool,
    /// Number of live agents that the service serves.
    pub agents: u64,
    /// The current state of the service.
    pub state: ServiceState,
    /// The tokens and the cost that were spent at the service.
    pub usage: UsageSum,
    /// The media that the service has refused since the configuration last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_media: Option<RefusedMedia>,
}

/// The price of a million tokens.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceView {
    /// Price of a million tokens in requests.
    pub input: f64,
    /// Price of a million tokens in answers.
    pub output: f64,
}

/// The media that a service has refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedMedia {
    /// True if polity now sends the service no media at all. This is so after the service has refused several media and
    /// accepted none.
    pub all: bool,
    /// The artifacts that the service has refused.
    pub artifacts: Vec<ArtifactId>,
}

/// The current state of a service.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceState {
    /// Number of calls in progress.
    pub in_flight: u64,
    /// Number of callers that wait until the service may take a further call.
    pub waiting: u64,
    /// Remaining time of the pause that the service has asked for, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_for_ms: Option<u64>,
    /// Whether calls are admitted.
    pub circuit: Circuit,
    /// The most recent failure. Absent once the service has answered again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The time at which the service began to fail: its first failure after its last answer. Absent while the service
    /// answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing_since: Option<i64>,
}

/// Whether calls to a service are admitted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Circuit {
    /// Calls are admitted.
    #[default]
    Closed,
    /// The service failed again and again, so polity sends it no calls for a while.
    Open,
    /// One call tests, or will test, whether the service answers again.
    HalfOpen,
}

/// The configuration that polity uses now, and the problems of its files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigView {
    /// The revision that polity uses now.
    pub revision: u64,
    /// The directory of the configuration files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// A text that tells where the services come from.
    pub origin: String,
    /// Whether the built-in rehearsal models answer, because there is no real model.
    #[serde(default)]
    pub is_rehearsal: bool,
    /// The language of texts for models and people.
    #[schemars(with = "String")]
    pub language: Language,
    /// The problems in the configuration files as they are now.
    pub problems: Vec<ConfigProblem>,
    /// The services in the order of the file.
    pub services: Vec<ServiceId>,
    /// The service for roles that name no service.
    pub default_service: ServiceId,
    /// The base URL of the default service, without secrets.
    #[serde(default, rename = "defaultServiceURL", skip_serializing_if = "Option::is_none")]
    pub default_service_url: Option<String>,
    /// The context window of the default service in tokens, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default_context_window: Option<u64>,
    /// The limits on the size, the duration and the cost of the society.
    pub limits: Limits,
    /// The directory with prompts that replace the built-in prompts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
}

/// A problem in a configuration file. The description quotes no values of the file, because any value may be a
/// secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigProblem {
    /// The name of the file in the configuration directory, or the name of an environment variable.
    pub file: String,
    /// The JSON pointer of the value, or its dotted key in a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The line where the text stops being valid JSON or TOML, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column in the line, in characters, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// How severe the problem is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What polity did about the problem.
    pub done: String,
}

/// How severe a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Polity could not use something that the file declares.
    Error,
    /// Polity uses everything that the file declares, but a part of the file is probably a mistake.
    Warning,
}
