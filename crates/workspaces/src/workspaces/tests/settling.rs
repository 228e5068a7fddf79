//! Tests of committing at the end of a turn.

use super::{Found, World, git, read, task, write, writing};
use crate::workspaces::{Settled, Workspaces};
use futures::FutureExt;
use polity_society::id::TurnId;
use polity_society::workspace::{Access, Place, Root};
use std::collections::HashSet;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};
use tokio_util::sync::CancellationToken;

#[tokio::test]
async fn a_turn_that_changed_something_ends_with_one_commit_of_its_agent() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let opened = world.open(&agent).await;
    assert_eq!(world.open(&agent).await, opened);
    assert_eq!(world.log("main"), ["polity: Begin the workspace"]);
    assert_eq!(world.settle(&agent, 1).await, Settled::default());

    write(&opened.directory, "a b/ü\n.txt", "one");
    write(&opened.directory, "--help", "x");
    write(&opened.directory, "\"quoted\"\\", "y");
    write(&opened.directory, "tool", "#!/bin/sh");
    fs::set_permissions(opened.directory.join("tool"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("nowhere", opened.directory.join("link")).unwrap();
    assert!(world.settle(&agent, 7).await.commit.is_some());
    assert_eq!(world.settle(&agent, 7).await.commit, None);
    assert_eq!(
        world.log("main"),
        ["ann-1 (Role of ann-1): Role of ann-1, turn 7", "polity: Begin the workspace"]
    );
    assert_eq!(world.git(&["log", "-1", "--format=%ae", "main"]), "ann-1@polity.invalid");
    let listed = world.git(&["ls-tree", "-r", "--full-tree", "--format=%(objectmode) %(path)", "main"]);
    let expect = "100644 \"\\\"quoted\\\"\\\\\"\n100644 --help\n100644 \"a b/\\303\\274\\n.txt\"\n120000 link\n100755 tool";
    assert_eq!(listed, expect);
    // Git commands of agents see no changes in the workspace.
    assert_eq!(git(&opened.directory, &["status", "--porcelain"]), "");
    world.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn without_git_the_workspace_of_a_task_is_a_plain_directory() {
    for found in [Found::Missing, Found::TooOld("2.30.0".to_owned())] {
        let home = tempfile::tempdir().unwrap();
        let world = World { all: Workspaces::new(home.path().join("workspaces")), home, root: Root::Made };
        world.all.git.set(found).unwrap();
        let agent = world.shared("ann-1");
        let opened = world.open(&agent).await;
        assert_eq!((&opened.directory, &opened.git), (&world.task_directory().join("main"), &None));
        write(&opened.directory, "a", "1");
        assert_eq!(world.settle(&agent, 1).await, Settled::default());
        assert_eq!(world.open(&agent).await, opened);
        assert_eq!(read(&opened.directory, "a"), "1");
        assert!(!world.task_directory().join("git").exists());
    }
}

#[tokio::test]
async fn deletions_and_new_kinds_are_committed() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "a/x", "1");
    write(&directory, "b", "2");
    write(&directory, "c", "3");
    world.settle(&agent, 1).await;
    fs::remove_dir_all(directory.join("a")).unwrap();
    write(&directory, "a", "now a file");
    fs::remove_file(directory.join("b")).unwrap();
    write(&directory, "b/x", "now a directory");
    fs::remove_file(directory.join("c")).unwrap();
    world.settle(&agent, 2).await;
    let listed = world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]);
    assert_eq!(listed, "a\nb/x");
}

#[tokio::test]
async fn ignored_files_are_left_out_unless_they_were_committed() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "known.log", "1");
    world.settle(&agent, 1).await;
    write(&directory, ".gitignore", "*.log\n/out/\n!keep.log\n");
    write(&directory, "sub/.gitignore", "!seen.log\nhere\n");
    for path in ["known.log", "new.log", "keep.log", "out/x", "sub/out/x", "sub/seen.log", "sub/here", "here"]
    {
        write(&directory, path, "2");
    }
    world.settle(&agent, 2).await;
    let listed = world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]);
    let expect =
        [".gitignore", "here", "keep.log", "known.log", "sub/.gitignore", "sub/out/x", "sub/seen.log"];
    assert_eq!(listed.lines().collect::<Vec<_>>(), expect);
    assert_eq!(world.git(&["show", "main:known.log"]), "2");
    // Git and polity agree on which files are ignored.
    assert_eq!(git(&directory, &["status", "--porcelain"]), "");
}

/// A commit must not contain half-written files. A tool of an agent may be writing such a file at this moment, or may
/// have left it because polity was killed.
#[tokio::test]
async fn files_that_are_being_written_are_not_committed() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    let unfinished = format!("{}0123456789abcdef-0123456789abcdef", polity_files::TEMPORARY_PREFIX);
    write(&directory, &unfinished, "half of a fi");
    write(&directory, &format!("sub/{unfinished}"), "half of a fi");
    assert_eq!(world.settle(&agent, 1).await, Settled::default());
    write(&directory, "sub/whole", "a file");
    assert!(world.settle(&agent, 2).await.commit.is_some());
    assert_eq!(world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]), "sub/whole");
    assert_eq!(read(&directory, &unfinished), "half of a fi", "the write goes on");
}

#[tokio::test]
async fn a_change_is_found_however_quick_it_was() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    let long_ago = SystemTime::now() - Duration::from_secs(3600);
    for turn in 1..20 {
        // The size and the time of modification stay the same. So polity must find the change in another way.
        write(&directory, "f", &format!("{turn:02}"));
        fs::File::open(directory.join("f")).unwrap().set_modified(long_ago).unwrap();
        assert!(world.settle(&agent, turn).await.commit.is_some(), "turn {turn}");
    }
}

#[tokio::test]
async fn a_directory_of_the_person_is_never_committed() {
    let Some(world) = World::of_person(&[("a", "1")]).await else { return };
    let agent = world.shared("ann-1");
    let opened = world.open(&agent).await;
    assert_eq!(opened.directory, world.person());
    assert_eq!(opened.git.unwrap().read_only, [world.person().join(".git")]);
    write(&world.person(), "a", "2");
    assert_eq!(world.settle(&agent, 1).await, Settled::default());
    assert_eq!(git(&world.person(), &["status", "--porcelain"]), " M a");
    assert_eq!(git(&world.person(), &["log", "--format=%s"]), "First");
}

#[tokio::test]
async fn a_directory_of_the_person_must_exist() {
    let home = tempfile::tempdir().unwrap();
    let all = Workspaces::new(home.path().join("workspaces"));
    let open = async |directory: &str| {
        let root = Root::Person { directory: directory.into(), access: Access::Write };
        let place = Place { root, worktree: None };
        super::reason(all.directory(&task(), &place, &CancellationToken::new()).await)
    };
    assert!(open("/no/such/place").await.contains("/no/such/place is not a directory"));
    assert!(open("relative").await.contains("not an absolute path"));
}

#[tokio::test]
async fn a_repository_that_was_half_made_is_made_anew() {
    let Some(mut world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    write(&world.task_directory(), "git.new/HEAD", "rubbish");
    write(&world.task_directory(), "main.new/x", "rubbish");
    let directory = world.open(&agent).await.directory;
    assert!(!directory.join("x").exists());
    // Simulates that the process died after it made the repository and before it made the directory.
    fs::remove_dir_all(&directory).unwrap();
    world.restart();
    world.open(&agent).await;
    write(&directory, "a", "1");
    assert!(world.settle(&agent, 1).await.commit.is_some());
    assert_eq!(read(&directory, "a"), "1");
}

#[tokio::test]
async fn old_locks_of_a_killed_git_are_removed() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    let repository = world.task_directory().join("git");
    for lock in ["refs/heads/main.lock", "worktrees/main/index.lock", "packed-refs.lock"] {
        write(&repository, lock, "");
        let old = SystemTime::now() - Duration::from_secs(3600);
        fs::File::open(repository.join(lock)).unwrap().set_modified(old).unwrap();
    }
    write(&directory, "a", "1");
    assert!(world.settle(&agent, 1).await.commit.is_some());
    assert_eq!(git(&directory, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn agents_of_one_workspace_settle_one_after_another() {
    let Some(world) = World::made().await else { return };
    let directory = world.open(&world.shared("a-0")).await.directory;
    let turns = (0..12).map(|number| {
        let (world, directory) = (&world, &directory);
        async move {
            write(directory, &format!("f{number}"), "x");
            world.settle(&world.shared(&format!("a-{number}")), number).await
        }
    });
    futures::future::join_all(turns).await;
    let listed = world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]);
    assert_eq!(listed.lines().count(), 12);
    world.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn a_turn_leaves_out_what_other_agents_are_writing() {
    let Some(world) = World::made().await else { return };
    let (ann, bob) = (world.shared("ann-1"), world.shared("bob-2"));
    let directory = world.open(&ann).await.directory;
    write(&directory, "known", "of both");
    world.settle(&ann, 1).await;
    write(&directory, "of ann", "whole");
    write(&directory, "command", "whole");
    write(&directory, "known", "half");
    write(&directory, "b/ü\n.txt", "half");
    world.settle_beside(&ann, 2, &["known", "b/ü\\n.txt"]).await;
    assert_eq!(world.git(&["show", "main:known"]), "of both");

    write(&directory, "known", "of bob");
    write(&directory, "b/ü\n.txt", "whole");
    world.settle_beside(&bob, 3, &["of ann"]).await;
    let log = world.git(&["log", "-2", "--format=by %ae", "--name-only", "main"]);
    assert_eq!(
        log.lines().filter(|line| !line.is_empty()).collect::<Vec<_>>(),
        [
            "by bob-2@polity.invalid",
            "\"b/\\303\\274\\n.txt\"",
            "known",
            "by ann-1@polity.invalid",
            "command",
            "of ann"
        ]
    );
    assert_eq!(git(&directory, &["status", "--porcelain"]), "");
}

#[tokio::test]
async fn what_was_left_out_is_committed_as_soon_as_nobody_is_writing_it() {
    let Some(mut world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "f", "half");
    assert_eq!(world.settle_beside(&agent, 1, &["f"]).await, Settled::default());
    assert_eq!(world.log("main").len(), 1);
    world.restart();
    // The turn of the other agent was stopped, so its own end has committed nothing.
    assert!(world.settle(&agent, 2).await.commit.is_some());
    assert_eq!(world.git(&["show", "main:f"]), "half");
}

/// Another agent may begin to write a file while polity reads the directory. So polity asks which files are being
/// written after it has read the directory, not before.
#[tokio::test]
async fn a_write_that_begins_during_a_commit_is_not_in_this_commit() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "f", "1");
    let late = directory.join("late");
    let others = move || {
        fs::write(&late, "half").unwrap();
        std::future::ready(Ok(HashSet::new())).boxed()
    };
    let cancel = CancellationToken::new();
    world.all.settle(&agent, TurnId::new(1), &others, &cancel).await.unwrap();
    let listed = world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]);
    assert_eq!(listed, "f");
}

#[tokio::test]
async fn if_nobody_knows_who_is_writing_the_next_turn_commits() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "f", "1");
    let unknown = || std::future::ready(Err("no database".to_owned())).boxed();
    let settled = world.all.settle(&agent, TurnId::new(1), &unknown, &CancellationToken::new()).await;
    assert_eq!(super::reason(settled), "no database");
    assert_eq!(world.log("main").len(), 1);
    assert!(world.settle(&agent, 2).await.commit.is_some());
}

/// The new agent and the merge need the files as they are now.
#[tokio::test]
async fn hiring_and_merging_commit_what_everybody_has_written() {
    let Some(world) = World::made().await else { return };
    let ann = world.shared("ann-1");
    let directory = world.open(&ann).await.directory;
    write(&directory, "f", "half");
    world.settle_beside(&ann, 1, &["f"]).await;
    let worktree = world.hire(&ann, "bob-2").await;
    assert_eq!(read(&worktree, "f"), "half");
    write(&worktree, "g", "of bob");
    write(&directory, "f", "whole");
    world.settle_beside(&ann, 2, &["f"]).await;
    world.merge(&ann, "bob-2").await.unwrap();
    assert_eq!(world.git(&["show", "main:f"]), "whole");
    assert_eq!(world.git(&["show", "main:g"]), "of bob");
}

#[tokio::test]
async fn a_file_that_cannot_be_read_does_not_stop_the_others() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "closed", "1");
    fs::set_permissions(directory.join("closed"), fs::Permissions::from_mode(0o000)).unwrap();
    write(&directory, "open", "2");
    let settled = world.settle(&agent, 1).await;
    assert!(settled.commit.is_some());
    if fs::read(directory.join("closed")).is_ok() {
        println!("this user may read every file, so nothing is unreadable");
    } else {
        assert_eq!(settled.unreadable, ["closed"]);
    }
}

#[tokio::test]
async fn a_cancelled_commit_changes_nothing() {
    let Some(world) = World::made().await else { return };
    let agent = world.shared("ann-1");
    let directory = world.open(&agent).await.directory;
    write(&directory, "a", "1");
    let cancel = CancellationToken::new();
    cancel.cancel();
    let settled = world.all.settle(&agent, TurnId::new(1), &*writing(&[]), &cancel).await;
    assert!(super::reason(settled).contains("cancelled"));
    assert_eq!(world.log("main").len(), 1);
    assert!(world.settle(&agent, 1).await.commit.is_some());
}
