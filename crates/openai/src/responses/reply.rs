//! The replies of `/v1/responses`: a response, and the events of a streamed response. Does no I/O.

use crate::answer::Answer;
use crate::follow::Usage;
use crate::serve::{Frame, Opening};
use serde_json::{Value, json};

/// The prefix of a response's id; the rest is the id of the message that was made from the request.
const PREFIX: &str = "resp_";

/// Returns the message id that the id of a response contains.
pub(crate) fn message_of(response: &str) -> &str {
    response.strip_prefix(PREFIX).unwrap_or(response)
}

/// A response that is being written. Its events are numbered from 0.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    id: String,
    created: i64,
    model: String,
    previous: Option<String>,
    events: u64,
    /// The text of the progress that was sent so far.
    reasoning: String,
}

impl Head {
    /// Creates an empty response.
    pub(crate) fn new(opening: &Opening) -> Self {
        let Opening { id, created, model, previous } = opening.clone();
        Self { id: format!("{PREFIX}{id}"), created, model, previous, events: 0, reasoning: String::new() }
    }

    /// Returns the whole answer as one object.
    pub(crate) fn whole(&self, answer: &Answer, usage: Usage) -> Value {
        self.response("completed", vec![self.message(answer)], Some(usage))
    }

    /// Returns the events that open the response.
    pub(crate) fn begin(&mut self) -> Vec<Frame> {
        let response = self.response("in_progress", Vec::new(), None);
        vec![
            self.event("response.created", json!({"response": response})),
            self.event("response.in_progress", json!({"response": response})),
        ]
    }

    /// Returns the events that report progress before the answer.
    pub(crate) fn reasoning(&mut self, text: &str) -> Vec<Frame> {
        let mut frames = Vec::new();
        if self.reasoning.is_empty() {
            let item = json!({"id": self.reasoning_id(), "type": "reasoning", "summary": []});
            frames.push(self.event("response.output_item.added", json!({"output_index": 0, "item": item})));
            let part = json!({"type": "summary_text", "text": ""});
            frames.push(self.of_summary("response.reasoning_summary_part.added", "part", part));
        }
        self.reasoning.push_str(text);
        frames.push(self.of_summary("response.reasoning_summary_text.delta", "delta", json!(text)));
        frames
    }

    /// Returns the events with the text of the answer.
    pub(crate) fn answer(&mut self, answer: &Answer) -> Vec<Frame> {
        let mut frames = self.end_reasoning();
        let index = self.message_index();
        let item = self.message(answer);
        let id = item["id"].clone();
        let mut begun = item.clone();
        begun["status"] = json!("in_progress");
        begun["content"] = json!([]);
        let part = item["content"][0].clone();
        let (event, field) = match answer {
            Answer::Text(_) => ("response.output_text", "text"),
            Answer::Question(_) => ("response.refusal", "refusal"),
        };
        let mut empty = part.clone();
        empty[field] = json!("");
        let of_part = |fields: Value| {
            let mut all = json!({"item_id": id, "output_index": index, "content_index": 0});
            for (name, value) in fields.as_object().into_iter().flatten() {
                all[name] = value.clone();
            }
            all
        };
        let text = answer.text();
        let said = |name: &str| {
            let mut fields = of_part(json!({name: text}));
            if field == "text" {
                fields["logprobs"] = json!([]);
            }
            fields
        };
        let added = json!({"output_index": index, "item": begun});
        frames.push(self.event("response.output_item.added", added));
        frames.push(self.event("response.content_part.added", of_part(json!({"part": empty}))));
        frames.push(self.event(&format!("{event}.delta"), said("delta")));
        frames.push(self.event(&format!("{event}.done"), said(field)));
        frames.push(self.event("response.content_part.done", of_part(json!({"part": part}))));
        let done = json!({"output_index": index, "item": item});
        frames.push(self.event("response.output_item.done", done));
        frames
    }

    /// Returns the last event, with the whole response and its usage.
    pub(crate) fn end(&mut self, answer: &Answer, usage: Usage) -> Vec<Frame> {
        let output = self.reasoning_item().into_iter().chain([self.message(answer)]).collect();
        let response = self.response("completed", output, Some(usage));
        vec![self.event("response.completed", json!({"response": response}))]
    }

    /// Returns the event that reports a failure.
    pub(crate) fn failed(&mut self, problem: &Value) -> Vec<Frame> {
        let mut response = self.response("failed", Vec::new(), None);
        response["error"] = json!({"code": problem["error"]["code"], "message": problem["error"]["message"]});
        vec![self.event("response.failed", json!({"response": response}))]
    }

    fn end_reasoning(&mut self) -> Vec<Frame> {
        let Some(item) = self.reasoning_item() else { return Vec::new() };
        let text = self.reasoning.clone();
        let part = json!({"type": "summary_text", "text": text});
        vec![
            self.of_summary("response.reasoning_summary_text.done", "text", json!(text)),
            self.of_summary("response.reasoning_summary_part.done", "part", part),
            self.event("response.output_item.done", json!({"output_index": 0, "item": item})),
        ]
    }

    fn of_summary(&mut self, event: &str, name: &str, value: Value) -> Frame {
        let id = self.reasoning_id();
        self.event(event, json!({"item_id": id, "output_index": 0, "summary_index": 0, name: value}))
    }

    fn reasoning_item(&self) -> Option<Value> {
        let summary = json!([{"type": "summary_text", "text": self.reasoning}]);
        (!self.reasoning.is_empty())
            .then(|| json!({"id": self.reasoning_id(), "type": "reasoning", "summary": summary}))
    }

    fn reasoning_id(&self) -> String {
        self.id.replace(PREFIX, "rs_")
    }

    fn message_index(&self) -> u64 {
        if self.reasoning.is_empty() { 0 } else { 1 }
    }

    fn message(&self, answer: &Answer) -> Value {
        let part = match answer {
            Answer::Text(text) => {
                json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
            }
            Answer::Question(text) => json!({"type": "refusal", "refusal": text}),
        };
        let id = self.id.replace(PREFIX, "msg_");
        json!({"id": id, "type": "message", "status": "completed", "role": "assistant", "content": [part]})
    }

    fn response(&self, status: &str, output: Vec<Value>, usage: Option<Usage>) -> Value {
        json!({
            "id": self.id,
            "object": "response",
            "created_at": self.created,
            "status": status,
            "error": null,
            "incomplete_details": null,
            "instructions": null,
            "metadata": {},
            "model": self.model,
            "output": output,
            "parallel_tool_calls": false,
            "previous_response_id": self.previous,
            "temperature": null,
            "tool_choice": "auto",
            "tools": [],
            "top_p": null,
            "usage": usage.map(tokens),
        })
    }

    fn event(&mut self, name: &str, fields: Value) -> Frame {
        let mut data = json!({"type": name, "sequence_number": self.events});
        self.events += 1;
        for (name, value) in fields.as_object().into_iter().flatten() {
            data[name] = value.clone();
        }
        Frame { event: Some(name.to_owned()), data: data.to_string() }
    }
}

fn tokens(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": usage.prompt + usage.completion,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head() -> Head {
        let opening = Opening {
            id: "m000000012".to_owned(),
            created: 1_700_000_000,
            model: "polity".to_owned(),
            previous: None,
        };
        Head::new(&opening)
    }

    fn names(frames: &[Frame]) -> Vec<&str> {
        frames.iter().filter_map(|frame| frame.event.as_deref()).collect()
    }

    #[test]
    fn a_response() {
        let whole = head().whole(&Answer::Text("42".to_owned()), Usage { prompt: 3, completion: 4 });
        assert_eq!((&whole["id"], &whole["status"]), (&json!("resp_m000000012"), &json!("completed")));
        assert_eq!(whole["output"][0]["content"][0]["text"], "42");
        assert_eq!(whole["usage"]["total_tokens"], 7);
        assert_eq!(message_of("resp_m000000012"), "m000000012");
        let asks = head().whole(&Answer::Question("red?".to_owned()), Usage::default());
        assert_eq!(asks["output"][0]["content"][0], json!({"type": "refusal", "refusal": "red?"}));
    }

    #[test]
    fn events_come_in_their_order_and_are_numbered() {
        let mut head = head();
        let answer = Answer::Text("42".to_owned());
        let mut frames = head.begin();
        frames.extend(head.reasoning("hired\n"));
        frames.extend(head.reasoning("heard\n"));
        frames.extend(head.answer(&answer));
        frames.extend(head.end(&answer, Usage::default()));
        assert_eq!(
            names(&frames),
            [
                "response.created",
                "response.in_progress",
                "response.output_item.added",
                "response.reasoning_summary_part.added",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.delta",
                "response.reasoning_summary_text.done",
                "response.reasoning_summary_part.done",
                "response.output_item.done",
                "response.output_item.added",
                "response.content_part.added",
                "response.output_text.delta",
                "response.output_text.done",
                "response.content_part.done",
                "response.output_item.done",
                "response.completed",
            ]
        );
        for (number, frame) in frames.iter().enumerate() {
            let data: Value = serde_json::from_str(&frame.data).unwrap();
            assert_eq!(data["sequence_number"], number);
            assert_eq!(data["type"].as_str(), frame.event.as_deref());
        }
        let last: Value = serde_json::from_str(&frames.last().unwrap().data).unwrap();
        assert_eq!(last["response"]["output"][0]["summary"][0]["text"], "hired\nheard\n");
        assert_eq!(last["response"]["output"][1]["content"][0]["text"], "42");
    }

    #[test]
    fn without_anything_to_tell_meanwhile_the_answer_is_the_first_item() {
        let mut head = head();
        let answer = Answer::Text("42".to_owned());
        let frames = head.answer(&answer);
        let added: Value = serde_json::from_str(&frames[0].data).unwrap();
        assert_eq!((&added["output_index"], &added["item"]["type"]), (&json!(0), &json!("message")));
        let failed = head.failed(&json!({"error": {"code": "no_model", "message": "none"}}));
        assert_eq!(names(&failed), ["response.failed"]);
    }
}
