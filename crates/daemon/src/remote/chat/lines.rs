//! Reads the input lines of the chat.

use super::line::{Line, parse};
use super::printer::{Beside, Printer, Screen};
use crate::failure::Failure;
use crate::output::complain;
use rustyline::error::ReadlineError;
use rustyline::{
    Cmd, ConditionalEventHandler, DefaultEditor, Event, EventContext, EventHandler, KeyEvent, Movement,
    RepeatCount,
};
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

/// The input lines, as they come from the thread that reads them.
pub(super) struct Lines {
    typed: mpsc::Receiver<Typed>,
    /// After `/quit` or the end of the input, the thread that reads the keyboard waits until it may read again. Absent
    /// for a pipe, whose end is final.
    again: Option<std::sync::mpsc::Sender<()>>,
}

impl Lines {
    /// Returns lines that a test sends.
    #[cfg(test)]
    pub(super) fn sent(typed: mpsc::Receiver<Typed>) -> Self {
        Self { typed, again: None }
    }

    /// Waits for the next input; returns nothing after the end.
    pub(super) async fn next(&mut self) -> Option<Typed> {
        self.typed.recv().await
    }

    /// Lets the user type again after `/quit` or the end of the input.
    pub(super) fn go_on(&self) {
        if let Some(again) = &self.again {
            // The thread has ended if the terminal is gone. Then `next` returns nothing.
            let _ = again.send(());
        }
    }
}

/// The mode that the terminal had before the chat. Dropping this value restores the mode, because a line editor that
/// ends in the middle of a line leaves the terminal in the editor's mode.
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

    /// Forgets the mode if the line editor cannot edit on this terminal. The editor then leaves the mode as it is, and
    /// dropping this value would only write an escape sequence, which such a terminal may show as text.
    #[cfg(unix)]
    pub(super) fn forget_unless_edited(&mut self, printer: &Printer) {
        match printer {
            Printer::Beside(_) => {}
            Printer::Plain => self.was = None,
        }
    }

    /// Does nothing, because no mode is remembered on this system.
    #[cfg(not(unix))]
    pub(super) fn forget_unless_edited(&mut self, _: &Printer) {}
}

#[cfg(unix)]
impl Drop for Mode {
    fn drop(&mut self) {
        let Some(was) = &self.was else { return };
        // Ignore an error: if the terminal refuses the mode, the chat can do nothing about it.
        let _ =
            rustix::termios::tcsetattr(rustix::stdio::stdin(), rustix::termios::OptionalActions::Now, was);
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(UNBRACKETED).and_then(|()| stdout.flush());
    }
}

/// The escape sequence that turns off bracketed paste, which the line editor turned on.
#[cfg(unix)]
const UNBRACKETED: &[u8] = b"\x1b[?2004l";

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
    Lines { typed: lines, again: None }
}

/// The handler of Ctrl-C: it empties the line. On an empty line, Ctrl-C leaves the chat.
struct EmptiesFirst;

impl ConditionalEventHandler for EmptiesFirst {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        (!context.line().is_empty()).then_some(Cmd::Kill(Movement::WholeBuffer))
    }
}

fn failed(error: ReadlineError) -> Failure {
    Failure::Defect(format!("cannot read from the terminal: {error}"))
}

/// Returns the printer that the line editor made. Returns `None` if there is none, because the editor cannot edit on
/// this terminal.
fn unless_uneditable<P>(made: Result<P, ReadlineError>) -> Result<Option<P>, Failure> {
    match made {
        Ok(printer) => Ok(Some(printer)),
        #[cfg(unix)]
        Err(ReadlineError::Errno(error))
            if std::io::Error::from(error).raw_os_error()
                == Some(rustix::io::Errno::NOTTY.raw_os_error()) =>
        {
            Ok(None)
        }
        Err(error) => Err(failed(error)),
    }
}

/// Reads lines from the keyboard with a line editor, in a thread. `before` contains the lines that the user wrote in
/// earlier chats, oldest first. The user can recall these lines with the arrow keys.
///
/// On a terminal that cannot move its cursor (`TERM=dumb`), the editor reads whole lines and shows no texts. There, the
/// chat prints its texts itself.
pub(super) fn typed(before: &[String]) -> Result<(Lines, Printer), Failure> {
    let mut editor = DefaultEditor::new().map_err(failed)?;
    editor.bind_sequence(KeyEvent::alt('\r'), EventHandler::Simple(Cmd::Newline));
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(EmptiesFirst)));
    for line in before {
        let _ = editor.add_history_entry(line.as_str());
    }
    let shows = unless_uneditable(editor.create_external_printer())?;
    // Without the printer, texts arrive at the place where the user types, so no prompt stands before them.
    let prompt = if shows.is_some() { "> " } else { "" };
    let (tell, lines) = mpsc::channel(AHEAD);
    let (again, may_read) = std::sync::mpsc::channel();
    let screen = Screen::default();
    let read_from = screen.clone();
    std::thread::spawn(move || {
        loop {
            let typed = match read_from.reading(|| editor.readline(prompt)) {
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
            // Wait before the next `readline`, which would change the mode of the terminal again. If the user leaves, the
            // chat drops `again`.
            let is_end = matches!(typed, Typed::End)
                || matches!(&typed, Typed::Line(line) if parse(line) == Line::Quit);
            if tell.blocking_send(typed).is_err() || (is_end && may_read.recv().is_err()) {
                return;
            }
        }
    });
    let printer = match shows {
        Some(shows) => Printer::Beside(Beside::new(shows, screen)),
        None => Printer::Plain,
    };
    Ok((Lines { typed: lines, again: Some(again) }, printer))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use rustix::io::Errno;

    /// For example, no descriptor may be left for the printer.
    #[test]
    fn only_a_terminal_without_editing_has_a_chat_without_a_printer() {
        let failing = |error: Errno| {
            let error = std::io::Error::from(error).try_into().expect("an error of the system");
            unless_uneditable::<()>(Err(ReadlineError::Errno(error)))
        };
        assert!(matches!(failing(Errno::NOTTY), Ok(None)));
        assert!(matches!(failing(Errno::MFILE), Err(Failure::Defect(_))));
        assert!(matches!(unless_uneditable(Ok(())), Ok(Some(()))));
    }
}
