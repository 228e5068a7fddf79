//! Finds all simple commands that a text runs, also inside arguments such as in `sh -c 'git push'`.

use super::lexer::lex;
use super::token::{Expansions, Lexed, Token};
use super::word::{Piece, Word};
use super::wrappers::{RESERVED, Wrapper, wrapper};

/// Maximum number of words behind a wrapper. If there are more words, the text counts as uncertain. A wrapper is a
/// program such as `sudo` that runs another command.
const MOST_WORDS: usize = 256;

/// Maximum number of commands in a text. A text with more commands counts as uncertain.
const MOST_PARTS: usize = 4096;

/// Maximum nesting of commands inside arguments, such as in `sh -c 'sh -c …'`. Deeper nesting counts as uncertain.
const DEEPEST: usize = 8;

/// The words of a simple command, joined by spaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Part(Vec<Piece>);

impl Part {
    pub(crate) fn pieces(&self) -> &[Piece] {
        &self.0
    }

    fn of(words: &[Word]) -> Self {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut was_unknown = true;
        for word in words {
            // The shell may expand an unknown word, such as `$x`, to no word or to several words. So it is unknown
            // whether a space comes before or after the word.
            if !was_unknown && !word.is_unknown() {
                pieces.push(Piece::Char(' '));
            }
            was_unknown = word.is_unknown();
            pieces.extend(&word.0);
        }
        Self(pieces)
    }
}

/// Returns the commands that a text names, or `None` if it is not certain what the text runs. If the program of a
/// command is a path, as in `/bin/ls -l`, the command is returned twice: as it is written, and with only the base name
/// of the program, `ls -l`.
pub(crate) fn parts(text: &str) -> Option<Vec<Part>> {
    let mut found = Found::default();
    found.text(text, 0)?;
    Some(found.parts)
}

/// Returns which expansions a text has, also inside the texts that it passes to a shell, as in `sh -c '$(command)'`.
/// Other texts in single quotes have none. If it is not certain what the text runs, returns the expansions before the
/// uncertain place.
pub(crate) fn expansions(text: &str) -> Expansions {
    let mut found = Found::default();
    let _ = found.text(text, 0);
    found.expansions
}

#[derive(Default)]
struct Found {
    parts: Vec<Part>,
    expansions: Expansions,
}

impl Found {
    fn text(&mut self, text: &str, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        let lexed = lex(text, &mut self.expansions)?;
        self.lexed(&lexed, depth)
    }

    fn lexed(&mut self, lexed: &Lexed, depth: usize) -> Option<()> {
        for commands in lexed.tokens.split(|token| *token == Token::Operator) {
            let words: Vec<Word> = commands
                .iter()
                .filter_map(|token| match token {
                    Token::Word(word) => Some(word.clone()),
                    Token::Operator | Token::Redirection => None,
                })
                .collect();
            self.command(&words, depth)?;
        }
        lexed.nested.iter().try_for_each(|nested| self.lexed(nested, depth))
    }

    fn command(&mut self, words: &[Word], depth: usize) -> Option<()> {
        let Some(head) = words.first() else { return Some(()) };
        self.add(words)?;
        let name = head.base_name();
        if name != *head {
            let named: Vec<Word> = std::iter::once(&name).chain(&words[1..]).cloned().collect();
            self.add(&named)?;
        }
        let Some(name) = name.exact() else {
            // The program may be a wrapper such as `sudo`, so its arguments may be a command.
            return if head.is_unknown() && words.len() > 1 {
                self.command(&words[1..], depth)
            } else {
                Some(())
            };
        };
        // A command can follow an assignment or any reserved word except `[[`, as in `then git push`.
        if RESERVED.contains(&name.as_str()) && name != "[[" || head.is_assignment() {
            self.command(&words[1..], depth)?;
        }
        match wrapper(&name) {
            None => Some(()),
            Some(Wrapper::Words) => self.wrapped(&words[1..], depth),
            Some(Wrapper::Text) => self.texts(&words[1..], depth),
            Some(Wrapper::Shell) => self.shell(&words[1..], depth),
        }
    }

    fn add(&mut self, words: &[Word]) -> Option<()> {
        let part = Part::of(words);
        if !self.parts.contains(&part) {
            self.parts.push(part);
        }
        (self.parts.len() <= MOST_PARTS).then_some(())
    }

    /// Adds the commands that could begin at any argument of a wrapper such as `sudo`. Only the wrapper itself knows
    /// which of its arguments are options.
    fn wrapped(&mut self, words: &[Word], depth: usize) -> Option<()> {
        if words.len() > MOST_WORDS || depth > DEEPEST {
            return None;
        }
        for at in 0..words.len() {
            let rest = &words[at..];
            let is_wrapper = rest[0].base_name().exact().and_then(|name| wrapper(&name));
            match is_wrapper {
                // The arguments of an inner wrapper need no second search: this loop also visits them.
                Some(Wrapper::Words) | None => {
                    self.add(rest)?;
                    let name = rest[0].base_name();
                    let named: Vec<Word> = std::iter::once(&name).chain(&rest[1..]).cloned().collect();
                    self.add(&named)?;
                }
                Some(Wrapper::Text | Wrapper::Shell) => self.command(rest, depth + 1)?,
            }
            // An argument with spaces may be the text of a command, as in `env -S 'git push'`.
            let text = rest[0].exact().filter(|text| text.contains([' ', '\t', '\n']));
            if let Some(text) = text {
                // Probably the argument is no command. So do not blame an expansion in it.
                let expansions = self.expansions;
                let read = self.text(&text, depth + 1);
                self.expansions = expansions;
                read?;
            }
        }
        Some(())
    }

    /// Adds the commands in the arguments of a program such as `eval`. The program may run all its arguments as one
    /// text, the last arguments as one text, or each argument alone.
    fn texts(&mut self, words: &[Word], depth: usize) -> Option<()> {
        let texts: Vec<String> = words.iter().map(Word::exact).collect::<Option<_>>()?;
        self.text(&texts.join(" "), depth + 1)?;
        if texts.len() > MOST_WORDS {
            return None;
        }
        for at in 0..texts.len() {
            self.text(&texts[at..].join(" "), depth + 1)?;
        }
        let values = texts.iter().filter_map(|text| text.split_once('=')).map(|(_, value)| value);
        // A command may follow an equals sign, as in `alias name='git push'`.
        texts.iter().map(String::as_str).chain(values).try_for_each(|text| self.text(text, depth + 1))
    }

    fn shell(&mut self, words: &[Word], depth: usize) -> Option<()> {
        let mut takes_text = false;
        let mut words = words.iter();
        while let Some(word) = words.next() {
            // If the shell expands the word, the word may become `-c` and a command. So it is uncertain what runs.
            let text = word.exact()?;
            if matches!(text.as_str(), "--version" | "--help") {
                return Some(());
            }
            if matches!(text.as_str(), "--rcfile" | "--init-file") {
                words.next();
                continue;
            }
            let is_option = text.len() > 1 && text.starts_with(['-', '+']);
            if is_option && !text.starts_with("--") {
                takes_text |= text.contains('c');
                if text.contains('s') && !takes_text {
                    return None;
                }
                // In options such as `-eo`, each `o` or `O` takes one of the next words as the name of a setting, such
                // as `pipefail`.
                let named = text.matches(['o', 'O']).count();
                words.by_ref().take(named).for_each(drop);
            }
            if is_option {
                continue;
            }
            // Without `-c`, the word is the name of a script file, whose content is not checked.
            return if takes_text { self.text(&text, depth + 1) } else { Some(()) };
        }
        // Without a script, a shell reads commands from its standard input, which is unknown here.
        None
    }
}
