//! Tests of what a write changes and what it leaves unchanged.

use super::*;
use std::os::unix::fs::PermissionsExt;

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

/// Returns the names in a directory, including temporary files.
fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn new() -> (TempDir, Workspace) {
    let directory = TempDir::new().unwrap();
    let workspace = Workspace::open(directory.path(), Access::Write).unwrap();
    (directory, workspace)
}

#[test]
fn a_write_makes_directories_and_leaves_nothing_else() {
    let (directory, workspace) = new();
    workspace.write(&path("a/b/c.txt"), Expected::Absent, b"one").unwrap();
    workspace.write(&path("a/b/c.txt"), Expected::Anything, b"two").unwrap();
    assert_eq!(fs::read(directory.path().join("a/b/c.txt")).unwrap(), b"two");
    assert_eq!(names(&directory.path().join("a/b")), ["c.txt"]);
}

#[test]
fn a_write_keeps_the_mode() {
    let (directory, workspace) = new();
    let file = directory.path().join("run.sh");
    for (old, new) in [(0o755, 0o755), (0o600, 0o600), (0o664, 0o664), (0o4755, 0o755), (0o200, 0o200)] {
        fs::write(&file, "old").unwrap();
        set_mode(&file, old);
        workspace.write(&path("run.sh"), Expected::Anything, b"new").unwrap();
        assert_eq!(mode(&file), new, "{old:o}");
        fs::remove_file(&file).unwrap();
    }
    let plain = directory.path().join("plain");
    fs::write(&plain, "").unwrap();
    workspace.write(&path("new"), Expected::Absent, b"").unwrap();
    assert_eq!(mode(&directory.path().join("new")), mode(&plain));
}

#[test]
fn a_write_protected_file_stays() {
    let (directory, workspace) = new();
    let file = directory.path().join("fixed");
    fs::write(&file, "old").unwrap();
    set_mode(&file, 0o444);
    let error = workspace.write(&path("fixed"), Expected::Anything, b"new").unwrap_err();
    assert_eq!(name_of(&error), "write-protected");
    assert_eq!(fs::read(&file).unwrap(), b"old");
    assert_eq!(names(directory.path()), ["fixed"]);
}

#[test]
fn no_write_passes_through_a_hard_link() {
    let trapped = Trapped::new();
    trapped.workspace().write(&path("hard"), Expected::Anything, b"new").unwrap();
    assert_eq!(fs::read(trapped.inside().join("hard")).unwrap(), b"new");
    assert_eq!(fs::read(trapped.outside().join("linked")).unwrap(), b"shared");
}

#[test]
fn a_write_needs_what_it_expects() {
    let (directory, workspace) = new();
    let check = |expected, is_fine: bool| {
        let written = workspace.write(&path("f"), expected, b"new");
        let changed = written.is_err_and(|error| name_of(&error) == "changed");
        assert_eq!(!changed, is_fine, "{expected:?}");
    };
    let file = directory.path().join("f");
    let old = ContentHash::of(b"old");
    check(Expected::Content(old), false);
    assert_eq!(names(directory.path()), [""; 0]);
    fs::write(&file, "old").unwrap();
    check(Expected::Absent, false);
    check(Expected::Content(ContentHash::of(b"other")), false);
    assert_eq!(fs::read(&file).unwrap(), b"old");
    assert_eq!(names(directory.path()), ["f"]);
    check(Expected::Content(old), true);
    assert_eq!(fs::read(&file).unwrap(), b"new");
}

#[test]
fn a_read_only_workspace_is_not_written() {
    let trapped = Trapped::new();
    let before = snapshot(&trapped.inside());
    let workspace = Workspace::open(&trapped.inside(), Access::Read).unwrap();
    for written in ["a", "new", "new/below", "real/a", ".git/config"] {
        let error = workspace.write(&path(written), Expected::Anything, b"x").unwrap_err();
        assert_eq!(name_of(&error), "read-only", "{written}");
        assert_eq!(name_of(&workspace.sweep(&path(written)).unwrap_err()), "read-only");
    }
    assert_eq!(snapshot(&trapped.inside()), before);
    assert_eq!(workspace.read(&path("a"), 100).unwrap(), b"inside");
}

#[test]
fn what_a_killed_process_left_is_not_listed_and_is_swept() {
    let (directory, workspace) = new();
    fs::create_dir(directory.path().join("d")).unwrap();
    let left = format!("{TEMPORARY_PREFIX}0123456789abcdef-0123456789abcdef");
    for file in [format!("d/{left}"), left.clone(), "d/f".to_owned()] {
        fs::write(directory.path().join(file), "half").unwrap();
    }
    assert_eq!(workspace.list(&WorkspacePath::root()).unwrap().lines, ["d/", "d/f"]);
    workspace.sweep(&path("d/f")).unwrap();
    assert_eq!(names(&directory.path().join("d")), ["f"]);
    assert_eq!(names(directory.path()), [left.as_str(), "d"]);
    workspace.sweep(&path("nothing/f")).unwrap();
    workspace.sweep(&WorkspacePath::root()).unwrap();
}

#[test]
fn a_listing_is_sorted_and_bounded() {
    let (directory, workspace) = new();
    for at in 0..60 {
        fs::create_dir_all(directory.path().join("many")).unwrap();
        fs::write(directory.path().join(format!("many/{at:03}")), "").unwrap();
    }
    fs::create_dir_all(directory.path().join("b/c/d")).unwrap();
    fs::create_dir_all(directory.path().join(".git/objects")).unwrap();
    fs::write(directory.path().join("B"), "").unwrap();
    fs::write(directory.path().join("a\nb"), "").unwrap();
    fs::write(directory.path().join(".hidden"), "").unwrap();
    symlink("b", directory.path().join("link")).unwrap();
    mkfifo(&directory.path().join("pipe"));
    let lines = workspace.list(&WorkspacePath::root()).unwrap().lines;
    let mut expect = vec![".hidden", "B", "a\\nb", "b/", "b/c/", "link -> b", "many/"];
    let many: Vec<String> = (0..50).map(|at| format!("many/{at:03}")).collect();
    expect.extend(many.iter().map(String::as_str));
    expect.extend(["many/… 10 more", "pipe (a pipe, a socket or a device)"]);
    assert_eq!(lines, expect);

    for at in 0..600 {
        fs::write(directory.path().join(format!("many/x{at:03}")), "").unwrap();
    }
    let lines = workspace.list(&path("many")).unwrap().lines;
    assert_eq!((lines.len(), lines.last().unwrap().as_str()), (501, "… 160 more"));
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_of_the_system() {
    let (directory, workspace) = new();
    let file = directory.path().join("secret");
    fs::write(&file, "x").unwrap();
    set_mode(&file, 0o200);
    if fs::read(&file).is_ok() {
        println!("not checked: this user may read every file");
        return;
    }
    assert_eq!(name_of(&workspace.read(&path("secret"), 10).unwrap_err()), "io");
}

#[test]
fn a_workspace_is_known_under_the_path_that_the_person_gave() {
    let base = TempDir::new().unwrap();
    fs::create_dir(base.path().join("real")).unwrap();
    symlink("real", base.path().join("link")).unwrap();
    let workspace = Workspace::open(&base.path().join("link"), Access::Write).unwrap();
    for root in ["link", "real"] {
        let written = base.path().join(root).join("a");
        assert_eq!(workspace.path(written.to_str().unwrap()), Ok(path("a")));
    }
    assert!(Workspace::open(&base.path().join("nothing"), Access::Write).is_err());
}
