//! Lists a directory and its subdirectories.

use crate::fault::{FileError, Kind};
use crate::path::{WorkspacePath, on_one_line};
use crate::read::open_directory;
use crate::write::is_temporary;
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Maximum number of names that a listing shows of the directory itself.
const MAX_NAMES: usize = 500;

/// Maximum number of names that a listing shows of each subdirectory. Without this limit, a large subdirectory such as
/// `node_modules` would leave no room for the other subdirectories.
const MAX_NAMES_BELOW: usize = 50;

/// When a listing has this many lines, it leaves out the content of further subdirectories.
const MAX_LINES: usize = 1000;

/// The content of a directory and of its subdirectories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Listing {
    /// One line for each file or directory, sorted. The line is the path relative to the listed directory. For a
    /// directory, the line ends with `/`. For a symbolic link, it ends with `->` and the target. If names are left out,
    /// an additional line says how many names are missing.
    pub lines: Vec<String>,
}

/// The content of a directory, without its subdirectories.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entries {
    /// The entries that are shown, sorted by name.
    pub entries: Vec<Entry>,
    /// Number of entries that were left out.
    pub left_out: usize,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name, without the path of the directory.
    pub name: String,
    /// The type of the entry itself. Links are not followed.
    pub kind: Kind,
    /// The size in bytes; `None` unless the entry is a regular file.
    pub bytes: Option<u64>,
}

/// The first names of a directory, in alphabetical order.
struct Names {
    first: BTreeMap<OsString, Kind>,
    left_out: usize,
}

pub(crate) fn list(dir: &Dir, path: &WorkspacePath) -> Result<Listing, FileError> {
    let error = |error| FileError::new("list", path, error);
    let dir = open_directory(dir, path)?;
    let names = names(&dir, MAX_NAMES).map_err(error)?;
    let mut lines = Vec::new();
    for (name, kind) in &names.first {
        lines.push(line(&dir, "", name, *kind));
        // If a directory cannot be read, it is listed without its content. The same happens if a link has replaced the
        // directory since its name was read.
        if *kind == Kind::Directory
            && lines.len() < MAX_LINES
            && let Ok(below) = dir.open_dir_nofollow(name)
            && let Ok(inside) = self::names(&below, MAX_NAMES_BELOW)
        {
            let above = format!("{}/", name.to_string_lossy());
            lines.extend(inside.first.iter().map(|(name, kind)| line(&below, &above, name, *kind)));
            lines.extend(more(&on_one_line(&above), inside.left_out));
        }
    }
    lines.extend(more("", names.left_out));
    Ok(Listing { lines })
}

pub(crate) fn entries(dir: &Dir, path: &WorkspacePath) -> Result<Entries, FileError> {
    let dir = open_directory(dir, path)?;
    let names = names(&dir, MAX_NAMES).map_err(|error| FileError::new("list", path, error))?;
    let entry = |(name, kind): (&OsString, &Kind)| {
        let is_file = *kind == Kind::File;
        let found = is_file.then(|| dir.symlink_metadata(name).ok()).flatten();
        Entry {
            name: name.to_string_lossy().into_owned(),
            kind: *kind,
            bytes: found.map(|found| found.len()),
        }
    };
    Ok(Entries { entries: names.first.iter().map(entry).collect(), left_out: names.left_out })
}

/// Reads the names of a directory, and keeps the first `limit` names in alphabetical order.
fn names(dir: &Dir, limit: usize) -> std::io::Result<Names> {
    let mut names = Names { first: BTreeMap::new(), left_out: 0 };
    for entry in dir.entries()? {
        let entry = entry?;
        let name = entry.file_name();
        if name == OsStr::new(".git") || is_temporary(&name) {
            continue;
        }
        // The entry may have been removed since its name was read.
        let Ok(kind) = entry.file_type() else { continue };
        names.first.insert(name, Kind::of(kind));
        if names.first.len() > limit {
            names.first.pop_last();
            names.left_out += 1;
        }
    }
    Ok(names)
}

fn line(dir: &Dir, above: &str, name: &OsStr, kind: Kind) -> String {
    let path = on_one_line(&format!("{above}{}", name.to_string_lossy()));
    match kind {
        Kind::File => path,
        Kind::Directory => format!("{path}/"),
        Kind::Link => match dir.read_link_contents(name) {
            Ok(target) => format!("{path} -> {}", on_one_line(&target.to_string_lossy())),
            Err(_) => path,
        },
        Kind::Special => format!("{path} ({kind})"),
    }
}

fn more(above: &str, left_out: usize) -> Option<String> {
    (left_out > 0).then(|| format!("{above}… {left_out} more"))
}
