//! Finds the paths that shell commands must not change in a workspace: those of [`PROTECTED`].
//!
//! The tools for files check each path when they write it. A sandbox has to know the protected paths before a command
//! runs. So this module searches the workspace and the directories below it for these paths. A workspace can have any
//! number of directories, and each command waits for the search, so the search has bounds.

use crate::fault::Kind;
use crate::protected::{IN_GIT, InCommands, PROTECTED, folded};
use cap_fs_ext::DirExt;
use cap_std::ambient_authority;
use cap_std::fs::Dir;
use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum depth of the directories that the search enters. The workspace itself has the depth 0.
const DEPTH: usize = 8;

/// Maximum number of directories that the search enters. It enters the directories that are nearest to the workspace
/// first.
const DIRECTORIES: usize = 2_000;

/// When the search has found this many paths in directories below the workspace, it enters no more directories. The
/// number is bounded because the sandbox mounts each path, and bubblewrap accepts at most 9,000 arguments.
const PATHS: usize = 256;

/// The search does not enter directories with these names. Package managers and compilers put thousands of directories
/// there, and later replace those directories.
const LEFT_OUT: [&str; 5] = ["node_modules", "bower_components", ".venv", "venv", "target"];

/// The search for submodules looks at the directories below `modules` of a git directory. After this many directories,
/// it no longer enters directories that are not submodules. But it still enters the directory `modules` of each
/// submodule that it finds.
const SUBMODULES: usize = 1_000;

/// The paths that a command must not change in a workspace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guarded {
    /// Paths relative to the workspace. Most of them exist.
    pub paths: Vec<PathBuf>,
    /// In each of these directories of the workspace, a command must not create any of the paths in `names`. The empty
    /// path is the workspace itself.
    pub directories: Vec<PathBuf>,
    /// Paths relative to each of `directories`.
    pub names: Vec<PathBuf>,
}

/// Finds the paths that a command must not change in a workspace. Follows no symbolic links, and leaves out names that
/// are not UTF-8.
pub fn guarded(workspace: &Path) -> io::Result<Guarded> {
    let root = Dir::open_ambient_dir(workspace, ambient_authority())?;
    let names = PROTECTED.iter().flat_map(|entry| entry.paths()).collect();
    let mut search = Search { root, found: Guarded { names, ..Guarded::default() }, below: 0 };
    let mut waiting = VecDeque::from([PathBuf::new()]);
    while let Some(directory) = waiting.pop_front() {
        if search.found.directories.len() >= DIRECTORIES || search.below >= PATHS {
            break;
        }
        waiting.extend(search.look_into(directory));
    }
    Ok(search.found)
}

struct Search {
    root: Dir,
    found: Guarded,
    /// Number of paths that were found in directories below the workspace.
    below: usize,
}

impl Search {
    /// Adds the protected paths of a directory. Returns the directories in it that the search has to enter.
    fn look_into(&mut self, directory: PathBuf) -> Vec<PathBuf> {
        let mut open = Vec::new();
        for (name, kind) in self.entries(&directory) {
            let path = directory.join(&name);
            let is_whole = self.add_protected(&directory, &name, kind);
            let is_deep = path.components().count() > DEPTH;
            if kind == Kind::Directory && !is_whole && !is_deep && !LEFT_OUT.contains(&name.as_str()) {
                open.push(path);
            }
        }
        self.found.directories.push(directory);
        open
    }

    /// `name` is an entry of a directory. Adds the protected paths that begin with this entry. Returns whether the
    /// entry alone is a protected path.
    fn add_protected(&mut self, directory: &Path, name: &str, kind: Kind) -> bool {
        let (path, folded) = (directory.join(name), folded(name));
        let mut is_whole = false;
        for entry in PROTECTED {
            let Some((first, rest)) = entry.names.split_first() else { continue };
            if *first != folded {
                continue;
            }
            let whole = rest.iter().fold(path.clone(), |path, name| path.join(name));
            match entry.in_commands {
                InCommands::Only(inner) if rest.is_empty() && kind == Kind::Directory => {
                    inner.iter().for_each(|inner| self.add(directory, whole.join(inner)));
                    if inner == IN_GIT {
                        self.add_inner_repositories(directory, &whole);
                    }
                }
                InCommands::All | InCommands::Only(_) => {
                    if rest.is_empty() || self.root.symlink_metadata(&whole).is_ok() {
                        self.add(directory, whole);
                    }
                }
            }
            is_whole |= rest.is_empty();
        }
        is_whole
    }

    /// A git directory also contains the settings and hooks of submodules and worktrees. Adds these settings and hooks.
    fn add_inner_repositories(&mut self, directory: &Path, git: &Path) {
        let mut open = vec![git.join("modules")];
        let mut seen = 0;
        while let Some(modules) = open.pop() {
            for module in self.directories(&modules) {
                seen += 1;
                let is_repository =
                    self.root.metadata(module.join("HEAD")).is_ok_and(|found| found.is_file());
                if is_repository {
                    IN_GIT.iter().for_each(|inner| self.add(directory, module.join(inner)));
                    open.push(module.join("modules"));
                } else if seen < SUBMODULES {
                    open.push(module);
                }
            }
        }
        for worktree in self.directories(&git.join("worktrees")).into_iter().take(SUBMODULES) {
            for inner in ["config.worktree", "commondir"] {
                self.add(directory, worktree.join(inner));
            }
        }
    }

    fn add(&mut self, directory: &Path, path: PathBuf) {
        if directory != Path::new("") {
            self.below += 1;
        }
        self.found.paths.push(path);
    }

    /// Returns the directories in a directory.
    fn directories(&self, directory: &Path) -> Vec<PathBuf> {
        let entries = self.entries(directory).into_iter();
        let directories = entries.filter(|(_, kind)| *kind == Kind::Directory);
        directories.map(|(name, _)| directory.join(name)).collect()
    }

    /// Returns the names in a directory in alphabetical order. Returns nothing if the directory cannot be read.
    fn entries(&self, directory: &Path) -> Vec<(String, Kind)> {
        let opened = if directory == Path::new("") {
            self.root.try_clone()
        } else {
            self.root.open_dir_nofollow(directory)
        };
        let Ok(entries) = opened.and_then(|opened| opened.entries()) else { return Vec::new() };
        let mut found: Vec<(String, Kind)> = entries
            .flatten()
            .filter_map(|entry| {
                let kind = Kind::of(entry.file_type().ok()?);
                Some((entry.file_name().into_string().ok()?, kind))
            })
            .collect();
        found.sort();
        found
    }
}

#[cfg(test)]
mod tests;
