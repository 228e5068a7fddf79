//! One word of a shell command, as the lexer reads it.

/// A piece of a word: one character, or the unknown text that results from an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// A character that stays as it is.
    Char(char),
    /// A character that the shell may replace by names of files or directories: `*`, `?`, `[` or `~`.
    Glob(char),
    /// The unknown result of an expansion such as `$x`: any text, possibly empty.
    Any,
}

/// A word of a command, without its quotes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Word(pub(crate) Vec<Piece>);

impl Word {
    /// Returns the word as a text, or `None` if the shell may expand a part of it.
    pub(super) fn exact(&self) -> Option<String> {
        self.text(|piece| match piece {
            Piece::Char(character) => Some(character),
            Piece::Glob(_) | Piece::Any => None,
        })
    }

    /// Returns the word as a text, with patterns of file names as written. Returns `None` if the word has another
    /// expansion, such as `$x`.
    pub(super) fn as_written(&self) -> Option<String> {
        self.text(|piece| match piece {
            Piece::Char(character) | Piece::Glob(character) => Some(character),
            Piece::Any => None,
        })
    }

    fn text(&self, character: impl Fn(Piece) -> Option<char>) -> Option<String> {
        self.0.iter().copied().map(character).collect()
    }

    /// Returns whether nothing is known about the word, because it consists of expansions only.
    pub(super) fn is_unknown(&self) -> bool {
        !self.0.is_empty() && self.0.iter().all(|piece| *piece == Piece::Any)
    }

    /// Returns whether the word could be an assignment, such as `NAME=value`.
    pub(super) fn is_assignment(&self) -> bool {
        let first = self.0.first();
        let begins =
            matches!(first, Some(Piece::Char(first)) if first.is_ascii_alphabetic() || *first == '_');
        begins && self.0.contains(&Piece::Char('='))
    }

    /// Returns the part of the word behind its last slash, such as `ls` of `/bin/ls`.
    pub(super) fn base_name(&self) -> Self {
        let slash = self.0.iter().rposition(|piece| *piece == Piece::Char('/'));
        Self(slash.map_or_else(|| self.0.clone(), |slash| self.0[slash + 1..].to_vec()))
    }
}

/// Returns whether a word names a file descriptor. The word must come directly before `<` or `>`. Examples are `2` in
/// `2>x` and `{name}` in `{name}>x`.
pub(super) fn names_descriptor(word: &[char]) -> bool {
    let is_number = word.iter().all(char::is_ascii_digit);
    let is_variable = matches!(word, ['{', .., '}']);
    !word.is_empty() && (is_number || is_variable)
}

/// How much of a brace expansion, such as `{a,b}` or `{1..3}`, the lexer has read in a word.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Braces {
    #[default]
    None,
    Open,
    Dotted,
    Separated,
    Closed,
}

impl Braces {
    pub(super) fn see(&mut self, next: char) {
        *self = match (*self, next) {
            (Self::None, '{') => Self::Open,
            (Self::Open, '.') => Self::Dotted,
            (Self::Open | Self::Dotted, ',') | (Self::Dotted, '.') => Self::Separated,
            (Self::Separated, '}') => Self::Closed,
            (state, _) => state,
        }
    }
}

/// Changes each `[` to a plain character if no `]` follows in the word: such a `[` begins no pattern of file names.
pub(super) fn plain_brackets(word: &mut Word) {
    let last = word.0.iter().rposition(|piece| *piece == Piece::Char(']')).unwrap_or(0);
    for piece in word.0.iter_mut().skip(last) {
        if *piece == Piece::Glob('[') {
            *piece = Piece::Char('[');
        }
    }
}
