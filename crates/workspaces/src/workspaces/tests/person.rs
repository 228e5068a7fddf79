//! Tests of merging into a directory of the person.

use super::{World, conflicts, files, git, read, reason, write};
use crate::journal::{self, Journal};
use crate::workspaces::{Retired, journal_of};
use polity_society::id::AgentId;
use polity_society::refusal::Refusal;
use polity_society::workspace::{Access, Root};
use std::fs;
use std::path::Path;
use tokio_util::sync::CancellationToken;

/// Returns HEAD and the index of the person's repository, which no merge may change.
fn untouched(person: &Path) -> (String, String, Vec<u8>) {
    let head = git(person, &["rev-parse", "HEAD"]);
    (head, read(person, ".git/HEAD"), fs::read(person.join(".git/index")).unwrap())
}

const LINES: &str = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";

#[tokio::test]
async fn a_merge_changes_files_but_neither_head_nor_index() {
    let Some(world) =
        World::of_person(&[("a", LINES), ("gone", "x"), ("old/name", "long enough\nto be found\n")]).await
    else {
        return;
    };
    let (person, root) = (world.person(), world.shared("root"));
    write(&person, "mine", "uncommitted");
    write(&person, ".gitignore", "out\n");
    write(&person, "out", "ignored");
    let before = untouched(&person);
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", &LINES.replace('1', "one"));
    fs::remove_file(ann.join("gone")).unwrap();
    fs::rename(ann.join("old"), ann.join("new")).unwrap();
    let merged = world.merge(&root, "ann-1").await.unwrap();
    assert_eq!((merged.commits, merged.files.len()), (1, 4));
    assert_eq!(untouched(&person), before);
    let expect = [".gitignore", "a", "mine", "new/name", "out"];
    assert_eq!(files(&person).into_iter().map(|(path, _)| path).collect::<Vec<_>>(), expect);
    assert!(!person.join("old").exists());
    assert_eq!(
        git(&person, &["status", "--porcelain"]),
        " M a\n D gone\n D old/name\n?? .gitignore\n?? mine\n?? new/"
    );
    assert_eq!(world.merge(&root, "ann-1").await.unwrap(), Default::default());
}

#[tokio::test]
async fn an_overlap_with_edits_of_the_person_changes_nothing() {
    let Some(world) =
        World::of_person(&[("a", LINES), ("b", "b\n"), ("c", "c\n"), ("r/x", "long enough\nto be found\n")])
            .await
    else {
        return;
    };
    let (person, root) = (world.person(), world.shared("root"));
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", &LINES.replace('1', "one"));
    write(&ann, "untracked", "hers");
    write(&ann, "ignored", "hers");
    write(&ann, "d/file", "hers");
    write(&ann, "f", "hers");
    fs::remove_file(ann.join("b")).unwrap();
    write(&ann, "c", "C\n");
    fs::rename(ann.join("r/x"), ann.join("r/y")).unwrap();
    write(&person, "a", &LINES.replace('9', "nine"));
    write(&person, "b", "edited\n");
    write(&person, "untracked", "mine");
    write(&person, ".git/info/exclude", "ignored\n");
    write(&person, "ignored", "mine");
    write(&person, "d", "a file where the merge needs a directory");
    write(&person, "f/file", "a directory where the merge needs a file");
    write(&person, "r/x", "long enough\nto be found\nand edited\n");
    fs::remove_file(person.join("c")).unwrap();
    let before = (untouched(&person), files(&person));
    let refused = world.merge(&root, "ann-1").await;
    let mut paths: Vec<String> = conflicts(&refused).into_iter().map(|(path, _)| path).collect();
    paths.sort();
    assert_eq!(paths, ["a", "b", "c", "d/file", "f", "ignored", "r/x", "untracked"]);
    assert!(conflicts(&refused).iter().all(|(_, kind)| kind == "uncommitted edits"));
    assert_eq!((untouched(&person), files(&person)), before);
    // The person makes the same changes as the agent, but does not commit them. This is no conflict.
    for path in ["a", "c", "untracked", "ignored"] {
        fs::copy(ann.join(path), person.join(path)).unwrap();
    }
    fs::remove_file(person.join("b")).unwrap();
    fs::remove_file(person.join("d")).unwrap();
    fs::remove_dir_all(person.join("f")).unwrap();
    write(&person, "r/x", "long enough\nto be found\n");
    world.merge(&root, "ann-1").await.unwrap();
    assert_eq!(read(&person, "d/file"), "hers");
}

#[tokio::test]
async fn conflicting_lines_of_an_uncommitted_edit_are_shown() {
    let Some(world) = World::of_person(&[("a", LINES)]).await else { return };
    let (person, root) = (world.person(), world.shared("root"));
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", &LINES.replace('5', "hers"));
    write(&person, "a", &LINES.replace('5', "mine"));
    let Err(Refusal::MergeConflict { conflicts, .. }) = world.merge(&root, "ann-1").await else { panic!() };
    let hunks = serde_json::json!([{"line": 5, "ours": "mine\n", "base": "5\n", "theirs": "hers\n"}]);
    assert_eq!(conflicts[0]["hunks"], hunks);
}

#[tokio::test]
async fn what_polity_merged_before_is_no_edit_of_the_person() {
    let Some(world) = World::of_person(&[("a", LINES)]).await else { return };
    let (person, root) = (world.person(), world.shared("root"));
    let ann = world.hire(&root, "ann-1").await;
    let ben = world.hire(&root, "ben-2").await;
    write(&ann, "a", &LINES.replace('1', "one"));
    write(&ben, "a", &LINES.replace('9', "nine"));
    world.merge(&root, "ann-1").await.unwrap();
    world.merge(&root, "ben-2").await.unwrap();
    assert_eq!(read(&person, "a"), LINES.replace('1', "one").replace('9', "nine"));
    // A new agent begins with the merged files, although the person has not committed them.
    let carl = world.hire(&root, "carl-3").await;
    assert_eq!(read(&carl, "a"), read(&person, "a"));
    // The first agent continues. A second merge brings only its new work.
    write(&ann, "a", &LINES.replace('1', "one").replace('2', "two"));
    assert_eq!(world.merge(&root, "ann-1").await.unwrap().commits, 1);
    // The person commits the merged files and then edits them again. A later merge must treat these edits as the
    // person's, not as polity's.
    git(&person, &["commit", "-qam", "Theirs"]);
    write(&carl, "a", &read(&carl, "a").replace('5', "five"));
    world.merge(&root, "carl-3").await.unwrap();
    assert_eq!(read(&person, "a"), "one\ntwo\n3\n4\nfive\n6\n7\n8\nnine\n");
    git(&person, &["commit", "-qam", "Theirs again"]);
    write(&person, "a", &read(&person, "a").replace('7', "mine"));
    write(&ben, "a", &LINES.replace('9', "9b"));
    assert_eq!(conflicts(&world.merge(&root, "ben-2").await).len(), 1);
    git(&person, &["fsck", "--strict"]);
}

#[tokio::test]
async fn the_person_may_throw_away_what_was_merged() {
    let Some(world) = World::of_person(&[("a", LINES), ("b", "b\n")]).await else { return };
    let (person, root) = (world.person(), world.shared("root"));
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", &LINES.replace('1', "one"));
    write(&ann, "new", "n");
    world.merge(&root, "ann-1").await.unwrap();
    git(&person, &["checkout", "-q", "--", "."]);
    fs::remove_file(person.join("new")).unwrap();
    // The next merge does not restore what the person has discarded, and does not report a conflict.
    write(&ann, "a", &LINES.replace('1', "one").replace('9', "nine"));
    write(&ann, "b", "B\n");
    world.merge(&root, "ann-1").await.unwrap();
    assert_eq!(read(&person, "a"), LINES.replace('9', "nine"));
    assert_eq!(read(&person, "b"), "B\n");
    assert!(!person.join("new").exists());
}

#[tokio::test]
async fn converted_line_endings_are_no_edit_and_stay() {
    let Some(world) = World::of_person(&[("a", "1\n2\n3\n")]).await else { return };
    let (person, root) = (world.person(), world.shared("root"));
    git(&person, &["config", "core.autocrlf", "true"]);
    write(&person, "a", "1\r\n2\r\n3\r\n");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", "1\n2\n3\n4\n");
    world.merge(&root, "ann-1").await.unwrap();
    assert_eq!(read(&person, "a"), "1\r\n2\r\n3\r\n4\r\n");
}

#[tokio::test]
async fn nothing_is_merged_into_a_directory_that_may_only_be_read() {
    let Some(mut world) = World::of_person(&[("a", "1")]).await else { return };
    world.root = Root::Person { directory: world.person(), access: Access::Read };
    let root = world.shared("root");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", "2");
    assert!(reason(world.merge(&root, "ann-1").await).contains("may only be read"));
    assert_eq!(read(&world.person(), "a"), "1");
}

/// Makes a world in which the worktree of `ann-1` has changes of all kinds that can be merged.
async fn prepared() -> Option<World> {
    let all = [("a", LINES), ("gone/x", "x"), ("kind", "a file"), ("place/f", "f"), ("z", "z")];
    let world = World::of_person(&all).await?;
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    write(&ann, "a", "changed");
    fs::remove_dir_all(ann.join("gone")).unwrap();
    fs::remove_file(ann.join("kind")).unwrap();
    write(&ann, "kind/now", "a directory");
    fs::remove_dir_all(ann.join("place")).unwrap();
    write(&ann, "place", "a file");
    write(&ann, "new/one", "1");
    write(&world.person(), "mine", "mine");
    Some(world)
}

/// Simulates that the process dies during a merge, after it has written the journal and applied the first `changed`
/// changes. Returns the number of files that the whole merge changes.
async fn die_after(world: &World, changed: usize) -> usize {
    let journal_file = journal_of(&world.task_directory());
    let before = files(&world.person());
    world.merge(&world.shared("root"), "ann-1").await.unwrap();
    // The whole merge is now carried out. The rest of this function undoes it, and writes its journal again.
    let repository = crate::repository::Repository::at(
        match world.all.found().await {
            super::super::Found::Usable(git) => git,
            _ => panic!(),
        },
        world.task_directory().join("git"),
        &CancellationToken::new(),
    );
    let (left, head) =
        (world.git(&["rev-parse", "refs/polity/left"]), git(&world.person(), &["rev-parse", "HEAD"]));
    let merged = world.git(&["rev-parse", "refs/polity/merged/ann-1"]);
    let changes = crate::plan::in_order(repository.changes(&head, &left).await.unwrap());
    for name in ["left", "left-head", "merged/ann-1"] {
        world.git(&["update-ref", "-d", &format!("refs/polity/{name}")]);
    }
    for (path, _) in files(&world.person()) {
        fs::remove_file(world.person().join(path)).unwrap();
    }
    for name in ["kind", "new"] {
        let _ = fs::remove_dir_all(world.person().join(name));
    }
    for (path, text) in before {
        write(&world.person(), &path, &text);
    }
    let journal = Journal {
        directory: world.person(),
        index: None,
        points: vec![
            ("refs/polity/left".to_owned(), left),
            ("refs/polity/left-head".to_owned(), head),
            ("refs/polity/merged/ann-1".to_owned(), merged),
        ],
        changes,
    };
    journal.write(&journal_file).unwrap();
    let some = changed.min(journal.changes.len());
    journal::apply(&repository, &world.person(), &journal.changes[..some]).await.unwrap();
    journal.changes.len()
}

#[tokio::test]
async fn a_merge_that_was_killed_anywhere_is_finished() {
    let mut killed_after = 0;
    loop {
        let Some(mut world) = prepared().await else { return };
        let root = world.shared("root");
        let all = die_after(&world, killed_after).await;
        // Simulates a file that was being written when the process died.
        write(&world.person(), ".polity-unfinished-3", "half");
        world.restart();
        let recovered = world.all.recover(&CancellationToken::new()).await;
        assert_eq!(recovered.len(), 1);
        assert_eq!(recovered[0].as_ref().unwrap().left, [""; 0]);
        fs::remove_file(world.person().join(".polity-unfinished-3")).ok();
        let mut expect = files(&world.task_directory().join("ann-1"));
        expect.push(("mine".to_owned(), "mine".to_owned()));
        expect.sort();
        assert_eq!(files(&world.person()), expect, "killed after {killed_after} of {all}");
        assert!(!journal_of(&world.task_directory()).exists());
        assert_eq!(world.merge(&root, "ann-1").await.unwrap(), Default::default());
        killed_after += 1;
        if killed_after > all {
            break;
        }
    }
    assert!(killed_after > 6);
}

#[tokio::test]
async fn an_edit_after_the_crash_is_kept() {
    let Some(mut world) = prepared().await else { return };
    die_after(&world, 1).await;
    write(&world.person(), "a", "edited after the crash");
    world.restart();
    // The next operation on the task finishes the merge.
    world.open(&world.shared("root")).await;
    let recovered = world.all.recover(&CancellationToken::new()).await;
    assert!(recovered.is_empty() || recovered[0].is_ok());
    assert_eq!(read(&world.person(), "a"), "edited after the crash");
    assert_eq!(read(&world.person(), "new/one"), "1");
}

#[tokio::test]
async fn a_merge_waits_for_a_directory_that_is_away() {
    let Some(mut world) = prepared().await else { return };
    die_after(&world, 1).await;
    let away = world.home().join("away");
    fs::rename(world.person(), &away).unwrap();
    world.restart();
    let root = world.shared("root");
    let opened = world.all.directory(&super::task(), &root.place, &CancellationToken::new()).await;
    assert!(reason(opened).contains("the directory is not there now"));
    fs::rename(&away, world.person()).unwrap();
    world.open(&root).await;
    assert_eq!(read(&world.person(), "new/one"), "1");
    assert_eq!(read(&world.person(), "a"), "changed");
}

#[tokio::test]
async fn a_worktree_goes_only_when_nothing_in_it_is_lost() {
    for person in [false, true] {
        let world = if person { World::of_person(&[("a", "1")]).await } else { World::made().await };
        let Some(world) = world else { return };
        let root = world.shared("root");
        let retire = async |agent: &str| {
            world
                .all
                .retire(&super::task(), &world.root, &AgentId::new(agent), &CancellationToken::new())
                .await
                .unwrap()
        };
        assert_eq!(retire("nobody-1").await, Retired::Absent);
        let ann = world.hire(&root, "ann-1").await;
        write(&ann, "a", "not committed");
        assert_eq!(retire("ann-1").await, Retired::Kept { commits: 1 });
        // The new branch of `ben-2` contains the work of `ann-1`. Even so, the work of `ann-1` does not count as
        // merged.
        world.hire(&world.own("ann-1"), "ben-2").await;
        assert_eq!(retire("ann-1").await, Retired::Kept { commits: 1 });
        assert_eq!(retire("ben-2").await, Retired::Removed);
        world.merge(&root, "ann-1").await.unwrap();
        assert_eq!(retire("ann-1").await, Retired::Removed);
        assert!(!ann.exists());
        assert_eq!(retire("ann-1").await, Retired::Absent);
        assert_eq!(read(&world.open(&root).await.directory, "a"), "not committed");
        if person {
            // The branch of `ann-1` stays, because the person has not merged it. The branch of `ben-2` had no work,
            // and was removed with the worktree.
            assert_eq!(git(&world.person(), &["branch", "--list", "polity/*"]), "  polity/ann-1");
            let carl = world.hire(&root, "carl-3").await;
            write(&carl, "c", "3");
            world.settle(&world.own("carl-3"), 1).await;
            git(&world.person(), &["checkout", "-q", "--", "."]);
            git(&world.person(), &["merge", "-q", "--ff-only", "polity/carl-3"]);
            assert_eq!(retire("carl-3").await, Retired::Removed);
            assert_eq!(git(&world.person(), &["branch", "--list", "polity/carl-3"]), "");
        }
    }
}
