//! The foot: a few lines that stay below the other output of a command on a terminal. The command redraws them when
//! they change.

use std::io::{IsTerminal, Write};

/// The lines at the foot, on standard error. Dropping this value removes the lines.
#[derive(Debug)]
pub(crate) struct Foot {
    drawn: usize,
}

impl Foot {
    /// Returns a foot, if both standard output and standard error are a terminal that can move its cursor.
    pub(crate) fn on_terminal() -> Option<Self> {
        let is_terminal = std::io::stdout().is_terminal() && std::io::stderr().is_terminal();
        (can_move() && is_terminal).then_some(Self { drawn: 0 })
    }

    /// Removes the lines, so that something else can be printed in their place.
    pub(crate) fn clear(&mut self) {
        self.draw(&[]);
    }

    /// Draws these lines in place of the lines that were drawn last. Each line must fit into the width of the terminal.
    pub(crate) fn draw(&mut self, lines: &[String]) {
        if self.drawn == 0 && lines.is_empty() {
            return;
        }
        let mut text = redrawn(self.drawn);
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        self.drawn = lines.len();
        let mut stderr = std::io::stderr().lock();
        // Ignore an error: the command works without its foot.
        let _ = if anstream::AutoStream::choice(&stderr) == anstream::ColorChoice::Never {
            let head = redrawn_length(&text);
            let (moves, lines) = text.split_at(head);
            write!(stderr, "{moves}{}", anstream::adapter::strip_str(lines))
        } else {
            write!(stderr, "{text}")
        };
        let _ = stderr.flush();
    }
}

impl Drop for Foot {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Returns whether the terminal can move its cursor.
pub(crate) fn can_move() -> bool {
    std::env::var_os("TERM").is_some_and(|name| name != "dumb")
}

/// Returns the width of the terminal, in columns; 80 if the terminal does not report its width.
pub(crate) fn columns() -> usize {
    let size = crossterm::terminal::size().ok();
    size.map(|(columns, _)| usize::from(columns)).filter(|columns| *columns > 0).unwrap_or(80)
}

/// Returns the escape sequence that moves the cursor up by this number of lines and clears everything from there to the
/// end of the screen.
pub(crate) fn redrawn(lines: usize) -> String {
    if lines == 0 { "\r\x1b[J".to_owned() } else { format!("\r\x1b[{lines}A\x1b[J") }
}

/// Returns the length, in bytes, of the escape sequence at the beginning of a text. The sequence is a result of
/// [`redrawn`], so its last character is `J`.
fn redrawn_length(text: &str) -> usize {
    text.find('J').map_or(0, |end| end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_foot_is_drawn_where_the_last_one_was() {
        assert_eq!(redrawn(0), "\r\x1b[J");
        assert_eq!(redrawn(3), "\r\x1b[3A\x1b[J");
        let text = format!("{}Jack", redrawn(12));
        assert_eq!(text.split_at(redrawn_length(&text)).1, "Jack");
    }
}
