//! The table of the tools that polity ships. A new tool is one file and one line here.

use crate::command::{Bash, Commands};
use crate::files::{Bounds, SearchFiles, StrReplaceEditor};
use crate::table::Hands;
use crate::views::Views;
use crate::workspace::Places;
use crate::workspaces::Workspaces;
use polity_sandbox::Enter;
use std::path::Path;
use std::sync::Arc;

/// The directory of all workspaces, in the data directory.
const WORKSPACES: &str = "workspaces";

/// The homes, the temporary directories and the output of commands, in the data directory.
const COMMANDS: &str = "commands";

/// Returns the tools of a society with these directories. `enter` is the program that sets up the sandbox of a command.
/// The runtime adds `merge_workspace`, because only the society knows who is below whom.
pub fn shipped(data: &Path, config: &Path, enter: Enter) -> Hands {
    // Commands run in other directories, where a relative path would mean something else.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (data, config) = (absolute(data), absolute(config));
    let workspaces = Arc::new(Workspaces::new(data.join(WORKSPACES)));
    let views = Arc::new(Views::new(data.join(WORKSPACES)));
    let places: Arc<dyn Places> = Arc::clone(&workspaces) as _;
    let hidden = vec![data.clone(), config];
    let commands = Arc::new(Commands::new(Arc::clone(&workspaces), enter, data.join(COMMANDS), hidden));
    Hands::none()
        .in_workspaces(workspaces)
        .with(Arc::new(StrReplaceEditor::new(Arc::clone(&places), views, Bounds::default())))
        .with(Arc::new(SearchFiles::new(places, Bounds::default())))
        .with(Arc::new(Bash::new(commands)))
}
