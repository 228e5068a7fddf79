//! Conversations that tests put together, and ways to inspect the requests made from them.

use super::super::*;
use crate::testing::snapshot;
use polity_llm::Arguments;
use polity_registry::{Service, Snapshot};
use polity_society::agent::{Party, Standing};
use polity_society::contact::Source;
use polity_society::content::Kind;
use polity_society::id::{AgentId, MessageId, TaskId, TurnId};
use polity_society::message::{Expects, Finality, Payload, Sender};
use polity_society::time::Timestamp;
use serde_json::{Map, json};
use std::sync::{Arc, LazyLock};

pub(super) static SNAPSHOT: LazyLock<Arc<Snapshot>> = LazyLock::new(|| {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(snapshot(&json!({})))
});

pub(super) fn service(id: &str) -> &'static Service {
    SNAPSHOT.catalogue.service(&ServiceId::new(id)).unwrap()
}

/// A conversation that a test builds step by step, and its artifacts.
#[derive(Default)]
pub(super) struct Story {
    pub(super) history: History,
    pub(super) fetched: HashMap<ArtifactId, Fetched>,
    pub(super) turn: i64,
    sequence: i64,
}

impl Story {
    pub(super) fn artifact(&mut self, kind: Kind, mime: &str, bytes: &[u8]) -> ArtifactId {
        self.sequence += 1;
        let id = ArtifactId::new(format!("art{}", self.sequence));
        let artifact = Artifact {
            id: id.clone(),
            kind,
            mime_type: MimeType::unchecked(mime),
            filename: Some(format!("file{}", self.sequence)),
            label: None,
            size: bytes.len() as u64,
            created_at: 0,
            meta: Map::new(),
        };
        let bytes = Bytes::copy_from_slice(bytes);
        let bytes = match kind {
            Kind::Text => Fetch::Text(bytes),
            _ => Fetch::Medium(MimeType::unchecked(mime), bytes.into()),
        };
        self.fetched.insert(id.clone(), Fetched { artifact, bytes });
        id
    }

    pub(super) fn write(&mut self, record: Record) {
        self.history.records.push((TurnId::new(self.turn), record));
    }

    pub(super) fn hear(&mut self, from: &str, text: &str, attachments: Vec<ArtifactId>) {
        self.sequence += 1;
        let mut payload = Payload::text(text);
        payload.attachments = attachments;
        let id = MessageId::from_sequence(self.sequence);
        let message = Message {
            id: id.clone(),
            task: TaskId::new("t-1"),
            from: Sender::from_name(from),
            from_role: "写手".to_owned(),
            to: AgentId::new("reader-7k2f"),
            body: Body::Payload(payload),
            in_reply_to: Vec::new(),
            about: None,
            on_behalf_of: None,
            expects: Expects::Answer,
            finality: Finality::Final,
            introduction: None,
            introduced: None,
            due_at: None,
        };
        self.history.messages.insert(id.to_string(), message);
        self.write(Record::Heard { message: id });
    }

    /// Adds a batch of calls that open artifacts, and their results.
    pub(super) fn open(&mut self, text: Option<&str>, artifacts: &[ArtifactId], by: &str) {
        self.open_ignoring(text, artifacts, by, &[]);
    }

    /// Opens artifacts with calls that also contain arguments which `get_artifact` does not know.
    pub(super) fn open_ignoring(
        &mut self,
        text: Option<&str>,
        artifacts: &[ArtifactId],
        by: &str,
        ignored: &[String],
    ) {
        let calls: Vec<ToolCall> = artifacts
            .iter()
            .map(|artifact| {
                self.sequence += 1;
                let arguments = json!({"ref": artifact.reference()});
                ToolCall {
                    id: format!("call_{}", self.sequence),
                    name: "get_artifact".to_owned(),
                    arguments: Arguments::Object(arguments.as_object().unwrap().clone()),
                    extra: Map::from_iter([("signature".to_owned(), json!("opaque"))]),
                }
            })
            .collect();
        self.write(Record::Replied(Replied {
            text: text.map(str::to_owned),
            calls: calls.clone(),
            extra: Map::from_iter([("reasoning_content".to_owned(), json!("hm"))]),
            refused: serde_json::Map::new(),
            service: Some(ServiceId::new(by)),
            ..Replied::default()
        }));
        for (call, artifact) in calls.into_iter().zip(artifacts) {
            let result = ToolResult::Artifact {
                artifact: artifact.clone(),
                offset: 0,
                limit: None,
                ignored: ignored.to_vec(),
            };
            self.write(Record::ToolFinished { call: CallId::new(call.id), result });
        }
    }

    pub(super) fn say(&mut self, text: &str) {
        self.write(Record::Replied(Replied { text: Some(text.to_owned()), ..Replied::default() }));
    }

    pub(super) fn shown_to(&self, service: &Service, media_bytes: u64) -> Rendered {
        with_sight(service, media_bytes, |sight| render(&self.history, &self.fetched, sight))
    }
}

/// Calls `look` with a [`Sight`]. A `Sight` contains the facts that decide how a request shows a conversation to
/// `service`. The request may contain at most `media_bytes` bytes of media.
pub(super) fn with_sight<T>(service: &Service, media_bytes: u64, look: impl FnOnce(&Sight<'_>) -> T) -> T {
    let file_types = FileTypes::new(&service.file_types);
    let contacts = [contact("reader-9q9q", "看图员", service_capabilities("eyes"))];
    let contact_services = HashMap::from([(AgentId::new("reader-9q9q"), ServiceId::new("eyes"))]);
    let services: Vec<Taker> = SNAPSHOT.catalogue.services().iter().map(|service| taker(service)).collect();
    let sight = Sight {
        service: &service.id,
        capabilities: &service.capabilities,
        file_types: &file_types,
        media_bytes,
        limits: &SNAPSHOT.settings.limits,
        texts: &SNAPSHOT.prompts.texts,
        contacts: &contacts,
        contact_services: &contact_services,
        services: &services,
        media: MediaUse::Shown,
        refused: &BTreeSet::new(),
    };
    look(&sight)
}

fn taker(service: &Service) -> Taker {
    Taker {
        id: service.id.clone(),
        capabilities: service.capabilities.clone(),
        file_types: FileTypes::new(&service.file_types),
    }
}

pub(super) fn service_capabilities(id: &str) -> Capabilities {
    service(id).capabilities.clone()
}

pub(super) fn contact(id: &str, role: &str, capabilities: Capabilities) -> KnownParty {
    KnownParty {
        party: Party {
            id: AgentId::new(id),
            task: None,
            role_name: role.to_owned(),
            interface_spec: None,
            objective: None,
            standing: Standing::Active,
            depth: 1,
            capabilities,
        },
        source: Source::Preset,
        introduced_by: None,
        since: Timestamp::default(),
    }
}

pub(super) const PLENTY: u64 = 1 << 30;

pub(super) fn in_words(messages: &[Wire]) -> String {
    let mut lines = Vec::new();
    for message in messages {
        match message {
            Wire::System(text) => lines.push(format!("── system\n{text}")),
            Wire::User(parts) => {
                lines.push("── user".to_owned());
                lines.extend(parts.iter().map(|part| match part {
                    Part::Text(text) => text.clone(),
                    medium => format!("{medium:?}"),
                }));
            }
            Wire::Assistant { text, tool_calls, extra } => {
                lines.push(format!("── assistant {}", json!(extra)));
                lines.extend(text.clone());
                lines.extend(
                    tool_calls.iter().map(|call| format!("{} {} {:?}", call.id, call.name, call.extra)),
                );
            }
            Wire::Tool { call_id, content, media } => {
                lines.push(format!("── tool {call_id}\n{content}"));
                lines.extend(media.iter().map(|medium| format!("{}\n{:?}", medium.label, medium.part)));
            }
        }
    }
    lines.join("\n")
}

pub(super) fn texts_of(rendered: &Rendered) -> Vec<String> {
    let mut texts = Vec::new();
    for message in &rendered.messages {
        match message {
            Wire::System(text) => texts.push(text.clone()),
            Wire::User(parts) => texts.extend(parts.iter().filter_map(|part| match part {
                Part::Text(text) => Some(text.clone()),
                _ => None,
            })),
            Wire::Assistant { text, tool_calls, .. } => {
                texts.extend(text.clone());
                texts.extend(tool_calls.iter().map(|call| format!("{:?}", call.arguments)));
            }
            Wire::Tool { content, media, .. } => {
                texts.push(content.clone());
                texts.extend(media.iter().map(|medium| medium.label.clone()));
            }
        }
    }
    texts
}

/// Returns the bytes of all media in a request, in order.
pub(super) fn media_of(rendered: &Rendered) -> Vec<Bytes> {
    let mut parts: Vec<&Part> = Vec::new();
    for message in &rendered.messages {
        match message {
            Wire::User(of_user) => parts.extend(of_user),
            Wire::Tool { media, .. } => parts.extend(media.iter().map(|medium| &medium.part)),
            Wire::System(_) | Wire::Assistant { .. } => {}
        }
    }
    let data = parts.into_iter().filter_map(|part| match part {
        Part::Text(_) => None,
        Part::Image { data, .. } | Part::Audio { data, .. } | Part::File { data, .. } => Some(data.clone()),
    });
    data.map(|data| Bytes::copy_from_slice(&data)).collect()
}
