//! Ollama: `POST /api/show` says what a model can do, `GET /api/ps` how large the windows of loaded models are.

use super::{MAX_MODELS, name, tokens, words};
use crate::facts::{Facts, Server, Support, find};
use polity_society::content::Capability;
use serde_json::Value;

/// What Ollama gives a model that was told nothing else, on machines with little graphics memory. What does not fit it
/// cuts away in silence, so the smallest counts.
pub(crate) const USUAL_WINDOW: u64 = 4_096;

/// Reads what is said of one model.
pub(crate) fn show(body: &Value) -> Option<Facts> {
    let capabilities = words(body.get("capabilities"));
    let info = body.get("model_info").and_then(Value::as_object);
    if capabilities.is_none() && info.is_none() {
        return None;
    }
    let mut facts = Facts { server: Server::Ollama, ..Facts::default() };
    if let Some(words) = capabilities.filter(|words| !words.is_empty()) {
        let has = |word: &str| Support::when(words.contains(&word));
        facts.input.insert(Capability::VISION, has("vision"));
        facts.input.insert(Capability::AUDIO, has("audio"));
        facts.output.insert(Capability::TEXT, has("completion"));
        facts.output.insert(Capability::TOOL_CALLING, has("tools"));
    }
    if let Some(info) = info {
        let architecture = info.get("general.architecture").and_then(Value::as_str).unwrap_or_default();
        facts.window.largest = tokens(info.get(&format!("{architecture}.context_length")));
    }
    // What the model's file sets counts, whatever the server's default is.
    facts.window.in_force = body.get("parameters").and_then(Value::as_str).and_then(set_window);
    Some(facts)
}

/// `num_ctx` among parameters, one a line.
fn set_window(parameters: &str) -> Option<u64> {
    let mut values = parameters.lines().filter_map(|line| line.trim().strip_prefix("num_ctx"));
    let number: u64 = values.next()?.trim().parse().ok()?;
    tokens(Some(&Value::from(number)))
}

/// Reads how large the window of a model is, where it is loaded.
pub(crate) fn running(body: &Value, model: &str) -> Option<u64> {
    let entries = body.get("models")?.as_array()?;
    let entries = entries.get(..MAX_MODELS.min(entries.len()))?;
    let name_of = |entry: &Value| name(entry.get("model")).or_else(|| name(entry.get("name")));
    let models: Vec<String> = entries.iter().filter_map(name_of).collect();
    let loaded = find(&models, Server::Ollama, model)?;
    let entry = entries.iter().find(|entry| name_of(entry).as_deref() == Some(loaded))?;
    tokens(entry.get("context_length"))
}
