//! Checks that even the strictest server would accept a request. A JSON Schema checks the form of the request, and
//! rules check its meaning.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use jsonschema::Validator;
use jsonschema::error::{ValidationError, ValidationErrorKind};
use serde_json::Value;

const SCHEMA: &str = include_str!("../openai_chat_request.strict.schema.json");

static VALIDATOR: LazyLock<Validator> = LazyLock::new(|| {
    let schema: Value = serde_json::from_str(SCHEMA).expect("the schema is JSON");
    jsonschema::validator_for(&schema).expect("the schema compiles")
});

/// Lists where a request body differs from the JSON Schema of chat completions, as `pointer: problem`.
pub fn schema_problems(body: &Value) -> Vec<String> {
    if VALIDATOR.is_valid(body) {
        return Vec::new();
    }
    VALIDATOR
        .iter_errors(body)
        .flat_map(|error| leaves(&error).problems)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect()
}

struct Leaves {
    depth: usize,
    problems: Vec<String>,
}

/// Collects the problems of an error. For an `anyOf`, the validator reports the errors of all alternatives. This
/// function collects only the errors of the alternative that the request probably means.
///
/// Three criteria decide which alternative this is, in this order. First: it has the fewest errors in the fields that
/// name the kind, such as `type`. Second: its errors are the deepest. Third: it has the fewest problems.
fn leaves(error: &ValidationError<'_>) -> Leaves {
    if let ValidationErrorKind::AnyOf { context } = error.kind() {
        let meant = context.iter().max_by_key(|errors| {
            let other_kind = errors.iter().filter(|error| names_a_kind(error)).count();
            let leaves = all_leaves(errors);
            (Reverse(other_kind), leaves.depth, Reverse(leaves.problems.len()))
        });
        if let Some(meant) = meant {
            return all_leaves(meant);
        }
    }
    let path = error.instance_path().to_string();
    // Mask the value, because it may be megabytes of base64.
    Leaves { depth: path.matches('/').count(), problems: vec![format!("{path}: {}", error.masked())] }
}

/// Returns whether the error is about a field that tells the alternatives apart, such as `type`.
fn names_a_kind(error: &ValidationError<'_>) -> bool {
    let path = error.instance_path().to_string();
    ["/role", "/type", "/stream"].iter().any(|field| path.ends_with(field))
}

fn all_leaves(errors: &[ValidationError<'_>]) -> Leaves {
    let found: Vec<Leaves> = errors.iter().map(leaves).collect();
    Leaves {
        depth: found.iter().map(|leaves| leaves.depth).max().unwrap_or(0),
        problems: found.into_iter().flat_map(|leaves| leaves.problems).collect(),
    }
}

/// Lists the problems of a request that the schema cannot express, such as a wrong order of messages.
///
/// There is a reason for every rule: at least one real server answers with an error to a request that breaks it.
pub fn conversation_problems(body: &Value) -> Vec<String> {
    let mut problems = option_problems(body);
    let Some(messages) = body["messages"].as_array() else {
        problems.push("messages: the list is missing".to_owned());
        return problems;
    };
    if messages.first().is_none_or(|first| !is_system(first)) {
        problems.push("messages[0]: the system message must come first".to_owned());
    }
    if !messages.iter().any(|message| message["role"] == "user") {
        problems.push("messages: there is no user message".to_owned());
    }
    if messages.last().is_some_and(|last| last["role"] == "assistant") {
        problems.push("messages: the last message is the assistant's".to_owned());
    }
    let mut calls = Calls::default();
    for (index, message) in messages.iter().enumerate() {
        let mut found = message_problems(message, index);
        found.extend(calls.step(message));
        problems.extend(found.into_iter().map(|problem| format!("messages[{index}]: {problem}")));
    }
    problems.extend(calls.unanswered().map(|id| format!("messages: the call {id} is never answered")));
    problems
}

fn option_problems(body: &Value) -> Vec<String> {
    let mut problems = Vec::new();
    let tools = body["tools"].as_array();
    if tools.is_some_and(Vec::is_empty) {
        problems.push("tools: the list is empty".to_owned());
    }
    if tools.is_none() && body.get("tool_choice").is_some() {
        problems.push("tool_choice: given without tools".to_owned());
    }
    if body["stream"] != true && body.get("stream_options").is_some() {
        problems.push("stream_options: given without stream".to_owned());
    }
    let mut names = BTreeSet::new();
    for tool in tools.into_iter().flatten() {
        let name = tool["function"]["name"].as_str().unwrap_or_default();
        if !is_tool_name(name) {
            problems.push(format!("tools: {name:?} is not a valid tool name"));
        }
        if !names.insert(name) {
            problems.push(format!("tools: {name} appears twice"));
        }
    }
    problems
}

fn message_problems(message: &Value, index: usize) -> Vec<String> {
    let mut problems = Vec::new();
    if index > 0 && is_system(message) {
        problems.push("a second system message".to_owned());
    }
    let calls = message["tool_calls"].as_array();
    if calls.is_some_and(Vec::is_empty) {
        problems.push("an empty list of tool calls".to_owned());
    }
    if is_blank(&message["content"]) && calls.is_none_or(Vec::is_empty) && message["refusal"].is_null() {
        problems.push(format!("an empty {} message", message["role"].as_str().unwrap_or("roleless")));
    }
    for call in calls.into_iter().flatten() {
        let (id, function) = (text_of(&call["id"]), &call["function"]);
        if id.is_empty() {
            problems.push("a call without an id".to_owned());
        }
        if !is_tool_name(text_of(&function["name"])) {
            problems.push(format!("the call {id} has an invalid tool name: {}", function["name"]));
        }
        let arguments = serde_json::from_str::<Value>(text_of(&function["arguments"]));
        if !arguments.is_ok_and(|arguments| arguments.is_object()) {
            problems.push(format!("the arguments of the call {id} are not a JSON object"));
        }
    }
    problems
}

/// The tool calls in the messages that were read so far.
#[derive(Default)]
struct Calls {
    /// For each call id, whether the call still waits for its result. After a message that is not a result, no call
    /// waits any more.
    waiting: BTreeMap<String, bool>,
}

impl Calls {
    fn step(&mut self, message: &Value) -> Vec<String> {
        let mut problems = Vec::new();
        if message["role"] == "tool" {
            let id = text_of(&message["tool_call_id"]);
            match self.waiting.get_mut(id) {
                Some(waiting) if *waiting => *waiting = false,
                Some(_) => {
                    problems.push(format!("a result for the call {id}, which no longer waits for one"))
                }
                None => problems.push(format!("a result for the call {id}, which does not exist")),
            }
            return problems;
        }
        for (id, waiting) in self.waiting.iter_mut().filter(|(_, waiting)| **waiting) {
            *waiting = false;
            let role = message["role"].as_str().unwrap_or("a message without a role");
            problems.push(format!("{role} speaks before the call {id} is answered"));
        }
        for call in message["tool_calls"].as_array().into_iter().flatten() {
            let id = text_of(&call["id"]);
            if self.waiting.insert(id.to_owned(), true).is_some() {
                problems.push(format!("two calls have the id {id}"));
            }
        }
        problems
    }

    fn unanswered(&self) -> impl Iterator<Item = &str> {
        self.waiting.iter().filter(|(_, waiting)| **waiting).map(|(id, _)| id.as_str())
    }
}

fn is_system(message: &Value) -> bool {
    message["role"] == "system" || message["role"] == "developer"
}

fn is_tool_name(name: &str) -> bool {
    let allowed = |char: char| char.is_ascii_alphanumeric() || char == '_' || char == '-';
    !name.is_empty() && name.len() <= 64 && name.chars().all(allowed)
}

fn is_blank(content: &Value) -> bool {
    match content {
        Value::Array(parts) => {
            parts.iter().all(|part| part["type"] == "text" && text_of(&part["text"]).trim().is_empty())
        }
        content => text_of(content).trim().is_empty(),
    }
}

fn text_of(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn body(messages: Value) -> Value {
        json!({"model": "m", "messages": messages})
    }

    fn system() -> Value {
        json!({"role": "system", "content": "s"})
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn assistant(text: &str) -> Value {
        json!({"role": "assistant", "content": text})
    }

    fn calls(ids: &[&str]) -> Value {
        let calls: Vec<Value> = ids
            .iter()
            .map(|id| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}}))
            .collect();
        json!({"role": "assistant", "content": null, "tool_calls": calls})
    }

    fn call_with(name: &str, arguments: &str) -> Value {
        json!({"role": "assistant", "tool_calls":
            [{"id": "a", "type": "function", "function": {"name": name, "arguments": arguments}}]})
    }

    fn result(id: &str) -> Value {
        json!({"role": "tool", "tool_call_id": id, "content": "{}"})
    }

    #[track_caller]
    fn check(messages: Value, expect: &[&str]) {
        assert_eq!(conversation_problems(&body(messages)), expect);
    }

    #[track_caller]
    fn check_options(options: Value, expect: &[&str]) {
        let mut body = body(json!([system(), user("u")]));
        for (name, value) in options.as_object().expect("an object") {
            body[name] = value.clone();
        }
        assert_eq!(conversation_problems(&body), expect);
    }

    #[test]
    fn a_sound_conversation_has_no_problems() {
        check(json!([system(), user("u")]), &[]);
        check(json!([system(), user("u"), assistant("a"), user("v")]), &[]);
        check(json!([system(), user("u"), calls(&["a", "b"]), result("b"), result("a")]), &[]);
        check(
            json!([system(), user("u"), calls(&["a"]), result("a"), user("v"), assistant("x"), user("w")]),
            &[],
        );
        check(json!([system(), user("u"), calls(&["a"]), result("a"), calls(&["b"]), result("b")]), &[]);
        let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}});
        check(json!([system(), {"role": "user", "content": [image]}]), &[]);
        check(json!([{"role": "developer", "content": "s"}, user("u")]), &[]);
    }

    #[test]
    fn the_system_message_is_one_and_first() {
        check(json!([user("u")]), &["messages[0]: the system message must come first"]);
        check(json!([system(), user("u"), system(), user("v")]), &["messages[2]: a second system message"]);
        check(
            json!([user("u"), system()]),
            &["messages[0]: the system message must come first", "messages[1]: a second system message"],
        );
    }

    #[test]
    fn every_call_is_answered_before_anybody_speaks() {
        check(
            json!([system(), user("u"), calls(&["a"]), user("v"), result("a")]),
            &[
                "messages[3]: user speaks before the call a is answered",
                "messages[4]: a result for the call a, which no longer waits for one",
            ],
        );
        check(
            json!([system(), user("u"), calls(&["a", "b"]), result("a"), assistant("x"), user("v")]),
            &["messages[4]: assistant speaks before the call b is answered"],
        );
        check(
            json!([system(), user("u"), calls(&["a", "b"]), result("a")]),
            &["messages: the call b is never answered"],
        );
    }

    #[test]
    fn every_result_has_its_call_and_every_call_one_result() {
        check(
            json!([system(), user("u"), result("a")]),
            &["messages[2]: a result for the call a, which does not exist"],
        );
        check(
            json!([system(), user("u"), calls(&["a"]), result("a"), result("a")]),
            &["messages[4]: a result for the call a, which no longer waits for one"],
        );
    }

    #[test]
    fn ids_are_unique() {
        check(
            json!([system(), user("u"), calls(&["a"]), result("a"), calls(&["a"]), result("a")]),
            &["messages[4]: two calls have the id a"],
        );
        check(
            json!([system(), user("u"), calls(&["a", "a"]), result("a")]),
            &["messages[2]: two calls have the id a"],
        );
        check(json!([system(), user("u"), calls(&[""]), result("")]), &["messages[2]: a call without an id"]);
    }

    #[test]
    fn arguments_are_objects_and_names_are_names() {
        let no_object = &["messages[2]: the arguments of the call a are not a JSON object"];
        for arguments in ["", "{", "[]", "null", "1", "{} x"] {
            check(json!([system(), user("u"), call_with("t", arguments), result("a")]), no_object);
        }
        check(
            json!([system(), user("u"), call_with("a tool", "{}"), result("a")]),
            &["messages[2]: the call a has an invalid tool name: \"a tool\""],
        );
    }

    #[test]
    fn nobody_says_nothing() {
        for content in
            [json!(null), json!(""), json!(" \n"), json!([]), json!([{"type": "text", "text": ""}])]
        {
            let silent = json!({"role": "assistant", "content": content});
            check(
                json!([system(), user("u"), silent, user("v")]),
                &["messages[2]: an empty assistant message"],
            );
        }
        check(
            json!([system(), user("u"), {"role": "assistant", "content": "x", "tool_calls": []}, user("v")]),
            &["messages[2]: an empty list of tool calls"],
        );
        check(json!([system(), user("")]), &["messages[1]: an empty user message"]);
    }

    #[test]
    fn somebody_has_asked() {
        check(json!([system()]), &["messages: there is no user message"]);
        check(
            json!([system(), user("u"), assistant("a")]),
            &["messages: the last message is the assistant's"],
        );
    }

    #[test]
    fn options_fit_together() {
        let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
        check_options(json!({"tools": [tool("t")], "tool_choice": "none"}), &[]);
        check_options(json!({"tools": []}), &["tools: the list is empty"]);
        check_options(json!({"tool_choice": "auto"}), &["tool_choice: given without tools"]);
        check_options(json!({"tools": [tool("t"), tool("t")]}), &["tools: t appears twice"]);
        check_options(json!({"tools": [tool("工具")]}), &["tools: \"工具\" is not a valid tool name"]);
        check_options(json!({"stream": true, "stream_options": {"include_usage": true}}), &[]);
        check_options(
            json!({"stream_options": {"include_usage": true}}),
            &["stream_options: given without stream"],
        );
    }

    #[test]
    fn the_schema_takes_what_is_defined() {
        assert_eq!(schema_problems(&body(json!([system(), user("u"), calls(&["a"]), result("a")]))), [""; 0]);
    }

    #[test]
    fn the_schema_says_where_the_problem_is() {
        let mut unknown_field = body(json!([system(), user("u")]));
        unknown_field["metadata_of_ours"] = json!(1);
        unknown_field["stream"] = json!(true);
        let problems = schema_problems(&unknown_field);
        assert!(problems.len() == 1 && problems[0].contains("metadata_of_ours"), "{problems:?}");

        let image_in_tool = json!({"role": "tool", "tool_call_id": "a", "content":
            [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]});
        let problems = schema_problems(&body(json!([system(), user("u"), calls(&["a"]), image_in_tool])));
        assert!(problems.iter().any(|problem| problem.starts_with("/messages/3")), "{problems:?}");

        let long = "A".repeat(10_000);
        let bare = json!({"role": "user", "content": [{"type": "image_url", "image_url": long}]});
        let problems = schema_problems(&body(json!([system(), bare])));
        assert!(problems[0].starts_with("/messages/1/content/0/image_url"), "{problems:?}");
        assert!(problems.concat().len() < 2_000, "the value itself is left out");
    }
}
