//! Templates of the texts that models and people read. The texts are in `prompts/<language>/texts.toml`. Their keys and
//! placeholders are declared in code, so that polity finds a missing text or a misspelt key when it loads the file.

mod key;

pub use key::TextKey;

use crate::form::Form;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use strum::{IntoStaticStr, VariantArray};

/// The language of everything that polity writes for models and people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Language {
    /// Chinese.
    #[default]
    Zh,
    /// English.
    En,
}

impl Language {
    /// All languages.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name of the language in `app.json`, which is also the name of its directory of prompts.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

/// A text with `{placeholders}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(String);

impl Template {
    /// Wraps a text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text with its placeholders.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Replaces each name in braces by its value. If `values` has no value for a name, the name and its braces stay as
    /// they are. Inserted values are not scanned again, so a value that contains `{id}` stays as it is, too.
    pub fn fill(&self, values: &[(&str, &str)]) -> String {
        let mut filled = String::with_capacity(self.0.len());
        let mut rest = self.0.as_str();
        while let Some(open) = rest.find('{') {
            let (before, from_brace) = rest.split_at(open);
            filled.push_str(before);
            let value = from_brace.find('}').and_then(|close| {
                let name = &from_brace[1..close];
                let (_, value) = values.iter().find(|(key, _)| *key == name)?;
                Some((close, *value))
            });
            match value {
                Some((close, value)) => {
                    filled.push_str(value);
                    rest = &from_brace[close + 1..];
                }
                None => {
                    filled.push('{');
                    rest = &from_brace[1..];
                }
            }
        }
        filled.push_str(rest);
        filled
    }

    /// Returns the names in braces, such as `id` in `{id}`.
    pub fn placeholders(&self) -> Vec<&str> {
        let is_name =
            |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let pieces = self.0.split('{').skip(1);
        pieces.filter_map(|piece| piece.split_once('}').map(|(name, _)| name)).filter(is_name).collect()
    }
}

/// A problem in a file `texts.toml`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextProblem {
    /// The file contains a key that is not the key of any text.
    #[error("there is no text named `{0}`")]
    UnknownKey(String),
    /// The file lacks a text, and there is no fallback.
    #[error("the text `{0}` is missing")]
    Missing(&'static str),
    /// A text contains a placeholder that is never filled in.
    #[error("the text `{key}` has a placeholder `{{{placeholder}}}`, which is not one of its own")]
    UnknownPlaceholder {
        /// The name of the text, as in `texts.toml`.
        key: &'static str,
        /// The unknown name in braces.
        placeholder: String,
    },
}

/// The lines that only the system writes. Lines that begin with `【` are recognised without this list.
const OF_THE_SYSTEM: [TextKey; 10] = [
    TextKey::MessageFromAgent,
    TextKey::MessageFromUser,
    TextKey::MessageFromSystem,
    TextKey::MessageKindRequest,
    TextKey::MessageKindAnswer,
    TextKey::MessageKindSupplement,
    TextKey::MessageKindReport,
    TextKey::MessageSelfIntroduction,
    TextKey::MessageReplyHint,
    TextKey::ToolQuoted,
];

/// All texts of one language.
#[derive(Clone, Debug)]
pub struct Texts {
    templates: Vec<Template>,
    type_names: BTreeMap<String, String>,
    /// The forms of the lines that only the system writes. Each message is compared with them.
    forms: Vec<Form>,
}

impl Texts {
    /// Builds the texts of a language from the contents of its file `texts.toml`. `named` maps the name of each key to
    /// its text. `type_names` maps each MIME type to the word for this type. If a text is missing or unusable, takes it
    /// from `fallback`. Also returns all problems. A missing text is a problem only if `fallback` is `None`.
    pub fn build(
        mut named: BTreeMap<String, String>,
        type_names: BTreeMap<String, String>,
        fallback: Option<&Self>,
    ) -> (Self, Vec<TextProblem>) {
        let mut problems = Vec::new();
        let mut templates = Vec::with_capacity(TextKey::ALL.len());
        for &key in TextKey::ALL {
            let given = named.remove(key.name()).map(Template::new);
            if given.is_none() && fallback.is_none() {
                problems.push(TextProblem::Missing(key.name()));
            }
            let usable = given.filter(|template| {
                let unknown =
                    template.placeholders().into_iter().find(|name| !key.placeholders().contains(name));
                if let Some(placeholder) = unknown {
                    let placeholder = placeholder.to_owned();
                    problems.push(TextProblem::UnknownPlaceholder { key: key.name(), placeholder });
                }
                unknown.is_none()
            });
            let otherwise =
                || fallback.map_or_else(|| Template::new(key.name()), |texts| texts.template(key).clone());
            templates.push(usable.unwrap_or_else(otherwise));
        }
        problems.extend(named.into_keys().map(TextProblem::UnknownKey));
        let mut all_type_names = fallback.map(|texts| texts.type_names.clone()).unwrap_or_default();
        all_type_names.extend(type_names);
        let mut texts = Self { templates, type_names: all_type_names, forms: Vec::new() };
        texts.forms = texts.system_forms();
        (texts, problems)
    }

    /// Returns the forms of the texts in `OF_THE_SYSTEM`, and the forms that the text `message.header_forms` lists.
    fn system_forms(&self) -> Vec<Form> {
        let own = OF_THE_SYSTEM.into_iter().filter_map(|key| {
            let template = self.template(key);
            let mut pieces = vec![template.as_str()];
            for name in template.placeholders() {
                let last = pieces.pop().unwrap_or_default();
                pieces.extend(last.splitn(2, &format!("{{{name}}}")));
            }
            Form::of(pieces)
        });
        let named = self.get(TextKey::MessageHeaderForms).lines();
        own.chain(named.filter_map(|line| Form::of(line.split('…').collect()))).collect()
    }

    /// Returns the forms of the lines that only the system writes.
    pub(crate) fn forms(&self) -> &[Form] {
        &self.forms
    }

    /// Returns the template of a key.
    pub fn template(&self, key: TextKey) -> &Template {
        // Cannot fail: `build` makes one template per key, in the order of the keys.
        &self.templates[key as usize]
    }

    /// Returns the text of a key that has no placeholders.
    pub fn get(&self, key: TextKey) -> &str {
        self.template(key).as_str()
    }

    /// Returns the text of a key with the values filled in.
    pub fn fill(&self, key: TextKey, values: &[(&str, &str)]) -> String {
        self.template(key).fill(values)
    }

    /// Returns what people call a MIME type, or the MIME type itself if the texts have no word for it.
    pub fn type_name<'a>(&'a self, mime_type: &'a str) -> &'a str {
        self.type_names.get(mime_type).map_or(mime_type, String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filling_in() {
        let check = |template: &str, expect: &str| {
            let filled = Template::new(template).fill(&[("id", "a-1"), ("role", "{id} 读者")]);
            assert_eq!(filled, expect);
        };
        check("【来自 {role}（{id}）的消息】", "【来自 {id} 读者（a-1）的消息】");
        check("{unknown} {id", "{unknown} {id");
        check("{{id}}", "{a-1}");
        check("", "");
    }

    #[test]
    fn problems_are_collected_and_the_fallback_stands_in() {
        let name = TextKey::MessageFromUser.name().to_owned();
        let with = |text: &str| BTreeMap::from([(name.clone(), text.to_owned())]);
        let (base, problems) = Texts::build(with("user says"), BTreeMap::new(), None);
        assert_eq!(problems.len(), TextKey::ALL.len() - 1);
        let mut named = with("{nobody} says");
        named.insert("message.typo".into(), String::new());
        let (texts, problems) = Texts::build(named, BTreeMap::new(), Some(&base));
        assert_eq!(texts.get(TextKey::MessageFromUser), "user says");
        assert_eq!(problems.len(), 2, "{problems:?}");
    }
}
