//! Reads the input lines of the chat, and prints above a line that the user is editing.

use crate::failure::Failure;
use crate::output::complain;
use crate::output::terminal::harmless;
use rustyline::error::ReadlineError;
use rustyline::{DefaultEditor, ExternalPrinter};
use std::io::BufRead;
#[cfg(unix)]
use std::io::Write;
use tokio::sync::mpsc;

/// Capacity of the queue of input lines. While the queue is full, the thread that reads lines waits.
const AHEAD: usize = 1;

/// Input of the user.
pub(super) enum Typed {
    Line(String),
    /// The end of the input.
    End,
}

/// Receives input lines from the thread that reads them.
pub(super) struct Lines(mpsc::Receiver<Typed>);

impl Lines {
    /// Waits for the next input; returns nothing after the end.
    pub(super) async fn next(&mut self) -> Option<Typed> {
        self.0.recv().await
    }
}

/// The mode that the terminal had before the chat. Dropping this value restores the mode, because a line editor that
/// ends in the middle of a line leaves the terminal in its own mode.
pub(super) struct Mode {
    #[cfg(unix)]
    was: Option<rustix::termios::Termios>,
}

impl Mode {
    /// Remembers the mode. A mode that cannot be read will not be restored.
    pub(super) fn note() -> Self {
        Self {
            #[cfg(unix)]
            was: rustix::termios::tcgetattr(rustix::stdio::stdin()).ok(),
        }
    }
}

#[cfg(unix)]
impl Drop for Mode {
    fn drop(&mut self) {
        let Some(was) = &self.was else { return };
        // If the terminal refuses the mode, the chat cannot do more.
        let _ =
            rustix::termios::tcsetattr(rustix::stdio::stdin(), rustix::termios::OptionalActions::Now, was);
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(UNBRACKETED).and_then(|()| stdout.flush());
    }
}

/// Turns off bracketed paste, which the line editor turned on.
#[cfg(unix)]
const UNBRACKETED: &[u8] = b"\x1b[?2004l";

/// Where the chat prints.
pub(super) enum Printer {
    /// Standard output.
    Plain,
    /// Above the line that the user is editing.
    Beside(Beside),
}

/// Prints above the line that the user is editing.
pub(super) struct Beside(Box<dyn ExternalPrinter + Send>);

impl Beside {
    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        let text = format!("{}\n", harmless(text));
        self.0.print(text).map_err(|error| Failure::Output(std::io::Error::other(error)))
    }
}

/// Reads lines from standard input in a thread.
pub(super) fn piped() -> Lines {
    let (tell, lines) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let typed = match line {
                Ok(line) => Typed::Line(line),
                Err(error) => {
                    complain(&format!("cannot read from standard input: {error}"));
                    Typed::End
                }
            };
            if tell.blocking_send(typed).is_err() {
                return;
            }
        }
    });
    Lines(lines)
}

/// Reads lines from the keyboard with a line editor, in a thread.
pub(super) fn typed() -> Result<(Lines, Printer), Failure> {
    let failed = |error: ReadlineError| Failure::Defect(format!("cannot read from the terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(failed)?;
    let printer = editor.create_external_printer().map_err(failed)?;
    let (tell, lines) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        loop {
            let typed = match editor.readline("> ") {
                Ok(line) => {
                    // `add_history_entry` fails for an empty or repeated line, which does not matter.
                    let _ = editor.add_history_entry(line.as_str());
                    Typed::Line(line)
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => Typed::End,
                Err(error) => {
                    complain(&format!("cannot read from the terminal: {error}"));
                    Typed::End
                }
            };
            // Stop before the next `readline`, which would change the mode of the terminal again.
            let is_end = matches!(typed, Typed::End)
                || matches!(&typed, Typed::Line(line) if super::parse(line) == super::Line::Quit);
            if tell.blocking_send(typed).is_err() || is_end {
                return;
            }
        }
    });
    Ok((Lines(lines), Printer::Beside(Beside(Box::new(printer)))))
}
