//! Prepares the process for many open files: every connection, reader and command needs file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::time::Duration;

/// The soft limit is not raised above this. Some programs that agents run look at every number below their limit.
const MOST: u64 = 1 << 20;
/// How many files a start may open at the same time.
const FOR_A_START: usize = 32;
/// How often a start looks for free descriptors, and the pause before it looks again: five seconds in all.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Raises the soft limit of open files to the hard limit. Systems start programs with a soft limit that is much lower.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MOST, |maximum| maximum.min(MOST));
    if current.is_some_and(|current| current < wanted) {
        // If the system refuses this, the old limit stays, and whatever exceeds it fails with a reason of its own.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Waits until files can be opened, for five seconds at most. Other processes may use up the descriptors of the system
/// for a moment. A start that still cannot open its files is then refused as usual.
pub(crate) fn wait_for_room() {
    let has_room = || {
        let opened: io::Result<Vec<File>> = (0..FOR_A_START).map(|_| File::open("/dev/null")).collect();
        opened.is_ok()
    };
    for _ in 0..TRIES {
        if has_room() {
            return;
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}
