//! Tables for people. The texts in a table contain no characters that control a terminal. Such characters are only in
//! the styles that polity itself adds.

use super::terminal::harmless;
use super::text::one_line;
use anstyle::{AnsiColor, Style};
use unicode_width::UnicodeWidthStr;

/// The style of less important text.
pub(crate) const DIM: Style = Style::new().dimmed();
/// The style of names and ids.
pub(crate) const NAME: Style = AnsiColor::Cyan.on_default();
/// The style of agents and tasks that are at work.
pub(crate) const BUSY: Style = AnsiColor::Green.on_default();
/// The style of agents and tasks that wait and may need the user's attention.
pub(crate) const HELD: Style = AnsiColor::Yellow.on_default();
/// The style of failures.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// The style of ordinary text.
pub(crate) const PLAIN: Style = Style::new();

/// Maximum length of a text in a cell, in characters.
const CELL_CHARS: usize = 100;
/// The space between two columns.
const GAP: &str = "  ";

/// The content of one column in one row: a single line without characters that control a terminal.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Creates a cell; a text that is too long is cut.
    pub(crate) fn new(style: Style, text: &str) -> Self {
        Self { text: harmless(&one_line(text, CELL_CHARS)).into_owned(), style }
    }

    /// Puts a prefix before the text. Unlike the text, the prefix keeps its spaces.
    pub(crate) fn after(self, prefix: &str) -> Self {
        Self { text: format!("{prefix}{}", self.text), ..self }
    }

    /// Width on a terminal, in columns.
    fn width(&self) -> usize {
        self.text.width()
    }

    fn painted(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let style = self.style;
        format!("{style}{}{style:#}", self.text)
    }
}

/// Formats rows as lines with aligned columns. Columns that are empty in all rows are left out.
pub(crate) fn table(rows: &[Vec<Cell>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.filter(|cell| !cell.text.is_empty()).map(Cell::width).max()
    };
    let widths: Vec<Option<usize>> = (0..columns).map(width).collect();
    let lines: Vec<String> = rows.iter().map(|row| line(row, &widths)).collect();
    lines.join("\n")
}

fn line(row: &[Cell], widths: &[Option<usize>]) -> String {
    let mut line = String::new();
    // The padding of a cell is added only before the next text, so that no line ends with spaces.
    let mut owed = String::new();
    for (cell, width) in row.iter().zip(widths) {
        let Some(width) = width else { continue };
        if !cell.text.is_empty() {
            line.push_str(&owed);
            owed.clear();
            line.push_str(&cell.painted());
        }
        owed.push_str(&" ".repeat(width - cell.width()));
        owed.push_str(GAP);
    }
    line
}

/// Formats a text of several lines: makes characters that control a terminal visible, and indents each line.
pub(crate) fn block(indent: &str, text: &str) -> String {
    let text = harmless(text);
    let lines: Vec<String> =
        text.lines().map(|line| format!("{indent}{line}").trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Formats a text as one line in a style, makes characters that control a terminal visible, and cuts a long text.
pub(crate) fn painted(style: Style, text: &str) -> String {
    Cell::new(style, text).painted()
}

/// Formats a text in a style without cutting it. The text must contain no character that controls a terminal.
pub(super) fn painted_whole(style: Style, text: &str) -> String {
    if text.is_empty() || style == PLAIN { text.to_owned() } else { format!("{style}{text}{style:#}") }
}

#[cfg(test)]
pub(crate) fn without_styles(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(rows: &[&[&str]], expect: &str) {
        let rows: Vec<Vec<Cell>> =
            rows.iter().map(|row| row.iter().map(|text| Cell::new(NAME, text)).collect()).collect();
        assert_eq!(without_styles(&table(&rows)), expect);
    }

    #[test]
    fn columns_stand_below_each_other() {
        check(&[], "");
        check(&[&["a", "bb", "c"], &["aaa", "b", "c"]], "a    bb  c\naaa  b   c");
        check(&[&["图片", "x"], &["abc", "y"]], "图片  x\nabc   y");
        check(&[&["a", "", "c"], &["a", "", ""]], "a  c\na");
        check(&[&["a", "", "c"], &["a", "b", ""]], "a     c\na  b");
        check(&[&["two\nlines"]], "two lines");
    }

    #[test]
    fn blocks_keep_their_lines() {
        assert_eq!(block("  ", "a\n\n\u{1b}b\r\nc"), "  a\n\n  <U+001B>b\n  c");
    }

    proptest! {
        #[test]
        fn nothing_in_a_cell_is_obeyed(text in any::<String>()) {
            let shown = without_styles(&table(&[vec![Cell::new(BAD, &text), Cell::new(DIM, &text)]]));
            prop_assert!(!shown.contains(|character: char| character.is_control()), "{shown:?}");
            // `without_styles` has removed only our own styles, and no part of the text.
            let plain = harmless(&one_line(&text, CELL_CHARS)).into_owned();
            prop_assert_eq!(shown.contains(&plain), true);
        }
    }
}
