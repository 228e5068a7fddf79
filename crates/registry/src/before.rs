//! Shows where JSON stops being valid: by the text before that place, without its values, because any value may be a
//! secret.

/// Longest text, in characters.
const MAX_CHARS: usize = 60;
/// Stands for a value.
const HIDDEN: char = '…';

/// Returns the end of the last line of a text that is the beginning of a JSON file. Leaves out comments, and hides all
/// values. Returns `None` if nothing is left. The text must be valid up to its end: then strings are told apart from what
/// is between them. Nothing is known about the text behind a mistake, so none of it may be shown.
pub(crate) fn before(text: &str) -> Option<String> {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (token, after) = rest.split_at(length(rest, first));
        rest = after;
        match first {
            '/' => {}
            '"' if after.trim_start().starts_with(':') => shown.push_str(token),
            '"' => shown.extend(['"', HIDDEN, '"']),
            _ if first.is_whitespace() || "{}[]:,".contains(first) => shown.push(first),
            // A number or a word.
            _ if shown.ends_with(HIDDEN) => {}
            _ => shown.push(HIDDEN),
        }
    }
    let line = shown.lines().map(str::trim).rfind(|line| !line.is_empty())?;
    let line = line.replace(char::is_control, "?");
    let cut = line.chars().count().saturating_sub(MAX_CHARS);
    let end: String = line.chars().skip(cut).collect();
    Some(if cut == 0 { end } else { format!("{HIDDEN}{end}") })
}

/// Returns the length of the string or comment with which a text begins, in bytes; for anything else, the length of its
/// first character.
fn length(text: &str, first: char) -> usize {
    let up_to = |end: &str, from: usize| {
        let found = text.get(from..).and_then(|text| text.find(end));
        found.map_or(text.len(), |at| from + at + end.len())
    };
    match first {
        '"' => {
            let mut is_escaped = false;
            for (at, character) in text.char_indices().skip(1) {
                match character {
                    _ if is_escaped => is_escaped = false,
                    '\\' => is_escaped = true,
                    '"' => return at + 1,
                    _ => {}
                }
            }
            text.len()
        }
        '/' if text.starts_with("/*") => up_to("*/", 2),
        // The line break stays.
        '/' => text.find(['\n', '\r']).unwrap_or(text.len()),
        _ => first.len_utf8(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_text_before_a_mistake_has_no_values() {
        let check = |text: &str, expect: Option<&str>| assert_eq!(before(text).as_deref(), expect, "{text}");
        check("", None);
        check(" // nothing\n", None);
        check("{", Some("{"));
        check(
            r#"{"services": [{"id": "a", "apiKey": "sk-1""#,
            Some(r#"{"services": [{"id": "…", "apiKey": "…""#),
        );
        check("{\n  \"id\": \"a\", // \"mine\"\n  \"n\": 12\n  ", Some("\"n\": …"));
        check(r#"{"a" /* "b": */ : [true, "c\": d", null, -1.5e3"#, Some(r#"{"…"  : […, "…", …, …"#));
        check(r#"{"a": "never closed: {"#, Some(r#"{"a": "…""#));
        let long = format!(r#"{{"{}": 1"#, "k".repeat(70));
        check(&long, Some(&format!("…{}\": …", "k".repeat(56))));
    }

    proptest! {
        #[test]
        fn no_value_is_shown(values in prop::collection::vec("\\PC*", 1..4), cut in any::<prop::sample::Index>()) {
            let secret = |value: &String| format!("secret{value}");
            let values: Vec<String> = values.iter().map(secret).collect();
            let text = serde_json::json!({"services": [{"apiKey": values[0], "all": values}]}).to_string();
            let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
            let shown = before(&text[..*cut.get(&ends)]).unwrap_or_default();
            prop_assert!(!shown.contains("secret"), "{shown}");
        }
    }
}
