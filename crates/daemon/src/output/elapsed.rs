//! A line on a terminal that says what a command is doing, and for how long. Commands that may take longer than a
//! second show it, so that the person does not take them for stuck.

use super::foot::{can_move, columns};
use super::meter::{passed_in_words, redraw};
use super::terminal::harmless;
use super::text::{clipped, one_line};
use anstream::adapter::strip_str;
use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::task::JoinHandle;
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use unicode_width::UnicodeWidthStr;

/// Time until the line appears, and the interval between two redraws.
const SECOND: Duration = Duration::from_secs(1);
/// Maximum length of a text in the line, in characters. The line is also cut at the width of the terminal.
const MAX_CHARS: usize = 200;

/// The line on standard error. If standard error is not a terminal that can move its cursor, nothing is shown. Dropping
/// this value removes the line; drop it before other output, or print with [`Elapsed::aside`].
#[must_use = "the line disappears when this value is dropped"]
pub(crate) struct Elapsed {
    shown: Arc<Mutex<Shown>>,
    /// The task that redraws the line; absent if nothing is shown.
    redraws: Option<JoinHandle<()>>,
}

/// A part of the work. The line names the part until this value is dropped.
#[must_use = "the step ends when this value is dropped"]
pub(crate) struct Step<'e> {
    elapsed: &'e Elapsed,
    number: u64,
}

#[derive(Default)]
struct Shown {
    /// The text of the line while there is no step.
    whole: String,
    /// The steps that are going on, in the order in which they began. A step is a verb and its object.
    steps: BTreeMap<u64, (&'static str, String)>,
    next: u64,
    line: Line,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Line {
    #[default]
    NotYetDrawn,
    Drawn,
    /// The work has ended, so the line must not be drawn again.
    Ended,
}

impl Elapsed {
    /// Begins to count the seconds. `whole` says what the command is doing, such as `checking the data`.
    pub(crate) fn begin(whole: &str) -> Self {
        let shown = Arc::new(Mutex::new(Shown { whole: fit(whole), ..Shown::default() }));
        let is_watched = std::io::stderr().is_terminal() && can_move();
        let redraws =
            is_watched.then(|| tokio::spawn(redraw_each_second(Arc::clone(&shown), Instant::now())));
        Self { shown, redraws }
    }

    /// Returns a value that shows nothing, for output that a program reads.
    pub(crate) fn hidden() -> Self {
        Self { shown: Arc::default(), redraws: None }
    }

    /// Begins a step. The line names all steps that are going on, such as `asking service one, service two`.
    pub(crate) fn step(&self, verb: &'static str, object: &str) -> Step<'_> {
        Step { elapsed: self, number: locked(&self.shown).add(verb, object) }
    }

    /// Removes the line, prints, and lets the line appear again below with its next redraw.
    pub(crate) fn aside<T>(&self, print: impl FnOnce() -> T) -> T {
        // Until the lock is released, the line is not redrawn.
        let mut shown = locked(&self.shown);
        if shown.line == Line::Drawn {
            redraw("");
            shown.line = Line::NotYetDrawn;
        }
        print()
    }
}

impl Drop for Elapsed {
    fn drop(&mut self) {
        let Some(redraws) = &self.redraws else { return };
        // `abort` does not wait for a redraw that another thread has begun. The lock does.
        redraws.abort();
        let mut shown = locked(&self.shown);
        if shown.line == Line::Drawn {
            redraw("");
        }
        shown.line = Line::Ended;
    }
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        locked(&self.elapsed.shown).steps.remove(&self.number);
    }
}

impl Shown {
    /// Adds a step; returns its number.
    fn add(&mut self, verb: &'static str, object: &str) -> u64 {
        let number = self.next;
        self.next += 1;
        self.steps.insert(number, (verb, fit(object)));
        number
    }

    fn draw(&mut self, passed: Duration) {
        if self.line != Line::Ended {
            redraw(&line(&self.doing(), passed, columns()));
            self.line = Line::Drawn;
        }
    }

    /// Says what is going on. Steps with the same verb share it if they are next to each other.
    fn doing(&self) -> String {
        let mut text = String::new();
        let mut before = None;
        for (verb, object) in self.steps.values() {
            if before == Some(verb) {
                text.push_str(", ");
            } else {
                text.push_str(if before.is_some() { "; " } else { "" });
                text.push_str(verb);
                text.push(' ');
            }
            text.push_str(object);
            before = Some(verb);
        }
        if before.is_some() { text } else { self.whole.clone() }
    }
}

/// Redraws the line until the task is aborted. The line is drawn by a task of its own, because the work may block its
/// thread.
async fn redraw_each_second(shown: Arc<Mutex<Shown>>, begun: Instant) {
    let mut seconds = interval_at(begun + SECOND, SECOND);
    seconds.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        seconds.tick().await;
        locked(&shown).draw(begun.elapsed());
    }
}

/// Formats the line. If it is too wide for the terminal, the words are cut, so that the time stays visible.
fn line(doing: &str, passed: Duration, columns: usize) -> String {
    let time = passed_in_words(passed);
    let words = cut(doing, columns.saturating_sub(time.width()));
    cut(&format!("{words}{time}"), columns)
}

/// Cuts a text without styles.
fn cut(text: &str, columns: usize) -> String {
    // A cut text ends with an escape sequence that resets the style.
    strip_str(&clipped(text, columns)).to_string()
}

/// Makes a text one line that contains no character that controls a terminal.
fn fit(text: &str) -> String {
    harmless(&one_line(text, MAX_CHARS)).into_owned()
}

fn locked(shown: &Mutex<Shown>) -> MutexGuard<'_, Shown> {
    shown.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_keeps_its_time_at_every_width() {
        let check = |doing: &str, seconds: u64, columns: usize, expect: &str| {
            assert_eq!(line(doing, Duration::from_secs(seconds), columns), expect);
        };
        check("asking service one", 1, 80, "asking service one … 1 s");
        check("asking service one", 3, 24, "asking service one … 3 s");
        check("asking service one", 3, 23, "asking service on … 3 s");
        check("asking service one", 12, 23, "asking service o … 12 s");
        check("asking service one", 125, 80, "asking service one … 2 min 5 s");
        check("查找模型服务器", 2, 12, "查找模 … 2 s");
        check("查找模型服务器", 2, 11, "查找 … 2 s");
        check("asking service one", 3, 6, " … 3 s");
        check("asking service one", 3, 4, " … 3");
        check("asking service one", 3, 0, "");
    }

    #[test]
    fn the_line_names_what_is_going_on() {
        let elapsed = Elapsed::hidden();
        locked(&elapsed.shown).whole = fit("examining");
        let doing = || locked(&elapsed.shown).doing();
        assert_eq!(doing(), "examining");
        let data = elapsed.step("checking", "the data directory");
        let one = elapsed.step("asking", "service one");
        let two = elapsed.step("asking", "service two");
        assert_eq!(doing(), "checking the data directory; asking service one, service two");
        drop(one);
        assert_eq!(doing(), "checking the data directory; asking service two");
        drop(data);
        drop(two);
        assert_eq!(doing(), "examining");
        let _hostile = elapsed.step("asking", "service \u{1b}[2J\n\r");
        assert_eq!(doing(), "asking service <U+001B>[2J");
    }
}
