//! What the built-in model says, in each language: the files `prompts/<language>/rehearsal.toml`.

use polity_society::text::Template;
use serde::Deserialize;
use std::sync::LazyLock;

/// The languages that there are words for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    Chinese,
    English,
}

impl Language {
    /// The words of the language.
    pub(crate) fn words(self) -> &'static Words {
        static CHINESE: LazyLock<Words> =
            LazyLock::new(|| parse(include_str!("../../../prompts/zh/rehearsal.toml")));
        static ENGLISH: LazyLock<Words> =
            LazyLock::new(|| parse(include_str!("../../../prompts/en/rehearsal.toml")));
        match self {
            Self::Chinese => &CHINESE,
            Self::English => &ENGLISH,
        }
    }
}

#[expect(clippy::expect_used, reason = "both files are part of the program, and a test parses them")]
fn parse(file: &str) -> Words {
    toml::from_str(file).expect("the words of the built-in model are well-formed")
}

/// One text with placeholders.
#[derive(Debug, Deserialize)]
#[serde(from = "String")]
pub(crate) struct Phrase(Template);

impl From<String> for Phrase {
    fn from(text: String) -> Self {
        Self(Template::new(text))
    }
}

impl Phrase {
    /// The text with the values put in.
    pub(crate) fn fill(&self, values: &[(&str, &str)]) -> String {
        self.0.fill(values)
    }
}

/// All words of one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// Opens each line that is said.
    pub(crate) mark: String,
    /// Follows the mark where a line quotes the person.
    pub(crate) quote: String,
    /// Stands between the members of a list.
    pub(crate) comma: String,
    /// Whatever happens to anybody.
    pub(crate) common: CommonWords,
    /// What root says.
    pub(crate) root: RootWords,
    /// What the lead says.
    pub(crate) lead: LeadWords,
    /// What the reader says.
    pub(crate) reader: ReaderWords,
    /// What is told about bytes.
    pub(crate) facts: FactWords,
}

impl Words {
    /// A phrase with each of its lines marked.
    pub(crate) fn say(&self, phrase: &Phrase, values: &[(&str, &str)]) -> String {
        self.marked(&phrase.fill(values))
    }

    /// The text with each of its lines marked; one that is marked already stays as it is.
    pub(crate) fn marked(&self, text: &str) -> String {
        let line = |line: &str| match line.starts_with(&self.mark) {
            true => line.to_owned(),
            false => format!("{}{line}", self.mark),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Lines of the person, marked and quoted.
    pub(crate) fn quoted(&self, lines: &[&str]) -> String {
        lines.iter().map(|line| format!("{}{}{line}", self.mark, self.quote)).collect::<Vec<_>>().join("\n")
    }

    /// What [`Self::quoted`] quoted, if the line is such a quotation.
    pub(crate) fn unquoted<'a>(&self, line: &'a str) -> Option<&'a str> {
        line.strip_prefix(&self.mark)?.strip_prefix(&self.quote)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommonWords {
    /// A tool refused.
    pub(crate) failed: Phrase,
    /// A call has no result in the history.
    pub(crate) no_result: Phrase,
    /// The tools that the play needs are not offered.
    pub(crate) no_tools: Phrase,
    /// There is nothing to react to.
    pub(crate) nothing_new: Phrase,
    /// A notice of the system came.
    pub(crate) system_said: Phrase,
    /// Nothing is known that could be told.
    pub(crate) nothing_known: Phrase,
    /// An attachment and what is known about it.
    pub(crate) attachment: Phrase,
    /// An attachment without a name.
    pub(crate) nameless: Phrase,
    /// Facts about the person's own words, where nothing is attached.
    pub(crate) prompt: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RootWords {
    pub(crate) role_name: Phrase,
    pub(crate) role_prompt: Phrase,
    pub(crate) objective: Phrase,
    pub(crate) constraints: Vec<Phrase>,
    pub(crate) inputs: Phrase,
    pub(crate) no_inputs: Phrase,
    pub(crate) outputs: Phrase,
    pub(crate) completion_criteria: Phrase,
    /// Opens the first message to the lead; the prompt follows, quoted.
    pub(crate) assignment: Phrase,
    /// Ends a turn in which a lead was hired.
    pub(crate) interim: Phrase,
    /// Ends a turn in which an introduction was refused.
    pub(crate) knew_nobody: Phrase,
    /// Ends a turn in which somebody was introduced.
    pub(crate) introduced: Phrase,
    /// The reason given to who asked in vain.
    pub(crate) nobody: Phrase,
    /// How to use who is introduced.
    pub(crate) usage_hint: Phrase,
    /// Opens the final answer; the lead's own words follow.
    pub(crate) final_answer: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeadWords {
    /// The text of the request for an introduction.
    pub(crate) introduction: Phrase,
    /// Its reason.
    pub(crate) introduction_reason: Phrase,
    /// Ends the turn in which it was sent.
    pub(crate) awaiting_introduction: Phrase,
    pub(crate) role_name: Phrase,
    pub(crate) role_prompt: Phrase,
    pub(crate) objective: Phrase,
    pub(crate) constraints: Vec<Phrase>,
    pub(crate) inputs: Phrase,
    pub(crate) outputs: Phrase,
    pub(crate) completion_criteria: Phrase,
    /// The first message to the reader, or to somebody who can read.
    pub(crate) assignment: Phrase,
    /// Ends a turn that waits for the reader.
    pub(crate) awaiting_reader: Phrase,
    /// The Markdown of the report.
    pub(crate) report: Phrase,
    /// Opens the closing text, where the report was stored.
    pub(crate) done: Phrase,
    /// Opens the closing text, where there is no report.
    pub(crate) done_without_report: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReaderWords {
    /// Opens the answer; a line for each attachment follows.
    pub(crate) received: Phrase,
    /// Said where nothing was attached.
    pub(crate) received_nothing: Phrase,
    /// Said of an attachment that came as a description.
    pub(crate) unreadable: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FactWords {
    pub(crate) picture: Phrase,
    pub(crate) picture_without_size: Phrase,
    pub(crate) wave: Phrase,
    pub(crate) wave_without_header: Phrase,
    pub(crate) audio: Phrase,
    pub(crate) video: Phrase,
    pub(crate) archive: Phrase,
    pub(crate) pdf: Phrase,
    pub(crate) text: Phrase,
    pub(crate) empty: Phrase,
    pub(crate) unknown: Phrase,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_languages_parse_and_their_marks_differ() {
        assert_ne!(Language::Chinese.words().mark, Language::English.words().mark);
    }

    #[test]
    fn marking() {
        let check = |text: &str, expect: &str| assert_eq!(Language::English.words().marked(text), expect);
        check("one\ntwo", "[rehearsal] one\n[rehearsal] two");
        check("[rehearsal] one\n\ntwo", "[rehearsal] one\n[rehearsal] \n[rehearsal] two");
        check("", "");
    }

    #[test]
    fn what_is_quoted_can_be_unquoted() {
        let words = Language::Chinese.words();
        assert_eq!(words.unquoted(&words.quoted(&["看图"])), Some("看图"));
        assert_eq!(words.unquoted("［演练］看图"), None);
    }
}
