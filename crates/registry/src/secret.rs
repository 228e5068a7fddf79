//! Texts of the configuration that may be secret, or that may contain names of environment variables.

use crate::fields;
use polity_llm::{UnsetVariable, expand_variables};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;
use std::fmt;

/// A text that may be secret. `${NAME}` in the text stands for an environment variable. `Debug` and
/// [`SecretText::whence`] do not show the text, unless it is a single `${NAME}`.
#[derive(Clone)]
pub struct SecretText(SecretString);

impl SecretText {
    /// Wraps a text exactly as it is written in the file.
    pub fn new(text: impl Into<String>) -> Self {
        Self(SecretString::from(text.into()))
    }

    /// Reads a text of one line. Each `${` must begin a `${NAME}`.
    pub(crate) fn read(value: Value) -> Result<Self, &'static str> {
        let text = fields::text(value)?;
        if text.chars().any(char::is_control) {
            return Err("must be one line without control characters");
        }
        if text.matches("${").count() != variables(&text).count() {
            return Err("must use ${ only to name an environment variable, such as ${GITHUB_TOKEN}");
        }
        Ok(Self::new(text))
    }

    /// Replaces each `${NAME}` by the value that `variable` returns for the name.
    ///
    /// # Errors
    ///
    /// Fails with the name of the first variable that is not set.
    pub fn resolve(&self, variable: impl Fn(&str) -> Option<String>) -> Result<SecretString, UnsetVariable> {
        expand_variables(self.written(), variable)
    }

    /// Returns what may be shown instead of the text: `none` for an empty text, the text itself if it is a single
    /// `${NAME}`, and `set` for any other text.
    pub fn whence(&self) -> &str {
        whence(self.written())
    }

    pub(crate) fn written(&self) -> &str {
        self.0.expose_secret()
    }
}

impl PartialEq for SecretText {
    fn eq(&self, other: &Self) -> bool {
        self.written() == other.written()
    }
}

impl fmt::Debug for SecretText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretText({})", self.whence())
    }
}

/// Returns what to show instead of a secret: `none` if the secret is empty, the secret itself if it is a single
/// `${NAME}`, and `set` for any other secret.
pub(crate) fn whence(secret: &str) -> &str {
    let is_reference = secret.starts_with("${") && secret.ends_with('}') && secret.matches("${").count() == 1;
    match secret {
        "" => "none",
        reference if is_reference => reference,
        _ => "set",
    }
}

/// Returns the names of all `${NAME}` in a text. Skips invalid names, because an invalid name could be a part of a
/// secret.
pub(crate) fn variables(text: &str) -> impl Iterator<Item = &str> {
    let names = text.split("${").skip(1).filter_map(|rest| rest.split_once('}'));
    names.map(|(name, _)| name).filter(|name| fields::is_variable_name(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_key_is_never_shown() {
        let check = |secret: &str, expect: &str| {
            assert_eq!(whence(secret), expect);
            assert_eq!(format!("{:?}", SecretText::new(secret)), format!("SecretText({expect})"));
        };
        check("", "none");
        check("sk-live-123456", "set");
        check("${OPENAI_API_KEY}", "${OPENAI_API_KEY}");
        check("Bearer ${KEY}", "set");
        check("${A}sk-live${B}", "set");
    }

    #[test]
    fn each_variable_is_replaced_and_an_unset_one_is_named() {
        let lookup = |name: &str| (name == "KEY").then(|| "secret".to_owned());
        let resolved = |text: &str| {
            let resolved = SecretText::new(text).resolve(lookup);
            resolved.map(|text| text.expose_secret().to_owned()).map_err(|UnsetVariable { name }| name)
        };
        assert_eq!(resolved("Bearer ${KEY}, ${KEY}"), Ok("Bearer secret, secret".to_owned()));
        assert_eq!(resolved("$KEY {KEY}"), Ok("$KEY {KEY}".to_owned()));
        assert_eq!(resolved("${KEY}${OTHER}"), Err("OTHER".to_owned()));
        for wrong in [json!("${"), json!("${a b}"), json!("${A"), json!("a\nb"), json!(1)] {
            assert!(SecretText::read(wrong.clone()).is_err(), "{wrong}");
        }
    }
}
