//! Patterns in which `*` stands for any characters.

use serde::{Deserialize, Serialize};
use std::fmt;

/// A pattern in which each `*` stands for any number of characters. A pattern must fit the whole text. Letter case
/// matters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Pattern(String);

impl Pattern {
    /// Makes a pattern.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the pattern as somebody wrote it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether the pattern fits a text.
    pub fn fits(&self, text: &str) -> bool {
        let mut parts = self.0.split('*');
        let Some(rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
        let Some(last) = parts.next_back() else { return rest.is_empty() };
        let mut rest = rest;
        for part in parts {
            // If the part occurs at several places, take the first: it leaves the most characters for the parts that
            // follow.
            let Some((_, after)) = rest.split_once(part) else { return false };
            rest = after;
        }
        rest.ends_with(last)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Decides whether a pattern fits by trying every length for each `*`. This is slow but obviously correct, so the
    /// test compares [`Pattern::fits`] with this function.
    fn fits_by_trying(pattern: &[char], text: &[char]) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            (['*', rest @ ..], _) => (0..=text.len()).any(|skipped| fits_by_trying(rest, &text[skipped..])),
            ([first, rest @ ..], [other, others @ ..]) => first == other && fits_by_trying(rest, others),
            (_, []) => false,
        }
    }

    #[test]
    fn a_star_stands_for_any_characters() {
        let check = |pattern: &str, text: &str, fits: bool| {
            assert_eq!(Pattern::new(pattern).fits(text), fits, "{pattern} {text}");
        };
        check("git push*", "git push", true);
        check("git push*", "git push origin", true);
        check("git push*", "git pull", false);
        check("bash", "bash", true);
        check("bash", "bash ", false);
        check("*", "", true);
        check("", "", true);
        check("", "a", false);
        check("a*a", "a", false);
        check("文*", "文件", true);
    }

    proptest! {
        #[test]
        fn fitting_is_what_trying_every_length_finds(pattern in "[ab*]{0,7}", text in "[ab]{0,9}") {
            let chars = |text: &str| text.chars().collect::<Vec<_>>();
            let expect = fits_by_trying(&chars(&pattern), &chars(&text));
            prop_assert_eq!(Pattern::new(pattern).fits(&text), expect);
        }
    }
}
