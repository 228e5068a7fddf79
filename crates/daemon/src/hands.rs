//! The tools of agents that act outside the society.

use polity_hands::shipped::shipped;
use polity_hands::table::Hands;
use polity_sandbox::Enter;
use std::path::Path;

/// The first argument of the processes that set up the sandbox of a command.
pub(crate) const SANDBOX_ARGUMENT: &str = "sandbox-enter";

/// Returns the tools of a society with these directories; none if the path of the running program is unknown.
pub(crate) fn hands(data: &Path, config: &Path) -> Hands {
    let Ok(program) = std::env::current_exe() else { return Hands::none() };
    let enter = Enter { program, first_arguments: vec![SANDBOX_ARGUMENT.to_owned()] };
    shipped(data, config, enter)
}
