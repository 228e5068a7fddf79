//! Kinds of content and capabilities of models. The crates `artifacts`, `routing` and `registry` share these types.

use crate::id::ArtifactId;
use crate::mime::MimeType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use strum::{EnumString, IntoStaticStr, VariantArray, VariantNames};

/// The kinds of content (contract section 2). Everything but `Text` is binary.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Kind {
    /// UTF-8 text of any sort: prose, source code, JSON, CSV, SVG, HTML.
    Text,
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Moving pictures.
    Video,
    /// A document with a layout: PDF, office files, e-books.
    Document,
    /// Binary content of any other kind, or of a kind that was not recognised.
    Other,
}

impl Kind {
    /// All kinds, in the order of the decision table in contract section 2.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the kind with this name.
    /// An unknown name gives `Other`, because every model can get at least a description of such content.
    pub fn from_name(name: &str) -> Self {
        name.parse().unwrap_or(Self::Other)
    }

    /// Returns the input capability that a model needs to read this kind (table in contract section 2).
    pub fn needs(self) -> Capability {
        match self {
            Self::Text => Capability::TEXT,
            Self::Image => Capability::VISION,
            Self::Audio => Capability::AUDIO,
            Self::Video => Capability::VIDEO,
            Self::Document | Self::Other => Capability::FILE,
        }
    }
}

/// The capabilities that have a meaning in polity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, VariantNames, IntoStaticStr, EnumString)]
#[strum(serialize_all = "snake_case")]
pub enum KnownCapability {
    /// Text.
    Text,
    /// Understanding pictures.
    Vision,
    /// Understanding sound.
    Audio,
    /// Understanding video. [`Capability::STANDARD`] does not contain this capability, but the decision table in
    /// contract section 2 uses it.
    Video,
    /// Reading files.
    File,
    /// Answers that follow a JSON schema.
    StructuredOutput,
    /// Calling tools.
    ToolCalling,
}

/// Something that a model can take as input or give as output. Any non-empty name is valid. The names that have a
/// meaning in polity are constants.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Capability(Cow<'static, str>);

impl Capability {
    /// Text.
    pub const TEXT: Self = Self::known(KnownCapability::Text);
    /// Understanding pictures.
    pub const VISION: Self = Self::known(KnownCapability::Vision);
    /// Understanding sound.
    pub const AUDIO: Self = Self::known(KnownCapability::Audio);
    /// Understanding video.
    pub const VIDEO: Self = Self::known(KnownCapability::Video);
    /// Reading files.
    pub const FILE: Self = Self::known(KnownCapability::File);
    /// Answers that follow a JSON schema.
    pub const STRUCTURED_OUTPUT: Self = Self::known(KnownCapability::StructuredOutput);
    /// Calling tools.
    pub const TOOL_CALLING: Self = Self::known(KnownCapability::ToolCalling);

    /// The standard types that the seed "capability-routing" lists.
    pub const STANDARD: [Self; 6] =
        [Self::TEXT, Self::VISION, Self::AUDIO, Self::FILE, Self::STRUCTURED_OUTPUT, Self::TOOL_CALLING];

    const fn known(known: KnownCapability) -> Self {
        // Cannot fail: `VARIANTS` has one name per member, in the order of the members. This code takes the name from
        // `VARIANTS`, because a `const fn` cannot call `From`.
        Self(Cow::Borrowed(<KnownCapability as VariantNames>::VARIANTS[known as usize]))
    }

    /// Returns the capability with this name, or `None` if the name is blank.
    pub fn new(name: &str) -> Option<Self> {
        let name = name.trim();
        (!name.is_empty()).then(|| Self(Cow::Owned(name.to_owned())))
    }

    /// Returns the name that configuration and models use.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is one of the standard types.
    pub fn is_standard(&self) -> bool {
        Self::STANDARD.contains(self)
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Capability({})", self.0)
    }
}

/// Whether a capability is needed for a model's input, its output, or both.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, VariantArray, IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Direction {
    /// The capability is needed for the model's input.
    Input,
    /// The capability is needed for the model's output.
    Output,
    /// The capability is needed for both input and output.
    Both,
}

impl Direction {
    /// All directions.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// What a model can take as input and give as output.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capabilities {
    /// What the model can take, in the order of declaration.
    pub input: Vec<Capability>,
    /// What the model can give, in the order of declaration.
    pub output: Vec<Capability>,
}

impl Default for Capabilities {
    /// Returns the capabilities of a model that declares none: text as input, and text as output.
    fn default() -> Self {
        Self { input: vec![Capability::TEXT], output: vec![Capability::TEXT] }
    }
}

impl Capabilities {
    /// Returns whether the model has the capability in this direction.
    #[doc(alias = "hasCapability")]
    pub fn has(&self, capability: &Capability, direction: Direction) -> bool {
        match direction {
            Direction::Input => self.input.contains(capability),
            Direction::Output => self.output.contains(capability),
            Direction::Both => self.input.contains(capability) && self.output.contains(capability),
        }
    }

    /// Returns whether a model with these capabilities can read content of this kind.
    pub fn reads(&self, kind: Kind) -> bool {
        kind == Kind::Text || self.has(&kind.needs(), Direction::Input)
    }
}

/// The metadata of an artifact 工件. The bytes of an artifact never change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Artifact {
    /// The id; the artifact's reference is `artifact:` followed by the id.
    pub id: ArtifactId,
    /// The kind of the bytes, which decides which models can read them.
    pub kind: Kind,
    /// The MIME type that polity detected.
    pub mime_type: MimeType,
    /// The name of the file that the bytes came from, if any.
    pub filename: Option<String>,
    /// The label that the artifact got when it was stored, such as `report`.
    #[serde(rename = "type")]
    pub label: Option<String>,
    /// Size in bytes.
    pub size: u64,
    /// When the artifact was stored, in milliseconds since 1970.
    pub created_at: i64,
    /// Further metadata: data that came with the bytes, and problems that polity detected, such as a wrong MIME type.
    pub meta: serde_json::Map<String, serde_json::Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decision_table_of_kinds() {
        let check = |kind: Kind, need: &str| assert_eq!(kind.needs().as_str(), need);
        check(Kind::Text, "text");
        check(Kind::Image, "vision");
        check(Kind::Audio, "audio");
        check(Kind::Video, "video");
        check(Kind::Document, "file");
        check(Kind::Other, "file");
    }

    #[test]
    fn an_empty_name_is_no_capability() {
        assert_eq!(Capability::new("  "), None);
        assert_eq!(Capability::new(" vision "), Some(Capability::VISION));
        assert!(!Capability::VIDEO.is_standard());
    }
}
