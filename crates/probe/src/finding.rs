//! What was found, and what to do about it.

use serde::Serialize;
use std::fmt;

/// How bad something is that was found. In this order, the worst last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// All is well.
    Ok,
    /// It could be better.
    Hint,
    /// It works, but not as it seems to be meant.
    Warning,
    /// It does not work.
    Problem,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ok => "ok",
            Self::Hint => "hint",
            Self::Warning => "warning",
            Self::Problem => "problem",
        })
    }
}

/// One thing that was found. It never holds a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// A word for programs that says what sort of finding it is.
    pub code: &'static str,
    /// What was found.
    pub what: String,
    /// What to do; nothing where all is well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

impl Finding {
    /// Something that is as it should be.
    pub fn ok(code: &'static str, what: impl Into<String>) -> Self {
        Self { severity: Severity::Ok, code, what: what.into(), advice: None }
    }

    /// Something that could be better.
    pub fn hint(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Hint, code, what: what.into(), advice: Some(advice.into()) }
    }

    /// Something that is not as it seems to be meant.
    pub fn warning(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, code, what: what.into(), advice: Some(advice.into()) }
    }

    /// Something that does not work.
    pub fn problem(code: &'static str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { severity: Severity::Problem, code, what: what.into(), advice: Some(advice.into()) }
    }
}
