//! A position in a text that only moves forward.

/// A text, and the position up to which it has been read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }

    /// Returns the text that has not been read yet.
    pub(super) fn rest(&self) -> &'a str {
        self.rest
    }

    pub(super) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    pub(super) fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    pub(super) fn bump(&mut self) -> Option<char> {
        let mut characters = self.rest.chars();
        let next = characters.next();
        self.rest = characters.as_str();
        next
    }

    pub(super) fn starts_with(&self, expected: &str) -> bool {
        self.rest.starts_with(expected)
    }

    /// Moves past `expected` if the text continues with it.
    pub(super) fn eat(&mut self, expected: &str) -> bool {
        match self.rest.strip_prefix(expected) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Tries the strings in order, and moves past the first string with which the text continues.
    pub(super) fn eat_any(&mut self, expected: &[&str]) -> bool {
        expected.iter().any(|expected| self.eat(expected))
    }

    pub(super) fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start();
    }

    pub(super) fn take_while(&mut self, accepts: impl Fn(char) -> bool) -> &'a str {
        let length = self.rest.find(|character| !accepts(character)).unwrap_or(self.rest.len());
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        taken
    }

    /// Takes a name, which may have a path before it: `send_message`, `functions.send_message`.
    pub(super) fn path(&mut self) -> &'a str {
        self.take_while(|character| character.is_ascii_alphanumeric() || "_.-".contains(character))
    }

    /// Takes everything before `end` and moves past `end`. Does not move if `end` does not occur.
    pub(super) fn until(&mut self, end: &str) -> Option<&'a str> {
        let (before, after) = self.rest.split_once(end)?;
        self.rest = after;
        Some(before)
    }
}
