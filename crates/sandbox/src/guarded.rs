//! Lists the guarded paths of a workspace: files such as git hooks, which can start programs outside the sandbox.
//! A command must not change them.

use std::path::{Path, PathBuf};

/// Paths that can start programs: git's settings and hooks, and settings of editors and other agents.
///
/// The directory `.git` itself is not in the list, because it changes with each commit. If `.git` is a file, as in
/// a worktree, [`guarded_paths`] adds it.
const GUARDED: [&str; 18] = [
    ".git/config",
    ".git/config.worktree",
    // With this file, git reads its settings from another directory.
    ".git/commondir",
    ".git/hooks",
    ".vscode",
    ".idea",
    ".zed",
    ".fleet",
    ".cursor",
    ".claude",
    ".codex",
    ".mcp.json",
    ".devcontainer",
    ".devcontainer.json",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".vimrc",
];

/// Paths that can start programs, in the git directory of a submodule.
const OF_SUBMODULE: [&str; 3] = ["config", "hooks", "commondir"];

/// After this many directories in `.git/modules`, the search for submodules enters only one kind of directory: the
/// directory `modules` of a submodule that it has found.
const SUBMODULES: usize = 1_000;

/// Returns the guarded paths of a workspace, relative to the workspace.
pub fn guarded_paths(workspace: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<PathBuf> = GUARDED.map(PathBuf::from).into();
    if workspace.join(".git").symlink_metadata().is_ok_and(|found| !found.is_dir()) {
        paths.retain(|path| !path.starts_with(".git"));
        paths.insert(0, PathBuf::from(".git"));
    }
    let modules = Path::new(".git/modules");
    let mut open = vec![modules.to_owned()];
    let mut seen = 0;
    while let Some(directory) = open.pop() {
        let Ok(entries) = std::fs::read_dir(workspace.join(&directory)) else { continue };
        for entry in entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
            seen += 1;
            let path = directory.join(entry.file_name());
            let is_repository = workspace.join(&path).join("HEAD").is_file();
            if is_repository {
                paths.extend(OF_SUBMODULE.map(|name| path.join(name)));
                open.push(path.join("modules"));
            } else if seen < SUBMODULES {
                open.push(path);
            }
        }
    }
    paths
}
