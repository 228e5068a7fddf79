//! Reads base64 from a text. The base64 may be one run or several lines. The lines may be indented, quoted, or
//! separate strings.

use super::LENIENT;
use super::known::{BEGINNING, begins_file};
use super::symbol::{Symbol, symbol};
use base64::Engine;

/// If a line has fewer digits than this, the base64 does not continue on the next line.
pub(super) const LINE: usize = 16;

/// A run of at least this many digits always continues the base64 before it, even if the run looks like a word.
pub(super) const LONG: usize = 64;

/// Maximum number of bytes between two lines of the same base64.
const GAP: usize = 64;
/// Maximum number of line ends between two lines of the same base64. `\r\n` counts as two.
const GAP_BREAKS: usize = 4;

/// Digits of base64, and the place in the text where they end.
pub(super) struct Stream {
    /// The digits, in the standard alphabet, without padding.
    pub(super) digits: Vec<u8>,
    /// Where the base64 and its padding end in the text.
    pub(super) end: usize,
}

impl Stream {
    /// Reads the base64 that begins at `start`, but at most `most` digits.
    pub(super) fn read(text: &[u8], start: usize, most: usize) -> Self {
        let mut stream = Self { digits: Vec::new(), end: start };
        let mut at = start;
        let mut last_gap = None;
        loop {
            let before = stream.digits.len();
            while let Some((Symbol::Digit(digit), length)) = symbol(text, at) {
                stream.digits.push(digit);
                at += length;
                stream.end = at;
                if stream.digits.len() >= most {
                    return stream;
                }
            }
            if let Some((Symbol::Pad, _)) = symbol(text, at) {
                stream.end = behind_padding(text, at);
                return stream;
            }
            let line = stream.digits.len() - before;
            let Some(next) = gap(text, at) else { return stream };
            let apart = text.get(at..next).unwrap_or_default();
            let segment = Segment::look(text, next, line.max(LONG) + 1);
            let repeated = if last_gap == Some(apart) { Repeated::Yes } else { Repeated::No };
            if !goes_on(line, stream.digits.len(), apart, repeated, &segment)
                || begins_file(&beginning(text, next))
            {
                return stream;
            }
            last_gap = Some(apart);
            at = next;
        }
    }

    /// Decodes the digits. Drops a single digit that is left at the end, because a single digit encodes no byte.
    pub(super) fn bytes(mut self) -> Vec<u8> {
        if self.digits.len() % 4 == 1 {
            self.digits.pop();
        }
        // Cannot fail: `digits` contains only digits of base64, and their number is valid after the `pop` above.
        LENIENT.decode(self.digits).unwrap_or_default()
    }
}

fn behind_padding(text: &[u8], mut at: usize) -> usize {
    while let Some((Symbol::Pad, length)) = symbol(text, at) {
        at += length;
    }
    at
}

/// Returns where the next digits begin. Returns `None` if other characters than line ends and separators come before
/// them, or too many of these.
pub(super) fn gap(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    let mut breaks = 0;
    loop {
        let (what, length) = symbol(text, at)?;
        match what {
            Symbol::Break => breaks += 1,
            Symbol::Between => {}
            // `+` and `/` are digits of base64. But between two lines, `+` may also join two strings in source code,
            // and `/` may begin a comment.
            Symbol::Digit(b'+' | b'/') if at > start => match joint(text, at) {
                Some(behind) => {
                    at = behind;
                    continue;
                }
                None => return Some(at),
            },
            Symbol::Digit(_) => return (at > start).then_some(at),
            Symbol::Pad | Symbol::Other => return None,
        }
        at += length;
        if at - start > GAP || breaks > GAP_BREAKS {
            return None;
        }
    }
}

/// Decides whether a run of `+` and `/` at `start` is source code or base64. In source code, a `+` may join two
/// strings, and slashes may begin a comment. The run is source code if it has one to three characters, and a blank, a
/// quotation mark, a backslash or a line end follows. Returns the end of a run that is source code, and `None` for
/// base64.
fn joint(text: &[u8], start: usize) -> Option<usize> {
    let rest = text.get(start..)?;
    let length = rest.iter().take_while(|byte| matches!(byte, b'+' | b'/')).count();
    let is_apart = matches!(rest.get(length), Some(b' ' | b'\n' | b'\r' | b'"' | b'\'' | b'\\'));
    (matches!(length, 1..=3) && is_apart).then_some(start + length)
}

/// A run of digits without other characters between the digits.
pub(super) struct Segment {
    length: usize,
    upper: bool,
    lower: bool,
    numeral: bool,
    /// The number of padding characters after the digits.
    padding: usize,
    /// Whether the line or the string ends directly after the digits. Then no words follow the digits.
    stands_alone: bool,
    end: usize,
}

impl Segment {
    /// Examines the digits from `start` on, but at most `most` digits.
    pub(super) fn look(text: &[u8], start: usize, most: usize) -> Self {
        let mut seen = Self {
            length: 0,
            upper: false,
            lower: false,
            numeral: false,
            padding: 0,
            stands_alone: false,
            end: start,
        };
        while let Some((what, length)) = symbol(text, seen.end) {
            match what {
                Symbol::Digit(digit) if seen.length < most => {
                    seen.upper |= digit.is_ascii_uppercase();
                    seen.lower |= digit.is_ascii_lowercase();
                    seen.numeral |= digit.is_ascii_digit();
                    seen.length += 1;
                    seen.end += length;
                }
                _ => break,
            }
        }
        let mut at = seen.end;
        while let Some((Symbol::Pad, length)) = symbol(text, at) {
            seen.padding += 1;
            at += length;
        }
        let behind = text.get(seen.end);
        seen.stands_alone = behind.is_none_or(|byte| b"\n\r\"'\\)],".contains(byte));
        seen
    }

    pub(super) fn length(&self) -> usize {
        self.length
    }

    pub(super) fn end(&self) -> usize {
        self.end
    }

    /// Returns whether the run contains capitals, small letters and numerals. A long run of base64 contains all three,
    /// unless the encoded data are very regular.
    pub(super) fn is_mixed(&self) -> bool {
        self.upper && self.lower && self.numeral
    }
}

/// Decodes the first bytes of the digits at `start`. Stops at the end of the line.
fn beginning(text: &[u8], start: usize) -> Vec<u8> {
    let digits = BEGINNING.div_ceil(3) * 4;
    let mut stream = Stream { digits: Vec::with_capacity(digits), end: start };
    while let Some((Symbol::Digit(digit), length)) = symbol(text, stream.end)
        && stream.digits.len() < digits
    {
        stream.digits.push(digit);
        stream.end += length;
    }
    stream.bytes()
}

/// Whether a gap between two lines is the same as the gap before it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeated {
    Yes,
    No,
}

/// Returns whether the digits of the next line continue the base64. `all` is the number of digits of the base64 so
/// far, and `line` is the number of digits on its last line.
fn goes_on(line: usize, all: usize, gap: &[u8], repeated: Repeated, next: &Segment) -> bool {
    let is_line = next.length == line || next.length >= LONG;
    let is_padded = next.padding > 0 && (all + next.length + next.padding).is_multiple_of(4);
    let is_end = repeated == Repeated::Yes && next.stands_alone;
    // After quotation marks or a comma, the next digits may be a name or another string.
    let may_be_name = repeated == Repeated::No && gap.iter().any(|byte| matches!(byte, b'"' | b'\'' | b','));
    let looks_so = next.length >= 4 && next.is_mixed() || next.length >= LINE && next.upper || is_padded;
    line >= LINE && (is_line || is_end || looks_so && !may_be_name)
}
