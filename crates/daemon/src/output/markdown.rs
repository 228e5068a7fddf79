//! Formats Markdown for a terminal: headings, lists, tables, quotations and code, no wider than the terminal.
//!
//! The parser `pulldown_cmark` turns Markdown into events, and a [`Writer`] turns the events into lines. The open
//! containers, such as lists, are on a stack in the heap, so deep nesting does not overflow the stack of the thread.
//! Control characters are made visible only after the parsing, because the parser turns an entity such as `&#27;` into
//! a control character.

mod table;
mod wrap;

use super::table::{DIM, NAME};
use super::terminal::harmless;
use anstyle::Style;
use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use table::Table;
use unicode_width::UnicodeWidthStr;
use wrap::{LongWords, Piece, lines, painted};

/// Minimum width of a text, in columns. A nested quotation or list is indented only if this leaves at least this many
/// columns for its text.
const NARROWEST: usize = 20;
/// Maximum width of a horizontal rule, in columns.
const RULE: usize = 60;

/// Formats a text for a terminal of this width. Returns nothing if the text has no Markdown in it: the caller then only
/// breaks the lines of the text.
pub(crate) fn formatted(text: &str, columns: usize) -> Option<String> {
    let options = Options::ENABLE_TABLES
        | Options::ENABLE_STRIKETHROUGH
        | Options::ENABLE_TASKLISTS
        | Options::ENABLE_MATH;
    let events = || Parser::new_ext(text, options);
    if events().all(|event| is_plain(&event)) {
        return None;
    }
    let mut writer = Writer { columns: columns.max(NARROWEST), ..Writer::default() };
    for event in events() {
        writer.take(event);
    }
    writer.flush();
    Some(writer.out.join("\n"))
}

fn is_plain(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Start(Tag::Paragraph) | Event::End(TagEnd::Paragraph) | Event::Text(_) | Event::SoftBreak
    )
}

/// A block that contains other blocks.
#[derive(Debug)]
enum Container {
    Quote,
    List { next: Option<u64> },
    Item { mark: String, is_marked: bool },
}

#[derive(Default)]
struct Writer {
    columns: usize,
    out: Vec<String>,
    containers: Vec<Container>,
    /// `pieces` is the text of the block that is being read, and `styles` are the styles that are in force.
    pieces: Vec<Piece>,
    styles: Vec<Style>,
    /// The targets of the open links, and for each link the index in `pieces` at which the text of the link begins.
    links: Vec<(String, usize)>,
    code: Option<String>,
    table: Option<Table>,
    /// Whether an empty line belongs before the next block.
    apart: bool,
}

impl Writer {
    fn take(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => match &mut self.code {
                Some(code) => code.push_str(&text),
                None => self.text(&text),
            },
            Event::Code(text) => self.styled(NAME, &text),
            Event::InlineMath(text) | Event::DisplayMath(text) => self.styled(Style::new().italic(), &text),
            Event::Html(text) | Event::InlineHtml(text) => self.text(&text),
            Event::FootnoteReference(name) => self.text(&format!("[{name}]")),
            Event::SoftBreak | Event::HardBreak => self.text("\n"),
            Event::Rule => {
                let width = self.room().min(RULE);
                self.apart = true;
                self.block(vec![painted(DIM, &"─".repeat(width))]);
                self.apart = true;
            }
            Event::TaskListMarker(is_done) => self.text(if is_done { "[x] " } else { "[ ] " }),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        let style = self.style();
        match tag {
            Tag::Heading { level: HeadingLevel::H1, .. } => self.styles.push(style.bold().underline()),
            Tag::Heading { .. } | Tag::Strong => self.styles.push(style.bold()),
            Tag::Emphasis => self.styles.push(style.italic()),
            Tag::Strikethrough => self.styles.push(style.strikethrough()),
            Tag::Link { dest_url, .. } => {
                self.styles.push(style.underline());
                self.links.push((dest_url.into_string(), self.pieces.len()));
            }
            Tag::Image { dest_url, .. } => {
                self.styles.push(style);
                self.links.push((dest_url.into_string(), self.pieces.len()));
            }
            Tag::BlockQuote(_) => {
                self.flush();
                // The empty line before a quotation is not part of the quotation, so write it before the mark of the
                // quotation is in force.
                self.gap();
                self.containers.push(Container::Quote);
            }
            Tag::List(next) => {
                // If an item contains a list, no empty line stands between the text of the item and this list.
                if !self.pieces.is_empty() {
                    self.flush();
                    self.apart = false;
                }
                self.containers.push(Container::List { next });
            }
            Tag::Item => {
                let mark = match self.containers.last_mut() {
                    Some(Container::List { next: Some(number) }) => {
                        let mark = format!("{number}. ");
                        *number += 1;
                        mark
                    }
                    _ => "• ".to_owned(),
                };
                self.containers.push(Container::Item { mark, is_marked: false });
            }
            Tag::CodeBlock(kind) => {
                self.flush();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.block(vec![painted(DIM, &harmless(&language))]);
                    self.apart = false;
                }
                self.code = Some(String::new());
            }
            Tag::Table(alignments) => {
                self.flush();
                self.table = Some(Table::new(alignments));
            }
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => {
                self.flush();
                self.apart = true;
            }
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
                self.apart = true;
            }
            TagEnd::Strong | TagEnd::Emphasis | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => {
                self.styles.pop();
                self.target();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item | TagEnd::List(_) => {
                self.flush();
                if matches!(self.containers.last(), Some(Container::Item { is_marked: false, .. })) {
                    self.block(vec![String::new()]);
                    self.apart = false;
                }
                self.containers.pop();
                // An empty line follows a list or a quotation, but no empty line stands between the items of a list.
                self.apart |= !matches!(tag, TagEnd::Item) && !self.is_in_item();
            }
            TagEnd::CodeBlock => {
                let code = self.code.take().unwrap_or_default();
                let bar = painted(DIM, "│");
                let lines = harmless(code.trim_end_matches('\n'))
                    .lines()
                    .map(|line| format!("{bar} {line}"))
                    .collect();
                self.block(lines);
                self.apart = true;
            }
            TagEnd::TableHead | TagEnd::TableRow => {
                if let Some(table) = &mut self.table {
                    table.end_row();
                }
            }
            TagEnd::TableCell => {
                let cell = std::mem::take(&mut self.pieces);
                if let Some(table) = &mut self.table {
                    table.add(cell);
                }
            }
            TagEnd::Table => {
                let width = self.room();
                if let Some(table) = self.table.take() {
                    self.block(table.lines(width));
                }
                self.apart = true;
            }
            _ => {}
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or_default()
    }

    fn is_in_item(&self) -> bool {
        self.containers.iter().any(|container| matches!(container, Container::Item { .. }))
    }

    fn text(&mut self, text: &str) {
        self.styled(self.style(), text);
    }

    fn styled(&mut self, style: Style, text: &str) {
        self.pieces.push(Piece { style, text: harmless(text).into_owned() });
    }

    /// Writes the target of a link after the text of the link, unless both are equal.
    fn target(&mut self) {
        let Some((target, begin)) = self.links.pop() else { return };
        let text: String = self.pieces.iter().skip(begin).map(|piece| piece.text.as_str()).collect();
        if target != text && target.strip_prefix("mailto:") != Some(text.as_str()) {
            self.styled(DIM, &format!(" ({target})"));
        }
    }

    /// Writes, as one paragraph, the pieces that were read since the last block.
    fn flush(&mut self) {
        let pieces = std::mem::take(&mut self.pieces);
        if pieces.iter().any(|piece| !piece.text.trim().is_empty()) {
            self.block(lines(&pieces, self.room(), LongWords::Whole));
        }
    }

    /// Returns the number of columns that are left for a text inside the open containers.
    fn room(&self) -> usize {
        let used: usize = self.containers.iter().map(|container| container.width()).sum();
        self.columns.saturating_sub(used).max(NARROWEST.min(self.columns))
    }

    /// Writes the lines of a block, with the marks of the open containers before them.
    fn block(&mut self, lines: Vec<String>) {
        self.gap();
        for line in lines {
            let before = self.before(Line::Full);
            self.out.push(format!("{before}{line}").trim_end().to_owned());
        }
    }

    /// Writes an empty line if one belongs before the next block.
    fn gap(&mut self) {
        if std::mem::take(&mut self.apart) && !self.out.is_empty() {
            let before = self.before(Line::Empty);
            self.out.push(before.trim_end().to_owned());
        }
    }

    /// Returns the marks (of quotations and list items) and the indentation before a line. The mark of a list item
    /// stands only before the first line of the item.
    fn before(&mut self, line: Line) -> String {
        let mut before = String::new();
        let mut width = 0;
        for container in &mut self.containers {
            width += container.width();
            if width + NARROWEST > self.columns {
                break;
            }
            match container {
                Container::Quote => before.push_str(&format!("{} ", painted(DIM, "│"))),
                Container::List { .. } => {}
                Container::Item { mark, is_marked } if line == Line::Full && !*is_marked => {
                    before.push_str(mark)
                }
                Container::Item { mark, .. } => before.push_str(&" ".repeat(mark.width())),
            }
        }
        if line == Line::Full {
            for container in &mut self.containers {
                if let Container::Item { is_marked, .. } = container {
                    *is_marked = true;
                }
            }
        }
        before
    }
}

/// Whether a line contains text.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Full,
    Empty,
}

impl Container {
    fn width(&self) -> usize {
        match self {
            Self::Quote => 2,
            Self::List { .. } => 0,
            Self::Item { mark, .. } => mark.width(),
        }
    }
}

#[cfg(test)]
mod tests;
