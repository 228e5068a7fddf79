//! Prepares the process for many open files: every connection, reader and command needs file descriptors.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::time::Duration;

/// The highest soft limit of open files that polity sets. Some programs that agents run try every descriptor number
/// below their soft limit, so a huge limit would make these programs slow.
const MOST: u64 = 1 << 20;
/// Number of file descriptors that must be free when polity starts.
const FOR_A_START: usize = 32;
/// Number of checks for free descriptors; with the pauses between them, these checks take five seconds.
const TRIES: u32 = 50;
const BETWEEN_TRIES: Duration = Duration::from_millis(100);

/// Raises the soft limit of open files to the hard limit. Most systems start programs with a soft limit that is much
/// lower than the hard limit.
pub(crate) fn raise_limit() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let wanted = maximum.map_or(MOST, |maximum| maximum.min(MOST));
    if current.is_some_and(|current| current < wanted) {
        // If the system refuses the new limit, the old limit stays. A later `open` beyond that limit reports its own
        // error.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum });
    }
}

/// Waits at most five seconds until files can be opened, because other processes may use up the descriptors of the
/// system for a moment. If no files can be opened by then, the start continues, and its first `open` reports the error.
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
