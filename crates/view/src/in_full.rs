//! Writes an error and its causes as one line of text.

use std::error::Error;

/// Returns an error and all its causes in one line. A cause whose text the line already contains is not repeated.
pub fn in_full(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
