//! Tables for people. The texts in a table contain no characters that control a terminal. Such characters are only in
//! the styles that polity itself adds.

use super::terminal::harmless;
use super::text::one_line;
use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

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
/// A column of at most this width is never shortened, so that times, states and most ids stay whole.
const SHORT: usize = 20;

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

    /// Creates a cell whose text is not cut, however long it is.
    pub(crate) fn whole(style: Style, text: &str) -> Self {
        Self { text: harmless(&one_line(text, usize::MAX)).into_owned(), style }
    }

    /// Puts a prefix before the text. Unlike the text, the prefix keeps its spaces.
    pub(crate) fn after(self, prefix: &str) -> Self {
        Self { text: format!("{prefix}{}", self.text), ..self }
    }

    /// Width on a terminal, in columns.
    fn width(&self) -> usize {
        self.text.width()
    }

    /// Returns the cell with at most this width. If the text is wider, it is cut, and ends with an ellipsis.
    fn cut(&self, columns: usize) -> Self {
        if self.width() <= columns {
            return self.clone();
        }
        let mut text = String::new();
        let mut left = columns.saturating_sub(1);
        for character in self.text.chars() {
            let width = character.width().unwrap_or_default();
            if width > left {
                break;
            }
            left -= width;
            text.push(character);
        }
        Self { text: format!("{}…", text.trim_end()), style: self.style }
    }

    fn painted(&self) -> String {
        if self.text.is_empty() {
            return String::new();
        }
        let style = self.style;
        format!("{style}{}{style:#}", self.text)
    }
}

/// Formats rows as lines with aligned columns. Columns that are empty in all rows are left out. If the table is wider
/// than a terminal with this many columns, shortens the widest columns. Without a width, as in a pipe, the texts stay
/// whole.
pub(crate) fn table(rows: &[Vec<Cell>], columns: Option<usize>) -> String {
    let mut widths = widths(rows);
    let Some(columns) = columns else { return lines(rows, &widths) };
    let named = named(rows, widths.len());
    shorten(&mut widths, &named, columns);
    let cut = |row: &Vec<Cell>| -> Vec<Cell> {
        row.iter().zip(&widths).map(|(cell, width)| cell.cut(width.unwrap_or_default())).collect()
    };
    let rows: Vec<Vec<Cell>> = rows.iter().map(cut).collect();
    lines(&rows, &widths)
}

/// Returns the width of each column; nothing for a column that is empty in all rows.
fn widths(rows: &[Vec<Cell>]) -> Vec<Option<usize>> {
    let columns = rows.iter().map(Vec::len).max().unwrap_or_default();
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.filter(|cell| !cell.text.is_empty()).map(Cell::width).max()
    };
    (0..columns).map(width).collect()
}

/// Returns for each column whether it contains names or ids. The user copies these, so they must stay whole.
fn named(rows: &[Vec<Cell>], columns: usize) -> Vec<bool> {
    let is_named = |column: usize| {
        let mut cells = rows.iter().filter_map(|row| row.get(column));
        cells.any(|cell| cell.style == NAME)
    };
    (0..columns).map(is_named).collect()
}

/// Makes the widest columns narrower until the table fits. Leaves columns with names alone, and columns that are
/// [`SHORT`]. So a table may stay wider than a very narrow terminal.
fn shorten(widths: &mut [Option<usize>], named: &[bool], columns: usize) {
    let gaps = widths.iter().flatten().count().saturating_sub(1) * GAP.len();
    loop {
        let taken = widths.iter().flatten().sum::<usize>() + gaps;
        let texts = widths.iter_mut().zip(named).filter(|(_, named)| !**named);
        let wide = texts.filter_map(|(width, _)| width.as_mut()).filter(|width| **width > SHORT);
        let widest = wide.max_by_key(|width| **width);
        match widest {
            Some(width) if taken > columns => *width -= 1,
            Some(_) | None => return,
        }
    }
}

fn lines(rows: &[Vec<Cell>], widths: &[Option<usize>]) -> String {
    let lines: Vec<String> = rows.iter().map(|row| line(row, widths)).collect();
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
        owed.push_str(&" ".repeat(width.saturating_sub(cell.width())));
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

/// Formats a text as one line and makes characters that control a terminal visible, but does not cut a long text.
pub(crate) fn whole_line(text: &str) -> String {
    harmless(&text.replace(['\r', '\n'], " ")).into_owned()
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
        assert_eq!(without_styles(&table(&rows, None)), expect);
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
    fn the_widest_column_is_shortened_to_fit() {
        let row = |id: &str, at: &str, title: &str| {
            vec![Cell::new(NAME, id), Cell::new(DIM, at), Cell::new(PLAIN, title)]
        };
        let rows = [
            row("t-1", "2026-01-01 00:00:00", "count the pages of this book"),
            row("t-2", "2026-01-01 00:00:01", "请看看这张图片，然后说出上面写了什么"),
        ];
        let check = |columns: Option<usize>, expect: [&str; 2]| {
            assert_eq!(without_styles(&table(&rows, columns)), expect.join("\n"), "{columns:?}");
        };
        let whole = [
            "t-1  2026-01-01 00:00:00  count the pages of this book",
            "t-2  2026-01-01 00:00:01  请看看这张图片，然后说出上面写了什么",
        ];
        check(None, whole);
        check(Some(62), whole);
        check(
            Some(50),
            [
                "t-1  2026-01-01 00:00:00  count the pages of this…",
                "t-2  2026-01-01 00:00:01  请看看这张图片，然后说…",
            ],
        );
        // Shorter columns stay whole, so a terminal that is too narrow breaks the lines itself.
        check(
            Some(20),
            [
                "t-1  2026-01-01 00:00:00  count the pages of…",
                "t-2  2026-01-01 00:00:01  请看看这张图片，然…",
            ],
        );
        // A name stays whole, however wide it is.
        let name = "n".repeat(60);
        let rows = [vec![Cell::new(NAME, &name), Cell::new(PLAIN, &"x".repeat(30))]];
        let shown = without_styles(&table(&rows, Some(70)));
        assert_eq!(shown, format!("{name}  {}…", "x".repeat(SHORT - 1)));
    }

    #[test]
    fn blocks_keep_their_lines() {
        assert_eq!(block("  ", "a\n\n\u{1b}b\r\nc"), "  a\n\n  <U+001B>b\n  c");
    }

    proptest! {
        #[test]
        fn nothing_in_a_cell_is_obeyed(text in any::<String>()) {
            let row = vec![Cell::new(BAD, &text), Cell::new(DIM, &text)];
            let shown = without_styles(&table(&[row], None));
            prop_assert!(!shown.contains(|character: char| character.is_control()), "{shown:?}");
            // `without_styles` has removed only our own styles, and no part of the text.
            let plain = harmless(&one_line(&text, CELL_CHARS)).into_owned();
            prop_assert_eq!(shown.contains(&plain), true);
        }
    }
}
