//! Reads the answer of LM Studio to `GET /api/v0/models`, which reports the type and the state of each model.

use super::{MAX_MODELS, name, tokens, words};
use crate::facts::{Facts, Server, Support, find};
use polity_society::content::Capability;
use serde_json::Value;

/// Reads the facts about one model; `None` if the answer is not from LM Studio.
pub(crate) fn read(body: &Value, model: &str) -> Option<Facts> {
    let entries = body.get("data")?.as_array()?;
    let entries = entries.get(..MAX_MODELS.min(entries.len()))?;
    // Only LM Studio reports both the type and the state of a model, so any other answer is from another server.
    if !entries.iter().any(|entry| entry.get("type").is_some() && entry.get("state").is_some()) {
        return None;
    }
    let models: Vec<String> = entries.iter().filter_map(|entry| name(entry.get("id"))).collect();
    let listed = find(&models, Server::LmStudio, model).map(str::to_owned);
    let entry = entries.iter().find(|entry| listed.is_some() && name(entry.get("id")) == listed);
    let mut facts = Facts { server: Server::LmStudio, models: Some(models), ..Facts::default() };
    let Some(entry) = entry else { return Some(facts) };
    match entry.get("type").and_then(Value::as_str) {
        Some("vlm") => {
            facts.input.insert(Capability::VISION, Support::Has);
            facts.output.insert(Capability::TEXT, Support::Has);
        }
        Some("llm") => {
            facts.input.insert(Capability::VISION, Support::HasNot);
            facts.output.insert(Capability::TEXT, Support::Has);
        }
        Some("embeddings") => {
            facts.output.insert(Capability::TEXT, Support::HasNot);
        }
        Some(_) | None => {}
    }
    // `HasNot` is never recorded, because a model without `tool_use` may call tools too. LM Studio describes the tools
    // in the prompt for models that were not trained for tools.
    if words(entry.get("capabilities")).is_some_and(|words| words.contains(&"tool_use")) {
        facts.output.insert(Capability::TOOL_CALLING, Support::Has);
    }
    facts.window.in_force = tokens(entry.get("loaded_context_length"));
    facts.window.largest = tokens(entry.get("max_context_length"));
    Some(facts)
}
