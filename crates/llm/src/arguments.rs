//! Parses the arguments that a model wrote for a call.

use crate::chat::Arguments;
use crate::classify::MAX_PARSED;
use polity_bounds::weigh;
use serde_json::{Map, Value};

/// Parses the text of arguments. Returns an object if the text is blank, is a JSON object, or is a JSON string that
/// contains a JSON object. Any other text is malformed, and so is a text whose parsed value would take too much memory.
/// A malformed text is returned unchanged.
pub(crate) fn parse_arguments(text: &str) -> Arguments {
    if text.trim().is_empty() {
        return Arguments::Object(Map::new());
    }
    let parse = |text: &str| match weigh(text.as_bytes()) {
        ..=MAX_PARSED => serde_json::from_str(text).ok(),
        _ => None,
    };
    // Some models write their arguments as a JSON object inside a JSON string.
    let value = match parse(text) {
        Some(Value::String(inner)) => parse(&inner),
        other => other,
    };
    match value {
        Some(Value::Object(object)) => Arguments::Object(object),
        Some(_) | None => Arguments::Malformed(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn object(text: &str, expect: Value) {
        assert_eq!(parse_arguments(text), Arguments::Object(expect.as_object().unwrap().clone()));
    }

    fn malformed(text: &str) {
        assert_eq!(parse_arguments(text), Arguments::Malformed(text.to_owned()));
    }

    #[test]
    fn objects_are_understood() {
        object(r#"{"to":"root"}"#, json!({"to": "root"}));
        object(" {} ", json!({}));
        object("", json!({}));
        object(" \n", json!({}));
        object(r#""{\"a\":1}""#, json!({"a": 1}));
    }

    #[test]
    fn anything_else_is_kept_as_it_came() {
        malformed(r#"{"to":"ro"#);
        malformed("[1]");
        malformed("null");
        malformed("42");
        malformed(r#""just text""#);
        malformed(r#""\"{\\\"a\\\":1}\"""#);
        malformed("{\"a\":1} and more");
    }
}
