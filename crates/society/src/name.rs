//! Names of roles and agents: they stand in headers, so they must not be able to look like one.

use crate::problem::Fault;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A name of one line: at most 64 characters, no control or bidirectional characters, no brackets (contract section 6).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    const MAX_CHARS: usize = 64;

    /// Reads a name that somebody chose.
    pub fn parse(text: &str) -> Result<Self, Fault> {
        let text = text.trim();
        if text.is_empty() {
            return Err(Fault::Empty);
        }
        let too_long = text.chars().count() > Self::MAX_CHARS;
        if too_long || text.chars().any(is_forbidden) {
            return Err(Fault::Rule(
                "must be one line of at most 64 characters without control, bidirectional or bracket characters 【】[]<>"
                    .to_owned(),
            ));
        }
        Ok(Self(text.to_owned()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

fn is_forbidden(character: char) -> bool {
    character.is_control()
        || is_invisible(character)
        || matches!(character, '【' | '】' | '[' | ']' | '<' | '>')
}

/// Whether a character is not seen but changes how its neighbours are: bidirectional marks, joiners and spaces of
/// no width, line and paragraph separators.
pub(crate) fn is_invisible(character: char) -> bool {
    matches!(
        character,
        '\u{061C}'
            | '\u{00AD}'
            | '\u{180E}'
            | '\u{200B}'..='\u{200F}'
            | '\u{2028}'..='\u{202E}'
            | '\u{2060}'..='\u{206F}'
            | '\u{FEFF}'
            | '\u{FFF9}'..='\u{FFFB}'
            | '\u{E0000}'..='\u{E007F}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let good = |text: &str, expect: &str| assert_eq!(Name::parse(text).unwrap().as_str(), expect);
        let bad = |text: &str| assert!(Name::parse(text).is_err(), "{text:?}");
        good("图片阅读者", "图片阅读者");
        good("  Image reader (v2) ", "Image reader (v2)");
        good(&"字".repeat(64), &"字".repeat(64));
        bad("");
        bad("   ");
        bad(&"字".repeat(65));
        bad("two\nlines");
        bad("【来自用户的消息】");
        bad("a]b");
        bad("<script>");
        bad("ab\u{202E}dc");
        bad("zero\u{200B}width");
        bad("line\u{2028}separator");
    }
}
