//! Collects text up to a number of characters.

use std::fmt::{self, Write};

/// A text with a limited number of characters. A write beyond the limit fails, but the characters that fit are kept.
pub(super) struct Sink {
    text: String,
    chars_left: usize,
}

/// A marked part of the text that is still being written.
#[derive(Debug)]
pub(super) struct Part {
    name: &'static str,
    /// Offset of the opening mark of the part, in bytes.
    before: usize,
    /// Offset of the content of the part, in bytes.
    start: usize,
}

impl Sink {
    pub(super) fn new(max_chars: usize) -> Self {
        Self { text: String::new(), chars_left: max_chars }
    }

    /// Writes text. Each run of white space becomes one space. White space at the beginning of a line is dropped.
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

    /// Writes a space, except after other white space or at the beginning of the text.
    pub(super) fn space(&mut self) -> fmt::Result {
        if self.text.is_empty() || self.text.ends_with(char::is_whitespace) {
            return Ok(());
        }
        self.write_char(' ')
    }

    /// Ends the current line, unless it is empty.
    pub(super) fn fresh_line(&mut self) -> fmt::Result {
        if self.text.ends_with('\n') {
            return Ok(());
        }
        self.write_char('\n')
    }

    /// Ends the current line and leaves one empty line, unless the text is empty.
    pub(super) fn blank_line(&mut self) -> fmt::Result {
        self.fresh_line()?;
        if self.text.ends_with("\n\n") {
            return Ok(());
        }
        self.write_char('\n')
    }

    /// Begins a part with a mark such as `<notes>` on a line of its own, so that readers can distinguish the part from
    /// the text around it.
    pub(super) fn open_part(&mut self, name: &'static str) -> Result<Part, fmt::Error> {
        self.fresh_line()?;
        let before = self.text.len();
        writeln!(self, "<{name}>")?;
        Ok(Part { name, before, start: self.text.len() })
    }

    /// Ends the part with a closing mark. If the part has no text, removes its opening mark instead.
    pub(super) fn close_part(&mut self, part: Part) -> fmt::Result {
        let is_empty = self.text.get(part.start..).is_none_or(|content| content.trim().is_empty());
        if !is_empty {
            self.fresh_line()?;
            return writeln!(self, "</{}>", part.name);
        }
        let removed = self.text.get(part.before..).map_or(0, |content| content.chars().count());
        self.text.truncate(part.before);
        self.chars_left += removed;
        Ok(())
    }

    pub(super) fn into_text(self) -> String {
        self.text.trim_end().to_owned()
    }
}

impl Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for character in text.chars() {
            // Skip empty lines at the beginning of the text.
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

    #[test]
    fn parts_are_marked_unless_they_are_empty() {
        let mut sink = Sink::new(100);
        sink.write_str("a").unwrap();
        let part = sink.open_part("notes").unwrap();
        sink.write_str("b").unwrap();
        sink.close_part(part).unwrap();
        let part = sink.open_part("notes").unwrap();
        sink.write_str(" \n").unwrap();
        sink.close_part(part).unwrap();
        sink.write_str("c").unwrap();
        assert_eq!(sink.chars_left, 100 - sink.text.chars().count());
        assert_eq!(sink.into_text(), "a\n<notes>\nb\n</notes>\nc");
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
