//! Collects text up to a number of characters.

use std::fmt::{self, Write};

/// Text with room for so many characters and no more; writing beyond them is an error, and what fits is kept.
pub(super) struct Sink {
    text: String,
    chars_left: usize,
}

impl Sink {
    pub(super) fn new(max_chars: usize) -> Self {
        Self { text: String::new(), chars_left: max_chars }
    }

    /// Writes text with each run of white space as one space, and none where a line begins.
    pub(super) fn write_collapsed(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            if !character.is_whitespace() {
                self.write_char(character)?;
            } else {
                self.space()?;
            }
        }
        Ok(())
    }

    /// Writes a space, except after another or where a line begins.
    pub(super) fn space(&mut self) -> fmt::Result {
        if self.text.is_empty() || self.text.ends_with(char::is_whitespace) {
            return Ok(());
        }
        self.write_char(' ')
    }

    /// Ends the line, if there is something on it.
    pub(super) fn fresh_line(&mut self) -> fmt::Result {
        if self.text.ends_with('\n') {
            return Ok(());
        }
        self.write_char('\n')
    }

    /// Leaves one empty line, if there is something above it.
    pub(super) fn blank_line(&mut self) -> fmt::Result {
        self.fresh_line()?;
        if self.text.ends_with("\n\n") {
            return Ok(());
        }
        self.write_char('\n')
    }

    pub(super) fn into_text(self) -> String {
        self.text.trim_end().to_owned()
    }
}

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            // Nothing is worth an empty line above it.
            if self.text.is_empty() && character == '\n' {
                continue;
            }
            self.chars_left = self.chars_left.checked_sub(1).ok_or(fmt::Error)?;
            self.text.push(character);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn white_space_runs_become_one_space() {
        let mut sink = Sink::new(100);
        sink.write_collapsed("  a\n\t b ").unwrap();
        sink.write_collapsed(" c").unwrap();
        sink.blank_line().unwrap();
        sink.blank_line().unwrap();
        sink.write_collapsed("d").unwrap();
        assert_eq!(sink.into_text(), "a b c\n\nd");
    }

    proptest! {
        #[test]
        fn what_fits_is_kept_and_no_more(parts in prop::collection::vec("\\PC{0,8}", 0..8), room in 0_usize..40) {
            let mut sink = Sink::new(room);
            let all: String = parts.concat();
            let outcome = parts.iter().try_for_each(|part| sink.write_str(part));
            let kept: String = all.chars().take(room).collect();
            prop_assert_eq!(outcome.is_err(), all.chars().count() > room);
            prop_assert_eq!(sink.text, kept);
        }
    }
}
