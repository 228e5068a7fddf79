//! Somebody swaps what a path leads to, while the workspace works on that path.

use super::*;
use rustix::fs::{CWD, RenameFlags};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

/// Swaps that the test waits for.
const SWAPS: usize = 3000;

/// Swaps two names again and again until it is dropped.
struct Swapper {
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicUsize>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Swapper {
    fn start(one: PathBuf, other: PathBuf) -> Self {
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let thread = thread::spawn({
            let (stop, swaps) = (stop.clone(), swaps.clone());
            move || {
                while !stop.load(Ordering::Relaxed) {
                    swap(&one, &other);
                    swaps.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { stop, swaps, thread: Some(thread) }
    }

    fn is_going(&self) -> bool {
        self.swaps.load(Ordering::Relaxed) < SWAPS
    }
}

impl Drop for Swapper {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let ended = self.thread.take().unwrap().join();
        assert!(ended.is_ok() || thread::panicking());
    }
}

fn swap(one: &Path, other: &Path) {
    if rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).is_err() {
        // Not every file system can exchange two names at once.
        let aside = one.with_extension("aside");
        fs::rename(one, &aside).unwrap();
        fs::rename(other, one).unwrap();
        fs::rename(&aside, other).unwrap();
    }
}

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

/// Several writers of one file: each write that says it succeeded has really replaced the content that it expected.
#[test]
fn no_write_is_lost() {
    let trapped = Trapped::new();
    let counter = path("counter");
    let workspace = trapped.workspace();
    workspace.write(&counter, Expected::Absent, b"0").unwrap();
    let count = || {
        // Each writer has its own handle, like agents whose calls open the workspace.
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
