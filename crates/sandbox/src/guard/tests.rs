use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{Snapshot, SnapshotError};
use crate::message::Guard;

fn workspace() -> TempDir {
    let place = TempDir::new().unwrap();
    std::fs::create_dir_all(place.path().join("w/.git/hooks")).unwrap();
    std::fs::create_dir_all(place.path().join("outside")).unwrap();
    std::fs::write(place.path().join("outside/file"), "outside").unwrap();
    std::fs::write(place.path().join("w/.git/config"), "config").unwrap();
    std::fs::write(place.path().join("w/.git/hooks/one"), "hook").unwrap();
    std::fs::set_permissions(place.path().join("w/.git/hooks/one"), std::fs::Permissions::from_mode(0o755))
        .unwrap();
    symlink("hooks/one", place.path().join("w/.git/link")).unwrap();
    place
}

/// Paths that are noted. Some do not exist.
const PATHS: [&str; 5] = [".git/config", ".git/hooks", ".git/link", ".git/commondir", ".vscode"];

/// Paths that must not be made.
const NAMES: [&str; 3] = [".git/config", ".git/config.worktree", ".envrc"];

/// Paths that a hostile command changes.
const TARGETS: [&str; 7] =
    [".git/config", ".git/hooks", ".git/link", ".git/commondir", ".vscode", ".git/config.worktree", ".envrc"];

fn guard(workspace: &Path, paths: &[&str], directories: &[&str], names: &[&str]) -> Guard {
    let owned = |texts: &[&str]| texts.iter().map(PathBuf::from).collect();
    Guard {
        workspace: workspace.to_owned(),
        paths: owned(paths),
        directories: owned(directories),
        names: owned(names),
    }
}

/// Lists everything in a directory: paths, kinds, modes and contents.
fn picture(directory: &Path) -> Vec<String> {
    let mut lines = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(next) = open.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let found = path.symlink_metadata().unwrap();
            let content =
                if found.is_file() { std::fs::read_to_string(&path).unwrap() } else { String::new() };
            let mode = if found.is_symlink() { 0 } else { found.permissions().mode() };
            lines.push(format!("{} {mode:o} {:?} {content}", path.display(), std::fs::read_link(&path).ok()));
            if found.is_dir() {
                open.push(path);
            }
        }
    }
    lines.sort();
    lines
}

/// A change that a hostile command may make in the workspace.
#[derive(Debug, Clone)]
enum Deed {
    Write(usize),
    Remove(usize),
    RemoveGit,
    Link(usize),
    LinkGit,
    Directory(usize),
    Mode(usize),
}

fn deed() -> impl Strategy<Value = Deed> {
    let path = 0..TARGETS.len();
    prop_oneof![
        path.clone().prop_map(Deed::Write),
        path.clone().prop_map(Deed::Remove),
        Just(Deed::RemoveGit),
        path.clone().prop_map(Deed::Link),
        Just(Deed::LinkGit),
        path.clone().prop_map(Deed::Directory),
        path.prop_map(Deed::Mode),
    ]
}

fn remove(path: &Path) {
    let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
}

fn apply(place: &Path, deed: &Deed) {
    let work = place.join("w");
    match deed {
        Deed::Write(index) => drop(std::fs::write(work.join(TARGETS[*index]), "evil")),
        Deed::Remove(index) => remove(&work.join(TARGETS[*index])),
        Deed::RemoveGit => remove(&work.join(".git")),
        Deed::Link(index) => {
            remove(&work.join(TARGETS[*index]));
            let _ = symlink(place.join("outside/file"), work.join(TARGETS[*index]));
        }
        Deed::LinkGit => {
            remove(&work.join(".git"));
            let _ = symlink(place.join("outside"), work.join(".git"));
        }
        Deed::Directory(index) => {
            remove(&work.join(TARGETS[*index]));
            let _ = std::fs::create_dir_all(work.join(TARGETS[*index]).join("inner"));
        }
        Deed::Mode(index) => {
            let _ =
                std::fs::set_permissions(work.join(TARGETS[*index]), std::fs::Permissions::from_mode(0o700));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After any change by a command, guarded paths are restored to their former state, and nothing outside is touched.
    #[test]
    fn guarded_paths_are_put_back(deeds in prop::collection::vec(deed(), 0..8)) {
        let place = workspace();
        let before = picture(&place.path().join("w"));
        let snapshot = Snapshot::take(&guard(&place.path().join("w"), &PATHS, &[""], &NAMES)).unwrap();
        // A deed may write through a symbolic link to the file outside, because this test has no sandbox. So the test
        // restores that file after each deed. After the loop, only `restore` could change it, by following a link.
        for deed in &deeds {
            apply(place.path(), deed);
            std::fs::write(place.path().join("outside/file"), "outside").unwrap();
        }
        let outside = picture(&place.path().join("outside"));
        let restored = snapshot.restore();
        prop_assert_eq!(picture(&place.path().join("w")), before.clone());
        prop_assert_eq!(picture(&place.path().join("outside")), outside);
        if deeds.is_empty() {
            prop_assert_eq!(restored, Vec::<PathBuf>::new());
        }
        prop_assert_eq!(snapshot.restore(), Vec::<PathBuf>::new());
    }
}

/// Guarded paths that a command makes in a directory are removed, however the command makes them. What was there before
/// stays.
#[test]
fn what_must_not_be_made_is_removed_from_each_directory() {
    let place = workspace();
    let work = place.path().join("w");
    for directory in ["sub/.git/hooks", "sub/deep/.claude/skills", "other", "linked"] {
        std::fs::create_dir_all(work.join(directory)).unwrap();
    }
    std::fs::write(work.join("sub/.git/config"), "config").unwrap();
    symlink("nowhere", work.join("linked/.git")).unwrap();
    let names = [".git/config", ".git/hooks", ".git/commondir", ".claude/settings.json", ".envrc"];
    let directories = ["", "sub", "sub/deep", "other", "linked", "gone"];
    let before = picture(&work);
    let snapshot = Snapshot::take(&guard(&work, &[], &directories, &names)).unwrap();
    assert_eq!(snapshot.restore(), Vec::<PathBuf>::new());

    std::fs::write(work.join("sub/.git/commondir"), "evil").unwrap();
    std::fs::write(work.join("sub/deep/.claude/settings.json"), "evil").unwrap();
    std::fs::write(work.join("sub/deep/.git"), "gitdir: evil").unwrap();
    symlink("evil", work.join("other/.claude")).unwrap();
    std::fs::create_dir(work.join("other/.envrc")).unwrap();
    std::fs::write(work.join(".envrc"), "evil").unwrap();
    let expect = [
        ".envrc",
        "sub/.git/commondir",
        "sub/deep/.claude/settings.json",
        "sub/deep/.git",
        "other/.claude",
        "other/.envrc",
    ];
    assert_eq!(snapshot.restore(), expect.map(PathBuf::from));
    assert_eq!(picture(&work), before);
}

/// A command hides what it has made: it takes away the right to read it. A later command could then show it again.
#[test]
fn what_a_command_has_closed_is_restored_too() {
    let place = workspace();
    let work = place.path().join("w");
    std::fs::create_dir_all(work.join("sub/deep")).unwrap();
    let names = [".git/config", ".git/commondir", ".envrc"];
    let paths = [".git/commondir"];
    let snapshot = Snapshot::take(&guard(&work, &paths, &["", "sub", "sub/deep"], &names)).unwrap();
    std::fs::create_dir(work.join("sub/deep/.git")).unwrap();
    for made in [".git/commondir", "sub/.envrc", "sub/deep/.git/config", "sub/deep/.envrc"] {
        std::fs::write(work.join(made), "evil").unwrap();
    }
    for closed in ["sub/deep/.git", "sub/deep", "sub", ".git"] {
        std::fs::set_permissions(work.join(closed), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    let restored = snapshot.restore();
    let expect = [".git/commondir", "sub/.envrc", "sub/deep/.envrc", "sub/deep/.git/config"];
    assert_eq!(restored, expect.map(PathBuf::from));
    for made in expect {
        let found = work.join(made).symlink_metadata().unwrap_err();
        assert_eq!(found.kind(), std::io::ErrorKind::NotFound, "{made}");
    }
    assert_eq!(std::fs::read_to_string(work.join(".git/config")).unwrap(), "config");
}

#[test]
fn what_is_too_large_or_outside_is_not_noted() {
    let place = workspace();
    let work = place.path().join("w");
    std::fs::write(work.join(".vscode"), vec![0; super::MOST_BYTES + 1]).unwrap();
    let take = |path: &str| Snapshot::take(&guard(&work, &[path], &[], &[]));
    assert!(matches!(take(".vscode"), Err(SnapshotError::TooLarge(_))));
    assert!(matches!(take("../outside/file"), Err(SnapshotError::Outside(_))));
    assert!(matches!(take("/etc/passwd"), Err(SnapshotError::Outside(_))));
    let watched = Snapshot::take(&guard(&work, &[], &["../outside"], &[".envrc"]));
    assert!(matches!(watched, Err(SnapshotError::Outside(_))));
}
