//! The texts of the built-in model in each language, from the files `prompts/<language>/rehearsal.toml`.

use polity_society::text::{Language, Template};
use serde::Deserialize;
use std::sync::LazyLock;

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
    /// Returns the text with the values filled in.
    pub(crate) fn fill(&self, values: &[(&str, &str)]) -> String {
        self.0.fill(values)
    }
}

/// All texts of one language.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    /// Begins each line that the model says.
    pub(crate) mark: String,
    /// Follows the mark if a line quotes the person.
    pub(crate) quote: String,
    /// Separates the members of a list.
    pub(crate) comma: String,
    /// Texts that root, the lead and the reader all use.
    pub(crate) common: CommonWords,
    /// Texts of root.
    pub(crate) root: RootWords,
    /// Texts of the lead.
    pub(crate) lead: LeadWords,
    /// Texts of the reader.
    pub(crate) reader: ReaderWords,
    /// Texts about a workspace.
    pub(crate) workspace: WorkspaceWords,
    /// Texts that state facts about bytes.
    pub(crate) facts: FactWords,
}

impl Words {
    /// Returns the texts of a language.
    pub(crate) fn of(language: Language) -> &'static Self {
        static CHINESE: LazyLock<Words> =
            LazyLock::new(|| parse(include_str!("../../../prompts/zh/rehearsal.toml")));
        static ENGLISH: LazyLock<Words> =
            LazyLock::new(|| parse(include_str!("../../../prompts/en/rehearsal.toml")));
        match language {
            Language::Zh => &CHINESE,
            Language::En => &ENGLISH,
        }
    }

    /// Fills in the values and puts the mark before each line.
    pub(crate) fn say(&self, phrase: &Phrase, values: &[(&str, &str)]) -> String {
        self.marked(&phrase.fill(values))
    }

    /// Puts the mark before each line that does not have it yet.
    pub(crate) fn marked(&self, text: &str) -> String {
        let line = |line: &str| match line.starts_with(&self.mark) {
            true => line.to_owned(),
            false => format!("{}{line}", self.mark),
        };
        text.lines().map(line).collect::<Vec<_>>().join("\n")
    }

    /// Puts the mark and the sign for a quotation before each line that the person has written.
    pub(crate) fn quoted(&self, lines: &[&str]) -> String {
        lines.iter().map(|line| format!("{}{}{line}", self.mark, self.quote)).collect::<Vec<_>>().join("\n")
    }

    /// Undoes [`Self::quoted`] for one line; returns `None` if the line is not quoted.
    pub(crate) fn unquoted<'a>(&self, line: &'a str) -> Option<&'a str> {
        line.strip_prefix(&self.mark)?.strip_prefix(&self.quote)
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CommonWords {
    /// Reports a call that failed.
    pub(crate) failed: Phrase,
    /// The error to report for a call that has no result in the history.
    pub(crate) no_result: Phrase,
    /// Reports that the agent may not use the tools that it needs.
    pub(crate) no_tools: Phrase,
    /// The text to say if no message needs a reaction.
    pub(crate) nothing_new: Phrase,
    /// Repeats a notice of the system.
    pub(crate) system_said: Phrase,
    /// The text to say if there is nothing to report yet.
    pub(crate) nothing_known: Phrase,
    /// A line about an attachment, with the facts about its bytes.
    pub(crate) attachment: Phrase,
    /// Replaces the name of an attachment that has no name.
    pub(crate) nameless: Phrase,
    /// If nothing is attached, tells facts about the person's own words.
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
    /// Begins the first message to the lead; the quoted prompt follows.
    pub(crate) assignment: Phrase,
    /// Ends a turn in which root hired a lead.
    pub(crate) interim: Phrase,
    /// Ends a turn in which root knew no agent to introduce.
    pub(crate) knew_nobody: Phrase,
    /// Ends a turn in which root introduced an agent.
    pub(crate) introduced: Phrase,
    /// The reason that root gives to the requester if root knows no agent with the capability.
    pub(crate) nobody: Phrase,
    /// Advises the requester how to use the introduced agent.
    pub(crate) usage_hint: Phrase,
    /// Begins the final answer; the lead's own words follow.
    pub(crate) final_answer: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeadWords {
    /// The text of the request for an introduction.
    pub(crate) introduction: Phrase,
    /// The reason in the request for an introduction.
    pub(crate) introduction_reason: Phrase,
    /// Ends the turn in which the lead sent the request for an introduction.
    pub(crate) awaiting_introduction: Phrase,
    pub(crate) role_name: Phrase,
    pub(crate) role_prompt: Phrase,
    pub(crate) objective: Phrase,
    pub(crate) constraints: Vec<Phrase>,
    pub(crate) inputs: Phrase,
    pub(crate) outputs: Phrase,
    pub(crate) completion_criteria: Phrase,
    /// The first message to the reader, or to a contact that can read the attachments.
    pub(crate) assignment: Phrase,
    /// Ends a turn that waits for the reader.
    pub(crate) awaiting_reader: Phrase,
    /// The Markdown of the report.
    pub(crate) report: Phrase,
    /// Begins the closing text if the report was stored.
    pub(crate) done: Phrase,
    /// Begins the closing text if the report could not be stored.
    pub(crate) done_without_report: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReaderWords {
    /// Begins the answer; a line for each attachment follows.
    pub(crate) received: Phrase,
    /// The text to say if nothing was attached.
    pub(crate) received_nothing: Phrase,
    /// The text about an attachment that came only as a description.
    pub(crate) unreadable: Phrase,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WorkspaceWords {
    /// Inputs, outputs and completion criteria in the brief of the lead.
    pub(crate) inputs: Phrase,
    pub(crate) outputs: Phrase,
    pub(crate) completion_criteria: Phrase,
    /// Reports what the workspace contains.
    pub(crate) contents: Phrase,
    /// Reports that the workspace contains nothing.
    pub(crate) empty: Phrase,
    /// Reports facts about a file.
    pub(crate) file: Phrase,
    /// Reports facts about a file of which only a part was read.
    pub(crate) part: Phrase,
    /// Reports the exit code and the output of the command that the lead has run.
    pub(crate) command: Phrase,
    /// Reports why the command of the lead was stopped.
    pub(crate) command_stopped: Phrase,
    /// Reports how many files the search found, and of which kinds.
    pub(crate) found: Phrase,
    /// Used if the search found more files than it returned. Reports how many files it returned, and of which kinds.
    pub(crate) found_first: Phrase,
    /// Reports that the search found no file.
    pub(crate) found_nothing: Phrase,
    /// Reports that nothing was written, because the workspace is read-only.
    pub(crate) read_only: Phrase,
    /// Begins the closing text if the report is in the workspace.
    pub(crate) done: Phrase,
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
        assert_ne!(Words::of(Language::Zh).mark, Words::of(Language::En).mark);
    }

    #[test]
    fn marking() {
        let check = |text: &str, expect: &str| assert_eq!(Words::of(Language::En).marked(text), expect);
        check("one\ntwo", "[rehearsal] one\n[rehearsal] two");
        check("[rehearsal] one\n\ntwo", "[rehearsal] one\n[rehearsal] \n[rehearsal] two");
        check("", "");
    }

    #[test]
    fn what_is_quoted_can_be_unquoted() {
        let words = Words::of(Language::Zh);
        assert_eq!(words.unquoted(&words.quoted(&["看图"])), Some("看图"));
        assert_eq!(words.unquoted("［演练］看图"), None);
    }
}
