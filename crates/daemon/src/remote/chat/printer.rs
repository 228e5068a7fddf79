//! Prints texts above the line that the user is editing, and reports which texts the terminal has got.

use crate::failure::Failure;
use crate::output::foot::{columns, redrawn};
use crate::output::terminal::harmless;
use crate::output::wrap::wrapped;
use crate::output::{Page, print_on};
use rustyline::ExternalPrinter;
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// How long a chat that ends waits until its last texts are printed.
const LAST_TEXTS: Duration = Duration::from_secs(1);
/// Pause before the thread that prints asks the line editor again whether it has shown a text.
const PAUSE: Duration = Duration::from_millis(20);
/// A text that leaves the screen as it is: one line up and one line down. The line editor holds at most one text that it
/// has not shown. So when it takes this text, it has shown the text before.
const NOTHING: &str = "\x1b[A\n";

/// Where the chat prints.
pub(super) enum Printer {
    /// Standard output.
    Plain,
    /// Above the line that the user is editing.
    Beside(Beside),
}

impl Printer {
    /// Prints a text that was formatted for a terminal or a pipe (`page`). The result tells when it is printed.
    pub(super) fn show(&mut self, text: &str, page: Page) -> Result<Shown, Failure> {
        match self {
            Self::Plain => {
                print_on(page, text)?;
                Ok(Shown(watch::channel(true).1))
            }
            Self::Beside(printer) => printer.show(text),
        }
    }
}

/// Tells when the terminal has got a text.
pub(super) struct Shown(watch::Receiver<bool>);

impl Shown {
    /// Waits until the terminal has got the text. The caller may drop the future and call this function again.
    pub(super) async fn happened(&mut self) -> Result<(), Failure> {
        self.0.wait_for(|is_shown| *is_shown).await.map(|_| ()).map_err(|_| gone())
    }
}

fn gone() -> Failure {
    Failure::Output(std::io::Error::other("the terminal is gone"))
}

/// The terminal, as the chat, the thread that prints and the thread that reads lines share it.
#[derive(Clone, Default)]
pub(super) struct Screen(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Held while the thread that prints writes to the terminal itself. The line editor does not begin a line meanwhile.
    /// Whoever needs both locks takes this one first.
    pen: Mutex<()>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The texts that are not printed yet, oldest first.
    texts: VecDeque<Text>,
    /// The foot to print below these texts. A newer foot takes its place, so that a terminal that shows nothing for a
    /// while gets only the newest one.
    foot: Option<Vec<String>>,
    /// Number of lines of the foot at the end of the output. The next output replaces these lines. When the user ends a
    /// line, this line stands below the foot. Nothing can replace the foot then, so the number is 0.
    drawn: usize,
    /// Counts the beginnings and the ends of lines that the user edits. It is odd while the line editor reads a line. Only
    /// then, the editor shows texts.
    readings: u64,
    /// The line editor shows no more texts.
    editor_is_gone: bool,
    /// The chat ends. The texts that are left are still printed.
    is_ending: bool,
    /// The terminal takes no more output.
    is_gone: bool,
}

struct Text {
    words: String,
    /// Number of lines, if the text is a foot; else 0.
    foot: usize,
    /// Absent if nobody asks whether the text was printed.
    shown: Option<watch::Sender<bool>>,
}

/// Who prints a text.
enum Turn<'a> {
    /// The thread that prints, which holds the pen meanwhile.
    Own(MutexGuard<'a, ()>),
    /// The line editor, in this reading.
    Editor(u64),
}

impl Screen {
    /// Runs the line editor until it has read a line.
    pub(super) fn reading<T>(&self, read: impl FnOnce() -> T) -> T {
        self.begin();
        let line = read();
        self.end();
        line
    }

    fn begin(&self) {
        let _pen = self.pen();
        self.change(|state| state.readings += 1);
    }

    fn end(&self) {
        self.change(|state| {
            state.readings += 1;
            state.drawn = 0;
        });
    }

    fn pen(&self) -> MutexGuard<'_, ()> {
        // If another thread panicked while it held a lock, the terminal is still usable.
        self.0.pen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.0.changed.notify_all();
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.0.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, text: Text) -> Result<(), Failure> {
        let mut state = self.state();
        if state.is_gone {
            return Err(gone());
        }
        state.texts.push_back(text);
        self.0.changed.notify_all();
        Ok(())
    }

    /// Waits for the next output. Returns nothing when the chat ends and all texts are printed.
    fn next(&self) -> Option<Text> {
        let mut state = self.state();
        loop {
            if let Some(text) = state.texts.pop_front() {
                return Some(text);
            }
            if state.is_ending {
                return None;
            }
            if let Some(lines) = state.foot.take() {
                let words = lines.iter().map(|line| format!("{line}\n")).collect();
                return Some(Text { words, foot: lines.len(), shown: None });
            }
            state = self.wait(state);
        }
    }

    /// Returns what to print for a text: the escape sequence that erases the foot, and the text. The caller prints it
    /// at once, because the sequence is wrong after the user has ended another line.
    fn over_foot(&self, text: &Text) -> String {
        let before = std::mem::replace(&mut self.state().drawn, text.foot);
        let over = if before == 0 { String::new() } else { redrawn(before) };
        format!("{over}{}", text.words)
    }

    /// Decides who prints a text. `is_held` says that the line editor has got the text already and perhaps has not shown
    /// it. Between two lines, such a text waits for the next line. If there is none, because the chat ends, it is printed
    /// again, which is better than never.
    fn turn(&self, is_held: bool) -> Turn<'_> {
        loop {
            let pen = self.pen();
            let state = self.state();
            if state.editor_is_gone {
                return Turn::Own(pen);
            }
            if state.readings % 2 == 1 {
                return Turn::Editor(state.readings);
            }
            if !is_held || state.is_ending {
                return Turn::Own(pen);
            }
            drop(pen);
            drop(self.wait(state));
        }
    }
}

/// What the thread that prints works with.
struct Hand<P, W> {
    screen: Screen,
    /// The line editor.
    editor: P,
    terminal: W,
    /// Tells whether the terminal passes each key to the line editor at once.
    is_raw: fn() -> bool,
}

impl<P: ExternalPrinter, W: Write> Hand<P, W> {
    fn print_all(mut self) {
        while let Some(text) = self.screen.next() {
            if self.print(&text).is_err() {
                // Dropping the texts tells those who wait for them that they are not printed.
                self.screen.change(|state| {
                    state.is_gone = true;
                    state.texts.clear();
                });
                return;
            }
        }
    }

    fn print(&mut self, text: &Text) -> std::io::Result<()> {
        let mut is_held = false;
        loop {
            match self.screen.turn(is_held) {
                Turn::Own(_pen) => {
                    self.terminal.write_all(self.screen.over_foot(text).as_bytes())?;
                    self.terminal.flush()?;
                    break;
                }
                Turn::Editor(_) if is_held && !(self.is_raw)() => std::thread::sleep(PAUSE),
                Turn::Editor(reading) => {
                    let words = if is_held { NOTHING.to_owned() } else { self.screen.over_foot(text) };
                    if words.is_empty() {
                        // An empty foot takes the place of no foot.
                        break;
                    }
                    if self.editor.print(words).is_err() {
                        self.screen.change(|state| state.editor_is_gone = true);
                        continue;
                    }
                    if text.shown.is_none() {
                        break;
                    }
                    // If the line has ended meanwhile, `NOTHING` perhaps went to the terminal past the editor.
                    let was_held = std::mem::replace(&mut is_held, true);
                    if was_held && (self.is_raw)() && self.screen.state().readings == reading {
                        break;
                    }
                }
            }
        }
        if let Some(shown) = &text.shown {
            shown.send_replace(true);
        }
        Ok(())
    }
}

/// A printer of texts above the line that the user is editing. A thread prints the texts in their order: printing waits
/// until the line editor shows the text, and the editor shows nothing after `/quit` or while the chat handles a line. If
/// the chat itself waited for the editor, both would wait for ever.
pub(super) struct Beside {
    screen: Screen,
    /// Disconnected when the thread has printed everything, or cannot print any more.
    ended: std::sync::mpsc::Receiver<()>,
    /// How long dropping this value waits for the last texts.
    patience: Duration,
}

impl Beside {
    /// Creates a printer for the line editor that reads lines from this screen.
    pub(super) fn new(editor: impl ExternalPrinter + Send + 'static, screen: Screen) -> Self {
        Self::on(screen, editor, std::io::stdout(), is_raw, LAST_TEXTS)
    }

    pub(super) fn on(
        screen: Screen,
        editor: impl ExternalPrinter + Send + 'static,
        terminal: impl Write + Send + 'static,
        is_raw: fn() -> bool,
        patience: Duration,
    ) -> Self {
        let (end, ended) = std::sync::mpsc::channel();
        let hand = Hand { screen: screen.clone(), editor, terminal, is_raw };
        std::thread::spawn(move || {
            let _end = end;
            hand.print_all();
        });
        Self { screen, ended, patience }
    }

    pub(super) fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.print_formatted(&wrapped(&harmless(text), columns()))
    }

    /// Prints a text that may have styles and contains no other character that controls a terminal.
    pub(super) fn print_formatted(&mut self, text: &str) -> Result<(), Failure> {
        self.screen.add(Text { words: format!("{}\n", painted(text)), foot: 0, shown: None })
    }

    /// Does the same as [`Self::print_formatted`]. The result tells when the terminal has got the text.
    fn show(&mut self, text: &str) -> Result<Shown, Failure> {
        let (tell, shown) = watch::channel(false);
        self.screen.add(Text { words: format!("{}\n", painted(text)), foot: 0, shown: Some(tell) })?;
        Ok(Shown(shown))
    }

    /// Prints the foot: lines that the next output replaces. Each line must fit into the width of the terminal. Apart
    /// from styles, it must contain no character that controls a terminal.
    pub(super) fn print_foot(&mut self, lines: &[String]) -> Result<(), Failure> {
        let lines: Vec<String> = lines.iter().map(|line| painted(line)).collect();
        let mut state = self.screen.state();
        if state.is_gone {
            return Err(gone());
        }
        state.foot = Some(lines);
        self.screen.0.changed.notify_all();
        Ok(())
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.screen.change(|state| state.is_ending = true);
        // The last texts are printed before the chat ends, unless the terminal takes no output for too long.
        let _ = self.ended.recv_timeout(self.patience);
    }
}

/// Returns whether the line editor has put the terminal into its mode.
#[cfg(unix)]
fn is_raw() -> bool {
    use rustix::termios::{LocalModes, tcgetattr};
    tcgetattr(rustix::stdio::stdin()).is_ok_and(|mode| !mode.local_modes.contains(LocalModes::ICANON))
}

#[cfg(not(unix))]
fn is_raw() -> bool {
    true
}

/// Removes the styles of a text if the terminal shows none.
fn painted(text: &str) -> String {
    match anstream::AutoStream::choice(&std::io::stdout()) {
        anstream::ColorChoice::Never => anstream::adapter::strip_str(text).to_string(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
pub(super) mod tests;
