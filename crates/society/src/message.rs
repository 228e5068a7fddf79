//! Messages 消息, and what a payload must have to become one (seed agent-communication, requirements 8 and 9).

use crate::brief::TaskBrief;
use crate::contact::Source;
use crate::id::{AgentId, ArtifactId, MessageId, TaskId};
use crate::notice::Notice;
use crate::problem::{Fault, FieldProblem, Fields};
use crate::role::InterfaceSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Who a message comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The system itself.
    System,
    /// An agent, root or the person.
    Party(AgentId),
}

impl Sender {
    const SYSTEM: &'static str = "system";

    /// The name in the database; no agent can have the one of the system, because every made id has a dash.
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => Self::SYSTEM,
            Self::Party(id) => id.as_str(),
        }
    }

    /// The sender of that name.
    pub fn from_name(name: &str) -> Self {
        if name == Self::SYSTEM { Self::System } else { Self::Party(AgentId::new(name)) }
    }

    /// The party, if it is one.
    pub fn party(&self) -> Option<&AgentId> {
        match self {
            Self::System => None,
            Self::Party(id) => Some(id),
        }
    }
}

/// The types that a payload may say it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageType {
    /// Anything; what a payload without a type is.
    General,
    /// Work, with a brief.
    TaskAssignment,
    /// How things stand.
    StatusReport,
    /// "Whom do you know that can …?"
    IntroductionRequest,
    /// "This one", or "nobody".
    IntroductionResponse,
    /// "Please do …"
    CollaborationRequest,
    /// "Here it is."
    CollaborationResponse,
}

impl MessageType {
    /// Every type.
    pub const ALL: [Self; 7] = [
        Self::General,
        Self::TaskAssignment,
        Self::StatusReport,
        Self::IntroductionRequest,
        Self::IntroductionResponse,
        Self::CollaborationRequest,
        Self::CollaborationResponse,
    ];

    /// The name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::General => "general",
            Self::TaskAssignment => "task_assignment",
            Self::StatusReport => "status_report",
            Self::IntroductionRequest => "introduction_request",
            Self::IntroductionResponse => "introduction_response",
            Self::CollaborationRequest => "collaboration_request",
            Self::CollaborationResponse => "collaboration_response",
        }
    }

    /// The type of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|message_type| message_type.as_str() == name)
    }

    /// Whether it answers the oldest open request of the one it is written to.
    pub fn may_answer(self) -> bool {
        match self {
            Self::General | Self::StatusReport | Self::IntroductionResponse | Self::CollaborationResponse => {
                true
            }
            Self::TaskAssignment | Self::IntroductionRequest | Self::CollaborationRequest => false,
        }
    }

    /// Whether a message of this type asks for an answer; `answers` says whether it is one itself.
    pub fn asks(self, answers: Answers) -> bool {
        match self {
            Self::TaskAssignment | Self::IntroductionRequest | Self::CollaborationRequest => true,
            Self::General => answers == Answers::Nothing,
            Self::StatusReport | Self::IntroductionResponse | Self::CollaborationResponse => false,
        }
    }
}

/// Whether a message answers another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It does.
    ARequest,
    /// It stands for itself.
    Nothing,
}

/// A payload that has all that its type needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Payload {
    /// Its type.
    pub message_type: MessageType,
    /// The artifacts that go with it, each once.
    pub attachments: Vec<ArtifactId>,
    /// Everything else that was said, as it was said; without `message_type`, `attachments` and `from`.
    pub fields: Map<String, Value>,
}

/// A field of a payload that was set aside, because the system fills it in itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ignored {
    /// `from`: the system stamps the sender.
    From,
}

impl Payload {
    /// A payload of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        let fields = Map::from_iter([("text".to_owned(), Value::String(text.into()))]);
        Self { message_type: MessageType::General, attachments: Vec::new(), fields }
    }

    /// Reads a payload that a model or a person wrote: an object, or a text. Every fault is found at once.
    pub fn parse(value: &Value) -> Result<(Self, Vec<Ignored>), Vec<FieldProblem>> {
        let object = match value {
            Value::String(text) if text.trim().is_empty() => {
                return Err(vec![FieldProblem::new("payload", Fault::Empty)]);
            }
            Value::String(text) => return Ok((Self::text(text), Vec::new())),
            Value::Object(object) => object,
            _ => {
                return Err(vec![FieldProblem::new("payload", Fault::NotA("an object or a string"))]);
            }
        };
        let mut fields = Fields::new(object);
        let message_type = read_type(&mut fields);
        let attachments = read_attachments(&mut fields);
        check_needs(message_type, &mut fields);

        let mut rest = object.clone();
        rest.remove("message_type");
        rest.remove("attachments");
        let ignored = rest.remove("from").map(|_| Ignored::From);
        if message_type == MessageType::General && attachments.is_empty() && rest.is_empty() {
            fields.fault("text", Fault::Missing);
        }
        let payload = fields.finish(Self { message_type, attachments, fields: rest })?;
        Ok((payload, ignored.into_iter().collect()))
    }

    /// The text of a field, if it is one that says something.
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty())
    }

    /// What the message says in words: `text`, else `content`.
    pub fn words(&self) -> Option<&str> {
        self.field("text").or_else(|| self.field("content"))
    }

    /// The agent that an introduction names, as its writer put it; `None` where it says "nobody", or is none.
    pub fn introduced(&self) -> Option<&str> {
        match self.fields.get("target_agent")? {
            Value::String(id) => Some(id),
            target => target.get("id").and_then(Value::as_str),
        }
    }

    /// Everything that is said, attachments aside, as JSON: for its length, and for references in it.
    pub fn to_json_text(&self) -> String {
        Value::Object(self.fields.clone()).to_string()
    }
}

fn read_type(fields: &mut Fields<'_>) -> MessageType {
    let known = || MessageType::ALL.iter().map(|known| known.as_str().to_owned()).collect();
    match fields.optional("message_type") {
        None => MessageType::General,
        Some(Value::String(name)) => MessageType::from_name(name).unwrap_or_else(|| {
            fields.fault("message_type", Fault::NotOneOf(known()));
            MessageType::General
        }),
        Some(_) => {
            fields.fault("message_type", Fault::NotOneOf(known()));
            MessageType::General
        }
    }
}

fn read_attachments(fields: &mut Fields<'_>) -> Vec<ArtifactId> {
    let items = match fields.optional("attachments") {
        None => return Vec::new(),
        Some(Value::Array(items)) => items.as_slice(),
        Some(one) => std::slice::from_ref(one),
    };
    let mut attachments = Vec::with_capacity(items.len());
    for (index, item) in items.iter().enumerate() {
        match item.as_str().and_then(ArtifactId::from_reference) {
            Some(id) if attachments.contains(&id) => {}
            Some(id) => attachments.push(id),
            None => fields.fault(
                &format!("attachments[{index}]"),
                Fault::NotA("a reference such as artifact:k3v9x2ma"),
            ),
        }
    }
    attachments
}

/// Contract section 7: what each type needs beside its name.
fn check_needs(message_type: MessageType, fields: &mut Fields<'_>) {
    match message_type {
        MessageType::TaskAssignment => {
            let brief = TaskBrief::parse(fields.optional("taskBrief"));
            fields.absorb("taskBrief", brief);
        }
        MessageType::IntroductionRequest => {
            fields.text("reason");
            fields.text("required_capability");
        }
        MessageType::IntroductionResponse => check_introduction(fields),
        MessageType::General
        | MessageType::StatusReport
        | MessageType::CollaborationRequest
        | MessageType::CollaborationResponse => {}
    }
}

/// `target_agent` may be null, which says "I know nobody", but it must be said.
fn check_introduction(fields: &mut Fields<'_>) {
    const EXPECTED: Fault = Fault::NotA("{\"id\": …}, or null for \"I know nobody\"");
    if !fields.contains("target_agent") {
        fields.fault("target_agent", Fault::Missing);
        return;
    }
    match fields.optional("target_agent") {
        None => {}
        Some(Value::String(id)) if !id.trim().is_empty() => {
            fields.text("usage_hint");
        }
        Some(Value::Object(target)) if target.get("id").and_then(Value::as_str).is_some() => {
            fields.text("usage_hint");
        }
        Some(_) => fields.fault("target_agent", EXPECTED),
    }
}

/// What stands below the header of the first message to somebody who did not know its writer. Made by the system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfIntroduction {
    /// The writer's role.
    pub role: String,
    /// What it is there for.
    pub duty: String,
    /// How the writer came to know the reader.
    pub source: Source,
    /// Who introduced the reader to it, if somebody did.
    pub introduced_by: Option<AgentId>,
}

/// What an introduction tells of the agent that it names. Made by the system from the registry, never from a model's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Introduced {
    /// The agent.
    pub id: AgentId,
    /// Its role.
    pub role_name: String,
    /// What it offers.
    #[serde(rename = "interface_spec", skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// What its model takes.
    pub input: Vec<crate::content::Capability>,
    /// What its model gives.
    pub output: Vec<crate::content::Capability>,
}

/// Whether something said to the person is the last word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Finality {
    /// The writer still waits for others.
    Interim,
    /// It does not.
    Final,
}

/// Where a message stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum MessageState {
    /// Not due yet.
    Delayed,
    /// In the receiver's mailbox.
    Queued,
    /// Taken into a turn that goes on.
    InTurn,
    /// The turn that took it has ended, or the person has been shown it.
    Done,
    /// It asked for an answer and has one.
    Answered,
    /// The turn that took it failed.
    Failed,
    /// Its receiver ended before it was read.
    Bounced,
}

impl MessageState {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Delayed, Self::Queued, Self::InTurn, Self::Done, Self::Answered, Self::Failed, Self::Bounced];

    /// The name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Delayed => "delayed",
            Self::Queued => "queued",
            Self::InTurn => "in_turn",
            Self::Done => "done",
            Self::Answered => "answered",
            Self::Failed => "failed",
            Self::Bounced => "bounced",
        }
    }
}

/// What a message carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// What somebody wrote.
    Payload(Payload),
    /// What the system says.
    Notice(Notice),
}

/// A message that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its id; ids sort by acceptance.
    pub id: MessageId,
    /// The task it belongs to.
    pub task: TaskId,
    /// Who sent it. Stamped by the system.
    pub from: Sender,
    /// The role of the sender when it sent.
    pub from_role: String,
    /// Whom it is for.
    pub to: AgentId,
    /// What it says.
    pub body: Body,
    /// The request that it answers.
    pub in_reply_to: Option<MessageId>,
    /// Whether it asks for an answer.
    pub expects: Expects,
    /// Whether it is the last word; matters for what the person gets.
    pub finality: Finality,
    /// At first contact: who writes.
    pub introduction: Option<SelfIntroduction>,
    /// For an introduction: who is introduced.
    pub introduced: Option<Introduced>,
    /// When it is due, in milliseconds since 1970, where it was sent with a delay.
    pub due_at: Option<i64>,
}

/// Whether a message asks for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Expects {
    /// It is a request.
    Answer,
    /// It is not.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn problems(value: Value) -> String {
        let problems = Payload::parse(&value).unwrap_err();
        problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn what_each_type_needs() {
        let check = |value: Value, expect: &str| assert_eq!(problems(value), expect);
        check(json!({}), "text: missing");
        check(json!(" "), "payload: empty");
        check(json!(7), "payload: must be an object or a string");
        check(
            json!({"message_type": "introduction_request"}),
            "reason: missing; required_capability: missing",
        );
        check(json!({"message_type": "introduction_response"}), "target_agent: missing");
        check(
            json!({"message_type": "introduction_response", "target_agent": {"id": "a-1"}}),
            "usage_hint: missing",
        );
        check(
            json!({"message_type": "introduction_response", "target_agent": 3}),
            "target_agent: must be {\"id\": …}, or null for \"I know nobody\"",
        );
        check(
            json!({"message_type": "task_assignment", "taskBrief": {"objective": "x", "constraints": [], "inputs": "i", "outputs": "o"}}),
            "taskBrief.completion_criteria: missing",
        );
        check(
            json!({"text": "x", "attachments": ["artifact:../x"]}),
            "attachments[0]: must be a reference such as artifact:k3v9x2ma",
        );
        assert!(
            problems(json!({"message_type": "gossip", "text": "x"}))
                .starts_with("message_type: must be one of: general")
        );
    }

    #[test]
    fn what_is_taken() {
        let (payload, ignored) =
            Payload::parse(&json!({"from": "user", "text": "x", "attachments": "artifact:abc"})).unwrap();
        assert_eq!(ignored, [Ignored::From]);
        assert_eq!(payload.attachments.len(), 1);
        assert!(!payload.fields.contains_key("from"));
        let nobody = json!({"message_type": "introduction_response", "target_agent": null});
        assert_eq!(Payload::parse(&nobody).unwrap().0.introduced(), None);
    }

    #[test]
    fn requests_are_those_of_the_contract() {
        use MessageType::*;
        let asks: Vec<MessageType> =
            MessageType::ALL.into_iter().filter(|message_type| message_type.asks(Answers::Nothing)).collect();
        assert_eq!(asks, [General, TaskAssignment, IntroductionRequest, CollaborationRequest]);
        assert!(!General.asks(Answers::ARequest));
    }
}
