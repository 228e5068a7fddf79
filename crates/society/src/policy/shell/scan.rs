//! Finds where an arithmetic expression ends.

/// Returns the length of the arithmetic expression that follows a `((`. `text` is everything behind this `((`. Returns
/// `Ok(None)` if the `((` begins two subshells, and `Err` if its meaning is not certain.
pub(super) fn arithmetic(text: &[char]) -> Result<Option<usize>, Uncertain> {
    let mut depth = 0_usize;
    for (at, character) in text.iter().enumerate() {
        match character {
            // A parenthesis inside quotes or a comment does not count. This function does not parse quotes or
            // comments, so it returns `Err`.
            '\'' | '"' | '\\' | '`' | '#' => return Err(Uncertain),
            '(' => depth += 1,
            ')' if depth > 0 => depth -= 1,
            // Without a second `)` here, as in `((a) && (b))`, the shell reads `((` as two subshells.
            ')' => return Ok((text.get(at + 1) == Some(&')')).then_some(at)),
            _ => {}
        }
    }
    Err(Uncertain)
}

/// The error for a text whose meaning this module cannot determine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Uncertain;
