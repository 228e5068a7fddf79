//! Counts how often the process passes failure points, and aborts the process at the armed point. This module exists
//! only in builds with debug assertions.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// The environment variable that arms a point. Its value is the name of the point and the number of the pass at which
/// the process aborts: `writer::before_commit@3` aborts when the process passes this point for the third time.
pub const POINT: &str = "POLITY_FAILURE_POINT";
/// The environment variable with the path of a log file. When the process passes a point, the name of the point is
/// added to the file as a line.
pub const LOG: &str = "POLITY_FAILURE_POINT_LOG";

/// The values of the environment variables. They are read when the process passes its first point.
struct Setup {
    armed: Option<Armed>,
    log: Option<File>,
}

/// The point at which the process aborts. `hit` is the number of the pass, counted from 1.
struct Armed {
    name: String,
    hit: u64,
    hits: AtomicU64,
}

impl Armed {
    fn parse(text: &str) -> Option<Self> {
        let (name, hit) = text.split_once('@')?;
        let hit = hit.parse().ok().filter(|hit| *hit > 0)?;
        Some(Self { name: name.to_owned(), hit, hits: AtomicU64::new(0) })
    }

    /// Returns whether the process must abort now. Each call for the armed point counts as one pass.
    fn is_it(&self, name: &str) -> bool {
        self.name == name && self.hits.fetch_add(1, Ordering::SeqCst) + 1 == self.hit
    }
}

impl Setup {
    fn read() -> Self {
        let armed = std::env::var(POINT).ok().and_then(|text| Armed::parse(&text));
        let append = |path| OpenOptions::new().append(true).create(true).open(path).ok();
        Self { armed, log: std::env::var_os(LOG).and_then(append) }
    }
}

/// Appends the point's name to the log, and aborts the process if the point is armed for this pass.
pub fn pass(name: &'static str) {
    static SETUP: OnceLock<Setup> = OnceLock::new();
    let setup = SETUP.get_or_init(Setup::read);
    if let Some(mut log) = setup.log.as_ref() {
        // A failed write is ignored here: the test that reads the log notices the missing line.
        let _ = log.write_all(format!("{name}\n").as_bytes());
    }
    if setup.armed.as_ref().is_some_and(|armed| armed.is_it(name)) {
        std::process::abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_is_named_with_its_hit() {
        let armed = Armed::parse("blobs::renamed@2").expect("a valid failure point");
        assert!(!armed.is_it("blobs::renamed") && !armed.is_it("blobs::written"));
        assert!(armed.is_it("blobs::renamed") && !armed.is_it("blobs::renamed"));
        for nonsense in ["", "blobs::renamed", "blobs::renamed@", "blobs::renamed@0", "blobs::renamed@x"] {
            assert!(Armed::parse(nonsense).is_none(), "{nonsense}");
        }
    }
}
