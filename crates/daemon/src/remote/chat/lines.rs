//! Where lines come from, and how something is said beside a line that is being written.

use crate::failure::Failure;
use crate::output::complain;
use crate::output::terminal::harmless;
use rustyline::error::ReadlineError;
use rustyline::{DefaultEditor, ExternalPrinter};
use std::io::BufRead;
#[cfg(unix)]
use std::io::Write;
use tokio::sync::mpsc;

/// How many lines may wait: whoever writes faster waits.
const AHEAD: usize = 1;

/// What comes from the person.
pub(super) enum Typed {
    /// A line.
    Line(String),
    /// No more.
    End,
}

/// Lines, as they come.
pub(super) struct Lines(mpsc::Receiver<Typed>);

impl Lines {
    /// The next line.
    pub(super) async fn next(&mut self) -> Option<Typed> {
        self.0.recv().await
    }
}

/// The mode of the terminal as it was, which it has again when this is dropped: a line editor that is in the middle of a
/// line does not give it back.
pub(super) struct Mode {
    #[cfg(unix)]
    was: Option<rustix::termios::Termios>,
}

impl Mode {
    /// Notes the mode. Where the terminal does not tell it, it is left alone.
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
        // Nothing can be done where the terminal does not take it.
        let _ =
            rustix::termios::tcsetattr(rustix::stdio::stdin(), rustix::termios::OptionalActions::Now, was);
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(UNBRACKETED).and_then(|()| stdout.flush());
    }
}

/// What is pasted comes without brackets again: the line editor has asked for them.
#[cfg(unix)]
const UNBRACKETED: &[u8] = b"\x1b[?2004l";

/// Where things are said.
pub(super) enum Printer {
    /// On standard output.
    Plain,
    /// Above the line that is being written.
    Beside(Beside),
}

/// Says things above the line that is being written.
pub(super) struct Beside(Box<dyn ExternalPrinter + Send>);

impl Beside {
    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        let text = format!("{}\n", harmless(text));
        self.0.print(text).map_err(|error| Failure::Output(std::io::Error::other(error)))
    }
}

/// Lines of standard input.
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

/// Lines from the keyboard, with what a line editor has.
pub(super) fn typed() -> Result<(Lines, Printer), Failure> {
    let failed = |error: ReadlineError| Failure::Defect(format!("cannot read from the terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(failed)?;
    let printer = editor.create_external_printer().map_err(failed)?;
    let (tell, lines) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        loop {
            let typed = match editor.readline("> ") {
                Ok(line) => {
                    // Fails where it is empty or was written before.
                    let _ = editor.add_history_entry(line.as_str());
                    Typed::Line(line)
                }
                Err(ReadlineError::Eof | ReadlineError::Interrupted) => Typed::End,
                Err(error) => {
                    complain(&format!("cannot read from the terminal: {error}"));
                    Typed::End
                }
            };
            // The terminal is its own again before the end is told.
            let is_end = matches!(typed, Typed::End)
                || matches!(&typed, Typed::Line(line) if super::parse(line) == super::Line::Quit);
            if tell.blocking_send(typed).is_err() || is_end {
                return;
            }
        }
    });
    Ok((Lines(lines), Printer::Beside(Beside(Box::new(printer)))))
}
