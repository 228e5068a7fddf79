//! Reads and writes files below one directory. No path can lead out of the directory: polity opens one component after
//! the other, each by its name and the handle of the directory above. A symbolic link among these components is an
//! error. So polity is safe even if a command of an agent replaces a directory by a link while polity works.

use crate::path::TreePath;
use crate::problem::Problem;
use rustix::fs::{Access, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::{File, Metadata, Permissions};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Prefix of the names of files that are still being written. Such files are left out of every commit.
pub(crate) const UNFINISHED: &str = ".polity-unfinished-";

/// An opened directory. All methods work below it.
pub(crate) struct Beneath {
    handle: OwnedFd,
    path: PathBuf,
}

/// What exists at a path.
pub(crate) enum Found {
    Nothing,
    /// A regular file, already opened.
    File(File, Metadata),
    /// A symbolic link. Holds its target.
    Link(Vec<u8>),
    Directory,
    /// A component before the last exists but is not a directory. Holds the number of components of the path up to and
    /// including this one.
    Blocked(usize),
    /// A pipe, a socket or a device.
    Special,
}

/// The content to write to a path.
pub(crate) enum Content<'a> {
    File(&'a [u8], Execution),
    /// The target of a symbolic link.
    Link(&'a [u8]),
}

/// Whether a file has the permission to be executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Execution {
    Program,
    Plain,
}

impl Execution {
    /// Returns whether the owner may execute the file.
    pub(crate) fn of(metadata: &Metadata) -> Self {
        if metadata.permissions().mode() & 0o100 == 0 { Self::Plain } else { Self::Program }
    }
}

/// The type of an entry in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    File,
    Link,
    Directory,
    /// A pipe, a socket or a device.
    Special,
}

/// Metadata of a file. At least one field changes whenever the content of the file changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stamp {
    /// In bytes.
    pub(crate) size: u64,
    /// The time of the last change of the content, in seconds and nanoseconds.
    pub(crate) modified: (i64, i64),
    /// The time of the last change of the content or the metadata, in seconds and nanoseconds. Programs cannot set
    /// this time.
    pub(crate) changed: (i64, i64),
    /// The inode number. It shows that a file was replaced by another file with the same content.
    pub(crate) inode: u64,
    /// The type and the permissions, as the system call `stat` returns them.
    pub(crate) mode: u64,
}

impl Stamp {
    pub(crate) fn of(metadata: &Metadata) -> Self {
        Self {
            size: metadata.size(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            mode: u64::from(metadata.mode()),
        }
    }

    /// Returns whether the last change of the file was in an earlier second than `time`, which is the duration since
    /// 1970.
    pub(crate) fn is_older_than(&self, time: Duration) -> bool {
        let seconds = i64::try_from(time.as_secs()).unwrap_or(i64::MAX);
        self.changed.0 < seconds && self.modified.0 < seconds
    }
}

const DIRECTORY: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

impl Beneath {
    pub(crate) fn open(path: &Path) -> Result<Self, Problem> {
        let handle = rustix::fs::open(path, DIRECTORY, Mode::empty()).map_err(|error| Problem::Io {
            what: "open",
            path: path.to_owned(),
            source: error.into(),
        })?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Returns what exists at a path.
    pub(crate) fn look(&self, path: &TreePath) -> Result<Found, Problem> {
        let failed = |error: Errno| self.failed("read", path, error.into());
        let (parent, name) = match self.parent(path)? {
            Parent::Open(parent, name) => (parent, name),
            Parent::Missing => return Ok(Found::Nothing),
            Parent::Blocked(components) => return Ok(Found::Blocked(components)),
        };
        // Without `NONBLOCK`, opening a pipe would wait until another process opens the pipe for writing.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        match rustix::fs::openat(&parent, &name, flags, Mode::empty()) {
            Ok(handle) => {
                let file = File::from(handle);
                let metadata = file.metadata().map_err(|error| self.failed("read", path, error))?;
                Ok(match metadata.file_type() {
                    kind if kind.is_file() => Found::File(file, metadata),
                    kind if kind.is_dir() => Found::Directory,
                    _ => Found::Special,
                })
            }
            Err(Errno::NOENT) => Ok(Found::Nothing),
            // For a symbolic link, Linux returns `LOOP`; BSD systems may return `MLINK`.
            Err(Errno::LOOP | Errno::MLINK) => match rustix::fs::readlinkat(&parent, &name, Vec::new()) {
                Ok(target) => Ok(Found::Link(target.into_bytes())),
                Err(Errno::NOENT) => Ok(Found::Nothing),
                Err(error) => Err(failed(error)),
            },
            Err(Errno::NXIO | Errno::OPNOTSUPP | Errno::NODEV) => Ok(Found::Special),
            Err(error) => Err(failed(error)),
        }
    }

    /// Writes a file or link, and makes the missing directories above it. First writes to a temporary name, which
    /// contains `number`, and then renames. If a crash leaves a temporary file, the repeated merge replaces it, because
    /// it uses the same numbers again.
    pub(crate) fn put(&self, path: &TreePath, content: &Content<'_>, number: usize) -> Result<(), Problem> {
        let failed = |error: io::Error| self.failed("write", path, error);
        let (directories, name) = path.split();
        let mut parent = self.handle.try_clone().map_err(failed)?;
        for directory in directories {
            match rustix::fs::mkdirat(&parent, directory, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(error) => return Err(failed(error.into())),
            }
            parent = enter(&parent, directory).map_err(|error| failed(error.into()))?;
        }
        let unfinished = format!("{UNFINISHED}{number}");
        match rustix::fs::unlinkat(&parent, &unfinished, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(failed(error.into())),
        }
        match content {
            Content::Link(target) => {
                rustix::fs::symlinkat(OsStr::from_bytes(target), &parent, &unfinished)
                    .map_err(|error| failed(error.into()))?;
            }
            Content::File(bytes, execution) => {
                self.write(&parent, name, &unfinished, bytes, *execution).map_err(failed)?;
            }
        }
        rustix::fs::renameat(&parent, &unfinished, &parent, name).map_err(|error| failed(error.into()))
    }

    fn write(
        &self,
        parent: &OwnedFd,
        name: &OsStr,
        unfinished: &str,
        bytes: &[u8],
        execution: Execution,
    ) -> io::Result<()> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mode = match execution {
            Execution::Program => 0o777,
            Execution::Plain => 0o666,
        };
        let handle = rustix::fs::openat(parent, unfinished, flags, Mode::from_raw_mode(mode))?;
        let mut file = File::from(handle);
        // The file keeps its permissions, with one exception: `execution` decides whether it may be executed.
        let read = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        if let Ok(before) = rustix::fs::openat(parent, name, read, Mode::empty()) {
            let before = File::from(before).metadata()?;
            if before.is_file() {
                let before = before.permissions().mode() & 0o777;
                let mode = match execution {
                    Execution::Program => before | ((before & 0o444) >> 2),
                    Execution::Plain => before & !0o111,
                };
                file.set_permissions(Permissions::from_mode(mode))?;
            }
        }
        file.write_all(bytes)?;
        file.sync_all()
    }

    /// Returns whether this process may create and remove files in the nearest existing directory above a path.
    pub(crate) fn may_write(&self, path: &TreePath) -> bool {
        let (directories, _) = path.split();
        let Ok(mut nearest) = self.handle.try_clone() else { return false };
        for directory in directories {
            match enter(&nearest, directory) {
                Ok(next) => nearest = next,
                Err(Errno::ACCESS) => return false,
                Err(_) => break,
            }
        }
        let access = Access::WRITE_OK | Access::EXEC_OK;
        rustix::fs::accessat(&nearest, ".", access, AtFlags::empty()).is_ok()
    }

    /// Removes a file, and each directory above it that becomes empty.
    pub(crate) fn remove(&self, path: &TreePath) -> Result<(), Problem> {
        let Parent::Open(parent, name) = self.parent(path)? else { return Ok(()) };
        match rustix::fs::unlinkat(&parent, &name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(self.failed("remove", path, error.into())),
        }
        let (directories, _) = path.split();
        for components in (1..=directories.len()).rev() {
            let Some(directory) = path.ancestor(components) else { break };
            let Ok(Parent::Open(parent, name)) = self.parent(&directory) else { break };
            if rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR).is_err() {
                break;
            }
        }
        Ok(())
    }

    /// Removes a directory and all directories below it, the innermost first. Fails at the first directory that still
    /// contains anything.
    pub(crate) fn remove_empty(&self, path: &TreePath) -> Result<(), Problem> {
        let mut directories = vec![path.clone()];
        let mut at = 0;
        while let Some(directory) = directories.get(at).cloned() {
            at += 1;
            for (name, kind, _) in self.list(Some(&directory))? {
                if kind == Kind::Directory
                    && let Ok(inner) = TreePath::new([directory.bytes(), b"/", &name].concat())
                {
                    directories.push(inner);
                }
            }
        }
        for directory in directories.iter().rev() {
            let Parent::Open(parent, name) = self.parent(directory)? else { return Ok(()) };
            match rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(self.failed("remove", directory, error.into())),
            }
        }
        Ok(())
    }

    /// Returns all entries below a directory, except those that are directories. Stops after `limit` entries.
    pub(crate) fn below(&self, path: &TreePath, limit: usize) -> Result<Vec<TreePath>, Problem> {
        let mut found = Vec::new();
        let mut waiting = vec![path.clone()];
        while let Some(directory) = waiting.pop() {
            for (name, kind, _) in self.list(Some(&directory))? {
                match TreePath::new([directory.bytes(), b"/", &name].concat()) {
                    Ok(inner) if kind == Kind::Directory => waiting.push(inner),
                    Ok(inner) => found.push(inner),
                    // The entry has the name of one of git's own files, which a merge never changes. Such an entry
                    // keeps its directory from being removed, so the directory itself is returned in its place.
                    Err(_) => found.push(directory.clone()),
                }
                if found.len() >= limit {
                    return Ok(found);
                }
            }
        }
        Ok(found)
    }

    /// Lists a directory; `None` means the opened directory itself. A directory that cannot be read counts as
    /// empty.
    pub(crate) fn list(&self, directory: Option<&TreePath>) -> Result<Vec<(Vec<u8>, Kind, Stamp)>, Problem> {
        let opened = match directory {
            None => self.handle.try_clone().map_err(Problem::io("open", &self.path))?,
            Some(path) => match self.parent(path) {
                Ok(Parent::Open(parent, name)) => match enter(&parent, &name) {
                    Ok(opened) => opened,
                    Err(_) => return Ok(Vec::new()),
                },
                _ => return Ok(Vec::new()),
            },
        };
        let mut found = Vec::new();
        let Ok(entries) = rustix::fs::Dir::read_from(&opened) else { return Ok(found) };
        for entry in entries {
            let Ok(entry) = entry else { break };
            let name = entry.file_name().to_bytes();
            if matches!(name, b"." | b"..") {
                continue;
            }
            let Ok(stat) = rustix::fs::statat(&opened, entry.file_name(), AtFlags::SYMLINK_NOFOLLOW) else {
                continue;
            };
            let kind = match FileType::from_raw_mode(stat.st_mode) {
                FileType::RegularFile => Kind::File,
                FileType::Symlink => Kind::Link,
                FileType::Directory => Kind::Directory,
                _ => Kind::Special,
            };
            let stamp = Stamp {
                size: number(stat.st_size),
                modified: (number(stat.st_mtime), number(stat.st_mtime_nsec)),
                changed: (number(stat.st_ctime), number(stat.st_ctime_nsec)),
                inode: number(stat.st_ino),
                mode: number(stat.st_mode),
            };
            found.push((name.to_owned(), kind, stamp));
        }
        Ok(found)
    }

    fn parent(&self, path: &TreePath) -> Result<Parent, Problem> {
        let failed = |error: io::Error| self.failed("open", path, error);
        let (directories, name) = path.split();
        let mut parent = self.handle.try_clone().map_err(failed)?;
        for (at, directory) in directories.iter().enumerate() {
            parent = match enter(&parent, directory) {
                Ok(parent) => parent,
                Err(Errno::NOENT) => return Ok(Parent::Missing),
                Err(Errno::NOTDIR | Errno::LOOP | Errno::MLINK) => return Ok(Parent::Blocked(at + 1)),
                Err(error) => return Err(failed(error.into())),
            };
        }
        Ok(Parent::Open(parent, name.to_owned()))
    }

    fn failed(&self, what: &'static str, path: &TreePath, source: io::Error) -> Problem {
        Problem::Io { what, path: self.path.join(path.relative()), source }
    }
}

enum Parent {
    Open(OwnedFd, OsString),
    Missing,
    Blocked(usize),
}

fn enter(parent: &OwnedFd, directory: &OsStr) -> Result<OwnedFd, Errno> {
    rustix::fs::openat(parent, directory, DIRECTORY | OFlags::NOFOLLOW, Mode::empty())
}

/// Converts a number from a type that is not the same on all operating systems.
fn number<T: Default>(number: impl TryInto<T>) -> T {
    number.try_into().unwrap_or_default()
}

/// Reads an opened file to its end. `size` is the expected number of bytes.
pub(crate) fn read(mut file: File, size: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or(0).min(1 << 24));
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> TreePath {
        TreePath::new(text).unwrap()
    }

    #[test]
    fn no_link_is_followed() {
        let outside = tempfile::tempdir().unwrap();
        std::fs::write(outside.path().join("secret"), "s").unwrap();
        let inside = tempfile::tempdir().unwrap();
        symlink(outside.path(), inside.path().join("d")).unwrap();
        symlink(outside.path().join("secret"), inside.path().join("f")).unwrap();
        let beneath = Beneath::open(inside.path()).unwrap();
        assert!(matches!(beneath.look(&path("d/secret")).unwrap(), Found::Blocked(1)));
        assert!(matches!(beneath.look(&path("f")).unwrap(), Found::Link(_)));
        let content = Content::File(b"x", Execution::Plain);
        assert!(beneath.put(&path("d/new"), &content, 0).is_err());
        assert!(!outside.path().join("new").exists());
        beneath.put(&path("f"), &content, 0).unwrap();
        assert_eq!(std::fs::read(outside.path().join("secret")).unwrap(), b"s");
        assert_eq!(std::fs::read(inside.path().join("f")).unwrap(), b"x");
        beneath.remove(&path("d/secret")).unwrap();
        assert!(outside.path().join("secret").exists());
    }

    #[test]
    fn a_file_keeps_its_permissions() {
        let inside = tempfile::tempdir().unwrap();
        let file = inside.path().join("f");
        std::fs::write(&file, "old").unwrap();
        std::fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        let beneath = Beneath::open(inside.path()).unwrap();
        let mode = || std::fs::metadata(&file).unwrap().permissions().mode() & 0o777;
        beneath.put(&path("f"), &Content::File(b"new", Execution::Plain), 0).unwrap();
        assert_eq!(mode(), 0o640);
        beneath.put(&path("f"), &Content::File(b"new", Execution::Program), 0).unwrap();
        assert_eq!(mode(), 0o750);
    }

    #[test]
    fn empty_directories_go_with_their_last_file() {
        let inside = tempfile::tempdir().unwrap();
        let beneath = Beneath::open(inside.path()).unwrap();
        let content = Content::File(b"x", Execution::Plain);
        beneath.put(&path("a/b/c"), &content, 0).unwrap();
        beneath.put(&path("a/d"), &content, 0).unwrap();
        beneath.remove(&path("a/b/c")).unwrap();
        assert!(!inside.path().join("a/b").exists());
        assert!(inside.path().join("a/d").exists());
    }
}
