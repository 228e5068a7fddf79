//! Tests of merging between workspaces that polity made.

use super::{World, conflicts, files, git, read, reason, write};
use crate::workspaces::{MergedFile, Wanted};
use polity_society::id::AgentId;
use polity_society::refusal::Refusal;
use std::fs;

fn merged(path: &str, change: &'static str) -> MergedFile {
    MergedFile { path: path.to_owned(), change }
}

#[tokio::test]
async fn work_is_merged_into_the_workspace_of_the_caller() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    write(&main, "both", "1\n2\n3\n4\n5\n6\n7\n8\n9\n");
    write(&main, "gone", "x");
    write(&main, "old name", "some text\nthat is long enough\nto be recognised\n");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "both", "one\n2\n3\n4\n5\n6\n7\n8\n9\n");
    fs::remove_file(ann.join("gone")).unwrap();
    write(&ann, "new/file", "n");
    fs::rename(ann.join("old name"), ann.join("new name")).unwrap();
    write(&main, "both", "1\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    write(&main, "old name", "some text\nthat is long enough\nto be recognised\nand edited\n");
    let done = world.merge(&root, "ann-1").await.unwrap();
    assert_eq!(done.commits, 1);
    let mut files = done.files;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let expect = [
        merged("both", "changed"),
        merged("gone", "deleted"),
        merged("new name", "added"),
        merged("new/file", "added"),
        merged("old name", "deleted"),
    ];
    assert_eq!(files, expect);
    assert_eq!(read(&main, "both"), "one\n2\n3\n4\n5\n6\n7\n8\nnine\n");
    assert_eq!(read(&main, "new name"), "some text\nthat is long enough\nto be recognised\nand edited\n");
    assert_eq!(git(&main, &["status", "--porcelain"]), "");
    // The merge has already committed everything, so the end of the turn makes no commit.
    assert_eq!(world.settle(&root, 5).await.commit, None);
    assert_eq!(world.log("main")[0], "root (Role of root): Merge the work of ann-1");
    // A repeated merge changes nothing until there is new work.
    assert_eq!(world.merge(&root, "ann-1").await.unwrap(), Default::default());
    write(&ann, "later", "l");
    let again = world.merge(&root, "ann-1").await.unwrap();
    assert_eq!((again.commits, again.files), (1, vec![merged("later", "added")]));
    world.git(&["fsck", "--strict"]);
}

/// The person allows a merge, and the agent goes on working before the merge runs.
#[tokio::test]
async fn a_merge_of_what_was_shown_takes_nothing_else() {
    for person in [false, true] {
        let world = if person { World::of_person(&[("kept", "k\n")]).await } else { World::made().await };
        let Some(mut world) = world else { return };
        let root = world.shared("root");
        let main = world.open(&root).await.directory;
        let ann = world.hire(&root, "ann-1").await;
        let changed = Err(Refusal::WorkChanged { agent: AgentId::new("ann-1") });
        let nothing = world.unmerged(&root, "ann-1").await.unwrap();
        assert_eq!(nothing.files, []);
        write(&ann, "new", "n\n");
        for shown in [None, Some(nothing.tree.as_str())] {
            assert_eq!(world.merge_wanted(&root, "ann-1", Wanted::Shown(shown)).await, changed, "{shown:?}");
        }

        let tree = world.unmerged(&root, "ann-1").await.unwrap().tree;
        let shown = Wanted::Shown(Some(&tree));
        write(&ann, "more", "m\n");
        assert_eq!(world.merge_wanted(&root, "ann-1", shown).await, changed);
        world.settle(&world.own("ann-1"), 1).await;
        assert_eq!(world.merge_wanted(&root, "ann-1", shown).await, changed);
        assert!(!main.join("new").exists() && !main.join("more").exists());

        // Only the files of the agent count: not its commits, not the files of the caller, and not which process asked.
        fs::remove_file(ann.join("more")).unwrap();
        write(&main, "of root", "r\n");
        world.restart();
        let done = world.merge_wanted(&root, "ann-1", shown).await.unwrap();
        assert_eq!(done.files, [merged("new", "added")]);
        // If a crash lets the call run again, everything is merged already.
        assert_eq!(world.merge_wanted(&root, "ann-1", shown).await, Ok(Default::default()));
    }
}

#[tokio::test]
async fn a_conflict_names_its_hunks_and_changes_nothing() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    write(&main, "f", "a\n<<<<<<< not a marker\nb\nc\n");
    write(&main, "edited", "x");
    write(&main, "other", "x");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "f", "a\n<<<<<<< not a marker\nher b\nc\n");
    fs::remove_file(ann.join("edited")).unwrap();
    write(&ann, "other", "y");
    write(&main, "f", "a\n<<<<<<< not a marker\nour b\nc\n");
    write(&main, "edited", "z");
    let before = files(&main);
    let refused = world.merge(&root, "ann-1").await;
    let expect = [("edited", "modify/delete"), ("f", "content")];
    assert_eq!(conflicts(&refused), expect.map(|(path, kind)| (path.to_owned(), kind.to_owned())));
    let Err(Refusal::MergeConflict { conflicts, agent }) = refused else { panic!() };
    assert_eq!(agent.as_str(), "ann-1");
    let hunks = serde_json::json!([{"line": 3, "ours": "our b\n", "base": "b\n", "theirs": "her b\n"}]);
    assert_eq!(conflicts[1]["hunks"], hunks);
    assert_eq!(files(&main), before);
    // The agent of the shared workspace resolves the conflicts by changing its own files.
    write(&main, "f", "a\n<<<<<<< not a marker\nher b\nc\n");
    write(&main, "edited", "x");
    world.merge(&root, "ann-1").await.unwrap();
    assert_eq!(read(&main, "other"), "y");
    assert!(!main.join("edited").exists());
}

#[tokio::test]
async fn a_grandchild_is_merged_into_the_worktree_of_its_parent() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let ann = world.hire(&root, "ann-1").await;
    let own = world.own("ann-1");
    let ben = world.hire(&own, "ben-2").await;
    write(&ben, "ben", "1");
    world.merge(&own, "ben-2").await.unwrap();
    assert_eq!(read(&ann, "ben"), "1");
    let main = world.open(&root).await.directory;
    assert!(!main.join("ben").exists());
    assert_eq!(world.merge(&root, "ann-1").await.unwrap().files, [merged("ben", "added")]);
    assert_eq!(read(&main, "ben"), "1");
}

#[tokio::test]
async fn only_a_worktree_can_be_merged() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    world.open(&root).await;
    let refused = reason(world.merge(&root, "ann-1").await);
    assert!(refused.contains("ann-1 has no worktree of its own"), "{refused}");
    world.hire(&root, "ann-1").await;
    let refused = reason(world.merge(&world.own("ann-1"), "ann-1").await);
    assert!(refused.contains("your own workspace"), "{refused}");
}

#[tokio::test]
async fn a_link_in_the_way_is_replaced_and_never_followed() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    let outside = world.home().join("outside");
    fs::create_dir(&outside).unwrap();
    write(&main, "d/f", "1");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "d/f", "2");
    // An agent of the shared workspace replaces the directory by a link to a directory outside.
    fs::remove_dir_all(main.join("d")).unwrap();
    std::os::unix::fs::symlink(&outside, main.join("d")).unwrap();
    assert!(matches!(world.merge(&root, "ann-1").await, Err(Refusal::MergeConflict { .. })));
    assert!(!outside.join("f").exists());
}

#[tokio::test]
async fn binary_files_and_many_files_are_merged() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    fs::write(main.join("image"), [0, 1, 2, 255]).unwrap();
    let ann = world.hire(&root, "ann-1").await;
    for number in 0..500 {
        write(&ann, &format!("many/{}/{number}", number % 7), &format!("{number}\r\n"));
    }
    fs::write(ann.join("image"), [0, 9, 255]).unwrap();
    assert_eq!(world.merge(&root, "ann-1").await.unwrap().files.len(), 501);
    assert_eq!(files(&main), files(&ann));
    fs::write(ann.join("image"), [0, 7]).unwrap();
    fs::write(main.join("image"), [0, 8]).unwrap();
    assert_eq!(conflicts(&world.merge(&root, "ann-1").await), [("image".to_owned(), "binary".to_owned())]);
}
