//! The tools of agents that act outside the society.

use polity_hands::command::{Bash, Commands};
use polity_hands::files::{Bounds, SearchFiles, StrReplaceEditor};
use polity_hands::table::Hands;
use polity_hands::views::Views;
use polity_hands::workspace::Places;
use polity_hands::workspaces::Workspaces;
use polity_sandbox::Enter;
use std::path::Path;
use std::sync::Arc;

/// The first argument of the processes that set up the sandbox of a command.
pub(crate) const SANDBOX_ARGUMENT: &str = "sandbox-enter";

/// The directory of all workspaces, in the data directory.
const WORKSPACES: &str = "workspaces";

/// The homes and temporary directories of commands, in the data directory.
const COMMANDS: &str = "commands";

/// Returns the tools of a society with these directories.
pub(crate) fn hands(data: &Path, config: &Path) -> Hands {
    // Commands run in other directories, so relative paths would mean something else there.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (data, config) = (absolute(data), absolute(config));
    let workspaces = Arc::new(Workspaces::new(data.join(WORKSPACES)));
    let views = Arc::new(Views::new(data.join(WORKSPACES)));
    let places: Arc<dyn Places> = Arc::clone(&workspaces) as _;
    let hands = Hands::none()
        .in_workspaces(Arc::clone(&workspaces))
        .with(Arc::new(StrReplaceEditor::new(Arc::clone(&places), views, Bounds::default())))
        .with(Arc::new(SearchFiles::new(places, Bounds::default())));
    let Ok(program) = std::env::current_exe() else { return hands };
    let enter = Enter { program, first_arguments: vec![SANDBOX_ARGUMENT.to_owned()] };
    let commands = Commands::new(workspaces, enter, data.join(COMMANDS), vec![data.clone(), config]);
    hands.with(Arc::new(Bash::new(Arc::new(commands))))
}
