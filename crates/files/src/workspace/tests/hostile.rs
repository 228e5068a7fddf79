//! Tests of hostile paths on a workspace with many links and special files.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::sync::mpsc;
use std::time::Duration;

/// Names that the tests combine into paths. Some of them exist in the workspace. Some lead out of the workspace, or
/// look as if they did.
const NAMES: &[&str] = &[
    "a",
    "real",
    "below",
    "b",
    "deep",
    "er",
    "up",
    "out",
    "out_file",
    "out_absolute",
    "out_chain",
    "chain",
    "around",
    "back",
    "loop",
    "self",
    "above",
    "root",
    "process",
    "dangling",
    "dangling_in",
    "in",
    "in_file",
    "git",
    "git_config",
    "hard",
    "pipe",
    "socket",
    ".git",
    "config",
    "canary",
    "outside",
    "dir",
    "linked",
    "new",
    "ws",
    "..",
    ".",
    "",
    "etc",
    "passwd",
];

/// Performs every operation of agents on a path, and returns all texts that the operations returned.
fn attack(workspace: &Workspace, written: &str) -> Vec<String> {
    let Ok(path) = workspace.path(written) else { return Vec::new() };
    let mut heard = Vec::new();
    if let Ok(content) = workspace.read(&path, 1 << 20) {
        heard.push(String::from_utf8_lossy(&content).into_owned());
    }
    if let Ok(listing) = workspace.list(&path) {
        heard.extend(listing.lines);
    }
    let _ = workspace.metadata(&path);
    let _ = workspace.sweep(&path);
    for expected in [Expected::Absent, Expected::Anything] {
        let _ = workspace.write(&path, expected, b"written by the test");
    }
    heard
}

/// Returns paths that could lead out of the workspace, each in several spellings.
fn table(trapped: &Trapped) -> Vec<String> {
    let (inside, outside) = (trapped.inside(), trapped.outside());
    let (inside, outside) = (inside.to_str().unwrap(), outside.to_str().unwrap());
    let ways = [
        "../outside/canary".to_owned(),
        "../../etc/passwd".to_owned(),
        "real/../../outside/canary".to_owned(),
        "real/../../ws/../outside/canary".to_owned(),
        "out/canary".to_owned(),
        "out/dir/canary".to_owned(),
        "out/new".to_owned(),
        "out/new/deeper/file".to_owned(),
        "out_file".to_owned(),
        "out_absolute/canary".to_owned(),
        "out_absolute/dir/new".to_owned(),
        "out_chain/canary".to_owned(),
        "chain/dir/canary".to_owned(),
        "real/up/canary".to_owned(),
        "real/up/new".to_owned(),
        "deep/er/up/canary".to_owned(),
        "around/canary".to_owned(),
        "back/../../outside/canary".to_owned(),
        "self/out/canary".to_owned(),
        "self/self/self/../outside/canary".to_owned(),
        "above/outside/canary".to_owned(),
        "above/outside/new".to_owned(),
        "above".to_owned(),
        "root/etc/passwd".to_owned(),
        "root".to_owned(),
        format!("root{outside}/canary"),
        "process/Cargo.toml".to_owned(),
        "process".to_owned(),
        "loop/canary".to_owned(),
        "loop".to_owned(),
        "dangling".to_owned(),
        "dangling_in".to_owned(),
        "in/up/canary".to_owned(),
        "in/../out/canary".to_owned(),
        "git/config".to_owned(),
        "git/hooks/run".to_owned(),
        "git_config".to_owned(),
        ".git/config".to_owned(),
        ".git/hooks/new".to_owned(),
        "sub/.git/config".to_owned(),
        ".git".to_owned(),
        "hard".to_owned(),
        "pipe".to_owned(),
        "socket".to_owned(),
        "pipe/canary".to_owned(),
        "a/../out/canary".to_owned(),
        "a/canary".to_owned(),
        "..".to_owned(),
        ".".to_owned(),
        "out".to_owned(),
        "out/".to_owned(),
        "out/.".to_owned(),
        "out/..".to_owned(),
        "out/dir/..".to_owned(),
        "out/dir/../../outside/canary".to_owned(),
        format!("{outside}/canary"),
        format!("{inside}/../outside/canary"),
        format!("{inside}/out/canary"),
        "/etc/passwd".to_owned(),
        "/proc/self/root/etc/passwd".to_owned(),
        "/dev/stdin".to_owned(),
        "~/canary".to_owned(),
        "%2e%2e/outside/canary".to_owned(),
        "\u{2024}\u{2024}/outside/canary".to_owned(),
        "．．/outside/canary".to_owned(),
    ];
    let spellings = |way: &String| {
        let way = way.as_str();
        [
            way.to_owned(),
            format!("./{way}"),
            format!("/workspace/{way}"),
            format!("{inside}/{way}"),
            way.replace('/', "\\"),
            way.replace('/', "//"),
            format!("real/../{way}"),
            format!("self/{way}"),
            format!("{way}\0"),
            format!("{way}/"),
        ]
    };
    // Each path of `FIRSTS`, followed by each path of `LASTS`.
    let joined = FIRSTS.iter().flat_map(|first| LASTS.iter().map(move |last| format!("{first}/{last}")));
    ways.iter().flat_map(spellings).chain(joined).collect()
}

/// Directories, links and special files of the workspace. Some of them lead out of the workspace, and others might.
const FIRSTS: &[&str] = &[
    "real",
    "real/below",
    "real/up",
    "real/up/dir",
    "deep/er",
    "deep/er/up",
    "in",
    "in/below",
    "in/up",
    "self",
    "self/self",
    "self/out",
    "back",
    "out",
    "out/dir",
    "out_absolute",
    "out_chain",
    "chain",
    "around",
    "above",
    "above/outside",
    "above/ws",
    "root",
    "process",
    "loop",
    "dangling",
    "git",
    ".git",
    ".git/hooks",
    "sub/.git",
    "pipe",
    "new",
];

/// What an attack looks for, or wants to write.
const LASTS: &[&str] = &[
    "canary",
    "new",
    "new/deeper/file",
    "dir/canary",
    "linked",
    "a",
    "below/b",
    "config",
    "hooks/run",
    "etc/passwd",
    ".git/config",
    ".vscode/tasks.json",
];

#[test]
fn no_path_of_the_table_leaves_the_workspace() {
    let trapped = Trapped::new();
    let before = snapshot(&trapped.outside());
    let protected = snapshot(&trapped.inside().join(".git"));
    let table = table(&trapped);
    let workspace = trapped.workspace();
    // Counts the different paths of the table, so that the test fails if the table becomes shorter. Texts that are no
    // paths do not count, because they reach no file. Several texts can be the same path.
    let paths: BTreeSet<WorkspacePath> =
        table.iter().filter_map(|written| workspace.path(written).ok()).collect();
    assert!(paths.len() >= 400, "{}", paths.len());
    for written in &table {
        for heard in attack(&workspace, written) {
            assert!(!heard.contains(CANARY) && !heard.contains("root:"), "{written}: {heard}");
        }
        assert_eq!(snapshot(&trapped.outside()), before, "{written}");
    }
    assert_eq!(snapshot(&trapped.inside().join(".git")), protected);
}

/// A listing of an outside directory would show only names of files, and not the canary, which is the text in these
/// files. So this test does not look for the canary, but checks the error.
#[test]
fn a_directory_outside_is_not_listed() {
    let trapped = Trapped::new();
    let workspace = trapped.workspace();
    for outside in
        ["out", "out_absolute", "chain", "real/up", "above", "root", "process", "around", "deep/er/up"]
    {
        let error = workspace.list(&path(outside)).unwrap_err();
        assert_eq!(name_of(&error), "escapes", "{outside}: {error:?}");
    }
    let listing = workspace.list(&WorkspacePath::root()).unwrap();
    let below_link = |line: &&String| line.starts_with("out/") || line.starts_with("above/");
    assert_eq!(listing.lines.iter().find(below_link), None);
}

#[test]
fn links_inside_are_followed_to_read() {
    let trapped = Trapped::new();
    let workspace = trapped.workspace();
    for link in ["in/a", "in_file", "in/below/b", "self/self/real/a", "git/config"] {
        assert_eq!(workspace.read(&path(link), 100).unwrap(), b"inside", "{link}");
    }
    assert_eq!(workspace.metadata(&path("in")).unwrap().kind, Kind::Directory);
}

#[test]
fn the_kind_of_each_failure_is_told() {
    let trapped = Trapped::new();
    let workspace = trapped.workspace();
    let read = |written: &str, expect: &str| {
        let error = workspace.read(&path(written), 4).unwrap_err();
        assert_eq!(name_of(&error), expect, "{written}: {error:?}");
    };
    read("nothing", "not found");
    read("nothing/below", "not found");
    read("dangling_in", "not found");
    read("a/below", "not a directory");
    read("real", "not a file");
    read(".", "not a file");
    read("pipe", "not a file");
    read("socket", "not a file");
    read("a", "too large");
    read("out_file", "escapes");
    read("out/canary", "escapes");
    read("dangling", "escapes");
    read("root/dev/null", "escapes");
    read("loop", "io");
    let write = |written: &str, expect: &str| {
        let error = workspace.write(&path(written), Expected::Anything, b"x").unwrap_err();
        assert_eq!(name_of(&error), expect, "{written}: {error:?}");
    };
    write(".", "not a file");
    write("real", "not a file");
    write("pipe", "not a file");
    write("socket", "not a file");
    write("a/below", "not a directory");
    write("in/new", "through link");
    write("in_file", "through link");
    write("out/new", "through link");
    write("out/new/deeper", "through link");
    write("dangling_in", "through link");
    write("git/config", "through link");
    write("loop/a", "through link");
    write(".git/config", "protected");
    write(".git", "protected");
    write("new/.git/config", "protected");
    write(".VSCODE/tasks.json", "protected");
    assert!(!trapped.inside().join("new").exists(), "a refused write made a directory");
}

#[test]
fn a_huge_file_is_refused_before_it_is_read() {
    let trapped = Trapped::new();
    let file = fs::File::create(trapped.inside().join("huge")).unwrap();
    file.set_len(1 << 36).unwrap();
    let error = trapped.workspace().read(&path("huge"), 1 << 20).unwrap_err();
    assert_eq!(error.to_string(), "huge has 68719476736 bytes; at most 1048576 can be read at once");
}

/// Runs a closure on another thread, and fails if the closure has not ended after a minute.
fn without_blocking(run: impl FnOnce() + Send + 'static) {
    let (done, wait) = mpsc::channel();
    std::thread::spawn(move || {
        run();
        done.send(()).unwrap();
    });
    wait.recv_timeout(Duration::from_secs(60)).expect("the operation blocks");
}

#[test]
fn a_pipe_blocks_nobody() {
    let trapped = Trapped::new();
    let workspace = trapped.workspace();
    without_blocking(move || {
        let pipe = path("pipe");
        assert_eq!(name_of(&workspace.read(&pipe, 10).unwrap_err()), "not a file");
        assert_eq!(name_of(&workspace.list(&pipe).unwrap_err()), "not a directory");
        let written = workspace.write(&pipe, Expected::Absent, b"x");
        assert_eq!(name_of(&written.unwrap_err()), "not a file");
        // Simulates that the pipe appeared after the type was checked.
        let opened = read::open_file(&workspace.dir, Path::new("pipe"), &pipe);
        assert_eq!(name_of(&opened.unwrap_err()), "not a file");
    });
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn no_path_leaves_the_workspace(
        paths in proptest::collection::vec(
            (
                prop_oneof![4 => Just(""), 1 => Just("/"), 1 => Just("/workspace/"), 1 => Just("./")],
                proptest::collection::vec(proptest::sample::select(NAMES), 1..7),
                prop_oneof![3 => Just("/"), 1 => Just("\\"), 1 => Just("//")],
            ),
            1..4,
        ),
    ) {
        let trapped = Trapped::new();
        let before = snapshot(&trapped.outside());
        let protected = snapshot(&trapped.inside().join(".git"));
        let workspace = trapped.workspace();
        for (beginning, names, separator) in paths {
            let written = format!("{beginning}{}", names.join(separator));
            for heard in attack(&workspace, &written) {
                prop_assert!(!heard.contains(CANARY) && !heard.contains("root:"), "{}: {}", written, heard);
            }
        }
        prop_assert_eq!(snapshot(&trapped.outside()), before);
        prop_assert_eq!(snapshot(&trapped.inside().join(".git")), protected);
    }
}
