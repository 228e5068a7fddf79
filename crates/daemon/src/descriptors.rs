//! Prepares the process for many open files: every connection, reader and command needs file descriptors.

use crate::output::complain;
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io;
use std::time::Duration;

/// The highest soft limit of open files that polity sets. Some programs that agents run try every descriptor number
/// below their soft limit, so a huge limit would make these programs slow.
const MOST: u64 = 1 << 20;
/// Number of file descriptors that must be free when polity starts.
const FOR_A_START: usize = 32;
/// Number of pauses in five seconds. After each check for free descriptors, there is a pause of [`BETWEEN_TRIES`].
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

/// How long a start waits for free file descriptors.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Patience {
    /// For five seconds only, because a person waits for the start. If no files can be opened by then, the start
    /// continues, and its first `open` reports the error.
    FiveSeconds,
    /// Until descriptors are free. The start says once that it waits.
    Endless,
}

/// Waits until files can be opened, because other processes may use up the descriptors of the system for a while.
pub(crate) fn wait_for_room(patience: Patience) {
    // If the limit of this process itself is too low, waiting does not help. With `Patience::Endless`, this function
    // then returns at once, and the start continues and reports its own error.
    let enough = 2 * FOR_A_START as u64;
    let may_help = getrlimit(Resource::Nofile).current.is_none_or(|most| most >= enough);
    let mut checks = 0_u32;
    while let Some(error) = lack_of_room() {
        checks = checks.saturating_add(1);
        match patience {
            Patience::FiveSeconds if checks > TRIES => return,
            Patience::Endless if !may_help => return,
            Patience::Endless if checks == 1 => {
                complain(&format!(
                    "waiting for free file descriptors, because no file can be opened: {error}"
                ));
            }
            Patience::FiveSeconds | Patience::Endless => {}
        }
        std::thread::sleep(BETWEEN_TRIES);
    }
}

/// Returns the error of an `open` for which no descriptor was free. For any other error, returns `None`, because free
/// descriptors would not help against it.
fn lack_of_room() -> Option<io::Error> {
    let opened: io::Result<Vec<File>> = (0..FOR_A_START).map(|_| File::open("/dev/null")).collect();
    let error = opened.err()?;
    matches!(Errno::from_io_error(&error), Some(Errno::MFILE | Errno::NFILE)).then_some(error)
}
