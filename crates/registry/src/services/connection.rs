//! Reads where and how a service is called.

use crate::fields::{self, Fields};
use polity_llm::{Dialect, Endpoint, Timeouts};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;
use std::time::Duration;
use url::Url;

/// The scheme of the built-in model.
const REHEARSAL: &str = "rehearsal";

/// Reads a base URL. What is wrong never quotes it, because people put keys into URLs.
pub(crate) fn base_url(value: Value) -> Result<String, &'static str> {
    let wrong = "must be an http or https URL";
    let text = fields::name(value)?;
    let url = Url::parse(&text).map_err(|_| wrong)?;
    match url.scheme() {
        REHEARSAL => return Ok(text),
        "http" | "https" => {}
        _ => return Err(wrong),
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("must not have a user name or password in it; apiKey and headers are for that");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not have a query or a fragment");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Reads everything else about the endpoint.
pub(super) fn read_endpoint(
    fields: &mut Fields<'_>,
    base_url: String,
    model: String,
    whose: &str,
) -> Endpoint {
    let mut endpoint = Endpoint::new(base_url, model);
    let no_key = format!("{whose} is called without a key");
    if let Some(key) = fields.read("apiKey", &no_key, secret) {
        endpoint.api_key = key;
    }
    endpoint.headers = read_headers(fields);
    if let Some(milliseconds) = fields.read("timeoutMs", "the default counts", fields::count) {
        endpoint.timeout = Duration::from_millis(milliseconds);
    }
    endpoint.timeouts = read_timeouts(fields);
    endpoint.max_tokens = fields.read("maxTokens", "the server decides", fields::count);
    endpoint.extra_body = fields.read("extraBody", "nothing is added", fields::object).unwrap_or_default();
    endpoint.dialect = read_dialect(fields);
    endpoint
}

fn read_timeouts(service: &mut Fields<'_>) -> Timeouts {
    const DONE: &str = "the default counts";
    let mut timeouts = Timeouts::default();
    let Some(mut object) = service.open("timeouts", "the defaults count") else {
        return timeouts;
    };
    let milliseconds = |value| fields::count(value).map(Duration::from_millis);
    timeouts.connect = object.read_or("connectMs", timeouts.connect, milliseconds);
    timeouts.first_byte = object.read("firstByteMs", DONE, milliseconds);
    timeouts.between_bytes = object.read_or("betweenBytesMs", timeouts.between_bytes, milliseconds);
    object.finish("it has no effect");
    timeouts
}

/// Reads a key or the value of a header: a text that fits into a header, or `${NAME}`.
fn secret(value: Value) -> Result<SecretString, &'static str> {
    let text = fields::text(value)?;
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("must be printable ASCII on one line");
    }
    let reference = text.strip_prefix("${");
    if reference.is_some_and(|rest| !rest.strip_suffix('}').is_some_and(fields::is_variable_name)) {
        return Err("must name one environment variable, such as ${OPENAI_API_KEY}, and nothing else");
    }
    Ok(SecretString::from(text))
}

fn read_headers(fields: &mut Fields<'_>) -> Vec<(String, SecretString)> {
    let Some(mut object) = fields.open("headers", "no headers are added") else {
        return Vec::new();
    };
    let mut headers = Vec::new();
    for name in object.names() {
        let is_token = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
        let value = object.read(&name, "the header is left out", |value| {
            if is_token { secret(value) } else { Err("is not the name of a header") }
        });
        headers.extend(value.map(|value| (name, value)));
    }
    headers
}

fn read_dialect(service: &mut Fields<'_>) -> Dialect {
    let default = Dialect::default();
    let Some(mut object) = service.open("dialect", "the defaults count") else {
        return default;
    };
    let dialect = Dialect {
        tool_result_media: choice(&mut object, "toolResultMedia", "must be \"after\" or \"inline\""),
        bridge_after_tool: object.read_or("bridgeAfterTool", default.bridge_after_tool, fields::switch),
        system_role: choice(&mut object, "systemRole", "must be \"system\", \"developer\" or \"user\""),
        stream: object.read_or("stream", default.stream, fields::switch),
        tool_call_ids: choice(&mut object, "toolCallIds", "must be \"any\" or \"alnum9\""),
        max_tokens_field: choice(
            &mut object,
            "maxTokensField",
            "must be \"max_tokens\" or \"max_completion_tokens\"",
        ),
        stream_usage: object.read_or("streamUsage", default.stream_usage, fields::switch),
    };
    object.finish("it has no effect");
    dialect
}

/// Reads one of a few words.
fn choice<T: DeserializeOwned + Default>(object: &mut Fields<'_>, field: &str, wrong: &'static str) -> T {
    object.read_or(field, T::default(), |value| serde_json::from_value(value).map_err(|_| wrong))
}
