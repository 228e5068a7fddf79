//! Tests of what the person can see of workspaces.

use super::{World, git, reason, task, write};
use crate::workspaces::{FileChange, FileDiff, History, Recording, Wanted};
use polity_society::workspace::{Caller, Place};
use std::fs;
use tokio_util::sync::CancellationToken;

async fn diff(world: &World, place: &Place) -> Vec<FileDiff> {
    world.all.diff(&task(), place, &CancellationToken::new()).await.unwrap()
}

#[tokio::test]
async fn a_worktree_is_compared_with_what_it_began_with() {
    for person in [false, true] {
        let files = [("kept", "k\n"), ("gone", "g\n"), ("a b", "1\n2\n3\n"), ("kind", "x")];
        let world = if person { World::of_person(&files).await } else { World::made().await };
        let Some(world) = world else { return };
        let root = world.shared("root");
        let main = world.open(&root).await.directory;
        for (path, text) in files {
            write(&main, path, text);
        }
        let ann = world.hire(&root, "ann-1").await;
        let own = world.own("ann-1");
        assert_eq!(diff(&world, &own.place).await, []);
        write(&ann, "a b", "1\nzwei\n3\n");
        world.settle(&own, 4).await;
        fs::remove_file(ann.join("gone")).unwrap();
        fs::remove_file(ann.join("kind")).unwrap();
        std::os::unix::fs::symlink("kept", ann.join("kind")).unwrap();
        write(&ann, "new\nline", "n\n");
        let found = diff(&world, &own.place).await;
        let changes: Vec<_> = found.iter().map(|diff| (diff.path.as_str(), diff.change)).collect();
        let expect = [
            ("a b", FileChange::Changed),
            ("gone", FileChange::Deleted),
            ("kind", FileChange::Changed),
            ("new\nline", FileChange::Added),
        ];
        assert_eq!(changes, expect);
        assert!(found[0].patch.contains("\n 1\n-2\n+zwei\n 3\n"), "{}", found[0].patch);
        assert!(found[2].patch.contains("deleted file") && found[2].patch.contains("new file mode 120000"));
        assert!(found[3].patch.ends_with("+n\n"));
        // `diff` makes a temporary commit, which must not appear in the log.
        let log = world.all.log(&task(), &own.place, &CancellationToken::new()).await.unwrap();
        assert_eq!(log.len(), 1);
        assert_eq!(
            (log[0].agent.as_str(), log[0].turn, log[0].message.as_str()),
            ("ann-1", Some(4), "Role of ann-1, turn 4")
        );
        assert_eq!(log[0].files, ["a b"]);
        assert!(log[0].time > 1_600_000_000);
        // A directory of the person is compared with HEAD. All other workspaces are compared with their first commit.
        let all = diff(&world, &root.place).await;
        assert_eq!(all.len(), if person { 0 } else { 4 });
        write(&main, "mine", "m\n");
        let all = diff(&world, &root.place).await;
        assert_eq!(all.iter().filter(|diff| diff.path == "mine").count(), 1);
    }
}

/// Returns the paths of the files that a merge into the workspace of the caller would bring.
async fn unmerged(world: &World, caller: &Caller, from: &str) -> Vec<String> {
    let files = world.unmerged(caller, from).await.map(|found| found.files).unwrap_or_default();
    files.into_iter().map(|diff| diff.path).collect()
}

#[tokio::test]
async fn what_a_merge_would_bring_is_shown_and_not_merged() {
    for person in [false, true] {
        let files = [("kept", "k\n")];
        let world = if person { World::of_person(&files).await } else { World::made().await };
        let Some(world) = world else { return };
        let root = world.shared("root");
        let main = world.open(&root).await.directory;
        let ann = world.hire(&root, "ann-1").await;
        assert_eq!(unmerged(&world, &root, "ann-1").await, [""; 0]);
        assert_eq!(world.unmerged(&root, "nobody").await, None);
        write(&ann, "committed", "c\n");
        world.settle(&world.own("ann-1"), 1).await;
        write(&ann, "new", "n\n");
        let ben = world.hire(&world.own("ann-1"), "ben-2").await;
        write(&ben, "of ben", "b\n");
        // What others add to the workspace is no part of the merge.
        write(&main, "of root", "r\n");
        world.settle(&root, 2).await;
        assert_eq!(unmerged(&world, &root, "ann-1").await, ["committed", "new"]);
        assert_eq!(unmerged(&world, &world.own("ann-1"), "ben-2").await, ["of ben"]);
        // The work of `ben-2` is based on the work of `ann-1`, so root gets both.
        assert_eq!(unmerged(&world, &root, "ben-2").await, ["committed", "new", "of ben"]);
        assert!(!main.join("new").exists() && !ann.join("of ben").exists());
        // What was merged before is not shown again.
        world.merge(&root, "ann-1").await.unwrap();
        assert_eq!(unmerged(&world, &root, "ann-1").await, [""; 0]);
        write(&ann, "new", "more\n");
        let found = world.unmerged(&root, "ann-1").await.unwrap().files;
        assert_eq!((found.len(), found[0].change), (1, FileChange::Changed));
        assert!(found[0].patch.ends_with("-n\n+more\n"), "{}", found[0].patch);
    }
}

/// The person begins a new history after an agent was hired.
#[tokio::test]
async fn work_without_a_common_commit_is_not_shown_and_not_merged() {
    let Some(world) = World::of_person(&[("kept", "k\n")]).await else { return };
    let (person, root) = (world.person(), world.shared("root"));
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "new", "n\n");
    assert_eq!(unmerged(&world, &root, "ann-1").await, ["new"]);
    git(&person, &["checkout", "-q", "--orphan", "other"]);
    git(&person, &["commit", "-q", "-m", "Anew"]);
    assert_eq!(world.unmerged(&root, "ann-1").await, None);
    for wanted in [Wanted::Present, Wanted::Shown(None)] {
        let refused = reason(world.merge_wanted(&root, "ann-1", wanted).await);
        assert!(refused.contains("unrelated histories"), "{wanted:?}: {refused}");
    }
    assert!(!person.join("new").exists());
}

#[tokio::test]
async fn the_log_shows_merges_with_their_files() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "x\ny", "1");
    write(&ann, "z", "1");
    world.settle(&world.own("ann-1"), 1).await;
    world.merge(&root, "ann-1").await.unwrap();
    let log = world.all.log(&task(), &root.place, &CancellationToken::new()).await.unwrap();
    let shown: Vec<_> =
        log.iter().map(|one| (one.agent.as_str(), one.message.as_str(), one.files.len())).collect();
    assert_eq!(shown, [("root", "Merge the work of ann-1", 2), ("polity", "Begin the workspace", 0)]);
    assert_eq!(log[0].files, ["x\ny", "z"]);
    assert_eq!(log[0].turn, None);
}

#[tokio::test]
async fn the_files_are_listed_with_their_sizes() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let tree = async || world.all.tree(&task(), &root.place, &CancellationToken::new()).await.unwrap();
    assert_eq!(tree().await, []);
    let main = world.open(&root).await.directory;
    write(&main, ".gitignore", "*.o\n");
    write(&main, "a.o", "x");
    write(&main, "d/é", "12345");
    let listed: Vec<_> = tree().await.into_iter().map(|file| (file.path, file.size)).collect();
    assert_eq!(listed, [(".gitignore".to_owned(), Some(4)), ("d/é".to_owned(), Some(5))]);
}

async fn history(world: &World) -> History {
    world.all.history(&task(), &world.root, &CancellationToken::new()).await.unwrap()
}

/// The author, the turn, the worktree and the files of a commit.
type Shown = (String, Option<i64>, Option<String>, Vec<String>);

/// Returns the commits of a history, the latest first.
fn shown(history: &History) -> Vec<Shown> {
    let shown = |found: &crate::workspaces::WorktreeCommit| {
        let commit = found.commit.clone();
        let worktree = found.worktree.as_ref().map(ToString::to_string);
        (commit.agent, commit.turn, worktree, commit.files)
    };
    history.commits.iter().map(shown).collect()
}

#[tokio::test]
async fn the_history_has_the_commits_of_all_workspaces_of_a_task() {
    for person in [false, true] {
        let world = if person { World::of_person(&[("kept", "k\n")]).await } else { World::made().await };
        let Some(world) = world else { return };
        assert!(shown(&history(&world).await).is_empty());
        let root = world.shared("root");
        let main = world.open(&root).await.directory;
        let ann = world.hire(&root, "ann-1").await;
        let bob = world.hire(&world.own("ann-1"), "bob-1").await;
        write(&ann, "a", "one\n");
        world.settle(&world.own("ann-1"), 4).await;
        write(&bob, "b", "two\n");
        world.settle(&world.own("bob-1"), 5).await;
        write(&main, "m", "three\n");
        world.settle(&root, 6).await;

        let found = history(&world).await;
        let worktrees: Vec<_> = found.worktrees.iter().map(ToString::to_string).collect();
        assert_eq!(worktrees, ["ann-1", "bob-1"]);
        let line = |agent: &str, turn, worktree: Option<&str>, file: &str| {
            (agent.to_owned(), Some(turn), worktree.map(str::to_owned), vec![file.to_owned()])
        };
        let own = [line("ann-1", 4, Some("ann-1"), "a"), line("bob-1", 5, Some("bob-1"), "b")];
        let mut commits = shown(&found);
        commits.retain(|(agent, ..)| agent != "polity");
        commits.sort_by_key(|(_, turn, ..)| *turn);
        if person {
            assert_eq!((found.recording, &commits[..]), (Recording::Worktrees, &own[..]));
        } else {
            let all = [&own[..], &[line("root", 6, None, "m")]].concat();
            assert_eq!((found.recording, &commits[..]), (Recording::Turns, &all[..]));
        }

        let commit = found.commits.iter().find(|found| found.commit.agent == "bob-1").unwrap();
        let patch =
            async |commit: &str| world.all.patch(&task(), commit, &CancellationToken::new()).await.unwrap();
        let files = patch(&commit.commit.id).await.unwrap();
        assert_eq!((files.len(), files[0].path.as_str(), files[0].change), (1, "b", FileChange::Added));
        assert!(files[0].patch.ends_with("@@ -0,0 +1 @@\n+two\n"), "{}", files[0].patch);
        for unknown in ["HEAD", "--all", "", &commit.commit.id[..12], &"0".repeat(40)] {
            assert_eq!(patch(unknown).await, None, "{unknown}");
        }
    }
}

#[tokio::test]
async fn a_commit_without_parents_is_compared_with_nothing() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    world.open(&root).await;
    let begin = history(&world).await.commits[0].commit.id.clone();
    let files = world.all.patch(&task(), &begin, &CancellationToken::new()).await.unwrap();
    assert_eq!(files, Some(Vec::new()));
}

#[tokio::test]
async fn asking_for_a_workspace_does_not_make_it() {
    let Some(world) = World::made().await else { return };
    let place = world.shared("root").place;
    assert_eq!(world.all.present(&task(), &place).unwrap(), None);
    history(&world).await;
    assert!(!world.home().join("workspaces").exists());
    let main = world.open(&world.shared("root")).await.directory;
    assert_eq!(world.all.present(&task(), &place).unwrap().map(|(path, _)| path), Some(main));
}
