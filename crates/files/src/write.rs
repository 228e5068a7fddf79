//! Writes files below a directory handle.
//!
//! A write makes a temporary file in the same directory and renames it to the target. So no reader sees half of a file.
//! If the old file has a second name (a hard link), the second name keeps the old content. A symbolic link could lead
//! to a protected file inside the workspace, so a write follows no symbolic links.

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

/// Prefix of the names of temporary files. Listings, searches and commits leave out files with this prefix.
pub const TEMPORARY_PREFIX: &str = ".polity-writing-";

/// The permission bits that a write keeps when it replaces a file. A write drops the bits that make a program run as
/// another user (setuid, setgid).
const KEPT_MODE: u32 = 0o777;

/// The write permissions of owner, group and others.
const WRITE_BITS: u32 = 0o222;

/// What the caller of a write expects at the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// There may be any file at the path, or no file.
    Anything,
    /// The path must not exist.
    Absent,
    /// The path must be a file with this content.
    Content(ContentHash),
}

/// A writer compares the old content with what it expects, and then renames the new file. While it does both, it holds
/// one of these locks. So if two writers in this process expect the same old content, only one of them succeeds. There
/// are several locks, so that writes in different workspaces rarely wait for each other.
static LOCKS: [Mutex<()>; 16] = [const { Mutex::new(()) }; 16];

/// A random text in the names of this process's temporary files. It distinguishes these files from those that a killed
/// process has left.
static PROCESS: LazyLock<String> = LazyLock::new(|| format!("{:016x}", fastrand::u64(..)));

/// Returns whether a name belongs to a temporary file of an unfinished write.
pub fn is_temporary(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with(TEMPORARY_PREFIX))
}

/// Returns an error if the path is protected, because the tools of agents must not write to such a path.
pub(crate) fn check_protection(path: &WorkspacePath) -> Result<(), FileError> {
    match protection(path) {
        Some(entry) => Err(FileError::Protected { path: path.clone(), reason: entry.reason }),
        None => Ok(()),
    }
}

/// Writes a file with this content, if the present content of the path is what the caller expects.
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
        // Checks again, because the file may have changed while the temporary file was written.
        mode(&parent, name, path)?;
        check(&parent, name, path, expected)?;
        temporary.take_place_of(name).map_err(error)?;
    }
    // Syncs the directory. Otherwise a power cut could undo the rename, although the society has already recorded the
    // change.
    let synced = parent.open(".").and_then(|directory| directory.sync_all());
    synced.map_err(error)
}

/// Removes the temporary files that a killed process has left in the directory of a path.
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
            // If another process has already removed this file, the removal fails, which does no harm. The process that
            // made the file may still need it. Then the write of that process fails, which does no harm either.
            let _ = parent.remove_file(&name);
        }
    }
    Ok(())
}

/// What to do with directories that do not exist.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Missing {
    Created,
    Reported,
}

/// Opens a directory component by component, without following links.
fn parent(root: &Dir, path: &WorkspacePath, missing: Missing) -> Result<Dir, FileError> {
    let io = |error| FileError::new("open", path, error);
    let mut dir = root.try_clone().map_err(io)?;
    for name in path.names() {
        let mut below = dir.open_dir_nofollow(name);
        if missing == Missing::Created && is_missing(&below) {
            match dir.create_dir(name) {
                // Another writer has made the directory since the attempt to open it.
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

/// Returns the permissions of the file to replace, or `None` if the file does not exist.
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
    // A rename would also replace a write-protected file, so the permissions are checked here.
    if mode & WRITE_BITS == 0 { Err(FileError::WriteProtected(path.clone())) } else { Ok(Some(mode)) }
}

/// Compares the present content of the file with what the caller expects.
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
    // If another thread panics, it leaves no data half changed, because the lock protects no data. So the lock is still
    // good.
    LOCKS[at].lock().unwrap_or_else(PoisonError::into_inner)
}

fn own_prefix() -> String {
    format!("{TEMPORARY_PREFIX}{}-", *PROCESS)
}

/// A temporary file. Dropping this removes the file, unless it was renamed to its target.
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
            // If the removal fails, the file stays, but listings and searches leave it out.
            let _ = self.parent.remove_file(name);
        }
    }
}
