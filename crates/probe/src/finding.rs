//! The findings of an examination, with advice.

use serde::Serialize;
use std::fmt;
use strum::{IntoStaticStr, VariantArray};

/// How bad a finding is, ordered from harmless to serious.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, VariantArray, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Severity {
    /// All is well.
    Ok,
    /// The service works, but could be better.
    Hint,
    /// The service works, but probably not as intended.
    Warning,
    /// The service does not work.
    Problem,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.into())
    }
}

/// One result of an examination. A finding never contains an API key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad the finding is. Callers may choose a colour or an exit code by the severity.
    pub severity: Severity,
    /// The kind of finding as a word for programs, such as `model_missing`.
    pub code: &'static str,
    /// What was found, as a text for people.
    pub what: String,
    /// What to do about the finding, as a text for people; absent if all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
    /// The field of the declaration that must be corrected to settle the finding. Absent if no correction can settle
    /// it.
    #[serde(skip)]
    pub settled_by: Option<Field>,
}

/// A field of a service that a correction can change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, IntoStaticStr)]
pub enum Field {
    /// The list of inputs.
    #[strum(serialize = "capabilities.input")]
    Input,
    /// The list of outputs.
    #[strum(serialize = "capabilities.output")]
    Output,
    /// The context window.
    #[strum(serialize = "contextWindow")]
    Window,
}

impl Field {
    /// Returns the name of the field in `llmservices.json`.
    pub fn name(self) -> &'static str {
        self.into()
    }
}

impl Finding {
    /// Makes a finding with [`Severity::Ok`], which has no advice.
    pub fn ok(code: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, code, what: what.into(), advice: None, settled_by: None }
    }

    /// Makes a finding with [`Severity::Hint`]: the service works, but could be better.
    pub fn hint(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            severity: Severity::Hint,
            code,
            what: what.into(),
            advice: Some(advice.into()),
            settled_by: None,
        }
    }

    /// Makes a finding with [`Severity::Warning`]: the service works, but probably not as intended.
    pub fn warning(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            code,
            what: what.into(),
            advice: Some(advice.into()),
            settled_by: None,
        }
    }

    /// Makes a finding with [`Severity::Problem`]: the service does not work.
    pub fn problem(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            severity: Severity::Problem,
            code,
            what: what.into(),
            advice: Some(advice.into()),
            settled_by: None,
        }
    }

    /// Names the field whose correction settles the finding.
    pub(crate) fn settled_by(self, field: Field) -> Self {
        Self { settled_by: Some(field), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_a_severity_as_json_does() {
        for severity in Severity::VARIANTS {
            assert_eq!(serde_json::json!(severity), severity.to_string());
        }
    }
}
