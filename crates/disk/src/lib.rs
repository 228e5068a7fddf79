//! Opens the files of polity's own directories, and files that others may have replaced. Opens only regular files, and
//! never waits for another program. Also locks data directories.
//!
//! A process that opens a named pipe usually waits until somebody writes into the pipe, and a device such as
//! `/dev/zero` has no end. So this crate opens each file without waiting, checks the file through its handle, and reads
//! it up to a bound. This crate must not know what is in the files.

mod lock;

pub use lock::{Holder, LOCK, Lock, holder};

use rustix::fs::{Mode, OFlags, openat};
use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// What happens if the last component of a path is a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// The link is followed. The file to which it leads must be a regular file.
    Followed,
    /// The link is refused, because it may lead to any file that the user can read.
    Refused,
}

/// Why this crate does not open or read a file. Callers get this value inside an [`io::Error`]. Other reasons are
/// errors of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The path is a directory, a pipe, a socket or a device.
    NotRegular,
    /// The path is a symbolic link.
    Link,
    /// The file is longer than it may be.
    TooLong {
        /// The bound, in bytes.
        most: u64,
    },
    /// The text is not valid UTF-8.
    NotText,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotRegular => f.write_str("it is not a regular file"),
            Self::Link => f.write_str("it is a symbolic link, which polity does not follow here"),
            Self::TooLong { most } => write!(f, "it is longer than {most} bytes"),
            Self::NotText => f.write_str("stream did not contain valid UTF-8"),
        }
    }
}

impl std::error::Error for Unfit {}

impl From<Unfit> for io::Error {
    fn from(unfit: Unfit) -> Self {
        Self::new(io::ErrorKind::InvalidData, unfit)
    }
}

/// Returns flags for `open`. With these flags, `open` does not wait for the other end of a pipe, and a terminal does
/// not become the controlling terminal of this process.
fn at_once(links: Links) -> OFlags {
    let links = match links {
        Links::Followed => OFlags::empty(),
        Links::Refused => OFlags::NOFOLLOW,
    };
    OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC | links
}

/// Opens a regular file for reading.
///
/// # Errors
///
/// Fails with the error of the system, or with [`Unfit`].
pub fn open(path: &Path, links: Links) -> io::Result<File> {
    with(OpenOptions::new().read(true), path, links)
}

/// Opens a regular file to lock it or to append to it, and creates the file if it does not exist. Only the owner may
/// read a file that this function creates.
///
/// # Errors
///
/// Fails as [`open`] does.
pub fn open_or_create(path: &Path, links: Links) -> io::Result<File> {
    with(OpenOptions::new().append(true).create(true).mode(0o600), path, links)
}

fn with(options: &mut OpenOptions, path: &Path, links: Links) -> io::Result<File> {
    let flags = at_once(links).bits().cast_signed();
    regular(options.custom_flags(flags).open(path).map_err(|error| of_link(error, path, links))?)
}

/// Opens a regular file in a directory. Neither the directory nor the file may be a symbolic link.
///
/// # Errors
///
/// Fails as [`open`] does.
pub fn open_in(directory: &Path, name: &str) -> io::Result<File> {
    let links = Links::Refused;
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | at_once(links);
    // If `open` has both flags, `DIRECTORY` and `NOFOLLOW`, Linux reports a symbolic link as `NotADirectory`. So look
    // whether it is a link.
    let failed = |error: rustix::io::Errno| match fs::symlink_metadata(directory) {
        Ok(found) if found.is_symlink() => Unfit::Link.into(),
        Ok(_) | Err(_) => io::Error::from(error),
    };
    let handle = rustix::fs::open(directory, flags, Mode::empty()).map_err(failed)?;
    let file = openat(&handle, name, OFlags::RDONLY | at_once(links), Mode::empty());
    regular(File::from(file.map_err(|error| of_link(error.into(), &directory.join(name), links))?))
}

/// Converts the error of a failed `open`. For a symbolic link that is not followed, the error differs from system to
/// system. So this function looks at the path itself.
fn of_link(error: io::Error, path: &Path, links: Links) -> io::Error {
    let is_link =
        || links == Links::Refused && fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink());
    let is_socket = || {
        use std::os::unix::fs::FileTypeExt as _;
        fs::metadata(path).is_ok_and(|found| found.file_type().is_socket() || found.file_type().is_fifo())
    };
    if is_link() {
        Unfit::Link.into()
    } else if error.kind() != io::ErrorKind::NotFound && is_socket() {
        // A socket cannot be opened at all, and a pipe that nobody reads cannot be opened for writing.
        Unfit::NotRegular.into()
    } else {
        error
    }
}

fn regular(file: File) -> io::Result<File> {
    if file.metadata()?.is_file() { Ok(file) } else { Err(Unfit::NotRegular.into()) }
}

/// Reads a regular file of at most `most` bytes.
///
/// # Errors
///
/// Fails as [`open`] does, and if the file is longer.
pub fn read(path: &Path, links: Links, most: u64) -> io::Result<Vec<u8>> {
    read_to_end(&mut open(path, links)?, most)
}

/// Reads a regular file of at most `most` bytes as text.
///
/// # Errors
///
/// Fails as [`read`] does, and if the content is not UTF-8.
pub fn read_text(path: &Path, links: Links, most: u64) -> io::Result<String> {
    text(read(path, links, most)?)
}

/// Converts the bytes of a file into text.
///
/// # Errors
///
/// Fails if the content is not UTF-8.
pub fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| Unfit::NotText.into())
}

/// Reads an open file from its current position to its end. The file may have at most `most` bytes.
///
/// # Errors
///
/// Fails with the error of the system, or if the file has more than `most` bytes.
pub fn read_to_end(file: &mut File, most: u64) -> io::Result<Vec<u8>> {
    let too_long = || io::Error::from(Unfit::TooLong { most });
    let length = file.metadata()?.len();
    if length > most {
        return Err(too_long());
    }
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    // The file may have grown since its length was read, so the number of bytes is bounded here, too.
    file.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long()) } else { Ok(bytes) }
}

/// Writes a file that only its owner may read, and replaces any file at this path. The content survives a power cut,
/// and no reader ever sees only a part of the content. A symbolic link at the path is replaced, not followed.
///
/// # Errors
///
/// Fails with the error of the system.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = Path::new(&unfinished);
    // A crash may have left an unfinished file behind, and other users may be allowed to read that file. So remove it,
    // and never write into it.
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        Ok(()) | Err(_) => {}
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(unfinished)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    fs::rename(unfinished, path)?;
    // The new name survives a power cut only if the directory is synced, too.
    match path.parent().filter(|directory| !directory.as_os_str().is_empty()) {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
