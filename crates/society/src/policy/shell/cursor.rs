//! A place in a text.

/// A place in a text.
pub(super) struct Cursor {
    text: Vec<char>,
    at: usize,
}

impl Cursor {
    pub(super) fn new(text: Vec<char>) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the number of characters that were read.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    /// Returns what was read since a place.
    pub(super) fn since(&self, place: usize) -> &[char] {
        self.text.get(place..self.at).unwrap_or_default()
    }

    /// Returns what was not read yet.
    pub(super) fn rest(&self) -> &[char] {
        self.text.get(self.at..).unwrap_or_default()
    }

    /// Moves on by some characters.
    pub(super) fn advance(&mut self, characters: usize) {
        self.at = (self.at + characters).min(self.text.len());
    }

    /// Returns the next character. A backslash at the end of a line joins the lines.
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

    /// Returns the next character without joining lines.
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
