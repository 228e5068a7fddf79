//! The beginning of a text, for events and for the list of running commands.

/// Maximum number of characters of such a beginning. An event shows this much of a result or of a call's arguments. The
/// list of running commands shows this much of a command.
pub(crate) const HEAD_CHARS: usize = 400;

/// Returns the beginning of a text.
pub(crate) fn head(text: &str) -> String {
    match text.char_indices().nth(HEAD_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_cut_after_its_first_characters() {
        assert_eq!(HEAD_CHARS, 400);
        for character in ["a", "字", "🦀"] {
            let whole = character.repeat(HEAD_CHARS);
            assert_eq!(head(&whole), whole);
            assert_eq!(head(&format!("{whole}b")), format!("{whole}…"));
        }
        assert_eq!(head(""), "");
    }
}
