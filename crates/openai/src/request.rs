//! The body of `POST /v1/chat/completions`: what counts, what is ignored, and what is refused because a client would
//! be misled.

use crate::problem::Problem;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What is read of a request. All other fields (temperature, seed, …) have no meaning for a society and are ignored.
#[derive(Debug, Deserialize)]
pub(crate) struct Request {
    /// `polity`, or an agent.
    pub(crate) model: String,
    /// The conversation.
    pub(crate) messages: Vec<Value>,
    /// Whether the answer is streamed.
    pub(crate) stream: Option<bool>,
    /// How it is streamed.
    pub(crate) stream_options: Option<StreamOptions>,
    /// `polity_task` names the task.
    pub(crate) metadata: Option<Map<String, Value>>,
    /// Who asks, where a program serves several people.
    user: Option<String>,
    safety_identifier: Option<String>,
    n: Option<u64>,
    tool_choice: Option<Value>,
    function_call: Option<Value>,
    response_format: Option<Value>,
    modalities: Option<Vec<String>>,
    audio: Option<Value>,
    logprobs: Option<bool>,
}

/// `stream_options`
#[derive(Debug, Default, Deserialize)]
pub(crate) struct StreamOptions {
    /// Whether the usage comes as a last chunk.
    pub(crate) include_usage: Option<bool>,
}

/// How the answer is to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// As one object.
    Whole,
    /// As events.
    Streamed(UsageChunk),
}

/// Whether a stream ends with the usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UsageChunk {
    /// It does.
    Wanted,
    /// It does not.
    Unwanted,
}

impl Request {
    /// Reads a body.
    pub(crate) fn read(body: &[u8]) -> Result<Self, Problem> {
        let request: Self = serde_json::from_slice(body).map_err(|error| {
            Problem::invalid("invalid_body", "", format!("the body cannot be read: {error}"))
        })?;
        request.check()?;
        Ok(request)
    }

    /// How the answer is to come.
    pub(crate) fn delivery(&self) -> Delivery {
        if self.stream != Some(true) {
            return Delivery::Whole;
        }
        let usage = self.stream_options.as_ref().and_then(|options| options.include_usage);
        Delivery::Streamed(if usage == Some(true) { UsageChunk::Wanted } else { UsageChunk::Unwanted })
    }

    /// Who asks, as far as it is said.
    pub(crate) fn person(&self) -> &str {
        self.safety_identifier.as_deref().or(self.user.as_deref()).unwrap_or_default()
    }

    /// The task that is named.
    pub(crate) fn named_task(&self) -> Result<Option<&str>, Problem> {
        match self.metadata.as_ref().and_then(|metadata| metadata.get("polity_task")) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(task)) => Ok(Some(task)),
            Some(_) => {
                Err(Problem::invalid("invalid_value", "metadata.polity_task", "must be the id of a task"))
            }
        }
    }

    /// A client that asks for one of these would take the answer for something that it is not.
    fn check(&self) -> Result<(), Problem> {
        let unsupported =
            |param: &str, message: &str| Err(Problem::invalid("unsupported_parameter", param, message));
        if self.n.is_some_and(|n| n != 1) {
            return unsupported("n", "there is one answer: a society is not asked twice for the same");
        }
        if self.tool_choice.as_ref().is_some_and(|choice| !may_be_ignored(choice)) {
            return unsupported(
                "tool_choice",
                "the society has tools of its own and calls none of the client's; leave it at auto or none",
            );
        }
        if self.function_call.as_ref().is_some_and(|choice| !may_be_ignored(choice)) {
            return unsupported(
                "function_call",
                "the society has tools of its own and calls none of the client's; leave it at auto or none",
            );
        }
        let format =
            self.response_format.as_ref().and_then(|format| format.get("type")).and_then(Value::as_str);
        if format.is_some_and(|format| format != "text") {
            return unsupported(
                "response_format",
                "answers are text, and nothing can be promised of their form; say in the prompt what you want",
            );
        }
        let speaks = self.modalities.iter().flatten().any(|modality| modality != "text")
            || self.audio.as_ref().is_some_and(|audio| !audio.is_null());
        if speaks {
            return unsupported(
                "modalities",
                "answers are text; what agents make of other kinds are artifacts",
            );
        }
        if self.logprobs == Some(true) {
            return unsupported("logprobs", "an answer is made by many models; it has no log probabilities");
        }
        Ok(())
    }
}

/// A model may always choose to call no tool; so a client that leaves the choice is not misled.
fn may_be_ignored(choice: &Value) -> bool {
    choice.is_null() || matches!(choice.as_str(), Some("auto" | "none"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(field: &str, value: Value) -> Result<Request, Problem> {
        let mut body = json!({"model": "polity", "messages": []});
        body[field] = value;
        Request::read(body.to_string().as_bytes())
    }

    #[test]
    fn what_would_mislead_is_refused() {
        let check = |field: &str, value: Value| {
            let problem = with(field, value).unwrap_err();
            assert_eq!((problem.code, problem.status.as_u16()), ("unsupported_parameter", 400), "{field}");
        };
        check("n", json!(2));
        check("tool_choice", json!("required"));
        check("tool_choice", json!({"type": "function", "function": {"name": "f"}}));
        check("function_call", json!({"name": "f"}));
        check("response_format", json!({"type": "json_schema", "json_schema": {}}));
        check("response_format", json!({"type": "json_object"}));
        check("modalities", json!(["text", "audio"]));
        check("audio", json!({"voice": "alloy"}));
        check("logprobs", json!(true));
    }

    #[test]
    fn what_has_no_meaning_here_is_ignored() {
        let check =
            |field: &str, value: Value| assert!(with(field, value.clone()).is_ok(), "{field}: {value}");
        check("n", json!(1));
        check("n", Value::Null);
        check("temperature", json!(0.7));
        check("seed", json!(7));
        check("stop", json!(["\n"]));
        check("max_completion_tokens", json!(5));
        check("tools", json!([{"type": "function", "function": {"name": "f"}}]));
        check("tool_choice", json!("auto"));
        check("response_format", json!({"type": "text"}));
        check("modalities", json!(["text"]));
        check("modalities", Value::Null);
        check("logprobs", json!(false));
        check("something_of_tomorrow", json!({"x": 1}));
    }

    #[test]
    fn delivery() {
        let check = |body: Value, expect: Delivery| {
            let mut request = json!({"model": "polity", "messages": []});
            for (name, value) in body.as_object().into_iter().flatten() {
                request[name] = value.clone();
            }
            assert_eq!(Request::read(request.to_string().as_bytes()).unwrap().delivery(), expect);
        };
        check(json!({}), Delivery::Whole);
        check(json!({"stream": false, "stream_options": {"include_usage": true}}), Delivery::Whole);
        check(json!({"stream": true}), Delivery::Streamed(UsageChunk::Unwanted));
        check(
            json!({"stream": true, "stream_options": {"include_usage": true}}),
            Delivery::Streamed(UsageChunk::Wanted),
        );
    }

    #[test]
    fn bodies_that_are_none() {
        let check = |body: &str| {
            assert_eq!(Request::read(body.as_bytes()).unwrap_err().status.as_u16(), 400, "{body}")
        };
        check("");
        check("[]");
        check("{}");
        check(r#"{"model": "polity"}"#);
        check(r#"{"model": 1, "messages": []}"#);
        check(r#"{"model": "polity", "messages": "hello"}"#);
    }
}
