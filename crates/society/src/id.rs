//! Ids. Each kind of id has its own type, so that the compiler rejects a mix-up of two kinds.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Declares an id type, which wraps the text of the id.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps a text that is known to be an id of this kind.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// Returns the id as it is written in JSON and shown to models.
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
    };
}

id!(
    /// The id of an agent, or of one of the two parties that exist from the start: `user` and `root`.
    AgentId
);
id!(
    /// The id of a role 岗位, which agents are hired into.
    RoleId
);
id!(
    /// The id of a message. Ids sort in the order in which the messages were accepted.
    MessageId
);
id!(
    /// The id of a task. A task is everything that one prompt of the user began.
    TaskId
);
id!(
    /// The id of an artifact. In contrast to its reference, the id has no prefix `artifact:`.
    ArtifactId
);
id!(
    /// The id of a model's tool call, unique in its conversation.
    CallId
);
id!(
    /// The id of a command that runs in the background.
    CommandId
);
id!(
    /// The id of a service in `llmservices.json`.
    ServiceId
);

/// Declares an id that is a prefix and a number from the database.
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        id!($(#[$doc])* $name);

        impl $name {
            /// Returns the id that belongs to a number from the database.
            pub fn from_number(number: i64) -> Self {
                Self(format!(concat!($prefix, "{}"), number))
            }

            /// Returns the number from the database, or `None` if the text cannot be an id of this kind.
            pub fn number(&self) -> Option<i64> {
                self.0.strip_prefix($prefix)?.parse().ok()
            }
        }
    };
}

numbered!(
    /// The id of a question to the person: may an agent make this call?
    ApprovalId,
    "q"
);
numbered!(
    /// The id of a permission that the person gave for more than one call.
    PermissionId,
    "p"
);

/// The id of a turn: a number from the database. A later turn has a higher number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TurnId(i64);

impl TurnId {
    /// Wraps the number that the database gave to a turn.
    pub fn new(number: i64) -> Self {
        Self(number)
    }

    /// Returns the number, as the database stores it.
    pub fn number(self) -> i64 {
        self.0
    }
}

impl fmt::Display for TurnId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl AgentId {
    /// Returns the id of the person who uses the society.
    pub fn user() -> Self {
        Self::new("user")
    }

    /// Returns the id of root, the agent that gets the user's prompts.
    pub fn root() -> Self {
        Self::new("root")
    }

    /// Returns whether this is the id of the person.
    pub fn is_user(&self) -> bool {
        self.0 == "user"
    }

    /// Returns whether this is the id of root.
    pub fn is_root(&self) -> bool {
        self.0 == "root"
    }
}

impl MessageId {
    /// Returns the id of the message that was accepted as number `sequence`.
    pub fn from_sequence(sequence: i64) -> Self {
        Self(format!("m{sequence:09}"))
    }

    /// Returns the number under which the message was accepted, or `None` if the text cannot be a message id.
    pub fn sequence(&self) -> Option<i64> {
        self.0.strip_prefix('m')?.parse().ok()
    }
}

impl ArtifactId {
    const SCHEME: &'static str = "artifact:";

    /// Returns the reference that models and people write: `artifact:` and the id.
    pub fn reference(&self) -> String {
        format!("{}{}", Self::SCHEME, self.0)
    }

    /// Reads a reference. Also accepts the id alone, because models shorten references. Returns `None` for a text that
    /// cannot be a reference or an id, such as a path or an empty text.
    pub fn from_reference(reference: &str) -> Option<Self> {
        let text = reference.trim();
        let text = text.strip_prefix(Self::SCHEME).unwrap_or(text);
        let plausible = !text.is_empty()
            && text.len() <= 16
            && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        plausible.then(|| Self(text.to_owned()))
    }

    /// Returns the artifacts that a text refers to, each once, in order of appearance.
    pub fn all_in(text: &str) -> Vec<Self> {
        let mut found = Vec::new();
        for after in text.split(Self::SCHEME).skip(1) {
            let end = after.find(|character: char| !(character.is_ascii_alphanumeric() || character == '-'));
            let id = Self::from_reference(&after[..end.unwrap_or(after.len())]);
            found.extend(id.filter(|id| !found.contains(id)));
        }
        found
    }
}

/// Maximum length of a generated id, in characters.
pub const MAX_ID_CHARS: usize = 16;

/// Makes a short id that a model can repeat: the ASCII letters and digits of `name` in lower case, then `suffix`.
///
/// A name without ASCII letters or digits, such as a Chinese name, is replaced by `fallback`.
pub fn readable(name: &str, fallback: &str, suffix: &str) -> String {
    let mut slug = String::new();
    for character in name.chars() {
        if character.is_ascii_alphanumeric() {
            slug.push(character.to_ascii_lowercase());
        } else if !slug.is_empty() && !slug.ends_with('-') {
            slug.push('-');
        }
    }
    let room = MAX_ID_CHARS.saturating_sub(suffix.len() + 1);
    slug.truncate(room);
    let slug = slug.trim_matches('-');
    let slug = if slug.is_empty() { fallback } else { slug };
    format!("{slug}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn readable_ids() {
        let check = |name: &str, expect: &str| assert_eq!(readable(name, "agent", "7k2f"), expect);
        check("reader", "reader-7k2f");
        check("Image Reader!", "image-reade-7k2f");
        check("图片阅读者", "agent-7k2f");
        check("图 A", "a-7k2f");
        check("", "agent-7k2f");
    }

    #[test]
    fn references() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(ArtifactId::from_reference(text).as_ref().map(ArtifactId::as_str), expect);
        };
        check("artifact:abc123", Some("abc123"));
        check(" abc123 ", Some("abc123"));
        check("artifact:", None);
        check("artifact:../../etc/passwd", None);
        check("file:///etc/passwd", None);
    }

    #[test]
    fn references_in_a_text() {
        let found = ArtifactId::all_in("见 artifact:abc1，以及(artifact:x-9)和 artifact:abc1; artifact: 空");
        let found: Vec<&str> = found.iter().map(ArtifactId::as_str).collect();
        assert_eq!(found, ["abc1", "x-9"]);
    }

    proptest! {
        #[test]
        fn ids_are_short_and_plain(name in any::<String>()) {
            let id = readable(&name, "agent", "7k2f");
            prop_assert!(id.chars().count() <= MAX_ID_CHARS);
            prop_assert!(id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'));
        }

        #[test]
        fn message_ids_sort_by_acceptance(a in 0i64..900_000_000, b in 0i64..900_000_000) {
            prop_assert_eq!(a.cmp(&b), MessageId::from_sequence(a).cmp(&MessageId::from_sequence(b)));
        }
    }
}
