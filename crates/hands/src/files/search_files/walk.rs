//! Walks through the files of a workspace in the order of their paths, through directory handles only: no link is
//! followed, and no file is opened by a path that somebody could swap.

use crate::files::search_files::ignored::{Rules, is_ignored};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use polity_files::{FileError, Kind, Workspace, WorkspacePath, is_temporary};
use std::ffi::OsString;
use std::fs::File;
use std::ops::ControlFlow;
use std::path::Path;

/// Directories within each other. Deeper ones are left out.
const MAX_DEPTH: usize = 100;

/// Directories in which version control keeps its own files.
const OF_VERSION_CONTROL: &[&str] = &[".git", ".hg", ".jj", ".svn"];

/// A file that was found.
pub(super) struct Found<'a> {
    pub(super) path: &'a WorkspacePath,
    place: Place<'a>,
}

/// From where a file is opened.
enum Place<'a> {
    /// From the directory in which the walk found it.
    In(&'a Dir),
    /// From the workspace, because the model named it. The name may be that of a link inside the workspace.
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

/// What to do with each file. `Break` ends the walk.
pub(super) type Visit<'v> = dyn FnMut(&Found<'_>) -> ControlFlow<()> + 'v;

/// Visits all files below a directory, or one file. The start is visited even if it is ignored.
pub(super) fn walk(
    workspace: &Workspace,
    start: &WorkspacePath,
    visit: &mut Visit<'_>,
) -> Result<(), FileError> {
    match workspace.metadata(start)?.kind {
        Kind::Directory => {}
        Kind::File => {
            // One file ends the walk either way.
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
    /// The rules of the directories from the workspace to the one that is walked through.
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
        // A directory that may not be read is left out, like one that has just been removed.
        for (name, kind) in entries(dir).unwrap_or_default() {
            // A name that is not in UTF-8 could not be shown or viewed.
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

/// Returns the sorted entries of a directory.
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
