//! Reads the answers of servers without trusting them: values of a wrong type or out of bounds count as missing.

pub(crate) mod list;
pub(crate) mod llama_cpp;
pub(crate) mod lm_studio;
pub(crate) mod ollama;

use crate::facts::Support;
use polity_society::content::Capability;
use serde_json::Value;
use std::collections::BTreeMap;

/// Maximum number of models that are read from one list; the rest is ignored.
const MAX_MODELS: usize = 20_000;
/// Maximum length of the name of a model, in bytes. A longer name counts as missing.
const MAX_NAME: usize = 300;
/// Largest context window that is plausible, in tokens. Larger numbers are ignored.
const MAX_WINDOW: u64 = 1_000_000_000;

/// Reads a number of tokens.
fn tokens(value: Option<&Value>) -> Option<u64> {
    let value = value?;
    let exact = value.as_u64();
    // Some servers write whole numbers with a decimal point, such as `8192.0`, so accept these too.
    let pointed = || value.as_f64().filter(|number| number.fract() == 0.0 && *number > 0.0);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is whole and positive, and the range is checked below"
    )]
    let number = exact.or_else(|| pointed().map(|number| number as u64))?;
    (1..=MAX_WINDOW).contains(&number).then_some(number)
}

/// Reads the name of a model; `None` if it is empty, too long, or contains control characters.
fn name(value: Option<&Value>) -> Option<String> {
    let name = value?.as_str()?.trim();
    let is_fit = !name.is_empty() && name.len() <= MAX_NAME && !name.chars().any(char::is_control);
    is_fit.then(|| name.to_owned())
}

/// Reads the words of a list; `None` if the value is not a list.
fn words(value: Option<&Value>) -> Option<Vec<&str>> {
    Some(value?.as_array()?.iter().filter_map(Value::as_str).collect())
}

/// For each capability in `named`, returns whether `words` contains the server's word for this capability.
fn inputs(words: &[&str], named: &[(&str, Capability)]) -> BTreeMap<Capability, Support> {
    named.iter().map(|(word, capability)| (capability.clone(), Support::when(words.contains(word)))).collect()
}

#[cfg(test)]
mod tests;
