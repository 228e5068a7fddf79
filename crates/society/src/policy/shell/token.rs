//! What a text consists of.

use super::word::Word;

/// A token of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// What separates commands: `;`, `&`, `|`, parentheses, the end of a line, an arithmetic command.
    Operator,
    /// A redirection with its target.
    Redirection,
}

/// The tokens of a text, and the commands of its substitutions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    pub(super) nested: Vec<Lexed>,
}
