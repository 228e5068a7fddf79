//! What a machine can enforce.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The level of the sandbox.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// No sandbox. Only the limits are enforced.
    None,
    /// Landlock and seccomp in the namespaces of the host.
    Partial,
    /// Own namespaces made by bubblewrap, then seccomp, and Landlock where the kernel has it.
    Full,
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::None => "none",
            Self::Partial => "partial",
            Self::Full => "full",
        })
    }
}

/// What this machine can enforce, as [`probe`](crate::probe) found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The highest level that works.
    pub level: Level,
    /// Path of bubblewrap, if it works.
    pub bubblewrap: Option<PathBuf>,
    /// Whether bubblewrap can mount a separate `/proc` for the sandbox. In some containers it cannot.
    pub proc: OwnProc,
    /// Version of the kernel's Landlock interface; 0 means none.
    pub landlock: u32,
    /// Version of the kernel, such as `(6, 8)`.
    pub kernel: (u32, u32),
    /// Sentences for the person: what is missing, and how to raise the level.
    pub findings: Vec<Finding>,
}

impl Machine {
    /// The same machine, but used at this level or at a lower level.
    pub fn at_most(&self, level: Level) -> Self {
        Self { level: self.level.min(level), ..self.clone() }
    }
}

/// Whether the sandbox gets its own `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OwnProc {
    /// A `/proc` that shows only the processes of the sandbox.
    Mounted,
    /// No `/proc` at all, because the system refuses to mount one.
    Absent,
}

/// A sentence about the machine for the person.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was found.
    pub text: String,
    /// What the person can do about it, if anything.
    pub advice: Option<String>,
}

impl Finding {
    /// A finding that needs no action.
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None }
    }

    /// A finding with advice.
    pub(crate) fn with_advice(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { text: text.into(), advice: Some(advice.into()) }
    }
}
