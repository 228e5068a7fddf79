//! Finds base64 and hexadecimal in a text. The time that the search takes depends only on the length of the text.

use super::hex;
use super::known::{BEGINNING, HEAD, begins_file, is_known, may_begin_file};
use super::stream::{LINE, LONG, Segment, Stream, gap};
use super::symbol::{Symbol, symbol};
use super::{Written, head};
use std::ops::Range;

/// [`is_known`] examines the first [`HEAD`] bytes of a file. This is the number of base64 digits that encode them.
const HEAD_DIGITS: usize = HEAD.div_ceil(3) * 4;

/// Maximum length of a gap between two pieces of the same base64, in bytes.
const NEAR: usize = 48;

/// Maximum number of bytes from the `data:` of a data URL to the beginning of its data.
const URL_HEAD: usize = 200;

/// At places that look like the beginning of a file, the search decodes bytes to find out whether a file begins there.
/// It may decode only a limited number of bytes for this: `PATIENCE` times the length of the text, plus
/// `LEAST_PATIENCE`. Only a text that was made to slow down the search comes near this limit.
const PATIENCE: usize = 16;
const LEAST_PATIENCE: usize = 1 << 16;

/// Binary data that were found in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Found {
    /// The part of the text that contains the data.
    pub(super) range: Range<usize>,
    pub(super) written: Written,
}

/// Finds all binary data in a text, in order: every data URL, and every file of a known kind in base64 or
/// hexadecimal.
pub(super) fn find(text: &str) -> Vec<Found> {
    if text.len() < LONG {
        return Vec::new();
    }
    let mut search =
        Search { text: text.as_bytes(), patience: text.len() * PATIENCE + LEAST_PATIENCE, found: Vec::new() };
    search.base64();
    search.hexadecimal();
    search.found.sort_by_key(|found| found.range.start);
    search.found
}

/// Whether a line of digits is the first line of its base64 or a later line. Some formats have a late signature, so
/// many bytes must be decoded to find it. To do this for every line would take too long, so the search looks for a late
/// signature only in first lines.
#[derive(Clone, Copy)]
enum Standing {
    First,
    NextLine,
}

struct Search<'t> {
    text: &'t [u8],
    patience: usize,
    found: Vec<Found>,
}

/// The place in a text at which binary data begin.
struct Place {
    /// Where the text to replace begins. For a data URL, this is the place of its prefix `data:`.
    from: usize,
    /// Where the base64 begins.
    start: usize,
    /// The MIME type that the data URL declares.
    mime: Option<String>,
}

impl Search<'_> {
    fn base64(&mut self) {
        let mut at = 0;
        let mut line_end = None;
        while let Some((what, length)) = symbol(self.text, at) {
            if !matches!(what, Symbol::Digit(_)) {
                at += length;
                continue;
            }
            let segment = Segment::look(self.text, at, usize::MAX);
            let standing = match line_end {
                Some(end) if gap(self.text, end) == Some(at) => Standing::NextLine,
                Some(_) | None => Standing::First,
            };
            line_end = (segment.length() >= LINE).then_some(segment.end());
            at = match self.place(at, &segment, standing) {
                Some(Place { from, start, mime }) => {
                    let stream = self.whole(start);
                    let range = from..stream.end;
                    line_end = None;
                    self.found.push(Found { range, written: Written { bytes: stream.bytes(), mime } });
                    at.max(self.found.last().map_or(at, |found| found.range.end))
                }
                None => segment.end(),
            };
        }
    }

    /// `segment` is the run of digits that begins at `start`. Returns the place where a file or a data URL begins in
    /// this run.
    fn place(&mut self, start: usize, segment: &Segment, standing: Standing) -> Option<Place> {
        if segment.length() < LINE {
            return None;
        }
        if let Some((from, mime)) = url_before(self.text, start)
            && Stream::read(self.text, start, LONG).digits.len() >= LONG
        {
            return Some(Place { from, start, mime });
        }
        if self.begins(start, standing) {
            return Some(Place { from: start, start, mime: None });
        }
        // A model may write other characters directly before the bytes, so the search tries every place of the
        // segment.
        let mut at = start;
        while at < segment.end() {
            if self.may_begin(at) && self.begins(at, Standing::NextLine) {
                return Some(Place { from: at, start: at, mime: None });
            }
            at += symbol(self.text, at).map_or(1, |(_, length)| length);
        }
        None
    }

    fn may_begin(&self, at: usize) -> bool {
        let digits = |most| Stream::read(self.text, at, most).bytes();
        // The first two digits determine the first byte. Check this byte first, because few bytes can begin a known
        // file.
        let first = match (symbol(self.text, at), symbol(self.text, at + 1)) {
            (Some((Symbol::Digit(first), 1)), Some((Symbol::Digit(second), 1))) => byte_of(first, second),
            _ => digits(2).first().copied(),
        };
        first.is_some_and(may_begin_file) && begins_file(&digits(BEGINNING.div_ceil(3) * 4))
    }

    /// Returns whether base64 of a file of a known kind begins at `start`.
    fn begins(&mut self, start: usize, standing: Standing) -> bool {
        if self.patience == 0 {
            return false;
        }
        let beginning = Stream::read(self.text, start, LONG);
        self.patience = self.patience.saturating_sub(LONG);
        if beginning.digits.len() < LONG {
            return false;
        }
        if is_known(&beginning.bytes()) {
            return true;
        }
        match standing {
            Standing::First => {
                let head = Stream::read(self.text, start, HEAD_DIGITS);
                self.patience = self.patience.saturating_sub(head.digits.len());
                is_known(&head.bytes())
            }
            Standing::NextLine => false,
        }
    }

    /// Reads all base64 that begins at `start`. If another long run of digits follows within [`NEAR`] bytes, the `end`
    /// of the returned stream is the end of that run. But a run that consists of words, or that begins another file, is
    /// not included.
    fn whole(&mut self, start: usize) -> Stream {
        let mut stream = Stream::read(self.text, start, usize::MAX);
        while let Some(end) = self.rest_behind(stream.end) {
            stream.end = end;
        }
        stream
    }

    fn rest_behind(&mut self, start: usize) -> Option<usize> {
        let mut at = start;
        while at < start + NEAR {
            let (what, length) = symbol(self.text, at)?;
            if !matches!(what, Symbol::Digit(_)) {
                at += length;
                continue;
            }
            let segment = Segment::look(self.text, at, usize::MAX);
            if segment.length() >= LONG {
                let is_rest = segment.is_mixed() && self.place(at, &segment, Standing::First).is_none();
                return is_rest.then_some(segment.end());
            }
            at = segment.end();
        }
        None
    }

    fn hexadecimal(&mut self) {
        let taken: Vec<Range<usize>> = self.found.iter().map(|found| found.range.clone()).collect();
        let mut taken = taken.into_iter().peekable();
        let mut at = 0;
        while at < self.text.len() {
            if let Some(range) = taken.next_if(|range| range.start <= at) {
                at = range.end;
                continue;
            }
            let until = taken.peek().map_or(self.text.len(), |range| range.start);
            match self.hexadecimal_at(at, until) {
                Some(found) => {
                    at = found.range.end;
                    self.found.push(found);
                }
                None => at += 1,
            }
        }
    }

    fn hexadecimal_at(&mut self, start: usize, until: usize) -> Option<Found> {
        let text = self.text.get(..until)?;
        if !hex::first(text, start).is_some_and(may_begin_file) {
            return None;
        }
        let beginning = hex::read(text, start, BEGINNING);
        if !begins_file(&beginning.bytes) {
            return None;
        }
        self.patience = self.patience.checked_sub(HEAD)?;
        let head = hex::read(text, start, HEAD);
        if !head.is_long() || !is_known(&head.bytes) {
            return None;
        }
        let whole = hex::read(text, start, usize::MAX);
        let from = hex::with_prefix(text, start);
        Some(Found { range: from..whole.end, written: Written { bytes: whole.bytes, mime: None } })
    }
}

/// Returns the first decoded byte, which the first two base64 digits determine.
fn byte_of(first: u8, second: u8) -> Option<u8> {
    Some(value(first)? << 2 | value(second)? >> 4)
}

/// Returns the value of a base64 digit.
fn value(digit: u8) -> Option<u8> {
    Some(match digit {
        b'A'..=b'Z' => digit - b'A',
        b'a'..=b'z' => digit - b'a' + 26,
        b'0'..=b'9' => digit - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// Returns the beginning and the MIME type of the data URL whose data begin at `start`.
fn url_before(text: &[u8], start: usize) -> Option<(usize, Option<String>)> {
    let before = text.get(..start)?;
    if !before.ends_with(b";base64,") {
        return None;
    }
    let window = before.get(start.saturating_sub(URL_HEAD)..)?;
    let from = start - window.len() + window.windows(5).rposition(|five| five == b"data:")?;
    // The range begins and ends next to ASCII characters, so it is valid UTF-8.
    let url = std::str::from_utf8(text.get(from..start)?).ok()?;
    head(url).map(|(mime, _)| (from, mime))
}
