//! The journal of all changes that a process makes to the files below a directory, and of all data that it sends out.
//!
//! A record begins with a line of text: `kind number path-length data-length`. The bytes of the path and the bytes of
//! the data follow. During each call that is recorded, the thread locks the journal. So the records have the order of
//! the calls.

use std::ffi::{CStr, CString, c_int};
use std::os::unix::ffi::OsStringExt;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// The kind of a record.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Data was written to the file; the number is the byte offset.
    Write,
    /// The file was shortened or extended; the number is its new length in bytes.
    Truncate,
    /// The file or directory was synced.
    Sync,
    /// A sync of the file or directory failed.
    SyncFailed,
    /// An empty file was created.
    Create,
    /// A directory was created.
    Directory,
    /// The file was renamed; the data is its new path.
    Rename,
    /// The file was removed.
    Unlink,
    /// The data was sent out; the path is `1` (standard output) or a socket.
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

/// The open journal file, and the path of the root. The library records only changes below the root.
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
            // SAFETY: the path ends with a zero byte. The system call is direct, because a call of `open` would lead
            // back into this library.
            let file =
                unsafe { libc::syscall(libc::SYS_openat, libc::AT_FDCWD, path.as_ptr(), flags, 0o600) };
            c_int::try_from(file).ok().filter(|file| *file >= 0)
        });
        let root = std::env::var_os("POLITY_LAYER_ROOT").map(OsStringExt::into_vec);
        Mutex::new(Journal { file, root })
    })
}

/// Locks the journal. Until the returned guard is dropped, no other thread makes a call that needs the journal.
pub(crate) fn hold() -> MutexGuard<'static, Journal> {
    shared().lock().unwrap_or_else(PoisonError::into_inner)
}

impl Journal {
    /// Returns whether there is a journal file.
    pub(crate) fn is_kept(&self) -> bool {
        self.file.is_some()
    }

    /// Returns whether this library records changes of this path, and may make them fail.
    pub(crate) fn covers(&self, path: &[u8]) -> bool {
        // Leave out SQLite's `-shm` files. They are shared memory, and nobody needs them after a power cut.
        self.root.as_ref().is_some_and(|root| path.starts_with(root)) && !path.ends_with(b"-shm")
    }

    /// Appends a record to the journal file, if there is one.
    pub(crate) fn add(&self, kind: Kind, number: i64, path: &[u8], data: &[u8]) {
        let Some(file) = self.file else { return };
        let mut record = format!("{} {number} {} {}\n", kind.name(), path.len(), data.len()).into_bytes();
        record.extend_from_slice(path);
        record.extend_from_slice(data);
        let mut left = record.as_slice();
        while !left.is_empty() {
            // SAFETY: pointer and length are those of a slice. The system call is direct, because a call of `write`
            // would lead back into this library.
            let written = unsafe { libc::syscall(libc::SYS_write, file, left.as_ptr(), left.len()) };
            match usize::try_from(written) {
                Ok(written) if written > 0 => left = left.get(written..).unwrap_or_default(),
                // The journal is incomplete now, and a test could draw wrong conclusions from it. So end the process.
                Ok(_) | Err(_) => std::process::abort(),
            }
        }
    }
}

/// Returns the name of the file behind a descriptor: a path, `socket:[…]` or `pipe:[…]`.
pub(crate) fn path_of(descriptor: c_int) -> Vec<u8> {
    let Ok(link) = CString::new(format!("/proc/self/fd/{descriptor}")) else { return Vec::new() };
    let mut path = vec![0_u8; 4096];
    // SAFETY: the buffer has this length.
    let length = unsafe { libc::readlink(link.as_ptr(), path.as_mut_ptr().cast(), path.len()) };
    path.truncate(usize::try_from(length).unwrap_or_default());
    path
}

/// Returns the absolute form of a path that is relative to an open directory.
///
/// # Safety
///
/// The path has to end with a zero byte.
pub(crate) unsafe fn absolute(directory: c_int, path: *const libc::c_char) -> Vec<u8> {
    // SAFETY: the caller guarantees the zero byte.
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
