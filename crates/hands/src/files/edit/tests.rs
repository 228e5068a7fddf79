use super::*;
use proptest::prelude::*;

fn replaced(text: &str, old: &str, new: &str) -> Result<String, EditFault> {
    edit(Some(text), Edit::Replace { old, new }).map(|edited| edited.text)
}

fn inserted(text: &str, after: usize, new: &str) -> Result<String, EditFault> {
    edit(Some(text), Edit::Insert { after, text: new }).map(|edited| edited.text)
}

#[test]
fn one_place_is_replaced() {
    let check = |text: &str, old: &str, new: &str, expect: &str| {
        assert_eq!(replaced(text, old, new).as_deref(), Ok(expect), "{text:?} {old:?} {new:?}");
    };
    check("a\nb\nc\n", "b", "x", "a\nx\nc\n");
    check("a\nb\nc\n", "b\n", "", "a\nc\n");
    check("a\nb", "b", "x", "a\nx");
    check("a\nb", "b", "x\n", "a\nx\n");
    check("héllo", "é", "e", "hello");
    // The file keeps its line ends, whichever line ends the model writes.
    check("a\r\nb\r\nc\r\n", "a\nb", "x\ny", "x\r\ny\r\nc\r\n");
    check("a\r\nb\r\nc\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\nc\r\n");
    check("a\r\nb\r\nc\r\n", "a\r\nb", "x\ny", "x\r\ny\r\nc\r\n");
    check("a\r\nb\r\n", "b", "x\ny", "a\r\nx\r\ny\r\n");
    check("a\r\nb", "b", "c\nd", "a\r\nc\r\nd");
    check("a\nb\n", "a\r\nb", "x\ny", "x\ny\n");
    // In a file with mixed line ends, a change uses the line ends next to the changed place.
    check("a\r\nb\r\nc\nd\n", "c\nd", "x\ny\nz", "a\r\nb\r\nx\ny\nz\n");
    check("a\nb\nc\r\nd\r\n", "c\nd\n", "x\n", "a\nb\nx\r\n");
    // A match never begins or ends between `\r` and `\n`.
    check("a\r\nb\r\n", "\nb", "-", "a-\r\n");
    check("a\r\nb\r\n", "a\n", "x", "xb\r\n");
    check("a\rb\r\n", "\r", "-", "a-b\r\n");
    check("\u{feff}a\r\n", "a", "b", "\u{feff}b\r\n");
    check("a\tb", "a\tb", "a b", "a b");
}

#[test]
fn a_place_must_be_certain() {
    let check =
        |text: &str, old: &str, expect| assert_eq!(replaced(text, old, "x"), Err(expect), "{text:?} {old:?}");
    check("a", "", EditFault::NothingToReplace);
    check("", "", EditFault::NothingToReplace);
    check("", "a", EditFault::NotFound);
    check("a\nb", "a\nc", EditFault::NotFound);
    check("a", "A", EditFault::NotFound);
    check("x", "x", EditFault::NoChange);
    check("a\nb\na\n", "a", EditFault::Several { count: 2, lines: vec![1, 3] });
    check("\n\naaa", "aa", EditFault::Several { count: 2, lines: vec![3, 3] });
    check(&"é".repeat(5000), "éé", EditFault::Several { count: 1000, lines: vec![1; 10] });
    let message = EditFault::Several { count: 1000, lines: vec![1, 3] }.to_string();
    assert!(message.starts_with("occurs at least 1000 times, at lines 1, 3, …;"), "{message}");
}

#[test]
fn lines_are_inserted_after_a_line() {
    let check = |text: &str, after, new: &str, expect: &str| {
        assert_eq!(inserted(text, after, new).as_deref(), Ok(expect), "{text:?} {after} {new:?}");
    };
    check("a\nb\n", 0, "x", "x\na\nb\n");
    check("a\nb\n", 1, "x", "a\nx\nb\n");
    check("a\nb\n", 1, "x\n", "a\nx\nb\n");
    check("a\nb\n", 1, "x\ny", "a\nx\ny\nb\n");
    check("a\nb\n", 1, "", "a\n\nb\n");
    check("a\nb\n", 1, "\n", "a\n\nb\n");
    check("a\nb\n", 2, "x", "a\nb\nx\n");
    check("a\nb", 2, "x", "a\nb\nx");
    check("a\nb", 2, "x\n", "a\nb\nx");
    check("a\nb", 1, "x", "a\nx\nb");
    check("a", 1, "", "a\n\n");
    check("a", 1, "x\n\n", "a\nx\n\n");
    check("a", 0, "x", "x\na");
    check("", 0, "x", "x\n");
    check("a\r\nb\r\n", 1, "x\ny\n", "a\r\nx\r\ny\r\nb\r\n");
    check("a\r\nb", 2, "x", "a\r\nb\r\nx");
    check("a\r\nb\r\n", 1, "x\r\n", "a\r\nx\r\nb\r\n");
    check("\u{feff}a\n", 0, "x", "\u{feff}x\na\n");
    check("\u{feff}", 0, "x", "\u{feff}x\n");
    for (text, after, lines) in [("", 1, 0), ("a", 2, 1), ("a\n", 2, 1), ("a\nb\n", 9, 2)] {
        assert_eq!(inserted(text, after, "x"), Err(EditFault::NoSuchLine { lines }), "{text:?}");
    }
}

#[test]
fn a_new_text_keeps_the_form_of_the_old_one() {
    let check = |old: Option<&str>, new: &str, expect: &str| {
        assert_eq!(edit(old, Edit::Create(new)).map(|edited| edited.text).as_deref(), Ok(expect), "{old:?}");
    };
    check(None, "a\nb", "a\nb");
    check(None, "a\r\nb", "a\r\nb");
    check(None, "", "");
    check(Some("x\n"), "a\nb\n", "a\nb\n");
    check(Some("x\r\ny\r\n"), "a\nb\n", "a\r\nb\r\n");
    check(Some("x\r\ny\r\n"), "a\r\nb\n", "a\r\nb\n");
    check(Some("x\r\ny\n"), "a\nb\n", "a\nb\n");
    check(Some("\u{feff}x"), "a", "\u{feff}a");
    check(Some("\u{feff}x"), "\u{feff}a", "\u{feff}a");
}

#[test]
fn the_changed_lines_are_named() {
    let check = |text: &str, change: Edit<'_>, expect: RangeInclusive<usize>| {
        assert_eq!(edit(Some(text), change).unwrap().changed, expect, "{text:?} {change:?}");
    };
    check("a\nb\nc\n", Edit::Replace { old: "b", new: "x" }, 2..=2);
    check("a\nb\nc\n", Edit::Replace { old: "b", new: "x\ny" }, 2..=3);
    check("a\nb\nc\n", Edit::Replace { old: "b\n", new: "x\ny\n" }, 2..=3);
    check("a\nb\nc\n", Edit::Replace { old: "b\n", new: "" }, 2..=2);
    check("a\r\nb\r\nc\r\n", Edit::Replace { old: "b\nc", new: "x" }, 2..=2);
    check("a\nb\n", Edit::Insert { after: 0, text: "x\ny" }, 1..=2);
    check("a\nb\n", Edit::Insert { after: 1, text: "" }, 2..=2);
    check("a\nb", Edit::Insert { after: 2, text: "x\ny" }, 3..=4);
    check("", Edit::Create("a\nb\n"), 1..=2);
    check("", Edit::Create(""), 1..=1);
}

fn text() -> impl Strategy<Value = String> {
    "([ab]{0,2}\n){0,6}[ab]{0,2}"
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2048, ..ProptestConfig::default() })]

    /// A change of a file with `\r\n` gives the same lines as the change of the same file with `\n`. All line ends
    /// of the file stay `\r\n`.
    #[test]
    fn windows_files_stay_windows_files(
        text in text().prop_filter("with a line", |text| text.contains('\n')),
        old in "[ab\n]{1,4}",
        new in "[xy\n]{0,4}",
        after in 0..8_usize,
        from_windows in any::<bool>(),
    ) {
        let windows = |text: &str| text.replace('\n', "\r\n");
        let quoted = if from_windows { windows(&old) } else { old.clone() };
        prop_assert_eq!(
            replaced(&windows(&text), &quoted, &new),
            replaced(&text, &old, &new).map(|text| windows(&text))
        );
        prop_assert_eq!(
            inserted(&windows(&text), after, &new),
            inserted(&text, after, &new).map(|text| windows(&text))
        );
    }

    #[test]
    fn a_replacement_changes_one_place_and_no_other(
        before in "([a-c\n]|\r\n){0,8}",
        old in "([a-c\n]|\r\n){1,4}",
        after in "([a-c\n]|\r\n){0,8}",
        new in "[xy]{0,4}",
    ) {
        let text = [&*before, &*old, &*after].concat();
        let flat = |text: &str| text.replace("\r\n", "\n");
        let counted = {
            let (text, old) = (flat(&text), flat(&old));
            (0..text.len()).filter(|at| text[*at..].starts_with(&old)).count()
        };
        match replaced(&text, &old, &new) {
            Ok(changed) => {
                prop_assert_eq!(counted, 1);
                // Apart from the line ends, the result is the old text with one replaced place.
                prop_assert_eq!(flat(&changed), flat(&text).replacen(&flat(&old), &new, 1));
            }
            Err(EditFault::NotFound) => prop_assert_eq!(counted, 0),
            Err(EditFault::Several { count, .. }) => prop_assert_eq!(count, counted),
            Err(other) => prop_assert!(false, "{:?}", other),
        }
    }

    #[test]
    fn an_insertion_keeps_every_line_and_the_missing_end(text in text(), after in 0..8_usize, new in "[xy\n]{0,5}") {
        let old: Vec<&str> = text.lines().collect();
        match edit(Some(&text), Edit::Insert { after, text: &new }) {
            Ok(edited) => {
                let lines: Vec<&str> = edited.text.lines().collect();
                prop_assert_eq!(&lines[..after], &old[..after]);
                let (first, last) = (*edited.changed.start(), *edited.changed.end());
                prop_assert_eq!(first, after + 1);
                prop_assert_eq!(&lines[last.min(lines.len())..], &old[after..]);
                let written = new.strip_suffix('\n').unwrap_or(&new);
                let is_blank = written.is_empty() || written.ends_with('\n');
                let has_end = text.is_empty() || text.ends_with('\n') || (is_blank && after == old.len());
                prop_assert_eq!(edited.text.ends_with('\n'), has_end);
                prop_assert_eq!(lines.len(), old.len() + last + 1 - first);
            }
            Err(_) => prop_assert!(after > old.len()),
        }
    }
}
