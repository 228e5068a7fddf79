use super::*;
use crate::path::WorkspacePath;
use crate::protected::protection;
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use tempfile::TempDir;

fn make(workspace: &Path, file: &str) {
    let path = workspace.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "").unwrap();
}

fn found(workspace: &Path) -> BTreeSet<String> {
    let text = |path: &PathBuf| path.to_str().unwrap().to_owned();
    guarded(workspace).unwrap().paths.iter().map(text).collect()
}

fn names(texts: &[&str]) -> BTreeSet<String> {
    texts.iter().map(|text| (*text).to_owned()).collect()
}

/// The tools for files refuse to write a protected path. Commands must not change the path either. If it does not
/// exist, they must not create it.
#[test]
fn what_no_tool_writes_is_guarded_from_commands() {
    for entry in PROTECTED {
        for path in entry.paths() {
            let path = path.to_str().unwrap();
            let parsed = WorkspacePath::parse(path, &[]).unwrap();
            assert_eq!(protection(&parsed), Some(entry), "{path}");
            let workspace = TempDir::new().unwrap();
            make(workspace.path(), path);
            make(workspace.path(), &format!("packages/a/{path}"));
            let found = guarded(workspace.path()).unwrap();
            for place in ["", "packages/a"] {
                let guarded = Path::new(place).join(path);
                assert!(found.paths.contains(&guarded), "{}: {:?}", guarded.display(), found.paths);
            }
            for place in ["", "packages", "packages/a"] {
                assert!(found.directories.contains(&place.into()), "{:?}", found.directories);
            }
            assert!(found.names.contains(&path.into()), "{path}: {:?}", found.names);
        }
    }
}

#[test]
fn nothing_else_is_guarded() {
    let workspace = TempDir::new().unwrap();
    for file in ["a", ".gitignore", ".github/x", ".env", ".claude/skills/a/SKILL.md", "git/config", "hooks/x"]
    {
        make(workspace.path(), file);
    }
    let found = guarded(workspace.path()).unwrap();
    assert_eq!(found.paths, Vec::<PathBuf>::new());
    // Commands like `git commit` change the other files of a git directory.
    assert!(!found.names.contains(&".git".into()) && !found.names.contains(&".git/HEAD".into()));
}

#[test]
fn repositories_worktrees_and_submodules_are_guarded() {
    let workspace = TempDir::new().unwrap();
    let workspace = workspace.path();
    for file in [
        ".git/HEAD",
        ".git/modules/a/b/HEAD",
        ".git/modules/a/b/modules/c/HEAD",
        ".git/worktrees/w/HEAD",
        "a/b/.git",
        "clone/.git/HEAD",
        "clone/.git/modules/d/HEAD",
    ] {
        make(workspace, file);
    }
    let expect = names(&[
        ".git/commondir",
        ".git/config",
        ".git/config.worktree",
        ".git/hooks",
        ".git/modules/a/b/commondir",
        ".git/modules/a/b/config",
        ".git/modules/a/b/config.worktree",
        ".git/modules/a/b/hooks",
        ".git/modules/a/b/modules/c/commondir",
        ".git/modules/a/b/modules/c/config",
        ".git/modules/a/b/modules/c/config.worktree",
        ".git/modules/a/b/modules/c/hooks",
        ".git/worktrees/w/commondir",
        ".git/worktrees/w/config.worktree",
        "a/b/.git",
        "clone/.git/commondir",
        "clone/.git/config",
        "clone/.git/config.worktree",
        "clone/.git/hooks",
        "clone/.git/modules/d/commondir",
        "clone/.git/modules/d/config",
        "clone/.git/modules/d/config.worktree",
        "clone/.git/modules/d/hooks",
    ]);
    assert_eq!(found(workspace), expect);
    // In a worktree, `.git` is a file.
    fs::remove_dir_all(workspace.join(".git")).unwrap();
    fs::write(workspace.join(".git"), "gitdir: /elsewhere").unwrap();
    let found = found(workspace);
    assert!(found.contains(".git") && !found.contains(".git/config"), "{found:?}");
}

#[test]
fn other_spellings_are_found_and_links_are_not_followed() {
    let workspace = TempDir::new().unwrap();
    let outside = TempDir::new().unwrap();
    make(outside.path(), ".vscode/tasks.json");
    make(workspace.path(), "a/.VSCode/tasks.json");
    symlink(outside.path(), workspace.path().join("link")).unwrap();
    symlink(outside.path(), workspace.path().join(".git")).unwrap();
    let found = guarded(workspace.path()).unwrap();
    assert_eq!(found.paths, [Path::new(".git"), Path::new("a/.VSCode")]);
    assert_eq!(found.directories, [Path::new(""), Path::new("a")]);
}

#[test]
fn the_search_has_bounds() {
    let workspace = TempDir::new().unwrap();
    let workspace = workspace.path();
    for directory in LEFT_OUT {
        make(workspace, &format!("{directory}/x/.vscode/tasks.json"));
    }
    let deep = |depth: usize| (0..depth).map(|_| "d/").collect::<String>();
    make(workspace, &format!("{}.envrc", deep(DEPTH)));
    make(workspace, &format!("{}.envrc", deep(DEPTH + 1)));
    assert_eq!(found(workspace), names(&[&format!("{}.envrc", deep(DEPTH))]));

    for number in 0..PATHS + 10 {
        make(workspace, &format!("many/{number}/.envrc"));
    }
    assert_eq!(guarded(workspace).unwrap().paths.len(), PATHS);

    for number in 0..DIRECTORIES {
        fs::create_dir_all(workspace.join(format!("empty/{number}"))).unwrap();
    }
    fs::remove_dir_all(workspace.join("many")).unwrap();
    assert_eq!(guarded(workspace).unwrap().directories.len(), DIRECTORIES);
}
