//! A progress line on a terminal for transfers that take a long time.

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
    said: Mutex<LastUpdate>,
}

struct LastUpdate {
    next: Instant,
    anything: bool,
}

impl Meter {
    /// Creates a meter with a title and, if it is known, the total number of bytes.
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        let said = LastUpdate { next: Instant::now() + PATIENCE, anything: false };
        let what = super::terminal::harmless(&super::text::one_line(what, 60)).into_owned();
        Self { what, total, watched: std::io::stderr().is_terminal(), said: Mutex::new(said) }
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
        redraw(&line(&self.what, done, self.total));
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

fn line(what: &str, done: u64, total: Option<u64>) -> String {
    match total {
        Some(total) if total > 0 => {
            format!("{what}: {} of {} ({} %)", bytes(done), bytes(total), done.saturating_mul(100) / total)
        }
        Some(_) | None => format!("{what}: {}", bytes(done)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines() {
        assert_eq!(line("a.png", 1_500, Some(3_000)), "a.png: 1.5 kB of 3.0 kB (50 %)");
        assert_eq!(line("a.png", 0, Some(0)), "a.png: 0 bytes");
        assert_eq!(line("tasks", 12, None), "tasks: 12 bytes");
    }
}
