//! Environment variables in texts of the configuration.

use secrecy::SecretString;

/// A text names an environment variable that is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not set")]
pub struct UnsetVariable {
    /// The name of the variable.
    pub name: String,
}

/// Replaces each `${NAME}` with what `variable` returns for the name. If a `${` is not the beginning of a `${NAME}`, it
/// stays as it is.
pub fn expand_variables(
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<SecretString, UnsetVariable> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text.trim();
    while let Some((before, after)) = rest.split_once("${") {
        expanded.push_str(before);
        let named = after.split_once('}').filter(|(name, _)| is_variable_name(name));
        rest = match named {
            Some((name, after)) => {
                let value = variable(name).ok_or_else(|| UnsetVariable { name: name.to_owned() })?;
                expanded.push_str(value.trim());
                after
            }
            None => {
                expanded.push_str("${");
                after
            }
        };
    }
    expanded.push_str(rest);
    Ok(expanded.into())
}

/// Returns whether each `${` of a text begins a `${NAME}`.
pub(crate) fn are_references(text: &str) -> bool {
    text.split("${").skip(1).all(|rest| rest.split_once('}').is_some_and(|(name, _)| is_variable_name(name)))
}

fn is_variable_name(name: &str) -> bool {
    let starts_well = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_');
    starts_well && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}
