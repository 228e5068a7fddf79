//! Writes files below a directory handle.
//!
//! A file is written to a temporary file in the same directory, which then takes its place. So nobody reads half a
//! file, and a hard link to the old content keeps the old content. No symbolic link on the way is followed: a link could
//! lead to a protected file inside the workspace.

use crate::fault::{FileError, Kind};
use crate::hash::ContentHash;
use crate::path::WorkspacePath;
use crate::protected::protection;
use crate::read;
use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, OpenOptions, Permissions, PermissionsExt};
use std::ffi::OsStr;
use std::hash::{BuildHasher, BuildHasherDefault, DefaultHasher};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

/// The names of temporary files begin like this. Listings, searches and commits leave them out.
pub const TEMPORARY_PREFIX: &str = ".polity-writing-";

/// The permissions that a write keeps. The bits that let a program run as somebody else are dropped.
const KEPT_MODE: u32 = 0o777;

/// The permissions to write, for anybody.
const WRITE_BITS: u32 = 0o222;

/// What a writer expects to find at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// Whatever there is.
    Anything,
    /// No file.
    Absent,
    /// A file with this content.
    Content(ContentHash),
}

/// Only one writer of this process at a time compares a file with what it expects and puts the new file in its place.
/// Several locks let different workspaces be written at the same time.
static LOCKS: [Mutex<()>; 16] = [const { Mutex::new(()) }; 16];

/// Tells the temporary files of this process from those that a killed process left.
static PROCESS: LazyLock<String> = LazyLock::new(|| format!("{:016x}", fastrand::u64(..)));

/// Returns whether a file of this name is one that a write has not finished.
pub fn is_temporary(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX))
}

/// Returns the error if a path is never written.
pub(crate) fn check_protection(path: &WorkspacePath) -> Result<(), FileError> {
    match protection(path) {
        Some(entry) => Err(FileError::Protected { path: path.clone(), reason: entry.reason }),
        None => Ok(()),
    }
}

/// Puts a file with this content at the path.
pub(crate) fn write(
    root: &Dir,
    directory: &Path,
    path: &WorkspacePath,
    expected: Expected,
    content: &[u8],
) -> Result<(), FileError> {
    check_protection(path)?;
    let (Some(name), Some(above)) = (path.name(), path.parent()) else {
        return Err(FileError::NotAFile { path: path.clone(), kind: Kind::Directory });
    };
    let error = |error| FileError::new("write", path, error);
    let parent = parent(root, &above, Missing::Created)?;
    let old = mode(&parent, name, path)?;
    let temporary = Temporary::create(&parent, content, old).map_err(error)?;
    {
        let _alone = lock(directory);
        // Looks again: the file may have changed while the temporary file was written.
        mode(&parent, name, path)?;
        check(&parent, name, path, expected)?;
        temporary.take_place_of(name).map_err(error)?;
    }
    // Otherwise a power cut could lose the new name, after the society has recorded the change.
    let synced = parent.open(".").and_then(|directory| directory.sync_all());
    synced.map_err(error)
}

/// Removes the temporary files that a killed process left in the directory of a path.
pub(crate) fn sweep(root: &Dir, path: &WorkspacePath) -> Result<(), FileError> {
    let Some(above) = path.parent() else { return Ok(()) };
    let parent = match parent(root, &above, Missing::Reported) {
        Err(FileError::NotFound(_)) => return Ok(()),
        parent => parent?,
    };
    let error = |error| FileError::new("clean", &above, error);
    let own = own_prefix();
    for entry in parent.entries().map_err(error)? {
        let name = entry.map_err(error)?.file_name();
        if is_temporary(&name) && !name.to_str().is_some_and(|name| name.starts_with(&own)) {
            // Another process may have removed it meanwhile, or may still need it and will then fail without harm.
            let _ = parent.remove_file(&name);
        }
    }
    Ok(())
}

/// What happens to directories that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Created,
    Reported,
}

/// Opens a directory name by name without following any link.
fn parent(root: &Dir, path: &WorkspacePath, missing: Missing) -> Result<Dir, FileError> {
    let io = |error| FileError::new("open", path, error);
    let mut dir = root.try_clone().map_err(io)?;
    for name in path.names() {
        let mut below = dir.open_dir_nofollow(name);
        if missing == Missing::Created && is_missing(&below) {
            match dir.create_dir(name) {
                // Somebody else has just made it.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => made.map_err(io)?,
            }
            below = dir.open_dir_nofollow(name);
        }
        dir = match below {
            Ok(below) => below,
            Err(_) if is_link(&dir, name) => return Err(FileError::ThroughLink(path.clone())),
            Err(error) => return Err(io(error)),
        };
    }
    Ok(dir)
}

fn is_missing(opened: &io::Result<Dir>) -> bool {
    opened.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

fn is_link(dir: &Dir, name: &str) -> bool {
    dir.symlink_metadata(name).is_ok_and(|found| found.file_type().is_symlink())
}

/// Returns the permissions of the file that is to be replaced, or `None` if there is no file.
fn mode(parent: &Dir, name: &str, path: &WorkspacePath) -> Result<Option<u32>, FileError> {
    let found = match parent.symlink_metadata(name) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(FileError::new("look at", path, error)),
    };
    match Kind::of(found.file_type()) {
        Kind::File => {}
        Kind::Link => return Err(FileError::ThroughLink(path.clone())),
        kind @ (Kind::Directory | Kind::Special) => {
            return Err(FileError::NotAFile { path: path.clone(), kind });
        }
    }
    let mode = found.permissions().mode() & KEPT_MODE;
    // Replacing a file needs no permission to write it, so its owner's wish is checked here.
    if mode & WRITE_BITS == 0 { Err(FileError::WriteProtected(path.clone())) } else { Ok(Some(mode)) }
}

/// Compares the file with what the writer expects.
fn check(parent: &Dir, name: &str, path: &WorkspacePath, expected: Expected) -> Result<(), FileError> {
    let now = || match read::open_file(parent, Path::new(name), path) {
        Ok((file, _)) => {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(file).map_err(|error| FileError::new("read", path, error))?;
            Ok(Some(ContentHash::from(hasher.finalize())))
        }
        Err(FileError::NotFound(_)) => Ok(None),
        Err(error) => Err(error),
    };
    let fits = match expected {
        Expected::Anything => true,
        Expected::Absent => now()?.is_none(),
        Expected::Content(hash) => now()? == Some(hash),
    };
    if fits { Ok(()) } else { Err(FileError::Changed(path.clone())) }
}

fn lock(directory: &Path) -> MutexGuard<'static, ()> {
    let hash = BuildHasherDefault::<DefaultHasher>::default().hash_one(directory);
    let at = usize::try_from(hash % LOCKS.len() as u64).unwrap_or_default();
    // The lock protects no data that a panic could leave half changed.
    LOCKS[at].lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_prefix() -> String {
    format!("{TEMPORARY_PREFIX}{}-", *PROCESS)
}

/// A temporary file. It is removed unless it takes the place of another file.
struct Temporary<'a> {
    parent: &'a Dir,
    name: Option<String>,
}

impl<'a> Temporary<'a> {
    fn create(parent: &'a Dir, content: &[u8], mode: Option<u32>) -> io::Result<Self> {
        let name = format!("{}{:016x}", own_prefix(), fastrand::u64(..));
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let mut file = parent.open_with(&name, &options)?;
        let temporary = Self { parent, name: Some(name) };
        file.write_all(content)?;
        if let Some(mode) = mode {
            file.set_permissions(Permissions::from_mode(mode))?;
        }
        file.sync_all()?;
        Ok(temporary)
    }

    fn take_place_of(mut self, name: &str) -> io::Result<()> {
        if let Some(temporary) = &self.name {
            self.parent.rename(temporary, self.parent, name)?;
            self.name = None;
        }
        Ok(())
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            // If it cannot be removed, listings and commits leave it out anyway.
            let _ = self.parent.remove_file(name);
        }
    }
}
