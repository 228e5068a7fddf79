//! Reads the answers of Ollama: `POST /api/show` reports the capabilities of a model, and `GET /api/ps` reports the
//! context windows of loaded models.

use super::{MAX_MODELS, name, tokens, words};
use crate::facts::{Facts, Server, Support, find};
use polity_society::content::Capability;
use serde_json::Value;

/// The smallest default context window of Ollama, in tokens. Ollama uses it on machines with little graphics memory.
/// polity assumes this window, because Ollama silently cuts off a request that is too long.
pub(crate) const USUAL_WINDOW: u64 = 4_096;

/// Reads the facts about one model; `None` if the answer is not from Ollama.
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
    // A window that is set in the model's own file overrides the server's default.
    facts.window.in_force = body.get("parameters").and_then(Value::as_str).and_then(set_window);
    Some(facts)
}

/// Returns the value of `num_ctx`. `parameters` has one parameter per line, such as `num_ctx 8192`.
fn set_window(parameters: &str) -> Option<u64> {
    let mut values = parameters.lines().filter_map(|line| line.trim().strip_prefix("num_ctx"));
    let number: u64 = values.next()?.trim().parse().ok()?;
    tokens(Some(&Value::from(number)))
}

/// Reads the context window of a model; `None` if the model is not loaded.
pub(crate) fn running(body: &Value, model: &str) -> Option<u64> {
    let entries = body.get("models")?.as_array()?;
    let entries = entries.get(..MAX_MODELS.min(entries.len()))?;
    let name_of = |entry: &Value| name(entry.get("model")).or_else(|| name(entry.get("name")));
    let models: Vec<String> = entries.iter().filter_map(name_of).collect();
    let loaded = find(&models, Server::Ollama, model)?;
    let entry = entries.iter().find(|entry| name_of(entry).as_deref() == Some(loaded))?;
    tokens(entry.get("context_length"))
}
