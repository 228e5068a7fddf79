//! Puts a line number before each line of a text that models read. Pure.

use crate::files::text::lines;
use std::ops::RangeInclusive;

/// Number of unchanged lines that [`snippet`] shows before and after a change.
const AROUND: usize = 4;

/// Maximum number of lines that [`snippet`] shows. The model does not need more lines, because it knows what it wrote.
const MAX_SNIPPET_LINES: usize = 60;

/// [`snippet`] and [`excerpt`] cut each line after this many characters.
const MAX_SNIPPET_LINE_CHARS: usize = 300;

/// A part of a text, with line numbers.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Numbered {
    /// The lines, each after its number and a tab.
    pub(super) text: String,
    /// The number of the last shown line, or 0 if no line is shown.
    pub(super) last: usize,
}

/// Returns the lines `range` of a text, each with its line number. Leaves out the last lines if the result would have
/// more than `max_chars` characters, but shows at least one line. If even the first line is too long, its end is left
/// out, and the result says how many characters are missing.
pub(super) fn numbered(text: &str, range: RangeInclusive<usize>, max_chars: usize) -> Numbered {
    let first = *range.start();
    let wanted = range.end().saturating_add(1).saturating_sub(first);
    let mut shown = Numbered { text: String::new(), last: 0 };
    let mut chars = 0_usize;
    for (at, line) in lines(text).enumerate().skip(first.saturating_sub(1)).take(wanted) {
        let number = at.saturating_add(1);
        let line = format!("{number:>6}\t{line}\n");
        let length = line.chars().count();
        if shown.last == 0 && length > max_chars {
            shown.text = cut(line.trim_end_matches('\n'), max_chars);
            shown.text.push('\n');
            shown.last = number;
            break;
        }
        chars = chars.saturating_add(length);
        if chars > max_chars {
            break;
        }
        shown.text.push_str(&line);
        shown.last = number;
    }
    shown
}

/// Returns the changed lines of a text and some lines before and after them, each with its number. If these are more
/// than [`MAX_SNIPPET_LINES`] lines together, the lines in the middle are left out.
pub(super) fn snippet(text: &str, changed: &RangeInclusive<usize>) -> String {
    let first = changed.start().saturating_sub(AROUND).max(1);
    let last = changed.end().saturating_add(AROUND);
    let shown: Vec<String> = in_range(text, first..=last).collect();
    if shown.len() <= MAX_SNIPPET_LINES {
        return shown.concat();
    }
    let half = MAX_SNIPPET_LINES / 2;
    let left_out = shown.len() - 2 * half;
    let (beginning, end) = (shown[..half].concat(), shown[shown.len() - half..].concat());
    format!("{beginning}     …\t{left_out} lines\n{end}")
}

/// Returns the lines `range` of a text, each with its line number.
pub(super) fn excerpt(text: &str, range: RangeInclusive<usize>) -> String {
    in_range(text, range).collect()
}

fn in_range(text: &str, range: RangeInclusive<usize>) -> impl Iterator<Item = String> {
    let (first, last) = range.into_inner();
    let count = last.saturating_add(1).saturating_sub(first);
    let lines = lines(text).enumerate().skip(first.saturating_sub(1)).take(count);
    lines.map(|(at, line)| format!("{:>6}\t{}\n", at.saturating_add(1), cut(line, MAX_SNIPPET_LINE_CHARS)))
}

/// Cuts a line after `max_chars` characters, and says how many characters are missing.
pub(super) fn cut(line: &str, max_chars: usize) -> String {
    match line.char_indices().nth(max_chars) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}… {} more characters", &line[..end], line[end..].chars().count()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_numbered_like_cat_does() {
        let check = |text: &str, range, expect: &str, last| {
            let expect = Numbered { text: expect.to_owned(), last };
            assert_eq!(numbered(text, range, 1000), expect, "{text:?}");
        };
        check("a\nb\n", 1..=usize::MAX, "     1\ta\n     2\tb\n", 2);
        check("a\r\nb", 1..=usize::MAX, "     1\ta\n     2\tb\n", 2);
        check("\u{feff}a", 1..=1, "     1\ta\n", 1);
        check("a\n\nb\n", 2..=2, "     2\t\n", 2);
        check("a\nb\nc\n", 2..=9, "     2\tb\n     3\tc\n", 3);
        check("", 1..=usize::MAX, "", 0);
        check("a\n", 5..=9, "", 0);
    }

    #[test]
    fn a_long_text_is_cut_between_lines_and_a_long_line_within() {
        assert_eq!(numbered("abc\nde\n", 1..=9, 15), Numbered { text: "     1\tabc\n".to_owned(), last: 1 });
        let cut = numbered(&"é".repeat(100), 1..=9, 17);
        assert_eq!(cut.text, format!("     1\t{}… 90 more characters\n", "é".repeat(10)));
    }

    #[test]
    fn a_snippet_has_lines_around_it() {
        let text: String = (1..=20).map(|at| format!("l{at}\n")).collect();
        let lines = snippet(&text, &(10..=11));
        assert!(lines.starts_with("     6\tl6\n") && lines.ends_with("    15\tl15\n"), "{lines}");
        assert!(snippet(&text, &(1..=1)).starts_with("     1\tl1\n"));
        let many: String = (1..=500).map(|at| format!("l{at}\n")).collect();
        let lines = snippet(&many, &(1..=500));
        assert_eq!(lines.lines().count(), 61);
        assert!(lines.contains("    30\tl30\n     …\t440 lines\n   471\tl471\n"), "{lines}");
    }

    proptest! {
        #[test]
        fn going_on_after_the_last_line_shows_every_line_once(
            text in "([a-z]{0,30}\r?\n){0,30}[a-z]{0,5}",
            max_chars in 1..200_usize,
        ) {
            let whole = numbered(&text, 1..=usize::MAX, usize::MAX);
            let (mut first, mut rounds, mut numbers) = (1, 0, Vec::new());
            loop {
                let part = numbered(&text, first..=usize::MAX, max_chars);
                if part.last == 0 {
                    break;
                }
                numbers.extend(first..=part.last);
                prop_assert!(part.text.chars().count() <= max_chars + 40);
                first = part.last + 1;
                rounds += 1;
                prop_assert!(rounds < 100);
            }
            prop_assert_eq!(numbers, (1..=whole.last).collect::<Vec<_>>());
        }
    }
}
