//! Checks that the prompts describe exactly the tools and parameters that exist.

use crate::testing::snapshot;
use crate::testing::tool::{shipped_hands, shipped_names};
use crate::tools::{Asker, Offering, ToolCache, offered, offered_outside};
use polity_decide::arguments::NAMES;
use polity_registry::Snapshot;
use polity_society::rules::Rights;
use polity_society::text::Language;
use polity_society::tool_group::Grant;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

async fn in_language(language: Language) -> Arc<Snapshot> {
    snapshot(&json!({"language": language})).await
}

/// Collects the paths of all parameters in a schema, except parameters inside `oneOf` and `anyOf`.
fn parameters(schema: &Value, path: &str, found: &mut BTreeSet<String>) {
    let schema = schema.get("items").unwrap_or(schema);
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return;
    };
    for (name, property) in properties {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        found.insert(path.clone());
        parameters(property, &path, found);
    }
}

/// The prompts must list each parameter. Its description may be empty if the name of the parameter says enough.
#[tokio::test]
async fn every_tool_is_described_and_every_parameter_has_its_place() {
    for &language in Language::ALL {
        let snapshot = in_language(language).await;
        let prompts = &snapshot.prompts;
        let described: BTreeSet<&str> = prompts.tool_texts.keys().map(String::as_str).collect();
        let outside = shipped_names();
        let all = NAMES.iter().copied().chain(outside.iter().map(String::as_str));
        assert_eq!(described, all.collect(), "{language:?}");
        let rights = Rights::of(&Grant::everything(), &[]);
        let hands = shipped_hands();
        let asker = Asker { rights: &rights, role: "", snapshot: &snapshot, hands: &hands };
        let outside = offered_outside(asker, &Offering::default(), &ToolCache::default());
        for tool in offered(asker, &ToolCache::default()).into_iter().chain(outside) {
            assert!(!tool.description.trim().is_empty(), "{language:?}: {}", tool.name);
            let mut there = BTreeSet::new();
            parameters(&tool.parameters, "", &mut there);
            let said = prompts.tool_texts[&tool.name].parameters.keys().cloned().collect();
            assert_eq!(there, said, "{language:?}: {}", tool.name);
        }
    }
}

#[tokio::test]
async fn texts_that_are_shown_as_they_are_have_no_placeholders() {
    for &language in Language::ALL {
        let prompts = &in_language(language).await.prompts;
        let texts = [
            &prompts.base,
            &prompts.root,
            &prompts.tool_rules,
            &prompts.hiring,
            &prompts.small,
            &prompts.root_small,
        ];
        for text in texts {
            let template = polity_society::text::Template::new(text.as_str());
            assert_eq!(template.placeholders(), [""; 0], "{language:?}");
        }
    }
}
