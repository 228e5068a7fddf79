//! A thread that swaps two files while a test works on them.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Number of swaps after which a test may stop.
const SWAPS: usize = 3000;

/// A thread that swaps two paths repeatedly. Dropping this ends the thread.
pub struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Swapper {
    /// Starts to swap the two paths.
    pub fn start(one: PathBuf, other: PathBuf) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = thread::spawn({
            let (stop, swaps) = (stop.clone(), swaps.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    swap(&one, &other);
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    /// Returns whether the thread has made fewer than `SWAPS` swaps, so that the test should continue.
    pub fn is_going(&self) -> bool {
        self.swaps.load(Ordering::Relaxed) < SWAPS
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().map(thread::JoinHandle::join);
        assert!(matches!(ended, Some(Ok(()))) || thread::panicking());
    }
}

fn swap(one: &Path, other: &Path) {
    if !exchanged(one, other) {
        let aside = one.with_extension("aside");
        let renamed = fs::rename(one, &aside).and_then(|()| fs::rename(other, one));
        let renamed = renamed.and_then(|()| fs::rename(&aside, other));
        assert!(renamed.is_ok(), "{renamed:?}");
    }
}

/// Exchanges two paths atomically. Returns `false` if the system cannot do this.
#[cfg(target_os = "linux")]
fn exchanged(one: &Path, other: &Path) -> bool {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn exchanged(_: &Path, _: &Path) -> bool {
    false
}
