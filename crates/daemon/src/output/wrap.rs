//! Breaks long lines at the edge of a terminal, between words.

use unicode_width::UnicodeWidthChar;

/// Punctuation marks that must not begin a line.
const CLOSING: &str = "，。、！？；：）》”’」』】…,.!?;:)]}";

/// Breaks each line that is wider than `columns`, between words or between wide characters such as Chinese ones. A word
/// is broken only if it is wider than the screen. All parts of an indented line have the indentation of the line.
pub(crate) fn wrapped(text: &str, columns: usize) -> String {
    let lines: Vec<String> = text.split('\n').map(|line| line_wrapped(line, columns)).collect();
    lines.join("\n")
}

fn line_wrapped(line: &str, columns: usize) -> String {
    let characters: Vec<char> = line.chars().collect();
    let width = |c: char| if c == '\t' { 8 } else { c.width().unwrap_or_default() };
    let indent: String = characters.iter().take_while(|c| **c == ' ').take(columns / 2).collect();
    let mut wrapped = String::with_capacity(line.len());
    let (mut begin, mut used, mut place) = (0, 0, None);
    let mut at = 0;
    while at < characters.len() {
        let character = characters[at];
        if may_break(&characters, at) && at > begin {
            place = Some(at);
        }
        // A space may stand beyond the last column, because spaces at the end of a line are not printed.
        if used + width(character) > columns && character != ' ' && at > begin {
            let end = place.unwrap_or(at);
            let part: String = characters[begin..end].iter().collect();
            wrapped.push_str(part.trim_end());
            wrapped.push('\n');
            wrapped.push_str(&indent);
            begin = end + characters[end..].iter().take_while(|c| **c == ' ').count();
            (at, used, place) = (begin, indent.len(), None);
            continue;
        }
        used += width(character);
        at += 1;
    }
    wrapped.extend(&characters[begin..]);
    wrapped
}

/// Returns whether a line may end before the character with the index `at`.
fn may_break(characters: &[char], at: usize) -> bool {
    let wide = |c: char| c.width() == Some(2);
    let (Some(&character), Some(&before)) =
        (characters.get(at), at.checked_sub(1).and_then(|at| characters.get(at)))
    else {
        return false;
    };
    if character == ' ' || CLOSING.contains(character) || character.width() == Some(0) {
        return false;
    }
    before == ' ' || wide(character) || wide(before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_are_broken_between_words() {
        let check =
            |text: &str, columns: usize, expect: &str| assert_eq!(wrapped(text, columns), expect, "{text:?}");
        check("short", 10, "short");
        check("the quick brown fox", 10, "the quick\nbrown fox");
        check("  an item of a list", 12, "  an item of\n  a list");
        check("a verylongwordindeed b", 8, "a\nverylong\nwordinde\ned b");
        check("今天天气很好，我们去公园", 12, "今天天气很\n好，我们去公\n园");
        check("看report明天", 8, "看report\n明天");
        check("one\n\ntwo three", 8, "one\n\ntwo\nthree");
    }

    proptest! {
        #[test]
        fn no_line_is_wider_than_the_screen_and_nothing_is_lost(text in "[a-z天气，。 \n]{0,200}", columns in 4_usize..60) {
            let shown = wrapped(&text, columns);
            for line in shown.lines() {
                let width: usize = line.trim_end().chars().filter_map(UnicodeWidthChar::width).sum();
                // No line is too wide, even if it ends with a punctuation mark that must not begin the next line.
                prop_assert!(width <= columns, "{line:?}");
            }
            let bare = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(bare(&shown), bare(&text));
        }

        #[test]
        fn words_that_fit_are_not_broken(words in prop::collection::vec("[a-z]{1,12}", 0..40), columns in 12_usize..60) {
            let shown = wrapped(&words.join(" "), columns);
            let left: Vec<&str> = shown.split_whitespace().collect();
            prop_assert_eq!(left, words);
        }
    }
}
