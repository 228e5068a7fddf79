//! The beginning of a text, for events and for the list of running commands.

/// An event shows at most this many characters of a result, and of a call's arguments. The list of running commands
/// shows at most as many characters of a command.
pub(crate) const HEAD_CHARS: usize = 400;

/// Returns the beginning of a text.
pub(crate) fn head(text: &str) -> String {
    match text.char_indices().nth(HEAD_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
