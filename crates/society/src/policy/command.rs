//! Decides whether the pattern of a rule, such as `git push*`, fits the text of a shell command.
//! The pattern of an `allow` rule fits only if it is certain what the text runs. The pattern of an `ask` or `deny` rule
//! also fits if it is uncertain what the text runs.

use super::pattern::Pattern;
use super::shell::{self, Expansions, Part, Piece};
use serde::{Deserialize, Serialize};

/// The part of a text because of which polity cannot see all commands that the text runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unseen {
    /// A substitution such as `$(command)`.
    Substitution,
    /// A substitution in backquotes.
    Backquotes,
    /// Another expansion, such as `$x` or `${x}`.
    Expansion,
    /// Another form of text that polity does not read, or a pattern of file names.
    Text,
}

/// Returns whether the pattern of an `allow` rule fits the text of a command.
///
/// Only a single simple command can fit, so `ls; rm x` never fits. The pattern is compared with the words of the
/// command, joined by spaces. Words with special characters are put in single quotes for this comparison.
pub(super) fn is_allowed_by(pattern: &Pattern, text: &str) -> bool {
    let Some(words) = shell::simple_command(text) else { return false };
    let quoted: Vec<String> = words.iter().map(|word| quoted(word)).collect();
    squeezed(pattern).fits(&quoted.join(" "))
}

/// Returns whether the pattern of an `ask` or `deny` rule fits the text of a command.
///
/// The pattern may fit the whole text, or any command that the text runs. If it is not certain which commands the
/// text runs, every pattern fits.
pub(super) fn is_caught_by(pattern: &Pattern, text: &str) -> bool {
    let pattern = squeezed(pattern);
    let Some(parts) = shell::parts(text) else { return true };
    pattern.fits(text.trim()) || parts.iter().any(|part| could_fit(&pattern, part.pieces()))
}

/// Returns why the pattern of an `ask` or `deny` rule fits the text of a command, if it fits only because polity cannot
/// see all commands that the text runs. Returns `None` if a command fits as it is written. The pattern must fit:
/// [`is_caught_by`] returns true.
pub(super) fn unseen(pattern: &Pattern, text: &str) -> Option<Unseen> {
    let pattern = squeezed(pattern);
    let parts = shell::parts(text).unwrap_or_default();
    if pattern.fits(text.trim()) || parts.iter().any(|part| could_fit(&pattern, &as_written(part))) {
        return None;
    }
    let Expansions { substitution, backquotes, other } = shell::expansions(text);
    Some(if substitution {
        Unseen::Substitution
    } else if backquotes {
        Unseen::Backquotes
    } else if other {
        Unseen::Expansion
    } else {
        Unseen::Text
    })
}

/// Returns the pieces of a command as if the shell expanded nothing. A character that no pattern names stands for each
/// expansion, so only a `*` of a pattern fits it.
fn as_written(part: &Part) -> Vec<Piece> {
    let written = part.pieces().iter().map(|piece| match piece {
        Piece::Char(character) | Piece::Glob(character) => Piece::Char(*character),
        Piece::Any => Piece::Char(char::REPLACEMENT_CHARACTER),
    });
    written.collect()
}

/// Replaces each run of spaces in a pattern by one space, because commands are compared in that form.
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

/// Returns whether a command could fit the pattern after the shell has expanded its words. `pieces` are the pieces of
/// one of the commands that a text runs.
fn could_fit(pattern: &Pattern, pieces: &[Piece]) -> bool {
    let pattern: Vec<char> = pattern.as_str().chars().collect();
    // `places[n]` is true if the first `n` characters of the pattern can fit the pieces that were read so far.
    let mut places = vec![false; pattern.len() + 1];
    places[0] = true;
    pass_stars(&pattern, &mut places);
    for piece in pieces {
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
                // The shell replaces `Glob` by characters of file names, which this code assumes to have no spaces. It
                // may replace `Any` by any text.
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

/// A `*` can stand for an empty text. So if the place before a `*` is reached, marks the place behind it as reached,
/// too.
fn pass_stars(pattern: &[char], places: &mut [bool]) {
    for (at, expected) in pattern.iter().enumerate() {
        if places[at] && *expected == '*' {
            places[at + 1] = true;
        }
    }
}

#[cfg(test)]
mod tests;
