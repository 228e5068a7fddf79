//! Opens, reads, lists and writes the files below one directory, so that no path can lead out of the directory.
//!
//! A caller opens a directory as a [`Workspace`]. The `Workspace` parses a path that a model wrote (module [`path`]).
//! Reading follows links that stay inside the workspace, and returns the content or a [`FileError`] with advice.
//! Writing first checks whether the path is [`protected`]. Then it compares the file with what the caller expects. Then
//! it writes the new content into another file and renames that file. So after a crash the file has the old or the new
//! content. The module [`durable`] replaces polity's own files in the same way. For shell commands, [`guarded()`] finds
//! the protected paths of a workspace.
//!
//! Every operation begins at a directory handle of the library cap-std. On Linux, cap-std lets the kernel resolve the
//! whole path beneath the handle (`openat2` with `RESOLVE_BENEATH`). On macOS, and on a Linux where this system call
//! does not exist or is forbidden, cap-std opens the path component by component and resolves links itself. This crate
//! does not call `openat2` itself. Otherwise it would need its own code for systems without `openat2`. That code would
//! do the same as cap-std, and is easy to get wrong. Writes are stricter than reads: they follow no links at all.
//!
//! The operations block, so async code must call them in `spawn_blocking`. This crate must not know tools, agents,
//! tasks, git, or where a workspace is. It does not decide who may change what, except for the paths that no agent
//! may write.

pub mod durable;
pub mod path;
pub mod protected;

mod fault;
mod guarded;
mod hash;
mod list;
mod read;
mod workspace;
mod write;

/// Helpers for the tests of this crate and of the crates that depend on it.
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use fault::{FileError, Kind};
pub use guarded::{Guarded, guarded};
pub use hash::ContentHash;
pub use list::{Entries, Entry, Listing};
pub use path::{PathFault, WorkspacePath};
pub use read::{Metadata, open_file as open_in};
pub use workspace::{OpenError, Trust, Workspace};
pub use write::{Expected, TEMPORARY_PREFIX, is_temporary};
