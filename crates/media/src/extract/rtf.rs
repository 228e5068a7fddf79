//! RTF: text between braces and control words. Each font may specify its own code page.

mod charset;

mod words;

use std::collections::HashMap;
use std::fmt::Write as _;

use encoding_rs::{Encoding, WINDOWS_1252};

use self::charset::{encoding_of_charset, encoding_of_page};
use self::words::{Meaning, meaning};
use super::sink::Sink;
use super::{Completeness, Stop};

/// Maximum depth of nested groups. In real files, the depth stays below a hundred.
const MAX_DEPTH: usize = 10_000;

/// Reads the text of the document, without headers, footers, hidden text and deleted text.
///
/// Footnotes are written in brackets at their place in the text. If the file ends too early, all text up to the end of
/// the file is written.
pub(super) fn read(bytes: &[u8], sink: &mut Sink) -> Result<Completeness, Stop> {
    let bytes = bytes.trim_ascii_start();
    if !bytes.starts_with(b"{\\rtf") {
        return Err(Stop::unreadable("the file does not begin with the header of RTF"));
    }
    let mut document = Document {
        sink,
        groups: Vec::new(),
        now: Group::default(),
        page: WINDOWS_1252,
        fonts: HashMap::new(),
        default_font: None,
        run: Vec::new(),
        high_half: None,
        to_skip: 0,
    };
    let mut rest = bytes;
    while let Some((&byte, after)) = rest.split_first() {
        rest = match byte {
            b'{' => document.open().map(|()| after)?,
            b'}' => {
                document.close()?;
                if document.groups.is_empty() {
                    return Ok(Completeness::Whole);
                }
                after
            }
            b'\\' => document.control(after)?,
            b'\r' | b'\n' => after,
            byte => document.byte(byte).map(|()| after)?,
        };
    }
    document.end_run()?;
    Ok(Completeness::PartsUnreadable)
}

struct Document<'a> {
    sink: &'a mut Sink,
    /// For each open group, the state before this group began. When the group closes, this state applies again.
    groups: Vec<Group>,
    now: Group,
    /// The code page of text whose font specifies no code page.
    page: &'static Encoding,
    fonts: HashMap<i32, &'static Encoding>,
    default_font: Option<i32>,
    /// Bytes that are not decoded yet. A character may consist of several bytes, each written as `\'` and two digits.
    run: Vec<u8>,
    /// The first half of a surrogate pair, until its second half is read.
    high_half: Option<u16>,
    /// Number of characters still to skip. These characters are the substitute for a Unicode character, which was
    /// already read. Only programs that do not know Unicode show the substitute.
    to_skip: u32,
}

/// The state that control words can change within a group. At the end of the group, the earlier state applies again.
#[derive(Clone, Copy)]
struct Group {
    place: Place,
    shown: Shown,
    font: Option<i32>,
    /// Number of substitute characters after each Unicode character.
    stand_ins: u32,
}

/// Where a group's text goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Text,
    /// The text goes into the text of the document. The end of the group adds a closing bracket.
    Footnote,
    /// The group lists the fonts. Its text, the names of the fonts, is dropped. Only the character sets of the fonts
    /// matter.
    Fonts,
    /// The group belongs to an extension of RTF. Programs that do not know the extension ignore the group, except for
    /// some of the groups inside it.
    Extension,
    /// The group contains a text twice: first without Unicode, then with Unicode in a group inside it.
    Twice,
    Nowhere,
}

/// Whether the text is hidden or deleted, so that it does not appear on the printed page.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Shown {
    hidden: bool,
    deleted: bool,
}

impl Default for Group {
    fn default() -> Self {
        Self { place: Place::Text, shown: Shown { hidden: false, deleted: false }, font: None, stand_ins: 1 }
    }
}

impl Group {
    fn is_text(self) -> bool {
        matches!(self.place, Place::Text | Place::Footnote) && !self.shown.hidden && !self.shown.deleted
    }
}

impl Document<'_> {
    fn open(&mut self) -> Result<(), Stop> {
        self.end_run()?;
        self.to_skip = 0;
        if self.groups.len() == MAX_DEPTH {
            return Err(Stop::unreadable("groups are nested too deeply"));
        }
        self.groups.push(self.now);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Stop> {
        self.end_run()?;
        self.to_skip = 0;
        let Some(outside) = self.groups.pop() else { return Ok(()) };
        let is_end_of_note = self.now.place == Place::Footnote && outside.place != Place::Footnote;
        self.now = outside;
        if is_end_of_note {
            self.write(']')?;
        }
        Ok(())
    }

    /// Collects a byte of text, or skips it if it belongs to a substitute.
    fn byte(&mut self, byte: u8) -> Result<(), Stop> {
        if self.to_skip > 0 {
            self.to_skip -= 1;
            return Ok(());
        }
        if self.now.is_text() {
            self.high_half = None;
            self.run.push(byte);
        }
        Ok(())
    }

    /// Decodes and writes the bytes that were collected.
    fn end_run(&mut self) -> Result<(), Stop> {
        if self.run.is_empty() {
            return Ok(());
        }
        let font = self.now.font.and_then(|font| self.fonts.get(&font).copied());
        let (text, _) = font.unwrap_or(self.page).decode_without_bom_handling(&self.run);
        text.chars().try_for_each(|character| write_visible(self.sink, character))?;
        self.run.clear();
        Ok(())
    }

    fn write(&mut self, character: char) -> Result<(), Stop> {
        self.end_run()?;
        if self.now.is_text() {
            write_visible(self.sink, character)?;
        }
        Ok(())
    }

    /// Handles the control word or symbol after a backslash, and returns the bytes after it.
    fn control<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Stop> {
        let Some((&first, after)) = bytes.split_first() else { return Ok(bytes) };
        if first.is_ascii_alphabetic() {
            return self.word(bytes);
        }
        match first {
            b'\'' => {
                let Some((digits, after)) = after.split_at_checked(2) else { return Ok(&[]) };
                if let Some(byte) = hex(digits) {
                    self.byte(byte)?;
                }
                return Ok(after);
            }
            b'{' | b'}' | b'\\' => self.byte(first)?,
            b'*' if self.now.place != Place::Nowhere => {
                self.end_run()?;
                self.now.place = Place::Extension;
            }
            // `\~` is a non-breaking space, and `\_` is a non-breaking hyphen.
            b'~' => self.stand_in_or_write(' ')?,
            b'_' => self.stand_in_or_write('-')?,
            b'\r' | b'\n' => self.write('\n')?,
            _ => {}
        }
        Ok(after)
    }

    fn word<'a>(&mut self, bytes: &'a [u8]) -> Result<&'a [u8], Stop> {
        let length = bytes.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        let (word, rest) = bytes.split_at(length);
        let sign = usize::from(rest.first() == Some(&b'-'));
        let digits = rest.iter().skip(sign).take_while(|byte| byte.is_ascii_digit()).count();
        let (number, rest) = if digits == 0 { (&[][..], rest) } else { rest.split_at(sign + digits) };
        // The space after a control word only ends the word and is not text.
        let rest = rest.strip_prefix(b" ").unwrap_or(rest);
        let number: Option<i32> = std::str::from_utf8(number).ok().and_then(|number| number.parse().ok());
        let meaning = std::str::from_utf8(word).map_or(Meaning::Nothing, meaning);
        if meaning == Meaning::Binary {
            let length = usize::try_from(number.unwrap_or(0)).unwrap_or(0);
            return Ok(rest.get(length..).unwrap_or_default());
        }
        // The word may change the code page, so the bytes before the word are decoded first.
        self.end_run()?;
        self.obey(meaning, number)?;
        Ok(rest)
    }

    fn obey(&mut self, meaning: Meaning, number: Option<i32>) -> Result<(), Stop> {
        let is_on = number != Some(0);
        match meaning {
            Meaning::Character(character) => self.stand_in_or_write(character)?,
            Meaning::Line if self.now.is_text() => self.sink.write_char('\n')?,
            Meaning::Row if self.now.is_text() => self.sink.fresh_line()?,
            Meaning::Line | Meaning::Row | Meaning::Nothing | Meaning::Binary => {}
            Meaning::Unicode => self.unicode(number.unwrap_or(0))?,
            Meaning::StandIns => self.now.stand_ins = u32::try_from(number.unwrap_or(1)).unwrap_or(1),
            Meaning::CodePage => self.page = encoding_of_page(number).unwrap_or(self.page),
            Meaning::MacRoman => self.page = encoding_rs::MACINTOSH,
            Meaning::Fonts => self.now.place = Place::Fonts,
            Meaning::Font => self.now.font = number,
            Meaning::DefaultFont => (self.default_font, self.now.font) = (number, number),
            Meaning::FontCharset => self.set_font(encoding_of_charset(number)),
            Meaning::FontCodePage => self.set_font(encoding_of_page(number)),
            Meaning::Hidden => self.now.shown.hidden = is_on,
            Meaning::Deleted => self.now.shown.deleted = is_on,
            Meaning::Plain => (self.now.shown.hidden, self.now.font) = (false, self.default_font),
            Meaning::NoText => self.now.place = Place::Nowhere,
            Meaning::Twice if self.now.place == Place::Text => self.now.place = Place::Twice,
            Meaning::InUnicode if self.is_within(Place::Twice) => self.now.place = Place::Text,
            Meaning::Box if self.is_within(Place::Extension) => self.now.place = Place::Text,
            Meaning::Twice | Meaning::InUnicode | Meaning::Box => {}
            Meaning::Footnote if self.now.place == Place::Text => {
                self.now.place = Place::Footnote;
                self.write('[')?;
            }
            Meaning::Footnote => {}
        }
        Ok(())
    }

    /// Returns whether the text of the surrounding group goes to `place`.
    fn is_within(&self, place: Place) -> bool {
        self.groups.last().is_some_and(|outside| outside.place == place)
    }

    fn set_font(&mut self, encoding: Option<&'static Encoding>) {
        if let (Place::Fonts, Some(font), Some(encoding)) = (self.now.place, self.now.font, encoding) {
            self.fonts.insert(font, encoding);
        }
    }

    /// Writes the character that a control word stands for. Skips the character if the word is part of a substitute
    /// for a Unicode character. In a substitute, each control word counts as one character.
    fn stand_in_or_write(&mut self, character: char) -> Result<(), Stop> {
        if self.to_skip > 0 {
            self.to_skip -= 1;
            return Ok(());
        }
        self.write(character)
    }

    /// Reads a unit of UTF-16, which RTF writes as a signed number of 16 bits.
    fn unicode(&mut self, number: i32) -> Result<(), Stop> {
        self.to_skip = self.now.stand_ins;
        let unit = u16::try_from(number.rem_euclid(0x1_0000)).unwrap_or_default();
        let units = self.high_half.take().into_iter().chain([unit]);
        for character in char::decode_utf16(units) {
            match character {
                Ok(character) => self.write(character)?,
                Err(half) if (0xD800..0xDC00).contains(&half.unpaired_surrogate()) => {
                    self.high_half = Some(half.unpaired_surrogate());
                }
                Err(_) => {}
            }
        }
        Ok(())
    }
}

/// Writes a character, unless it is a control character other than tab and line feed.
fn write_visible(sink: &mut Sink, character: char) -> Result<(), Stop> {
    if character.is_control() && !matches!(character, '\t' | '\n') {
        return Ok(());
    }
    Ok(sink.write_char(character)?)
}

fn hex(digits: &[u8]) -> Option<u8> {
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

#[cfg(test)]
mod tests;
