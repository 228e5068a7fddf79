//! Reads the text of a command as a shell would, as far as rules need it. Nothing is expanded.
//!
//! If this module is not certain how to read a text, it returns `None`. Then a rule that asks or denies fits the text.

mod word;

mod cursor;

mod token;

mod ansi;

mod lexer;

mod scan;

mod wrappers;

mod parts;

pub(super) use parts::{Part, parts};
pub(super) use word::Piece;

use lexer::lex;
use token::{Lexed, Token};
use word::Word;
use wrappers::RESERVED;

/// Returns the words of a text that is a single simple command. Patterns of file names stay as they are written.
/// Returns `None` for any other text, or if the command contains assignments, redirections, braces or other expansions.
pub(super) fn simple_command(text: &str) -> Option<Vec<String>> {
    let Lexed { tokens, nested } = lex(text.trim())?;
    if !nested.is_empty() {
        return None;
    }
    let words: Option<Vec<&Word>> = tokens
        .iter()
        .map(|token| match token {
            Token::Word(word) => Some(word),
            Token::Operator | Token::Redirection => None,
        })
        .collect();
    let words = words?;
    let head = words.first()?;
    let name = head.exact()?;
    if name.is_empty() || RESERVED.contains(&name.as_str()) || head.is_assignment() {
        return None;
    }
    words.into_iter().map(Word::as_written).collect()
}

#[cfg(test)]
mod tests;
