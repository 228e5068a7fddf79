//! Reads the input lines of the chat, and prints texts above the line that the user is editing.

use crate::failure::Failure;
use crate::output::complain;
use crate::output::foot::{columns, redrawn};
use crate::output::terminal::harmless;
use crate::output::wrap::wrapped;
use rustyline::error::ReadlineError;
use rustyline::{
    Cmd, ConditionalEventHandler, DefaultEditor, Event, EventContext, EventHandler, ExternalPrinter,
    KeyEvent, Movement, RepeatCount,
};
use std::io::BufRead;
#[cfg(unix)]
use std::io::Write;
use std::time::Duration;
use tokio::sync::mpsc;

/// Capacity of the queue of input lines. While the queue is full, the thread that reads lines waits.
const AHEAD: usize = 1;

/// How long a chat that ends waits until its last texts are printed.
const LAST_TEXTS: Duration = Duration::from_secs(1);

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

/// Where the chat prints.
pub(super) enum Printer {
    /// Standard output.
    Plain,
    /// Above the line that the user is editing.
    Beside(Beside),
}

/// A printer of texts above the line that the user is editing. A thread prints the texts in their order: printing waits
/// until the line editor shows the text, and the editor shows nothing after `/quit` or while the chat handles a line. If
/// the chat itself waited for the editor, both would wait for ever.
pub(super) struct Beside {
    /// Absent only while this value is dropped.
    texts: Option<std::sync::mpsc::Sender<String>>,
    /// Disconnected when the thread has printed everything, or cannot print any more.
    ended: std::sync::mpsc::Receiver<()>,
    /// Number of lines of the foot: lines at the end of the output that the next output replaces.
    foot: usize,
}

impl Beside {
    fn new(mut printer: impl ExternalPrinter + Send + 'static) -> Self {
        let (texts, waiting) = std::sync::mpsc::channel::<String>();
        let (end, ended) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let _end = end;
            for text in waiting {
                if printer.print(text).is_err() {
                    return;
                }
            }
        });
        Self { texts: Some(texts), ended, foot: 0 }
    }

    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.print_formatted(&wrapped(&harmless(text), columns()))
    }

    /// Prints a text that may have styles and contains no other character that controls a terminal.
    pub(super) fn print_formatted(&mut self, text: &str) -> Result<(), Failure> {
        self.replace_foot(&format!("{}\n", painted(text)), 0)
    }

    /// Prints the foot: lines that the next output replaces. Each line must fit into the width of the terminal. Apart
    /// from styles, it must contain no character that controls a terminal.
    pub(super) fn print_foot(&mut self, lines: &[String]) -> Result<(), Failure> {
        if self.foot == 0 && lines.is_empty() {
            return Ok(());
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.replace_foot(&painted(&text), lines.len())
    }

    /// Makes the foot ordinary output that stays. This is needed when the user has ended a line: the line stands below
    /// the foot, so the next output cannot replace the foot.
    pub(super) fn leave_foot(&mut self) {
        self.foot = 0;
    }

    fn replace_foot(&mut self, text: &str, foot: usize) -> Result<(), Failure> {
        let before = std::mem::replace(&mut self.foot, foot);
        let text = if before == 0 { text.to_owned() } else { format!("{}{text}", redrawn(before)) };
        let sent = self.texts.as_ref().is_some_and(|texts| texts.send(text).is_ok());
        if sent { Ok(()) } else { Err(Failure::Output(std::io::Error::other("the terminal is gone"))) }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.texts = None;
        // The last texts are printed before the chat ends, unless the line editor has ended in the middle of a text.
        let _ = self.ended.recv_timeout(LAST_TEXTS);
    }
}

/// Removes the styles of a text if the terminal shows none.
fn painted(text: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
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
    Lines { typed: lines, again: None }
}

/// The handler of Ctrl-C: it empties the line. On an empty line, Ctrl-C leaves the chat.
struct EmptiesFirst;

impl ConditionalEventHandler for EmptiesFirst {
    fn handle(&self, _: &Event, _: RepeatCount, _: bool, context: &EventContext<'_>) -> Option<Cmd> {
        (!context.line().is_empty()).then_some(Cmd::Kill(Movement::WholeBuffer))
    }
}

/// Reads lines from the keyboard with a line editor, in a thread. `before` contains the lines that the user wrote in
/// earlier chats, oldest first. The user can recall these lines with the arrow keys.
pub(super) fn typed(before: &[String]) -> Result<(Lines, Printer), Failure> {
    let failed = |error: ReadlineError| Failure::Defect(format!("cannot read from the terminal: {error}"));
    let mut editor = DefaultEditor::new().map_err(failed)?;
    editor.bind_sequence(KeyEvent::alt('\r'), EventHandler::Simple(Cmd::Newline));
    editor.bind_sequence(KeyEvent::ctrl('C'), EventHandler::Conditional(Box::new(EmptiesFirst)));
    for line in before {
        let _ = editor.add_history_entry(line.as_str());
    }
    let printer = editor.create_external_printer().map_err(failed)?;
    let (tell, lines) = mpsc::channel(AHEAD);
    let (again, may_read) = std::sync::mpsc::channel();
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
            // Wait before the next `readline`, which would change the mode of the terminal again. If the user leaves, the
            // chat drops `again`.
            let is_end = matches!(typed, Typed::End)
                || matches!(&typed, Typed::Line(line) if super::parse(line) == super::Line::Quit);
            if tell.blocking_send(typed).is_err() || (is_end && may_read.recv().is_err()) {
                return;
            }
        }
    });
    Ok((Lines { typed: lines, again: Some(again) }, Printer::Beside(Beside::new(printer))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The printer of a line editor that has ended while it should print: printing never returns.
    struct Stuck(std::sync::mpsc::Receiver<()>);

    impl ExternalPrinter for Stuck {
        fn print(&mut self, _: String) -> rustyline::Result<()> {
            let _ = self.0.recv();
            Ok(())
        }
    }

    #[test]
    fn a_line_editor_that_prints_nothing_does_not_hold_the_chat() {
        let (_editor, waits) = std::sync::mpsc::channel();
        let (done, is_done) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let mut beside = Beside::new(Stuck(waits));
            for number in 0..100 {
                beside.print(&format!("message {number}")).unwrap();
            }
            done.send(()).unwrap();
        });
        assert_eq!(is_done.recv_timeout(Duration::from_secs(60)), Ok(()));
    }
}
