//! Recognizes texts in which a model tried to call a tool, and failed. Such texts are neither calls nor answers.

use super::lenient;
use super::shape::{BESIDE, WRAPPERS};
use super::thoughts::without_thoughts;
use super::tokens;
use serde_json::{Map, Value};

/// Fields that may contain the name of the tool. The list `NAMES` of the module `shape` has more fields. They do not
/// count here, because they are also common in ordinary JSON.
const TOOL: [&str; 4] = ["name", "tool", "tool_name", "function"];

/// Returns whether a text is a failed tool call. [`read`](super::read) must have returned `Spoken::Text` for this text.
///
/// A text is a failed call if one of its lines begins with the mark of a call and goes on with a call. A text is also a
/// failed call if it consists only of calls in JSON. The called tools need not be offered. A call in a code fence, in
/// quotes or in a sentence does not count, because it is a quotation.
pub fn has_remains(text: &str) -> bool {
    let (_, said) = without_thoughts(text);
    tokens::begins_call_in_a_line(&said) || is_json_call(&said)
}

fn is_json_call(text: &str) -> bool {
    // Do not parse a text that cannot be a call.
    if !text.starts_with(['{', '[']) || !text.contains("arguments") {
        return false;
    }
    match lenient::whole(text) {
        Some(Value::Object(fields)) => is_call(&fields),
        Some(Value::Array(items)) => {
            !items.is_empty() && items.iter().all(|item| item.as_object().is_some_and(is_call))
        }
        Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => false,
    }
}

fn is_call(fields: &Map<String, Value>) -> bool {
    if let [(wrapper, inner)] = fields.iter().collect::<Vec<_>>()[..]
        && WRAPPERS.contains(&wrapper.as_str())
    {
        return match inner {
            Value::Object(inner) => is_call(inner),
            Value::Array(items) => {
                !items.is_empty() && items.iter().all(|item| item.as_object().is_some_and(is_call))
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
        };
    }
    let is_named = TOOL.iter().any(|key| fields.get(*key).is_some_and(Value::is_string));
    let has_arguments = fields.get("arguments").is_some_and(Value::is_object);
    let is_known = |key: &str| key == "arguments" || TOOL.contains(&key) || BESIDE.contains(&key);
    // In the API, the field `function` of a call contains an object with the name and the arguments.
    let wrapped = || {
        let inner = fields.get("function").and_then(Value::as_object);
        inner.is_some_and(is_call)
            && fields.keys().all(|key| key == "function" || BESIDE.contains(&key.as_str()))
    };
    (is_named && has_arguments && fields.keys().all(|key| is_known(key))) || wrapped()
}
