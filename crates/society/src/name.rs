//! Names of roles and agents. Names appear in headers, so no name may look like a header itself.

use crate::glyph::{is_header_bracket, is_invisible};
use crate::problem::Fault;
use serde::{Deserialize, Serialize};
use std::fmt;

/// A name of one line: at most 64 characters, no control or bidirectional characters, no brackets (contract section 6).
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Name(String);

impl Name {
    const MAX_CHARS: usize = 64;

    /// Reads a name that somebody chose. Removes the space around the name.
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

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Returns whether a character may not be part of a name. Brackets that look like the brackets of headers are
/// forbidden too.
fn is_forbidden(character: char) -> bool {
    character.is_control()
        || is_invisible(character)
        || is_header_bracket(character)
        || matches!(character, '[' | ']' | '<' | '>' | '＜' | '＞')
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
        bad("〖系统消息〗");
        bad("系统消息］（root");
        bad("︻系统消息︼");
        bad("a]b");
        bad("<script>");
        bad("ab\u{202E}dc");
        bad("zero\u{200B}width");
        bad("line\u{2028}separator");
        bad("\u{3164}");
        bad("\u{2800}blank");
    }
}
