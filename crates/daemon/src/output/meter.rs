//! A progress line on a terminal for transfers that take a long time. It also shows for how long a transfer has lasted.

use super::text::bytes;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Time until the progress line appears, so that quick transfers show none.
const PATIENCE: Duration = Duration::from_millis(500);
/// Interval between two updates of the progress line.
const PERIOD: Duration = Duration::from_millis(100);

/// A progress line that shows how many bytes were transferred. If standard error is not a terminal, nothing is shown.
pub(crate) struct Meter {
    what: String,
    total: Option<u64>,
    watched: bool,
    begun: Instant,
    said: Mutex<LastUpdate>,
}

struct LastUpdate {
    next: Instant,
    anything: bool,
}

impl Meter {
    /// Creates a meter with a title and, if it is known, the total number of bytes.
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        let begun = Instant::now();
        let said = LastUpdate { next: begun + PATIENCE, anything: false };
        let what = super::terminal::harmless(&super::text::one_line(what, 60)).into_owned();
        Self { what, total, watched: std::io::stderr().is_terminal(), begun, said: Mutex::new(said) }
    }

    /// Updates the line, unless the last update was less than [`PERIOD`] ago.
    pub(crate) fn at(&self, done: u64) {
        if !self.watched {
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < said.next {
            return;
        }
        *said = LastUpdate { next: now + PERIOD, anything: true };
        redraw(&line(&self.what, done, self.total, now.duration_since(self.begun)));
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).anything {
            redraw("");
        }
    }
}

/// Writes a line to standard error, in place of the line that was written last. An empty text only removes that line.
/// The cursor stays in the line.
pub(super) fn redraw(line: &str) {
    // Ignore an error: the command works without the line.
    let _ = std::io::stderr().write_all(format!("\r\x1b[K{line}").as_bytes());
}

fn line(what: &str, done: u64, total: Option<u64>, passed: Duration) -> String {
    let time = passed_in_words(passed);
    match total {
        Some(total) if total > 0 => {
            let percent = done.saturating_mul(100) / total;
            format!("{what}: {} of {} ({percent} %){time}", bytes(done), bytes(total))
        }
        Some(_) | None => format!("{what}: {}{time}", bytes(done)),
    }
}

/// Returns the end of a line that shows how much time has passed. It is empty in the first second.
pub(super) fn passed_in_words(passed: Duration) -> String {
    let passed = i64::try_from(passed.as_millis()).unwrap_or(i64::MAX);
    polity_view::elapsed(0, passed).map_or_else(String::new, |time| format!(" … {time}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        let check = |what: &str, done: u64, total: Option<u64>, millis: u64, expect: &str| {
            assert_eq!(line(what, done, total, Duration::from_millis(millis)), expect);
        };
        check("a.png", 1_500, Some(3_000), 999, "a.png: 1.5 kB of 3.0 kB (50 %)");
        check("a.png", 1_500, Some(3_000), 2_500, "a.png: 1.5 kB of 3.0 kB (50 %) … 2 s");
        check("a.png", 0, Some(0), 0, "a.png: 0 bytes");
        check("tasks", 12, None, 61_000, "tasks: 12 bytes … 1 min 1 s");
    }
}
