//! Whether a pattern of a rule fits a command.

use super::pattern::Pattern;
use super::shell::{self, Part, Piece};

/// Returns whether the pattern of a rule that allows fits a text. The text must be a single simple command. The pattern
/// must fit its words, joined by spaces. Before that, each word with special characters is put in single quotes.
pub(super) fn is_allowed_by(pattern: &Pattern, text: &str) -> bool {
    let Some(words) = shell::simple_command(text) else { return false };
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    squeezed(pattern).fits(&quoted.join(" "))
}

/// Returns whether the pattern of a rule that asks or denies fits a text. It fits if it fits the whole text or a
/// command in it, or if it is not certain what the text runs.
pub(super) fn is_caught_by(pattern: &Pattern, text: &str) -> bool {
    let pattern = squeezed(pattern);
    let Some(parts) = shell::parts(text) else { return true };
    pattern.fits(text.trim()) || parts.iter().any(|part| could_fit(&pattern, part))
}

/// Returns the pattern with single spaces between its words.
fn squeezed(pattern: &Pattern) -> Pattern {
    Pattern::new(pattern.as_str().split_whitespace().collect::<Vec<_>>().join(" "))
}

fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_alphanumeric() || "_-+=.,:/@%^*?[]~{}!#".contains(character);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Returns whether the shell may expand the part to a text that fits the pattern.
fn could_fit(pattern: &Pattern, part: &Part) -> bool {
    let pattern: Vec<char> = pattern.as_str().chars().collect();
    // The places in the pattern up to which it may fit the pieces so far.
    let mut places = vec![false; pattern.len() + 1];
    places[0] = true;
    pass_stars(&pattern, &mut places);
    for piece in part.pieces() {
        let mut next = vec![false; places.len()];
        for (at, _) in places.iter().enumerate().filter(|(_, is_reached)| **is_reached) {
            let expected = pattern.get(at).copied();
            match piece {
                Piece::Char(character) => {
                    next[at] |= expected == Some('*');
                    if expected == Some(*character) {
                        next[at + 1] = true;
                    }
                }
                // What stands for names of files has no spaces; an expansion may become anything.
                Piece::Glob(_) | Piece::Any => {
                    let reach = pattern[at..].iter().take_while(|next| *piece == Piece::Any || **next != ' ');
                    let reach = reach.count();
                    next[at..=at + reach].fill(true);
                }
            }
        }
        pass_stars(&pattern, &mut next);
        if !next.contains(&true) {
            return false;
        }
        places = next;
    }
    places[pattern.len()]
}

/// Adds the places behind stars, because a star may stand for no characters.
fn pass_stars(pattern: &[char], places: &mut [bool]) {
    for (at, expected) in pattern.iter().enumerate() {
        if places[at] && *expected == '*' {
            places[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests;
