//! Creates and syncs the directories of the store.

use std::fs::{DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

/// Creates a directory, and the missing directories above it. Only the owner can read the created directories.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Creates a directory inside the store. Fails if the path is a symbolic link: otherwise polity would write and remove
/// files in the directory that the link points to.
pub(crate) fn make_inner_directory(path: &Path) -> io::Result<()> {
    make_directory(path)?;
    if std::fs::symlink_metadata(path)?.is_symlink() { Err(polity_disk::Unfit::Link.into()) } else { Ok(()) }
}

/// Syncs a directory, so that a power cut cannot undo earlier changes in it: files that were created, renamed or
/// removed.
pub(crate) fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}
