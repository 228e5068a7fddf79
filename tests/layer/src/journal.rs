//! The record of all that a process does to the files below a directory, and of what it says to others.
//!
//! A record is a line of text, `kind number length length`, then that many bytes of a path, and that many of data. The
//! call is made while the journal is held, so the order of the records is the order of the calls.

use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// What a record tells.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Data were written to the file, from that byte on.
    Write,
    /// The file was cut, or made longer, to that many bytes.
    Truncate,
    /// The file or directory was synced.
    Sync,
    /// It was to be synced, and that failed.
    SyncFailed,
    /// An empty file was made.
    Create,
    /// A directory was made.
    Directory,
    /// The file got the name in the data.
    Rename,
    /// The name was removed.
    Unlink,
    /// The data were said to others: `path` is standard output (`1`) or a socket.
    Said,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Truncate => "truncate",
            Self::Sync => "sync",
            Self::SyncFailed => "sync-failed",
            Self::Create => "create",
            Self::Directory => "directory",
            Self::Rename => "rename",
            Self::Unlink => "unlink",
            Self::Said => "said",
        }
    }
}

/// Where things are recorded, and what.
pub(crate) struct Journal {
    file: Option<c_int>,
    root: Option<Vec<u8>>,
}

fn shared() -> &'static Mutex<Journal> {
    static SHARED: OnceLock<Mutex<Journal>> = OnceLock::new();
    SHARED.get_or_init(|| {
        let file = std::env::var_os("POLITY_LAYER_JOURNAL").and_then(|path| {
            let path = CString::new(path.into_vec()).ok()?;
            let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC;
            // SAFETY: the path ends with a zero; the call is made past the layer's own `open`.
            let file =
                unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
            c_int::try_from(file).ok().filter(|file| *file >= 0)
        });
        let root = std::env::var_os("POLITY_LAYER_ROOT").map(OsStringExt::into_vec);
        Mutex::new(Journal { file, root })
    })
}

/// Holds the journal, until the guard goes: no other call is made meanwhile.
pub(crate) fn hold() -> MutexGuard<'static, Journal> {
    shared().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journal {
    /// Whether anything is recorded.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Whether a path is one that counts.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        // What all processes share in memory is not meant to last.
        self.root.as_ref().is_some_and(|root| path.starts_with(root)) && !path.ends_with(b"-shm")
    }

    /// Adds a record.
    pub(crate) fn add(&self, kind: Kind, number: i64, path: &[u8], data: &[u8]) {
        let Some(file) = self.file else { return };
        let mut record = format!("{} {number} {} {}\n", kind.name(), path.len(), data.len()).into_bytes();
        record.extend_from_slice(path);
        record.extend_from_slice(data);
        let mut left = record.as_slice();
        while !left.is_empty() {
            // SAFETY: the bytes are there; the call is made past the layer's own `write`.
            let written = unsafe { libc::syscall(libc::SYS_write, file, left.as_ptr(), left.len()) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => left = left.get(written..).unwrap_or_default(),
                // A journal with gaps would prove anything.
                Ok(_) | Err(_) => std::process::abort(),
            }
        }
    }
}

/// What a descriptor stands for: a path, `socket:[…]`, `pipe:[…]`.
pub(crate) fn path_of(descriptor: c_int) -> Vec<u8> {
    let Ok(link) = CString::new(format!("/proc/self/fd/{descriptor}")) else { return Vec::new() };
    let mut path = vec![0_u8; 4096];
    // SAFETY: the buffer is that long.
    let length = unsafe { libc::readlink(link.as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    path.truncate(usize::try_from(length).unwrap_or_default());
    path
}

/// The absolute form of a path that is meant from a directory on.
///
/// # Safety
///
/// The path ends with a zero.
pub(crate) unsafe fn absolute(directory: c_int, path: *const libc::c_char) -> Vec<u8> {
    // SAFETY: as the caller says.
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    if path.starts_with(b"/") {
        return path.to_vec();
    }
    let mut absolute = if directory == libc::AT_FDCWD {
        std::env::current_dir().map(|here| here.into_os_string().into_vec()).unwrap_or_default()
    } else {
        path_of(directory)
    };
    for part in path.split(|byte| *byte == b'/').filter(|part| !part.is_empty() && *part != b".") {
        absolute.push(b'/');
        absolute.extend_from_slice(part);
    }
    absolute
}
