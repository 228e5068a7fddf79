//! Reads what servers answer. Nothing here trusts them: what is missing, of another type or out of bounds is not told.

pub(crate) mod list;
pub(crate) mod llama_cpp;
pub(crate) mod lm_studio;
pub(crate) mod ollama;

use crate::facts::Support;
use polity_society::content::Capability;
use serde_json::Value;
use std::collections::BTreeMap;

/// The most models of a list that are looked at.
const MAX_MODELS: usize = 20_000;
/// The longest name of a model.
const MAX_NAME: usize = 300;
/// The largest context window that is believed.
const MAX_WINDOW: u64 = 1_000_000_000;

/// A number of tokens.
fn tokens(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    let exact = value.as_u64();
    // Some servers write whole numbers with a point.
    let pointed = || value.as_f64().filter(|number| number.fract() == 0.0 && *number > 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "whole, positive, and bounded below"
    )]
    let number = exact.or_else(|| pointed().map(|number| number as u64))?;
    (1..=MAX_WINDOW).contains(&number).then_some(number)
}

/// The name of a model, where it can be shown.
fn name(value: Option<&Value>) -> Option<String> {
    let name = value?.as_str()?.trim();
    let is_fit = !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    is_fit.then(|| name.to_owned())
}

/// The words of a list; nothing where it is none.
fn words(value: Option<&Value>) -> Option<Vec<&str>> {
    Some(value?.as_array()?.iter().filter_map(Value::as_str).collect())
}

/// Which of these inputs a model takes, by the words for them.
fn inputs(words: &[&str], named: &[(&str, Capability)]) -> BTreeMap<Capability, Support> {
    named.iter().map(|(word, capability)| (capability.clone(), Support::when(words.contains(word)))).collect()
}

#[cfg(test)]
mod tests;
