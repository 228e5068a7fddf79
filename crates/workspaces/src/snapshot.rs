//! Compares the files of a workspace with a commit, and writes the input of `git fast-import` for the next commit.
//!
//! Polity reads the files itself, through a handle of the directory. Git never reads them, so nothing in a
//! workspace can make git start a program or follow a link.

use crate::beneath::{Beneath, Execution, Found, Stamp};
use crate::parse::{Leaf, Mode, Tree};
use crate::path::{TreePath, quoted};
use crate::problem::Problem;
use crate::walk::{self, Entry};
use sha1::{Digest, Sha1};
use sha2::Sha256;
use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Two changes of a file within this time may get the same timestamp. So polity does not rely on the timestamp of a
/// file that was changed so recently, and reads the file again at the next comparison.
const RACY: Duration = Duration::from_secs(2);

/// The metadata and the git hash of each file that polity has read in a workspace, so that unchanged files need not
/// be read again.
#[derive(Default)]
pub(crate) struct Seen(HashMap<TreePath, (Stamp, Leaf)>);

/// The differences between a workspace and a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Each path that differs, and the file that is now on disk at this path. `None` if there is no file now.
    pub(crate) changes: Vec<(TreePath, Option<Leaf>)>,
    /// Files that cannot be read. They count as unchanged.
    pub(crate) unreadable: Vec<TreePath>,
}

/// The hash function by which git names contents.
#[derive(Clone, Copy, Debug)]
enum Naming {
    Sha1,
    Sha256,
}

enum Hasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl Hasher {
    fn new(naming: Naming, size: u64) -> Self {
        let mut hasher = match naming {
            Naming::Sha1 => Self::Sha1(Sha1::new()),
            Naming::Sha256 => Self::Sha256(Sha256::new()),
        };
        hasher.update(format!("blob {size}\0").as_bytes());
        hasher
    }

    fn update(&mut self, bytes: &[u8]) {
        match self {
            Self::Sha1(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
        }
    }

    fn name(self) -> String {
        let mut name = String::new();
        let mut write = |bytes: &[u8]| {
            for byte in bytes {
                // Writing to a string cannot fail.
                let _ = write!(name, "{byte:02x}");
            }
        };
        match self {
            Self::Sha1(hasher) => write(&hasher.finalize()),
            Self::Sha256(hasher) => write(&hasher.finalize()),
        }
        name
    }
}

/// Passes exactly `size` bytes of a file to `take`. Returns an error if the file is shorter.
fn read_exactly(mut file: &File, size: u64, mut take: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
    let mut buffer = vec![0; 1 << 16];
    let mut rest = size;
    while rest > 0 {
        let wanted = usize::try_from(rest).unwrap_or(usize::MAX).min(buffer.len());
        let read = file.read(&mut buffer[..wanted])?;
        if read == 0 {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the file became shorter while it was read",
            ));
        }
        take(&buffer[..read])?;
        rest -= read as u64;
    }
    Ok(())
}

/// Returns the entry that git would store for a path, or `None` if the path is neither a file nor a link.
fn leaf_of(
    beneath: &Beneath,
    path: &TreePath,
    naming: Naming,
) -> Result<Option<(Leaf, Option<Stamp>)>, Problem> {
    match beneath.look(path)? {
        Found::File(file, metadata) => {
            let mut hasher = Hasher::new(naming, metadata.len());
            let hash = |bytes: &[u8]| {
                hasher.update(bytes);
                Ok(())
            };
            read_exactly(&file, metadata.len(), hash).map_err(Problem::io("read", &path.relative()))?;
            let mode = match Execution::of(&metadata) {
                Execution::Program => Mode::Program,
                Execution::Plain => Mode::Plain,
            };
            Ok(Some((Leaf { mode, object: hasher.name() }, Some(Stamp::of(&metadata)))))
        }
        Found::Link(target) => {
            let mut hasher = Hasher::new(naming, target.len() as u64);
            hasher.update(&target);
            Ok(Some((Leaf { mode: Mode::Link, object: hasher.name() }, None)))
        }
        Found::Nothing | Found::Directory | Found::Blocked(_) | Found::Special => Ok(None),
    }
}

/// Compares the files of a workspace with `base`, the files of the commit `commit`.
pub(crate) fn compare(
    beneath: &Beneath,
    base: &Tree,
    commit: &str,
    seen: &mut Seen,
) -> Result<Difference, Problem> {
    let naming = if commit.len() == 64 { Naming::Sha256 } else { Naming::Sha1 };
    let mut entries = walk::files(beneath)?;
    let walked: HashSet<TreePath> = entries.iter().map(|entry| entry.path.clone()).collect();
    // An ignore file has no effect on a file that is already in the commit: the file is compared all the same.
    for path in base.keys().filter(|path| !walked.contains(*path)) {
        entries.push(Entry { path: path.clone(), stamp: None });
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let mut still = HashMap::new();
    let mut difference = Difference::default();
    for Entry { path, stamp } in entries {
        let before = base.get(&path);
        if before.is_some_and(|leaf| leaf.mode == Mode::Submodule) {
            continue;
        }
        let known = seen.0.get(&path).filter(|(known, _)| stamp.as_ref() == Some(known));
        let leaf = match known {
            Some((stamp, leaf)) => Some((leaf.clone(), Some(stamp.clone()))),
            None => match leaf_of(beneath, &path, naming) {
                Ok(leaf) => leaf,
                Err(Problem::Io { source, .. }) if source.kind() == io::ErrorKind::PermissionDenied => {
                    difference.unreadable.push(path);
                    continue;
                }
                Err(problem) => return Err(problem),
            },
        };
        let (leaf, stamp) = leaf.map_or((None, None), |(leaf, stamp)| (Some(leaf), stamp));
        if let (Some(leaf), Some(stamp)) = (&leaf, stamp)
            && stamp.is_older_than(now.saturating_sub(RACY))
        {
            still.insert(path.clone(), (stamp, leaf.clone()));
        }
        if leaf.as_ref() != before {
            difference.changes.push((path, leaf));
        }
    }
    seen.0 = still;
    // If a directory stands in the place of a submodule, git counts the files in this directory as part of the
    // submodule. So these files are left out of the difference.
    let submodules: Vec<&TreePath> =
        base.iter().filter(|(_, leaf)| leaf.mode == Mode::Submodule).map(|(path, _)| path).collect();
    let is_inside = |path: &TreePath| submodules.iter().any(|submodule| path.is_below(submodule));
    difference.changes.retain(|(path, _)| !is_inside(path));
    Ok(difference)
}

/// A commit for `git fast-import` to make.
pub(crate) struct NextCommit<'a> {
    /// The ref to set to the new commit.
    pub(crate) reference: &'a str,
    pub(crate) parents: &'a [&'a str],
    /// The author line, which ends with the time.
    pub(crate) author: String,
    pub(crate) message: &'a str,
}

impl NextCommit<'_> {
    /// Writes the beginning of the input for `git fast-import`: everything before the list of files.
    pub(crate) fn begin(&self, stream: &mut impl Write) -> io::Result<()> {
        let time = self.author.rsplit_once('>').map_or("0 +0000", |(_, time)| time.trim());
        writeln!(stream, "feature done\ncommit {}", self.reference)?;
        writeln!(stream, "author {}\ncommitter polity <polity@polity.invalid> {time}", self.author)?;
        writeln!(stream, "data {}\n{}", self.message.len(), self.message)?;
        for (at, parent) in self.parents.iter().enumerate() {
            writeln!(stream, "{} {parent}", if at == 0 { "from" } else { "merge" })?;
        }
        Ok(())
    }
}

/// Writes the list of files of a commit. The repository must already have the contents of these files.
pub(crate) fn stream_known(changes: &[(TreePath, Option<Leaf>)], stream: &mut impl Write) -> io::Result<()> {
    for (path, _) in changes.iter().filter(|(_, leaf)| leaf.is_none()) {
        line(stream, b"D ", path)?;
    }
    for (path, leaf) in changes {
        if let Some(Leaf { mode, object }) = leaf {
            line(stream, format!("M {} {object} ", mode.number()).as_bytes(), path)?;
        }
    }
    stream.write_all(b"done\n")
}

/// Writes the list of files of a commit with their contents, which are read from a workspace.
pub(crate) fn stream_files(
    beneath: &Beneath,
    changes: &[(TreePath, Option<Leaf>)],
    stream: &mut impl Write,
) -> Result<(), Problem> {
    let failed = |path: &TreePath| Problem::io("copy", &path.relative());
    // Deletions come first, because a new file may take the place of a deleted directory.
    for (path, _) in changes.iter().filter(|(_, leaf)| leaf.is_none()) {
        line(stream, b"D ", path).map_err(failed(path))?;
    }
    for (path, _) in changes.iter().filter(|(_, leaf)| leaf.is_some()) {
        let (mode, size, content) = match beneath.look(path)? {
            Found::File(file, metadata) => {
                let mode = match Execution::of(&metadata) {
                    Execution::Program => Mode::Program,
                    Execution::Plain => Mode::Plain,
                };
                (mode, metadata.len(), Ok(file))
            }
            Found::Link(target) => (Mode::Link, target.len() as u64, Err(target)),
            // The file was removed or replaced after `compare` found it. The next commit will contain this change.
            _ => continue,
        };
        let mut write = || {
            line(stream, format!("M {} inline ", mode.number()).as_bytes(), path)?;
            writeln!(stream, "data {size}")?;
            match &content {
                Ok(file) => read_exactly(file, size, |bytes| stream.write_all(bytes))?,
                Err(target) => stream.write_all(target)?,
            }
            stream.write_all(b"\n")
        };
        write().map_err(failed(path))?;
    }
    stream.write_all(b"done\n").map_err(Problem::io("write", std::path::Path::new("the stream of a commit")))
}

fn line(stream: &mut impl Write, command: &[u8], path: &TreePath) -> io::Result<()> {
    stream.write_all(command)?;
    stream.write_all(&quoted(path.bytes()))?;
    stream.write_all(b"\n")
}
