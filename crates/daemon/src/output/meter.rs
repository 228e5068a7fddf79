//! How far something is that takes long, on a terminal.

use crate::db::bytes;
use std::io::{IsTerminal, Write};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long something may take before it is worth a word.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often the word is said again.
const PERIOD: Duration = Duration::from_millis(100);

/// Says on standard error how many bytes have gone, where somebody watches.
pub(crate) struct Meter {
    what: String,
    total: Option<u64>,
    watched: bool,
    said: Mutex<Said>,
}

struct Said {
    next: Instant,
    anything: bool,
}

impl Meter {
    /// A meter for something, of so many bytes if that is known.
    pub(crate) fn new(what: &str, total: Option<u64>) -> Self {
        let said = Said { next: Instant::now() + PATIENCE, anything: false };
        let what = super::terminal::harmless(&super::one_line(what, 60)).into_owned();
        Self { what, total, watched: std::io::stderr().is_terminal(), said: Mutex::new(said) }
    }

    /// So many have gone.
    pub(crate) fn at(&self, done: u64) {
        if !self.watched {
            return;
        }
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if now < said.next {
            return;
        }
        *said = Said { next: now + PERIOD, anything: true };
        // Nothing can be done where even this cannot be printed.
        let _ = write!(std::io::stderr(), "\r\x1b[K{}", line(&self.what, done, self.total));
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).anything {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
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
