//! Reads imprecise JSON as its writer meant it.
//!
//! A model may write a name in another style (`role_id` for `roleId`). It may write an object as a string that contains
//! the object as JSON. For an absent value, it may write `""` or `null`. This module decides which of these forms are
//! accepted, for all tools and all fields.

use crate::glyph::is_invisible;
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Returns whether a text contains nothing that a reader would see.
pub fn is_blank(text: &str) -> bool {
    text.chars()
        .all(|character| character.is_whitespace() || character.is_control() || is_invisible(character))
}

/// Returns whether a value has content. `null`, a blank text, an empty list and an empty object have no content. A list
/// has none either if none of its values has content.
pub fn says_something(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) => !is_blank(text),
        Value::Array(items) => items.iter().any(says_something),
        Value::Object(entries) => !entries.is_empty(),
    }
}

/// Returns a value in words: a text as it is, anything else as JSON.
pub(crate) fn in_words(value: &Value) -> String {
    value.as_str().map_or_else(|| crate::defuse::json_line(value), str::to_owned)
}

/// Returns the object if a value is an object, or a string that contains an object as JSON; otherwise `None`.
pub fn object(value: &Value) -> Option<Map<String, Value>> {
    match value {
        Value::Object(object) => Some(object.clone()),
        Value::String(text) => match encoded(text, '{')? {
            Value::Object(object) => Some(object),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the list if a value is a list, or a string that contains a list as JSON; otherwise `None`.
pub fn list(value: &Value) -> Option<Vec<Value>> {
    match value {
        Value::Array(items) => Some(items.clone()),
        Value::String(text) => match encoded(text, '[')? {
            Value::Array(items) => Some(items),
            _ => None,
        },
        _ => None,
    }
}

fn encoded(text: &str, opening: char) -> Option<Value> {
    if !text.trim_start().starts_with(opening) {
        return None;
    }
    serde_json::from_str(text).ok()
}

/// Finds JSON in a text.
/// Tries the whole text first, then the only fenced code block, then the only object or list in the text.
pub fn json_in(text: &str) -> Option<Value> {
    let whole = |text: &str| serde_json::from_str(text.trim()).ok();
    let between = |opening: char, closing: char| {
        let (begins, ends) = (text.find(opening)?, text.rfind(closing)?);
        whole(text.get(begins..=ends)?)
    };
    // The search for an object comes before the search for a list, because a number in brackets may be a footnote.
    // If the text begins with a list, an object in the text is only a part of this list, so the search for an object is
    // skipped.
    whole(text)
        .or_else(|| whole(fenced(text)?))
        .or_else(|| between('{', '}').filter(|_| !text.trim_start().starts_with('[')))
        .or_else(|| between('[', ']'))
}

/// Returns the content of the fenced code block, if the text has exactly one.
fn fenced(text: &str) -> Option<&str> {
    let mut parts = text.split("```");
    let (_, inside, _) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    // The name of a language may follow the opening fence.
    let (first, rest) = inside.split_once('\n')?;
    if first.trim().bytes().all(|byte| byte.is_ascii_alphanumeric()) { Some(rest) } else { Some(inside) }
}

/// Gives each field the known name if the field has this name in another style, such as `roleId` for `role_id`. But if
/// another field already has a value under the known name, the field keeps its own name.
pub fn with_names(object: Map<String, Value>, known: &[&'static str]) -> Map<String, Value> {
    let is_there = |name: &&&str| object.get(**name).is_some_and(|value| !value.is_null());
    let mut found: BTreeSet<&str> = known.iter().filter(is_there).copied().collect();
    let mut named = Map::with_capacity(object.len());
    for (key, value) in object {
        let is_meant = |name: &&&str| !found.contains(**name) && is_same_name(&key, name);
        let key = match known.iter().find(is_meant) {
            Some(name) => {
                if !value.is_null() {
                    found.insert(name);
                }
                (*name).to_owned()
            }
            None => key,
        };
        // Two fields may get the same name. A `null` has no content, so it must not replace the value of the other
        // field.
        if !(value.is_null() && named.contains_key(&key)) {
            named.insert(key, value);
        }
    }
    named
}

/// Gives each field the known name if the field has a synonym as its name. But if the object already has a value under
/// the known name, the field keeps its own name. Also returns the renamings, such as `goal → objective`.
pub fn with_synonyms(
    mut object: Map<String, Value>,
    synonyms: &[(&str, &str)],
) -> (Map<String, Value>, Vec<String>) {
    let mut understood = Vec::new();
    for (word, name) in synonyms {
        let is_there = object.get(*name).is_some_and(|value| !value.is_null());
        let written = object.keys().find(|key| is_same_name(key, word)).cloned();
        if let (false, Some(written)) = (is_there, written)
            && let Some(value) = object.shift_remove(&written).filter(|value| !value.is_null())
        {
            object.insert((*name).to_owned(), value);
            understood.push(format!("{written} → {name}"));
        }
    }
    (object, understood)
}

/// Returns whether two names differ only in style: `role_id`, `roleId`, `RoleID`, `role-id`.
pub fn is_same_name(one: &str, other: &str) -> bool {
    let letters = |name: &str| -> String {
        name.chars()
            .filter(|character| !matches!(character, '_' | '-' | ' '))
            .flat_map(char::to_lowercase)
            .collect()
    };
    letters(one) == letters(other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_is_found_in_a_text() {
        let check = |text: &str, expect: Option<Value>| assert_eq!(json_in(text), expect, "{text}");
        let object = json!({"a": [1]});
        check(r#"{"a": [1]}"#, Some(object.clone()));
        check("\n {\"a\": [1]} \n", Some(object.clone()));
        check("```json\n{\"a\": [1]}\n```", Some(object.clone()));
        check("Here it is:\n```\n{\"a\": [1]}\n```\nAnything else?", Some(object.clone()));
        check("Here it is: {\"a\": [1]}. Anything else?", Some(object));
        check("The list is [1, 2].", Some(json!([1, 2])));
        check("\"a word\"", Some(json!("a word")));
        check("7", Some(json!(7)));
        // The text has two code blocks, and nothing tells which of them is the answer.
        check("```\n1\n```\n```\n2\n```", None);
        check("{\"a\": 1} or {\"a\": 2}", None);
        check("As [1] says: {\"a\": [1]}", Some(json!({"a": [1]})));
        check("The list: [{\"a\": 1}, {\"a\": 2}].", Some(json!([{"a": 1}, {"a": 2}])));
        check("no JSON", None);
        check("} {", None);
        check("", None);
    }

    #[test]
    fn other_words_are_understood_where_nothing_stands_in_their_place() {
        let synonyms = [("goal", "objective"), ("task", "objective"), ("input", "inputs")];
        let object = |value: Value| value.as_object().unwrap().clone();
        let check = |given: Value, expect: Value, words: &[&str]| {
            let (read, understood) = with_synonyms(object(given), &synonyms);
            assert_eq!(
                (Value::Object(read), understood),
                (expect, words.iter().map(|&word| word.to_owned()).collect())
            );
        };
        check(json!({"Goal": "a"}), json!({"objective": "a"}), &["Goal → objective"]);
        check(json!({"goal": "a", "objective": "b"}), json!({"goal": "a", "objective": "b"}), &[]);
        // `goal` and `task` are both synonyms of `objective`. `goal` comes first and becomes `objective`, so `task`
        // keeps its name.
        check(
            json!({"goal": "a", "task": "b"}),
            json!({"task": "b", "objective": "a"}),
            &["goal → objective"],
        );
        check(json!({"input": null}), json!({}), &[]);
    }

    #[test]
    fn names_in_another_style_are_understood() {
        let check = |given: Value, expect: Value| {
            let named = with_names(given.as_object().unwrap().clone(), &["roleId", "name", "message_type"]);
            assert_eq!(Value::Object(named), expect);
        };
        check(
            json!({"role_id": 1, "Name": 2, "messageType": 3}),
            json!({"roleId": 1, "name": 2, "message_type": 3}),
        );
        check(json!({"RoleID": 1, "message-type": 3}), json!({"roleId": 1, "message_type": 3}));
        check(json!({"role": 1, "roleIds": 2}), json!({"role": 1, "roleIds": 2}));
        // If an object has `roleId` and `role_id`, both fields stay, so no value is lost.
        check(json!({"role_id": 1, "roleId": 2}), json!({"role_id": 1, "roleId": 2}));
        check(json!({"role_id": 1, "ROLE_ID": 2}), json!({"roleId": 1, "ROLE_ID": 2}));
        check(json!({"roleId": null, "role_id": 1}), json!({"roleId": 1}));
        check(json!({"role_id": 1, "roleId": null}), json!({"roleId": 1}));
        check(json!({"role_id": null}), json!({"roleId": null}));
    }

    #[test]
    fn what_says_something() {
        let check = |value: Value, expect: bool| assert_eq!(says_something(&value), expect, "{value}");
        for nothing in [
            json!(null),
            json!(""),
            json!(" \n\t"),
            json!("\u{200B}\u{FEFF}"),
            json!([]),
            json!({}),
            json!(["", [null]]),
        ] {
            check(nothing, false);
        }
        for something in [json!(0), json!(false), json!("."), json!("🙂"), json!(["", 0]), json!({"a": ""})]
        {
            check(something, true);
        }
    }

    #[test]
    fn objects_and_lists_in_a_string_are_understood() {
        assert_eq!(object(&json!(" {\"a\": 1}")).map(Value::Object), Some(json!({"a": 1})));
        assert_eq!(list(&json!("[1, 2]")), Some(vec![json!(1), json!(2)]));
        for other in [json!("{a}"), json!("[1]"), json!("a"), json!(1), json!([{}])] {
            assert_eq!(object(&other), None, "{other}");
        }
        for other in [json!("[a"), json!("{}"), json!("a"), json!(1), json!({})] {
            assert_eq!(list(&other), None, "{other}");
        }
    }
}
