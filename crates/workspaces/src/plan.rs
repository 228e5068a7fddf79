//! Decides what a merge does with each file of a directory. Pure.

use crate::beneath::Execution;
use crate::parse::{Change, Mode};
use crate::path::TreePath;
use std::collections::BTreeSet;

/// What exists on disk at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Disk {
    Nothing,
    File(Vec<u8>, Execution),
    /// A symbolic link. Holds its target.
    Link(Vec<u8>),
    /// A directory. Holds the files below it.
    Directory(Vec<TreePath>),
    /// Nothing can exist at the path, because a component before the last is not a directory. Holds the path of this
    /// component.
    Blocked(TreePath),
    /// A pipe, a socket or a device.
    Special,
}

/// A file in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Version<'a> {
    pub(crate) mode: Mode,
    /// The content of a file, or the target of a link.
    pub(crate) content: &'a [u8],
}

/// The line ends of a file on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Endings {
    /// The same as in the repository.
    Stored,
    /// The file has CR LF and the repository has LF, because the person's git converts line ends.
    Converted,
}

/// What a merge does with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Writes the new version with these line ends, or deletes the file if there is no new version.
    Change(Endings),
    /// Does nothing, because the file already has the new version, or was to be deleted and is already gone.
    Nothing,
    /// Reports a conflict, because somebody else has changed the file: it has neither the old nor the new version.
    Conflict,
}

/// Decides what a merge does with a file. `deleted` are all files that the merge deletes.
pub(crate) fn step(
    old: Option<Version<'_>>,
    new: Option<Version<'_>>,
    disk: &Disk,
    deleted: &BTreeSet<TreePath>,
) -> Step {
    if [old, new].iter().flatten().any(|version| version.mode == Mode::Submodule) {
        return Step::Conflict;
    }
    let (before, after) = (same(old, disk), same(new, disk));
    match (before, after) {
        (_, Some(Endings::Stored)) => return Step::Nothing,
        (Some(Endings::Stored), _) => return Step::Change(Endings::Stored),
        (_, Some(Endings::Converted)) => return Step::Nothing,
        (Some(Endings::Converted), None) => return Step::Change(Endings::Converted),
        (None, None) => {}
    }
    match disk {
        // A directory exists at the path of the new file. The new file can take its place if the merge deletes all
        // files in this directory.
        Disk::Directory(files) if old.is_none() && files.iter().all(|file| deleted.contains(file)) => {
            Step::Change(Endings::Stored)
        }
        Disk::Blocked(path) if old.is_none() && deleted.contains(path) => Step::Change(Endings::Stored),
        // The merge deletes this file, but the file is already gone, and something else exists at its path. So the
        // merge has nothing to do.
        Disk::Blocked(_) | Disk::Directory(_) if new.is_none() => Step::Nothing,
        _ => Step::Conflict,
    }
}

/// Compares a version of a file with the disk. If they are the same, returns the line ends that the file has on disk,
/// otherwise `None`. `version` is `None` for a version in which the file does not exist.
pub(crate) fn same(version: Option<Version<'_>>, disk: &Disk) -> Option<Endings> {
    let same = |equal: bool| equal.then_some(Endings::Stored);
    match (version, disk) {
        (None, Disk::Nothing) => Some(Endings::Stored),
        (Some(Version { mode: Mode::Link, content }), Disk::Link(target)) => same(content == target),
        (Some(Version { mode, content }), Disk::File(bytes, execution)) => {
            let wanted = match mode {
                Mode::Plain => Execution::Plain,
                Mode::Program => Execution::Program,
                Mode::Link | Mode::Submodule => return None,
            };
            if *execution != wanted {
                None
            } else if content == bytes {
                Some(Endings::Stored)
            } else {
                (!content.contains(&b'\r') && with_crlf(content) == *bytes).then_some(Endings::Converted)
            }
        }
        _ => None,
    }
}

/// Replaces each LF that has no CR before it by CR LF.
pub(crate) fn with_crlf(content: &[u8]) -> Vec<u8> {
    let mut converted = Vec::with_capacity(content.len() + content.len() / 16);
    for (at, byte) in content.iter().enumerate() {
        if *byte == b'\n' && (at == 0 || content[at - 1] != b'\r') {
            converted.push(b'\r');
        }
        converted.push(*byte);
    }
    converted
}

/// Sorts changes into the order in which a merge carries them out. Deletions come first, because they make room: a new
/// file may take the place of a deleted directory, and a new directory may take the place of a deleted file.
pub(crate) fn in_order(mut changes: Vec<Change>) -> Vec<Change> {
    changes.sort_by_key(|change| change.new.is_some());
    changes
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: Mode = Mode::Plain;

    fn version(content: &str) -> Option<Version<'_>> {
        Some(Version { mode: PLAIN, content: content.as_bytes() })
    }

    fn file(content: &str) -> Disk {
        Disk::File(content.as_bytes().to_vec(), Execution::Plain)
    }

    fn path(text: &str) -> TreePath {
        TreePath::new(text).unwrap()
    }

    #[test]
    fn steps() {
        let none = BTreeSet::new();
        let check =
            |old, new, disk: Disk, expect| assert_eq!(step(old, new, &disk, &none), expect, "{disk:?}");
        let (old, new) = (version("old\n"), version("new\n"));
        check(old, new, file("old\n"), Step::Change(Endings::Stored));
        check(old, new, file("old\r\n"), Step::Change(Endings::Converted));
        check(old, new, file("new\n"), Step::Nothing);
        check(old, new, file("new\r\n"), Step::Nothing);
        check(version("a\r\n"), version("a\n"), file("a\r\n"), Step::Change(Endings::Stored));
        check(old, new, file("mine\n"), Step::Conflict);
        check(old, new, Disk::Nothing, Step::Conflict);
        check(old, new, Disk::Link(b"old\n".to_vec()), Step::Conflict);
        check(old, new, Disk::Special, Step::Conflict);
        check(None, new, Disk::Nothing, Step::Change(Endings::Stored));
        check(None, new, file("mine\n"), Step::Conflict);
        check(None, new, file("new\n"), Step::Nothing);
        check(None, new, Disk::Directory(vec![]), Step::Change(Endings::Stored));
        check(None, new, Disk::Directory(vec![path("d/mine")]), Step::Conflict);
        check(None, new, Disk::Blocked(path("d")), Step::Conflict);
        check(old, None, file("old\n"), Step::Change(Endings::Stored));
        check(old, None, file("mine\n"), Step::Conflict);
        check(old, None, Disk::Nothing, Step::Nothing);
        check(old, None, Disk::Blocked(path("d")), Step::Nothing);
        check(old, None, Disk::Directory(vec![path("f/mine")]), Step::Nothing);
    }

    #[test]
    fn files_that_the_merge_deletes_are_not_in_the_way() {
        let (a, d) = (path("d/a"), path("d"));
        let deleted = BTreeSet::from([a.clone(), d.clone()]);
        let new = version("new");
        assert_eq!(
            step(None, new, &Disk::Directory(vec![a.clone()]), &deleted),
            Step::Change(Endings::Stored)
        );
        assert_eq!(step(None, new, &Disk::Directory(vec![a.clone(), path("d/b")]), &deleted), Step::Conflict);
        assert_eq!(step(None, new, &Disk::Blocked(d.clone()), &deleted), Step::Change(Endings::Stored));
    }

    #[test]
    fn a_right_to_execute_is_a_change() {
        let program = Some(Version { mode: Mode::Program, content: b"x\n" });
        let none = BTreeSet::new();
        assert_eq!(step(version("x\n"), program, &file("x\n"), &none), Step::Change(Endings::Stored));
        assert_eq!(step(version("x\n"), program, &file("x\r\n"), &none), Step::Change(Endings::Converted));
    }

    fn disk() -> impl Strategy<Value = Disk> {
        prop_oneof![
            Just(Disk::Nothing),
            "[ab\n]{0,3}".prop_map(|text| file(&text)),
            "[ab]{1,2}".prop_map(|text| Disk::Link(text.into_bytes())),
            Just(Disk::Special),
            Just(Disk::Directory(vec![path("d/x")])),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1024))]
        #[test]
        fn no_edit_of_somebody_else_is_overwritten(
            old in proptest::option::of("[ab\n]{0,3}"),
            new in proptest::option::of("[ab\n]{0,3}"),
            disk in disk(),
        ) {
            let (old, new) = (old.as_deref().and_then(version), new.as_deref().and_then(version));
            if let Step::Change(_) = step(old, new, &disk, &BTreeSet::new()) {
                prop_assert!(same(old, &disk).is_some());
            }
        }

        #[test]
        fn a_step_is_done_once(old in proptest::option::of("[ab\n]{0,3}"), new in proptest::option::of("[ab\n]{0,3}"),
            converted in proptest::bool::ANY) {
            let written = |text: &str| if converted { with_crlf(text.as_bytes()) } else { text.as_bytes().to_vec() };
            let on_disk = |text: &Option<String>| text.as_ref().map_or(Disk::Nothing, |text| {
                Disk::File(written(text), Execution::Plain)
            });
            let (before, after) = (on_disk(&old), on_disk(&new));
            let (old, new) = (old.as_deref().and_then(version), new.as_deref().and_then(version));
            prop_assert_ne!(step(old, new, &before, &BTreeSet::new()), Step::Conflict);
            prop_assert_eq!(step(old, new, &after, &BTreeSet::new()), Step::Nothing);
        }
    }
}
