//! Describes the differences between two snapshots in words, without values that could be secret.

use crate::catalogue::Catalogue;
use crate::services::Service;
use crate::settings::{ServerSettings, Settings};
use crate::snapshot::Snapshot;
use crate::{show, show_tools};
use polity_society::id::ServiceId;
use polity_society::tool_group::ServerName;
use secrecy::ExposeSecret;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Fields of a service that contain secrets or texts for people. If such a field changes, the difference reports only
/// this fact, not the values.
const UNSAID: [&str; 5] = ["name", "description", "apiKey", "headers", "extraBody"];

/// Returns the differences, one line for each, with the field names of the files.
pub(crate) fn differences(before: &Snapshot, after: &Snapshot) -> Vec<String> {
    let mut lines = Vec::new();
    settings(&before.settings, &after.settings, &mut lines);
    services(&before.catalogue, &after.catalogue, &mut lines);
    if !Arc::ptr_eq(&before.prompts, &after.prompts) {
        lines.push("prompts changed".to_owned());
    }
    lines
}

fn settings(before: &Settings, after: &Settings, lines: &mut Vec<String>) {
    let said = |settings: &Settings| {
        let mut shown = show::settings(settings);
        if let Value::Object(fields) = &mut shown {
            fields.remove("mcpServers");
        }
        shown
    };
    let (was, is) = (said(before), said(after));
    compare("", &was, &is, lines);
    if was.pointer("/tools/web/search") == is.pointer("/tools/web/search")
        && before.tools.web.search != after.tools.web.search
    {
        lines.push("tools.web.search changed".to_owned());
    }
    let gone = before.servers.keys().filter(|name| !after.servers.contains_key(name));
    for (name, server) in &after.servers {
        match before.servers.get(name) {
            None => lines.push(format!("MCP server {name} added")),
            Some(was) => server_lines(name, was, server, lines),
        }
    }
    lines.extend(gone.map(|name| format!("MCP server {name} removed")));
}

/// Adds a line for each changed field of an MCP server. The values may be secrets, so the lines do not contain them.
fn server_lines(name: &ServerName, before: &ServerSettings, after: &ServerSettings, lines: &mut Vec<String>) {
    let (was, is) = (show_tools::server(before), show_tools::server(after));
    let texts = |server: &ServerSettings| {
        let texts = server.texts().into_iter();
        texts.map(|(field, text)| (field, text.clone())).collect::<BTreeMap<_, _>>()
    };
    let (texts_before, texts_after) = (texts(before), texts(after));
    let places: BTreeSet<_> = texts_before.keys().chain(texts_after.keys()).collect();
    let changed = places.into_iter().filter(|place| texts_before.get(*place) != texts_after.get(*place));
    let mut fields: BTreeSet<&str> = changed.map(|place| place.split('/').next().unwrap_or(place)).collect();
    let plain = ["sandbox", "timeoutMs", "groups"];
    fields.extend(plain.into_iter().filter(|field| was.get(field) != is.get(field)));
    lines.extend(fields.into_iter().map(|field| format!("MCP server {name}: {field} changed")));
}

/// Compares two values. Objects are compared field by field.
fn compare(name: &str, before: &Value, after: &Value, lines: &mut Vec<String>) {
    if before == after {
        return;
    }
    if !before.is_object() && !after.is_object() {
        lines.push(format!("{name}: {} → {}", in_words(before), in_words(after)));
        return;
    }
    let names =
        |value: &Value| value.as_object().into_iter().flat_map(|object| object.keys().cloned()).collect();
    let (old, new): (Vec<String>, Vec<String>) = (names(before), names(after));
    let added = new.iter().filter(|name| !old.contains(name));
    for field in old.iter().chain(added) {
        let inner = if name.is_empty() { field.clone() } else { format!("{name}.{field}") };
        let of = |value: &Value| value.get(field).cloned().unwrap_or(Value::Null);
        compare(&inner, &of(before), &of(after), lines);
    }
}

fn in_words(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        Value::Array(items) if items.is_empty() => "none".to_owned(),
        Value::Array(items) => items.iter().map(in_words).collect::<Vec<_>>().join(","),
        Value::Bool(_) | Value::Number(_) | Value::Object(_) => value.to_string(),
    }
}

fn services(before: &Catalogue, after: &Catalogue, lines: &mut Vec<String>) {
    if before.origin() != after.origin() {
        lines.push(format!("services now come from {}", after.origin()));
    }
    for service in after.services() {
        match before.service(&service.id) {
            None => lines.push(format!("service {} added", service.id)),
            Some(was) => {
                let of_service = service_lines(was, service);
                lines.extend(of_service.into_iter().map(|line| format!("service {}: {line}", service.id)));
            }
        }
    }
    let gone = before.services().iter().filter(|was| after.service(&was.id).is_none());
    lines.extend(gone.map(|was| format!("service {} removed", was.id)));
    if kept(before, after) != kept(after, before) {
        lines.push("the order of the services changed".to_owned());
    }
    let (was, is) = (&before.default_service().id, &after.default_service().id);
    if was != is {
        lines.push(format!("default service: {was} → {is}"));
    }
}

/// Returns the ids of the services that are in both catalogues, in the order of the catalogue `of`.
fn kept<'a>(of: &'a Catalogue, other: &Catalogue) -> Vec<&'a ServiceId> {
    of.services().iter().map(|service| &service.id).filter(|id| other.service(id).is_some()).collect()
}

fn service_lines(was: &Service, is: &Service) -> Vec<String> {
    let said = |service: &Service| {
        let mut shown = show::service(service);
        if let Value::Object(fields) = &mut shown {
            fields.retain(|name, _| !UNSAID.contains(&name.as_str()));
        }
        shown
    };
    let mut lines = Vec::new();
    compare("", &said(was), &said(is), &mut lines);

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
        ("unknown fields", was.unknown.as_map() == is.unknown.as_map()),
    ];
    lines.extend(unsaid.into_iter().filter(|(_, same)| !same).map(|(name, _)| format!("{name} changed")));
    lines
}

#[cfg(test)]
mod tests;
