//! The settings of `app.json`.

use crate::fields::{self, Fields};
use crate::problem::{Problem, Severity};
use polity_society::id::ServiceId;
use polity_society::limits::Limits;
use polity_society::text::Language;
use polity_society::tool_group::{Grant, ToolGroup, UnknownGroup};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;
use strum::{IntoStaticStr, VariantArray};

/// The name of the file in the configuration directory. Problems name the file in the same way.
pub(crate) const FILE: &str = "app.json";

/// The content of `app.json`, with defaults for missing fields.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The language of everything that polity writes for models and people.
    pub language: Language,
    /// The service for roles that name no service and have no requirements; `None` selects the first service.
    pub default_service: Option<ServiceId>,
    /// Whether to look for a model server on this machine if no service is declared.
    pub discover: Discover,
    /// The directory with prompts that replace built-in ones, relative to the configuration directory.
    pub prompts: Option<PathBuf>,
    /// Limits on the size, the duration and the cost of a society.
    pub limits: Limits,
    /// How durable a commit of the database is.
    pub synchronous: Synchronous,
    /// Time that running model calls and tools get to finish after a signal to stop.
    pub shutdown_grace: Duration,
    /// When and how often failed model calls are retried.
    pub retry: Retry,
    /// How long events and finished tasks are kept.
    pub retention: Retention,
    /// The groups of tools that root has; every other agent has at most these.
    pub root_tools: Vec<Grant>,
}

impl Settings {
    /// Returns the groups of tools that a role can have or lack.
    pub fn groups(&self) -> impl Iterator<Item = ToolGroup> + use<> {
        ToolGroup::deniable()
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
            root_tools: Grant::everything(),
        }
    }
}

/// Whether polity looks for a model server on this machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discover {
    /// Polity looks for a model server if no service is declared.
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
    /// Number of attempts per call, including the first one and those with fallback services.
    pub max_attempts: u32,
    /// The pause after the first failure. It doubles with each further failure.
    pub base_delay: Duration,
    /// The longest pause, at least as long as `base_delay`.
    pub max_delay: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { max_attempts: 6, base_delay: Duration::from_millis(500), max_delay: Duration::from_secs(30) }
    }
}

/// How long the past is kept. Messages, records and artifacts are kept for ever, unless `max_database_bytes` is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Number of days that events are kept; `None` keeps them for ever.
    pub events_days: Option<u32>,
    /// Number of newest events that are kept; `None` keeps all.
    pub max_events: Option<u32>,
    /// Bytes of the database above which polity deletes the content of the oldest finished tasks; `None` for no limit.
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
/// Fails if the text is not a JSON object. A mistake in one field is not a failure: that field gets its default.
pub(crate) fn parse(text: &str) -> Result<(Settings, Vec<Problem>), Problem> {
    let root = fields::parse_object(FILE, text)?;
    let mut problems = Vec::new();
    let mut fields = Fields::new(FILE, "", root, &mut problems);
    let default = Settings::default();
    let settings = Settings {
        language: fields.read_or("language", default.language, fields::member),
        default_service: fields
            .read("defaultService", "the first service is the default", fields::name)
            .map(ServiceId::new),
        discover: fields.read_or("discover", default.discover, fields::switch),
        prompts: fields.read("prompts", "the built-in prompts are used", fields::name).map(PathBuf::from),
        limits: read_limits(&mut fields),
        synchronous: fields.read_or("synchronous", default.synchronous, fields::member),
        shutdown_grace: fields.read_or("shutdownGraceMs", default.shutdown_grace, milliseconds),
        retry: read_retry(&mut fields),
        retention: read_retention(&mut fields),
        root_tools: read_tools(&mut fields),
    };
    fields.finish("it has no effect");
    Ok((settings, problems))
}

fn milliseconds(value: Value) -> Result<Duration, &'static str> {
    fields::count(value).map(Duration::from_millis)
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
        base_delay: object.read_or("baseDelayMs", default.base_delay, milliseconds),
        max_delay: object.read_or("maxDelayMs", default.max_delay, milliseconds),
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

fn read_tools(fields: &mut Fields<'_>) -> Vec<Grant> {
    let default = Settings::default().root_tools;
    let Some(mut object) = fields.open("tools", "the defaults are used") else {
        return default;
    };
    let names = object.read("root", "root has all groups", fields::texts);
    let groups = names.map_or(default, |names| {
        let mut grants = Vec::new();
        for name in names {
            let what = match name.parse() {
                Ok(Grant::Group(group)) if group.is_later() => {
                    format!("this version does not have the tool group \"{name}\" yet")
                }
                // Every agent has this group, whether or not it is listed.
                Ok(Grant::Group(group)) if group.is_for_everybody() => continue,
                Ok(grant) => {
                    grants.push(grant);
                    continue;
                }
                Err(UnknownGroup) => format!("\"{name}\" is not a tool group"),
            };
            object.report(Severity::Warning, "root", what, "it has no effect");
        }
        grants
    });
    object.finish("it has no effect");
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Settings, Vec<String>) {
        let (settings, problems) = parse(text).unwrap();
        (settings, problems.iter().map(Problem::to_string).collect())
    }

    #[test]
    fn the_shipped_file_says_the_defaults() {
        assert_eq!(parsed(include_str!("../../../config/app.json")), (Settings::default(), Vec::new()));
        assert_eq!(parsed("{}"), (Settings::default(), Vec::new()));
    }

    #[test]
    fn the_shipped_file_names_every_limit() {
        let root = fields::parse_object(FILE, include_str!("../../../config/app.json")).unwrap();
        assert_eq!(root["limits"], serde_json::to_value(Limits::default()).unwrap());
    }

    #[test]
    fn everything_can_be_set() {
        let text = r#"{
            "language": "en", "defaultService": " local ", "discover": false, "prompts": "my prompts",
            "limits": {
                "maxToolRounds": 1, "maxModelCallsPerTask": 2, "maxTokensPerTask": null, "maxCostPerTask": 2.5,
                "maxSecondsPerTask": 3, "maxAgentsPerTask": 4, "maxDepth": 5, "maxChildren": 6,
                "maxPairExchanges": 7, "maxFailedTurns": 18, "maxQueue": 8, "maxMessageChars": 9, "toolResultChars": 10,
                "inlineTextChars": 11, "maxArtifactBytes": 12, "maxRequestBytes": 13
            },
            "synchronous": "normal", "shutdownGraceMs": 14,
            "retry": {"maxAttempts": 15, "baseDelayMs": 16, "maxDelayMs": 17},
            "retention": {"eventsDays": 18, "maxEvents": null, "maxDatabaseBytes": 19},
            "tools": {"root": ["artifacts", "messages"]}
        }"#;
        let expect = Settings {
            language: Language::En,
            default_service: Some(ServiceId::new("local")),
            discover: Discover::Off,
            prompts: Some(PathBuf::from("my prompts")),
            limits: Limits {
                max_tool_rounds: 1,
                max_model_calls_per_task: Some(2),
                max_tokens_per_task: None,
                max_cost_per_task: Some(2.5),
                max_seconds_per_task: Some(3),
                max_agents_per_task: 4,
                max_depth: 5,
                max_children: 6,
                max_pair_exchanges: 7,
                max_failed_turns: 18,
                max_queue: 8,
                max_message_chars: 9,
                tool_result_chars: 10,
                inline_text_chars: 11,
                max_artifact_bytes: 12,
                max_request_bytes: 13,
            },
            synchronous: Synchronous::Normal,
            shutdown_grace: Duration::from_millis(14),
            retry: Retry {
                max_attempts: 15,
                base_delay: Duration::from_millis(16),
                max_delay: Duration::from_millis(17),
            },
            retention: Retention { events_days: Some(18), max_events: None, max_database_bytes: Some(19) },
            root_tools: vec![Grant::Group(ToolGroup::Artifacts)],
        };
        assert_eq!(parsed(text), (expect, Vec::new()));
    }

    #[test]
    fn a_bad_field_costs_its_own_value_only() {
        let text = r#"{
            "language": "fr", "defaultService": "", "discover": "yes", "prompts": 3, "synchronous": true,
            "shutdownGraceMs": -1, "colour": "red",
            "limits": {"maxToolRounds": 0, "maxDepth": -3, "maxChildren": 1.5, "maxTokensPerTask": "many",
                       "maxCostPerTask": 0, "maxQueue": 7, "maxPears": 3},
            "retry": {"maxAttempts": 99999999999, "baseDelayMs": 900, "maxDelayMs": 800},
            "retention": {"eventsDays": 0, "maxEvents": -1, "records": 3},
            "tools": {"root": ["organization", "artifacts", "context", "files", "command", "web", "mcp:*", "memory", "hammers"], "leaf": []}
        }"#;
        let (settings, problems) = parsed(text);
        let limits = Limits { max_queue: 7, ..Limits::default() };
        let pause = Duration::from_millis(900);
        let retry = Retry { base_delay: pause, max_delay: pause, ..Retry::default() };
        assert_eq!(settings, Settings { limits, retry, ..Settings::default() });
        insta::assert_snapshot!(problems.join("\n"), @r#"
        app.json: /language: must be "zh" or "en"; the default is used
        app.json: /defaultService: must not be empty; the first service is the default
        app.json: /discover: must be true or false; the default is used
        app.json: /prompts: must be a string; the built-in prompts are used
        app.json: /limits/maxToolRounds: must be a whole number above zero; the default is used
        app.json: /limits/maxTokensPerTask: must be a whole number above zero; the default is used
        app.json: /limits/maxCostPerTask: must be a number above zero; the default is used
        app.json: /limits/maxDepth: must be a whole number above zero; the default is used
        app.json: /limits/maxChildren: must be a whole number above zero; the default is used
        app.json: /limits/maxPears: there is no such field; it has no effect
        app.json: /synchronous: must be "full" or "normal"; the default is used
        app.json: /shutdownGraceMs: must be a whole number above zero; the default is used
        app.json: /retry/maxAttempts: is too large; the default is used
        app.json: /retry/maxDelayMs: is less than baseDelayMs; baseDelayMs is used for both
        app.json: /retention/eventsDays: must be a whole number above zero; the default is used
        app.json: /retention/maxEvents: must be a whole number above zero; the default is used
        app.json: /retention/records: there is no such field; it has no effect
        app.json: /tools/root: this version does not have the tool group "memory" yet; it has no effect
        app.json: /tools/root: "hammers" is not a tool group; it has no effect
        app.json: /tools/leaf: there is no such field; it has no effect
        app.json: /colour: there is no such field; it has no effect
        "#);
    }

    #[test]
    fn what_is_no_json_object_is_not_taken() {
        let check = |text: &str, expect: &str| assert_eq!(parse(text).unwrap_err().to_string(), expect);
        check("", "app.json: the file is empty; the file is not used");
        check("{\"language\": \"en\"", "app.json:1:18: Unterminated object; the file is not used");
        check("[]", "app.json: must contain one JSON object; the file is not used");
    }
}
