//! Reads the arguments of calls that a model made.

use crate::head::HEAD_CHARS;
use polity_llm::{Arguments, ToolCall};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::Refusal;
use serde_json::{Map, Value};

/// Returns the arguments of a call; `None` if the model wrote something other than a JSON object.
pub(super) fn arguments(call: &ToolCall) -> Option<&Map<String, Value>> {
    match &call.arguments {
        Arguments::Object(arguments) => Some(arguments),
        Arguments::Malformed(_) => None,
    }
}

/// Returns the arguments of a call as JSON.
pub(super) fn arguments_text(call: &ToolCall) -> String {
    arguments(call).map(|arguments| Value::Object(arguments.clone()).to_string()).unwrap_or_default()
}

/// Returns the refusal of a call whose arguments are not an object.
pub(super) fn malformed(call: &ToolCall) -> Refusal {
    let text = match &call.arguments {
        Arguments::Malformed(text) => text.chars().take(HEAD_CHARS).collect(),
        Arguments::Object(_) => String::new(),
    };
    let fault = Fault::Rule(format!("not a JSON object: {text}"));
    Refusal::InvalidArguments(vec![FieldProblem::new("arguments", fault)])
}
