//! Bytes that a model wrote into text, as data URLs or bare base64. Pure: finds them, and says what stands in their place.
//!
//! No binary data is ever in a text (contract section 3): what is found becomes an artifact, and a reference takes its
//! place before anything is recorded.

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use polity_artifacts::{Extent, detect};
use polity_society::content::Kind;
use serde_json::{Map, Value};
use std::ops::Range;

/// How many characters of base64 in a row count as bytes that somebody wrote down: 48 bytes.
const LONG: usize = 64;

/// The longest beginning of a data URL, up to its comma, that is looked at.
const HEAD: usize = 200;

/// Models leave padding out, or wrap lines.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);

/// Bytes that were written as text, and what was said of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// The MIME type that a data URL names.
    pub(crate) mime: Option<String>,
}

/// Decodes base64 in any of its usual forms: a data URL, the URL-safe alphabet, without padding, in lines.
pub(crate) fn decode(text: &str) -> Result<Written, base64::DecodeError> {
    let text = text.trim();
    let (mime, body) = match head(text) {
        Some((mime, start)) => (mime, &text[start..]),
        None => (None, text),
    };
    let plain: Vec<u8> = body.bytes().filter(|byte| !byte.is_ascii_whitespace()).map(standard).collect();
    Ok(Written { bytes: LENIENT.decode(plain)?, mime })
}

/// The bytes that a text is, where it is nothing else: a data URL, or base64 of a file of a known format.
pub(crate) fn nothing_but_bytes(text: &str) -> Option<Written> {
    let trimmed = text.trim();
    if head(trimmed).is_some() {
        return decode(trimmed).ok();
    }
    let base64_alone = trimmed.len() >= LONG
        && trimmed.bytes().all(|byte| is_base64(byte) || byte == b'=' || byte.is_ascii_whitespace());
    if !base64_alone {
        return None;
    }
    let written = decode(trimmed).ok()?;
    let kind = detect(None, None, &written.bytes, Extent::Whole).kind;
    (!matches!(kind, Kind::Text | Kind::Other)).then_some(written)
}

/// Puts what `store` says in the place of each data URL in the strings of a value. Where it says nothing, or the data
/// cannot be read, the data are left out.
pub(crate) fn replace_in(value: &mut Value, store: &mut impl FnMut(Written) -> Option<String>) {
    match value {
        Value::String(text) => {
            if let Some(written) = nothing_but_bytes(text).filter(|_| text.len() >= LONG) {
                *text = store(written).unwrap_or_else(|| "…".to_owned());
            } else if let Some(replaced) = replace(text, store) {
                *text = replaced;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| replace_in(item, store)),
        Value::Object(object) => replace_in_object(object, store),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// As [`replace_in`], for all the values of an object.
pub(crate) fn replace_in_object(
    object: &mut Map<String, Value>,
    store: &mut impl FnMut(Written) -> Option<String>,
) {
    object.values_mut().for_each(|value| replace_in(value, store));
}

/// As [`replace_in`], for one text; `None` where there is nothing to replace.
pub(crate) fn replace(text: &str, store: &mut impl FnMut(Written) -> Option<String>) -> Option<String> {
    let found = data_urls(text);
    if found.is_empty() {
        return None;
    }
    let mut replaced = String::with_capacity(text.len().min(4096));
    let mut end = 0;
    for range in found {
        replaced.push_str(&text[end..range.start]);
        let stored = decode(&text[range.clone()]).ok().and_then(&mut *store);
        replaced.push_str(stored.as_deref().unwrap_or("…"));
        end = range.end;
    }
    replaced.push_str(&text[end..]);
    Some(replaced)
}

/// Leaves out of a value's strings every long run of base64.
pub(crate) fn leave_out_in(value: &mut Value) {
    match value {
        Value::String(text) => *text = leave_out(text),
        Value::Array(items) => items.iter_mut().for_each(leave_out_in),
        Value::Object(object) => object.values_mut().for_each(leave_out_in),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A text without its long runs of base64.
pub(crate) fn leave_out(text: &str) -> String {
    let mut kept = String::new();
    let mut end = 0;
    for range in long_runs(text) {
        kept.push_str(&text[end..range.start]);
        kept.push('…');
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

/// Where the data URLs are that hold more than a few bytes.
fn data_urls(text: &str) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (start, _) in text.match_indices("data:") {
        if found.last().is_some_and(|last| start < last.end) {
            continue;
        }
        let Some((_, body)) = head(&text[start..]) else { continue };
        let written = run_in_lines(&text.as_bytes()[start + body..]);
        if written < LONG {
            continue;
        }
        let padding = text[start + body + written..].bytes().take_while(|byte| *byte == b'=').count();
        found.push(start..start + body + written + padding);
    }
    found
}

/// How long a run of base64 is that may go on over the ends of full lines.
fn run_in_lines(bytes: &[u8]) -> usize {
    let mut end = 0;
    loop {
        let line = bytes[end..].iter().take_while(|byte| is_base64(**byte)).count();
        let rest = &bytes[end + line..];
        let line_break = if rest.starts_with(b"\r\n") { 2 } else { usize::from(rest.starts_with(b"\n")) };
        let goes_on = rest.get(line_break).is_some_and(|byte| is_base64(*byte));
        if line < LONG || line_break == 0 || !goes_on {
            return end + line;
        }
        end += line + line_break;
    }
}

/// Reads `data:image/png;base64,`: the type, and where the data begin. `None` where a text does not begin like that.
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

/// Whether a byte is of base64 in either alphabet; padding is not.
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

#[cfg(test)]
mod tests {
    use super::*;
    use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
    use proptest::prelude::*;
    use serde_json::json;

    #[track_caller]
    fn check_replaced(text: &str, expected: Option<&str>) {
        let replaced = replace(text, &mut |written| Some(format!("[{}]", written.mime.unwrap_or_default())));
        assert_eq!(replaced.as_deref(), expected);
    }

    #[test]
    fn a_data_url_gives_way_to_what_names_it() {
        let data = STANDARD.encode([7; 90]);
        check_replaced(&format!("see data:image/png;base64,{data}."), Some("see [image/png]."));
        check_replaced(&format!("![](data:image/png;base64,{data})"), Some("![]([image/png])"));
        check_replaced(&format!("data:;base64,{data} data:a/b;base64,{data}"), Some("[] [a/b]"));
        check_replaced(&format!("data:text/plain;charset=x;base64,{data}"), Some("[text/plain]"));
    }

    #[test]
    fn what_is_no_data_url_stays() {
        check_replaced("the data: base64, they say", None);
        check_replaced("data:image/png;base64,AAAA", None);
        check_replaced(&format!("data:image/png,{}", "A".repeat(200)), None);
        check_replaced(&format!("data:a b;base64,{}", "A".repeat(200)), None);
    }

    #[test]
    fn a_data_url_in_lines_goes_as_a_whole() {
        let data = STANDARD.encode([7; 300]);
        let lines: Vec<&str> =
            data.as_bytes().chunks(76).map(|line| std::str::from_utf8(line).unwrap()).collect();
        for line_break in ["\n", "\r\n"] {
            let text = format!("see data:image/png;base64,{}\nNext line.", lines.join(line_break));
            check_replaced(&text, Some("see [image/png]\nNext line."));
        }
    }

    #[test]
    fn data_that_cannot_be_read_are_left_out() {
        check_replaced(&format!("x data:image/png;base64,{} y", "A".repeat(65)), Some("x … y"));
    }

    #[test]
    fn a_whole_text_that_is_a_file() {
        let png = [b"\x89PNG\r\n\x1a\n".as_slice(), &[0, 0, 0, 13], b"IHDR", &[1; 60]].concat();
        let plain = STANDARD.encode(&png);
        let bytes = |text: &str| nothing_but_bytes(text).map(|written| written.bytes);
        assert_eq!(bytes(&plain), Some(png.clone()));
        assert_eq!(bytes(&format!(" data:image/png;base64,{plain}\n")), Some(png));
        // It may well be a text.
        assert_eq!(bytes(&STANDARD.encode([7; 90])), None);
        assert_eq!(bytes(&"word".repeat(30)), None);
        assert_eq!(bytes("see below"), None);
    }

    fn has_long_run(text: &str) -> bool {
        !long_runs(text).is_empty()
    }

    /// Every way in which base64 is written down.
    fn forms(bytes: &[u8]) -> Vec<String> {
        let mut forms = vec![
            STANDARD.encode(bytes),
            STANDARD_NO_PAD.encode(bytes),
            URL_SAFE.encode(bytes),
            URL_SAFE_NO_PAD.encode(bytes),
        ];
        let lines: Vec<String> =
            forms[0].as_bytes().chunks(76).map(|line| String::from_utf8_lossy(line).into_owned()).collect();
        forms.push(lines.join("\n"));
        forms.push(format!("data:image/png;base64,{}", forms[0]));
        forms
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        /// However base64 is written, the bytes come back.
        #[test]
        fn bytes_come_back_from_every_form(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            for form in forms(&bytes) {
                prop_assert_eq!(&decode(&form).unwrap().bytes, &bytes);
            }
        }

        /// What is left out is base64 and nothing else, and all of it.
        #[test]
        fn no_run_of_base64_is_left(
            bytes in proptest::collection::vec(any::<u8>(), 65..300),
            before in "[ -~]{0,80}",
            after in "\\PC{0,80}",
        ) {
            for form in forms(&bytes) {
                let text = format!("{before} {form} {after}");
                let kept = leave_out(&text);
                prop_assert!(!has_long_run(&kept), "{kept}");
                let mut value = json!({"a": [text], "b": {"c": form}});
                leave_out_in(&mut value);
                for kept in [&value["a"][0], &value["b"]["c"]] {
                    prop_assert!(!has_long_run(kept.as_str().unwrap()));
                }
            }
        }

        /// A text without bytes is not touched.
        #[test]
        fn other_texts_stay_as_they_are(text in "\\PC{0,200}") {
            prop_assume!(!has_long_run(&text));
            prop_assert_eq!(leave_out(&text), text.clone());
            prop_assert_eq!(replace(&text, &mut |_| Some(String::new())), None);
        }
    }
}
