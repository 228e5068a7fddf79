//! Splits a search into words, builds the query for the index, and finds the words in a text. Pure functions.

use polity_view::SnippetPiece;

/// The most words of a search. Further words are ignored.
const MOST_WORDS: usize = 12;
/// The most characters of a word. Further characters are ignored.
const MOST_CHARACTERS: usize = 100;
/// The most groups of one word in a query for the index. A few are enough, because [`snippet`] checks the text anyway.
const MOST_GROUPS: usize = 20;
/// The number of characters in a group of the index.
const GROUP: usize = 3;
/// The most characters of a text that a snippet shows.
const SNIPPET: usize = 160;
/// The most characters that a snippet shows before the first hit.
const BEFORE: usize = 40;

/// A word of a search in lower case, without control characters; never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Word(Vec<char>);

impl Word {
    /// Returns whether the word is shorter than a group of the index.
    pub(super) fn is_short(&self) -> bool {
        self.0.len() < GROUP
    }

    pub(super) fn text(&self) -> String {
        self.0.iter().collect()
    }

    /// Returns a query for the index: the rows that may contain this word. `None` if the word is short.
    pub(super) fn query(&self) -> Option<String> {
        let groups: Vec<&[char]> = self.0.windows(GROUP).collect();
        let every = groups.len().div_ceil(MOST_GROUPS).max(1);
        let chosen: Vec<String> = groups.iter().step_by(every).map(|group| quoted(group)).collect();
        (!chosen.is_empty()).then(|| chosen.join(" AND "))
    }
}

/// Returns a query for the index: the rows that contain one of these groups.
pub(super) fn any_of(groups: &[String]) -> String {
    let groups: Vec<String> =
        groups.iter().map(|group| quoted(&group.chars().collect::<Vec<char>>())).collect();
    format!("({})", groups.join(" OR "))
}

/// Quotes a group, so that no character has a meaning in the query language of the index.
fn quoted(group: &[char]) -> String {
    format!("\"{}\"", group.iter().collect::<String>().replace('"', "\"\""))
}

/// Splits the text of a search into words. No character has a special meaning.
pub(super) fn words(wanted: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for part in wanted.split(|c: char| c.is_whitespace() || c.is_control()) {
        let word = Word(part.chars().take(MOST_CHARACTERS).map(lower).collect());
        if !word.0.is_empty() && !words.contains(&word) {
            words.push(word);
        }
        if words.len() == MOST_WORDS {
            break;
        }
    }
    words
}

/// Returns the lower case of a character, if that is one character; otherwise the character itself. So the conversion
/// does not change the number of characters in a text.
fn lower(character: char) -> char {
    let mut lower = character.to_lowercase();
    match (lower.next(), lower.next()) {
        (Some(lower), None) => lower,
        _ => character,
    }
}

/// Returns the part of a text around its first hit; `None` unless the text contains all words.
pub(super) fn snippet(text: &str, words: &[Word]) -> Option<Vec<SnippetPiece>> {
    let folded: String = text.chars().map(lower).collect();
    let mut first = folded.len();
    for word in words {
        first = first.min(folded.find(&word.text())?);
    }
    let first = folded[..first].chars().count();
    let (characters, folded): (Vec<char>, Vec<char>) = (text.chars().collect(), folded.chars().collect());
    let begin = first.saturating_sub(BEFORE);
    let end = (begin + SNIPPET).min(folded.len());
    let hits = marked(&folded[begin..end], words);
    let mut pieces: Vec<SnippetPiece> = Vec::new();
    let mut push = |character: char, hit: bool| match pieces.last_mut() {
        Some(last) if last.hit == hit => last.text.push(character),
        Some(_) | None => pieces.push(SnippetPiece { text: character.into(), hit }),
    };
    if begin > 0 {
        push('…', false);
    }
    for (&character, hit) in characters[begin..end].iter().zip(hits) {
        // A snippet is one line.
        push(if character.is_control() { ' ' } else { character }, hit);
    }
    if end < folded.len() {
        push('…', false);
    }
    Some(pieces)
}

/// Returns for each character whether it belongs to a word.
fn marked(text: &[char], words: &[Word]) -> Vec<bool> {
    let mut marked = vec![false; text.len()];
    for Word(word) in words {
        for at in 0..text.len() {
            if text[at..].starts_with(word) {
                marked[at..at + word.len()].fill(true);
            }
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn words_of_a_search() {
        let check = |wanted: &str, expect: &[&str]| {
            let words: Vec<String> = words(wanted).iter().map(Word::text).collect();
            assert_eq!(words, expect, "{wanted:?}");
        };
        check("", &[]);
        check(" \n\0 ", &[]);
        check("Weather REPORT weather", &["weather", "report"]);
        check("天气　报告", &["天气", "报告"]);
        check("NEAR(a, \"b\" OR c*) -d", &["near(a,", "\"b\"", "or", "c*)", "-d"]);
        assert_eq!(words(&"a b c d e f g h i j k l m n o ".repeat(9)).len(), MOST_WORDS);
        assert_eq!(words(&"x".repeat(10_000))[0].0.len(), MOST_CHARACTERS);
    }

    #[test]
    fn queries_for_the_index() {
        let query = |word: &str| words(word)[0].query();
        assert_eq!(query("天气"), None);
        assert_eq!(query("天气好").as_deref(), Some(r#""天气好""#));
        assert_eq!(query(r#"a"b*"#).as_deref(), Some(r#""a""b" AND """b*""#));
        assert_eq!(query(&"abcdefghij".repeat(10)).unwrap().matches(" AND ").count(), 19);
        assert_eq!(any_of(&["天气很".to_owned(), "\"天气".to_owned()]), r#"("天气很" OR """天气")"#);
    }

    #[test]
    fn snippets() {
        let check = |text: &str, wanted: &str, expect: Option<&str>| {
            let shown = snippet(text, &words(wanted)).map(|pieces| {
                let shown = |piece: &SnippetPiece| match piece.hit {
                    true => format!("[{}]", piece.text),
                    false => piece.text.clone(),
                };
                pieces.iter().map(shown).collect::<String>()
            });
            assert_eq!(shown.as_deref(), expect, "{text:?}: {wanted:?}");
        };
        check("The Weather\nin Berlin", "berlin weather", Some("The [Weather] in [Berlin]"));
        check("今天天气很好", "天气", Some("今天[天气]很好"));
        check("今天天气很好", "天气 雨", None);
        check("aaaa", "aa", Some("[aaaa]"));
        check("<b>x</b>", "<b>", Some("[<b>]x</b>"));
        let long = format!("{}天气{}", "前".repeat(100), "后".repeat(300));
        let (before, after) = ("前".repeat(BEFORE), "后".repeat(SNIPPET - BEFORE - 2));
        check(&long, "天气", Some(&format!("…{before}[天气]{after}…")));
    }

    proptest! {
        #[test]
        fn a_snippet_is_a_part_of_its_text_and_marks_a_hit(text in ".{0,300}", at in 0_usize..300, length in 1_usize..9) {
            let characters: Vec<char> = text.chars().collect();
            let at = at.min(characters.len());
            let wanted: String = characters[at..].iter().take(length).collect();
            let words = words(&wanted);
            let pieces = snippet(&text, &words);
            prop_assert!(pieces.is_some(), "a text contains each of its own parts");
            let pieces = pieces.unwrap();
            prop_assert_eq!(pieces.iter().any(|piece| piece.hit), !words.is_empty());
            let shown: String = pieces.iter().map(|piece| piece.text.as_str()).collect();
            let one_line: String = characters.iter().map(|&c| if c.is_control() { ' ' } else { c }).collect();
            prop_assert!(one_line.contains(shown.trim_matches('…')) || text.contains('…'));
        }
    }
}
