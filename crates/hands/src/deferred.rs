//! Searches for tools. If the definitions of all tools would take too much of the context window, a model gets this
//! search instead of the definitions. Pure.

use std::collections::BTreeSet;

/// A word of the query may occur in the name or in the description of a tool. In the name, it counts this many times as
/// much as in the description.
const NAME_WEIGHT: f64 = 3.0;

/// The similarity of two different words if one begins with the other, such as `files` and `file`. Equal words have the
/// similarity 1.
const BEGINNING_WEIGHT: f64 = 0.5;

/// A word with at least this many characters also matches longer words that begin with it: `file` matches `files`. A
/// shorter word matches only an equal word.
const SHORTEST_BEGINNING: usize = 3;

/// The parts of a tool's definition that the search reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Definition<'a> {
    /// The name by which models call the tool.
    pub name: &'a str,
    /// The description that models read.
    pub description: &'a str,
    /// Estimated tokens that the whole definition takes in a request.
    pub tokens: u64,
}

/// Returns whether the definitions together take more tokens than `budget`. If they do, models get the search instead
/// of the definitions.
pub fn is_deferred(tools: &[Definition<'_>], budget: u64) -> bool {
    tools.iter().fold(0, |sum: u64, tool| sum.saturating_add(tool.tokens)) > budget
}

/// Returns the names of at most `limit` tools. The tool that fits the query best comes first, and tools that fit
/// equally well keep their order. A tool that matches no word of the query is left out.
pub fn search<'a>(query: &str, tools: &[Definition<'a>], limit: usize) -> Vec<&'a str> {
    let wanted = words(query);
    let indexed: Vec<Indexed> = tools.iter().map(Indexed::new).collect();
    let weights: Vec<f64> = wanted.iter().map(|word| rarity(word, &indexed)).collect();
    let mut found: Vec<(f64, &str)> = Vec::new();
    for (tool, indexed) in tools.iter().zip(&indexed) {
        let score: f64 = wanted.iter().zip(&weights).map(|(word, weight)| weight * indexed.score(word)).sum();
        let is_named = tool.name.eq_ignore_ascii_case(query.trim());
        if is_named || score > 0.0 {
            found.push((if is_named { f64::INFINITY } else { score }, tool.name));
        }
    }
    // The sort is stable, so equally good tools keep their order.
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    found.into_iter().take(limit).map(|(_, name)| name).collect()
}

/// The words in a tool's name and description.
struct Indexed {
    name: BTreeSet<String>,
    description: BTreeSet<String>,
}

impl Indexed {
    fn new(tool: &Definition<'_>) -> Self {
        Self { name: words(tool.name), description: words(tool.description) }
    }

    /// Returns how well the definition fits a word: 0 if neither the word nor a similar word occurs.
    fn score(&self, word: &str) -> f64 {
        NAME_WEIGHT * likeness(word, &self.name) + likeness(word, &self.description)
    }
}

/// Returns the weight of a word. A word that occurs in fewer tools has a higher weight.
fn rarity(word: &str, tools: &[Indexed]) -> f64 {
    let having = tools.iter().filter(|tool| tool.score(word) > 0.0).count();
    let count = |number: usize| f64::from(u32::try_from(number).unwrap_or(u32::MAX));
    (1.0 + (count(tools.len()) + 0.5) / (count(having) + 0.5)).ln()
}

/// Returns how similar a word is to the most similar word in `among`: 1 if the two words are equal,
/// [`BEGINNING_WEIGHT`] if a long enough word is the beginning of the other, and otherwise 0.
fn likeness(word: &str, among: &BTreeSet<String>) -> f64 {
    if among.contains(word) {
        return 1.0;
    }
    let begins = |long: &str, short: &str| {
        short.chars().count() >= SHORTEST_BEGINNING && long.starts_with(short) && !short.contains(is_unspaced)
    };
    let similar = among.iter().any(|other| begins(other, word) || begins(word, other));
    if similar { BEGINNING_WEIGHT } else { 0.0 }
}

/// Splits a text into words in lower case. A word ends at any character other than a letter or a digit. A name such
/// as `fileName` is split into two words. In a script without spaces, such as Chinese, each pair of neighbouring
/// characters becomes a word.
fn words(text: &str) -> BTreeSet<String> {
    let mut words = BTreeSet::new();
    let mut run = Run::default();
    for character in text.chars() {
        let is_part = character.is_alphanumeric();
        let breaks = run.last.is_some_and(|last| {
            is_unspaced(last) != is_unspaced(character) || (last.is_lowercase() && character.is_uppercase())
        });
        if !is_part || breaks {
            run.end(&mut words);
        }
        if is_part {
            run.push(character);
        }
    }
    run.end(&mut words);
    words
}

/// Neighbouring letters and digits without a break. They are one word, or several words in a script without spaces.
#[derive(Default)]
struct Run {
    characters: Vec<char>,
    last: Option<char>,
}

impl Run {
    fn push(&mut self, character: char) {
        self.characters.extend(character.to_lowercase());
        self.last = Some(character);
    }

    fn end(&mut self, words: &mut BTreeSet<String>) {
        let characters = std::mem::take(&mut self.characters);
        match (self.last.take(), characters.len()) {
            (None, _) => {}
            (Some(last), 2..) if is_unspaced(last) => {
                words.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
            }
            (Some(_), _) => {
                words.insert(characters.into_iter().collect());
            }
        }
    }
}

/// Returns whether a character belongs to a script in which a text cannot be split into words at spaces. Chinese,
/// Japanese, Thai, Lao, Khmer and Burmese have no spaces between words. Korean has spaces, but its words change their
/// endings, so a search for equal words would not find them.
fn is_unspaced(character: char) -> bool {
    matches!(u32::from(character),
        0x0E00..=0x0EFF | 0x1000..=0x109F | 0x1780..=0x17FF
        | 0x3040..=0x30FF | 0x3400..=0x4DBF | 0x4E00..=0x9FFF
        | 0xAC00..=0xD7AF | 0xF900..=0xFAFF | 0x20000..=0x3FFFF)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tool<'a>(name: &'a str, description: &'a str) -> Definition<'a> {
        Definition { name, description, tokens: 100 }
    }

    fn office() -> Vec<Definition<'static>> {
        vec![
            tool("git__git_log", "Shows the commits of a repository"),
            tool("files__read_text_file", "Reads a file from the disk as text"),
            tool("files__writeFile", "Writes a file to the disk"),
            tool("mail__send", "发送电子邮件给联系人"),
            tool("mail__search", "在收件箱中搜索邮件"),
            tool("time__convert_time", "Converts a time between time zones"),
        ]
    }

    #[test]
    fn words_in_names_and_descriptions_are_found() {
        let check = |query: &str, expect: &[&str]| assert_eq!(search(query, &office(), 3), expect, "{query}");
        check("commits", &["git__git_log"]);
        check("write a file", &["files__writeFile", "files__read_text_file", "git__git_log"]);
        check("FILES", &["files__read_text_file", "files__writeFile"]);
        check("time zone", &["time__convert_time"]);
        check("搜索邮件", &["mail__search", "mail__send"]);
        check("电子邮件", &["mail__send", "mail__search"]);
        check("mail__search", &["mail__search", "mail__send"]);
        check("spaceship", &[]);
        check("", &[]);
        check("…", &[]);
    }

    #[test]
    fn words_are_split_at_case_underscores_and_scripts() {
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(words(text).into_iter().collect::<Vec<_>>(), expect, "{text}");
        };
        check("readTextFile_v2", &["file", "read", "text", "v2"]);
        check("HTTP-Request", &["http", "request"]);
        check("读取PDF文件", &["pdf", "文件", "读取"]);
        check("搜 a", &["a", "搜"]);
        check("Größe", &["größe"]);
    }

    #[test]
    fn definitions_are_deferred_above_the_budget() {
        assert!(!is_deferred(&office(), 600));
        assert!(is_deferred(&office(), 599));
        assert!(!is_deferred(&[], 0));
        let huge = Definition { tokens: u64::MAX, ..tool("a", "") };
        assert!(is_deferred(&[huge, huge], 1));
    }

    proptest! {
        #[test]
        fn a_search_returns_each_fitting_tool_once_and_no_other(
            texts in prop::collection::vec(("[a-z]{1,4}_[a-z]{1,4}", "[a-c 文件邮]{0,12}"), 0..20),
            query in "[a-c_ 文件邮]{0,8}",
            limit in 0..25_usize,
        ) {
            let named: Vec<(String, &str)> = texts.iter().enumerate()
                .map(|(at, (name, description))| (format!("{name}{at}"), description.as_str())).collect();
            let tools: Vec<Definition<'_>> = named.iter().map(|(name, text)| tool(name, text)).collect();
            let found = search(&query, &tools, limit);
            prop_assert!(found.len() <= limit);
            let unique: BTreeSet<&&str> = found.iter().collect();
            prop_assert_eq!(unique.len(), found.len());
            let all = search(&query, &tools, usize::MAX);
            prop_assert_eq!(&all[..found.len()], &found[..]);
            let wanted = words(&query);
            for tool in &tools {
                let fits = wanted.iter().any(|word| Indexed::new(tool).score(word) > 0.0);
                prop_assert_eq!(fits, all.contains(&tool.name));
            }
        }

        #[test]
        fn equally_good_tools_keep_their_order(count in 1..20_usize) {
            let names: Vec<String> = (0..count).map(|at| format!("t{at}__x")).collect();
            let tools: Vec<Definition<'_>> = names.iter().map(|name| tool(name, "reads mail")).collect();
            prop_assert_eq!(search("mail", &tools, count), names.iter().map(String::as_str).collect::<Vec<_>>());
        }

        #[test]
        fn a_tool_called_by_its_name_comes_first(at in 0..6_usize) {
            let tools = office();
            prop_assert_eq!(search(tools[at].name, &tools, 1), [tools[at].name]);
        }
    }
}
