use super::super::table::without_styles;
use super::super::terminal::is_obeyed;
use super::*;
use proptest::prelude::*;
use unicode_width::UnicodeWidthChar;

fn shown(text: &str, columns: usize) -> String {
    without_styles(&formatted(text, columns).expect("marks"))
}

const REPORT: &str = "# Report\nThe **figures** of May, see [the table](https://a.example/t).\n\n\
    1. One item that is long enough to need a second line\n   - inner\n   - [x] done\n2. Two\n\n\
    | Name | Cost | 说明 |\n|:--|--:|:-:|\n| apples | 12 | 苹果和梨 |\n| `pears` | 3 | 梨 |\n\n\
    > quoted\n> words\n\n```rust\nfn main() {}\n```\n---\nend";

#[test]
fn a_report() {
    insta::assert_snapshot!(shown(REPORT, 40), @"
Report

The figures of May, see the table
(https://a.example/t).

1. One item that is long enough to need
   a second line
   • inner
   • [x] done
2. Two

Name   │ Cost │   说明
───────┼──────┼─────────
apples │   12 │ 苹果和梨
pears  │    3 │    梨

│ quoted
│ words

rust
│ fn main() {}

────────────────────────────────────────

end
");
}

#[test]
fn a_table_that_does_not_fit() {
    let table = "| Name | What it does in many words |\n|---|---|\n| a-very-long-name-without-spaces | it reads 每一个附件并且报告其中的事实 |";
    insta::assert_snapshot!(shown(table, 36), @"
Name             │ What it does in
                 │ many words
─────────────────┼─────────────────
a-very-long-name │ it reads 每一个
-without-spaces  │ 附件并且报告其中
                 │ 的事实
");
    let wide = "|a|b|c|d|e|f|\n|-|-|-|-|-|-|\n|one word|two words|three|four words|five words|six words|";
    insta::assert_snapshot!(shown(wide, 30), @"
a: one word
b: two words
c: three
d: four words
e: five words
f: six words
");
}

#[test]
fn loose_lists_and_quotations_in_each_other() {
    insta::assert_snapshot!(shown("- a\n\n  more\n\n- b\n  > c\n  >\n  > - d\n\nend", 40), @"
• a

  more

• b

  │ c
  │
  │ • d

end
");
}

#[test]
fn a_text_without_marks_stays_as_it_was_written() {
    for text in ["", "one\ntwo\n\n  three", "2 * 3 = 6", "看看这张图片"] {
        assert_eq!(formatted(text, 40), None, "{text:?}");
    }
}

#[test]
fn an_entity_cannot_control_the_terminal() {
    assert_eq!(
        shown("**a** &#27;[31m &#x202e; `\u{1b}]0;x\u{7}`", 60),
        "a <U+001B>[31m <U+202E> <U+001B>]0;x<U+0007>"
    );
}

fn width(line: &str) -> usize {
    line.chars().filter_map(UnicodeWidthChar::width).sum()
}

fn texts() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("| a | b |\n|---|---|\n"),
        Just("| word 词 | more |\n"),
        Just("- "),
        Just("1. "),
        Just("> "),
        Just("\n"),
        Just("\n\n"),
        Just("# "),
        Just("**"),
        Just("*"),
        Just("`"),
        Just("```\n"),
        Just("    "),
        Just("[a](b"),
        Just(")"),
        Just("![x](y)"),
        Just("word "),
        Just("词语词语"),
        Just("<b>"),
        Just("&#27;"),
        Just("&#x202e;"),
        Just("\u{1b}[2J"),
        Just("---\n"),
        Just("$x$"),
        Just("|"),
        Just("a\u{301}"),
        Just("👨‍👩‍👧"),
        Just("\t"),
    ];
    proptest::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_text_controls_the_terminal(text in texts(), columns in 0_usize..100) {
        if let Some(shown) = formatted(&text, columns) {
            let plain = without_styles(&shown);
            prop_assert!(!plain.contains(is_obeyed), "{plain:?}");
        }
    }

    #[test]
    fn every_word_is_kept(text in texts(), columns in 0_usize..100) {
        // If a row of a table has more cells than the head of the table, the Markdown parser drops the additional
        // cells. This test expects that no character is lost, so its text has no tables.
        let text = text.replace('|', "");
        let count = |text: &str| text.matches('词').count();
        if let Some(shown) = formatted(&text, columns) {
            prop_assert_eq!(count(&without_styles(&shown)), count(&text), "{}", shown);
        }
    }

    #[test]
    fn tables_fit_the_width(cells in proptest::collection::vec("[a-z词语 ]{1,30}", 2..12), columns in 20_usize..80) {
        let row = |cells: &[String]| format!("|{}|\n", cells.join("|"));
        let text = format!("{}{}{}", row(&cells), "|-".repeat(cells.len()) + "|\n", row(&cells));
        if let Some(shown) = formatted(&text, columns) {
            let shown = without_styles(&shown);
            if shown.contains('┼') {
                prop_assert!(shown.lines().all(|line| width(line) <= columns), "{shown}");
            }
        }
    }
}

#[test]
fn deep_and_long_texts_are_formatted() {
    for text in [
        "> ".repeat(5_000),
        "- ".repeat(5_000) + "x",
        "*a ".repeat(20_000),
        "|a".repeat(5_000) + "\n" + &"|-".repeat(5_000),
    ] {
        let shown = formatted(&text, 80).unwrap_or_default();
        assert!(shown.len() < 40 * text.len() + 1_000, "{}", shown.len());
    }
}
