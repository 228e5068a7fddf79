//! Finds the lines that a model probably meant, if the text that it quoted does not occur in the file. Pure.

use crate::files::text::lines;
use std::ops::RangeInclusive;

/// Maximum number of comparisons. The search compares each line of the file with each quoted line. If it would need
/// more comparisons than this, [`nearest`] returns `None`.
const MAX_COMPARISONS: usize = 5_000_000;

/// If a file has more lines than this, no lines are compared letter by letter.
const MAX_FUZZY_LINES: usize = 20_000;

/// A line that has more characters than this is not compared letter by letter.
const MAX_FUZZY_CHARS: usize = 200;

/// Minimum similarity of two lines: 0 is different, 1 is equal.
const MIN_LIKENESS: f64 = 0.6;

/// A line with fewer characters than this, such as `}`, does not help to find a place, because it occurs everywhere.
const MIN_TELLING_CHARS: usize = 4;

/// The lines of a file that are most similar to a quoted text.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Nearest {
    pub(super) lines: RangeInclusive<usize>,
    pub(super) difference: Difference,
}

/// How the found lines differ from the quoted text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Difference {
    /// The white space differs, and nothing else.
    Blanks,
    /// More than the white space differs.
    Words,
}

/// Returns whether each line of a quoted text begins with a line number and a tab, as in the result of `view`.
pub(super) fn has_line_numbers(quoted: &str) -> bool {
    let is_numbered = |line: &str| {
        line.trim_start().split_once('\t').is_some_and(|(number, _)| number.parse::<usize>().is_ok())
    };
    !quoted.is_empty() && quoted.lines().all(is_numbered)
}

/// Returns the lines that are most similar to the quoted text, if any are similar enough.
pub(super) fn nearest(text: &str, quoted: &str) -> Option<Nearest> {
    let wanted: Vec<String> = squeezed(quoted.trim()).collect();
    let longest = (0..wanted.len()).max_by_key(|at| wanted[*at].len())?;
    if wanted[longest].is_empty() {
        return None;
    }
    let there: Vec<String> = squeezed(text).collect();
    if there.len().saturating_mul(wanted.len()) > MAX_COMPARISONS {
        return None;
    }
    let place = |at: usize, difference| {
        let first = at.saturating_add(1);
        let last = at.saturating_add(wanted.len()).min(there.len()).max(first);
        Nearest { lines: first..=last, difference }
    };
    let is_same = |at: &usize| there[*at..].starts_with(&wanted);
    if let Some(at) = (0..there.len()).find(is_same) {
        return Some(place(at, Difference::Blanks));
    }
    let is_telling = |line: &String| line.chars().count() >= MIN_TELLING_CHARS;
    let equal_lines = |at: usize| {
        let pairs = there[at..].iter().zip(&wanted);
        pairs.filter(|(one, other)| one == other && is_telling(one)).count()
    };
    // `max_by_key` returns the last of several equally good places. With `rev`, this is the first place in the file.
    let best = (0..there.len()).rev().max_by_key(|at| equal_lines(*at))?;
    if equal_lines(best) > 0 {
        return Some(place(best, Difference::Words));
    }
    let (at, likeness) = most_alike(&there, &wanted[longest])?;
    (likeness >= MIN_LIKENESS).then(|| place(at.saturating_sub(longest), Difference::Words))
}

fn most_alike(there: &[String], wanted: &str) -> Option<(usize, f64)> {
    let is_short = |line: &str| line.chars().nth(MAX_FUZZY_CHARS).is_none();
    if there.len() > MAX_FUZZY_LINES || !is_short(wanted) {
        return None;
    }
    let short = there.iter().enumerate().filter(|(_, line)| is_short(line));
    let likeness = short.map(|(at, line)| (at, strsim::normalized_levenshtein(line, wanted)));
    likeness.rev().max_by(|(_, one), (_, other)| one.total_cmp(other))
}

/// Returns the lines, with each run of white space replaced by a single space.
fn squeezed(text: &str) -> impl Iterator<Item = String> {
    lines(text).map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "fn one() {\n    let total = 1;\n}\n\nfn two() {\n\tlet other = 2;\n\treturn other;\n}\n";

    #[test]
    fn the_place_that_was_meant_is_found() {
        let check = |quoted: &str, expect: Option<(RangeInclusive<usize>, Difference)>| {
            let expect = expect.map(|(lines, difference)| Nearest { lines, difference });
            assert_eq!(nearest(TEXT, quoted), expect, "{quoted:?}");
        };
        check("  let total = 1;", Some((2..=2, Difference::Blanks)));
        check("\nfn two() {\n    let other = 2;\n", Some((5..=6, Difference::Blanks)));
        check("fn two() {\n    let other = 3;\n    return other;", Some((5..=7, Difference::Words)));
        check("let totals = 1;", Some((2..=2, Difference::Words)));
        check("{\nlet totals = 1;", Some((1..=2, Difference::Words)));
        check("return other;\n}\n}", Some((7..=8, Difference::Words)));
        check("something quite different", None);
        check("", None);
        check(" \n ", None);
        assert_eq!(nearest("", "a"), None);
        // The text and the quotation are so large that `nearest` does not search at all.
        assert_eq!(nearest(&"a line\n".repeat(100_000), &"another\n".repeat(1000)), None);
    }

    #[test]
    fn line_numbers_are_recognised() {
        assert!(has_line_numbers("     1\tfn one() {\n     2\t}"));
        assert!(has_line_numbers("12\tx"));
        for other in ["", "x", "\tx", "     1\tx\ny", "1 x"] {
            assert!(!has_line_numbers(other), "{other:?}");
        }
    }
}
