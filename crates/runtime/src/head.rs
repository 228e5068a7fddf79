//! The beginning of a text, for events.

/// An event shows at most this many characters of a result, and of a call's arguments.
pub(crate) const HEAD_CHARS: usize = 400;

/// Returns the beginning of a text.
pub(crate) fn head(text: &str) -> String {
    match text.char_indices().nth(HEAD_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
