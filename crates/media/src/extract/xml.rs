//! Converts XML to text, according to the meaning of its elements.

use std::fmt::Write as _;

use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesRef, Event};
use quick_xml::{Reader, XmlVersion};

use super::Stop;
use super::sink::{Part, Sink};

/// Maximum number of open elements. Real documents stay far below it. This is true even of malformed documents that
/// never close an element.
const MAX_DEPTH: usize = 100_000;

/// The name of the part that contains the notes to a slide. The notes are written between `<notes>` and `</notes>`.
pub(super) const NOTES: &str = "notes";

/// The meaning of an element for the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mark {
    /// The characters inside the element are text.
    Text,
    /// The element begins on a new line, and the text after it begins on another line.
    Line,
    /// The element has both meanings: [`Text`](Self::Text) and [`Line`](Self::Line).
    TextLine,
    /// A row of a table.
    Row,
    /// A cell of a table. The content of a cell stays on one line.
    Cell,
    /// The element stands for a tab.
    Tab,
    /// The element stands for a space.
    Space,
    /// The element stands for a line break.
    Break,
    /// The notes to a slide. They are not shown on the slide.
    Notes,
    /// Neither the element nor anything inside it is text.
    Skip,
    /// The element has no meaning for the text.
    Other,
}

/// Whether white space is part of the text, or was only added to lay out the XML.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhiteSpace {
    Kept,
    Collapsed,
}

/// Writes the text of an XML file. `mark` takes the name of an element without its prefix, and returns the meaning of
/// the element. Only the standard entities and `&nbsp;` are expanded, never entities that the file defines.
pub(super) fn write_text(
    xml: &[u8],
    white_space: WhiteSpace,
    mark: fn(&str) -> Mark,
    sink: &mut Sink,
) -> Result<(), Stop> {
    let mut reader = reader(xml);
    let mut buffer = Vec::new();
    let mut open = OpenElements::default();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(Stop::unreadable)? {
            Event::Start(start) => {
                let name = start.local_name();
                open.start(name.as_ref(), mark(name.as_ref()), sink)?;
            }
            Event::End(end) => open.end(end.local_name().as_ref(), sink)?,
            Event::Text(text) if open.is_text() => write(&text.xml10_content(), white_space, sink)?,
            Event::CData(text) if open.is_text() => write(&text.xml10_content(), white_space, sink)?,
            Event::GeneralRef(reference) if open.is_text() => write_reference(&reference, sink)?,
            Event::Eof => return Ok(()),
            Event::Text(_) | Event::CData(_) | Event::GeneralRef(_) => {}
            Event::Empty(_) | Event::Comment(_) | Event::Decl(_) | Event::PI(_) | Event::DocType(_) => {}
        }
    }
}

/// Returns some attributes of every element called `element`, in the order of the file: those that `names` lists.
/// `element` is written without a prefix, and `names` are written with prefixes, as in `r:id`.
pub(super) fn attributes<const COUNT: usize>(
    xml: &[u8],
    element: &str,
    names: [&str; COUNT],
) -> Result<Vec<[Option<String>; COUNT]>, Stop> {
    let mut reader = reader(xml);
    let mut buffer = Vec::new();
    let mut found = Vec::new();
    loop {
        buffer.clear();
        match reader.read_event_into(&mut buffer).map_err(Stop::unreadable)? {
            Event::Start(start) if start.local_name().as_ref() == element => {
                found.push(names.map(|name| {
                    let attribute = start.try_get_attribute(name).ok().flatten()?;
                    attribute.normalized_value(XmlVersion::Implicit1_0).ok().map(String::from)
                }));
            }
            Event::Eof => return Ok(found),
            _ => {}
        }
    }
}

fn reader(xml: &[u8]) -> Reader<&[u8]> {
    let mut reader = Reader::from_reader(xml);
    let config = reader.config_mut();
    config.expand_empty_elements = true;
    // End tags need not match start tags. Many files that claim to be XHTML are malformed in this way, but their text
    // is still useful.
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.allow_dangling_amp = true;
    reader
}

#[derive(Default)]
struct OpenElements {
    elements: Vec<(String, Mark)>,
    notes: Vec<Part>,
    texts: usize,
    cells: usize,
    skips: usize,
}

impl OpenElements {
    fn is_text(&self) -> bool {
        self.texts > 0 && self.skips == 0
    }

    fn start(&mut self, name: &str, mark: Mark, sink: &mut Sink) -> Result<(), Stop> {
        if self.elements.len() == MAX_DEPTH {
            return Err(Stop::unreadable("elements are nested too deeply"));
        }
        self.elements.push((name.to_owned(), mark));
        match mark {
            Mark::Skip => self.skips += 1,
            Mark::Text => self.texts += 1,
            Mark::Cell => self.cells += 1,
            Mark::Line | Mark::TextLine | Mark::Row | Mark::Tab | Mark::Space | Mark::Break => {}
            Mark::Notes | Mark::Other => {}
        }
        if mark == Mark::TextLine {
            self.texts += 1;
        }
        if self.skips > 0 {
            return Ok(());
        }
        match mark {
            Mark::Line | Mark::TextLine | Mark::Row => self.part_lines(sink)?,
            Mark::Tab => sink.write_char('\t')?,
            Mark::Space => sink.write_char(' ')?,
            Mark::Break if self.cells > 0 => sink.space()?,
            Mark::Break => sink.write_char('\n')?,
            Mark::Notes => self.notes.push(sink.open_part(NOTES)?),
            Mark::Text | Mark::Cell | Mark::Skip | Mark::Other => {}
        }
        Ok(())
    }

    /// Ends the innermost open element with this name, and all elements that are still open inside this element. Does
    /// nothing if no element with this name is open.
    fn end(&mut self, name: &str, sink: &mut Sink) -> Result<(), Stop> {
        let Some(depth) = self.elements.iter().rposition(|(open, _)| open == name) else {
            return Ok(());
        };
        for (_, mark) in self.elements.split_off(depth).into_iter().rev() {
            self.end_one(mark, sink)?;
        }
        Ok(())
    }

    fn end_one(&mut self, mark: Mark, sink: &mut Sink) -> Result<(), Stop> {
        match mark {
            Mark::Skip => self.skips -= 1,
            Mark::Text | Mark::TextLine => self.texts -= 1,
            Mark::Cell => self.cells -= 1,
            Mark::Line | Mark::Row | Mark::Tab | Mark::Space | Mark::Break | Mark::Notes | Mark::Other => {}
        }
        if self.skips > 0 {
            return Ok(());
        }
        match mark {
            Mark::Line | Mark::TextLine | Mark::Row => self.part_lines(sink)?,
            Mark::Cell => sink.write_char('\t')?,
            Mark::Notes => self.notes.pop().map_or(Ok(()), |part| sink.close_part(part))?,
            Mark::Text | Mark::Tab | Mark::Space | Mark::Break | Mark::Skip | Mark::Other => {}
        }
        Ok(())
    }

    fn part_lines(&self, sink: &mut Sink) -> Result<(), Stop> {
        if self.cells > 0 { Ok(sink.space()?) } else { Ok(sink.fresh_line()?) }
    }
}

fn write(text: &str, white_space: WhiteSpace, sink: &mut Sink) -> Result<(), Stop> {
    match white_space {
        WhiteSpace::Kept => Ok(sink.write_str(text)?),
        WhiteSpace::Collapsed => Ok(sink.write_collapsed(text)?),
    }
}

fn write_reference(reference: &BytesRef<'_>, sink: &mut Sink) -> Result<(), Stop> {
    if let Ok(Some(character)) = reference.resolve_char_ref() {
        return Ok(sink.write_char(character)?);
    }
    let name: &str = reference;
    match (resolve_predefined_entity(name), name) {
        (Some(text), _) => Ok(sink.write_str(text)?),
        (None, "nbsp") => Ok(sink.write_char(' ')?),
        (None, name) => Ok(write!(sink, "&{name};")?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(xml: &str, white_space: WhiteSpace, expect: &str) {
        let mark = |element: &str| match element {
            "t" => Mark::Text,
            "p" => Mark::Line,
            "h" => Mark::TextLine,
            "tr" => Mark::Row,
            "tc" => Mark::Cell,
            "tab" => Mark::Tab,
            "br" => Mark::Break,
            "no" => Mark::Skip,
            "notes" => Mark::Notes,
            _ => Mark::Other,
        };
        let mut sink = Sink::new(1_000);
        write_text(xml.as_bytes(), white_space, mark, &mut sink).unwrap();
        assert_eq!(sink.into_text(), expect);
    }

    #[test]
    fn only_text_elements_hold_text() {
        check("<d>x<p>y<t>a</t>z<t>b</t></p><p><t>c</t></p></d>", WhiteSpace::Kept, "ab\nc");
        check("<w:d xmlns:w='w'><w:p><w:t>a </w:t><w:t>b</w:t></w:p></w:d>", WhiteSpace::Kept, "a b");
        check("<t>a<no><t>b</t><p/></no>c</t>", WhiteSpace::Kept, "ac");
        check("<h>a</h><h>b</h>", WhiteSpace::Kept, "a\nb");
        check("<t><![CDATA[a<b]]></t>", WhiteSpace::Kept, "a<b");
    }

    #[test]
    fn cells_stay_on_the_line_of_their_row() {
        let table = "<tr><tc><h>a</h><h>b</h></tc><tc><h>c</h></tc></tr><tr><tc><h>d</h></tc></tr>";
        check(table, WhiteSpace::Kept, "a b \tc \t\nd");
    }

    #[test]
    fn notes_are_marked() {
        check(
            "<h>a</h><notes><h>b</h></notes><h>c</h><notes><h/></notes>",
            WhiteSpace::Kept,
            "a\n<notes>\nb\n</notes>\nc",
        );
        check("<no><notes><h>b</h></notes></no><h>c</h>", WhiteSpace::Kept, "c");
    }

    #[test]
    fn deep_elements_are_refused() {
        let deep = "<a>".repeat(MAX_DEPTH + 1);
        let outcome = write_text(deep.as_bytes(), WhiteSpace::Kept, |_| Mark::Other, &mut Sink::new(10));
        assert!(matches!(outcome, Err(Stop::Unreadable(_))), "{outcome:?}");
    }

    #[test]
    fn entities_are_resolved_but_never_expanded() {
        check("<t>a &amp; b&#x4E2D;&#25991;&nbsp;&lt;</t>", WhiteSpace::Kept, "a & b中文 <");
        check("<!DOCTYPE d [<!ENTITY x 'boom'>]><t>&x;</t>", WhiteSpace::Kept, "&x;");
    }

    #[test]
    fn white_space_is_text_or_layout() {
        check("<t> a  <i>b</i>\n c</t>", WhiteSpace::Collapsed, "a b c");
        check("<t>a  b<tab/>c<br/>d</t>", WhiteSpace::Kept, "a  b\tc\nd");
    }

    #[test]
    fn sloppy_markup_is_read_all_the_same() {
        check("<t>a<p>b</i></p> & c", WhiteSpace::Collapsed, "a\nb\n& c");
    }
}
