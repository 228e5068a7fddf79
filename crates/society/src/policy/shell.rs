//! Finds the commands in the text of a shell command, so that the policy can compare its rules with each command.
//!
//! This module splits a text as a shell would, but does not expand variables or patterns of file names.
//! If it is not certain how a shell reads the text, this module returns `None`. For the policy, such a text then fits
//! the pattern of every rule with the decision `ask` or `deny`.

mod word;

mod cursor;

mod token;

mod ansi;

mod lexer;

mod scan;

mod wrappers;

mod parts;

pub(super) use parts::{Part, expansions, parts};
pub(super) use token::Expansions;
pub(super) use word::Piece;

use lexer::lex;
use token::{Lexed, Token};
use word::Word;
use wrappers::RESERVED;

/// If a text is a single simple command, such as `ls -l *.rs`, returns its words. A pattern of file names, such as
/// `*.rs`, is returned as it is written. Returns `None` for any other text, and for a command with assignments,
/// redirections, braces or other expansions.
pub(super) fn simple_command(text: &str) -> Option<Vec<String>> {
    let Lexed { tokens, nested } = lex(text.trim(), &mut Expansions::default())?;
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
