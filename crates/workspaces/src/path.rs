//! Paths inside a workspace, in git's notation.

use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, percent_encode};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The characters that are written as `%XX` when a path is serialized.
const ESCAPED: &AsciiSet = &CONTROLS.add(b'%');

/// A path inside a workspace: one or more components, joined by `/`. No component is `..` or git's own directory
/// `.git`. The bytes need not be UTF-8.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TreePath(Vec<u8>);

/// The error for a path that cannot be inside a workspace.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a path of a file in a workspace")]
pub(crate) struct BadPath(String);

impl TreePath {
    /// Makes a path. Fails if a component is empty, is `.` or `..`, contains NUL, or is a name of git's own directory.
    pub(crate) fn new(bytes: impl Into<Vec<u8>>) -> Result<Self, BadPath> {
        let bytes = bytes.into();
        let is_plain = |component: &[u8]| {
            !matches!(component, b"" | b"." | b"..") && !component.contains(&0) && !is_git_name(component)
        };
        if bytes.split(|byte| *byte == b'/').all(is_plain) {
            Ok(Self(bytes))
        } else {
            Err(BadPath(String::from_utf8_lossy(&bytes).into_owned()))
        }
    }

    /// Returns the bytes of the path, in git's notation.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    /// Returns the path for the operating system, relative to the workspace.
    pub(crate) fn relative(&self) -> PathBuf {
        PathBuf::from(OsStr::from_bytes(&self.0))
    }

    /// Splits the path into the names of the directories, the outermost first, and the name of the file.
    pub(crate) fn split(&self) -> (Vec<&OsStr>, &OsStr) {
        let mut directories: Vec<&OsStr> =
            self.0.split(|byte| *byte == b'/').map(OsStr::from_bytes).collect();
        let name = directories.pop().unwrap_or_default();
        (directories, name)
    }

    /// Returns whether `other` is a directory above this path.
    pub(crate) fn is_below(&self, other: &Self) -> bool {
        self.0.strip_prefix(other.0.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
    }

    /// Returns the directory above this path that consists of the path's first `components` components. For example, it
    /// is `a/b` for the path `a/b/c` and 2 components.
    pub(crate) fn ancestor(&self, components: usize) -> Option<Self> {
        let ends = self.0.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(at, _)| at);
        let end = ends.clone().nth(components.checked_sub(1)?)?;
        Some(Self(self.0[..end].to_vec()))
    }
}

impl fmt::Display for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for TreePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(&self.0))
    }
}

impl Serialize for TreePath {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&percent_encode(&self.0, ESCAPED))
    }
}

impl<'de> Deserialize<'de> for TreePath {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::new(percent_decode_str(&text).collect::<Vec<u8>>()).map_err(de::Error::custom)
    }
}

/// Returns whether at least one file system treats this name as `.git`, the directory that only git may write.
pub(crate) fn is_git_name(name: &[u8]) -> bool {
    let name = String::from_utf8_lossy(name);
    // The file system of macOS ignores these characters when it compares names.
    let is_ignored = |character: char| matches!(character, '\u{200c}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{206a}'..='\u{206f}' | '\u{feff}');
    let seen: String = name.chars().filter(|character| !is_ignored(*character)).collect();
    let seen = seen.to_ascii_lowercase();
    let plain = seen.trim_end_matches([' ', '.']);
    plain == ".git" || plain == "git~1"
}

/// Writes a path between double quotes, as `git fast-import` and the file `objects/info/alternates` require.
pub(crate) fn quoted(path: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in path {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            0x20..=0x7e => quoted.push(*byte),
            other => quoted.extend(format!("\\{other:03o}").into_bytes()),
        }
    }
    quoted.push(b'"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn only_paths_of_files_are_paths() {
        let check = |path: &str, good: bool| assert_eq!(TreePath::new(path).is_ok(), good, "{path:?}");
        check("a", true);
        check("a/b c/\u{e9}\n", true);
        check("-x", true);
        check(".gitignore", true);
        check(".github/x", true);
        check("git", true);
        check("", false);
        check("/a", false);
        check("a//b", false);
        check("a/", false);
        check("../a", false);
        check("a/./b", false);
        check(".git", false);
        check("a/.GIT/hooks/x", false);
        check(".g\u{200c}it/config", false);
        check(".git. /config", false);
        check("git~1/config", false);
        check("a\0b", false);
    }

    #[test]
    fn ancestors() {
        let path = TreePath::new("a/b/c").unwrap();
        let check = |components, expect: Option<&str>| {
            assert_eq!(path.ancestor(components).map(|path| path.to_string()).as_deref(), expect);
        };
        check(0, None);
        check(1, Some("a"));
        check(2, Some("a/b"));
        check(3, None);
    }

    proptest! {
        #[test]
        fn a_path_survives_the_journal(bytes in proptest::collection::vec(any::<u8>(), 1..20)) {
            if let Ok(path) = TreePath::new(bytes) {
                let written = serde_json::to_string(&path).unwrap();
                prop_assert_eq!(serde_json::from_str::<TreePath>(&written).unwrap(), path);
            }
        }

        #[test]
        fn no_path_leads_out_of_the_workspace(path in "[./a-c]{0,12}") {
            if let Ok(path) = TreePath::new(path) {
                let inside = path.relative();
                prop_assert!(inside.components().all(|part| matches!(part, std::path::Component::Normal(_))));
            }
        }
    }
}
