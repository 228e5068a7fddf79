//! Finds binary data that somebody wrote as text, in base64 or hexadecimal, and replaces it. The functions are pure.
//!
//! No text may contain binary data (contract section 3). So binary data in a text become an artifact, and a reference
//! replaces them before the text is recorded. Here, "bytes" means binary data of one of two sorts: the content of a
//! data URL, or a file of a known kind in base64 or hexadecimal. All other text stays unchanged, even if it looks like
//! base64, for example a path, a signature or a certificate.

mod diff;

mod find;

mod fragments;

mod hex;

mod known;

mod stream;

mod symbol;

pub use diff::without_bytes_in_diff;
pub use fragments::{Fragments, is_suspicious};

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use find::{Found, find};
use known::is_known;
use polity_artifacts::NewArtifact;
use serde_json::{Map, Value};
use std::ops::Range;
use stream::LONG;

/// Maximum length of the head of a data URL, up to its comma, in bytes.
const HEAD: usize = 200;

/// The mark that replaces binary data in a text if the data are not stored as an artifact.
pub const LEFT_OUT: &str = "…";

/// The decoder for base64. It accepts base64 with and without padding, because models often leave the padding out.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Binary data that somebody wrote as text, decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    pub bytes: Vec<u8>,
    /// The MIME type in the data URL; `None` without a data URL.
    pub mime: Option<String>,
}

impl From<Written> for NewArtifact {
    fn from(written: Written) -> Self {
        Self { bytes: written.bytes.into(), declared_mime: written.mime, ..Self::default() }
    }
}

/// Decodes base64 in any usual form: as a data URL, in the URL-safe alphabet, without padding, split into lines, or
/// inside a code fence.
pub fn decode(text: &str) -> Result<Written, base64::DecodeError> {
    let text = unfenced(text);
    let (mime, body) = match head(text) {
        Some((mime, start)) => (mime, &text[start..]),
        None => (None, text),
    };
    let plain: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(standard).collect();
    Ok(Written { bytes: LENIENT.decode(plain)?, mime })
}

/// Decodes a text that contains nothing but binary data: a data URL, or base64 or hexadecimal of a file of a known
/// kind. Quotation marks or a code fence may surround the data. Returns `None` for every other text.
pub fn nothing_but_bytes(text: &str) -> Option<Written> {
    let inner = unfenced(text);
    if head(inner).is_some() && !inner.contains(char::is_whitespace) {
        return decode(inner).ok();
    }
    let mut found = find(inner);
    let only = found.pop().filter(|_| found.is_empty())?;
    let around = [&inner[..only.range.start], &inner[only.range.end..]];
    around.iter().all(|text| text.chars().all(is_quote)).then_some(only.written)
}

/// Removes blanks, quotation marks and a code fence from both ends of a text.
fn unfenced(text: &str) -> &str {
    let text = text.trim();
    let fenced = text.strip_prefix("```").and_then(|rest| rest.trim_end().strip_suffix("```"));
    let inner = match fenced {
        // The first line of a code fence names the language.
        Some(fenced) => fenced.split_once('\n').map_or(fenced, |(_, lines)| lines),
        None => text,
    };
    inner.trim_matches(is_quote)
}

fn is_quote(character: char) -> bool {
    character.is_whitespace() || matches!(character, '"' | '\'' | '`')
}

/// Replaces the binary data in a value with the text that `store` returns for them. If `store` returns `None`, the
/// data are replaced with [`LEFT_OUT`].
pub fn replace_in(value: &mut Value, store: &mut impl FnMut(Written) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(written) = nothing_but_bytes(text).filter(|_| text.len() >= LONG) {
                *text = store(written).unwrap_or_else(|| LEFT_OUT.to_owned());
            } else if let Some(replaced) = replace(text, store) {
                *text = replaced;
            }
        }
        Value::Array(items) => {
            if let Some(written) = in_items(items) {
                *value = Value::String(store(written).unwrap_or_else(|| LEFT_OUT.to_owned()));
            } else {
                items.iter_mut().for_each(|item| replace_in(item, store));
            }
        }
        Value::Object(object) => replace_in_object(object, store),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Replaces the binary data in all names and values of an object, as [`replace_in`] does.
pub fn replace_in_object(object: &mut Map<String, Value>, store: &mut impl FnMut(Written) -> Option<String>) {
    object.values_mut().for_each(|value| replace_in(value, store));
    if object.keys().any(|name| !find(name).is_empty()) {
        let fields = std::mem::take(object).into_iter();
        object.extend(fields.map(|(name, value)| (replace(&name, store).unwrap_or(name), value)));
    }
}

/// Decodes a list that represents binary data. Each item is a number that is one byte, or each item is a string that is
/// one line of base64.
fn in_items(items: &[Value]) -> Option<Written> {
    let numbers: Option<Vec<u8>> =
        items.iter().map(|item| item.as_u64().and_then(|number| u8::try_from(number).ok())).collect();
    if let Some(bytes) = numbers {
        return (bytes.len() >= LONG && is_known(&bytes)).then_some(Written { bytes, mime: None });
    }
    let lines: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
    let lines = lines.filter(|lines| lines.len() > 1)?;
    let (last, whole) = lines.split_last()?;
    let length = whole.first()?.len();
    let are_lines = whole.iter().all(|line| line.len() == length) && last.len() <= length;
    let begins_once = lines.get(1..)?.iter().all(|line| find(line).is_empty());
    if !are_lines || !begins_once || find(lines.first()?).len() > 1 {
        return None;
    }
    nothing_but_bytes(&lines.concat()).filter(|_| length >= stream::LINE)
}

/// Replaces the binary data in one text, as [`replace_in`] does. Returns `None` if there is nothing to replace.
pub fn replace(text: &str, store: &mut impl FnMut(Written) -> Option<String>) -> Option<String> {
    let found = find(text);
    if found.is_empty() {
        return None;
    }
    let mut replaced = String::with_capacity(text.len().min(4096));
    let mut end = 0;
    for Found { range, written } in found {
        replaced.push_str(&text[end..range.start]);
        let stored = if written.bytes.is_empty() { None } else { store(written) };
        replaced.push_str(stored.as_deref().unwrap_or(LEFT_OUT));
        end = range.end;
    }
    replaced.push_str(&text[end..]);
    Some(replaced)
}

/// Replaces all binary data in a text with [`LEFT_OUT`].
pub fn without_bytes(text: String) -> String {
    replace(&text, &mut |_| None).unwrap_or(text)
}

/// Returns whether a JSON value contains binary data that somebody wrote as text.
pub fn holds_bytes(value: &Value) -> bool {
    match value {
        Value::String(text) => !find(text).is_empty(),
        Value::Array(items) => in_items(items).is_some() || items.iter().any(holds_bytes),
        Value::Object(object) => {
            object.iter().any(|(name, value)| !find(name).is_empty() || holds_bytes(value))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// Replaces every long run of base64 in a value's strings with [`LEFT_OUT`], even if the run encodes no known file.
pub fn leave_out_in(value: &mut Value) {
    match value {
        Value::String(text) => *text = leave_out(text),
        Value::Array(items) => items.iter_mut().for_each(leave_out_in),
        Value::Object(object) => object.values_mut().for_each(leave_out_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns a text without bytes and without long runs that may be base64. The runtime uses this function for
/// arguments that should be base64 but cannot be decoded, and for texts that quote such arguments.
pub fn leave_out(text: &str) -> String {
    let text = without_bytes(text.to_owned());
    let text = text.as_str();
    let mut kept = String::new();
    let mut end = 0;
    for range in long_runs(text) {
        kept.push_str(&text[end..range.start]);
        kept.push_str(LEFT_OUT);
        end = range.end;
    }
    kept.push_str(&text[end..]);
    kept
}

fn long_runs(text: &str) -> Vec<Range<usize>> {
    let mut runs = Vec::new();
    let mut start = 0;
    for (index, byte) in text.bytes().chain([b' ']).enumerate() {
        if is_base64(byte) {
            continue;
        }
        if index - start >= LONG {
            runs.push(start..index);
        }
        start = index + 1;
    }
    runs
}

/// Parses the head of a data URL, such as `data:image/png;base64,`. Returns the MIME type, and where the data begin.
fn head(text: &str) -> Option<(Option<String>, usize)> {
    let rest = text.strip_prefix("data:")?;
    let comma = rest.bytes().take(HEAD).position(|byte| byte == b',')?;
    let parameters = rest[..comma].strip_suffix(";base64")?;
    if parameters.contains(|character: char| character.is_whitespace() || "\"'<>()".contains(character)) {
        return None;
    }
    let mime = parameters.split(';').next().filter(|mime| !mime.is_empty()).map(str::to_owned);
    Some((mime, "data:".len() + comma + 1))
}

/// Returns whether a byte is a digit of base64, in the standard or in the URL-safe alphabet. The padding character `=`
/// is not a digit.
fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'-' | b'_')
}

fn standard(byte: u8) -> u8 {
    match byte {
        b'-' => b'+',
        b'_' => b'/',
        other => other,
    }
}

#[cfg(any(test, feature = "inline-forms"))]
pub mod forms;
#[cfg(test)]
mod tests;
