//! The orders of a test to this library: numbers in a file. The test writes them; the library maps the file into
//! memory.

use std::ffi::{CString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI64, Ordering};

/// The index of each number in the file. Each number is an `i64` in native byte order.
#[derive(Clone, Copy)]
pub(crate) enum Word {
    /// The error number with which every write below the root fails. For this order and the next three, 0 lets calls
    /// succeed.
    Write,
    /// The error number with which every call below the root fails that creates, renames, removes or opens for
    /// writing.
    Change,
    /// The error number with which every sync below the root fails.
    Sync,
    /// The error number with which every call fails that needs a new file descriptor.
    Descriptor,
    /// How much the wall clock runs ahead, in nanoseconds.
    Wall,
    /// How much the monotonic clocks run ahead, in nanoseconds.
    Count,
    /// Number of calls that have failed because of these orders.
    Refused,
}

/// How many numbers the file contains.
const WORDS: usize = 7;

type Words = [AtomicI64; WORDS];

fn words() -> Option<&'static Words> {
    static SHARED: OnceLock<Option<&'static Words>> = OnceLock::new();
    *SHARED.get_or_init(|| {
        let path = CString::new(std::env::var_os("POLITY_LAYER_CONTROL")?.into_vec()).ok()?;
        // SAFETY: the path ends with a zero byte. A direct system call is used, because `open` leads back into this
        // library.
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
