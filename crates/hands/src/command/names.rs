//! The names of the tools, and the errors that name them.

use polity_society::refusal::Refusal;

/// Runs a command.
pub(super) const BASH: &str = "bash";

/// Shows what a background command prints.
pub(super) const BASH_OUTPUT: &str = "bash_output";

/// Ends a background command.
pub(super) const BASH_STOP: &str = "bash_stop";

/// Says that a tool failed.
pub(super) fn failed(tool: &str, reason: impl Into<String>) -> Refusal {
    Refusal::ToolFailed { tool: tool.to_owned(), reason: reason.into() }
}
