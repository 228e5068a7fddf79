//! The files below one directory: opening, reading, listing and writing them so that no path leaves the directory.
//!
//! A caller opens a directory as a [`Workspace`] and has it read a path that a model wrote ([`path`]). Reading follows
//! links inside the workspace and returns what the file holds, or a [`FileError`] with advice. Writing asks first whether
//! the path is [`protected`], compares the file with what the caller expects, and then puts the new content in its place
//! by a rename, so that a crash leaves the old content or the new one. [`durable`] does the same for polity's own files.
//!
//! Every operation starts at a directory handle of cap-std. On Linux, cap-std has the kernel resolve the whole path
//! beneath the handle (`openat2` with `RESOLVE_BENEATH`); where this system call does not exist or a sandbox forbids it,
//! and on macOS, cap-std opens the path name by name and follows links itself. Our own use of `openat2` would need the
//! same second way, which is the part that is easily done wrong. Writes go further: they follow no link at all.
//!
//! The operations block, so async code calls them in `spawn_blocking`. This crate must not know tools, agents, tasks, git,
//! or where a workspace is. It decides nothing about who may change what, apart from the paths that nobody may write.

pub mod durable;
pub mod path;
pub mod protected;

mod fault;
mod hash;
mod list;
mod read;
mod workspace;
mod write;

/// Helpers for the tests of this crate and of the crates above.
#[cfg(any(test, feature = "testing"))]
pub mod testing;

pub use fault::{FileError, Kind};
pub use hash::ContentHash;
pub use list::{Entries, Entry, Listing};
pub use path::{PathFault, WorkspacePath};
pub use read::{Metadata, open_file as open_in};
pub use workspace::{OpenError, Trust, Workspace};
pub use write::{Expected, TEMPORARY_PREFIX, is_temporary};
