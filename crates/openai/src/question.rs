//! What the requests of both routes have in common: the parsed form of a request, and some fields of the body.

use crate::conversation::Conversation;
use crate::problem::Problem;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// A parsed request.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    /// The name of the requested model.
    pub(crate) model: String,
    /// The name that the client gives to the person who asks. It is empty if the client gives no name.
    pub(crate) person: String,
    pub(crate) conversation: Conversation,
    /// The JSON Schema that the answer must fit.
    pub(crate) schema: Option<Value>,
    /// The id of the task to continue.
    pub(crate) task: Option<String>,
    /// The id of the response to continue from.
    pub(crate) previous: Option<String>,
    pub(crate) delivery: Delivery,
}

/// The format in which the client wants the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// One JSON object.
    Whole,
    /// A stream of events.
    Streamed(UsageChunk),
}

/// Whether a streamed chat completion ends with the usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageChunk {
    /// The client asked for the usage.
    Wanted,
    /// The client did not ask for the usage.
    Unwanted,
}

/// The fields of a body that have the same meaning on both routes. Fields such as `temperature` and `seed` are
/// ignored, because they have no meaning for a society.
#[derive(Debug, Deserialize)]
pub(crate) struct Common {
    /// The model that the client wants: `polity`, `polity-direct`, or the name of an agent.
    pub(crate) model: String,
    pub(crate) stream: Option<bool>,
    /// If this object has a field `polity_task`, that field names the task to continue.
    metadata: Option<Map<String, Value>>,
    /// The name of the person who asks. A program that serves several people sends it.
    user: Option<String>,
    safety_identifier: Option<String>,
    tool_choice: Option<Value>,
}

impl Common {
    /// Returns the name that the client gives to the person who asks. It is empty if the client gives no name.
    pub(crate) fn person(&self) -> &str {
        self.safety_identifier.as_deref().or(self.user.as_deref()).unwrap_or_default()
    }

    /// Returns the id of the task to continue, if the client names one.
    pub(crate) fn task(&self) -> Result<Option<&str>, Problem> {
        match self.metadata.as_ref().and_then(|metadata| metadata.get("polity_task")) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(task)) => Ok(Some(task)),
            Some(_) => {
                Err(Problem::invalid("invalid_value", "metadata.polity_task", "must be the id of a task"))
            }
        }
    }

    /// Refuses a request that requires a tool call. The answer never contains a call, so the client would misread it.
    pub(crate) fn check(&self) -> Result<(), Problem> {
        check_choice("tool_choice", self.tool_choice.as_ref())
    }
}

/// Refuses a request that requires a tool call. Accepts a request that leaves the choice to the model: its client must
/// expect an answer without a call.
pub(crate) fn check_choice(param: &str, choice: Option<&Value>) -> Result<(), Problem> {
    let may_be_ignored =
        choice.is_none_or(|choice| choice.is_null() || matches!(choice.as_str(), Some("auto" | "none")));
    if may_be_ignored {
        return Ok(());
    }
    let message = "the society has tools of its own and calls none of the client's; leave it at auto or none";
    Err(unsupported(param, message))
}

/// Builds the error for an unsupported parameter. It is an error because the client would be misled if the endpoint
/// ignored the parameter.
pub(crate) fn unsupported(param: &str, message: &str) -> Problem {
    Problem::invalid("unsupported_parameter", param, message)
}

/// Parses a body as JSON.
pub(crate) fn read_body<T: for<'b> Deserialize<'b>>(body: &[u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map_err(|error| Problem::invalid("invalid_body", "", format!("cannot parse the body: {error}")))
}

/// Returns the JSON Schema that the answer must fit. `format` is the object in which the client describes the form of
/// the answer. `pointer` is the JSON pointer to the schema in this object. `param` is the place of this object in the
/// body, for errors.
pub(crate) fn schema_of(
    format: Option<&Value>,
    pointer: &str,
    param: &str,
) -> Result<Option<Value>, Problem> {
    let Some(format) = format.filter(|format| !format.is_null()) else { return Ok(None) };
    match format.get("type").and_then(Value::as_str) {
        Some("text") => Ok(None),
        Some("json_object") => Ok(Some(json!({"type": "object"}))),
        Some("json_schema") => match format.pointer(pointer) {
            None | Some(Value::Null) => Ok(Some(json!({}))),
            Some(schema @ Value::Object(_)) => Ok(Some(schema.clone())),
            Some(_) => {
                let param = format!("{param}{}", pointer.replace('/', "."));
                Err(Problem::invalid("invalid_value", param, "must be a JSON Schema, which is an object"))
            }
        },
        Some(_) | None => {
            let param = format!("{param}.type");
            Err(Problem::invalid("unsupported_value", param, "must be text, json_object or json_schema"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats() {
        let check = |format: Value, expect: Option<Value>| {
            assert_eq!(schema_of(Some(&format), "/json_schema/schema", "response_format"), Ok(expect));
        };
        check(Value::Null, None);
        check(json!({"type": "text"}), None);
        check(json!({"type": "json_object"}), Some(json!({"type": "object"})));
        let schema = json!({"type": "object", "required": ["a"]});
        check(json!({"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}), Some(schema));
        check(json!({"type": "json_schema", "json_schema": {"name": "n"}}), Some(json!({})));
        let wrong = |format: Value, param: &str| {
            let problem = schema_of(Some(&format), "/json_schema/schema", "response_format").unwrap_err();
            assert_eq!(problem.param.as_deref(), Some(param));
        };
        wrong(json!({"type": "grammar"}), "response_format.type");
        wrong(json!({}), "response_format.type");
        wrong(
            json!({"type": "json_schema", "json_schema": {"schema": "x"}}),
            "response_format.json_schema.schema",
        );
    }
}
