//! The cursor that the lexer moves through a text.

/// A text, and how far the lexer has read it.
pub(super) struct Cursor {
    text: Vec<char>,
    at: usize,
}

impl Cursor {
    pub(super) fn new(text: Vec<char>) -> Self {
        Self { text, at: 0 }
    }

    /// Returns how many characters of the text were read.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Returns the characters between an earlier result of [`Self::place`] and the cursor.
    pub(super) fn since(&self, place: usize) -> &[char] {
        self.text.get(place..self.at).unwrap_or_default()
    }

    /// Returns the characters that were not read yet.
    pub(super) fn rest(&self) -> &[char] {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn advance(&mut self, characters: usize) {
        self.at = (self.at + characters).min(self.text.len());
    }

    /// Returns the next character without moving past it. First skips each backslash at the end of a line together
    /// with the line break, as a shell does.
    pub(super) fn peek(&mut self) -> Option<char> {
        while self.rest().starts_with(&['\\', '\n']) {
            self.at += 2;
        }
        self.text.get(self.at).copied()
    }

    pub(super) fn next(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += 1;
        Some(next)
    }

    pub(super) fn skip(&mut self, expected: char) -> bool {
        let is_there = self.peek() == Some(expected);
        self.at += usize::from(is_there);
        is_there
    }

    /// Moves past the next character and returns it, even if it is a backslash at the end of a line.
    pub(super) fn raw(&mut self) -> Option<char> {
        let next = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(next)
    }

    pub(super) fn blanks(&mut self) {
        while matches!(self.peek(), Some(' ' | '\t')) {
            self.at += 1;
        }
    }

    pub(super) fn comment(&mut self) {
        while self.text.get(self.at).is_some_and(|next| *next != '\n') {
            self.at += 1;
        }
    }
}
