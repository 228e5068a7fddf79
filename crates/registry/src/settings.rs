//! The settings of `app.json`.

mod policy;

mod sandbox;

mod servers;

mod web;

mod tools;

pub use polity_sandbox::{TaskLimits, Unconfined};
pub use sandbox::SandboxSettings;
pub use servers::{ServerLaunch, ServerSandbox, ServerSettings};
pub use tools::{Percent, ToolSettings};
pub use web::{SearchProvider, SearchSettings, WebSettings};

use crate::fields::{self, Fields};
use crate::problem::{Place, Problem, Severity};
use crate::secret;
use polity_society::id::ServiceId;
use polity_society::limits::{Limits, TASK_ARTIFACTS_LIMIT};
use polity_society::rules::{Link, Rights};
use polity_society::text::Language;
use polity_society::tool_group::{ServerGroups, ServerName, ToolGroup};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};

/// The name of the file in the configuration directory. Messages about problems in the file use this name, too.
pub(crate) const FILE: &str = "app.json";

/// The content of `app.json`, with defaults for missing fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The language of everything that polity writes for models and people.
    pub language: Language,
    /// The service for a role that neither names a service nor has requirements. `None` selects the first service.
    pub default_service: Option<ServiceId>,
    /// Whether to look for model servers on this machine if no service is declared.
    pub discover: Discover,
    /// The directory with the person's own prompts, which replace built-in prompts. The path is relative to the
    /// configuration directory.
    pub prompts: Option<PathBuf>,
    /// Limits on the size, the duration and the cost of a society.
    pub limits: Limits,
    /// How durable a commit of the database is.
    pub synchronous: Synchronous,
    /// After a signal to stop, polity gives running model calls and tools this time to finish.
    pub shutdown_grace: Duration,
    /// When and how often failed model calls are retried.
    pub retry: Retry,
    /// How long events and finished tasks are kept.
    pub retention: Retention,
    /// Which tools agents have, and which of their calls the person must allow.
    pub tools: ToolSettings,
    /// The MCP servers. The keys are their names in `app.json`.
    pub servers: BTreeMap<ServerName, ServerSettings>,
}

impl Settings {
    /// Returns the groups of tools that may differ between roles: one role has the group, another role does not.
    pub fn groups(&self) -> impl Iterator<Item = ToolGroup> + use<> {
        ToolGroup::deniable().chain(self.server_groups().all())
    }

    /// Returns the MCP servers, each with its further groups (see [`ServerSettings::groups`]).
    pub fn server_groups(&self) -> ServerGroups {
        ServerGroups::new(self.servers.iter().map(|(name, server)| (name.clone(), server.groups.clone())))
    }

    /// Returns the rights of an agent. `chain` contains the roles that restrict the agent: first its own role, then the
    /// roles of the agents above it.
    pub fn rights(&self, chain: &[Link]) -> Rights {
        Rights::of(&self.tools.root, chain).with_servers(self.server_groups())
    }

    /// Returns a warning for each environment variable that is unset, but used as `${NAME}` in the settings of the MCP
    /// servers or of the web search. Uses the function `variable` to look up the variables.
    pub(crate) fn unset_variables(&self, variable: impl Fn(&str) -> Option<String>) -> Vec<Problem> {
        let of_servers = self.servers.iter().flat_map(|(name, server)| {
            let done = format!("the MCP server {:?} does not start until it is", name.as_str());
            let pointer = format!("/mcpServers/{name}");
            let texts = server.texts().into_iter();
            texts.map(move |(field, text)| (format!("{pointer}/{field}"), text, done.clone()))
        });
        let of_search = match &self.tools.web.search {
            Some(SearchSettings::WithKey { key, .. }) => {
                Some(("/tools/web/search/key".to_owned(), key, "there is no search until it is".to_owned()))
            }
            Some(SearchSettings::Searxng(_)) | None => None,
        };
        let mut problems = Vec::new();
        for (pointer, text, done) in of_servers.chain(of_search) {
            let unset = secret::variables(text.written()).filter(|name| variable(name).is_none());
            problems.extend(unset.map(|name| Problem {
                file: FILE.to_owned(),
                place: Place::Pointer(pointer.clone()),
                severity: Severity::Warning,
                what: format!("the environment variable {name} is not set"),
                done: done.clone(),
            }));
        }
        problems
    }
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            language: Language::default(),
            default_service: None,
            discover: Discover::On,
            prompts: None,
            limits: Limits::default(),
            synchronous: Synchronous::Full,
            shutdown_grace: Duration::from_secs(5),
            retry: Retry::default(),
            retention: Retention::default(),
            tools: ToolSettings::default(),
            servers: BTreeMap::new(),
        }
    }
}

/// Whether polity looks for model servers on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discover {
    /// Polity looks for model servers if no service is declared.
    On,
    /// Polity uses the built-in models if no service is declared.
    Off,
}

impl From<bool> for Discover {
    fn from(on: bool) -> Self {
        if on { Self::On } else { Self::Off }
    }
}

/// How durable a commit of the database is. The names are SQLite's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Synchronous {
    /// A commit survives a power failure.
    Full,
    /// A commit survives the end of the process. A power failure may lose the last commits.
    Normal,
}

/// When and how often failed model calls are retried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Maximum number of attempts for one call. The first attempt counts, and so do attempts with fallback services.
    pub max_attempts: u32,
    /// The pause after the first failure. It doubles with each further failure.
    pub base_delay: Duration,
    /// The longest pause. It is never shorter than `base_delay`.
    pub max_delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 6, base_delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }
}

/// How long old data are kept. If `max_database_bytes` is `None`, messages, records and artifacts are kept for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Number of days that events are kept; `None` keeps them for ever.
    pub events_days: Option<u32>,
    /// Maximum number of events that are kept. If there are more, the oldest events are deleted. `None` keeps all
    /// events.
    pub max_events: Option<u32>,
    /// Maximum size of the database, in bytes. If the database is larger, polity deletes the content of the oldest
    /// finished tasks. `None` means no limit.
    pub max_database_bytes: Option<u64>,
}

impl Default for Retention {
    fn default() -> Self {
        Self { events_days: Some(90), max_events: Some(200_000), max_database_bytes: None }
    }
}

/// Reads `app.json`.
///
/// # Errors
///
/// Fails if the text is not a JSON object. Does not fail because of a mistake in one field: that field gets its
/// default.
pub(crate) fn parse(text: &str) -> Result<(Settings, Vec<Problem>), Problem> {
    let root = fields::parse_object(FILE, text)?;
    let mut problems = Vec::new();
    let mut fields = Fields::new(FILE, "", root, &mut problems);
    let default = Settings::default();
    let servers = servers::read(&mut fields);
    let names =
        servers.iter().flat_map(|(name, server)| server.groups.iter().chain([name])).cloned().collect();
    let settings = Settings {
        language: fields.read_or("language", default.language, fields::member),
        default_service: fields
            .read("defaultService", "the first service is the default", fields::name)
            .map(ServiceId::new),
        discover: fields.read_or("discover", default.discover, fields::switch),
        prompts: fields.read("prompts", "the built-in prompts are used", fields::name).map(PathBuf::from),
        limits: read_limits(&mut fields),
        synchronous: fields.read_or("synchronous", default.synchronous, fields::member),
        shutdown_grace: fields.read_or("shutdownGraceMs", default.shutdown_grace, fields::milliseconds),
        retry: read_retry(&mut fields),
        retention: read_retention(&mut fields),
        tools: tools::read(&mut fields, &names),
        servers,
    };
    fields.finish("it has no effect");
    Ok((settings, problems))
}

fn read_limits(fields: &mut Fields<'_>) -> Limits {
    let default = Limits::default();
    let Some(mut object) = fields.open("limits", "the defaults are used") else {
        return default;
    };
    let limits = Limits {
        max_tool_rounds: object.read_or("maxToolRounds", default.max_tool_rounds, fields::count),
        max_model_calls_per_task: optional(
            &mut object,
            "maxModelCallsPerTask",
            default.max_model_calls_per_task,
            fields::count,
        ),
        max_tokens_per_task: optional(
            &mut object,
            "maxTokensPerTask",
            default.max_tokens_per_task,
            fields::count,
        ),
        max_cost_per_task: optional(&mut object, "maxCostPerTask", default.max_cost_per_task, fields::amount),
        max_seconds_per_task: optional(
            &mut object,
            "maxSecondsPerTask",
            default.max_seconds_per_task,
            fields::count,
        ),
        max_agents_per_task: object.read_or("maxAgentsPerTask", default.max_agents_per_task, fields::count),
        max_depth: object.read_or("maxDepth", default.max_depth, fields::count),
        max_children: object.read_or("maxChildren", default.max_children, fields::count),
        max_pair_exchanges: object.read_or("maxPairExchanges", default.max_pair_exchanges, fields::count),
        max_failed_turns: object.read_or("maxFailedTurns", default.max_failed_turns, fields::count),
        max_queue: object.read_or("maxQueue", default.max_queue, fields::count),
        max_message_chars: object.read_or("maxMessageChars", default.max_message_chars, fields::count),
        tool_result_chars: object.read_or("toolResultChars", default.tool_result_chars, fields::count),
        inline_text_chars: object.read_or("inlineTextChars", default.inline_text_chars, fields::count),
        max_artifact_bytes: object.read_or("maxArtifactBytes", default.max_artifact_bytes, fields::count),
        max_artifact_bytes_per_task: object.read_or(
            TASK_ARTIFACTS_LIMIT,
            default.max_artifact_bytes_per_task,
            fields::count,
        ),
        max_request_bytes: object.read_or("maxRequestBytes", default.max_request_bytes, fields::count),
    };
    object.finish("it has no effect");
    limits
}

/// Reads a limit. The value `null` means that there is no limit.
fn optional<T>(
    object: &mut Fields<'_>,
    field: &str,
    default: Option<T>,
    read: impl FnOnce(Value) -> Result<T, &'static str>,
) -> Option<T> {
    if object.is_null(field) {
        object.take(field);
        return None;
    }
    object.read(field, "the default is used", read).or(default)
}

fn read_retry(fields: &mut Fields<'_>) -> Retry {
    let default = Retry::default();
    let Some(mut object) = fields.open("retry", "the defaults are used") else {
        return default;
    };
    let mut retry = Retry {
        max_attempts: object.read_or("maxAttempts", default.max_attempts, fields::count),
        base_delay: object.read_or("baseDelayMs", default.base_delay, fields::milliseconds),
        max_delay: object.read_or("maxDelayMs", default.max_delay, fields::milliseconds),
    };
    if retry.max_delay < retry.base_delay {
        object.report(
            Severity::Error,
            "maxDelayMs",
            "is less than baseDelayMs",
            "baseDelayMs is used for both",
        );
        retry.max_delay = retry.base_delay;
    }
    object.finish("it has no effect");
    retry
}

fn read_retention(fields: &mut Fields<'_>) -> Retention {
    let default = Retention::default();
    let Some(mut object) = fields.open("retention", "the defaults are used") else {
        return default;
    };
    let retention = Retention {
        events_days: optional(&mut object, "eventsDays", default.events_days, fields::count),
        max_events: optional(&mut object, "maxEvents", default.max_events, fields::count),
        max_database_bytes: optional(
            &mut object,
            "maxDatabaseBytes",
            default.max_database_bytes,
            fields::count,
        ),
    };
    object.finish("it has no effect");
    retention
}

#[cfg(test)]
mod tests;
