//! The prompts. The binary contains a file for each prompt. The person can replace each of these files by a file in a
//! directory.

mod toml_file;

use crate::problem::{Place, Problem, Severity};
use polity_society::text::{Language, Template, Texts};
use std::collections::BTreeMap;
use std::sync::LazyLock;
use toml_file::flatten;

/// All texts that models read, except those that other agents or the user wrote.
#[derive(Clone, Debug)]
pub struct Prompts {
    /// The language of all these texts.
    pub language: Language,
    /// The first part of the system prompt of every agent, unless `small` replaces it.
    pub base: String,
    /// The text that root's system prompt contains instead of a role prompt.
    pub root: String,
    /// The template around a role prompt, with the placeholders `{role_name}` and `{role_prompt}`.
    pub role: Template,
    /// The rules for using the tools.
    pub tool_rules: String,
    /// The text that follows the role prompt if the agent may create other agents.
    pub hiring: String,
    /// The short text that replaces `base` and `tool_rules` for a model with a small window.
    pub small: String,
    /// The short text that replaces `root` for a model with a small window.
    pub root_small: String,
    /// The templates from which messages and notices are built.
    pub texts: Texts,
    /// The description of each tool. The key is the name of the tool.
    pub tool_texts: BTreeMap<String, ToolText>,
}

/// The description of a tool and its parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ToolText {
    /// What the tool does.
    pub description: String,
    /// The description of each parameter. If a parameter needs no explanation, its description is empty. The key is the
    /// name of the parameter. The name of a nested parameter has dots, such as `taskBrief.objective`.
    pub parameters: BTreeMap<String, String>,
}

/// One of the prompt files. Every language has all of these files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum PromptFile {
    Base,
    Root,
    Role,
    ToolRules,
    Hiring,
    Small,
    RootSmall,
    Texts,
    ToolTexts,
}

/// Declares the names of the files and embeds the files in the binary.
macro_rules! prompt_files {
    ($($file:ident = $name:literal;)*) => {
        impl PromptFile {
            pub(crate) const ALL: &'static [Self] = &[$(Self::$file,)*];

            pub(crate) fn name(self) -> &'static str {
                match self { $(Self::$file => $name,)* }
            }

            fn embedded(self, language: Language) -> &'static str {
                match (language, self) {
                    $((Language::Zh, Self::$file) => include_str!(concat!("../../../prompts/zh/", $name)),
                    (Language::En, Self::$file) => include_str!(concat!("../../../prompts/en/", $name)),)*
                }
            }
        }
    };
}

prompt_files! {
    Base = "base.txt";
    Root = "root.txt";
    Role = "role.txt";
    ToolRules = "tools.txt";
    Hiring = "hiring.txt";
    Small = "small.txt";
    RootSmall = "root-small.txt";
    Texts = "texts.toml";
    ToolTexts = "tools.toml";
}

/// The texts of the prompt files that replace built-in ones.
pub(crate) type Overrides = BTreeMap<PromptFile, String>;

/// The placeholders of `role.txt`. The file must contain all of them and no others.
const ROLE_PLACEHOLDERS: [&str; 2] = ["role_name", "role_prompt"];

/// Returns the built-in texts of a language. They are used in the dialogue that `polity` starts without arguments.
pub fn built_in_texts(language: Language) -> Texts {
    build(language, &Overrides::new()).0.texts
}

/// Checks whether a file can be used as a whole. The individual texts in the file are checked by [`build`].
pub(crate) fn check(language: Language, file: PromptFile, text: &str) -> Result<(), Problem> {
    let problem = |place: Place, what: String| {
        let done = "the file is not used".to_owned();
        Problem { file: label(language, file), place, severity: Severity::Error, what, done }
    };
    // If a file is empty, somebody is most likely still writing it.
    if text.trim().is_empty() {
        return Err(problem(Place::Whole, "the file is empty".to_owned()));
    }
    match file {
        PromptFile::Base
        | PromptFile::Root
        | PromptFile::ToolRules
        | PromptFile::Hiring
        | PromptFile::Small
        | PromptFile::RootSmall => Ok(()),
        PromptFile::Role => {
            let template = Template::new(text);
            let placeholders = template.placeholders();
            if let Some(unknown) = placeholders.iter().find(|name| !ROLE_PLACEHOLDERS.contains(name)) {
                let what = format!("contains the unknown placeholder `{{{unknown}}}`");
                return Err(problem(Place::Whole, what));
            }
            match ROLE_PLACEHOLDERS.iter().find(|name| !placeholders.contains(name)) {
                Some(missing) => Err(problem(Place::Whole, format!("lacks the placeholder `{{{missing}}}`"))),
                None => Ok(()),
            }
        }
        PromptFile::Texts | PromptFile::ToolTexts => {
            toml_file::parse(text).map(drop).map_err(|error| problem(error.place, error.what))
        }
    }
}

/// Returns the names of the tools that polity ships.
pub(crate) fn built_in_tools() -> &'static [String] {
    static TOOLS: LazyLock<Vec<String>> = LazyLock::new(|| {
        let table = toml_file::parse(PromptFile::ToolTexts.embedded(Language::En));
        // Parsing cannot fail, because a test parses the built-in files.
        table.map(|table| table.keys().cloned().collect()).unwrap_or_default()
    });
    &TOOLS
}

/// Builds the prompts of a language from the built-in files and the `overrides` that replace them.
pub(crate) fn build(language: Language, overrides: &Overrides) -> (Prompts, Vec<Problem>) {
    let mut problems = Vec::new();
    let text = |file: PromptFile| {
        let text = overrides.get(&file).map_or_else(|| file.embedded(language), String::as_str);
        text.trim_start_matches('\u{feff}').trim_end().to_owned()
    };
    let mut texts = read_texts(language, PromptFile::Texts.embedded(language), None, &mut problems);
    if let Some(text) = overrides.get(&PromptFile::Texts) {
        texts = read_texts(language, text, Some(&texts), &mut problems);
    }
    let mut tool_texts = read_tool_texts(language, PromptFile::ToolTexts.embedded(language), &mut problems);
    for (tool, text) in &tool_texts {
        if text.description.is_empty() {
            problems.push(tool_problem(
                language,
                tool,
                "has no description",
                "models get no description of the tool",
            ));
        }
    }
    if let Some(text) = overrides.get(&PromptFile::ToolTexts) {
        let replaced = read_tool_texts(language, text, &mut problems);
        lay_over(language, &mut tool_texts, replaced, &mut problems);
    }
    let prompts = Prompts {
        language,
        base: text(PromptFile::Base),
        root: text(PromptFile::Root),
        role: Template::new(text(PromptFile::Role)),
        tool_rules: text(PromptFile::ToolRules),
        hiring: text(PromptFile::Hiring),
        small: text(PromptFile::Small),
        root_small: text(PromptFile::RootSmall),
        texts,
        tool_texts,
    };
    (prompts, problems)
}

/// Returns the name by which problems refer to a file.
pub(crate) fn label(language: Language, file: PromptFile) -> String {
    format!("prompts/{}/{}", language.as_str(), file.name())
}

fn read_texts(
    language: Language,
    text: &str,
    fallback: Option<&Texts>,
    problems: &mut Vec<Problem>,
) -> Texts {
    let file = || label(language, PromptFile::Texts);
    let problem = |place: Place, what: String| {
        let done = "the built-in text is used".to_owned();
        Problem { file: file(), place, severity: Severity::Error, what, done }
    };
    let mut table = toml_file::parse(text).unwrap_or_else(|error| {
        problems.push(problem(error.place, error.what));
        toml::Table::new()
    });
    let type_names = match table.remove("type_names") {
        Some(toml::Value::Table(names)) => flatten("", names, &mut |key, what| {
            problems.push(problem(Place::Pointer(format!("type_names.{key}")), what.to_owned()));
        }),
        Some(_) => {
            problems.push(problem(Place::Pointer("type_names".to_owned()), "must be a table".to_owned()));
            BTreeMap::new()
        }
        None => BTreeMap::new(),
    };
    let named = flatten("", table, &mut |key, what| {
        problems.push(problem(Place::Pointer(key.to_owned()), what.to_owned()));
    });
    let (texts, wrong) = Texts::build(named, type_names, fallback);
    problems.extend(wrong.into_iter().map(|wrong| problem(Place::Whole, wrong.to_string())));
    texts
}

fn read_tool_texts(
    language: Language,
    text: &str,
    problems: &mut Vec<Problem>,
) -> BTreeMap<String, ToolText> {
    const DONE: &str = "the built-in text is used";
    let tools = toml_file::parse(text).unwrap_or_else(|error| {
        let file = label(language, PromptFile::ToolTexts);
        let (done, severity) = (DONE.to_owned(), Severity::Error);
        problems.push(Problem { file, place: error.place, severity, what: error.what, done });
        toml::Table::new()
    });
    let mut texts = BTreeMap::new();
    for (tool, value) in tools {
        let mut wrong = |key: &str, what: &str| problems.push(tool_problem(language, key, what, DONE));
        let toml::Value::Table(mut table) = value else {
            wrong(&tool, "must be a table");
            continue;
        };
        let mut text = ToolText::default();
        match table.remove("description") {
            Some(toml::Value::String(description)) => text.description = description,
            Some(_) => wrong(&format!("{tool}.description"), "must be a string"),
            None => {}
        }
        match table.remove("parameters") {
            Some(toml::Value::Table(parameters)) => {
                text.parameters = flatten("", parameters, &mut |key, what| {
                    wrong(&format!("{tool}.parameters.{key}"), what);
                });
            }
            Some(_) => wrong(&format!("{tool}.parameters"), "must be a table"),
            None => {}
        }
        for key in table.keys() {
            wrong(&format!("{tool}.{key}"), "there is no such field");
        }
        texts.insert(tool, text);
    }
    texts
}

/// Replaces built-in descriptions in `texts` by the descriptions in `over`. If `over` describes a tool or a parameter
/// that has no built-in description, reports that this tool or parameter does not exist.
fn lay_over(
    language: Language,
    texts: &mut BTreeMap<String, ToolText>,
    over: BTreeMap<String, ToolText>,
    problems: &mut Vec<Problem>,
) {
    const DONE: &str = "it has no effect";
    for (tool, replaced) in over {
        let Some(text) = texts.get_mut(&tool) else {
            problems.push(tool_problem(language, &tool, "there is no such tool", DONE));
            continue;
        };
        if !replaced.description.is_empty() {
            text.description = replaced.description;
        }
        for (parameter, description) in replaced.parameters {
            match text.parameters.get_mut(&parameter) {
                Some(built_in) => *built_in = description,
                None => {
                    let key = format!("{tool}.parameters.{parameter}");
                    problems.push(tool_problem(language, &key, "there is no such parameter", DONE));
                }
            }
        }
    }
}

fn tool_problem(language: Language, key: &str, what: &str, done: &str) -> Problem {
    let (file, place) = (label(language, PromptFile::ToolTexts), Place::Pointer(key.to_owned()));
    Problem { file, place, severity: Severity::Error, what: what.to_owned(), done: done.to_owned() }
}

#[cfg(test)]
mod tests;
