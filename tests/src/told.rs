//! Tells whoever reads the log of the tests what the tests did not check.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

/// Writes a line to standard error, once in each process. The line can be seen even if the tests pass: cargo hides only
/// what tests print with macros.
pub fn tell(line: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = TOLD.lock().unwrap_or_else(PoisonError::into_inner).insert(line.to_owned());
    if is_new {
        // Nobody reads the log if this fails.
        let _ = writeln!(std::io::stderr(), "{line}");
    }
}
