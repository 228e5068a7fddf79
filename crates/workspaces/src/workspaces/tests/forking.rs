//! Tests of the workspaces of forks.

use super::{World, files, git, read, task, write, writing};
use crate::workspaces::Cut;
use polity_society::id::{AgentId, TaskId, TurnId};
use polity_society::workspace::{Caller, Place, Root};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use tokio_util::sync::CancellationToken;

fn fork() -> TaskId {
    TaskId::new("t-2")
}

/// Returns a caller that works in the shared workspace of the fork.
fn in_fork(agent: &str) -> Caller {
    let place = Place { root: Root::Made, worktree: None };
    Caller { agent: AgentId::new(agent), task: fork(), role: "Role".to_owned(), place }
}

/// Begins the workspace of the fork. At the cut, the turns in `ended` had ended, and no others. Returns the result of
/// `Workspaces::fork`.
async fn begin(world: &World, ended: &[i64]) -> Option<String> {
    let cut = Cut { ended: ended.iter().copied().collect(), at: i64::MAX };
    world.all.fork(&fork(), &task(), &cut, &CancellationToken::new()).await.unwrap()
}

async fn directory(world: &World) -> PathBuf {
    let opened = world.all.directory(&fork(), &in_fork("root").place, &CancellationToken::new()).await;
    opened.unwrap().directory
}

fn file(path: &str, text: &str) -> (String, String) {
    (path.to_owned(), text.to_owned())
}

#[tokio::test]
async fn a_fork_begins_with_the_files_of_the_last_turn_that_had_ended() {
    let Some(world) = World::made().await else { return };
    let (ann, ben) = (world.shared("ann-1"), world.shared("ben-2"));
    let original = world.open(&ann).await.directory;
    write(&original, "a", "1");
    write(&original, "sub/b", "1");
    world.settle(&ann, 1).await;
    write(&original, "a", "2");
    let second = world.settle(&ben, 2).await.commit;
    write(&original, "a", "3");
    world.settle(&ann, 5).await;
    let log = world.log("main");

    // At this cut, turn 3 had ended without a change, and turn 5 had not ended yet.
    assert_eq!(begin(&world, &[1, 2, 3]).await, second);
    let copy = directory(&world).await;
    assert_eq!(files(&copy), [file("a", "2"), file("sub/b", "1")]);
    assert_eq!(git(&copy, &["status", "--porcelain"]), "");

    // From now on, neither task sees the changes of the other.
    write(&copy, "a", "of the fork");
    let settled =
        world.all.settle(&in_fork("ann-9"), TurnId::new(6), &*writing(&[]), &CancellationToken::new()).await;
    assert!(settled.unwrap().commit.is_some());
    assert_eq!((read(&original, "a").as_str(), world.log("main")), ("3", log));
    fs::remove_dir_all(world.task_directory()).unwrap();
    let repository = world.home().join("workspaces/t-2/git");
    git(&repository, &["fsck", "--strict"]);
    let subjects = git(&repository, &["log", "--format=%an: %s", "main"]);
    let expect =
        ["ann-9 (Role): Role, turn 6", "polity: Begin with the files of the task that was forked"].join("\n");
    assert_eq!(subjects, expect);
}

#[tokio::test]
async fn a_worktree_in_a_fork_begins_with_the_files_of_the_fork() {
    let Some(world) = World::made().await else { return };
    let ann = world.shared("ann-1");
    write(&world.open(&ann).await.directory, "a", "1");
    world.settle(&ann, 1).await;
    begin(&world, &[1]).await.unwrap();
    let cancel = CancellationToken::new();
    let hired = world.all.hire(&in_fork("root"), &AgentId::new("ben-9"), &cancel).await.unwrap();
    assert_eq!(files(&hired.directory), [file("a", "1")]);
}

#[tokio::test]
async fn a_fork_has_what_was_merged_before_the_cut() {
    let Some(world) = World::made().await else { return };
    let (ann, ben) = (world.shared("ann-1"), world.own("ben-2"));
    world.open(&ann).await;
    write(&world.hire(&ann, "ben-2").await, "a", "1");
    world.settle(&ben, 2).await;
    world.merge(&ann, "ben-2").await.unwrap();
    // The merge belongs to no turn. So its time decides whether it is before the cut.
    let long_ago = Cut { ended: BTreeSet::from([2]), at: 0 };
    assert_eq!(world.all.fork(&fork(), &task(), &long_ago, &CancellationToken::new()).await.unwrap(), None);
    assert!(begin(&world, &[2]).await.is_some());
    assert_eq!(files(&directory(&world).await), [file("a", "1")]);
}

#[tokio::test]
async fn a_fork_from_before_the_first_change_begins_with_no_files() {
    let Some(world) = World::made().await else { return };
    assert_eq!(begin(&world, &[1]).await, None);
    assert!(!world.home().join("workspaces/t-2").exists());
    let ann = world.shared("ann-1");
    write(&world.open(&ann).await.directory, "a", "1");
    world.settle(&ann, 4).await;
    begin(&world, &[1, 2, 3]).await;
    assert!(files(&directory(&world).await).is_empty());
}

#[tokio::test]
async fn a_fork_that_was_not_begun_leaves_no_files() {
    let Some(world) = World::made().await else { return };
    let ann = world.shared("ann-1");
    let original = world.open(&ann).await.directory;
    write(&original, "a", "1");
    world.settle(&ann, 1).await;
    begin(&world, &[1]).await.unwrap();
    world.all.discard(&fork(), &CancellationToken::new()).await.unwrap();
    assert!(!world.home().join("workspaces/t-2").exists());
    // The fork had hard links to the objects of the original. The original still has its objects.
    world.git(&["fsck", "--strict"]);
    assert_eq!(files(&original), [file("a", "1")]);
}
