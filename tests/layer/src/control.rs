//! The orders of a test to this library. The orders are numbers in a file: the test writes the numbers, and the
//! library maps the file into memory.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// The index of each number in the file. Each number is an `i64` in native byte order.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    /// Writes to files below the root fail with this error number. If the number is 0, they succeed. The same holds for
    /// `Change`, `Sync`, `Descriptor` and `Lock`.
    Write,
    /// Calls fail with this error number if they create, rename or remove a file below the root, or open it for
    /// writing.
    Change,
    /// Syncs of files below the root fail with this error number.
    Sync,
    /// Calls that need a new file descriptor fail with this error number.
    Descriptor,
    /// How much the wall clock runs ahead, in nanoseconds.
    Wall,
    /// How much the monotonic clocks run ahead, in nanoseconds.
    Count,
    /// Number of calls that have failed because of the orders to make calls fail.
    Refused,
    /// Locks of directories fail with this error number.
    Lock,
}

/// How many numbers the file contains.
const WORDS: usize = 8;

type Words = [AtomicI64; WORDS];

fn words() -> Option<&'static Words> {
    static SHARED: OnceLock<Option<&'static Words>> = OnceLock::new();
    *SHARED.get_or_init(|| {
        let path = CString::new(std::env::var_os("POLITY_LAYER_CONTROL")?.into_vec()).ok()?;
        // SAFETY: the path ends with a zero byte. The system call is direct, because a call of `open` would lead back
        // into this library.
        let file = unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), libc::O_RDWR, 0) };
        let file = c_int::try_from(file).ok().filter(|file| *file >= 0)?;
        let (size, rights) = (size_of::<Words>(), libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: this makes a new mapping, at an address that the kernel chooses.
        let shared = unsafe { libc::mmap(null_mut(), size, rights, libc::MAP_SHARED, file, 0) };
        if shared == libc::MAP_FAILED {
            return None;
        }
        // SAFETY: the test has made the file at least this long. The mapping starts at a page and is never removed.
        Some(unsafe { &*shared.cast::<Words>() })
    })
}

/// Returns the current value of a number; 0 if there is no control file.
pub(crate) fn get(word: Word) -> i64 {
    words().map_or(0, |words| words[word as usize].load(Ordering::Relaxed))
}

/// Returns the error number with which a call must fail, and counts the failure. Returns `None` if the call may
/// succeed.
pub(crate) fn refusal(word: Word) -> Option<c_int> {
    let error = c_int::try_from(get(word)).ok().filter(|error| *error != 0)?;
    if let Some(words) = words() {
        words[Word::Refused as usize].fetch_add(1, Ordering::Relaxed);
    }
    Some(error)
}
