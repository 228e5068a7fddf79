//! Reads files and metadata below a directory handle.

use crate::fault::{FileError, Kind};
use crate::path::WorkspacePath;
use cap_std::fs::{Dir, OpenOptions, OpenOptionsExt};
use rustix::fs::OFlags;
use std::io::Read;
use std::path::{Path, PathBuf};

/// The type and size of the file or directory to which a path leads. Symbolic links are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The type of what the path leads to.
    pub kind: Kind,
    /// The size in bytes of the file that the path leads to.
    pub bytes: u64,
}

/// Converts a path for cap-std, relative to the directory handle.
pub(crate) fn as_relative(path: &WorkspacePath) -> PathBuf {
    if path.is_root() { PathBuf::from(".") } else { path.names().iter().collect() }
}

pub(crate) fn metadata(dir: &Dir, path: &WorkspacePath) -> Result<Metadata, FileError> {
    let found = dir.metadata(as_relative(path)).map_err(|error| FileError::new("look at", path, error))?;
    Ok(Metadata { kind: Kind::of(found.file_type()), bytes: found.len() })
}

/// Opens a regular file for reading, and returns its size. Follows symbolic links that stay in the workspace.
pub(crate) fn open(dir: &Dir, path: &WorkspacePath) -> Result<(std::fs::File, u64), FileError> {
    // The type is checked before opening, because opening a device may have effects.
    only_file(path, metadata(dir, path)?.kind)?;
    open_file(dir, &as_relative(path), path)
}

/// Opens the regular file `name` in a directory, and returns its size. `path` is the path that errors show.
pub fn open_file(dir: &Dir, name: &Path, path: &WorkspacePath) -> Result<(std::fs::File, u64), FileError> {
    let error = |error| FileError::new("read", path, error);
    let mut options = OpenOptions::new();
    // A pipe or a terminal may have replaced the file after its type was checked. With these flags, opening a pipe does
    // not block, and a terminal does not become the controlling terminal of this process.
    options.read(true).custom_flags((OFlags::NONBLOCK | OFlags::NOCTTY).bits().cast_signed());
    let file = dir.open_with(name, &options).map_err(error)?;
    let found = file.metadata().map_err(error)?;
    only_file(path, Kind::of(found.file_type()))?;
    Ok((file.into_std(), found.len()))
}

/// Opens a directory. Follows symbolic links that stay in the workspace.
pub(crate) fn open_directory(dir: &Dir, path: &WorkspacePath) -> Result<Dir, FileError> {
    // The type is checked before opening, because opening a pipe would block.
    if metadata(dir, path)?.kind != Kind::Directory {
        return Err(FileError::NotADirectory(path.clone()));
    }
    dir.open_dir(as_relative(path)).map_err(|error| FileError::new("open", path, error))
}

fn only_file(path: &WorkspacePath, kind: Kind) -> Result<(), FileError> {
    match kind {
        Kind::File => Ok(()),
        Kind::Directory | Kind::Link | Kind::Special => Err(FileError::NotAFile { path: path.clone(), kind }),
    }
}

pub(crate) fn read(dir: &Dir, path: &WorkspacePath, limit: u64) -> Result<Vec<u8>, FileError> {
    let (file, bytes) = open(dir, path)?;
    let too_large = |bytes| FileError::TooLarge { path: path.clone(), bytes, limit };
    if bytes > limit {
        return Err(too_large(bytes));
    }
    let mut content = Vec::new();
    // The file may grow while it is read, so the limit is checked again.
    let read = file.take(limit.saturating_add(1)).read_to_end(&mut content);
    read.map_err(|error| FileError::new("read", path, error))?;
    let length = content.len() as u64;
    if length > limit { Err(too_large(length)) } else { Ok(content) }
}
