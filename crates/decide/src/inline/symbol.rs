//! Reads a text as symbols. The text may be plain, escaped once or several times as in JSON strings, or percent-encoded
//! as in URLs. The symbols are the same in each case, so the search finds base64 in all these texts.

/// The meaning of one or more bytes of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Symbol {
    /// A digit of base64, in the standard alphabet.
    Digit(u8),
    /// The padding character `=`, which ends the base64.
    Pad,
    /// The end of a line.
    Break,
    /// A character that may separate two lines of the same base64: a blank, a quotation mark, a comma.
    Between,
    /// Any other character.
    Other,
}

/// Returns the symbol at `at`, and its length in bytes, which is at least 1. `None` after the end of the text.
pub(super) fn symbol(text: &[u8], at: usize) -> Option<(Symbol, usize)> {
    Some(match *text.get(at)? {
        b'\\' => escaped(text, at),
        b'%' => percent(text, at),
        byte => (plain(byte), 1),
    })
}

fn plain(byte: u8) -> Symbol {
    match byte {
        b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'+' | b'/' => Symbol::Digit(byte),
        b'-' => Symbol::Digit(b'+'),
        b'_' => Symbol::Digit(b'/'),
        b'=' => Symbol::Pad,
        b'\n' | b'\r' => Symbol::Break,
        b' ' | b'\t' | b'>' | b'|' | b'#' | b'*' | b'"' | b'\'' | b',' => Symbol::Between,
        _ => Symbol::Other,
    }
}

/// Reads an escape sequence. The sequence may begin with several backslashes, because a JSON text may contain another
/// JSON text as a string.
fn escaped(text: &[u8], at: usize) -> (Symbol, usize) {
    let rest = text.get(at..).unwrap_or_default();
    let slashes = rest.iter().take_while(|byte| **byte == b'\\').count();
    let rest = rest.get(slashes..).unwrap_or_default();
    let coded = |digits: usize| {
        let code = rest.get(1..=digits).and_then(hexadecimal);
        code.map_or((Symbol::Other, slashes), |code| (of_code(code), slashes + 1 + digits))
    };
    match rest.first() {
        Some(b'n' | b'r') => (Symbol::Break, slashes + 1),
        Some(b't' | b'"' | b'\'') => (Symbol::Between, slashes + 1),
        Some(b'/') => (Symbol::Digit(b'/'), slashes + 1),
        Some(b'u') => coded(4),
        Some(b'x') => coded(2),
        // A backslash at the end of a line joins this line and the next, as in source code.
        Some(b'\n' | b'\r') => (Symbol::Between, slashes),
        _ => (Symbol::Other, slashes),
    }
}

/// Reads a percent-encoded character: `%2B`, or `%252B` if the text was encoded twice.
fn percent(text: &[u8], at: usize) -> (Symbol, usize) {
    let mut start = at + 1;
    while text.get(start..start + 2) == Some(b"25") {
        start += 2;
    }
    match text.get(start..start + 2).and_then(hexadecimal) {
        Some(code) => (of_code(code), start + 2 - at),
        None => (Symbol::Other, 1),
    }
}

fn of_code(code: u32) -> Symbol {
    u8::try_from(code).map_or(Symbol::Other, plain)
}

fn hexadecimal(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |code: u32, digit| Some(code << 4 | char::from(*digit).to_digit(16)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn symbols() {
        let check = |text: &str, expect: Symbol, length: usize| {
            assert_eq!(symbol(text.as_bytes(), 0), Some((expect, length)), "{text}");
        };
        check("A", Symbol::Digit(b'A'), 1);
        check("-", Symbol::Digit(b'+'), 1);
        check("_", Symbol::Digit(b'/'), 1);
        check("\\/9j", Symbol::Digit(b'/'), 2);
        check("\\\\\\/9j", Symbol::Digit(b'/'), 4);
        check("\\u002b", Symbol::Digit(b'+'), 6);
        check("\\\\u002Fx", Symbol::Digit(b'/'), 7);
        check("%2Bx", Symbol::Digit(b'+'), 3);
        check("%252fx", Symbol::Digit(b'/'), 5);
        check("=", Symbol::Pad, 1);
        check("%3D", Symbol::Pad, 3);
        check("\\u003d", Symbol::Pad, 6);
        check("\n", Symbol::Break, 1);
        check("\\nAAAA", Symbol::Break, 2);
        check("\\\\nAAAA", Symbol::Break, 3);
        check("%0A", Symbol::Break, 3);
        check("\\\"", Symbol::Between, 2);
        check("\\\n", Symbol::Between, 1);
        check("> ", Symbol::Between, 1);
        check("%7B", Symbol::Other, 3);
        check("%", Symbol::Other, 1);
        check("\\", Symbol::Other, 1);
        check("\\u00", Symbol::Other, 1);
        check("图", Symbol::Other, 1);
        assert_eq!(symbol(b"", 0), None);
    }
}
