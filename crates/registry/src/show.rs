//! Shows the configuration in force as JSON for people and programs, without secrets.
//! Instead of a key, it shows where the key comes from.

use crate::secret::whence;
use crate::services::{Declaration, Price, Service, StripMetadata};
use crate::settings::{Discover, Retention, Retry, Settings};
use crate::show_tools::{self, millis};
use crate::snapshot::Snapshot;
use polity_llm::{Endpoint, Timeouts};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

impl Snapshot {
    /// Returns the services and the settings in force, and the problems of the files.
    pub fn to_json(&self) -> Value {
        let services: Vec<Value> = self.catalogue.services().iter().map(|shown| service(shown)).collect();
        json!({
            "revision": self.revision,
            "origin": self.catalogue.origin().to_string(),
            "defaultService": self.catalogue.default_service().id,
            "services": services,
            "settings": settings(&self.settings),
            "problems": self.problems,
        })
    }
}

/// Returns a service as JSON, with the field names of the file. The patterns in this function list every field: if
/// somebody adds a field to the type, the compiler reports an error here.
pub(crate) fn service(service: &Service) -> Value {
    let Service {
        id,
        name,
        description,
        capability_tags,
        capabilities,
        declared,
        endpoint,
        max_concurrent,
        context_window,
        fallback,
        file_types,
        max_image_bytes,
        max_image_edge,
        max_request_bytes,
        strip_metadata,
        price,
        // Unknown fields are not shown, because a misspelt `apiKey` may be among them.
        unknown: _,
    } = service;
    let Endpoint { base_url, model, api_key, headers, timeout, timeouts, max_tokens, extra_body, dialect } =
        endpoint;
    let Timeouts { connect, first_byte, between_bytes } = timeouts;
    let headers: Map<String, Value> =
        headers.iter().map(|(name, value)| (name.clone(), json!(whence(value.expose_secret())))).collect();
    let extra: Vec<&String> = extra_body.keys().collect();
    let mut shown = json!({
        "id": id,
        "name": name,
        "description": description,
        "baseURL": base_url,
        "model": model,
        "apiKey": whence(api_key.expose_secret()),
        "capabilities": capabilities,
        "capabilitiesDeclared": *declared != Declaration::Assumed,
        "givenTools": service.tools_allowed(),
        "capabilityTags": capability_tags,
        "dialect": dialect,
        "fileTypes": file_types,
        "timeoutMs": millis(*timeout),
        "timeouts": {
            "connectMs": millis(*connect),
            "firstByteMs": millis(first_byte.unwrap_or(*timeout)),
            "betweenBytesMs": millis(*between_bytes),
        },
        "stripMetadata": *strip_metadata == StripMetadata::Strip,
    });
    let price = price.map(|Price { input, output }| json!({"input": input, "output": output}));
    let optional = [
        ("maxTokens", max_tokens.map(|value| json!(value))),
        ("maxConcurrentRequests", max_concurrent.map(|value| json!(value))),
        ("contextWindow", context_window.map(|value| json!(value))),
        ("fallback", fallback.as_ref().map(|value| json!(value))),
        ("maxImageBytes", max_image_bytes.map(|value| json!(value))),
        ("maxImageEdge", max_image_edge.map(|value| json!(value))),
        ("maxRequestBytes", max_request_bytes.map(|value| json!(value))),
        ("price", price),
        ("headers", (!headers.is_empty()).then_some(Value::Object(headers))),
        ("extraBody", (!extra.is_empty()).then(|| json!(extra))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            shown[name] = value;
        }
    }
    shown
}

/// Returns the settings as JSON, with the field names of the file. The patterns in this function list every field: if
/// somebody adds a field to the type, the compiler reports an error here.
pub(crate) fn settings(settings: &Settings) -> Value {
    let Settings {
        language,
        default_service,
        discover,
        prompts,
        limits,
        synchronous,
        shutdown_grace,
        retry,
        retention,
        tools,
        servers,
    } = settings;
    let servers: Map<String, Value> =
        servers.iter().map(|(name, server)| (name.to_string(), show_tools::server(server))).collect();
    let Retry { max_attempts, base_delay, max_delay } = retry;
    let Retention { events_days, max_events, max_database_bytes } = retention;
    json!({
        "language": language.as_str(),
        "defaultService": default_service,
        "discover": *discover == Discover::On,
        "prompts": prompts,
        "limits": limits,
        "synchronous": <&str>::from(synchronous),
        "shutdownGraceMs": millis(*shutdown_grace),
        "retry": {
            "maxAttempts": max_attempts,
            "baseDelayMs": millis(*base_delay),
            "maxDelayMs": millis(*max_delay),
        },
        "retention": {
            "eventsDays": events_days, "maxEvents": max_events, "maxDatabaseBytes": max_database_bytes,
        },
        "tools": show_tools::tools(tools),
        "mcpServers": servers,
    })
}
