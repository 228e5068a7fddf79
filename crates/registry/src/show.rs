//! What is in force, as JSON for people and programs. Secrets are not in it: of a key it says where it comes from.

use crate::registry::Snapshot;
use crate::services::{Declaration, Service, StripMetadata};
use crate::settings::{Discover, Settings, Synchronous};
use secrecy::ExposeSecret;
use serde_json::{Map, Value, json};

impl Snapshot {
    /// Everything that is in force, and what is wrong with the files.
    pub fn to_json(&self) -> Value {
        let services: Vec<Value> = self.catalogue.services().iter().map(|service| show(service)).collect();
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

fn show(service: &Service) -> Value {
    let endpoint = &service.endpoint;
    let headers: Map<String, Value> = endpoint
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), json!(whence(value.expose_secret()))))
        .collect();
    let extra: Vec<&String> = endpoint.extra_body.keys().collect();
    let mut shown = json!({
        "id": service.id,
        "name": service.name,
        "description": service.description,
        "baseURL": endpoint.base_url,
        "model": endpoint.model,
        "apiKey": whence(endpoint.api_key.expose_secret()),
        "capabilities": service.capabilities,
        "capabilitiesDeclared": service.declared != Declaration::Assumed,
        "givenTools": service.tools_allowed(),
        "capabilityTags": service.capability_tags,
        "dialect": endpoint.dialect,
        "fileTypes": service.file_types,
        "timeoutMs": u64::try_from(endpoint.timeout.as_millis()).unwrap_or(u64::MAX),
        "stripMetadata": service.strip_metadata == StripMetadata::Strip,
    });
    let optional = [
        ("maxTokens", endpoint.max_tokens.map(|value| json!(value))),
        ("maxConcurrentRequests", service.max_concurrent.map(|value| json!(value))),
        ("contextWindow", service.context_window.map(|value| json!(value))),
        ("fallback", service.fallback.as_ref().map(|value| json!(value))),
        ("maxImageBytes", service.max_image_bytes.map(|value| json!(value))),
        ("maxImageEdge", service.max_image_edge.map(|value| json!(value))),
        ("maxRequestBytes", service.max_request_bytes.map(|value| json!(value))),
        ("price", service.price.map(|price| json!({"input": price.input, "output": price.output}))),
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

/// Where a secret comes from. A reference to the environment is no secret; anything else is.
fn whence(secret: &str) -> &str {
    let is_reference = secret.starts_with("${") && secret.ends_with('}') && secret.matches("${").count() == 1;
    match secret {
        "" => "none",
        reference if is_reference => reference,
        _ => "set",
    }
}

fn settings(settings: &Settings) -> Value {
    let millis = |duration: std::time::Duration| u64::try_from(duration.as_millis()).unwrap_or(u64::MAX);
    json!({
        "language": settings.language.as_str(),
        "discover": settings.discover == Discover::On,
        "prompts": settings.prompts,
        "limits": settings.limits,
        "synchronous": match settings.synchronous {
            Synchronous::Full => "full",
            Synchronous::Normal => "normal",
        },
        "shutdownGraceMs": millis(settings.shutdown_grace),
        "retry": {
            "maxAttempts": settings.retry.max_attempts,
            "baseDelayMs": millis(settings.retry.base_delay),
            "maxDelayMs": millis(settings.retry.max_delay),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_never_shown() {
        let check = |secret: &str, expect: &str| assert_eq!(whence(secret), expect);
        check("", "none");
        check("sk-live-123456", "set");
        check("${OPENAI_API_KEY}", "${OPENAI_API_KEY}");
        check("Bearer ${KEY}", "set");
        check("${A}sk-live${B}", "set");
    }
}
