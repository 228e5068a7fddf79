//! The types of messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// The message type that a notice of the system has in the database and in the events.
pub const NOTICE: &str = "notice";

/// The types that a payload can declare.
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
pub enum MessageType {
    /// Any content. A payload that declares no type is of this type.
    General,
    /// Gives work to the receiver, with a task brief.
    TaskAssignment,
    /// Tells how far the work has progressed.
    StatusReport,
    /// Asks for a contact: "Whom do you know that can …?"
    IntroductionRequest,
    /// Answers an introduction request: "This one", or "I know nobody".
    IntroductionResponse,
    /// Asks for help: "Please do …"
    CollaborationRequest,
    /// Answers a collaboration request: "Here it is."
    CollaborationResponse,
}

impl MessageType {
    /// All types.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the type with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns what a message of this type does to the open requests that its receiver has made to its sender.
    pub fn bearing(self) -> Bearing {
        match self {
            Self::General | Self::IntroductionResponse | Self::CollaborationResponse => Bearing::Answers,
            Self::StatusReport => Bearing::Reports,
            Self::TaskAssignment | Self::IntroductionRequest | Self::CollaborationRequest => Bearing::None,
        }
    }

    /// Returns whether a message of this type asks for an answer.
    /// `answers` tells whether the message itself answers a request.
    pub fn asks(self, answers: Answers) -> bool {
        match self {
            Self::TaskAssignment | Self::IntroductionRequest | Self::CollaborationRequest => true,
            Self::General => answers == Answers::Nothing,
            Self::StatusReport | Self::IntroductionResponse | Self::CollaborationResponse => false,
        }
    }
}

/// What a message does to the open requests that its receiver has made to its sender.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bearing {
    /// The message answers the requests that it names. If it names none, it answers the oldest open request.
    Answers,
    /// The message is about one request, which stays open.
    Reports,
    /// The message answers no request, because it is a request itself.
    None,
}

/// Whether a message answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The message answers a request.
    ARequest,
    /// The message answers nothing.
    Nothing,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_those_of_the_contract() {
        use MessageType::*;
        let asks: Vec<MessageType> =
            MessageType::ALL.iter().copied().filter(|one| one.asks(Answers::Nothing)).collect();
        assert_eq!(asks, [General, TaskAssignment, IntroductionRequest, CollaborationRequest]);
        assert!(!General.asks(Answers::ARequest));
    }
}
