//! Tests in which a thread swaps files while the workspace works on them.

use super::*;
use crate::testing::Swapper;
use std::thread;

#[test]
fn a_directory_that_becomes_a_link_leads_nowhere_else() {
    let trapped = Trapped::new();
    let inside = trapped.inside();
    fs::create_dir(inside.join("d")).unwrap();
    fs::write(inside.join("d/canary"), "inside").unwrap();
    symlink("../outside", inside.join("evil")).unwrap();
    let before = snapshot(&trapped.outside());
    let workspace = trapped.workspace();
    let swapper = Swapper::start(inside.join("d"), inside.join("evil"));
    let mut rounds = 0;
    while swapper.is_going() || rounds < 500 {
        rounds += 1;
        if let Ok(content) = workspace.read(&path("d/canary"), 1000) {
            assert_ne!(String::from_utf8_lossy(&content), CANARY);
        }
        let _ = workspace.write(&path("d/canary"), Expected::Anything, b"inside");
        let _ = workspace.write(&path(&format!("d/new{rounds}/file")), Expected::Absent, b"inside");
        if let Ok(listing) = workspace.list(&path("d")) {
            assert!(!listing.lines.contains(&"dir/".to_owned()), "{listing:?}");
        }
        if let Ok(listing) = workspace.list(&WorkspacePath::root()) {
            assert!(!listing.lines.contains(&"d/dir/".to_owned()), "{listing:?}");
        }
    }
    drop(swapper);
    assert_eq!(snapshot(&trapped.outside()), before);
}

#[test]
fn a_file_that_becomes_a_link_or_a_pipe_is_neither_read_nor_written_through() {
    for trap in ["link", "git", "pipe"] {
        let trapped = Trapped::new();
        let inside = trapped.inside();
        fs::write(inside.join("f"), "inside").unwrap();
        match trap {
            "link" => symlink("../outside/canary", inside.join("evil")).unwrap(),
            "git" => symlink(".git/config", inside.join("evil")).unwrap(),
            _ => mkfifo(&inside.join("evil")),
        }
        let before = (snapshot(&trapped.outside()), snapshot(&inside.join(".git")));
        let workspace = trapped.workspace();
        let swapper = Swapper::start(inside.join("f"), inside.join("evil"));
        let mut rounds = 0;
        while swapper.is_going() || rounds < 500 {
            rounds += 1;
            if let Ok(content) = workspace.read(&path("f"), 1000) {
                assert_ne!(String::from_utf8_lossy(&content), CANARY);
            }
            let _ = workspace.write(&path("f"), Expected::Anything, b"inside");
        }
        drop(swapper);
        assert_eq!((snapshot(&trapped.outside()), snapshot(&inside.join(".git"))), before, "{trap}");
    }
}

/// Several threads write the same file. Each write that succeeds must have replaced exactly the content that it
/// expected.
#[test]
fn no_write_is_lost() {
    let trapped = Trapped::new();
    let counter = path("counter");
    let workspace = trapped.workspace();
    workspace.write(&counter, Expected::Absent, b"0").unwrap();
    let count = || {
        // Each thread opens the workspace itself, as each call of a tool does.
        let workspace = trapped.workspace();
        let mut written = 0;
        while written < 50 {
            let now = workspace.read(&counter, 100).unwrap();
            let next = String::from_utf8(now.clone()).unwrap().parse::<u32>().unwrap() + 1;
            match workspace.write(
                &counter,
                Expected::Content(ContentHash::of(&now)),
                next.to_string().as_bytes(),
            ) {
                Ok(()) => written += 1,
                Err(error) => assert_eq!(name_of(&error), "changed", "{error:?}"),
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(count);
        }
    });
    assert_eq!(workspace.read(&counter, 100).unwrap(), b"200");
}
