//! What a test has ordered: numbers in a file that both have in memory.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// The numbers of the file, in this order; each is an `i64` of the machine.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    /// The error of every write below the root; 0 for none, here and in the next three.
    Write,
    /// The error of whatever makes, renames or removes something below the root, or opens it for writing.
    Change,
    /// The error of every sync below the root.
    Sync,
    /// The error of every call that needs a new file descriptor.
    Descriptor,
    /// How far the clock on the wall is wrong, in nanoseconds.
    Wall,
    /// How far the clock that only counts is wrong, in nanoseconds.
    Count,
    /// How many calls have failed because of these orders.
    Refused,
}

/// How many numbers there are.
const WORDS: usize = 7;

type Words = [AtomicI64; WORDS];

fn words() -> Option<&'static Words> {
    static SHARED: OnceLock<Option<&'static Words>> = OnceLock::new();
    *SHARED.get_or_init(|| {
        let path = CString::new(std::env::var_os("POLITY_LAYER_CONTROL")?.into_vec()).ok()?;
        // SAFETY: the path ends with a zero; the call is made past the layer's own `open`.
        let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDWR, 0) };
        let file = c_int::try_from(file).ok().filter(|file| *file >= 0)?;
        let (size, rights) = (size_of::<Words>(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: a mapping of its own, at a place that the system chooses.
        let shared = unsafe { libc::mmap(null_mut(), size, rights, libc::MAP_SHARED, file, 0) };
        if shared == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the test has made the file at least that long; the mapping is aligned to a page and never undone.
        Some(unsafe { &*shared.cast::<Words>() })
    })
}

/// A number as it is now; 0 where no test gives orders.
pub(crate) fn get(word: Word) -> i64 {
    words().map_or(0, |words| words[word as usize].load(Ordering::Relaxed))
}

/// The error that a call is to fail with, which is counted; `None` where it is to be made.
pub(crate) fn refusal(word: Word) -> Option<c_int> {
    let error = c_int::try_from(get(word)).ok().filter(|error| *error != 0)?;
    if let Some(words) = words() {
        words[Word::Refused as usize].fetch_add(1, Ordering::Relaxed);
    }
    Some(error)
}
