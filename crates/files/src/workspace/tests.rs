//! Tests that no path leads out of a workspace, and that writes change nothing but the intended file.

mod hostile;
mod races;
mod writes;

use super::*;
use crate::fault::Kind;
use crate::hash::ContentHash;
use crate::write::TEMPORARY_PREFIX;
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, symlink};
use tempfile::TempDir;

/// The content of the files outside the workspace. No operation may return this text.
const CANARY: &str = "the canary outside the workspace";

/// A workspace with many links and special files, beside a directory that no test may change.
struct Trapped {
    base: TempDir,
}

impl Trapped {
    fn new() -> Self {
        let base = TempDir::new().unwrap();
        let (outside, inside) = (base.path().join("outside"), base.path().join("ws"));
        for directory in ["dir", "empty"] {
            fs::create_dir_all(outside.join(directory)).unwrap();
        }
        for file in ["canary", "dir/canary", "a", "config"] {
            fs::write(outside.join(file), CANARY).unwrap();
        }
        fs::write(outside.join("linked"), "shared").unwrap();
        for directory in ["real/below", "deep/er", ".git/hooks", "sub/.git"] {
            fs::create_dir_all(inside.join(directory)).unwrap();
        }
        for file in ["a", "real/a", "real/below/b", ".git/config", ".git/hooks/run", "sub/.git/config"] {
            fs::write(inside.join(file), "inside").unwrap();
        }
        let outside_text = outside.to_str().unwrap();
        for (link, target) in [
            ("out", "../outside"),
            ("out_file", "../outside/canary"),
            ("out_absolute", outside_text),
            ("out_chain", "chain"),
            ("chain", "out"),
            ("real/up", "../../outside"),
            ("deep/er/up", "../../../outside/dir"),
            ("around", "real/../../outside"),
            ("back", "../ws/real"),
            ("loop", "loop2"),
            ("loop2", "loop"),
            ("self", "."),
            ("above", ".."),
            ("root", "/"),
            ("process", "/proc/self/cwd"),
            ("dangling", "../outside/new"),
            ("dangling_in", "nothing"),
            ("in", "real"),
            ("in_file", "real/a"),
            ("git", ".git"),
            ("git_config", ".git/config"),
        ] {
            symlink(target, inside.join(link)).unwrap();
        }
        fs::hard_link(outside.join("linked"), inside.join("hard")).unwrap();
        mkfifo(&inside.join("pipe"));
        drop(std::os::unix::net::UnixListener::bind(inside.join("socket")).unwrap());
        Self { base }
    }

    fn inside(&self) -> PathBuf {
        self.base.path().join("ws")
    }

    fn outside(&self) -> PathBuf {
        self.base.path().join("outside")
    }

    fn workspace(&self) -> Workspace {
        Workspace::open(&self.inside(), Access::Write).unwrap()
    }
}

fn mkfifo(path: &Path) {
    let status = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(status.success());
}

/// Returns the content, the permissions and the time of change of each path in a directory.
fn snapshot(directory: &Path) -> BTreeMap<PathBuf, (String, u32, i64, i64)> {
    let mut found = BTreeMap::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let content = if metadata.is_dir() {
                open.push(path.clone());
                String::new()
            } else if metadata.is_file() {
                fs::read_to_string(&path).unwrap()
            } else {
                format!("{:?}", fs::read_link(&path).ok())
            };
            found.insert(path, (content, metadata.mode(), metadata.mtime(), metadata.mtime_nsec()));
        }
    }
    found
}

fn path(text: &str) -> WorkspacePath {
    WorkspacePath::parse(text, &[]).unwrap()
}

/// Returns a short name for the variant of an error, for comparison in tables.
fn name_of(error: &FileError) -> &'static str {
    match error {
        FileError::NotFound(_) => "not found",
        FileError::NotAFile { .. } => "not a file",
        FileError::NotADirectory(_) => "not a directory",
        FileError::TooLarge { .. } => "too large",
        FileError::Escapes(_) => "escapes",
        FileError::ThroughLink(_) => "through link",
        FileError::ReadOnly => "read-only",
        FileError::Protected { .. } => "protected",
        FileError::WriteProtected(_) => "write-protected",
        FileError::Changed(_) => "changed",
        FileError::Io { .. } => "io",
    }
}
