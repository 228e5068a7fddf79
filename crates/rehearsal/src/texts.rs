//! The system makes many lines of a request from the texts in `prompts/<language>/texts.toml`: it fills values into a
//! text. This module finds these values in such a line.

use polity_society::text::{Language, TextKey, Texts};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Returns the shipped texts of a language.
pub(crate) fn of(language: Language) -> &'static Texts {
    static CHINESE: LazyLock<Texts> = LazyLock::new(|| parse(include_str!("../../../prompts/zh/texts.toml")));
    static ENGLISH: LazyLock<Texts> = LazyLock::new(|| parse(include_str!("../../../prompts/en/texts.toml")));
    match language {
        Language::Zh => &CHINESE,
        Language::En => &ENGLISH,
    }
}

/// Parses a file of texts. Leaves out a text that cannot be read; no line of a message then matches this text.
fn parse(file: &str) -> Texts {
    let tables: BTreeMap<String, BTreeMap<String, toml::Value>> = toml::from_str(file).unwrap_or_default();
    let mut named = BTreeMap::new();
    for (table, texts) in tables {
        for (key, text) in texts {
            if let toml::Value::String(text) = text {
                named.insert(format!("{table}.{key}"), text);
            }
        }
    }
    Texts::build(named, BTreeMap::new(), None).0
}

/// If the line was made from the text `key`, returns the values of the text's placeholders, in their order.
///
/// If a value itself contains words of the text, the line can be split in several ways. Then the last occurrence of
/// these words counts. This is right because the last values are ids and references, and these never contain such
/// words.
pub(crate) fn captures<'a>(texts: &Texts, key: TextKey, line: &'a str) -> Option<Vec<&'a str>> {
    let mut literals = Vec::new();
    let mut rest = texts.get(key);
    while let Some((before, from_brace)) = rest.split_once('{') {
        literals.push(before);
        (_, rest) = from_brace.split_once('}')?;
    }
    literals.push(rest);

    let (first, between) = literals.split_first()?;
    let Some((last, between)) = between.split_last() else {
        return (line == *first).then(Vec::new);
    };
    let mut line = line.strip_prefix(first)?.strip_suffix(last)?;
    let mut values = Vec::with_capacity(literals.len());
    for literal in between.iter().rev() {
        let (before, value) = line.rsplit_once(literal)?;
        values.push(value);
        line = before;
    }
    values.push(line);
    values.reverse();
    Some(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_texts_of_both_languages_are_there() {
        for &language in Language::ALL {
            for &key in TextKey::ALL {
                assert_ne!(of(language).get(key), key.name(), "{language:?}");
            }
        }
    }

    #[test]
    fn what_is_filled_in_is_captured() {
        let check = |language: Language, key: TextKey, values: &[(&str, &str)]| {
            let line = of(language).fill(key, values);
            let expect: Vec<&str> = values.iter().map(|(_, value)| *value).collect();
            assert_eq!(captures(of(language), key, &line), Some(expect), "{line}");
        };
        for &language in Language::ALL {
            check(language, TextKey::MessageFromAgent, &[("role", "组长（二） (b)"), ("id", "lead-7k2f")]);
            check(language, TextKey::MessageFromUser, &[]);
            check(
                language,
                TextKey::AttachmentLabel,
                &[("filename", "a（1） (2).png"), ("reference", "artifact:a1")],
            );
            check(language, TextKey::MessageReplyHint, &[("id", "user")]);
            let contact = [("id", "root"), ("role", "r"), ("input", "text, vision"), ("output", "text")];
            check(language, TextKey::SystemContact, &contact);
        }
    }

    #[test]
    fn other_lines_are_not_captured() {
        let check =
            |line: &str| assert_eq!(captures(of(Language::Zh), TextKey::MessageFromAgent, line), None);
        check("");
        check("【来自用户的消息】");
        check("｜ 【来自 组长（lead-7k2f）的消息】");
        check("【来自 组长");
    }
}
