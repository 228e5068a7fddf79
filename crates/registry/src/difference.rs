//! What differs between two snapshots, in words. Values that could be secret are never said.

use crate::registry::Snapshot;
use crate::services::Service;
use crate::settings::Settings;
use polity_society::content::Capability;
use secrecy::ExposeSecret;
use serde_json::Value;
use std::sync::Arc;

/// Says what differs, a line for each thing.
pub(crate) fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    if !Arc::ptr_eq(&before.settings, &after.settings) {
        settings(&before.settings, &after.settings, &mut lines);
    }
    services(before, after, &mut lines);
    if !Arc::ptr_eq(&before.prompts, &after.prompts) {
        lines.push("prompts changed".to_owned());
    }
    lines
}

fn settings(before: &Settings, after: &Settings, lines: &mut Vec<String>) {
    let mut compare = |name: &str, before: String, after: String| {
        if before != after {
            lines.push(format!("{name}: {before} → {after}"));
        }
    };
    compare("language", before.language.as_str().to_owned(), after.language.as_str().to_owned());
    compare("prompts", format!("{:?}", before.prompts), format!("{:?}", after.prompts));
    compare("discover", format!("{:?}", before.discover), format!("{:?}", after.discover));
    compare("synchronous", format!("{:?}", before.synchronous), format!("{:?}", after.synchronous));
    compare("shutdownGraceMs", millis(before.shutdown_grace), millis(after.shutdown_grace));
    compare("retry", format!("{:?}", before.retry), format!("{:?}", after.retry));
    let (before, after) = (serde_json::to_value(before.limits), serde_json::to_value(after.limits));
    let (Ok(Value::Object(before)), Ok(Value::Object(after))) = (before, after) else { return };
    for (name, value) in &after {
        let old = before.get(name).unwrap_or(&Value::Null);
        compare(&format!("limits.{name}"), old.to_string(), value.to_string());
    }
}

fn millis(duration: std::time::Duration) -> String {
    duration.as_millis().to_string()
}

fn services(before: &Snapshot, after: &Snapshot, lines: &mut Vec<String>) {
    let (old, new) = (&before.catalogue, &after.catalogue);
    if old.origin() != new.origin() {
        lines.push(format!("services now come from {}", new.origin()));
    }
    for service in new.services() {
        match old.service(&service.id) {
            None => lines.push(format!("service {} added", service.id)),
            Some(was) => {
                lines.extend(
                    service_lines(was, service)
                        .into_iter()
                        .map(|line| format!("service {}: {line}", service.id)),
                );
            }
        }
    }
    let gone = old.services().iter().filter(|was| new.service(&was.id).is_none());
    lines.extend(gone.map(|was| format!("service {} removed", was.id)));
    if old.default_service().id != new.default_service().id {
        lines.push(format!("default service: {} → {}", old.default_service().id, new.default_service().id));
    }
}

fn service_lines(was: &Service, is: &Service) -> Vec<String> {
    let mut lines = Vec::new();
    let mut shown = |name: &str, was: String, is: String| {
        if was != is {
            lines.push(format!("{name}: {was} → {is}"));
        }
    };
    shown("model", was.endpoint.model.clone(), is.endpoint.model.clone());
    shown("baseURL", was.endpoint.base_url.clone(), is.endpoint.base_url.clone());
    shown("capabilities.input", names(&was.capabilities.input), names(&is.capabilities.input));
    shown("capabilities.output", names(&was.capabilities.output), names(&is.capabilities.output));
    shown("capabilityTags", was.capability_tags.join(","), is.capability_tags.join(","));
    shown("fileTypes", was.file_types.join(","), is.file_types.join(","));
    shown("fallback", optional(was.fallback.as_ref()), optional(is.fallback.as_ref()));
    shown("maxConcurrentRequests", optional(was.max_concurrent), optional(is.max_concurrent));
    shown("contextWindow", optional(was.context_window), optional(is.context_window));
    shown("maxImageBytes", optional(was.max_image_bytes), optional(is.max_image_bytes));
    shown("maxImageEdge", optional(was.max_image_edge), optional(is.max_image_edge));
    shown("maxRequestBytes", optional(was.max_request_bytes), optional(is.max_request_bytes));
    shown("maxTokens", optional(was.endpoint.max_tokens), optional(is.endpoint.max_tokens));
    shown("timeoutMs", millis(was.endpoint.timeout), millis(is.endpoint.timeout));
    shown("stripMetadata", format!("{:?}", was.strip_metadata), format!("{:?}", is.strip_metadata));

    let headers = |service: &Service| {
        let pairs = service.endpoint.headers.iter();
        pairs.map(|(name, value)| (name.clone(), value.expose_secret().to_owned())).collect::<Vec<_>>()
    };
    let same_key = was.endpoint.api_key.expose_secret() == is.endpoint.api_key.expose_secret();
    let unsaid = [
        ("name", was.name == is.name),
        ("description", was.description == is.description),
        ("apiKey", same_key),
        ("headers", headers(was) == headers(is)),
        ("extraBody", was.endpoint.extra_body == is.endpoint.extra_body),
        ("dialect", was.endpoint.dialect == is.endpoint.dialect),
        ("price", was.price == is.price),
    ];
    lines.extend(unsaid.into_iter().filter(|(_, same)| !same).map(|(name, _)| format!("{name} changed")));
    lines
}

fn names(capabilities: &[Capability]) -> String {
    capabilities.iter().map(Capability::as_str).collect::<Vec<_>>().join(",")
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}
