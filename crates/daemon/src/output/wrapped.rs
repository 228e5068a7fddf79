//! Breaks lines to fit a terminal of any width. A long line is broken between words and continues on the next line, so
//! that no text is lost. In a pipe, lines keep their length.

use super::table::painted_whole;
use super::wrap;
use anstyle::Style;

/// Additional indentation of the second and all later parts of a broken line, in columns.
const HANGING: usize = 2;

/// One line before it is wrapped: a text in one style, with an indentation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Line {
    indent: usize,
    style: Style,
    text: String,
}

impl Line {
    /// Creates a line. White space in the text counts as one space.
    pub(crate) fn new(indent: usize, style: Style, text: &str) -> Self {
        Self { indent, style, text: text.split_whitespace().collect::<Vec<_>>().join(" ") }
    }
}

/// Formats lines for a width; `None` leaves them as long as they are. In the texts, characters that control a terminal
/// are made visible.
pub(crate) fn wrapped(lines: &[Line], width: Option<usize>) -> String {
    let mut shown = Vec::new();
    for Line { indent, style, text } in lines {
        let text = super::harmless(text);
        let pieces = match width {
            Some(width) => pieces(&text, width.saturating_sub(*indent)),
            None => vec![text.into_owned()],
        };
        for (at, piece) in pieces.iter().enumerate() {
            let indent = if at == 0 { *indent } else { indent + HANGING };
            shown.push(
                format!("{}{}", " ".repeat(indent), painted_whole(*style, piece)).trim_end().to_owned(),
            );
        }
    }
    shown.join("\n")
}

/// Breaks a text into pieces of at most `width` columns. All pieces but the first are [`HANGING`] columns narrower.
fn pieces(text: &str, width: usize) -> Vec<String> {
    let first = wrap::wrapped(text, width).lines().next().unwrap_or_default().to_owned();
    let rest = text.strip_prefix(&*first).unwrap_or_default().trim_start();
    let mut pieces = vec![first];
    // The widest character takes two columns, so a piece has at least two.
    let rest = wrap::wrapped(rest, width.saturating_sub(HANGING).max(2));
    pieces.extend(rest.lines().map(str::to_owned));
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::table::{PLAIN, without_styles};
    use proptest::prelude::*;
    use unicode_width::UnicodeWidthStr;

    #[test]
    fn long_lines_go_on_at_a_word() {
        let check = |text: &str, width: Option<usize>, expect: &str| {
            assert_eq!(without_styles(&wrapped(&[Line::new(1, PLAIN, text)], width)), expect);
        };
        check("one two three", None, " one two three");
        check("one two three", Some(20), " one two three");
        check("one two three", Some(9), " one two\n   three");
        check("看看这张图片", Some(9), " 看看这张\n   图片");
        check("看看report明天", Some(9), " 看看\n   report\n   明天");
        check("a\u{1b}[31m", None, " a<U+001B>[31m");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_its_terminal_and_no_word_is_lost(text in "[a-z图\u{1b} ]{0,80}", indent in 0_usize..6, width in 20_usize..60) {
            let shown = without_styles(&wrapped(&[Line::new(indent, PLAIN, &text)], Some(width)));
            for line in shown.lines() {
                prop_assert!(line.width() <= width, "{line:?}");
            }
            let letters = |text: &str| text.chars().filter(|character| !character.is_whitespace()).collect::<String>();
            prop_assert_eq!(letters(&shown), letters(&crate::output::harmless(&text)));
        }
    }
}
