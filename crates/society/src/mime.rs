//! MIME types, and patterns such as `image/*`. All other modules leave the parsing of MIME types to this module.

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;

/// A MIME type, in lower case and without parameters.
/// Only [`Self::unchecked`] and the deserialisation of JSON accept other texts.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct MimeType(Cow<'static, str>);

impl MimeType {
    /// Bytes of an unknown type.
    pub const OCTET_STREAM: Self = Self(Cow::Borrowed("application/octet-stream"));
    /// PDF.
    pub const PDF: Self = Self(Cow::Borrowed("application/pdf"));
    /// Text without a more specific type.
    pub const PLAIN_TEXT: Self = Self(Cow::Borrowed("text/plain"));

    /// Reads a MIME type. Converts it to lower case and removes its parameters.
    /// Returns `None` if the text is not a MIME type.
    pub fn parse(text: &str) -> Option<Self> {
        let essence = essence(text);
        let (family, subtype) = essence.split_once('/')?;
        (is_name(family) && is_name(subtype)).then_some(Self(Cow::Owned(essence)))
    }

    /// Wraps a text without a check. The text must be known to be a MIME type, or come from a row of the database. The
    /// text of a damaged row is shown unchanged.
    pub fn unchecked(text: impl Into<String>) -> Self {
        Self(Cow::Owned(text.into()))
    }

    /// Returns the type as it is written in JSON, in the database and in requests.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the type in lower case and without parameters.
    /// The result differs from [`Self::as_str`] only if the text was not checked.
    pub fn essence(&self) -> String {
        essence(&self.0)
    }
}

impl fmt::Display for MimeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for MimeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq<str> for MimeType {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for MimeType {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// The schema allows any string, because the MIME type of a damaged database row is shown unchanged.
impl JsonSchema for MimeType {
    fn inline_schema() -> bool {
        String::inline_schema()
    }

    fn schema_name() -> Cow<'static, str> {
        String::schema_name()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

/// A pattern of MIME types: `*/*`, `image/*` or `application/pdf`.
#[derive(Clone, PartialEq, Eq)]
pub enum MimePattern {
    /// Every type, `*/*`.
    Anything,
    /// All types of a family, such as `image/*`. The family is in lower case.
    Family(String),
    /// One type.
    Exactly(MimeType),
}

impl MimePattern {
    /// Reads a pattern in any letter case. Returns `None` if the text is not a pattern, or has parameters.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        match text.split_once('/')? {
            ("*", "*") => Some(Self::Anything),
            (family, "*") => is_name(family).then(|| Self::Family(family.to_owned())),
            _ => MimeType::parse(&text).filter(|mime_type| *mime_type == *text).map(Self::Exactly),
        }
    }

    /// Returns whether a type fits the pattern. The letter case and the parameters of the type do not matter.
    pub fn matches(&self, mime_type: &MimeType) -> bool {
        let essence = mime_type.essence();
        match self {
            Self::Anything => true,
            Self::Family(family) => essence.split('/').next() == Some(family.as_str()),
            Self::Exactly(exactly) => *exactly == *essence,
        }
    }
}

impl fmt::Display for MimePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Anything => f.write_str("*/*"),
            Self::Family(family) => write!(f, "{family}/*"),
            Self::Exactly(mime_type) => f.write_str(mime_type.as_str()),
        }
    }
}

impl fmt::Debug for MimePattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.to_string(), f)
    }
}

impl Serialize for MimePattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Returns a MIME type in lower case, without parameters.
fn essence(text: &str) -> String {
    let (essence, _) = text.split_once(';').unwrap_or((text, ""));
    essence.trim().to_ascii_lowercase()
}

/// Returns whether a text can be a family or a subtype. RFC 6838 allows these characters, and at most 127 bytes.
fn is_name(text: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
    (1..=127).contains(&text.len()) && text.bytes().all(is_plain)
}

#[cfg(test)]
mod tests;
