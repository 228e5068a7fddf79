//! Reads the answer to `GET {base}/models`, the list of models that every server has. Some servers add facts: vLLM
//! adds the maximum length of a request, and OpenRouter adds the capabilities of each model.

use super::{MAX_MODELS, inputs, name, tokens, words};
use crate::facts::{Facts, Server, Support, find};
use polity_society::content::Capability;
use serde_json::Value;

/// Reads a list of models, and the facts in the list about `model`. Returns `None` if the body is not such a list.
pub(crate) fn read(body: &Value, model: &str) -> Option<Facts> {
    let entries = body.get("data").or_else(|| body.get("models")).unwrap_or(body).as_array()?;
    let entries = entries.get(..MAX_MODELS.min(entries.len()))?;
    let name_of = |entry: &Value| name(entry.get("id")).or_else(|| name(entry.get("name")));
    let models: Vec<String> = entries.iter().filter_map(name_of).collect();
    if models.is_empty() && !entries.is_empty() {
        return None;
    }
    let server = server_of(entries);
    let mut facts = Facts { server, ..Facts::default() };
    let listed = find(&models, server, model).map(str::to_owned);
    // A llama.cpp server with only one model always answers with this model, even if a request contains another name.
    // So the only entry of the list is about the requested model.
    let alone = || (server == Server::LlamaCpp && entries.len() == 1).then(|| entries.first()).flatten();
    let entry = entries.iter().find(|entry| listed.is_some() && name_of(entry) == listed).or_else(alone);
    if let Some(entry) = entry {
        read_entry(entry, &mut facts);
    }
    facts.models = Some(models);
    Some(facts)
}

fn server_of(entries: &[Value]) -> Server {
    let Some(first) = entries.first() else { return Server::Other };
    let owner = first.get("owned_by").and_then(Value::as_str).unwrap_or_default();
    match owner {
        "llamacpp" => Server::LlamaCpp,
        "library" => Server::Ollama,
        "organization_owner" => Server::LmStudio,
        "vllm" => Server::Vllm,
        _ if first.get("max_model_len").is_some() => Server::Vllm,
        _ if first.get("supported_parameters").is_some() && first.get("architecture").is_some() => {
            Server::OpenRouter
        }
        _ => Server::Other,
    }
}

fn read_entry(entry: &Value, facts: &mut Facts) {
    let window = &mut facts.window;
    window.in_force = tokens(entry.get("max_model_len"));
    if facts.server == Server::OpenRouter {
        let offered = entry.pointer("/top_provider/context_length");
        let smaller = [tokens(offered), tokens(entry.get("context_length"))].into_iter().flatten().min();
        window.in_force = smaller;
    }
    window.largest = tokens(entry.pointer("/meta/n_ctx_train")).or(window.in_force);

    if let Some(taken) =
        words(entry.pointer("/architecture/input_modalities")).filter(|taken| !taken.is_empty())
    {
        let named = [
            ("text", Capability::TEXT),
            ("image", Capability::VISION),
            ("audio", Capability::AUDIO),
            ("video", Capability::VIDEO),
        ];
        facts.input = inputs(&taken, &named);
        // If the word `file` is missing, the model can still get files, because OpenRouter itself reads the files for
        // such a model. So do not record that the model lacks this capability.
        if taken.contains(&"file") {
            facts.input.insert(Capability::FILE, Support::Has);
        }
    }
    if let Some(given) =
        words(entry.pointer("/architecture/output_modalities")).filter(|given| !given.is_empty())
    {
        facts.output.insert(Capability::TEXT, Support::when(given.contains(&"text")));
    }
    if let Some(known) = words(entry.get("supported_parameters")).filter(|known| !known.is_empty()) {
        facts.output.insert(Capability::TOOL_CALLING, Support::when(known.contains(&"tools")));
        if known.contains(&"structured_outputs") {
            facts.output.insert(Capability::STRUCTURED_OUTPUT, Support::Has);
        }
    }
}
