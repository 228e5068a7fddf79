//! Tests of the command `view`.

use crate::call::{Access, Source};
use crate::files::Bounds;
use crate::files::testing::{Bench, json_of, text};
use crate::tool::{AfterCrash, Effect, Tool};
use polity_society::refusal::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn view(bench: &Bench, path: &str, range: Value) -> (String, String) {
    let output = bench.edit("a1", json!({"command": "view", "path": path, "view_range": range})).unwrap();
    assert_eq!(output.sources, BTreeSet::from([Source::Files]));
    let (origin, text) = text(&output);
    (origin.to_owned(), text.to_owned())
}

fn refused(bench: &Bench, path: &str) -> Refusal {
    bench.edit("a1", json!({"command": "view", "path": path})).unwrap_err()
}

#[test]
fn a_text_is_shown_with_line_numbers() {
    let bench = Bench::new();
    bench.put("src/a.rs", "one\ntwo\nthree\n");
    let check = |path: &str, range: Value, origin: &str, text: &str| {
        assert_eq!(view(&bench, path, range.clone()), (origin.to_owned(), text.to_owned()), "{path} {range}");
    };
    let all = "     1\tone\n     2\ttwo\n     3\tthree\n";
    check("src/a.rs", json!(null), "src/a.rs", all);
    check("/workspace/src/a.rs", json!(null), "src/a.rs", all);
    check("src\\a.rs", json!([1, -1]), "src/a.rs", all);
    check("src/a.rs", json!([1, 99]), "src/a.rs", all);
    check("src/a.rs", json!([2, -1]), "src/a.rs, lines 2-3 of 3", "     2\ttwo\n     3\tthree\n");
    check("src/a.rs", json!([2, 2]), "src/a.rs, lines 2-2 of 3", "     2\ttwo\n");
    bench.put("empty", "");
    check("empty", json!(null), "empty, an empty file", "");
    bench.put("windows", "a\r\nb");
    check("windows", json!(null), "windows", "     1\ta\n     2\tb\n");
    let refusal = bench.edit("a1", json!({"command": "view", "path": "src/a.rs", "view_range": [4, -1]}));
    assert!(format!("{refusal:?}").contains("the file has 3 lines"), "{refusal:?}");
}

#[test]
fn a_long_text_says_how_to_go_on() {
    let bounds = Bounds { view_chars: 100, ..Bounds::default() };
    let bench = Bench { bounds, ..Bench::new() };
    let lines: String = (1..=50).map(|at| format!("line {at}\n")).collect();
    bench.put("long", lines);
    let (origin, text) = view(&bench, "long", json!(null));
    assert_eq!(origin, "long, lines 1-7 of 50; continue with view_range [8, 50]");
    assert_eq!(text.lines().last(), Some("     7\tline 7"));
    let (origin, _) = view(&bench, "long", json!([8, 50]));
    assert_eq!(origin, "long, lines 8-13 of 50; continue with view_range [14, 50]");
    bench.put("line", "x".repeat(1000));
    let (origin, text) = view(&bench, "line", json!(null));
    assert_eq!((origin.as_str(), text.ends_with("x… 907 more characters\n")), ("line", true), "{text}");
}

#[test]
fn a_text_in_another_encoding_is_shown_and_told() {
    let bench = Bench::new();
    bench.put("latin", b"caf\xe9 au lait, d\xe9j\xe0 vu\n");
    let (origin, text) = view(&bench, "latin", json!(null));
    assert_eq!(origin, "latin in windows-1252, not in UTF-8");
    assert_eq!(text, "     1\tcafé au lait, déjà vu\n");
    bench.put("wide", b"\xff\xfea\0\n\0");
    assert_eq!(view(&bench, "wide", json!(null)).0, "wide in UTF-16LE, not in UTF-8");
}

#[test]
fn a_file_that_is_no_text_comes_as_a_file() {
    let bench = Bench::new();
    for (path, content) in [
        ("a.png", &b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..]),
        ("report.pdf", b"%PDF-1.7\n"),
        ("sound", b"ID3\x04\0\0"),
    ] {
        bench.put(path, content);
        let output = bench.edit("a1", json!({"command": "view", "path": path})).unwrap();
        assert_eq!(json_of(&output), &json!({"path": path, "bytes": content.len()}));
        let [file] = &output.files[..] else { panic!("{output:?}") };
        assert_eq!((&file.bytes[..], file.filename.as_deref()), (content, Some(path)));
        assert_eq!((&file.declared_mime, &output.sources), (&None, &BTreeSet::from([Source::Files])));
    }
}

#[test]
fn a_directory_is_listed() {
    let bench = Bench::new();
    let (origin, text) = view(&bench, ".", json!(null));
    assert_eq!((origin.as_str(), text.as_str()), ("./, an empty directory", ""));
    for path in ["src/main.rs", "src/deep/er/x", "README.md", ".git/config"] {
        bench.put(path, "");
    }
    let (origin, text) = view(&bench, "/workspace", json!(null));
    assert_eq!((origin.as_str(), text.as_str()), ("./", "README.md\nsrc/\nsrc/deep/\nsrc/main.rs\n"));
    let (origin, text) = view(&bench, "src", json!(null));
    assert_eq!((origin.as_str(), text.as_str()), ("src/", "deep/\ndeep/er/\nmain.rs\n"));
    let bench = Bench { bounds: Bounds { view_chars: 30, ..Bounds::default() }, ..bench };
    let (origin, text) = view(&bench, ".", json!(null));
    assert_eq!(text, "README.md\nsrc/\nsrc/deep/\n");
    assert_eq!(origin, "./, without the last 1 lines; view its subdirectories");
}

#[test]
fn what_cannot_be_viewed_is_explained() {
    let bounds = Bounds { file_bytes: 100, ..Bounds::default() };
    let bench = Bench { bounds, ..Bench::new() };
    bench.put("src/parser.rs", "");
    bench.put("large", "x".repeat(101));
    std::os::unix::fs::symlink("/etc/passwd", bench.file("link")).unwrap();
    let status = std::process::Command::new("mkfifo").arg(bench.file("pipe")).status().unwrap();
    assert!(status.success());
    let check = |path: &str, expect: &str| {
        let refusal = format!("{:?}", refused(&bench, path));
        assert!(refusal.contains(expect), "{path}: {refusal}");
    };
    check("src/Parser.rs", "src/Parser.rs does not exist; there is src/parser.rs");
    check("parser.rs", "parser.rs does not exist; there is src/parser.rs");
    check("quite/different", "quite/different does not exist");
    check("large", "large has 101 bytes; at most 100");
    check("pipe", "a pipe");
    check("link", "WorkspaceRefused");
    check("../outside", "../outside leads out of the workspace");
    check("/etc/passwd", "WorkspaceRefused");
    check("", "empty");
    check("a\0b", "NUL");
}

#[test]
fn only_views_read() {
    let editor = Bench::new().editor(Access::Read);
    let check = |arguments: Value, effect, after_crash| {
        let arguments = arguments.as_object().unwrap();
        assert_eq!((editor.effect(arguments), editor.after_crash(arguments)), (effect, after_crash));
    };
    check(json!({"command": "view", "path": "a"}), Effect::Reads, AfterCrash::Repeat);
    check(json!({"command": "create", "path": "a", "file_text": ""}), Effect::Changes, AfterCrash::Verify);
    check(
        json!({"command": "str_replace", "path": "a", "old_str": "x"}),
        Effect::Changes,
        AfterCrash::Verify,
    );
    check(json!({}), Effect::Changes, AfterCrash::Verify);
}
