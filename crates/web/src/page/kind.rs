//! Decides whether a body is HTML, other text, or neither.

use crate::shown::one_line;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Html,
    Text,
    Other,
}

/// Media types of text that cannot be recognised by their name. All other types of text begin with `text/` or end with
/// `+json`, `+xml` or `+yaml`.
const TEXTS: &[&str] = &[
    "application/json",
    "application/x-ndjson",
    "application/jsonl",
    "application/xml",
    "application/javascript",
    "application/ecmascript",
    "application/x-javascript",
    "application/typescript",
    "application/yaml",
    "application/x-yaml",
    "application/toml",
    "application/sql",
    "application/graphql",
    "application/x-sh",
    "application/x-httpd-php",
    "application/x-tex",
    "application/x-subrip",
];

/// Media types that begin with `text/` but do not count as text, because only programs can read them.
const NO_TEXTS: &[&str] = &["text/rtf", "text/richtext"];

/// Returns the kind of a body and its media type without parameters.
pub(super) fn of(content_type: &str, body: &[u8]) -> (Kind, String) {
    let declared = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let declared = one_line(&declared, 100);
    match declared.as_str() {
        "text/html" | "application/xhtml+xml" => (Kind::Html, declared),
        "" => guessed(body),
        other if is_text(other) && !looks_binary(body) => (Kind::Text, declared),
        _ => (Kind::Other, declared),
    }
}

fn is_text(mime: &str) -> bool {
    let is_structured = ["+json", "+xml", "+yaml"].iter().any(|suffix| mime.ends_with(suffix));
    let is_picture = mime.starts_with("image/");
    (mime.starts_with("text/") && !NO_TEXTS.contains(&mime))
        || TEXTS.contains(&mime)
        || (is_structured && !is_picture)
}

fn guessed(body: &[u8]) -> (Kind, String) {
    if looks_binary(body) || std::str::from_utf8(body).is_err() {
        return (Kind::Other, "application/octet-stream".to_owned());
    }
    let start = String::from_utf8_lossy(body.get(..body.len().min(200)).unwrap_or_default());
    let start = start.trim_start().to_ascii_lowercase();
    if start.starts_with("<!doctype html") || start.starts_with("<html") {
        (Kind::Html, "text/html".to_owned())
    } else {
        (Kind::Text, "text/plain".to_owned())
    }
}

/// Returns whether a zero byte is near the start of a body. Such a body is probably not text. UTF-16 is an exception:
/// zero bytes are normal there, so the function returns `false` for it.
fn looks_binary(body: &[u8]) -> bool {
    let is_utf16 = body.starts_with(&[0xff, 0xfe]) || body.starts_with(&[0xfe, 0xff]);
    !is_utf16 && body.iter().take(4096).any(|byte| *byte == 0)
}
