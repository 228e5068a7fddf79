//! Reads bytes in hexadecimal: in one run, or with separators as in `89 50`, `89:50`, `0x89, 0x50`, `\x89\x50`,
//! `%89%50`.

use super::symbol::{Symbol, symbol};

/// A run of hexadecimal digits counts as bytes only if it has at least this many digits.
const LONG_RUN: usize = 64;

/// A list of pairs of digits with separators counts as bytes only if it has at least this many pairs. A shorter list is
/// probably an example in a text, such as the signature of a format.
const MANY_BYTES: usize = 65;

/// Maximum length of the separator between two pairs of digits, in bytes. A separator may contain the end of a line
/// and the indentation of the next line.
const GAP: usize = 48;

/// Maximum length of the prefix before a pair of digits, in bytes. The prefix `\x` can become longer: when a text
/// becomes a JSON string, each of its backslashes is doubled, and this can happen several times.
const LONGEST_PREFIX: usize = 20;

/// Bytes in hexadecimal, and the place in the text where they end.
pub(super) struct Hex {
    pub(super) bytes: Vec<u8>,
    pub(super) end: usize,
    /// The number of digits in the longest run without separators.
    longest_run: usize,
}

impl Hex {
    /// Returns whether there are enough bytes. Fewer bytes are probably only an example in a text, such as the
    /// signature of a format.
    pub(super) fn is_long(&self) -> bool {
        self.longest_run >= LONG_RUN || self.bytes.len() >= MANY_BYTES
    }
}

/// Returns the byte whose two digits are at `at`.
pub(super) fn first(text: &[u8], at: usize) -> Option<u8> {
    let digit = |at: usize| text.get(at).and_then(|digit| char::from(*digit).to_digit(16));
    u8::try_from(digit(at)? << 4 | digit(at + 1)?).ok()
}

/// Reads the bytes that begin at `start`, at most `most` of them.
pub(super) fn read(text: &[u8], start: usize, most: usize) -> Hex {
    let mut hex = Hex { bytes: Vec::new(), end: start, longest_run: 0 };
    let mut run = 0;
    while hex.bytes.len() < most {
        let next = if first(text, hex.end).is_some() {
            hex.end
        } else {
            run = 0;
            match next(text, hex.end) {
                Some(next) => next,
                None => break,
            }
        };
        let Some(byte) = first(text, next) else { break };
        hex.bytes.push(byte);
        hex.end = next + 2;
        run += 2;
        hex.longest_run = hex.longest_run.max(run);
    }
    hex
}

/// Returns where the digits of the next byte begin: at `start`, or after a separator and a prefix.
fn next(text: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    loop {
        let prefix = prefix(text, at);
        if prefix > 0 {
            return Some(at + prefix);
        }
        if at > start && first(text, at).is_some() {
            return Some(at);
        }
        let length = match symbol(text, at)? {
            (Symbol::Break | Symbol::Between, length) => length,
            _ if matches!(text.get(at), Some(b':' | b'-' | b';' | b'+' | b'/')) => 1,
            _ => return None,
        };
        at += length;
        if at - start > GAP {
            return None;
        }
    }
}

/// Returns the length of a prefix such as `\x` if two digits follow it; otherwise 0.
fn prefix(text: &[u8], at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let length = match rest.get(slashes..).unwrap_or_default() {
        [b'x', ..] if slashes > 0 => slashes + 1,
        [b'u', b'0', b'0', ..] if slashes > 0 => slashes + 3,
        [b'0', b'x' | b'X', ..] | [b'#', b'x', ..] if slashes == 0 => 2,
        [b'&', b'#', b'x', ..] if slashes == 0 => 3,
        [b'%', ..] if slashes == 0 => 1,
        _ => return 0,
    };
    if first(text, at + length).is_some() { length } else { 0 }
}

/// Returns where the prefix of the digits at `start` begins. Returns `start` if the digits have no prefix.
pub(super) fn with_prefix(text: &[u8], start: usize) -> usize {
    let longest = start.min(LONGEST_PREFIX);
    let begins = (1..=longest).rev().map(|length| start - length);
    begins.clone().find(|at| prefix(text, *at) == start - at).unwrap_or(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_however_they_are_separated() {
        for text in [
            "89504e470d",
            "89504E470D",
            "89 50 4e 47 0d",
            "89:50:4e:47:0d",
            "8950 4e47 0d",
            "0x89, 0x50, 0x4E, 0x47, 0x0D",
            "\\x89\\x50\\x4e\\x47\\x0d",
            "\\\\x89\\\\x50\\\\x4e\\\\x47\\\\x0d",
            "%89%50%4e%47%0d",
            "89504e\n  470d",
            "89504e\\n470d",
        ] {
            let start = text.find('8').unwrap();
            let hex = read(text.as_bytes(), start, usize::MAX);
            assert_eq!((hex.bytes.as_slice(), hex.end), (b"\x89PNG\r".as_slice(), text.len()), "{text}");
            assert_eq!(with_prefix(text.as_bytes(), start), 0, "{text}");
        }
        assert_eq!(read(b"8950 and more", 0, usize::MAX).end, 4);
        assert_eq!(read(b"8950 bed", 0, usize::MAX).bytes, [0x89, 0x50, 0xbe]);
    }
}
