//! The forms of the lines that only the system writes, as the texts of a language give them.

use crate::glyph::is_letter;
use unicode_normalization::UnicodeNormalization;

/// Only so many characters of a line are compared with the lines of the system. No header of a message is longer.
const COMPARED_CHARS: usize = 160;

/// The form of a line of the system: the fixed texts of its template, in order. The placeholders lie between them, so
/// the line begins with the first of these texts.
#[derive(Clone, Debug)]
pub(crate) struct Form(Vec<String>);

impl Form {
    /// Makes a form from its fixed pieces.
    /// Returns `None` for a form that begins with a placeholder, because any line could match it.
    pub(crate) fn of(pieces: Vec<&str>) -> Option<Self> {
        let pieces: Vec<String> = pieces.into_iter().map(bare).collect();
        pieces.first().is_some_and(|first| !first.is_empty()).then_some(Self(pieces))
    }

    /// Returns whether a line has this form. The line must be reduced by [`bare`].
    pub(crate) fn is_of(&self, bare_line: &str) -> bool {
        let Some((first, others)) = self.0.split_first() else { return false };
        let Some(mut rest) = bare_line.strip_prefix(first.as_str()) else { return false };
        for piece in others {
            let Some((_, after)) = rest.split_once(piece.as_str()) else { return false };
            rest = after;
        }
        true
    }
}

/// Returns the letters and digits at the beginning of a line, in lower case.
/// Replaces wide, styled and accented characters by plain characters.
pub(crate) fn bare(line: &str) -> String {
    let compared = line.chars().take(COMPARED_CHARS);
    compared.nfkd().filter(|character| is_letter(*character)).flat_map(char::to_lowercase).collect()
}
