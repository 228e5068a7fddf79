//! Changes the language in the text of `app.json`. Everything else in the text stays the same, byte for byte.

use crate::fields;
use crate::files::DEFAULT_SETTINGS;
use crate::settings;
use jsonc_parser::ast::Value;
use jsonc_parser::common::Ranged;
use jsonc_parser::{CollectOptions, CommentCollectionStrategy, ParseOptions, parse_to_ast};
use polity_society::text::Language;

/// The first line of the default `app.json` if somebody has chosen its language. It shows the choice, because the
/// language of the file stays the same.
const CHOSEN: &str = "// Somebody has chosen the language of this file.\n";

/// Returns whether somebody has chosen the language that the text of `app.json` names. polity itself writes the default
/// file, so nobody has chosen the language in it. The same holds for the default file of another version, and for a
/// default file in which only other settings were changed: all of them begin as the default file does.
pub fn language_is_chosen(text: &str) -> bool {
    let names_one =
        fields::parse_object(settings::FILE, text).is_ok_and(|root| root.contains_key("language"));
    names_one && !text.starts_with(default_beginning())
}

/// Returns the beginning of the default `app.json`, up to the language, which comes before the first empty line.
fn default_beginning() -> &'static str {
    DEFAULT_SETTINGS.split("\n\n").next().unwrap_or(DEFAULT_SETTINGS)
}

/// Returns the text of `app.json` with this language as a chosen one; `None` if the text cannot be changed safely.
pub fn with_language(text: &str, language: Language) -> Option<String> {
    let collect = CollectOptions { comments: CommentCollectionStrategy::Off, tokens: false };
    let without_mark = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = text.len() - without_mark.len();
    let parsed = parse_to_ast(without_mark, &collect, &ParseOptions::default()).ok()?;
    let Some(Value::Object(root)) = &parsed.value else { return None };
    let mut named = root.properties.iter().filter(|property| property.name.as_str() == "language");
    let code = language.as_str();
    let changed = match (named.next(), named.next()) {
        (Some(property), None) => {
            let range = property.value.range();
            let (before, rest) = text.split_at_checked(mark + range.start)?;
            let (_, after) = rest.split_at_checked(range.end - range.start)?;
            format!("{before}\"{code}\"{after}")
        }
        (None, _) => {
            let (before, after) = text.split_at_checked(mark + root.range.start + 1)?;
            let comma = if root.properties.is_empty() { "" } else { "," };
            format!("{before}\n  \"language\": \"{code}\"{comma}{after}")
        }
        // The field `language` occurs twice, and it is not clear which one counts.
        (Some(_), Some(_)) => return None,
    };
    let (settings, _) = settings::parse(&changed).ok()?;
    if settings.language != language {
        return None;
    }
    Some(if language_is_chosen(&changed) { changed } else { format!("{CHOSEN}{changed}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_language_changes() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(with_language(text, Language::En).as_deref(), expect, "{text}");
        };
        check(
            "// mine\n{\"language\": \"zh\", // zh or en\n \"discover\": true}\n",
            Some("// mine\n{\"language\": \"en\", // zh or en\n \"discover\": true}\n"),
        );
        check("{}", Some("{\n  \"language\": \"en\"}"));
        check("{\"discover\": true}", Some("{\n  \"language\": \"en\",\"discover\": true}"));
        check("{\"language\": \"zh\", \"language\": \"zh\"}", None);
        check("{", None);
        let changed = with_language(DEFAULT_SETTINGS, Language::En).unwrap();
        assert_eq!(changed, DEFAULT_SETTINGS.replacen("\"language\": \"zh\"", "\"language\": \"en\"", 1));
    }

    #[test]
    fn a_chosen_language_differs_from_the_default_one() {
        assert!(default_beginning().ends_with("\"language\": \"zh\","), "{}", default_beginning());
        let of_other_version = DEFAULT_SETTINGS.replacen("\"maxDepth\": 8", "\"maxDepth\": 9", 1);
        assert_ne!(of_other_version, DEFAULT_SETTINGS);
        for text in [DEFAULT_SETTINGS, of_other_version.as_str(), "{}", "{\"discover\": true}"] {
            assert!(!language_is_chosen(text), "{text}");
            for language in [Language::Zh, Language::En] {
                assert!(language_is_chosen(&with_language(text, language).unwrap()), "{text}");
            }
        }
        assert!(!language_is_chosen("{"));
        assert!(language_is_chosen("{\"language\": \"zh\"}"));
        let chosen = with_language(DEFAULT_SETTINGS, Language::Zh).unwrap();
        assert!(chosen.ends_with(DEFAULT_SETTINGS), "{chosen}");
    }
}
