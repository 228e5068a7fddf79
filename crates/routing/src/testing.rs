//! Helpers for the tests of several modules: the shipped texts, and an example artifact.

use polity_society::content::{Artifact, Kind};
use polity_society::id::ArtifactId;
use polity_society::mime::MimeType;
use polity_society::text::{Language, TextProblem, Texts};
use std::collections::BTreeMap;

pub(crate) fn chinese() -> Texts {
    texts(Language::Zh)
}

pub(crate) fn english() -> Texts {
    texts(Language::En)
}

fn tables(language: Language) -> BTreeMap<String, BTreeMap<String, String>> {
    let file = match language {
        Language::Zh => include_str!("../../../prompts/zh/texts.toml"),
        Language::En => include_str!("../../../prompts/en/texts.toml"),
    };
    toml::from_str(file).expect("the shipped texts are tables of strings")
}

/// Returns the MIME types for which the shipped texts of a language have a name.
pub(crate) fn type_names(language: Language) -> Vec<String> {
    let mut tables = tables(language);
    tables.remove("type_names").expect("the shipped texts contain names of types").into_keys().collect()
}

fn texts(language: Language) -> Texts {
    let mut tables = tables(language);
    let type_names = tables.remove("type_names").unwrap_or_default();
    let mut named = BTreeMap::new();
    for (table, texts) in tables {
        named.extend(texts.into_iter().map(|(key, text)| (format!("{table}.{key}"), text)));
    }
    let (texts, problems) = Texts::build(named, type_names, None);
    let ours = |problem: &&TextProblem| {
        let problem = problem.to_string();
        ["`attachment.", "`unreadable.", "`left_out.", "`failure."]
            .iter()
            .any(|table| problem.contains(table))
    };
    assert_eq!(problems.iter().find(ours), None, "the texts of {language:?}");
    texts
}

pub(crate) fn artifact(kind: Kind, mime_type: &str, filename: Option<&str>) -> Artifact {
    Artifact {
        id: ArtifactId::new("abc123"),
        kind,
        mime_type: MimeType::unchecked(mime_type),
        filename: filename.map(str::to_owned),
        label: None,
        size: 1_258_291,
        created_at: 1_700_000_000_123,
        meta: serde_json::Map::new(),
    }
}
