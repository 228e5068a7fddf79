//! Reads the arguments of a call into a Rust type, and refuses a call whose arguments do not fit.

use crate::call::Arguments;
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use polity_society::written;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The arguments of one tool, as a struct with one field for each argument.
pub trait Argued: DeserializeOwned + JsonSchema {
    /// The names of the arguments, as the description for models spells them.
    const NAMES: &'static [&'static str];
}

/// Reads arguments. A model may write a name in another style (`oldStr` for `old_str`), and may write `null` for a
/// missing argument.
pub fn read<T: Argued>(arguments: &Arguments) -> Result<T, Refusal> {
    let read: Result<T, _> = serde_path_to_error::deserialize(Value::Object(named::<T>(arguments)));
    read.map_err(|error| {
        let path = error.path().to_string();
        let path = if path == "." { String::new() } else { path };
        let what = error.into_inner().to_string();
        Refusal::InvalidArguments(vec![FieldProblem::new(path, Fault::Rule(what))])
    })
}

/// Returns the text of one argument. If [`read`] can read the arguments, it reads the same text. The policy judges a
/// call by this text, so the text is also returned if other arguments are wrong.
pub fn text_of<T: Argued>(arguments: &Arguments, name: &str) -> Option<String> {
    named::<T>(arguments).get(name).and_then(Value::as_str).map(str::to_owned)
}

/// Gives the arguments the names that the schema has for them, and leaves out missing arguments.
fn named<T: Argued>(arguments: &Arguments) -> Arguments {
    let mut arguments = written::with_names(arguments.clone(), T::NAMES);
    arguments.retain(|_, value| !value.is_null());
    arguments
}

/// Returns the JSON Schema of a type, simplified by [`plain`].
pub fn schema_of<T: Argued>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    plain(settings.into_generator().into_root_schema_for::<T>().to_value())
}

/// Keywords of JSON Schema that [`plain`] removes.
const NEEDLESS: &[&str] = &["title", "$schema", "format", "default", "description", "minimum", "maximum"];

/// Removes the keywords in `NEEDLESS`, and the type `null` of optional fields. Models do not need them, and some model
/// servers do not accept them.
pub fn plain(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(plain_object(object)),
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}

fn plain_object(object: Map<String, Value>) -> Map<String, Value> {
    let mut plainer = Map::new();
    for (key, value) in object {
        match (key.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                let properties = properties.into_iter().map(|(name, schema)| (name, plain(schema)));
                plainer.insert(key, Value::Object(properties.collect()));
            }
            // Removes the type `null`. Models do not need it: they can leave out an argument that the schema does not
            // list as required.
            ("type", Value::Array(types)) => {
                let mut named = types.into_iter().filter(|name| name != "null");
                let (first, second) = (named.next(), named.next());
                let types = match (first, second) {
                    (Some(only), None) => only,
                    (first, second) => first.into_iter().chain(second).chain(named).collect(),
                };
                plainer.insert(key, types);
            }
            ("anyOf", Value::Array(choices)) => {
                let mut named = choices.into_iter().filter(|choice| choice["type"] != "null");
                match (named.next(), named.next()) {
                    (Some(Value::Object(only)), None) => plainer.extend(plain_object(only)),
                    (first, second) => {
                        let all = first.into_iter().chain(second).chain(named).map(plain).collect();
                        plainer.insert(key, all);
                    }
                }
            }
            (name, _) if NEEDLESS.contains(&name) => {}
            (_, value) => {
                plainer.insert(key, plain(value));
            }
        }
    }
    plainer
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use serde_json::json;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Edit {
        /// What to do.
        command: Command,
        old_str: Option<String>,
        view_range: Option<[i64; 2]>,
        limit: Option<u32>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Command {
        View,
        Insert,
    }

    impl Argued for Edit {
        const NAMES: &'static [&'static str] = &["command", "old_str", "view_range", "limit"];
    }

    fn object(value: Value) -> Arguments {
        let Value::Object(object) = value else { panic!("{value}") };
        object
    }

    #[test]
    fn arguments_are_read_in_any_style() {
        let wanted = object(json!({"command": "view", "oldStr": "x", "viewRange": [1, -1], "limit": null}));
        let edit: Edit = read(&wanted).unwrap();
        assert_eq!(
            edit,
            Edit {
                command: Command::View,
                old_str: Some("x".to_owned()),
                view_range: Some([1, -1]),
                limit: None
            }
        );
    }

    #[test]
    fn one_text_is_read_in_any_style_and_beside_wrong_arguments() {
        let check = |wanted: Value, expect: Option<&str>| {
            assert_eq!(text_of::<Edit>(&object(wanted.clone()), "old_str").as_deref(), expect, "{wanted}");
        };
        for name in ["old_str", "oldStr", "Old-Str", "OLDSTR"] {
            check(json!({name: "x"}), Some("x"));
        }
        check(json!({"old_str": null, "oldStr": "x"}), Some("x"));
        check(json!({"old_str": "x", "oldStr": "y"}), Some("x"));
        check(json!({"oldStr": "x", "limit": "many", "other": 1}), Some("x"));
        check(json!({"old_str": ["x"]}), None);
        check(json!({"old_str": null}), None);
        check(json!({}), None);
    }

    #[test]
    fn a_fault_is_named_with_its_place() {
        let check = |wanted: Value, expect: &str| {
            let refusal = read::<Edit>(&object(wanted)).unwrap_err();
            assert!(format!("{refusal:?}").contains(expect), "{refusal:?}");
        };
        check(json!({"command": "delete"}), "unknown variant `delete`");
        check(json!({}), "missing field `command`");
        check(json!({"command": "view", "limit": "many"}), "limit");
        check(json!({"command": "view", "path": "x"}), "unknown field `path`");
    }

    #[test]
    fn a_schema_is_small() {
        let expect = json!({
            "type": "object",
            "properties": {
                "command": {"type": "string", "enum": ["view", "insert"]},
                "old_str": {"type": "string"},
                "view_range": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
                "limit": {"type": "integer"},
            },
            "required": ["command"],
            "additionalProperties": false,
        });
        assert_eq!(schema_of::<Edit>(), expect);
    }
}
