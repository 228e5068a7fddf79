//! Tests of the tool `search_files`.

use crate::call::Source;
use crate::files::Bounds;
use crate::files::testing::{Bench, json_of, text};
use polity_files::testing::Swapper;
use polity_society::refusal::Refusal;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::os::unix::fs::symlink;
use tokio_util::sync::CancellationToken;

fn found(bench: &Bench, arguments: Value) -> (String, Vec<String>) {
    let output = bench.search(arguments).unwrap();
    assert_eq!(output.sources, BTreeSet::from([Source::Files]));
    let (origin, text) = text(&output);
    (origin.to_owned(), text.lines().map(str::to_owned).collect())
}

fn lines(bench: &Bench, arguments: Value) -> Vec<String> {
    found(bench, arguments).1
}

fn project() -> Bench {
    let bench = Bench::new();
    bench.put("src/main.rs", "fn main() {\n    todo();\n}\n");
    bench.put("src/lib.rs", "// todo\r\nfn other() {}\r\n");
    bench.put("src/deep/x.py", "todo = 1\n");
    bench.put("README.md", "Nothing to do.\n");
    bench.put(".github/ci.yml", "todo: yes\n");
    bench
}

#[test]
fn lines_are_found_in_the_order_of_the_paths() {
    let bench = project();
    let (origin, lines) = found(&bench, json!({"pattern": "todo"}));
    assert_eq!(origin, "search for todo: 4 lines in 4 files");
    assert_eq!(
        lines,
        [
            ".github/ci.yml:1: todo: yes",
            "src/deep/x.py:1: todo = 1",
            "src/lib.rs:1: // todo",
            "src/main.rs:2:     todo();"
        ]
    );
}

#[test]
fn a_search_is_narrowed_by_path_and_glob() {
    let bench = project();
    let check = |arguments: Value, expect: &[&str]| {
        assert_eq!(lines(&bench, arguments.clone()), expect, "{arguments}")
    };
    check(json!({"pattern": "todo", "path": "src/deep"}), &["src/deep/x.py:1: todo = 1"]);
    check(json!({"pattern": "todo", "path": "/workspace/src/main.rs"}), &["src/main.rs:2:     todo();"]);
    check(json!({"pattern": "todo", "glob": "*.py"}), &["src/deep/x.py:1: todo = 1"]);
    check(json!({"pattern": "todo", "glob": "deep/*.py", "path": "src"}), &["src/deep/x.py:1: todo = 1"]);
    check(json!({"pattern": "(?i)nothing"}), &["README.md:1: Nothing to do."]);
    check(json!({"pattern": "todo$", "path": "src"}), &["src/lib.rs:1: // todo"]);
    check(json!({"glob": "*.rs"}), &["src/lib.rs", "src/main.rs"]);
    check(json!({"glob": "src/**"}), &["src/deep/x.py", "src/lib.rs", "src/main.rs"]);
    check(
        json!({"pattern": "other", "context": 1}),
        &["src/lib.rs-1- // todo", "src/lib.rs:2: fn other() {}"],
    );
    check(
        json!({"pattern": "todo", "context": 1, "glob": "*.rs"}),
        &[
            "src/lib.rs:1: // todo",
            "src/lib.rs-2- fn other() {}",
            "--",
            "src/main.rs-1- fn main() {",
            "src/main.rs:2:     todo();",
            "src/main.rs-3- }",
        ],
    );
    let nothing = bench.search(json!({"pattern": "absent"})).unwrap();
    assert_eq!(json_of(&nothing), &json!({"matches": 0, "filesSearched": 5}));
}

#[test]
fn ignore_files_are_obeyed() {
    let bench = Bench::new();
    for path in [
        "kept",
        "built/x",
        "a.log",
        "keep.log",
        "sub/a.log",
        "sub/own",
        "sub/back.log",
        "sub/deep/own",
        "local",
        "other/own",
        "searched",
        ".git/x",
        "only_here",
        "sub/only_here",
    ] {
        bench.put(path, "needle\n");
    }
    bench.put(".gitignore", "\u{feff}# needle\nbuilt/\n*.log\n!keep.log\n/only_here\nsearched\n");
    bench.put(".ignore", "!searched\n");
    bench.put("sub/.gitignore", "own\n!back.log\n");
    bench.put(".git/info/exclude", "local\n");
    let files = |path: &str| lines(&bench, json!({"glob": "*", "path": path}));
    assert_eq!(
        files("."),
        [
            ".gitignore",
            ".ignore",
            "keep.log",
            "kept",
            "other/own",
            "searched",
            "sub/.gitignore",
            "sub/back.log",
            "sub/only_here"
        ]
    );
    // The ignore files in the directories above the start of the search also apply.
    assert_eq!(files("sub"), ["sub/.gitignore", "sub/back.log", "sub/only_here"]);
    let nothing = bench.search(json!({"pattern": "needle", "path": "sub/deep"})).unwrap();
    assert_eq!(json_of(&nothing), &json!({"matches": 0, "filesSearched": 0}));
}

#[test]
fn a_start_that_is_ignored_is_searched() {
    let bench = Bench::new();
    bench.put("built/x", "needle\n");
    bench.put("a.log", "needle\n");
    bench.put(".gitignore", "/built\n*.log\n");
    assert_eq!(lines(&bench, json!({"pattern": "needle", "path": "built"})), ["built/x:1: needle"]);
    assert_eq!(lines(&bench, json!({"pattern": "needle", "path": "a.log"})), ["a.log:1: needle"]);
}

#[test]
fn a_search_stays_in_the_workspace() {
    let bench = Bench::new();
    let outside = bench.base.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("canary"), "needle").unwrap();
    bench.put("a", "needle\n");
    symlink("../outside", bench.file("out")).unwrap();
    symlink("../outside/canary", bench.file("file")).unwrap();
    symlink(".", bench.file("loop")).unwrap();
    bench.put("sub/b", "needle\n");
    symlink("../a", bench.file("sub/link")).unwrap();
    symlink("sub", bench.file("directory")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(bench.file("pipe")).status().unwrap();
    assert!(status.success());
    assert_eq!(lines(&bench, json!({"pattern": "needle"})), ["a:1: needle", "sub/b:1: needle"]);
    assert_eq!(lines(&bench, json!({"glob": "*"})), ["a", "sub/b"]);
    // A link that stays inside the workspace is followed if the model names it.
    assert_eq!(lines(&bench, json!({"pattern": "needle", "path": "sub/link"})), ["sub/link:1: needle"]);
    assert_eq!(lines(&bench, json!({"pattern": "needle", "path": "directory"})), ["directory/b:1: needle"]);
    for path in ["out", "file", "out/canary", "..", "../outside", "/etc"] {
        let refusal = bench.search(json!({"pattern": "needle", "path": path})).unwrap_err();
        assert!(matches!(refusal, Refusal::WorkspaceRefused { .. }), "{path}: {refusal:?}");
    }
    let refusal = bench.search(json!({"pattern": "needle", "path": "nothing"})).unwrap_err();
    assert!(format!("{refusal:?}").contains("nothing does not exist"), "{refusal:?}");
    let refusal = bench.search(json!({"pattern": "needle", "path": "pipe"})).unwrap_err();
    assert!(matches!(refusal, Refusal::InvalidArguments(_)), "{refusal:?}");
}

#[test]
fn a_directory_that_becomes_a_link_is_not_searched_outside() {
    let bench = Bench::new();
    let outside = bench.base.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("canary"), "needle outside\n").unwrap();
    std::fs::write(outside.join("secret"), "").unwrap();
    bench.put("d/canary", "needle inside\n");
    symlink("../outside", bench.file("evil")).unwrap();
    let swapper = Swapper::start(bench.file("d"), bench.file("evil"));
    let mut rounds = 0;
    while swapper.is_going() || rounds < 200 {
        rounds += 1;
        for arguments in
            [json!({"pattern": "needle"}), json!({"glob": "*"}), json!({"pattern": "n", "path": "d"})]
        {
            let said = format!("{:?}", bench.search(arguments));
            assert!(!said.contains("needle outside") && !said.contains("secret"), "{said}");
        }
    }
}

#[test]
fn binary_and_large_files_are_left_out() {
    let bounds = Bounds { file_bytes: 200_000, ..Bounds::default() };
    let bench = Bench { bounds, ..Bench::new() };
    bench.put("a.bin", b"needle\0needle\n");
    // The byte that marks this file as binary comes long after the first match.
    bench.put("late.bin", [b"needle\n".repeat(20_000), b"\0".to_vec()].concat());
    bench.put("large", "needle\n".repeat(40_000));
    bench.put("wide", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    bench.put("latin", b"needle \xe9\n");
    let (origin, lines) = found(&bench, json!({"pattern": "needle"}));
    assert_eq!(lines, ["latin:1: needle \u{fffd}", "wide:1: needle"]);
    assert!(origin.ends_with("; 1 file not searched"), "{origin}");
}

#[test]
fn results_are_bounded() {
    let bench = Bench::new();
    bench.put("a", (1..=150).map(|at| format!("needle {at}\n")).collect::<String>());
    bench.put("b", "needle\n");
    let (origin, lines) = found(&bench, json!({"pattern": "needle"}));
    assert_eq!((lines.len(), lines[99].as_str()), (100, "a:100: needle 100"));
    assert_eq!(
        origin,
        "search for needle: first 100 lines in 1 file; there are more, so search for something rarer"
    );
    let (origin, lines) = found(&bench, json!({"pattern": "needle", "limit": 150}));
    assert_eq!(lines.len(), 150);
    assert!(origin.contains("first 150 lines"), "{origin}");
    let (origin, lines) = found(&bench, json!({"pattern": "needle", "limit": 151}));
    assert_eq!((lines.len(), origin.as_str()), (151, "search for needle: 151 lines in 2 files"));
    let (origin, lines) = found(&bench, json!({"glob": "*", "limit": 1}));
    assert_eq!((lines, origin.contains("first 1 file;")), (vec!["a".to_owned()], true), "{origin}");
    let bench = Bench { bounds: Bounds { view_chars: 100, ..Bounds::default() }, ..bench };
    let (origin, lines) = found(&bench, json!({"pattern": "needle"}));
    assert_eq!((lines.len(), origin.contains("first 7 lines")), (7, true), "{origin}");
}

#[test]
fn a_file_name_cannot_pass_for_a_line() {
    let bench = Bench::new();
    bench.put("a\nb:1: forged", "needle\n");
    assert_eq!(lines(&bench, json!({"pattern": "needle"})), ["a\\nb:1: forged:1: needle"]);
    assert_eq!(lines(&bench, json!({"glob": "*"})), ["a\\nb:1: forged"]);
    let (origin, _) = found(&bench, json!({"pattern": "needle|\u{2028}x"}));
    assert_eq!(origin, "search for needle|\\u{2028}x: 1 line in 1 file");
}

#[test]
fn a_cancelled_search_ends() {
    let bench = project();
    let cancel = CancellationToken::new();
    cancel.cancel();
    let refusal = bench.search_until(cancel, json!({"pattern": "todo"})).unwrap_err();
    assert!(matches!(refusal, Refusal::ToolFailed { .. }), "{refusal:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    /// Compares the results with a naive search.
    #[test]
    fn every_line_with_the_word_is_found_and_no_other(
        files in proptest::collection::btree_map("([a-c]/){0,2}[d-f]", "([xyz]{0,4}\n){0,5}[xyz]{0,3}", 0..8),
        word in "[xyz]{1,2}",
    ) {
        let bench = Bench::new();
        for (path, content) in &files {
            bench.put(path, content);
        }
        let mut expect = Vec::new();
        for (path, content) in &files {
            for (at, line) in content.lines().enumerate().filter(|(_, line)| line.contains(&word)) {
                expect.push(format!("{path}:{}: {line}", at + 1));
            }
        }
        let output = bench.search(json!({"pattern": word, "limit": 1000})).unwrap();
        let found: Vec<String> = match &output.content {
            crate::call::Content::Text { text, .. } => text.lines().map(str::to_owned).collect(),
            crate::call::Content::Json(_) => Vec::new(),
        };
        prop_assert_eq!(found, expect);
    }
}
