use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::{Snapshot, SnapshotError};
use crate::guarded::guarded_paths;

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

const PATHS: [&str; 5] = [".git/config", ".git/hooks", ".git/link", ".git/commondir", ".vscode"];

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
    let path = 0..PATHS.len();
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
        Deed::Write(index) => drop(std::fs::write(work.join(PATHS[*index]), "evil")),
        Deed::Remove(index) => remove(&work.join(PATHS[*index])),
        Deed::RemoveGit => remove(&work.join(".git")),
        Deed::Link(index) => {
            remove(&work.join(PATHS[*index]));
            let _ = symlink(place.join("outside/file"), work.join(PATHS[*index]));
        }
        Deed::LinkGit => {
            remove(&work.join(".git"));
            let _ = symlink(place.join("outside"), work.join(".git"));
        }
        Deed::Directory(index) => {
            remove(&work.join(PATHS[*index]));
            let _ = std::fs::create_dir_all(work.join(PATHS[*index]).join("inner"));
        }
        Deed::Mode(index) => {
            let _ =
                std::fs::set_permissions(work.join(PATHS[*index]), std::fs::Permissions::from_mode(0o700));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    /// After any change by a command, guarded paths are restored to their former state, and nothing outside is touched.
    #[test]
    fn guarded_paths_are_put_back(deeds in prop::collection::vec(deed(), 0..8)) {
        let place = workspace();
        let paths = PATHS.map(PathBuf::from);
        let before = picture(&place.path().join("w"));
        let snapshot = Snapshot::take(&place.path().join("w"), &paths).unwrap();
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

#[test]
fn a_worktree_and_submodules_are_guarded() {
    let place = workspace();
    let work = place.path().join("w");
    std::fs::create_dir_all(work.join(".git/modules/a/b/hooks")).unwrap();
    std::fs::write(work.join(".git/modules/a/b/HEAD"), "").unwrap();
    let paths = guarded_paths(&work);
    assert!(
        paths.contains(&".git/config".into()) && paths.contains(&".git/modules/a/b/config".into()),
        "{paths:?}"
    );
    assert!(!paths.contains(&".git".into()));

    std::fs::remove_dir_all(work.join(".git")).unwrap();
    std::fs::write(work.join(".git"), "gitdir: /elsewhere").unwrap();
    let paths = guarded_paths(&work);
    assert!(paths.contains(&".git".into()) && !paths.contains(&".git/config".into()), "{paths:?}");
}

#[test]
fn what_is_too_large_or_outside_is_not_noted() {
    let place = workspace();
    let work = place.path().join("w");
    std::fs::write(work.join(".vscode"), vec![0; super::MOST_BYTES + 1]).unwrap();
    let take = |path: &str| Snapshot::take(&work, &[PathBuf::from(path)]);
    assert!(matches!(take(".vscode"), Err(SnapshotError::TooLarge(_))));
    assert!(matches!(take("../outside/file"), Err(SnapshotError::Outside(_))));
    assert!(matches!(take("/etc/passwd"), Err(SnapshotError::Outside(_))));
}
