//! Compares an answer with the JSON Schema that its request contains. The functions are pure.
//!
//! Schemas come from people and from models, so a schema may be an attack. A schema may refer to other documents, but
//! this module never loads them. It matches patterns in linear time. It refuses a schema that would take long to
//! compare ([`cost`]).

mod cost;

use jsonschema::{PatternOptions, Validator};
use polity_society::message::Payload;
use polity_society::written::json_in;
use serde_json::Value;

/// The maximum number of errors that are reported at once. An agent has to read all errors before it answers again.
const MOST_ERRORS: usize = 8;

/// The maximum length of the description of one error, in characters. The validator quotes the value that fails,
/// which may be long.
const ERROR_CHARS: usize = 200;

/// Maximum nesting of schemas and answers.
const DEEPEST: usize = 64;

/// What happens to an answer that does not fit its schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misfit {
    /// The answer is refused, and its writer is told why. Only the first such answer in a turn is refused.
    Refused,
    /// The answer is sent, with the reasons why it does not fit.
    Marked,
}

/// Compiles a schema, or returns what is wrong with it.
pub fn read(schema: &Value) -> Result<Validator, String> {
    if depth(schema) > DEEPEST {
        return Err(format!("is nested deeper than {DEEPEST} levels"));
    }
    cost::check(schema)?;
    let options = jsonschema::options().with_pattern_options(PatternOptions::regex());
    options.build(schema).map_err(|error| format!("is no JSON Schema: {}", shortened(&error.to_string())))
}

/// Returns an error that says what is wrong with a schema. A caller can then refuse a request with this schema before
/// any model is asked.
pub fn check_schema(schema: &Value) -> Result<(), String> {
    read(schema).map(drop)
}

/// Returns the content of a message as JSON if it fits all schemas, otherwise the reasons why it does not fit.
pub fn fit(payload: &Payload, schemas: &[Value]) -> Result<Value, Vec<String>> {
    let said = match payload.content() {
        Some((_, Value::String(text))) => json_in(text),
        Some((_, value)) => Some(value.clone()),
        None => None,
    };
    let Some(said) = said else { return Err(vec!["it is not JSON".to_owned()]) };
    if depth(&said) > DEEPEST {
        return Err(vec![format!("it is nested deeper than {DEEPEST} levels")]);
    }
    let mut errors = Vec::new();
    for schema in schemas {
        match read(schema) {
            Ok(validator) => errors.extend(validator.iter_errors(&said).map(|error| {
                let at = error.instance_path().to_string();
                let place = if at.is_empty() { String::new() } else { format!("{at}: ") };
                format!("{place}{}", shortened(&error.to_string()))
            })),
            // The runtime checked this schema before it accepted the request. So this happens only if the database row
            // is damaged.
            Err(error) => errors.push(error),
        }
    }
    errors.truncate(MOST_ERRORS);
    if errors.is_empty() { Ok(said) } else { Err(errors) }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(ERROR_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(entries) => 1 + entries.values().map(depth).max().unwrap_or(0),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn city() -> Value {
        json!({
            "type": "object",
            "properties": {"city": {"type": "string", "pattern": "^[A-Z]"}, "people": {"type": "integer"}},
            "required": ["city", "people"],
            "additionalProperties": false
        })
    }

    #[test]
    fn what_fits_is_given_as_json() {
        let check = |text: &str| {
            let fits = fit(&Payload::text(text), &[city()]);
            assert_eq!(fits, Ok(json!({"city": "Paris", "people": 2})), "{text}");
        };
        check(r#"{"city": "Paris", "people": 2}"#);
        check("```json\n{\"city\": \"Paris\", \"people\": 2}\n```");
        check("Here: {\"city\": \"Paris\", \"people\": 2}");
        let mut structured = Payload::text("");
        structured.fields.insert("text".to_owned(), json!({"city": "Paris", "people": 2}));
        assert!(fit(&structured, &[city()]).is_ok());
        assert!(fit(&structured, &[city(), json!({"type": "array"})]).is_err(), "it must fit all");
    }

    #[test]
    fn what_does_not_fit_says_where() {
        let check = |text: &str, expect: &str| {
            let errors = fit(&Payload::text(text), &[city()]).unwrap_err();
            assert!(errors.iter().any(|error| error.contains(expect)), "{text}: {errors:?}");
        };
        check("Paris", "it is not JSON");
        check(r#"{"city": "Paris"}"#, "people");
        check(r#"{"city": "paris", "people": 2}"#, "/city");
        check(r#"{"city": "Paris", "people": "two"}"#, "/people");
        check(r#"{"city": "Paris", "people": 2, "x": 1}"#, "x");
        check(&format!("{}{}", "[".repeat(100), "]".repeat(100)), "64 levels");
        let many = json!({"type": "array", "items": {"type": "string"}});
        let wrong = Value::from(vec![7; 100]).to_string();
        assert_eq!(fit(&Payload::text(wrong), &[many]).unwrap_err().len(), MOST_ERRORS);
    }

    #[test]
    fn a_schema_that_is_none_is_refused_and_nothing_is_looked_up() {
        let check = |schema: Value| assert!(read(&schema).is_err(), "{schema}");
        check(json!({"type": "no such type"}));
        check(json!({"$ref": "https://example.com/schema.json"}));
        check(json!({"$ref": "file:///etc/passwd"}));
        check(json!({"pattern": "("}));
        let mut deep = json!({});
        for _ in 0..100 {
            deep = json!({"items": deep});
        }
        check(deep);
        assert!(read(&json!(true)).is_ok());
    }

    #[test]
    fn a_schema_that_would_take_long_is_refused() {
        let twice = json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]});
        assert_eq!(read(&twice).unwrap_err(), "refers to itself in several ways for the same value");
    }

    #[test]
    fn a_hostile_schema_costs_little() {
        let fits = |schema: Value, text: &str| fit(&Payload::text(text), &[schema]);
        // A validator that backtracks would never finish this pattern.
        let text = format!("\"{}!\"", "a".repeat(40));
        assert!(fits(json!({"pattern": "^(a+)+$"}), &text).is_err());
        // A schema that refers to itself must not make the comparison run for ever.
        let _ = fits(json!({"$ref": "#"}), "1");
        let tree = json!({"properties": {"child": {"$ref": "#"}}, "required": ["name"]});
        assert!(fits(tree, r#"{"name": 1, "child": {"name": 2}}"#).is_ok());
    }
}
