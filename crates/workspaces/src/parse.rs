//! Reads the output of git commands. Pure.

use crate::path::TreePath;
use crate::problem::Problem;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The kind of an entry in a git tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// A regular file that is not executable.
    Plain,
    /// A regular file that is executable.
    Program,
    Link,
    /// A repository inside the repository. Polity never changes it.
    Submodule,
}

impl Mode {
    fn read(text: &str) -> Option<Self> {
        match text {
            "100644" | "100664" => Some(Self::Plain),
            "100755" => Some(Self::Program),
            "120000" => Some(Self::Link),
            "160000" => Some(Self::Submodule),
            _ => None,
        }
    }

    /// Returns the mode in git's notation.
    pub(crate) fn number(self) -> &'static str {
        match self {
            Self::Plain => "100644",
            Self::Program => "100755",
            Self::Link => "120000",
            Self::Submodule => "160000",
        }
    }
}

/// An entry of a git tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Leaf {
    pub(crate) mode: Mode,
    /// The hash by which git names the content.
    pub(crate) object: String,
}

/// A file that differs between two trees.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Change {
    pub(crate) path: TreePath,
    /// The file in the first tree; `None` if the file is new.
    pub(crate) old: Option<Leaf>,
    /// The file in the second tree; `None` if the file is deleted.
    pub(crate) new: Option<Leaf>,
}

/// Returns whether a change turns an entry into another kind, for example a file into a link.
pub(crate) fn is_other_kind(change: &Change) -> bool {
    let is_file = |leaf: &Leaf| matches!(leaf.mode, Mode::Plain | Mode::Program);
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => old.mode != new.mode && !(is_file(old) && is_file(new)),
        _ => false,
    }
}

/// The files of a git tree, by path.
pub(crate) type Tree = BTreeMap<TreePath, Leaf>;

/// The output of `git merge-tree --write-tree -z`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergedTree {
    /// The hash of the merged tree. In this tree, files in conflict contain conflict markers.
    pub(crate) tree: String,
    /// The files in conflict, with their versions.
    pub(crate) conflicts: BTreeMap<TreePath, Stages>,
    /// For each message of git about a conflict: its kind, such as `modify/delete`, and its files.
    pub(crate) kinds: Vec<(String, Vec<Vec<u8>>)>,
}

/// The three versions of a file in conflict. A version is `None` if the file does not exist in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stages {
    /// The version before both sides changed the file.
    pub(crate) base: Option<Leaf>,
    /// The version in the workspace that receives the merge.
    pub(crate) ours: Option<Leaf>,
    /// The version in the worktree that is merged.
    pub(crate) theirs: Option<Leaf>,
}

fn unreadable(command: &'static str, what: &[u8]) -> Problem {
    let what: String = String::from_utf8_lossy(what).chars().take(200).collect();
    Problem::Unreadable { command, what }
}

/// Splits output whose fields end with NUL.
fn fields(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    let output = output.strip_suffix(b"\0").unwrap_or(output);
    let is_empty = output.is_empty();
    output.split(|byte| *byte == 0).filter(move |_| !is_empty)
}

/// Splits a field of the form `<mode> … <object> [<stage>]` TAB `<path>`.
fn line(field: &[u8]) -> Option<(Vec<&str>, &[u8])> {
    let tab = field.iter().position(|byte| *byte == b'\t')?;
    let words = std::str::from_utf8(&field[..tab]).ok()?.split(' ').collect();
    Some((words, &field[tab + 1..]))
}

/// Reads the output of `git ls-tree -r -z`.
pub(crate) fn tree(output: &[u8]) -> Result<Tree, Problem> {
    let mut tree = Tree::new();
    for field in fields(output) {
        let read = || {
            let (words, path) = line(field)?;
            let [mode, _kind, object] = words.as_slice() else { return None };
            Some((path, Leaf { mode: Mode::read(mode)?, object: (*object).to_owned() }))
        };
        let (path, leaf) = read().ok_or_else(|| unreadable("ls-tree", field))?;
        tree.insert(TreePath::new(path)?, leaf);
    }
    Ok(tree)
}

/// Reads the output of `git diff-tree -r -z --raw --no-renames` for two trees.
pub(crate) fn changes(output: &[u8]) -> Result<Vec<Change>, Problem> {
    let mut changes = Vec::new();
    let mut fields = fields(output);
    while let Some(head) = fields.next() {
        let failed = || unreadable("diff-tree", head);
        let path = TreePath::new(fields.next().ok_or_else(failed)?)?;
        let words = std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(':'));
        let words: Vec<&str> = words.ok_or_else(failed)?.split(' ').collect();
        let [old_mode, new_mode, old, new, _status] = words.as_slice() else { return Err(failed()) };
        let leaf = |mode: &str, object: &str| -> Result<Option<Leaf>, Problem> {
            match mode {
                "000000" => Ok(None),
                mode => {
                    let mode = Mode::read(mode).ok_or_else(failed)?;
                    Ok(Some(Leaf { mode, object: object.to_owned() }))
                }
            }
        };
        changes.push(Change { path, old: leaf(old_mode, old)?, new: leaf(new_mode, new)? });
    }
    Ok(changes)
}

/// Reads the output of `git merge-tree --write-tree -z`.
pub(crate) fn merged(output: &[u8]) -> Result<MergedTree, Problem> {
    let failed = |what: &[u8]| unreadable("merge-tree", what);
    let mut fields = output.strip_suffix(b"\0").unwrap_or(output).split(|byte| *byte == 0);
    let tree = fields.next().and_then(|tree| std::str::from_utf8(tree).ok()).unwrap_or_default().to_owned();
    if tree.len() < 40 || !tree.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(failed(output));
    }
    let mut conflicts: BTreeMap<TreePath, Stages> = BTreeMap::new();
    for field in fields.by_ref().take_while(|field| !field.is_empty()) {
        let read = || {
            let (words, path) = line(field)?;
            let [mode, object, stage] = words.as_slice() else { return None };
            Some((path, Leaf { mode: Mode::read(mode)?, object: (*object).to_owned() }, (*stage).to_owned()))
        };
        let (path, leaf, stage) = read().ok_or_else(|| failed(field))?;
        let stages = conflicts.entry(TreePath::new(path)?).or_default();
        match stage.as_str() {
            "1" => stages.base = Some(leaf),
            "2" => stages.ours = Some(leaf),
            "3" => stages.theirs = Some(leaf),
            _ => return Err(failed(field)),
        }
    }
    let mut kinds = Vec::new();
    while let Some(count) = fields.next() {
        let number = std::str::from_utf8(count).ok().and_then(|count| count.parse::<usize>().ok());
        let number = number.ok_or_else(|| failed(count))?;
        let mut paths = Vec::new();
        for _ in 0..number {
            paths.push(fields.next().ok_or_else(|| failed(count))?.to_owned());
        }
        let kind = fields.next().ok_or_else(|| failed(count))?;
        let _message = fields.next().ok_or_else(|| failed(count))?;
        let kind = String::from_utf8_lossy(kind);
        if let Some(kind) = kind.strip_prefix("CONFLICT (").and_then(|kind| kind.strip_suffix(')')) {
            kinds.push((kind.to_owned(), paths));
        }
    }
    Ok(MergedTree { tree, conflicts, kinds })
}

/// Reads the contents of objects from the output of `git cat-file --batch`. Their order is the order of the request.
pub(crate) fn contents(mut output: &[u8]) -> Result<Vec<Vec<u8>>, Problem> {
    let mut contents = Vec::new();
    while !output.is_empty() {
        let failed = || unreadable("cat-file", output);
        let end = output.iter().position(|byte| *byte == b'\n').ok_or_else(failed)?;
        let head = std::str::from_utf8(&output[..end]).map_err(|_| failed())?;
        let [_, "blob", size] = head.split(' ').collect::<Vec<_>>()[..] else { return Err(failed()) };
        let size: usize = size.parse().map_err(|_| failed())?;
        let rest = &output[end + 1..];
        let content = rest.get(..size).ok_or_else(failed)?;
        contents.push(content.to_owned());
        output = rest.get(size + 1..).ok_or_else(failed)?;
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const A: &str = "544376db0adf8d839a9623618b59e141d99d1a80";
    const B: &str = "587be6b4c3f93f93c489c0111bba5596147a26cb";

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let byte = prop_oneof![Just(b' '), Just(b'\n'), Just(b'-'), Just(b'"'), 1u8..=255];
        proptest::collection::vec(byte, 1..12)
            .prop_filter("a path of a file", |name| TreePath::new(name.clone()).is_ok())
    }

    #[test]
    fn a_clean_merge_is_a_tree() {
        let read = merged(format!("{A}\0").as_bytes()).unwrap();
        assert_eq!(read.tree, A);
        assert!(read.conflicts.is_empty());
        assert!(merged(b"fatal: no").is_err());
    }

    #[test]
    fn a_conflict_has_its_versions_and_kind() {
        let output = format!(
            "{A}\x00100644 {A} 1\tb\x00100644 {B} 2\tb\0\x001\0b\0CONFLICT (modify/delete)\0b deleted\n\0\
             1\0f\0Auto-merging\0Auto-merging f\n\0"
        );
        let read = merged(output.as_bytes()).unwrap();
        let stages = &read.conflicts[&TreePath::new("b").unwrap()];
        assert_eq!(stages.ours.as_ref().unwrap().object, B);
        assert!(stages.base.is_some() && stages.theirs.is_none());
        assert_eq!(read.kinds, [("modify/delete".to_owned(), vec![b"b".to_vec()])]);
    }

    proptest! {
        #[test]
        fn every_path_of_a_tree_is_read(names in proptest::collection::btree_set(name(), 0..8)) {
            let mut output = Vec::new();
            for name in &names {
                output.extend(format!("100755 blob {A}\t").into_bytes());
                output.extend(name);
                output.push(0);
            }
            let read = tree(&output).unwrap();
            prop_assert_eq!(read.keys().map(|path| path.bytes().to_vec()).collect::<Vec<_>>(),
                names.into_iter().collect::<Vec<_>>());
        }

        #[test]
        fn every_path_of_a_comparison_is_read(names in proptest::collection::vec(name(), 0..8)) {
            let mut output = Vec::new();
            for name in &names {
                output.extend(format!(":100644 000000 {A} {B} D\0").into_bytes());
                output.extend(name);
                output.push(0);
            }
            let read = changes(&output).unwrap();
            prop_assert!(read.iter().all(|change| change.new.is_none() && change.old.is_some()));
            prop_assert_eq!(read.into_iter().map(|change| change.path.bytes().to_vec()).collect::<Vec<_>>(), names);
        }

        #[test]
        fn every_content_is_read(wanted in proptest::collection::vec(any::<Vec<u8>>(), 0..6)) {
            let mut output = Vec::new();
            for content in &wanted {
                output.extend(format!("{A} blob {}\n", content.len()).into_bytes());
                output.extend(content);
                output.push(b'\n');
            }
            prop_assert_eq!(contents(&output).unwrap(), wanted);
        }

        #[test]
        fn no_output_makes_a_reader_panic(output in any::<Vec<u8>>()) {
            let _ = (tree(&output), changes(&output), merged(&output), contents(&output));
        }
    }
}
