//! Shows a path of a workspace to the person. Paths follow the same rules as in the tools of agents.

use crate::files::text::Content;
use polity_files::{Entries, FileError, Kind, PathFault, Workspace, WorkspacePath};
use std::io::Read;

/// Maximum number of bytes of a file that are shown.
const SHOWN_BYTES: u64 = 256 << 10;

/// What exists at a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Browsed {
    /// A directory, with its entries.
    Directory(Entries),
    /// A file that is text.
    Text {
        /// The text of the file, cut off after 256 KiB.
        text: String,
        /// Number of bytes of the file that `text` covers.
        shown: u64,
        /// Size of the whole file in bytes.
        bytes: u64,
    },
    /// A file that is not text.
    Binary {
        /// Size of the file in bytes.
        bytes: u64,
    },
}

/// Why a path cannot be shown to the person.
#[derive(Debug, thiserror::Error)]
pub enum BrowseError {
    /// The text is not the path of something inside the workspace.
    #[error("the path is not in the workspace: {0}")]
    Path(#[from] PathFault),
    /// The file or the directory cannot be read.
    #[error(transparent)]
    File(#[from] FileError),
}

/// Reads a directory, or the first 256 KiB of a file. Also returns the path in normal form (`a/../b` becomes `b`).
pub fn browse(workspace: &Workspace, written: &str) -> Result<(WorkspacePath, Browsed), BrowseError> {
    let path = workspace.path(written)?;
    let browsed = match workspace.metadata(&path)?.kind {
        Kind::Directory => Browsed::Directory(workspace.entries(&path)?),
        Kind::File | Kind::Link | Kind::Special => file(workspace, &path)?,
    };
    Ok((path, browsed))
}

fn file(workspace: &Workspace, path: &WorkspacePath) -> Result<Browsed, FileError> {
    let (file, bytes) = workspace.open_file(path)?;
    let mut content = Vec::new();
    let read = file.take(SHOWN_BYTES).read_to_end(&mut content);
    read.map_err(|source| FileError::Io { operation: "read", path: path.clone(), source })?;
    if content.len() as u64 == SHOWN_BYTES {
        content.truncate(whole_characters(&content));
    }
    let shown = content.len() as u64;
    Ok(match Content::of(&content) {
        Content::Text(text) | Content::Encoded { text, .. } => Browsed::Text { text, shown, bytes },
        Content::Binary => Browsed::Binary { bytes },
    })
}

/// Returns the length of the content in bytes. If a UTF-8 character is cut off at the end, its bytes do not count.
fn whole_characters(content: &[u8]) -> usize {
    match std::str::from_utf8(content) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        Ok(_) | Err(_) => content.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::call::Access;
    use std::fs;

    fn workspace() -> (tempfile::TempDir, Workspace) {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join("w/inner/.git")).unwrap();
        fs::write(home.path().join("secret"), "canary").unwrap();
        fs::write(home.path().join("w/inner/a.txt"), "one\n").unwrap();
        fs::write(home.path().join("w/b.bin"), [0, 1, 2]).unwrap();
        std::os::unix::fs::symlink("../secret", home.path().join("w/out")).unwrap();
        std::os::unix::fs::symlink("inner", home.path().join("w/in")).unwrap();
        let workspace = Workspace::open(&home.path().join("w"), Access::Read).unwrap();
        (home, workspace)
    }

    #[test]
    fn a_directory_shows_its_entries_and_a_file_its_text() {
        let (_home, workspace) = workspace();
        let at =
            |path: &str| browse(&workspace, path).map(|(path, found)| (path.to_string(), found)).unwrap();
        let (path, Browsed::Directory(listed)) = at(".") else { panic!("no directory") };
        let listed: Vec<_> =
            listed.entries.iter().map(|entry| (entry.name.as_str(), entry.kind, entry.bytes)).collect();
        let expect = [
            ("b.bin", Kind::File, Some(3)),
            ("in", Kind::Link, None),
            ("inner", Kind::Directory, None),
            ("out", Kind::Link, None),
        ];
        assert_eq!((path.as_str(), &listed[..]), (".", &expect[..]));
        let text = Browsed::Text { text: "one\n".to_owned(), shown: 4, bytes: 4 };
        assert_eq!(at("inner/../in/./a.txt"), ("in/a.txt".to_owned(), text));
        assert_eq!(at("b.bin").1, Browsed::Binary { bytes: 3 });
        let Browsed::Directory(inner) = at("inner").1 else { panic!("no directory") };
        assert_eq!(inner.entries.len(), 1, "the files of git are not shown");
    }

    #[test]
    fn no_path_leads_out() {
        let (_home, workspace) = workspace();
        for path in ["..", "../secret", "/etc/passwd", "inner/../../secret", "", "a\0b"] {
            assert!(matches!(browse(&workspace, path), Err(BrowseError::Path(_))), "{path:?}");
        }
        let escapes = browse(&workspace, "out");
        assert!(matches!(escapes, Err(BrowseError::File(FileError::Escapes(_)))), "{escapes:?}");
        let missing = browse(&workspace, "nothing");
        assert!(matches!(missing, Err(BrowseError::File(FileError::NotFound(_)))), "{missing:?}");
    }

    #[test]
    fn a_large_text_is_cut_between_characters() {
        let (home, workspace) = workspace();
        let text = format!("x{}", "é".repeat(200_000));
        fs::write(home.path().join("w/large"), &text).unwrap();
        let (_, Browsed::Text { text: beginning, shown, bytes }) = browse(&workspace, "large").unwrap()
        else {
            panic!("no text")
        };
        assert_eq!((shown, bytes), (SHOWN_BYTES - 1, text.len() as u64));
        assert_eq!(beginning.len() as u64, shown);
        assert!(text.starts_with(&beginning));
    }
}
