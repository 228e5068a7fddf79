//! What clients read: completions, chunks of them, and models. Pure.

use crate::exchange::Sent;
use crate::follow::Usage;
use polity_runtime::view::{AgentView, MessageView};
use polity_society::id::AgentId;
use serde_json::{Value, json};

/// The name of root as a model.
pub(crate) const MODEL: &str = "polity";

/// What stands before the id of an agent as a model.
const PREFIX: &str = "polity/";

/// The agent that a model stands for, if the name can be one: `polity`, `polity/ID` or the id alone.
pub(crate) fn agent_of(model: &str) -> AgentId {
    match model {
        MODEL => AgentId::root(),
        other => AgentId::new(other.strip_prefix(PREFIX).unwrap_or(other)),
    }
}

/// An agent as a model.
pub(crate) fn model(agent: &AgentView) -> Value {
    let id = if agent.id.is_root() { MODEL.to_owned() } else { format!("{PREFIX}{}", agent.id) };
    json!({"id": id, "object": "model", "created": agent.created_at / 1000, "owned_by": agent.role})
}

/// What an answer says, with its artifacts by name and reference: the same text whenever it is made.
pub(crate) fn text(answer: &MessageView) -> String {
    let mut text = answer.text.trim().to_owned();
    if text.is_empty()
        && let Some(payload) = &answer.payload
    {
        text = Value::Object(payload.clone()).to_string();
    }
    for (index, artifact) in answer.attachments.iter().enumerate() {
        let name = artifact.filename.as_deref().unwrap_or("artifact");
        let gap = if index == 0 && !text.is_empty() {
            "\n\n"
        } else if index > 0 {
            "\n"
        } else {
            ""
        };
        text += &format!(
            "{gap}- {name} ({}, {}, {} bytes)",
            artifact.reference, artifact.mime_type, artifact.size
        );
    }
    text
}

/// The parts of a completion that stay the same from its first chunk to its last.
#[derive(Clone, Debug)]
pub(crate) struct Head {
    id: String,
    created: i64,
    model: String,
}

impl Head {
    /// For an exchange; `created` in milliseconds.
    pub(crate) fn new(sent: &Sent, created: i64, model: &str) -> Self {
        Self { id: format!("chatcmpl-{}", sent.message), created: created / 1000, model: model.to_owned() }
    }

    /// The whole answer at once.
    pub(crate) fn completion(&self, text: &str, usage: Usage) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [{
                "index": 0,
                "message": {"role": "assistant", "content": text, "refusal": null, "annotations": []},
                "logprobs": null,
                "finish_reason": "stop",
            }],
            "usage": tokens(usage),
            "service_tier": null,
            "system_fingerprint": null,
        })
    }

    /// A piece of the answer.
    pub(crate) fn chunk(&self, piece: Piece<'_>) -> Value {
        let (delta, finish_reason) = match piece {
            Piece::Begin => (json!({"role": "assistant", "content": "", "refusal": null}), Value::Null),
            Piece::Reasoning(text) => (json!({"reasoning_content": text}), Value::Null),
            Piece::Content(text) => (json!({"content": text}), Value::Null),
            Piece::End => (json!({}), json!("stop")),
            Piece::Usage(usage) => {
                let mut chunk = self.of_chunk(json!([]));
                chunk["usage"] = tokens(usage);
                return chunk;
            }
        };
        self.of_chunk(json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}]))
    }

    fn of_chunk(&self, choices: Value) -> Value {
        json!({
            "id": self.id,
            "object": "chat.completion.chunk",
            "created": self.created,
            "model": self.model,
            "choices": choices,
            "usage": null,
            "service_tier": null,
            "system_fingerprint": null,
        })
    }
}

/// A piece of a streamed answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Piece<'a> {
    /// Who speaks.
    Begin,
    /// What happens meanwhile.
    Reasoning(&'a str),
    /// What the answer says.
    Content(&'a str),
    /// That it has ended.
    End,
    /// What it took.
    Usage(Usage),
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
    use polity_society::id::{MessageId, TaskId};

    fn head() -> Head {
        let message = MessageId::from_sequence(12);
        let task = TaskId::new("t-1");
        let sent = Sent { key: "k".to_owned(), task, message, answer: None };
        Head::new(&sent, 1_700_000_000_123, "polity")
    }

    #[test]
    fn models_and_agents() {
        let check = |model: &str, agent: &str| assert_eq!(agent_of(model).as_str(), agent);
        check("polity", "root");
        check("polity/root", "root");
        check("polity/agent-7k2f", "agent-7k2f");
        check("agent-7k2f", "agent-7k2f");
    }

    /// The types of the official clients say which fields are always there.
    #[test]
    fn every_field_that_clients_count_on_is_there() {
        let completion = head().completion("42", Usage { prompt: 3, completion: 4 });
        for field in ["/choices/0/logprobs", "/choices/0/message/refusal", "/system_fingerprint"] {
            assert_eq!(completion.pointer(field), Some(&Value::Null), "{field}");
        }
        assert_eq!(completion["id"], "chatcmpl-m000000012");
        assert_eq!(completion["created"], 1_700_000_000);
        assert_eq!(completion["usage"]["total_tokens"], 7);
        let chunk = head().chunk(Piece::Reasoning("hired"));
        assert_eq!(chunk["choices"][0]["delta"], json!({"reasoning_content": "hired"}));
        assert_eq!(chunk.pointer("/choices/0/finish_reason"), Some(&Value::Null));
        assert_eq!(chunk.pointer("/usage"), Some(&Value::Null));
        let usage = head().chunk(Piece::Usage(Usage { prompt: 3, completion: 4 }));
        assert_eq!((&usage["choices"], &usage["usage"]["prompt_tokens"]), (&json!([]), &json!(3)));
        assert_eq!(head().chunk(Piece::End)["choices"][0]["finish_reason"], "stop");
    }
}
