//! Visits the files of a workspace in the order of their paths. During this walk, a command may replace a directory
//! with a link. The walk stays inside the workspace nevertheless, because it opens each file through the handle of its
//! directory and follows no link.

use crate::files::search_files::ignored::{Rules, is_ignored};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use polity_files::{FileError, Kind, Workspace, WorkspacePath, is_temporary};
use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

/// Maximum depth of directories. Deeper directories are left out.
const MAX_DEPTH: usize = 100;

/// Directories in which version control systems keep their own data.
const OF_VERSION_CONTROL: &[&str] = &[".git", ".hg", ".jj", ".svn"];

/// A file that the walk visits.
pub(super) struct Found<'a> {
    pub(super) path: &'a WorkspacePath,
    place: Place<'a>,
}

/// The starting point from which a file is opened.
enum Place<'a> {
    /// The directory in which the walk found the file.
    In(&'a Dir),
    /// The workspace, if the model named the file and not a directory. Then the file may be a link that stays inside
    /// the workspace.
    Named(&'a Workspace),
}

impl Found<'_> {
    /// Opens the file, and returns its size.
    pub(super) fn open(&self) -> Result<(File, u64), FileError> {
        match self.place {
            Place::In(parent) => {
                let name = self.path.name().unwrap_or_default();
                polity_files::open_in(parent, Path::new(name), self.path)
            }
            Place::Named(workspace) => workspace.open_file(self.path),
        }
    }
}

/// The function that the walk calls with each file. If the function returns `Break`, the walk ends.
pub(super) type Visit<'v> = dyn FnMut(&Found<'_>) -> ControlFlow<()> + 'v;

/// Visits a single file, or all files below a directory. The path `start` itself is visited even if an ignore file
/// excludes it.
pub(super) fn walk(
    workspace: &Workspace,
    start: &WorkspacePath,
    visit: &mut Visit<'_>,
) -> Result<(), FileError> {
    match workspace.metadata(start)?.kind {
        Kind::Directory => {}
        Kind::File => {
            // There is no further file to visit, so `Continue` and `Break` have the same effect.
            let (ControlFlow::Continue(()) | ControlFlow::Break(())) =
                visit(&Found { path: start, place: Place::Named(workspace) });
            return Ok(());
        }
        kind @ (Kind::Link | Kind::Special) => return Err(FileError::NotAFile { path: start.clone(), kind }),
    }
    let dir = workspace.open_directory(start)?;
    let above = (0..start.names().len()).filter_map(|depth| start.names().get(..depth));
    let rules = above.map(|names| Rules::of(workspace, names)).collect();
    let mut walk = Walk { workspace, rules, names: start.names().to_vec(), visit };
    let (ControlFlow::Continue(()) | ControlFlow::Break(())) = walk.directory(&dir);
    Ok(())
}

struct Walk<'w, 'v> {
    workspace: &'w Workspace,
    /// The rules of the workspace, of the current directory, and of all directories between them.
    rules: Vec<Rules>,
    names: Vec<String>,
    visit: &'w mut Visit<'v>,
}

impl Walk<'_, '_> {
    fn directory(&mut self, dir: &Dir) -> ControlFlow<()> {
        if self.names.len() >= MAX_DEPTH {
            return ControlFlow::Continue(());
        }
        self.rules.push(Rules::of(self.workspace, &self.names));
        // A directory that cannot be read or has just been removed is left out.
        for (name, kind) in entries(dir).unwrap_or_default() {
            // A name that is not UTF-8 is left out, because a model could not write it.
            let Ok(name) = name.into_string() else { continue };
            self.names.push(name);
            let flow = self.entry(dir, kind);
            self.names.pop();
            flow?;
        }
        self.rules.pop();
        ControlFlow::Continue(())
    }

    fn entry(&mut self, dir: &Dir, kind: Kind) -> ControlFlow<()> {
        let Some(name) = self.names.last() else { return ControlFlow::Continue(()) };
        if OF_VERSION_CONTROL.contains(&name.as_str()) || is_temporary(name.as_ref()) {
            return ControlFlow::Continue(());
        }
        if is_ignored(&self.rules, &self.names, kind == Kind::Directory) {
            return ControlFlow::Continue(());
        }
        match kind {
            Kind::File => {
                let path = WorkspacePath::of(&self.names);
                (self.visit)(&Found { path: &path, place: Place::In(dir) })
            }
            Kind::Directory => match dir.open_dir_nofollow(name) {
                Ok(below) => self.directory(&below),
                Err(_) => ControlFlow::Continue(()),
            },
            Kind::Link | Kind::Special => ControlFlow::Continue(()),
        }
    }
}

/// Returns the entries of a directory, sorted by name.
fn entries(dir: &Dir) -> std::io::Result<Vec<(OsString, Kind)>> {
    let mut entries = Vec::new();
    for entry in dir.entries()? {
        let entry = entry?;
        if let Ok(kind) = entry.file_type() {
            entries.push((entry.file_name(), Kind::of(kind)));
        }
    }
    entries.sort();
    Ok(entries)
}
