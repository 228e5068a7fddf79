//! The body of `POST /v1/chat/completions`: which fields the route uses, which it ignores, and which it refuses. It
//! refuses a field if the client would misread the answer after the route had ignored the field.

use crate::conversation::Conversation;
use crate::problem::Problem;
use crate::question::{
    Common, Delivery, Question, UsageChunk, check_choice, read_body, schema_of, unsupported,
};
use serde::Deserialize;
use serde_json::Value;

/// The fields of a request body that this route uses or refuses. All other fields are ignored.
#[derive(Debug, Deserialize)]
struct Body {
    #[serde(flatten)]
    common: Common,
    messages: Vec<Value>,
    stream_options: Option<StreamOptions>,
    n: Option<u64>,
    function_call: Option<Value>,
    response_format: Option<Value>,
    modalities: Option<Vec<String>>,
    audio: Option<Value>,
    logprobs: Option<bool>,
}

#[derive(Debug, Default, Deserialize)]
struct StreamOptions {
    include_usage: Option<bool>,
}

/// Parses a request body.
pub(crate) fn read(body: &[u8]) -> Result<Question, Problem> {
    let body: Body = read_body(body)?;
    body.check()?;
    Ok(Question {
        schema: schema_of(body.response_format.as_ref(), "/json_schema/schema", "response_format")?,
        task: body.common.task()?.map(str::to_owned),
        person: body.common.person().to_owned(),
        delivery: body.delivery(),
        conversation: Conversation::read(&body.messages)?,
        previous: None,
        model: body.common.model,
    })
}

impl Body {
    fn delivery(&self) -> Delivery {
        if self.common.stream != Some(true) {
            return Delivery::Whole;
        }
        let usage = self.stream_options.as_ref().and_then(|options| options.include_usage);
        Delivery::Streamed(if usage == Some(true) { UsageChunk::Wanted } else { UsageChunk::Unwanted })
    }

    /// Refuses some fields that this route does not support. If the route ignored them, the client would misread the
    /// answer.
    fn check(&self) -> Result<(), Problem> {
        self.common.check()?;
        check_choice("function_call", self.function_call.as_ref())?;
        if self.n.is_some_and(|n| n != 1) {
            return Err(unsupported("n", "only 1 is possible: a society does not do the same task twice"));
        }
        let speaks = self.modalities.iter().flatten().any(|modality| modality != "text")
            || self.audio.as_ref().is_some_and(|audio| !audio.is_null());
        if speaks {
            let message = "answers are text; agents return other media as artifacts";
            return Err(unsupported("modalities", message));
        }
        if self.logprobs == Some(true) {
            let message = "several models contribute to an answer, so it has no log probabilities";
            return Err(unsupported("logprobs", message));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn with(field: &str, value: Value) -> Result<Question, Problem> {
        let mut body = json!({"model": "polity", "messages": [{"role": "user", "content": "x"}]});
        body[field] = value;
        read(body.to_string().as_bytes())
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
            let mut request = json!({"model": "polity", "messages": [{"role": "user", "content": "x"}]});
            for (name, value) in body.as_object().into_iter().flatten() {
                request[name] = value.clone();
            }
            assert_eq!(read(request.to_string().as_bytes()).unwrap().delivery, expect);
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
        let check =
            |body: &str| assert_eq!(read(body.as_bytes()).unwrap_err().status.as_u16(), 400, "{body}");
        check("");
        check("[]");
        check("{}");
        check(r#"{"model": "polity"}"#);
        check(r#"{"model": 1, "messages": []}"#);
        check(r#"{"model": "polity", "messages": "hello"}"#);
    }
}
