//! Reads and checks the arguments of `str_replace_editor`.

use crate::arguments::{self, Argued};
use crate::call::Arguments as Written;
use crate::files::desk::{missing, refused};
use crate::files::edit::Edit;
use crate::views::Change as Kind;
use polity_society::refusal::Refusal;
use polity_society::written::{list, says_something, with_synonyms};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Command {
    View,
    Create,
    StrReplace,
    Insert,
}

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    command: Command,
    path: String,
    file_text: Option<String>,
    old_str: Option<String>,
    new_str: Option<String>,
    insert_line: Option<usize>,
    view_range: Option<Vec<i64>>,
}

impl Argued for Arguments {
    const NAMES: &'static [&'static str] =
        &["command", "path", "file_text", "old_str", "new_str", "insert_line", "view_range"];
}

/// Models sometimes use the name that an argument has in a similar tool. Each pair holds such a name and the name that
/// the argument has in this tool.
const SYNONYMS: &[(&str, &str)] = &[
    ("file_path", "path"),
    ("content", "file_text"),
    ("old_string", "old_str"),
    ("new_string", "new_str"),
    ("insert_text", "new_str"),
];

/// What a call asks for: a view or a change.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    View { path: String, range: Option<[i64; 2]> },
    Change { path: String, change: Change },
}

/// A change, with the texts as the model wrote them.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Change {
    Create { text: String },
    Replace { old: String, new: String },
    Insert { after: usize, text: String },
}

impl Change {
    pub(super) fn edit(&self) -> Edit<'_> {
        match self {
            Self::Create { text } => Edit::Create(text),
            Self::Replace { old, new } => Edit::Replace { old, new },
            Self::Insert { after, text } => Edit::Insert { after: *after, text },
        }
    }

    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Create { .. } => Kind::Create,
            Self::Replace { .. } => Kind::Replace,
            Self::Insert { .. } => Kind::Insert,
        }
    }
}

impl Wanted {
    pub(super) fn read(written: &Written) -> Result<Self, Refusal> {
        let given: Arguments = arguments::read(&tidied(written))?;
        let Arguments { command, path, file_text, old_str, new_str, insert_line, view_range } = given;
        let text_of = |text: Option<String>, name| text.ok_or_else(|| missing(name));
        let change = match command {
            Command::View => {
                let range = view_range.as_deref().map(range).transpose()?;
                return Ok(Self::View { path, range });
            }
            Command::Create => Change::Create { text: text_of(file_text, "file_text")? },
            Command::StrReplace => {
                // A missing `new_str` means that the old text is removed.
                Change::Replace { old: text_of(old_str, "old_str")?, new: new_str.unwrap_or_default() }
            }
            Command::Insert => Change::Insert {
                after: insert_line.ok_or_else(|| missing("insert_line"))?,
                text: text_of(new_str, "new_str")?,
            },
        };
        Ok(Self::Change { path, change })
    }
}

fn range(written: &[i64]) -> Result<[i64; 2], Refusal> {
    match written {
        &[first, last] if first >= 1 && (last == -1 || last >= first) => Ok([first, last]),
        _ => Err(refused("view_range", "give [first, last] from 1 on; last -1 is the end")),
    }
}

/// Replaces synonyms of argument names. For arguments that hold numbers, also drops empty values and reads numbers
/// that a model wrote as text.
fn tidied(written: &Written) -> Written {
    let (mut tidied, _) = with_synonyms(written.clone(), SYNONYMS);
    tidied.retain(|name, value| !is_numeric(name) || says_something(value));
    for value in tidied.iter_mut().filter(|(name, _)| is_numeric(name)).map(|(_, value)| value) {
        if let Some(range) = list(value) {
            *value = Value::Array(range);
        } else if let Some(number) = value.as_str().and_then(|text| text.trim().parse::<u64>().ok()) {
            *value = number.into();
        }
    }
    tidied
}

/// Returns whether an argument holds numbers. The other arguments are used exactly as written.
fn is_numeric(name: &str) -> bool {
    let name = name.to_lowercase().replace(['_', '-'], "");
    matches!(name.as_str(), "insertline" | "viewrange")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn wanted(arguments: &Value) -> Result<Wanted, Refusal> {
        Wanted::read(arguments.as_object().unwrap())
    }

    #[test]
    fn calls_are_read_in_the_words_of_many_models() {
        let check =
            |arguments: Value, expect: Wanted| assert_eq!(wanted(&arguments), Ok(expect), "{arguments}");
        let view = |range| Wanted::View { path: "a".to_owned(), range };
        let change = |change| Wanted::Change { path: "a".to_owned(), change };
        let (old, new) = ("o".to_owned(), "n".to_owned());
        check(json!({"command": "view", "path": "a"}), view(None));
        check(json!({"command": "view", "path": "a", "view_range": [2, -1]}), view(Some([2, -1])));
        check(json!({"command": "view", "path": "a", "viewRange": "[2, 5]"}), view(Some([2, 5])));
        check(
            json!({"command": "view", "path": "a", "view_range": [], "old_str": "", "insert_line": ""}),
            view(None),
        );
        check(
            json!({"command": "create", "path": "a", "file_text": "n"}),
            change(Change::Create { text: new.clone() }),
        );
        check(
            json!({"command": "create", "path": "a", "content": ""}),
            change(Change::Create { text: String::new() }),
        );
        check(
            json!({"command": "create", "path": "a", "file_text": "12"}),
            change(Change::Create { text: "12".to_owned() }),
        );
        check(
            json!({"command": "str_replace", "file_path": "a", "old_string": "o", "newString": "n"}),
            change(Change::Replace { old: old.clone(), new: new.clone() }),
        );
        check(
            json!({"command": "str_replace", "path": "a", "old_str": "o"}),
            change(Change::Replace { old, new: String::new() }),
        );
        check(
            json!({"command": "insert", "path": "a", "insert_line": "0", "insert_text": "n"}),
            change(Change::Insert { after: 0, text: new }),
        );
    }

    #[test]
    fn what_is_missing_is_named() {
        let check = |arguments: Value, expect: &str| {
            let refusal = format!("{:?}", wanted(&arguments).unwrap_err());
            assert!(refusal.contains(expect), "{arguments}: {refusal}");
        };
        check(json!({"path": "a"}), "command");
        check(json!({"command": "view"}), "path");
        check(json!({"command": "delete", "path": "a"}), "unknown variant `delete`");
        check(json!({"command": "create", "path": "a"}), "file_text");
        check(json!({"command": "str_replace", "path": "a", "new_str": "x"}), "old_str");
        check(json!({"command": "insert", "path": "a", "new_str": "x"}), "insert_line");
        check(json!({"command": "insert", "path": "a", "insert_line": 1}), "new_str");
        check(json!({"command": "insert", "path": "a", "insert_line": -1, "new_str": "x"}), "insert_line");
        for range in [json!([0, 1]), json!([3, 2]), json!([-1, -1]), json!([1]), json!("all")] {
            check(json!({"command": "view", "path": "a", "view_range": range}), "view_range");
        }
    }
}
