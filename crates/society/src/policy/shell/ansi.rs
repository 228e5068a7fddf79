//! Reads the escapes in a quotation `$'…'`, such as `\n` or `\x41`.

use super::word::Piece;

/// Reads the escape that follows a backslash. Returns the piece that the escape stands for and the length of the escape
/// in characters.
pub(super) fn escape(rest: &[char]) -> (Piece, usize) {
    let Some(&first) = rest.first() else { return (Piece::Char('\\'), 0) };
    let plain = |character: char| (Piece::Char(character), 1);
    match first {
        'a' => plain('\u{7}'),
        'b' => plain('\u{8}'),
        'e' | 'E' => plain('\u{1b}'),
        'f' => plain('\u{c}'),
        'n' => plain('\n'),
        'r' => plain('\r'),
        't' => plain('\t'),
        'v' => plain('\u{b}'),
        '\\' | '\'' | '"' | '?' => plain(first),
        '0'..='7' => number(rest, 0, 8, 3),
        'x' => number(rest, 1, 16, 2),
        'u' => number(rest, 1, 16, 4),
        'U' => number(rest, 1, 16, 8),
        // Versions of the shell disagree about control characters, such as `\cA`, so the piece is unknown.
        'c' => (Piece::Any, 2.min(rest.len())),
        // This is not an escape, so the backslash is part of the text.
        _ => (Piece::Char('\\'), 0),
    }
}

fn number(rest: &[char], skipped: usize, radix: u32, longest: usize) -> (Piece, usize) {
    let digits = rest.iter().skip(skipped).take(longest).map_while(|digit| digit.to_digit(radix));
    let digits: Vec<u32> = digits.collect();
    let value = digits.iter().fold(0_u32, |value, digit| value.wrapping_mul(radix).wrapping_add(*digit));
    // A byte beyond ASCII may be only a part of a character, and NUL ends the text for the shell. In both cases,
    // the piece is unknown.
    let is_certain = !digits.is_empty() && value != 0 && (value < 0x80 || radix == 16 && longest > 2);
    let piece = if is_certain { char::from_u32(value).map_or(Piece::Any, Piece::Char) } else { Piece::Any };
    (piece, skipped + digits.len())
}
