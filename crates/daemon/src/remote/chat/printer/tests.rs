use super::*;
use rustyline::error::ReadlineError;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

const PATIENCE: Duration = Duration::from_secs(60);

/// The printer of a line editor: like that of rustyline, it holds one text that the editor has not shown.
struct Editor {
    /// Gets each text when printing begins.
    asked: Sender<String>,
    held: SyncSender<String>,
}

impl ExternalPrinter for Editor {
    fn print(&mut self, text: String) -> rustyline::Result<()> {
        let gone = || ReadlineError::Io(std::io::Error::other("the editor is gone"));
        self.asked.send(text.clone()).map_err(|_| gone())?;
        self.held.send(text).map_err(|_| gone())
    }
}

/// A terminal that keeps what is written to it.
#[derive(Clone, Default)]
pub(in super::super) struct Kept(Arc<Mutex<Vec<u8>>>);

impl Kept {
    pub(in super::super) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// A printer for tests outside of this module. The line editor never reads, so the printer writes to the terminal
/// itself.
pub(in super::super) fn onto(terminal: Kept) -> Printer {
    let (asked, held) = (channel().0, sync_channel(1).0);
    Printer::Beside(Beside::on(Screen::default(), Editor { asked, held }, terminal, || true, PATIENCE))
}

/// A printer on a screen on which the user edits a line.
struct Scene {
    screen: Screen,
    asked: Receiver<String>,
    /// The texts that the editor shows.
    held: Receiver<String>,
    terminal: Kept,
    /// The last field, because dropping it waits for the editor.
    beside: Beside,
}

impl Scene {
    fn new() -> Self {
        let (ask, asked) = channel();
        let (hold, held) = sync_channel(1);
        let (screen, terminal) = (Screen::default(), Kept::default());
        screen.begin();
        let editor = Editor { asked: ask, held: hold };
        let beside = Beside::on(screen.clone(), editor, terminal.clone(), || true, PATIENCE);
        Self { screen, asked, held, terminal, beside }
    }

    /// Waits until the editor is asked to show this text.
    #[track_caller]
    fn is_asked(&self, text: &str) {
        assert_eq!(self.asked.recv_timeout(PATIENCE).as_deref(), Ok(text));
    }

    /// Shows the text that the editor holds.
    #[track_caller]
    fn shows(&self, text: &str) {
        assert_eq!(self.held.recv_timeout(PATIENCE).as_deref(), Ok(text));
    }
}

#[track_caller]
fn assert_happens(shown: &mut Shown) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let happened = async { tokio::time::timeout(PATIENCE, shown.happened()).await };
    assert!(matches!(runtime.block_on(happened), Ok(Ok(()))));
}

#[test]
fn a_line_editor_that_prints_nothing_does_not_hold_the_chat() {
    let mut scene = Scene::new();
    for number in 0..100 {
        scene.beside.print(&format!("message {number}")).unwrap();
    }
    scene.is_asked("message 0\n");
    scene.is_asked("message 1\n");
}

#[test]
fn a_text_counts_as_shown_when_the_editor_has_shown_it() {
    let mut scene = Scene::new();
    let mut shown = scene.beside.show("one").unwrap();
    scene.is_asked("one\n");
    scene.is_asked(NOTHING);
    assert!(!*shown.0.borrow(), "the editor only holds the text");
    scene.shows("one\n");
    assert_happens(&mut shown);
    assert_happens(&mut shown);
    assert_eq!(scene.terminal.text(), "");
}

#[test]
fn texts_that_the_editor_has_not_shown_are_printed_at_the_end_in_their_order() {
    let mut scene = Scene::new();
    let first = scene.beside.show("one").unwrap();
    let second = scene.beside.show("two").unwrap();
    scene.beside.print("three").unwrap();
    scene.is_asked("one\n");
    scene.is_asked(NOTHING);
    // The user has typed `/quit` before, and the editor prefers keys.
    scene.screen.end();
    assert!(!*first.0.borrow() && !*second.0.borrow());
    let Scene { beside, held, terminal, .. } = scene;
    drop(held);
    drop(beside);
    assert_eq!(terminal.text(), "one\ntwo\nthree\n");
    assert!(*first.0.borrow() && *second.0.borrow());
}

#[test]
fn a_text_that_waits_for_the_next_line_is_printed_once() {
    let mut scene = Scene::new();
    let mut shown = scene.beside.show("one").unwrap();
    scene.is_asked("one\n");
    scene.is_asked(NOTHING);
    scene.screen.end();
    scene.screen.begin();
    scene.shows("one\n");
    // The editor is asked again, because the first `NOTHING` belongs to the line before.
    scene.is_asked(NOTHING);
    assert!(!*shown.0.borrow());
    scene.shows(NOTHING);
    assert_happens(&mut shown);
    assert_eq!(scene.terminal.text(), "");
}

#[test]
fn between_two_lines_texts_go_to_the_terminal_itself() {
    let mut scene = Scene::new();
    scene.screen.end();
    let mut shown = scene.beside.show("one").unwrap();
    assert_happens(&mut shown);
    assert_eq!(scene.terminal.text(), "one\n");
}

#[test]
fn a_terminal_that_was_stopped_gets_only_the_newest_foot() {
    let mut scene = Scene::new();
    let mut draw = |number: usize| scene.beside.print_foot(&[format!("foot {number}")]).unwrap();
    let over = redrawn(1);
    draw(0);
    assert_eq!(scene.asked.recv_timeout(PATIENCE).as_deref(), Ok("foot 0\n"));
    draw(1);
    assert_eq!(scene.asked.recv_timeout(PATIENCE), Ok(format!("{over}foot 1\n")));
    (2..100).for_each(draw);
    scene.shows("foot 0\n");
    scene.shows(&format!("{over}foot 1\n"));
    scene.shows(&format!("{over}foot 99\n"));
    scene.beside.print("text").unwrap();
    scene.shows(&format!("{over}text\n"));
}

#[test]
fn the_output_after_a_line_leaves_the_line_and_the_foot_above_it() {
    let mut scene = Scene::new();
    scene.beside.print_foot(&["foot".to_owned()]).unwrap();
    scene.shows("foot\n");
    scene.screen.end();
    let mut shown = scene.beside.show("one").unwrap();
    assert_happens(&mut shown);
    assert_eq!(scene.terminal.text(), "one\n");
}

/// The user ends a line after the editor has got the text and before the editor shows it.
#[test]
fn a_text_that_is_printed_again_does_not_erase_the_line() {
    let mut scene = Scene::new();
    scene.beside.print_foot(&["foot".to_owned()]).unwrap();
    scene.shows("foot\n");
    let mut shown = scene.beside.show("one").unwrap();
    scene.is_asked("foot\n");
    scene.is_asked(&format!("{}one\n", redrawn(1)));
    scene.is_asked(NOTHING);
    scene.screen.end();
    scene.screen.change(|state| state.is_ending = true);
    drop(scene.held);
    assert_happens(&mut shown);
    assert_eq!(scene.terminal.text(), "one\n");
}

#[test]
fn an_empty_foot_erases_the_foot_once() {
    let mut scene = Scene::new();
    scene.beside.print_foot(&["foot".to_owned()]).unwrap();
    scene.shows("foot\n");
    scene.beside.print_foot(&[]).unwrap();
    scene.shows(&redrawn(1));
    scene.beside.print_foot(&[]).unwrap();
    scene.beside.print("text").unwrap();
    scene.shows("text\n");
}
