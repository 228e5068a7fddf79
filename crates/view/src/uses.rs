//! The uses of an artifact: the messages that it is attached to, and the calls in which a model got it.

use crate::{Entry, Event, Routing};
use polity_society::id::{AgentId, ArtifactId, MessageId, ServiceId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where an artifact was used, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ArtifactUses {
    /// The messages that attach the artifact.
    pub messages: Vec<Attached>,
    /// How model calls showed the artifact. Calls that are alike share one entry.
    pub shown: Vec<ShownTo>,
    /// Whether there may be older uses that this answer leaves out.
    pub more: bool,
}

/// A message that attaches an artifact.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Attached {
    /// The id of the message.
    pub message: MessageId,
    /// The task of the message.
    pub task: TaskId,
    /// The sender: an agent's id, `user` or `system`.
    pub from: String,
    /// The receiver.
    pub to: AgentId,
    /// The time at which the message was accepted.
    pub at: i64,
}

/// Model calls of one agent that showed an artifact in the same way.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ShownTo {
    /// The agent whose turns made the calls.
    pub agent: AgentId,
    /// The task of the turns.
    pub task: TaskId,
    /// The service that answered.
    pub service: ServiceId,
    /// The model that answered.
    pub model: String,
    /// The form in which the model got the artifact.
    pub routing: Routing,
    /// The number of calls.
    pub calls: u32,
    /// The number of the latest of these requests, if it is known. It selects the request to explain: `GET
    /// /api/why/{artifact}` with `sent`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sent: Option<i64>,
    /// The time of the latest call.
    pub at: i64,
}

impl ArtifactUses {
    /// Collects the uses of an artifact. Expects the events newest first.
    pub fn of(id: &ArtifactId, entries: impl IntoIterator<Item = Entry>) -> Self {
        let mut uses = Self::default();
        for Entry { at, event, .. } in entries {
            match event {
                Event::MessageAccepted { task, message, from, to, attachments, .. }
                    if attachments.contains(id) =>
                {
                    uses.messages.push(Attached { message, task, from, to, at });
                }
                Event::ModelAnswered { task, agent, service, model, content, sent, .. } => {
                    let Some(shown) = content.into_iter().find(|shown| shown.artifact == *id) else {
                        continue;
                    };
                    let routing = shown.routing;
                    uses.add(ShownTo { agent, task, service, model, routing, calls: 1, sent, at });
                }
                _ => {}
            }
        }
        uses
    }

    /// Counts a model call that showed the artifact. The caller passes the calls newest first.
    fn add(&mut self, call: ShownTo) {
        let alike = |known: &&mut ShownTo| {
            let call = ShownTo { calls: known.calls, sent: known.sent, at: known.at, ..call.clone() };
            **known == call
        };
        match self.shown.iter_mut().find(alike) {
            Some(known) => known.calls += call.calls,
            None => self.shown.push(call),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn entry(seq: i64, event: serde_json::Value) -> Entry {
        Entry { seq, at: seq * 10, event: serde_json::from_value(event).unwrap() }
    }

    fn answered(seq: i64, agent: &str, content: &serde_json::Value) -> Entry {
        entry(
            seq,
            json!({"event": "model_answered", "task": "t", "agent": agent, "service": "s", "model": "m", "revision": 1,
                "usage": {"promptTokens": 1, "completionTokens": 1, "source": "reported"}, "attempts": 1, "content": content,
                "sent": seq + 100}),
        )
    }

    fn message(seq: i64, attachments: &serde_json::Value) -> Entry {
        entry(
            seq,
            json!({"event": "message_accepted", "task": "t", "message": format!("m{seq:09}"), "from": "user", "to": "root",
                "type": "general", "text": "abc", "attachments": attachments, "finality": "final"}),
        )
    }

    #[test]
    fn only_uses_of_the_artifact_count_and_equal_calls_are_one_entry() {
        let id = ArtifactId::new("abc");
        let seen = json!([{"artifact": "x", "routing": "text"}, {"artifact": "abc", "routing": "image_url"}]);
        let described = json!([{"artifact": "abc", "routing": "described"}]);
        let entries = [
            answered(6, "root", &seen),
            answered(5, "ann", &described),
            answered(4, "root", &seen),
            answered(3, "root", &json!([{"artifact": "x", "routing": "text"}])),
            message(2, &json!(["abc", "x"])),
            message(1, &json!(["x"])),
        ];
        let uses = ArtifactUses::of(&id, entries);
        let shown: Vec<_> =
            uses.shown.iter().map(|one| (one.agent.as_str(), one.routing, one.calls, one.sent)).collect();
        let (by_root, by_ann) =
            (("root", Routing::ImageUrl, 2, Some(106)), ("ann", Routing::Described, 1, Some(105)));
        assert_eq!(shown, [by_root, by_ann]);
        let times: Vec<i64> = uses.shown.iter().map(|one| one.at).collect();
        assert_eq!(times, [60, 50]);
        let messages: Vec<_> = uses.messages.iter().map(|one| (one.message.as_str(), one.at)).collect();
        assert_eq!(messages, [("m000000002", 20)]);
    }
}
