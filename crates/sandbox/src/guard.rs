//! Restores guarded paths: files in a workspace, such as git hooks, that can start programs outside the sandbox. A
//! command must not change them.
//!
//! In some cases the sandbox cannot make a guarded path read-only: the path does not exist yet, or only Landlock
//! protects the workspace. Landlock allows changes in a whole directory, and cannot exclude a path in it. In both
//! cases, the supervisor notes the content of the path before the command runs and restores it afterwards. If a
//! program of the person reads the path before the supervisor restores it, the program sees what the command wrote.
//!
//! A workspace has many other directories in which a command could make a guarded path. For these directories, the
//! supervisor notes only which guarded paths already exist. Afterwards it removes those that the command has made.

use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};
use rustix::io::Errno;

use crate::message::Guard;

/// Maximum number of bytes of guarded files that can be noted. Real settings and hooks are far smaller.
const MOST_BYTES: usize = 32 << 20;

/// Maximum nesting of directories that can be noted.
const DEPTH: usize = 32;

/// Why guarded paths could not be noted.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SnapshotError {
    #[error("{} cannot be opened: {source}", .path.display())]
    Open { path: PathBuf, source: Errno },
    #[error("{} cannot be read: {source}", .path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{} is larger than {MOST_BYTES} bytes; move data out of it", .0.display())]
    TooLarge(PathBuf),
    #[error("{} is not a path inside the workspace", .0.display())]
    Outside(PathBuf),
}

/// The noted state of guarded paths.
#[derive(Debug)]
pub(crate) struct Snapshot {
    workspace: OwnedFd,
    entries: Vec<(PathBuf, Entry)>,
    directories: Vec<Watched>,
    /// The paths that a command must not make in `directories`.
    names: Vec<PathBuf>,
}

/// A directory in which a command must not make guarded paths.
#[derive(Debug)]
struct Watched {
    directory: PathBuf,
    /// The guarded paths that existed when the snapshot was taken, relative to the directory.
    present: BTreeSet<PathBuf>,
}

/// What existed at a path when the snapshot was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Entry {
    Missing,
    File {
        content: Vec<u8>,
        mode: u32,
    },
    Link {
        target: OsString,
    },
    Directory {
        mode: u32,
        entries: Vec<(OsString, Entry)>,
    },
    /// A socket or another special file, which is neither noted nor restored.
    Other,
}

impl Snapshot {
    /// Notes the guarded paths of a workspace.
    pub(crate) fn take(guard: &Guard) -> Result<Self, SnapshotError> {
        let handle = rustix::fs::open(&guard.workspace, DIRECTORY, Mode::empty())
            .map_err(|source| SnapshotError::Open { path: guard.workspace.clone(), source })?;
        let mut budget = MOST_BYTES;
        let mut entries = Vec::new();
        for path in &guard.paths {
            let names = names(path).ok_or_else(|| SnapshotError::Outside(path.clone()))?;
            let Some((last, parents)) = names.split_last() else { continue };
            let entry = match descend(&handle, parents, Effort::Look) {
                Ok(parent) => note(&parent, last, path, &mut budget, DEPTH)?,
                Err(_) => Entry::Missing,
            };
            entries.push((path.clone(), entry));
        }
        let mut directories = Vec::new();
        for directory in &guard.directories {
            let parts = names(directory).ok_or_else(|| SnapshotError::Outside(directory.clone()))?;
            let Ok(opened) = descend(&handle, &parts, Effort::Look) else { continue };
            let present = occupied(&opened, &guard.names, Effort::Look);
            directories.push(Watched { directory: directory.clone(), present });
        }
        Ok(Self { workspace: handle, entries, directories, names: guard.names.clone() })
    }

    /// Restores the paths that differ from the noted state, and returns them.
    pub(crate) fn restore(&self) -> Vec<PathBuf> {
        let mut restored = Vec::new();
        for (path, before) in &self.entries {
            let names = names(path).unwrap_or_default();
            let Some((last, parents)) = names.split_last() else { continue };
            let effort = if *before == Entry::Missing { Effort::Unlock } else { Effort::Make };
            let Ok(parent) = descend(&self.workspace, parents, effort) else { continue };
            // If a path cannot be noted any more, for example because its files are too large now, it counts as
            // changed.
            let now = note(&parent, last, path, &mut (2 * MOST_BYTES), DEPTH).unwrap_or(Entry::Other);
            if now != *before && *before != Entry::Other {
                restored.push(path.clone());
                if let Err(error) = put_back(&parent, last, before) {
                    tracing::warn!(path = %path.display(), %error, "a guarded path could not be put back");
                }
            }
        }
        for Watched { directory, present } in &self.directories {
            let parts = names(directory).unwrap_or_default();
            let Ok(opened) = descend(&self.workspace, &parts, Effort::Unlock) else { continue };
            for path in occupied(&opened, &self.names, Effort::Unlock).difference(present) {
                let whole = directory.join(path);
                if let Err(error) = remove_below(&opened, path) {
                    tracing::warn!(path = %whole.display(), %error, "a guarded path could not be removed");
                }
                restored.push(whole);
            }
        }
        restored
    }
}

/// The flags for opening directories. With these flags, a symbolic link is never followed.
const DIRECTORY: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// What to do to open a directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Effort {
    /// Change nothing.
    Look,
    /// If the owner lacks the right to read the directory, give the right back. Otherwise a command could make
    /// something, hide it from the supervisor, and show it again later.
    Unlock,
    /// Do what `Unlock` does. If there is no directory with this name, also make one. Anything else with this name is
    /// removed first.
    Make,
}

/// The names in a relative path; `None` if it could leave the workspace.
fn names(path: &Path) -> Option<Vec<&OsStr>> {
    path.components()
        .map(|part| match part {
            Component::Normal(name) => Some(name),
            Component::Prefix(_) | Component::RootDir | Component::CurDir | Component::ParentDir => None,
        })
        .collect()
}

/// Opens a directory below `from`. Opens one name of the path after the other, and follows no symbolic links.
fn descend(from: &OwnedFd, names: &[&OsStr], effort: Effort) -> Result<OwnedFd, Errno> {
    let mut handle = from.try_clone().map_err(|_| Errno::MFILE)?;
    for name in names {
        handle = match open(&handle, name, effort) {
            Err(_) if effort == Effort::Make => {
                remove(&handle, name).map_err(|_| Errno::IO)?;
                rustix::fs::mkdirat(&handle, *name, Mode::from_raw_mode(0o755))?;
                rustix::fs::openat(&handle, *name, DIRECTORY, Mode::empty())?
            }
            opened => opened?,
        };
    }
    Ok(handle)
}

/// Opens a directory in `parent`. Follows no symbolic links.
fn open(parent: &OwnedFd, name: &OsStr, effort: Effort) -> Result<OwnedFd, Errno> {
    match rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()) {
        Err(Errno::ACCESS) if effort != Effort::Look => {
            unlock(parent, name).map_err(|_| Errno::ACCESS)?;
            rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())
        }
        opened => opened,
    }
}

/// Gives the owner of a directory all rights to it. Follows no symbolic links.
fn unlock(parent: &OwnedFd, name: &OsStr) -> std::io::Result<()> {
    // A handle with the flag `PATH` needs no right to read. Its path in `/proc` leads to the same directory, even if
    // another command has renamed the directory meanwhile.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = rustix::fs::openat(parent, name, flags, Mode::empty())?;
    let mode = rustix::fs::fstat(&handle)?.st_mode & 0o7777;
    let path = Path::new("/proc/self/fd").join(handle.as_raw_fd().to_string());
    std::fs::set_permissions(path, Permissions::from_mode(mode | 0o700))
}

/// Reads what the directory `parent` contains under this name. For a directory, also reads everything below it.
fn note(
    parent: &OwnedFd,
    name: &OsStr,
    path: &Path,
    budget: &mut usize,
    depth: usize,
) -> Result<Entry, SnapshotError> {
    let open = |source| SnapshotError::Open { path: path.to_owned(), source };
    let found = match rustix::fs::statat(parent, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(Entry::Missing),
        Err(source) => return Err(open(source)),
    };
    let mode = found.st_mode & 0o7777;
    match FileType::from_raw_mode(found.st_mode) {
        FileType::RegularFile => {
            let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
            let file = rustix::fs::openat(parent, name, flags, Mode::empty()).map_err(open)?;
            let mut content = Vec::new();
            std::fs::File::from(file)
                .take(*budget as u64 + 1)
                .read_to_end(&mut content)
                .map_err(|source| SnapshotError::Read { path: path.to_owned(), source })?;
            *budget =
                budget.checked_sub(content.len()).ok_or_else(|| SnapshotError::TooLarge(path.to_owned()))?;
            Ok(Entry::File { content, mode })
        }
        FileType::Symlink => {
            let target = rustix::fs::readlinkat(parent, name, Vec::new()).map_err(open)?;
            Ok(Entry::Link { target: OsStr::from_bytes(target.as_bytes()).to_owned() })
        }
        FileType::Directory => {
            let depth = depth.checked_sub(1).ok_or_else(|| SnapshotError::TooLarge(path.to_owned()))?;
            let handle = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty()).map_err(open)?;
            let mut entries = Vec::new();
            for entry in Dir::read_from(&handle).map_err(open)? {
                let entry = entry.map_err(open)?;
                let inner = OsStr::from_bytes(entry.file_name().to_bytes());
                if inner != "." && inner != ".." {
                    *budget =
                        budget.checked_sub(64).ok_or_else(|| SnapshotError::TooLarge(path.to_owned()))?;
                    entries.push((inner.to_owned(), note(&handle, inner, &path.join(inner), budget, depth)?));
                }
            }
            entries.sort_by(|one, other| one.0.cmp(&other.0));
            Ok(Entry::Directory { mode, entries })
        }
        _ => Ok(Entry::Other),
    }
}

/// Returns which guarded paths exist in a directory. If a part of a guarded path exists but is not a directory, returns
/// this part, because it could be a symbolic link to a directory that contains the rest of the path.
fn occupied(directory: &OwnedFd, guarded: &[PathBuf], effort: Effort) -> BTreeSet<PathBuf> {
    let Ok(entries) = Dir::read_from(directory) else { return BTreeSet::new() };
    let firsts: BTreeSet<&OsStr> = guarded.iter().filter_map(|path| path.iter().next()).collect();
    let present: BTreeSet<OsString> = entries
        .flatten()
        .map(|entry| OsStr::from_bytes(entry.file_name().to_bytes()).to_owned())
        .filter(|name| firsts.contains(name.as_os_str()))
        .collect();
    let exists = |path: &&PathBuf| path.iter().next().is_some_and(|first| present.contains(first));
    guarded.iter().filter(exists).filter_map(|path| occupied_part(directory, path, effort)).collect()
}

/// Returns a guarded path if it exists in a directory. If only a part of the path exists, and this part is no
/// directory, returns this part.
fn occupied_part(directory: &OwnedFd, path: &Path, effort: Effort) -> Option<PathBuf> {
    let mut handle = directory.try_clone().ok()?;
    let mut part = PathBuf::new();
    for name in path {
        part.push(name);
        let found = rustix::fs::statat(&handle, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
        if part == path || FileType::from_raw_mode(found.st_mode) != FileType::Directory {
            break;
        }
        handle = open(&handle, name, effort).ok()?;
    }
    Some(part)
}

/// Removes a path below a directory. Follows no symbolic links.
fn remove_below(directory: &OwnedFd, path: &Path) -> std::io::Result<()> {
    let names = names(path).unwrap_or_default();
    let Some((last, parents)) = names.split_last() else { return Ok(()) };
    remove(&descend(directory, parents, Effort::Unlock)?, last)
}

/// Restores what the directory `parent` contained under this name before the command ran.
fn put_back(parent: &OwnedFd, name: &OsStr, before: &Entry) -> std::io::Result<()> {
    remove(parent, name)?;
    match before {
        Entry::Missing | Entry::Other => {}
        Entry::File { content, mode } => {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let mut file =
                std::fs::File::from(rustix::fs::openat(parent, name, flags, Mode::from_raw_mode(0o600))?);
            file.write_all(content)?;
            rustix::fs::fchmod(&file, Mode::from_raw_mode(*mode))?;
        }
        Entry::Link { target } => rustix::fs::symlinkat(target.as_os_str(), parent, name)?,
        Entry::Directory { mode, entries } => {
            rustix::fs::mkdirat(parent, name, Mode::from_raw_mode(0o700))?;
            let handle = rustix::fs::openat(parent, name, DIRECTORY, Mode::empty())?;
            for (inner, entry) in entries {
                put_back(&handle, inner, entry)?;
            }
            rustix::fs::fchmod(&handle, Mode::from_raw_mode(*mode))?;
        }
    }
    Ok(())
}

/// Removes the file or directory with this name. Changes nothing outside the parent directory, because `parent` is an
/// open handle.
///
/// If a directory cannot be removed, for example because a command made it too deep, it is renamed. No program looks
/// for hooks or settings under the new name.
fn remove(parent: &OwnedFd, name: &OsStr) -> std::io::Result<()> {
    let directory = Path::new("/proc/self/fd").join(parent.as_raw_fd().to_string());
    let path = directory.join(name);
    match std::fs::symlink_metadata(&path) {
        Ok(found) if found.is_dir() => std::fs::remove_dir_all(&path).or_else(|_| {
            let mut other = name.to_owned();
            other.push(format!(".refused-{}", std::process::id()));
            std::fs::rename(&path, directory.join(other))
        }),
        Ok(_) => std::fs::remove_file(&path),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
