//! The replies of `/v1/chat/completions`: completions, and the chunks of streamed completions. Does no I/O.

use crate::answer::Answer;
use crate::follow::Usage;
use crate::question::UsageChunk;
use crate::serve::{Frame, Opening};
use serde_json::{Value, json};

/// The fields that are the same in all chunks of a completion.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    id: String,
    created: i64,
    model: String,
    usage: UsageChunk,
}

impl Head {
    /// Creates the head of a completion.
    pub(crate) fn new(opening: &Opening, usage: UsageChunk) -> Self {
        let Opening { id, created, model, .. } = opening;
        Self { id: format!("chatcmpl-{id}"), created: *created, model: model.clone(), usage }
    }

    /// Returns the whole answer as one object.
    pub(crate) fn whole(&self, answer: &Answer, usage: Usage) -> Value {
        let (content, refusal) = fields(answer);
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": content, "refusal": refusal, "annotations": []},
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": tokens(usage),
        })
    }

    /// Returns the first chunk, which names the role.
    pub(crate) fn begin(&self) -> Vec<Frame> {
        vec![self.chunk(json!({"role": "assistant", "content": "", "refusal": null}), None)]
    }

    /// Returns a chunk that reports progress before the answer.
    pub(crate) fn reasoning(&self, text: &str) -> Vec<Frame> {
        vec![self.chunk(json!({"reasoning_content": text}), None)]
    }

    /// Returns a chunk with the text of the answer.
    pub(crate) fn answer(&self, answer: &Answer) -> Vec<Frame> {
        let delta = match answer {
            Answer::Text(text) => json!({"content": text}),
            Answer::Question(text) => json!({"refusal": text}),
        };
        vec![self.chunk(delta, None)]
    }

    /// Returns the chunk that ends the answer. If the client asked for the usage, a chunk with the usage follows.
    pub(crate) fn end(&self, usage: Usage) -> Vec<Frame> {
        let mut frames = vec![self.chunk(json!({}), Some("stop"))];
        if self.usage == UsageChunk::Wanted {
            let mut chunk = self.of_chunk(json!([]));
            chunk["usage"] = tokens(usage);
            frames.push(Frame::data(chunk.to_string()));
        }
        frames.push(Frame::data("[DONE]".to_owned()));
        frames
    }

    /// Returns the chunks that report a failure. Clients show the failure even if they got parts of an answer before.
    pub(crate) fn failed(&self, problem: &Value) -> Vec<Frame> {
        vec![Frame::data(problem.to_string()), Frame::data("[DONE]".to_owned())]
    }

    fn chunk(&self, delta: Value, finish_reason: Option<&str>) -> Frame {
        let choice = json!({"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason});
        let mut chunk = self.of_chunk(json!([choice]));
        if self.usage == UsageChunk::Wanted {
            chunk["usage"] = Value::Null;
        }
        Frame::data(chunk.to_string())
    }

    fn of_chunk(&self, choices: Value) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
        })
    }
}

/// Returns the fields `content` and `refusal` of a message. A question goes into `refusal`, because it does not have
/// the requested form.
fn fields(answer: &Answer) -> (Option<&str>, Option<&str>) {
    match answer {
        Answer::Text(text) => (Some(text), None),
        Answer::Question(text) => (None, Some(text)),
    }
}

fn tokens(usage: Usage) -> Value {
    json!({
        "prompt_tokens": usage.prompt,
        "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(usage: UsageChunk) -> Head {
        let opening = Opening {
            id: "m000000012".to_owned(),
            created: 1_700_000_000,
            model: "polity".to_owned(),
            previous: None,
        };
        Head::new(&opening, usage)
    }

    fn read(frame: &Frame) -> Value {
        serde_json::from_str(&frame.data).unwrap()
    }

    /// OpenAI's API description specifies which fields are required and which may be null.
    #[test]
    fn every_field_that_clients_count_on_is_there_and_none_that_may_not_be_null() {
        let text = Answer::Text("42".to_owned());
        let usage = Usage { prompt: 3, completion: 4 };
        let completion = head(UsageChunk::Unwanted).whole(&text, usage);
        for field in ["/choices/0/logprobs", "/choices/0/message/refusal"] {
            assert_eq!(completion.pointer(field), Some(&Value::Null), "{field}");
        }
        assert_eq!(completion["id"], "chatcmpl-m000000012");
        assert_eq!(completion["created"], 1_700_000_000);
        assert_eq!(completion["usage"]["total_tokens"], 7);
        for field in ["system_fingerprint", "service_tier"] {
            assert_eq!(completion.get(field), None);
            assert_eq!(read(&head(UsageChunk::Wanted).begin()[0]).get(field), None);
        }
        let question = head(UsageChunk::Unwanted).whole(&Answer::Question("red?".to_owned()), usage);
        let message = &question["choices"][0]["message"];
        assert_eq!((&message["content"], &message["refusal"]), (&Value::Null, &json!("red?")));
    }

    #[test]
    fn chunks() {
        let wanted = head(UsageChunk::Wanted);
        let chunk = read(&wanted.reasoning("hired")[0]);
        assert_eq!(chunk["choices"][0]["delta"], json!({"reasoning_content": "hired"}));
        assert_eq!(chunk.pointer("/choices/0/finish_reason"), Some(&Value::Null));
        assert_eq!(chunk.pointer("/usage"), Some(&Value::Null));
        let end = wanted.end(Usage { prompt: 3, completion: 4 });
        assert_eq!(read(&end[0])["choices"][0]["finish_reason"], "stop");
        let usage = read(&end[1]);
        assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &json!(3)));
        assert_eq!(end[2].data, "[DONE]");
        // If the client does not ask for the usage, the chunks have no field `usage`.
        let unwanted = head(UsageChunk::Unwanted);
        assert_eq!(read(&unwanted.begin()[0]).get("usage"), None);
        assert_eq!(unwanted.end(Usage::default()).len(), 2);
    }
}
