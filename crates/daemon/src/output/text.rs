//! Shortens texts and sizes so that they fit on one line.

use anstream::adapter::strip_str;
use unicode_width::UnicodeWidthChar;

/// Puts a text on one line and cuts it after this number of characters. Adds `…` if it was cut.
pub(crate) fn one_line(text: &str, characters: usize) -> String {
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match flat.char_indices().nth(characters) {
        Some((end, _)) => format!("{}…", &flat[..end]),
        None => flat,
    }
}

/// Formats a size in the largest unit that gives at least 1, such as `12.3 kB`.
pub(crate) fn bytes(size: u64) -> String {
    const UNITS: [(&str, u64); 3] = [("GB", 1_000_000_000), ("MB", 1_000_000), ("kB", 1_000)];
    match UNITS.into_iter().find(|(_, unit)| size >= *unit) {
        // Integer division rounds the tenths down to 0 to 9, so they take exactly one digit.
        Some((name, unit)) => format!("{}.{} {name}", size / unit, size % unit * 10 / unit),
        None => format!("{size} bytes"),
    }
}

/// Cuts a line at the width of a terminal. Escape sequences for styles take no width. If the line is cut inside a
/// style, the style is reset at the cut.
pub(crate) fn clipped(line: &str, columns: usize) -> String {
    let mut clipped = String::with_capacity(line.len());
    let mut width = 0;
    let mut in_style = false;
    for character in line.chars() {
        if in_style {
            clipped.push(character);
            in_style = character != 'm';
        } else if character == '\u{1b}' {
            clipped.push(character);
            in_style = true;
        } else {
            width += character.width().unwrap_or_default();
            if width > columns {
                return format!("{clipped}{}", anstyle::Reset);
            }
            clipped.push(character);
        }
    }
    clipped
}

/// Cuts a line as [`clipped`] does. If words are cut off, the line ends with `…`.
pub(crate) fn shortened(line: &str, columns: usize) -> String {
    let words = strip_str(line).to_string();
    let width: usize = words.trim_end().chars().filter_map(UnicodeWidthChar::width).sum();
    if width <= columns || columns == 0 {
        return clipped(line, columns);
    }
    format!("{}…", clipped(line, columns.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_was_cut_ends_with_a_sign() {
        let check = |line: &str, columns: usize, expect: &str| {
            let shown = shortened(line, columns);
            assert_eq!(strip_str(&shown).to_string(), expect, "{line:?} at {columns}");
        };
        check("four", 4, "four");
        check("fives", 4, "fiv…");
        check("four  ", 4, "four");
        check("a  b", 3, "a …");
        check("四个字符", 8, "四个字符");
        check("四个字符", 7, "四个字…");
        check("四个字符", 6, "四个…");
        check("\u{1b}[1mfives\u{1b}[0m", 4, "fiv…");
        check("x", 1, "x");
        check("xy", 1, "…");
        check("x", 0, "");
    }

    #[test]
    fn texts_in_one_line() {
        let check = |text: &str, expect: &str| assert_eq!(one_line(text, 4), expect, "{text:?}");
        check("", "");
        check("四个字符", "四个字符");
        check("四个字符。", "四个字符…");
        check(" a\n\tb ", "a b");
        check("a b c", "a b …");
    }

    #[test]
    fn sizes() {
        let check = |size: u64, expect: &str| assert_eq!(bytes(size), expect);
        check(0, "0 bytes");
        check(999, "999 bytes");
        check(1_000, "1.0 kB");
        check(1_999, "1.9 kB");
        check(999_999, "999.9 kB");
        check(52_345_678, "52.3 MB");
        check(7_000_000_000_000, "7000.0 GB");
        check(u64::MAX, "18446744073.7 GB");
    }
}
