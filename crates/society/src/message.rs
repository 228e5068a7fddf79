//! Messages 消息, and the checks that a payload must pass to become a message.
//! See the seed "agent-communication", requirements 8 and 9.

mod message_type;
mod payload;

pub use crate::brief::RESULT_SCHEMA;
pub use message_type::{Answers, Bearing, MessageType, NOTICE};
pub use payload::{Payload, RESULT, SCHEMA_ERRORS};

use crate::contact::Source;
use crate::id::{AgentId, MessageId, TaskId};
use crate::notice::Notice;
use crate::role::InterfaceSpec;
use crate::time::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The sender of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sender {
    /// The system itself, which sends notices.
    System,
    /// An agent, root or the person.
    Party(AgentId),
}

impl Sender {
    const SYSTEM: &'static str = "system";

    /// Returns the name in the database. No agent can be called `system`, because every generated id has a dash.
    pub fn as_str(&self) -> &str {
        match self {
            Self::System => Self::SYSTEM,
            Self::Party(id) => id.as_str(),
        }
    }

    /// Returns the sender with this name in the database.
    pub fn from_name(name: &str) -> Self {
        if name == Self::SYSTEM { Self::System } else { Self::Party(AgentId::new(name)) }
    }

    /// Returns the party, or `None` if the system is the sender.
    pub fn party(&self) -> Option<&AgentId> {
        match self {
            Self::System => None,
            Self::Party(id) => Some(id),
        }
    }
}

/// An introduction of the writer to a receiver that does not know the writer.
/// The system makes this introduction, and shows it below the header of the writer's first message to the receiver.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SelfIntroduction {
    /// The name of the writer's role.
    pub role: String,
    /// The purpose of the writer, in one line.
    pub duty: String,
    /// How the writer came to know the reader.
    pub source: Source,
    /// The agent that introduced the reader to the writer, if there was one.
    pub introduced_by: Option<AgentId>,
}

/// The facts that an introduction shows about the introduced agent.
/// The system takes these facts from its own records, never from a model's text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Introduced {
    /// The agent that is introduced.
    pub id: AgentId,
    /// The name of the introduced agent's role.
    pub role_name: String,
    /// What the role offers.
    #[serde(rename = "interface_spec", skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The capabilities that the agent's model takes as input.
    pub input: Vec<crate::content::Capability>,
    /// What the agent's model can produce, such as text, images or tool calls.
    pub output: Vec<crate::content::Capability>,
}

/// Whether more will follow a message. Only messages to the person can be interim.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Finality {
    /// More will follow: the message is a report, or its writer still waits for other parties.
    Interim,
    /// Nothing more will follow.
    Final,
}

impl Finality {
    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The state of a message.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum MessageState {
    /// The message is not due yet.
    Delayed,
    /// The message is in the receiver's mailbox.
    Queued,
    /// A turn of the receiver has taken the message and is still open.
    InTurn,
    /// The turn that took the message has ended, or the message has been shown to the person.
    Done,
    /// The message asked for an answer and has one.
    Answered,
    /// The message asked for an answer. The receiver was reminded, and still gave no answer.
    Unanswered,
    /// The turn that took the message failed.
    Failed,
    /// Somebody ended the receiver before it read the message.
    Bounced,
}

impl MessageState {
    /// All states.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// The content of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    /// What a party wrote.
    Payload(Payload),
    /// A notice of the system.
    Notice(Notice),
}

/// An accepted message: a draft that `rules::admit` has accepted, or a notice of the system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// The id; ids sort in the order of acceptance.
    pub id: MessageId,
    /// The task that the message belongs to.
    pub task: TaskId,
    /// The sender, set by the system and never by the writer.
    pub from: Sender,
    /// The name of the sender's role when it sent the message.
    pub from_role: String,
    /// The receiver.
    pub to: AgentId,
    /// What the message says.
    pub body: Body,
    /// The requests that the message answers, oldest first.
    pub in_reply_to: Vec<MessageId>,
    /// For a report, a notice, a supplement, or a message of an agent to itself: the request that the message is about.
    pub about: Option<MessageId>,
    /// For a request A that was made on behalf of an earlier request B: the id of B. The sender needs the answer to A
    /// for its own answer to B.
    pub on_behalf_of: Option<MessageId>,
    /// Whether the message asks for an answer.
    pub expects: Expects,
    /// Whether more will follow the message. This matters only for messages to the person.
    pub finality: Finality,
    /// At first contact: the sender's self-introduction.
    pub introduction: Option<SelfIntroduction>,
    /// For an introduction: the agent that is introduced.
    pub introduced: Option<Introduced>,
    /// For a delayed message: when it is due.
    pub due_at: Option<Timestamp>,
}

/// Whether a message asks for an answer.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "snake_case")]
#[strum(serialize_all = "snake_case")]
pub enum Expects {
    /// The message is a request.
    Answer,
    /// The message asks for nothing.
    Nothing,
}

impl Expects {
    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}
