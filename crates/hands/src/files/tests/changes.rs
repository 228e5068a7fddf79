//! Tests of the commands `create`, `str_replace` and `insert`.

use crate::call::{Access, Attempt};
use crate::files::testing::{Bench, json_of, text};
use polity_society::refusal::Refusal;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;

fn view(path: &str) -> Value {
    json!({"command": "view", "path": path})
}

fn create(path: &str, text: &str) -> Value {
    json!({"command": "create", "path": path, "file_text": text})
}

fn replace(path: &str, old: &str, new: &str) -> Value {
    json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new})
}

fn insert(path: &str, after: usize, text: &str) -> Value {
    json!({"command": "insert", "path": path, "insert_line": after, "new_str": text})
}

fn is_file_changed(result: Result<crate::call::Output, Refusal>) -> bool {
    matches!(result, Err(Refusal::FileChanged { path }) if path == "f")
}

fn is_not_viewed(result: Result<crate::call::Output, Refusal>) -> bool {
    matches!(result, Err(Refusal::FileNotViewed { path }) if path == "f")
}

#[test]
fn a_file_is_created_and_replaced() {
    let bench = Bench::new();
    let created = bench.edit("a1", create("src/new/a.rs", "one\ntwo\n")).unwrap();
    assert_eq!(json_of(&created), &json!({"path": "src/new/a.rs", "done": "created", "lines": 2}));
    assert_eq!(bench.content("src/new/a.rs").unwrap(), b"one\ntwo\n");
    let replaced = bench.edit("a1", create("src/new/a.rs", "three")).unwrap();
    assert_eq!(json_of(&replaced), &json!({"path": "src/new/a.rs", "done": "replaced", "lines": 1}));
    assert_eq!(bench.content("src/new/a.rs").unwrap(), b"three");
    bench.edit("a1", create("empty", "")).unwrap();
    assert_eq!(bench.content("empty").unwrap(), b"");
}

#[test]
fn a_change_is_confirmed_with_its_surroundings() {
    let bench = Bench::new();
    bench.put("f", (1..=20).map(|at| format!("line {at}\n")).collect::<String>());
    let output = bench.edit("a1", replace("f", "line 10\n", "ten\nand a half\n")).unwrap();
    let (origin, snippet) = text(&output);
    assert_eq!(origin, "f, changed at lines 10-11; it now has 21 lines");
    assert!(snippet.starts_with("     6\tline 6\n") && snippet.ends_with("    15\tline 14\n"), "{snippet}");
    assert!(snippet.contains("    10\tten\n    11\tand a half\n    12\tline 11\n"), "{snippet}");
    let output = bench.edit("a1", insert("f", 0, "first")).unwrap();
    let (origin, snippet) = text(&output);
    assert_eq!(origin, "f, changed at lines 1-1; it now has 22 lines");
    assert!(snippet.starts_with("     1\tfirst\n     2\tline 1\n"), "{snippet}");
}

/// What the agent has done with the file `f` before it changes `f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Known {
    Never,
    Viewed,
    Wrote,
}

/// What happens to `f` after the agent has viewed or written it, and before the agent changes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Meanwhile {
    Nothing,
    OtherAgent,
    Command,
    /// A command writes the same content again.
    Touch,
    Removal,
}

#[test]
fn nobody_overwrites_what_somebody_else_has_written() {
    use Known::{Never, Viewed, Wrote};
    use Meanwhile::{Command, Nothing, OtherAgent, Removal, Touch};
    let mut checked = 0;
    for known in [Never, Viewed, Wrote] {
        for meanwhile in [Nothing, OtherAgent, Command, Touch, Removal] {
            for (change, after) in [
                (create("f", "new\n"), "new\n"),
                (replace("f", "b", "x"), "a\nx\n"),
                (insert("f", 1, "x"), "a\nx\nb\n"),
            ] {
                let bench = Bench::new();
                bench.put("f", "a\nb\n");
                match known {
                    Never => {}
                    Viewed => drop(bench.edit("a1", view("f")).unwrap()),
                    Wrote => {
                        bench.put("f", "a\n_\n");
                        bench.edit("a1", replace("f", "_", "b")).unwrap();
                    }
                }
                match meanwhile {
                    Nothing => {}
                    OtherAgent => drop(bench.edit("a2", replace("f", "a", "A")).unwrap()),
                    Command => bench.put("f", "A\nb\n"),
                    Touch => bench.put("f", "a\nb\n"),
                    Removal => fs::remove_file(bench.file("f")).unwrap(),
                }
                let before = bench.content("f");
                let command = change["command"].as_str().unwrap().to_owned();
                let result = bench.edit("a1", change);
                let is_as_known = known != Never && matches!(meanwhile, Nothing | Touch);
                let place = format!("{known:?} {meanwhile:?} {command}");
                if meanwhile == Removal {
                    // The file is gone. `create` works, because no content can be lost. The other commands need a file.
                    assert_eq!(result.is_ok(), command == "create", "{place}: {result:?}");
                    assert!(!is_file_changed(result), "{place}");
                } else if is_as_known {
                    assert!(result.is_ok(), "{place}: {result:?}");
                    assert_eq!(bench.content("f").unwrap(), after.as_bytes(), "{place}");
                } else if known == Never && command == "str_replace" {
                    assert!(result.is_ok(), "{place}: {result:?}");
                } else if known == Never {
                    // The file has not changed, so the refusal must not say that it has.
                    assert!(is_not_viewed(result), "{place}");
                    assert_eq!(bench.content("f"), before, "{place}");
                } else {
                    assert!(is_file_changed(result), "{place}");
                    assert_eq!(bench.content("f"), before, "{place}");
                }
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 45);
}

#[test]
fn after_another_view_the_change_goes_through() {
    let bench = Bench::new();
    bench.put("f", "a\n");
    bench.edit("a1", view("f")).unwrap();
    bench.put("f", "b\n");
    assert!(is_file_changed(bench.edit("a1", create("f", "c\n"))));
    bench.edit("a1", view("f")).unwrap();
    bench.edit("a1", create("f", "c\n")).unwrap();
    // After an agent has changed a file, it knows the new content. So it need not view the file again.
    bench.edit("a1", insert("f", 1, "d")).unwrap();
    assert_eq!(bench.content("f").unwrap(), b"c\nd\n");
}

#[test]
fn a_change_between_preparation_and_run_is_noticed() {
    for change in [replace("f", "a", "x"), create("f", "x"), insert("f", 0, "x")] {
        let bench = Bench::new();
        bench.put("f", "a\n");
        bench.edit("a1", view("f")).unwrap();
        let editor = bench.editor(Access::Write);
        let evidence = bench.prepare(&editor, "a1", change.clone()).unwrap();
        bench.put("f", "a\nb\n");
        let result = bench.run(&editor, "a1", change, evidence, Attempt::First);
        assert!(is_file_changed(result));
        assert_eq!(bench.content("f").unwrap(), b"a\nb\n");
    }
}

#[test]
fn line_ends_and_marks_are_kept() {
    let check = |old: &[u8], change: Value, expect: &[u8]| {
        let bench = Bench::new();
        bench.put("f", old);
        bench.edit("a1", view("f")).unwrap();
        bench.edit("a1", change.clone()).unwrap();
        assert_eq!(bench.content("f").unwrap(), expect, "{change}");
    };
    check(b"a\r\nb\r\n", replace("f", "a\nb", "x\ny"), b"x\r\ny\r\n");
    check(b"a\r\nb\r\n", insert("f", 1, "x\ny\n"), b"a\r\nx\r\ny\r\nb\r\n");
    check(b"a\r\nb\r\n", create("f", "x\ny\n"), b"x\r\ny\r\n");
    check(b"a\nb", replace("f", "b", "c"), b"a\nc");
    check(b"a\nb", insert("f", 2, "c"), b"a\nb\nc");
    check(b"\xef\xbb\xbfa\n", replace("f", "a", "b"), b"\xef\xbb\xbfb\n");
    check(b"\xef\xbb\xbfa\n", insert("f", 0, "x"), b"\xef\xbb\xbfx\na\n");
    check(b"\xef\xbb\xbfa\n", create("f", "x"), b"\xef\xbb\xbfx");
    check(b"a\nb\r\n", replace("f", "b\n", "c\nd\n"), b"a\nc\r\nd\r\n");
    // If the content of a file is not text, no part of it can be changed, but `create` can replace the whole file.
    check(b"caf\xe9\n", create("f", "x"), b"x");
    check(b"a\0b", create("f", "x"), b"x");
}

#[test]
fn a_file_that_is_not_in_utf_8_is_not_damaged() {
    for (content, expect) in [
        (&b"caf\xe9 au lait, d\xe9j\xe0 vu\n"[..], "is in windows-1252 and not in UTF-8"),
        (b"\xff\xfea\0\n\0", "is in UTF-16LE and not in UTF-8"),
        (b"a\0b", "is not a text file"),
    ] {
        for change in [replace("f", "a", "x"), insert("f", 0, "x")] {
            let bench = Bench::new();
            bench.put("f", content);
            bench.edit("a1", view("f")).unwrap();
            let refusal = format!("{:?}", bench.edit("a1", change).unwrap_err());
            assert!(refusal.contains(expect), "{refusal}");
            assert_eq!(bench.content("f").unwrap(), content);
        }
    }
}

#[test]
fn a_text_that_does_not_fit_is_explained() {
    let bench = Bench::new();
    bench.put("f", "fn one() {\n    let total = 1;\n}\nfn two() {\n    let total = 1;\n}\n");
    bench.edit("a1", view("f")).unwrap();
    let check = |change: Value, expect: &[&str]| {
        let refusal = bench.edit("a1", change.clone()).unwrap_err();
        let Refusal::InvalidArguments(problems) = refusal else { panic!("{refusal:?}") };
        let said = problems[0].to_string();
        for expect in expect {
            assert!(said.contains(expect), "{change}: {said}");
        }
    };
    check(replace("f", "let total = 1;", "x"), &["old_str: occurs 2 times, at lines 2, 5;"]);
    check(
        replace("f", "fn one() {\n  let total = 1;", "x"),
        &[
            "old_str: does not occur",
            "only white space differs at lines 1-2:\n     1\tfn one() {\n     2\t    let",
        ],
    );
    check(replace("f", "fn tow() {", "x"), &["the most similar place is lines 4-4:\n     4\tfn two() {"]);
    check(replace("f", "     1\tfn one() {", "x"), &["leave out the line numbers"]);
    check(replace("f", "nothing of the kind", "x"), &["view it and quote it exactly"]);
    check(replace("f", "", "x"), &["old_str: empty"]);
    check(replace("f", "fn one", "fn one"), &["new_str: the same"]);
    check(insert("f", 7, "x"), &["insert_line: the file has 6 lines"]);
    check(replace("g", "a", "b"), &["path: g does not exist"]);
    check(insert("g", 0, "b"), &["path: g does not exist"]);
    assert!(bench.content("g").is_none());
}

#[test]
fn some_files_are_never_changed() {
    let bench = Bench::new();
    for path in [".git/config", ".vscode/tasks.json", "f", "fixed"] {
        bench.put(path, "a\n");
    }
    fs::create_dir(bench.file("d")).unwrap();
    std::os::unix::fs::symlink("f", bench.file("link")).unwrap();
    std::os::unix::fs::symlink(".git", bench.file("git")).unwrap();
    fs::set_permissions(bench.file("fixed"), fs::Permissions::from_mode(0o444)).unwrap();
    let check = |path: &str, expect: &str| {
        let refusals = [
            bench.edit("a1", replace(path, "a", "x")).unwrap_err(),
            bench.edit("a1", create(path, "x")).unwrap_err(),
        ];
        let refusals = format!("{refusals:?}");
        assert!(refusals.contains(expect), "{path}: {refusals}");
    };
    check(".git/config", "only the system commits");
    check(".vscode/tasks.json", "can start programs");
    check("../f", "leads out");
    check("d", "is a directory, not a file");
    // These files are links, or write-protected. The agent views them first, so that the refusal does not complain
    // about a missing view.
    for path in ["link", "git/config", "fixed"] {
        bench.edit("a1", view(path)).unwrap();
    }
    check("link", "nothing is written through symbolic links");
    check("git/config", "nothing is written through symbolic links");
    check("fixed", "write-protected");
    for path in [".git/config", ".vscode/tasks.json", "f", "fixed"] {
        assert_eq!(bench.content(path).unwrap(), b"a\n", "{path}");
    }
}

#[test]
fn a_read_only_workspace_is_only_viewed() {
    let bench = Bench::new();
    bench.put("f", "a\n");
    bench.edit_in(Access::Read, "a1", view("f")).unwrap();
    for change in [replace("f", "a", "b"), create("f", "b"), create("new/g", "b"), insert("f", 0, "b")] {
        let refusal = bench.edit_in(Access::Read, "a1", change).unwrap_err();
        assert_eq!(refusal, Refusal::WorkspaceRefused { reason: "the workspace is read-only".to_owned() });
    }
    assert_eq!(bench.content("f").unwrap(), b"a\n");
    assert!(!bench.file("new").exists());
}

#[test]
fn a_hard_link_keeps_the_old_content() {
    let bench = Bench::new();
    let outside = bench.base.path().join("outside");
    fs::write(&outside, "a\n").unwrap();
    fs::hard_link(&outside, bench.file("f")).unwrap();
    bench.edit("a1", replace("f", "a", "b")).unwrap();
    assert_eq!(
        (bench.content("f").unwrap(), fs::read(&outside).unwrap()),
        (b"b\n".to_vec(), b"a\n".to_vec())
    );
}

#[test]
fn a_preview_shows_the_change_and_makes_none() {
    let bench = Bench::new();
    bench.put("f", "a\nb\n");
    let preview = bench.preview(replace("./f", "b", "c")).unwrap().unwrap();
    assert_eq!(preview.path, "f");
    assert_eq!(preview.diff, "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n");
    assert_eq!(bench.content("f").unwrap(), b"a\nb\n");
    assert_eq!(bench.preview(view("f")).unwrap(), None);
    assert!(is_not_viewed(bench.preview(create("f", "x")).map(|_| unreachable!())));
}
