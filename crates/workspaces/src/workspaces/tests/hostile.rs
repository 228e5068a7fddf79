//! Tests with malicious repositories and workspaces. A canary is a program that must never run.

use super::{World, conflicts, files, git, read, reason, write, writing};
use crate::workspaces::Retired;
use polity_society::id::AgentId;
use polity_society::workspace::{Access, Root};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio_util::sync::CancellationToken;

/// A program that writes a file when it runs.
struct Canary {
    program: PathBuf,
    trace: PathBuf,
}

const HOOKS: &[&str] = &[
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "proc-receive",
    "push-to-checkout",
    "reference-transaction",
    "sendemail-validate",
    "update",
];

impl Canary {
    fn new(home: &Path) -> Self {
        let canary = Self { program: home.join("canary"), trace: home.join("trace") };
        let script = format!("#!/bin/sh\necho \"$0 $@\" >> '{}'\ncat\n", canary.trace.display());
        fs::write(&canary.program, script).unwrap();
        fs::set_permissions(&canary.program, fs::Permissions::from_mode(0o755)).unwrap();
        canary
    }

    /// Returns a git configuration that names the canary in every setting that can name a program.
    fn configuration(&self) -> String {
        let program = self.program.display();
        let aliases: String = ["rev-parse", "update-ref", "symbolic-ref", "cat-file", "status", "log"]
            .map(|name| format!("\t{name} = !{program}\n"))
            .concat();
        format!(
            "[core]\n\tfsmonitor = {program}\n\tsshCommand = {program}\n\teditor = {program}\n\tpager = {program}\n\
             \taskPass = {program}\n\tgitProxy = {program}\n\talternateRefsCommand = {program}\n\
             \thooksPath = hooks-elsewhere\n\tattributesFile = {program}.attributes\n\
             [alias]\n{aliases}[pager]\n\tlog = {program}\n\tdiff = {program}\n\
             [filter \"evil\"]\n\tclean = {program}\n\tsmudge = {program}\n\trequired = true\n\
             [filter \"worse\"]\n\tprocess = {program}\n\trequired = true\n\
             [diff]\n\texternal = {program}\n[diff \"evil\"]\n\tcommand = {program}\n\ttextconv = {program}\n\
             [merge]\n\ttool = evil\n[merge \"evil\"]\n\tdriver = {program} %A\n[mergetool \"evil\"]\n\tcmd = {program}\n\
             [commit]\n\tgpgSign = true\n[gpg]\n\tprogram = {program}\n[gpg \"ssh\"]\n\tprogram = {program}\n\
             [credential]\n\thelper = !{program}\n[sequence]\n\teditor = {program}\n[interactive]\n\tdiffFilter = {program}\n\
             [trailer \"x\"]\n\tkey = X\n\tcommand = {program}\n[uploadpack]\n\tpackObjectsHook = {program}\n\
             [protocol]\n\tallow = always\n[protocol \"ext\"]\n\tallow = always\n[protocol \"file\"]\n\tallow = always\n\
             [remote \"origin\"]\n\turl = ext::{program}\n\tpromisor = true\n\tuploadpack = {program}\n\tvcs = {program}\n\
             [submodule]\n\trecurse = true\n[submodule \"sub\"]\n\tupdate = !{program}\n\turl = ext::{program}\n\tactive = true\n\
             [gc]\n\tauto = 1\n[maintenance]\n\tauto = true\n[status]\n\tsubmoduleSummary = true\n\
             [include]\n\tpath = more-configuration\n"
        )
    }

    /// Puts the canary into the configuration, the hooks and the attributes of a git directory.
    fn infest(&self, git_directory: &Path) {
        let config = git_directory.join("config");
        let before = fs::read_to_string(&config).unwrap_or_default();
        fs::write(&config, before + &self.configuration()).unwrap();
        fs::write(git_directory.join("more-configuration"), self.configuration().replace("[include]", "[x]"))
            .unwrap();
        for place in ["hooks", "hooks-elsewhere"] {
            let hooks = git_directory.join(place);
            fs::create_dir_all(&hooks).unwrap();
            for hook in HOOKS {
                fs::copy(&self.program, hooks.join(hook)).unwrap();
            }
        }
        fs::create_dir_all(git_directory.join("info")).unwrap();
        fs::write(git_directory.join("info/attributes"), ATTRIBUTES).unwrap();
    }

    fn has_run(&self) -> bool {
        self.trace.exists()
    }

    fn assert_silent(&self) {
        if let Ok(trace) = fs::read_to_string(&self.trace) {
            panic!("a program of the repository ran: {trace}");
        }
    }
}

const ATTRIBUTES: &str = "* filter=evil diff=evil merge=evil ident\n*.w filter=worse\n";

/// Runs a git command and ignores its result.
fn try_git(directory: &Path, arguments: &[&str]) {
    let _ = Command::new("git").current_dir(directory).args(arguments).output().unwrap();
}

/// Hires two agents with worktrees, settles and merges their work, and removes the worktrees.
async fn do_everything(world: &World) {
    let root = world.shared("root");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "new", "$Id$\r\n1");
    write(&ann, "new.w", "$Id$\r\n1");
    write(&ann, "a", "changed");
    assert!(world.settle(&world.own("ann-1"), 1).await.commit.is_some());
    let ben = world.hire(&root, "ben-2").await;
    write(&ben, "a", "differently");
    world.merge(&root, "ann-1").await.unwrap();
    assert_eq!(conflicts(&world.merge(&root, "ben-2").await).len(), 1);
    write(&ben, "a", "changed");
    world.merge(&root, "ben-2").await.unwrap();
    let main = world.open(&root).await.directory;
    assert_eq!(read(&main, "new"), "$Id$\r\n1");
    assert_eq!(read(&main, "a"), "changed");
    world.settle(&root, 2).await;
    for agent in ["ann-1", "ben-2"] {
        let retired = world
            .all
            .retire(&super::task(), &world.root, &AgentId::new(agent), &CancellationToken::new())
            .await;
        assert_eq!(retired.unwrap(), Retired::Removed);
    }
}

#[tokio::test]
async fn no_program_of_the_persons_repository_runs() {
    let Some(world) = World::of_person(&[("a", "1"), (".gitattributes", ATTRIBUTES)]).await else { return };
    let canary = Canary::new(world.home());
    let person = world.person();
    canary.infest(&person.join(".git"));
    // Checks that the trap works: a normal git command starts the canary.
    try_git(&person, &["status"]);
    assert!(canary.has_run());
    fs::remove_file(&canary.trace).unwrap();
    do_everything(&world).await;
    canary.assert_silent();
}

#[tokio::test]
async fn no_program_of_a_partial_clone_runs_for_a_missing_object() {
    let Some(world) = World::of_person(&[("a", "1"), ("b", "2")]).await else { return };
    let canary = Canary::new(world.home());
    let person = world.person();
    let object = git(&person, &["rev-parse", "HEAD:b"]);
    canary.infest(&person.join(".git"));
    let config = read(&person, ".git/config");
    let partial = "[extensions]\n\tpartialClone = origin\n[core]\n\trepositoryFormatVersion = 1\n";
    write(&person, ".git/config", &(config + partial));
    let (directory, name) = object.split_at(2);
    fs::remove_file(person.join(".git/objects").join(directory).join(name)).unwrap();
    let _ = fs::remove_file(&canary.trace);
    // Making the worktree fails, but the canary does not run.
    assert!(world.try_hire(&world.shared("root"), "ann-1").await.is_err());
    canary.assert_silent();
}

#[tokio::test]
async fn no_program_of_a_workspace_runs() {
    let Some(world) = World::made().await else { return };
    let canary = Canary::new(world.home());
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    write(&main, ".gitattributes", ATTRIBUTES);
    write(&main, "a", "1");
    // An agent makes a malicious repository inside the workspace.
    let nested = main.join("nested");
    fs::create_dir(&nested).unwrap();
    git(&nested, &["init", "-q"]);
    write(&nested, "inner", "text");
    git(&nested, &["add", "-A"]);
    git(&nested, &["-c", "user.name=N", "-c", "user.email=n@x", "commit", "-qm", "Nested"]);
    canary.infest(&nested.join(".git"));
    let url = format!("ext::{}", canary.program.display());
    write(
        &main,
        ".gitmodules",
        &format!("[submodule \"nested\"]\n\tpath = nested\n\turl = {url}\n\tupdate = !x\n"),
    );
    // The agent also replaces the file `.git` of the workspace by a malicious repository.
    fs::remove_file(main.join(".git")).unwrap();
    git(&main, &["init", "-q"]);
    canary.infest(&main.join(".git"));
    try_git(&main, &["status"]);
    assert!(canary.has_run());
    fs::remove_file(&canary.trace).unwrap();
    world.settle(&root, 1).await;
    do_everything(&world).await;
    canary.assert_silent();
    // The files beside the inner `.git` belong to the workspace. The inner `.git` does not.
    let listed = world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]);
    assert!(listed.contains("nested/inner") && !listed.contains(".git/"), "{listed}");
}

#[tokio::test]
async fn a_submodule_of_the_person_is_left_alone() {
    let Some(world) = World::of_person(&[("a", "1")]).await else { return };
    let canary = Canary::new(world.home());
    let person = world.person();
    let inner = world.home().join("inner");
    fs::create_dir(&inner).unwrap();
    git(&inner, &["init", "-q"]);
    git(
        &inner,
        &["-c", "user.name=N", "-c", "user.email=n@x", "commit", "-q", "--allow-empty", "-m", "Inner"],
    );
    git(
        &person,
        &["-c", "protocol.file.allow=always", "submodule", "--quiet", "add", inner.to_str().unwrap(), "sub"],
    );
    git(&person, &["commit", "-qm", "Submodule"]);
    canary.infest(&person.join(".git/modules/sub"));
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    // An agent puts a malicious repository in the place of the submodule.
    git(&ann.join("sub"), &["init", "-q"]);
    canary.infest(&ann.join("sub/.git"));
    write(&ann, "sub/file", "x");
    write(&ann, "b", "2");
    let _ = fs::remove_file(&canary.trace);
    world.settle(&world.own("ann-1"), 1).await;
    let merged = world.merge(&world.shared("root"), "ann-1").await.unwrap();
    assert_eq!(merged.files.len(), 1, "{merged:?}");
    canary.assert_silent();
}

#[tokio::test]
async fn a_repository_elsewhere_is_never_opened() {
    let Some(mut world) = World::of_person(&[("private", "secret")]).await else { return };
    let private = world.person();
    let open = world.home().join("open");
    fs::create_dir(&open).unwrap();
    world.root = Root::Person { directory: open.clone(), access: Access::Write };
    let root = world.shared("root");
    let dot_git = open.join(".git");
    let check = async |what: &str, expect: &str| {
        let refused = reason(world.try_hire(&root, "ann-1").await);
        assert!(refused.contains(expect), "{what}: {refused}");
        assert!(!world.task_directory().join("ann-1").exists(), "{what}");
    };
    symlink(private.join(".git"), &dot_git).unwrap();
    check("a link", "neither a directory nor a short file").await;
    fs::remove_file(&dot_git).unwrap();

    fs::write(&dot_git, format!("gitdir: {}\n", private.join(".git").display())).unwrap();
    check("a file", "does not know this directory").await;
    fs::remove_file(&dot_git).unwrap();

    git(&open, &["init", "-q"]);
    fs::write(dot_git.join("commondir"), private.join(".git").to_str().unwrap()).unwrap();
    check("a common directory", "part of another repository").await;
    fs::remove_file(dot_git.join("commondir")).unwrap();

    for name in ["objects", "refs"] {
        fs::rename(dot_git.join(name), open.join("kept")).unwrap();
        symlink(private.join(".git").join(name), dot_git.join(name)).unwrap();
        check(name, "is a symbolic link").await;
        fs::remove_file(dot_git.join(name)).unwrap();
        fs::rename(open.join("kept"), dot_git.join(name)).unwrap();
    }
    fs::write(dot_git.join("HEAD"), "ref: refs/heads/trunk\n").unwrap();
    symlink(private.join(".git/refs/heads/trunk"), dot_git.join("refs/heads/trunk")).unwrap();
    check("a branch", "is a symbolic link").await;
}

#[tokio::test]
async fn a_commit_with_files_of_git_is_never_checked_out() {
    let Some(world) = World::of_person(&[("a", "1")]).await else { return };
    let person = world.person();
    // Git refuses to make such a tree, so the test writes the object itself.
    let blob = git(&person, &["hash-object", "-w", "a"]);
    let raw: Vec<u8> =
        (0..blob.len()).step_by(2).map(|at| u8::from_str_radix(&blob[at..at + 2], 16).unwrap()).collect();
    let entry = |mode: &str, name: &str, raw: &[u8]| [format!("{mode} {name}\0").as_bytes(), raw].concat();
    let object = |kind: &str, content: &[u8]| {
        let file = world.home().join("object");
        fs::write(&file, content).unwrap();
        git(&person, &["hash-object", "-w", "--literally", "-t", kind, file.to_str().unwrap()])
    };
    let tree = object("tree", &entry("100755", "config", &raw));
    let raw_tree: Vec<u8> =
        (0..tree.len()).step_by(2).map(|at| u8::from_str_radix(&tree[at..at + 2], 16).unwrap()).collect();
    let outer = object("tree", &entry("40000", ".git", &raw_tree));
    let commit = git(&person, &["commit-tree", "-m", "Evil", &outer]);
    git(&person, &["update-ref", "HEAD", &commit]);
    assert!(world.try_hire(&world.shared("root"), "ann-1").await.is_err());
    assert!(!world.task_directory().join("ann-1").exists());
}

#[tokio::test]
async fn a_directory_that_becomes_a_link_shows_nothing_from_outside() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    let outside = world.home().join("outside");
    write(&outside, "f", "secret");
    write(&main, "kept/f", "harmless");
    let done = AtomicBool::new(false);
    let (done, main_path) = (&done, &main);
    std::thread::scope(|scope| {
        // A command of an agent replaces a directory by a link and back, as fast as it can.
        scope.spawn(move || {
            while !done.load(Ordering::Relaxed) {
                let _ = fs::rename(main_path.join("kept"), main_path.join("d"));
                let _ = fs::rename(main_path.join("d"), main_path.join("kept"));
                let _ = symlink(&outside, main_path.join("d"));
                let _ = fs::remove_file(main_path.join("d"));
            }
        });
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let world = &world;
        let root = &root;
        scope
            .spawn(move || {
                for turn in 0..30 {
                    let settled = runtime.block_on(world.all.settle(
                        root,
                        polity_society::id::TurnId::new(turn),
                        &*writing(&[]),
                        &CancellationToken::new(),
                    ));
                    // The files change while polity reads them, so this commit may fail. The test allows this, because
                    // the next commit then contains the changes.
                    drop(settled);
                }
                done.store(true, Ordering::Relaxed);
            })
            .join()
            .unwrap();
    });
    let found = world.git(&["rev-list", "--objects", "--all"]);
    for line in found.lines().filter(|line| line.ends_with("/f")) {
        let object = line.split(' ').next().unwrap();
        assert_eq!(world.git(&["cat-file", "blob", object]), "harmless");
    }
}

#[tokio::test]
async fn pipes_and_endless_directories_do_not_stop_a_commit() {
    let Some(world) = World::made().await else { return };
    let root = world.shared("root");
    let main = world.open(&root).await.directory;
    for name in [".gitignore", "pipe"] {
        let made = Command::new("mkfifo").arg(main.join(name)).status();
        if !made.is_ok_and(|status| status.success()) {
            println!("this machine has no `mkfifo`");
            return;
        }
    }
    let mut deep = main.clone();
    for _ in 0..300 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    write(&deep, "bottom", "x");
    write(&main, "a", "1");
    assert!(world.settle(&root, 1).await.commit.is_some());
    assert_eq!(world.git(&["ls-tree", "-r", "--full-tree", "--name-only", "main"]), "a");
    let ann = world.hire(&root, "ann-1").await;
    write(&ann, "pipe", "a file");
    assert_eq!(conflicts(&world.merge(&root, "ann-1").await).len(), 1);
    assert_eq!(files(&ann).len(), 2);
}
