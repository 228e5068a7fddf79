//! Reads the language of the person from the environment.

use polity_registry::{config_text, language_is_chosen};
use polity_society::text::Language;
use std::path::Path;

/// Returns the language that the locale of this process names; nothing if it names none.
pub(crate) fn language() -> Option<Language> {
    language_in(|name| std::env::var(name).ok())
}

/// Returns a line about the language of all texts, if nobody has chosen one in this configuration directory, and the
/// default is not the language of the person.
pub(crate) fn unchosen(config_dir: &Path) -> Option<String> {
    let path = config_dir.join("app.json");
    let is_chosen = || config_text(&path).is_ok_and(|text| language_is_chosen(&text));
    if language() != Some(Language::En) || Language::default() != Language::Zh || is_chosen() {
        return None;
    }
    Some(format!(
        "texts are in Chinese, because nobody has chosen a language: run polity without arguments, or set \
         \"language\": \"en\" in {}",
        path.display()
    ))
}

/// Returns the language that the locale in the environment names; nothing if it names none. `variable` looks up an
/// environment variable.
fn language_in(variable: impl Fn(&str) -> Option<String>) -> Option<Language> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let locale = set("LC_ALL").or_else(|| set("LC_MESSAGES")).or_else(|| set("LANG"))?;
    let name = locale.split(['_', '.', '@', '-']).next().unwrap_or_default().to_ascii_lowercase();
    match name.as_str() {
        "c" | "posix" => None,
        "zh" => Some(Language::Zh),
        _ => Some(Language::En),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_language_of_a_locale() {
        let check = |variables: &[(&str, &str)], expect: Option<Language>| {
            let variable = |name: &str| {
                let set = variables.iter().find(|(variable, _)| *variable == name);
                set.map(|(_, value)| (*value).to_owned())
            };
            assert_eq!(language_in(variable), expect, "{variables:?}");
        };
        check(&[], None);
        check(&[("LANG", "C.UTF-8")], None);
        check(&[("LANG", "zh_CN.UTF-8")], Some(Language::Zh));
        check(&[("LANG", "de_DE.UTF-8")], Some(Language::En));
        check(&[("LANG", "zh_CN"), ("LC_ALL", "en_US.UTF-8")], Some(Language::En));
        check(&[("LANG", "zh_CN"), ("LC_ALL", "")], Some(Language::Zh));
    }
}
