//! Services and the configuration.

use super::UsageSum;
use polity_society::content::Capabilities;
use polity_society::id::{ArtifactId, ServiceId};
use polity_society::limits::Limits;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A service, as it is configured and as it is doing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceView {
    /// Its id.
    pub id: ServiceId,
    /// Its name for people.
    pub name: String,
    /// The model's name on its server.
    pub model: String,
    /// Where it is reached, without anything secret.
    #[serde(rename = "baseURL")]
    pub base_url: String,
    /// What it takes and gives.
    pub capabilities: Capabilities,
    /// Words by which it is chosen for a role.
    pub capability_tags: Vec<String>,
    /// What it is good for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// How many tokens it can have in view.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<u64>,
    /// How many requests it takes at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<u64>,
    /// The service that stands in when this one fails.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ServiceId>,
    /// What it costs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<PriceView>,
    /// Whether it is the default.
    pub is_default: bool,
    /// Whether a key is there for it. Where it is read from the environment: whether it is set there now.
    pub key_set: bool,
    /// How many live agents it serves.
    pub agents: u64,
    /// How it is doing.
    pub state: ServiceState,
    /// What it was used for.
    pub usage: UsageSum,
    /// What media it has refused since the configuration was last changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refused_media: Option<RefusedMedia>,
}

/// What a million tokens cost.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PriceView {
    /// A million tokens of a request.
    pub input: f64,
    /// A million tokens of an answer.
    pub output: f64,
}

/// Media that a service has refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RefusedMedia {
    /// Whether it is not sent any media now, because it has refused several and taken none.
    pub all: bool,
    /// The artifacts that it has refused.
    pub artifacts: Vec<ArtifactId>,
}

/// How a service is doing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServiceState {
    /// How many calls are under way.
    pub in_flight: u64,
    /// How many callers wait to be let in.
    pub waiting: u64,
    /// For how long it has asked to be left alone, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused_for_ms: Option<u64>,
    /// Whether it is asked at all.
    pub circuit: Circuit,
    /// The last failure in a row of failures; none once it has answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
}

/// Whether a service is asked at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Circuit {
    /// It is.
    #[default]
    Closed,
    /// It has failed again and again, and is left alone for a while.
    Open,
    /// One call finds out, or is about to, whether it lives.
    HalfOpen,
}

/// What is in force, and what is wrong with the files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigView {
    /// The revision that is in force.
    pub revision: u64,
    /// The directory of the files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// Where the services come from, in words.
    pub origin: String,
    /// The language of texts for models and people.
    pub language: String,
    /// What is wrong with the files as they are now.
    pub problems: Vec<ConfigProblem>,
    /// The services, in the order of the file.
    pub services: Vec<ServiceId>,
    /// The service that counts where a role asks for nothing.
    pub default_service: ServiceId,
    /// What stops a society from running away.
    pub limits: Limits,
    /// The directory of prompts that stand in for those that come with polity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompts: Option<String>,
}

/// One thing that is wrong with a file of the configuration. No value is quoted, because any may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ConfigProblem {
    /// The file, as it is called in its directory; or the environment variable.
    pub file: String,
    /// The JSON pointer of the value, or the dotted key in a TOML file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// The line where the text stops being JSON or TOML, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// The column there, in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong.
    pub message: String,
    /// What was done about it.
    pub done: String,
}

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something that was declared is not in force.
    Error,
    /// Everything is in force, but something looks like a mistake.
    Warning,
}
