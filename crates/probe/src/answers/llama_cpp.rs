//! Reads the answer of a llama.cpp server to `GET /props`, which reports how its only model was started.

use super::tokens;
use crate::facts::{Facts, Server, Support};
use polity_society::content::Capability;
use serde_json::Value;

/// Reads the facts about the model; `None` if the answer is not from llama.cpp.
pub(crate) fn read(body: &Value) -> Option<Facts> {
    let settings = body.get("default_generation_settings")?.as_object()?;
    let mut facts = Facts { server: Server::LlamaCpp, ..Facts::default() };
    facts.window.in_force = tokens(settings.get("n_ctx"));
    for (word, capability) in [("vision", Capability::VISION), ("audio", Capability::AUDIO)] {
        let told = body.pointer(&format!("/modalities/{word}")).and_then(Value::as_bool);
        facts.input.extend(told.map(|has| (capability, Support::when(has))));
    }
    // A model may call tools even if its chat template does not mention them, because newer servers describe the tools
    // in the prompt. So record `HasNot` only if the server itself reports that tools are not supported.
    let template = body.get("chat_template").and_then(Value::as_str).unwrap_or_default();
    let told = body.pointer("/chat_template_caps/supports_tools").and_then(Value::as_bool);
    let has_template = body.get("chat_template_tool_use").is_some_and(Value::is_string);
    if told == Some(true) || has_template || template.contains("tools") {
        facts.output.insert(Capability::TOOL_CALLING, Support::Has);
    } else if told == Some(false) {
        facts.output.insert(Capability::TOOL_CALLING, Support::HasNot);
    }
    Some(facts)
}
