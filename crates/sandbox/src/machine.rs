//! Describes which level of sandbox a machine can enforce.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// How strictly a sandbox separates a command from the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// No sandbox. Only the limits are enforced.
    None,
    /// The command runs in the namespaces of the host; only Landlock and seccomp restrict it.
    Partial,
    /// The command runs in its own namespaces, which bubblewrap makes. Seccomp also restricts the command, and so does
    /// Landlock if the kernel has it.
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

/// What this machine can enforce, according to [`probe`](crate::probe).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    /// The highest level that works.
    pub level: Level,
    /// Path of bubblewrap, if it works.
    pub bubblewrap: Option<PathBuf>,
    /// Whether bubblewrap can mount a separate `/proc` for the sandbox. In some containers, it cannot.
    pub proc: OwnProc,
    /// Version of the kernel's Landlock interface; 0 means none.
    pub landlock: u32,
    /// The control group that the system has delegated to this process, if there is one. In it, the kernel enforces
    /// limits on memory and processes.
    pub delegated: Option<PathBuf>,
    /// Version of the kernel, such as `(6, 8)`.
    pub kernel: (u32, u32),
    /// What the person should know: what is missing, and how to raise the level.
    pub findings: Vec<Finding>,
}

impl Machine {
    /// Returns this machine with its level lowered to `level`, unless its level is lower already.
    pub fn at_most(&self, level: Level) -> Self {
        Self { level: self.level.min(level), ..self.clone() }
    }
}

/// Whether the sandbox gets its own `/proc`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum OwnProc {
    /// The sandbox has a `/proc` that shows only its own processes.
    Mounted,
    /// The sandbox has no `/proc`, because the system refuses to mount one.
    Absent,
}

/// A sentence that tells the person something about the machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was found.
    pub text: String,
    /// What the person can do about it, if anything.
    pub advice: Option<String>,
}

impl Finding {
    /// Makes a finding that needs no action.
    pub(crate) fn note(text: impl Into<String>) -> Self {
        Self { text: text.into(), advice: None }
    }

    /// Makes a finding with advice.
    pub(crate) fn with_advice(text: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { text: text.into(), advice: Some(advice.into()) }
    }
}
