//! The names of the command tools, and the error of a tool that failed.

use polity_society::refusal::Refusal;

/// The name of the tool that runs commands.
pub const BASH: &str = "bash";

pub(super) const BASH_OUTPUT: &str = "bash_output";

pub(super) const BASH_STOP: &str = "bash_stop";

pub(super) fn failed(tool: &str, reason: impl Into<String>) -> Refusal {
    Refusal::ToolFailed { tool: tool.to_owned(), reason: reason.into() }
}
