//! Tests of hiring an agent with its own worktree.

use super::{Found, Workspaces, World, files, git, read, reason, write};
use polity_society::workspace::{Access, Root};
use std::fs;

#[tokio::test]
async fn a_worktree_begins_with_what_the_hirer_has_done_so_far() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    write(&main, "plan.md", "the plan");
    let ann = world.hire(&root, "ann-1").await;
    assert_eq!(read(&ann, "plan.md"), "the plan");
    assert_eq!(world.log("main")[0], "root (Role of root): Work of root before hiring ann-1");
    write(&ann, "ann.txt", "1");
    assert!(!main.join("ann.txt").exists());
    world.settle(&world.own("ann-1"), 3).await;
    assert_eq!(world.log("polity/ann-1")[0], "ann-1 (Role of ann-1): Role of ann-1, turn 3");
    // `ben-2` is hired by `ann-1`, so its worktree begins with the files of `ann-1`, including uncommitted changes.
    write(&ann, "more.txt", "2");
    let ben = world.hire(&world.own("ann-1"), "ben-2").await;
    assert_eq!(files(&ben), files(&ann));
    assert_eq!(
        world.git(&["for-each-ref", "--format=%(refname:short)", "refs/heads"]),
        "main\npolity/ann-1\npolity/ben-2"
    );
    assert_eq!(git(&ben, &["branch", "--show-current"]), "polity/ben-2");
    assert_eq!(git(&ben, &["status", "--porcelain"]), "");
    // An agent without its own worktree works in the worktree of the agent that hired it.
    let carl = world.caller("carl-3", Some("ann-1"));
    assert_eq!(world.open(&carl).await.directory, ann);
}

#[tokio::test]
async fn hiring_twice_is_hiring_once() {
    let Some(mut world) = World::made().await else { return };
    let root = world.shared("root");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "a", "1");
    world.settle(&world.own("ann-1"), 1).await;
    world.restart();
    assert_eq!(world.hire(&root, "ann-1").await, ann);
    assert_eq!(read(&ann, "a"), "1");
    // Simulates that the process died before it renamed the finished directory.
    fs::rename(&ann, world.task_directory().join("ann-1.new")).unwrap();
    world.restart();
    world.hire(&root, "ann-1").await;
    assert_eq!(read(&ann, "a"), "1");
}

#[tokio::test]
async fn the_person_sees_the_branch() {
    let Some(world) =
        World::of_person(&[("a", "1\n"), (".gitattributes", "*.bat text eol=crlf\n"), ("x.bat", "x\n")])
            .await
    else {
        return;
    };
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    assert_eq!(read(&ann, "a"), "1\n");
    write(&ann, "b", "2\n");
    let settled = world.settle(&world.own("ann-1"), 1).await;
    assert_eq!(settled.unpublished, None);
    let person = world.person();
    assert_eq!(git(&person, &["show", "polity/ann-1:b"]), "2");
    assert_eq!(git(&person, &["diff", "--name-only", "trunk", "polity/ann-1"]), "b");
    assert_eq!(git(&person, &["log", "-1", "--format=%an", "polity/ann-1"]), "ann-1 (Role of ann-1)");
    assert_eq!(git(&person, &["status", "--porcelain"]), "");
    git(&person, &["fsck", "--strict"]);
    // Commands of agents can read these git files but cannot change them.
    let read_only = world.open(&world.own("ann-1")).await.git.unwrap().read_only;
    let expect = [world.task_directory().join("git"), ann.join(".git"), person.join(".git/objects")];
    assert_eq!(read_only, expect);
    assert_eq!(git(&ann, &["log", "--format=%s"]), "Role of ann-1, turn 1\nFirst");
    // The person moves the branch. From now on, polity does not change it.
    git(&person, &["branch", "-f", "polity/ann-1", "trunk"]);
    write(&ann, "b", "3\n");
    let settled = world.settle(&world.own("ann-1"), 2).await;
    assert!(settled.commit.is_some());
    assert!(settled.unpublished.unwrap().contains("somebody else changed the branch"));
}

#[tokio::test]
async fn a_branch_is_based_on_head_and_not_on_edits_of_the_person() {
    let Some(world) = World::of_person(&[("a", "committed")]).await else { return };
    write(&world.person(), "a", "edited");
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    assert_eq!(read(&ann, "a"), "committed");
    assert_eq!(read(&world.person(), "a"), "edited");
}

#[tokio::test]
async fn a_directory_that_may_only_be_read_gets_no_branch() {
    let Some(mut world) = World::of_person(&[("a", "1")]).await else { return };
    world.root = Root::Person { directory: world.person(), access: Access::Read };
    let before = git(&world.person(), &["count-objects"]);
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    write(&ann, "b", "2");
    assert!(world.settle(&world.own("ann-1"), 1).await.commit.is_some());
    assert_eq!(git(&world.person(), &["branch", "--list", "polity/*"]), "");
    assert_eq!(git(&world.person(), &["count-objects"]), before);
}

#[tokio::test]
async fn without_a_repository_or_a_commit_nobody_gets_a_worktree() {
    let Some(mut world) = World::made().await else { return };
    let plain = world.home().join("plain");
    fs::create_dir(&plain).unwrap();
    world.root = Root::Person { directory: plain.clone(), access: Access::Write };
    assert_eq!(world.open(&world.shared("root")).await.git, None);
    let refused = reason(world.try_hire(&world.shared("root"), "ann-1").await);
    assert!(refused.contains("is no git repository") && refused.contains("git init"), "{refused}");
    assert_eq!(reason(world.can_hire(&world.shared("root")).await), refused);
    git(&plain, &["init", "-q"]);
    let refused = reason(world.try_hire(&world.shared("root"), "ann-1").await);
    assert!(refused.contains("has no commit yet"), "{refused}");
    assert_eq!(reason(world.can_hire(&world.shared("root")).await), refused);
    assert!(!world.task_directory().join("ann-1").exists());
    let refused = world.all.directory(&super::task(), &world.own("ann-1").place, &Default::default()).await;
    assert!(reason(refused).contains("has no worktree of its own"));
}

#[tokio::test]
async fn the_check_before_a_hire_says_what_is_wrong_with_git() {
    let too_old = Found::TooOld("2.30.0".to_owned());
    for (found, expect) in [(Found::Missing, "Git is not installed"), (too_old, "Git 2.30.0 is too old")] {
        let home = tempfile::tempdir().unwrap();
        let world = World { all: Workspaces::new(home.path().join("workspaces")), home, root: Root::Made };
        world.all.git.set(found).unwrap();
        let refused = reason(world.can_hire(&world.shared("root")).await);
        assert!(refused.starts_with(expect), "{refused}");
    }
}

#[tokio::test]
async fn the_check_before_a_hire_makes_nothing() {
    for person in [false, true] {
        let world = if person { World::of_person(&[("a", "1")]).await } else { World::made().await };
        let Some(world) = world else { return };
        world.can_hire(&world.shared("root")).await.unwrap();
        // The worktree of this hirer is not made yet.
        world.can_hire(&world.own("ann-1")).await.unwrap();
        assert!(!world.home().join("workspaces").exists());
        world.hire(&world.shared("root"), "ann-1").await;
    }
}

#[tokio::test]
async fn names_that_are_no_directory_are_refused() {
    let Some(world) = World::made().await else { return };
    for name in ["", "main", "git", "..", "a/b", "-x", "a b"] {
        assert!(
            reason(world.try_hire(&world.shared("root"), name).await).contains("cannot be the name"),
            "{name}"
        );
    }
}

#[tokio::test]
async fn a_worktree_of_the_person_works_like_a_repository() {
    let Some(mut world) = World::of_person(&[("a", "1")]).await else { return };
    let second = world.home().join("second");
    git(&world.person(), &["worktree", "add", "-q", "-b", "side", second.to_str().unwrap()]);
    write(&second, "side", "2");
    git(&second, &["add", "-A"]);
    git(&second, &["commit", "-qm", "Side"]);
    world.root = Root::Person { directory: second.clone(), access: Access::Write };
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    assert_eq!(read(&ann, "side"), "2");
    write(&ann, "new", "3");
    assert_eq!(world.settle(&world.own("ann-1"), 1).await.unpublished, None);
    assert_eq!(git(&world.person(), &["show", "polity/ann-1:new"]), "3");
}

#[tokio::test]
async fn a_shallow_clone_and_another_object_format_work() {
    let Some(mut world) = World::of_person(&[("a", "1")]).await else { return };
    write(&world.person(), "a", "2");
    git(&world.person(), &["commit", "-qam", "Second"]);
    let shallow = world.home().join("shallow");
    let source = format!("file://{}", world.person().display());
    git(world.home(), &["clone", "-q", "--depth", "1", &source, shallow.to_str().unwrap()]);
    let modern = world.home().join("modern");
    git(world.home(), &["init", "-q", "--object-format=sha256", modern.to_str().unwrap()]);
    write(&modern, "a", "2");
    git(&modern, &["add", "-A"]);
    git(&modern, &["-c", "user.name=P", "-c", "user.email=p@x", "commit", "-qm", "First"]);
    for (number, directory) in [shallow, modern].into_iter().enumerate() {
        world.root = Root::Person { directory: directory.clone(), access: Access::Write };
        let mut root = world.shared("root");
        root.task = polity_society::id::TaskId::new(format!("t-{number}x"));
        let ann = world.hire(&root, "ann-1").await;
        write(&ann, "a", "3");
        let merged = world.merge(&root, "ann-1").await.unwrap();
        assert_eq!((merged.commits, merged.files.len()), (1, 1));
        assert_eq!(read(&directory, "a"), "3");
        assert_eq!(git(&directory, &["show", "polity/ann-1:a"]), "3");
    }
}
