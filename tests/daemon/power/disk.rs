//! A simulated disk with its page cache: a change is certain to survive a power cut only after a sync.
//!
//! The simulated disk promises no more than POSIX does. Data is certain to survive after a sync of its file, and a name
//! after a sync of its directory. Each change that was not synced may survive or not, independently of the other
//! changes. As on Linux, a failed sync loses the data that it should have written: a process can still read this data,
//! but the data does not get to the disk until a process writes it again. If the sync of a directory fails, the
//! simulated disk loses no names. This is enough, because a file system with a journal writes nothing more after such a
//! failure. So no later change can survive without these names.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use polity_tests::Record;

/// The unit in which the page cache is written to the disk, in bytes.
const PAGE: usize = 4096;

/// The unsynced changes that survive a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// No unsynced change survives.
    Nothing,
    /// A random part of the unsynced changes survives.
    Some,
    /// All unsynced changes survive, except the end of the last write.
    Torn,
}

/// A simulated disk: its files, and the names that refer to them.
pub(super) struct Disk {
    root: PathBuf,
    files: Vec<Contents>,
    names: BTreeMap<PathBuf, Name>,
    last_written: Option<usize>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Node {
    File(usize),
    Directory,
}

/// A name on the simulated disk. `lasting` is the file or directory to which the name refers on the disk itself.
/// `changes` has an item for each change that was not synced yet: the file or directory to which the name refers after
/// this change.
#[derive(Default)]
struct Name {
    lasting: Option<Node>,
    changes: Vec<Option<Node>>,
}

impl Name {
    fn now(&self) -> Option<Node> {
        self.changes.last().copied().unwrap_or(self.lasting)
    }
}

#[derive(Default)]
struct Contents {
    /// The bytes that a process reads.
    seen: Vec<u8>,
    lasting: Vec<u8>,
    changes: Vec<Change>,
    /// The pages that a failed sync has lost, by number.
    lost: BTreeSet<usize>,
}

#[derive(Clone)]
enum Change {
    Write { at: usize, data: Vec<u8> },
    Length(usize),
}

impl Change {
    fn make(&self, bytes: &mut Vec<u8>) {
        match self {
            Self::Write { at, data } => {
                let end = at + data.len();
                if bytes.len() < end {
                    bytes.resize(end, 0);
                }
                bytes[*at..end].copy_from_slice(data);
            }
            Self::Length(length) => bytes.resize(*length, 0),
        }
    }

    fn pages(&self) -> Range<usize> {
        match self {
            Self::Write { at, data } => at / PAGE..(at + data.len()).div_ceil(PAGE),
            Self::Length(_) => 0..0,
        }
    }
}

impl Contents {
    fn change(&mut self, change: Change) {
        change.make(&mut self.seen);
        let again: Vec<usize> = change.pages().filter(|page| self.lost.remove(page)).collect();
        self.changes.push(change);
        // A process has now written to a page that a failed sync had lost. So the next sync writes this whole page
        // again.
        for page in again {
            let range = page * PAGE..((page + 1) * PAGE).min(self.seen.len());
            self.changes.push(Change::Write { at: range.start, data: self.seen[range].to_vec() });
        }
    }

    fn sync(&mut self) {
        for change in self.changes.drain(..) {
            change.make(&mut self.lasting);
        }
    }

    fn lose(&mut self) {
        for change in self.changes.drain(..) {
            match change {
                Change::Write { .. } => self.lost.extend(change.pages()),
                Change::Length(_) => change.make(&mut self.lasting),
            }
        }
    }
}

impl Disk {
    /// Creates a disk that contains nothing but an empty directory.
    pub(super) fn new(root: &Path) -> Self {
        Self {
            root: root.canonicalize().expect("a directory"),
            files: Vec::new(),
            names: BTreeMap::new(),
            last_written: None,
        }
    }

    /// Makes on this disk the change that a record of the journal describes.
    pub(super) fn apply(&mut self, record: &Record) {
        let number = usize::try_from(record.number).expect("a small file");
        let path = record.path.as_path();
        match record.kind.as_str() {
            "create" => {
                self.files.push(Contents::default());
                self.set(path, Some(Node::File(self.files.len() - 1)));
            }
            "directory" => self.set(path, Some(Node::Directory)),
            "unlink" => self.set(path, None),
            "rename" => {
                let node = self.now(path);
                self.set(path, None);
                self.set(Path::new(str::from_utf8(&record.data).expect("text")), node);
            }
            "write" => self.change(path, Change::Write { at: number, data: record.data.clone() }),
            "truncate" => self.change(path, Change::Length(number)),
            "sync" => match self.now(path) {
                Some(Node::File(file)) => self.files[file].sync(),
                // `None` means that the disk has no such name. This is the root of the disk, or a file without a name.
                // The loop finds no entries of such a file.
                Some(Node::Directory) | None => {
                    for (name, entry) in &mut self.names {
                        if name.parent() == Some(path) {
                            entry.lasting = entry.now();
                            entry.changes.clear();
                        }
                    }
                }
            },
            "sync-failed" => {
                if let Some(Node::File(file)) = self.now(path) {
                    self.files[file].lose();
                }
            }
            "said" => {}
            other => panic!("unknown kind of record: {other}"),
        }
    }

    fn now(&self, path: &Path) -> Option<Node> {
        self.names.get(path).and_then(Name::now)
    }

    fn set(&mut self, path: &Path, node: Option<Node>) {
        self.names.entry(path.to_owned()).or_default().changes.push(node);
    }

    fn change(&mut self, path: &Path, change: Change) {
        // A file without a name does not survive a power cut, so its content does not matter.
        if let Some(Node::File(file)) = self.now(path) {
            self.files[file].change(change);
            self.last_written = Some(file);
        }
    }

    /// Simulates a power cut at this moment: writes into the directory `into` what is left on the disk.
    pub(super) fn cut_power(&self, left: Left, lots: &mut Rng, into: &Path) {
        let mut made = BTreeSet::from([self.root.clone()]);
        // Paths are sorted, so each directory comes before its entries.
        for (path, name) in &self.names {
            let node = match left {
                Left::Nothing => name.lasting,
                Left::Torn => name.now(),
                Left::Some => match lots.usize(0..=name.changes.len()) {
                    0 => name.lasting,
                    changes => name.changes[changes - 1],
                },
            };
            let is_reached = path.parent().is_some_and(|parent| made.contains(parent));
            let (Some(node), true) = (node, is_reached) else { continue };
            let there = into.join(path.strip_prefix(&self.root).expect("below the root"));
            match node {
                Node::Directory => {
                    std::fs::create_dir(&there).expect("a directory");
                    made.insert(path.clone());
                }
                Node::File(file) => std::fs::write(&there, self.left_of(file, left, lots)).expect("a file"),
            }
        }
    }

    fn left_of(&self, file: usize, left: Left, lots: &mut Rng) -> Vec<u8> {
        let contents = &self.files[file];
        let mut bytes = contents.lasting.clone();
        let last = contents.changes.len().saturating_sub(1);
        for (at, change) in contents.changes.iter().enumerate() {
            match (left, change) {
                (Left::Nothing, _) => {}
                (Left::Some, change) => {
                    if lots.bool() {
                        change.make(&mut bytes);
                    }
                }
                (Left::Torn, Change::Write { at: place, data })
                    if at == last && self.last_written == Some(file) =>
                {
                    let data = data[..lots.usize(0..data.len().max(1))].to_vec();
                    Change::Write { at: *place, data }.make(&mut bytes);
                }
                (Left::Torn, change) => change.make(&mut bytes),
            }
        }
        bytes
    }
}
