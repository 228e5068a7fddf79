//! The details that some events contain.

use polity_society::content::Capability;
use polity_society::id::{AgentId, ArtifactId, ServiceId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// How an artifact was shown to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The id of the artifact.
    pub artifact: ArtifactId,
    /// The form in which the model got the artifact.
    pub routing: Routing,
    /// Why the model got only a description of the artifact. Absent if the model got the artifact itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyDescribed>,
}

/// Why a model got only a description of an artifact, with the facts at the time of the request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WhyDescribed {
    /// The reason.
    #[serde(flatten)]
    pub because: Because,
    /// What the model of the service could take at that time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub takes: Vec<Capability>,
    /// The other services that could take the artifact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub services: Vec<ServiceId>,
    /// The contacts of the agent whose model service is one of these services.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub contacts: Vec<AgentId>,
}

/// A reason why the model gets a description instead of the content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "because", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Because {
    /// The model lacks this input capability.
    MissingCapability {
        /// The capability.
        capability: Capability,
    },
    /// The model reads files, but its server does not accept files of this type.
    FileTypeNotTaken,
    /// In an earlier request, the server refused this content or other media. Since then, polity describes all media.
    Refused,
    /// The content alone exceeds the limit for all media of one request.
    TooLarge {
        /// Bytes of the content on the wire, in base64.
        encoded: u64,
        /// Maximum bytes of the media of one request.
        limit: u64,
    },
    /// The content is a picture with more pixels than polity decodes.
    TooManyPixels {
        /// Width in pixels.
        width: u32,
        /// Height in pixels.
        height: u32,
    },
    /// The content is a picture that cannot be reduced to the maximum size.
    CannotFit {
        /// Maximum bytes of a picture.
        limit: u64,
    },
    /// The content is a picture in a format that servers do not accept and polity cannot convert.
    NotConvertible,
    /// The content is a picture that cannot be decoded.
    Damaged,
    /// The content belongs to an earlier message. The media of newer messages left no room for it in the request.
    EarlierAttachment {
        /// Maximum bytes of the media of one request.
        limit: u64,
    },
    /// The media of the same message together are too large for one request.
    TogetherTooLarge {
        /// Maximum bytes of the media of one request.
        limit: u64,
    },
    /// The stored bytes could not be read, or the artifact is not there.
    Unreadable,
}

/// The form in which a model gets an artifact.
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
pub enum Routing {
    /// The model gets the artifact as text.
    Text,
    /// The model gets the artifact as an image part of the request.
    ImageUrl,
    /// The model gets the artifact as an audio part of the request.
    InputAudio,
    /// The model gets the artifact as a file part of the request.
    File,
    /// The model does not get the artifact. A text describes it instead.
    Described,
}

impl Routing {
    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether the model gets the bytes themselves, as a part of the request other than text.
    pub fn is_media(self) -> bool {
        match self {
            Self::ImageUrl | Self::InputAudio | Self::File => true,
            Self::Text | Self::Described => false,
        }
    }
}

/// What a model call does after a failed attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAttempt {
    /// The call sends the same request again, after a pause.
    Retry,
    /// The call sends the request again, with descriptions in place of media.
    DescribeMedia,
    /// The call sends the request again, with a summary in place of the older history.
    Compact,
    /// The call sends the request again, with an additional line that tells how to call tools.
    Reword,
    /// The call sends the request to the fallback service.
    Fallback,
    /// The call makes no further attempt, and the turn fails.
    GiveUp,
}

/// The source of a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummarySource {
    /// The model of the agent's service wrote the summary.
    Model,
    /// No model could write a summary, so the request contains only the newest entries.
    Entries,
}

/// The outcome of a task in which nothing is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The person has a final answer.
    Answered,
    /// An agent waits for the person's answer.
    AwaitsUser,
    /// The person has no final answer.
    Unanswered,
    /// The person has no final answer, and no model was ever reached.
    NoModel,
    /// The person has no final answer, because a limit stopped the task.
    Limited,
}
