//! Reads the endpoint of a service: its URL, model, key, headers, timeouts and dialect.

use crate::fields::{self, Fields};
use polity_llm::{Dialect, Endpoint, Timeouts};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use serde_json::Value;
use strum::VariantArray;
use url::Url;

/// The URL scheme of the built-in models.
const REHEARSAL: &str = "rehearsal";

/// Reads a base URL. The error never quotes the URL, because people put keys into URLs.
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
        return Err("must not contain a user name or password (use apiKey or headers)");
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err("must not contain a query or a fragment");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

/// Reads the other fields of the endpoint.
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
    endpoint.timeout = fields.read_or("timeoutMs", endpoint.timeout, fields::milliseconds);
    endpoint.timeouts = read_timeouts(fields);
    endpoint.max_tokens = fields.read("maxTokens", "the server sets the limit", fields::count);
    endpoint.extra_body = fields.read("extraBody", "no fields are added", fields::object).unwrap_or_default();
    endpoint.dialect = read_dialect(fields);
    endpoint
}

fn read_timeouts(service: &mut Fields<'_>) -> Timeouts {
    const DONE: &str = "the default is used";
    let mut timeouts = Timeouts::default();
    let Some(mut object) = service.open("timeouts", "the defaults are used") else {
        return timeouts;
    };
    timeouts.connect = object.read_or("connectMs", timeouts.connect, fields::milliseconds);
    timeouts.first_byte = object.read("firstByteMs", DONE, fields::milliseconds);
    timeouts.between_bytes = object.read_or("betweenBytesMs", timeouts.between_bytes, fields::milliseconds);
    object.finish("it has no effect");
    timeouts
}

/// Reads a key or a header value: a string that HTTP allows in a header, or a single `${NAME}`.
fn secret(value: Value) -> Result<SecretString, &'static str> {
    let text = fields::text(value)?;
    if !text.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        return Err("must be printable ASCII on one line");
    }
    let reference = text.strip_prefix("${");
    if reference.is_some_and(|rest| !rest.strip_suffix('}').is_some_and(fields::is_variable_name)) {
        return Err("must be exactly one variable, such as ${OPENAI_API_KEY}, if it begins with ${");
    }
    Ok(SecretString::from(text))
}

fn read_headers(fields: &mut Fields<'_>) -> Vec<(String, SecretString)> {
    let Some(mut object) = fields.open("headers", "no headers are added") else {
        return Vec::new();
    };
    let mut headers = Vec::new();
    for name in object.names() {
        let value = object.read(&name, "the header is left out", |value| {
            if fields::is_header_name(&name) { secret(value) } else { Err("is not a valid header name") }
        });
        headers.extend(value.map(|value| (name, value)));
    }
    headers
}

fn read_dialect(service: &mut Fields<'_>) -> Dialect {
    let default = Dialect::default();
    let Some(mut object) = service.open("dialect", "the defaults are used") else {
        return default;
    };
    let dialect = Dialect {
        tool_result_media: choice(&mut object, "toolResultMedia"),
        bridge_after_tool: object.read_or("bridgeAfterTool", default.bridge_after_tool, fields::switch),
        system_role: choice(&mut object, "systemRole"),
        stream: object.read_or("stream", default.stream, fields::switch),
        tool_call_ids: choice(&mut object, "toolCallIds"),
        max_tokens_field: choice(&mut object, "maxTokensField"),
        stream_usage: object.read_or("streamUsage", default.stream_usage, fields::switch),
    };
    object.finish("it has no effect");
    dialect
}

/// Reads a string that must be one of a few words.
fn choice<T>(object: &mut Fields<'_>, field: &str) -> T
where
    T: DeserializeOwned + Default + VariantArray + Copy + Into<&'static str>,
{
    let read = |value| serde_json::from_value(value).map_err(|_| fields::not_a_member::<T>());
    object.read_or(field, T::default(), read)
}
