//! Finds where an arithmetic expression ends.

/// Returns what is inside `((` and `))`, if `text` begins behind `((` and this is arithmetic.
/// Returns `Err` if that is not certain.
pub(super) fn arithmetic(text: &[char]) -> Result<Option<usize>, Uncertain> {
    let mut depth = 0_usize;
    for (at, character) in text.iter().enumerate() {
        match character {
            // Quotes may hide a parenthesis.
            '\'' | '"' | '\\' | '`' | '#' => return Err(Uncertain),
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            // In `((a) && (b))` the shell finds two subshells here.
            ')' => return Ok((text.get(at + 1) == Some(&')')).then_some(at)),
            _ => {}
        }
    }
    Err(Uncertain)
}

/// The meaning of the text depends on more than this module knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uncertain;
