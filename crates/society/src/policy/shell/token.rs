//! The tokens that the lexer makes from a text.

use super::word::Word;

/// A part of a command's text that a shell treats as one unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Word(Word),
    /// Something that separates commands: `;`, `&`, `|`, a parenthesis, the end of a line, or an arithmetic command.
    Operator,
    /// A redirection with its target.
    Redirection,
}

/// Which expansions a shell carries out in a text. A text in single quotes has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Expansions {
    /// A substitution such as `$(command)`.
    pub(crate) substitution: bool,
    /// A substitution in backquotes.
    pub(crate) backquotes: bool,
    /// Another expansion, such as `$x` or `${x}`.
    pub(crate) other: bool,
}

/// The tokens of a text. `nested` contains the tokens inside each substitution, such as `$(command)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lexed {
    pub(super) tokens: Vec<Token>,
    pub(super) nested: Vec<Lexed>,
}
