//! Tests that a change happens exactly once, whether the process died before, during or after the write.

use crate::call::{Access, Attempt, Output};
use crate::files::testing::Bench;
use polity_files::TEMPORARY_PREFIX;
use polity_society::refusal::Refusal;
use proptest::prelude::*;
use serde_json::{Value, json};

/// Whether the process dies before, during or after the write of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Died {
    Before,
    Amid,
    After,
}

/// Calls the editor, simulates the death of the process, and repeats the call with a new editor.
fn with_crash(bench: &Bench, change: &Value, died: Died) -> Result<Output, Refusal> {
    let evidence = bench.prepare(&bench.editor(Access::Write), "a1", change.clone())?;
    match died {
        Died::Before => {}
        Died::Amid => bench.put(&format!("{TEMPORARY_PREFIX}0-0"), "half"),
        Died::After => {
            let editor = bench.editor(Access::Write);
            bench.run(&editor, "a1", change.clone(), evidence.clone(), Attempt::First)?;
        }
    }
    bench.run(&bench.editor(Access::Write), "a1", change.clone(), evidence, Attempt::AfterCrash)
}

fn change() -> impl Strategy<Value = Value> {
    let text = "([ab]{0,2}\r?\n){0,3}[ab]{0,2}";
    prop_oneof![
        text.prop_map(|text| json!({"command": "create", "path": "f", "file_text": text})),
        ("[ab\n]{1,3}", text).prop_map(
            |(old, new)| json!({"command": "str_replace", "path": "f", "old_str": old, "new_str": new})
        ),
        (0..5_usize, text).prop_map(
            |(line, new)| json!({"command": "insert", "path": "f", "insert_line": line, "new_str": new})
        ),
    ]
}

/// Makes a workspace. If `content` is given, the file `f` has this content and the agent has viewed it.
fn bench_with(content: Option<&str>) -> Bench {
    let bench = Bench::new();
    if let Some(content) = content {
        bench.put("f", content);
        bench.edit("a1", json!({"command": "view", "path": "f"})).unwrap();
    }
    bench
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn running_again_after_a_crash_is_like_running_once(
        content in proptest::option::weighted(0.9, "([ab]{0,2}\r?\n){0,3}[ab]{0,2}"),
        change in change(),
        died in proptest::sample::select(&[Died::Before, Died::Amid, Died::After][..]),
    ) {
        let once = bench_with(content.as_deref());
        let expect = once.edit("a1", change.clone());
        let crashed = bench_with(content.as_deref());
        let result = with_crash(&crashed, &change, died);
        prop_assert_eq!(&result, &expect);
        prop_assert_eq!(crashed.content("f"), once.content("f"));
        if result.is_ok() {
            let names: Vec<_> = std::fs::read_dir(crashed.file(".")).unwrap().collect();
            prop_assert_eq!(names.len(), 1, "{:?}", names);
            // The agent knows the new content, so its next change is allowed.
            let next = json!({"command": "insert", "path": "f", "insert_line": 0, "new_str": "next"});
            prop_assert!(crashed.edit("a1", next).is_ok());
        }
    }

    #[test]
    fn a_file_that_somebody_else_changed_stays(
        content in proptest::option::weighted(0.9, "[ab\n]{0,5}"),
        change in change(),
        other in "[xy\n]{1,5}",
        died in proptest::sample::select(&[Died::Before, Died::After][..]),
    ) {
        let bench = bench_with(content.as_deref());
        let editor = bench.editor(Access::Write);
        let Ok(evidence) = bench.prepare(&editor, "a1", change.clone()) else { return Ok(()) };
        if died == Died::After {
            bench.run(&editor, "a1", change.clone(), evidence.clone(), Attempt::First).unwrap();
        }
        // `other` is the content that somebody else writes. It must differ from the content before the change and from
        // the content after it.
        prop_assume!(bench.content("f") != Some(other.clone().into_bytes()));
        prop_assume!(other.contains(['x', 'y']));
        bench.put("f", &other);
        let result = bench.run(&bench.editor(Access::Write), "a1", change, evidence, Attempt::AfterCrash);
        prop_assert_eq!(result, Err(Refusal::FileChanged { path: "f".to_owned() }));
        prop_assert_eq!(bench.content("f").unwrap(), other.into_bytes());
    }
}

#[test]
fn a_file_that_was_written_before_the_crash_is_not_written_again() {
    let change = json!({"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b"});
    let bench = bench_with(Some("a\n"));
    let evidence = bench.prepare(&bench.editor(Access::Write), "a1", change.clone()).unwrap();
    bench.run(&bench.editor(Access::Write), "a1", change.clone(), evidence.clone(), Attempt::First).unwrap();
    let written = std::fs::metadata(bench.file("f")).unwrap();
    bench
        .run(&bench.editor(Access::Write), "a1", change.clone(), evidence.clone(), Attempt::AfterCrash)
        .unwrap();
    let now = std::fs::metadata(bench.file("f")).unwrap();
    use std::os::unix::fs::MetadataExt;
    assert_eq!((now.ino(), now.modified().unwrap()), (written.ino(), written.modified().unwrap()));
    // The file already has the new content. In its first run, a call cannot have written it, so somebody else must have
    // written it.
    let result = bench.run(&bench.editor(Access::Write), "a1", change, evidence, Attempt::First);
    assert_eq!(result, Err(Refusal::FileChanged { path: "f".to_owned() }));
}

#[test]
fn evidence_that_cannot_be_read_changes_nothing() {
    let bench = bench_with(Some("a\n"));
    let change = json!({"command": "str_replace", "path": "f", "old_str": "a", "new_str": "b"});
    let editor = bench.editor(Access::Write);
    let result = bench.run(&editor, "a1", change, json!({"before": 1}), Attempt::AfterCrash);
    assert!(matches!(result, Err(Refusal::ToolFailed { .. })), "{result:?}");
    assert_eq!(bench.content("f").unwrap(), b"a\n");
}
