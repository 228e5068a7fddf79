//! The place where a text for the user is shown. Texts for a terminal are formatted from Markdown; a pipe gets each
//! text as it was written.

use super::markdown::formatted;
use super::terminal::harmless;
use super::wrap::wrapped;
use std::borrow::Cow;
use std::io::IsTerminal;

/// The width of a terminal that does not report its width, in columns.
const USUAL_COLUMNS: usize = 80;

/// Returns the width of the terminal that is standard output; nothing if the terminal does not report its width.
#[cfg(unix)]
fn columns() -> Option<usize> {
    rustix::termios::tcgetwinsize(std::io::stdout()).ok().map(|size| size.ws_col.into())
}

#[cfg(not(unix))]
fn columns() -> Option<usize> {
    crossterm::terminal::size().ok().map(|(columns, _)| columns.into())
}

/// What standard output is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// A terminal of this width. Texts for it have formatted Markdown, and visible signs in place of control
    /// characters.
    Terminal { columns: usize },
    /// A pipe or a file: texts stay as they were written.
    Pipe,
}

impl Page {
    /// Returns what standard output is at this moment. Call it again for each text, because the user may have changed
    /// the width of the terminal.
    pub(crate) fn now() -> Self {
        if !std::io::stdout().is_terminal() {
            return Self::Pipe;
        }
        Self::Terminal { columns: columns().filter(|columns| *columns > 0).unwrap_or(USUAL_COLUMNS) }
    }

    /// Formats a text that an agent or the user has written, which may contain Markdown. Breaks lines that are wider
    /// than the terminal.
    pub(crate) fn written(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Terminal { columns } => {
                Cow::Owned(formatted(text, columns).unwrap_or_else(|| wrapped(&harmless(text), columns)))
            }
            Self::Pipe => Cow::Borrowed(text),
        }
    }

    /// Formats a text that has no Markdown, such as a name.
    pub(crate) fn plain(self, text: &str) -> Cow<'_, str> {
        match self {
            Self::Terminal { .. } => harmless(text),
            Self::Pipe => Cow::Borrowed(text),
        }
    }

    /// Returns a page for an indented text, with `by` columns fewer than this page.
    pub(crate) fn narrower(self, by: usize) -> Self {
        match self {
            Self::Terminal { columns } => Self::Terminal { columns: columns.saturating_sub(by) },
            Self::Pipe => Self::Pipe,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_without_markdown_is_broken_between_words_too() {
        let text = "the quick brown fox";
        assert_eq!(Page::Terminal { columns: 10 }.written(text), "the quick\nbrown fox");
        assert_eq!(Page::Pipe.written(text), text);
    }
}
