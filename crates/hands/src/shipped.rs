//! The table of the tools that polity ships. To add a tool, write a file for the tool and add the tool to this table.

use crate::command::{CommandTools, Commands, SettingsSource};
use crate::files::{Bounds, Files, SearchFiles, StrReplaceEditor};
use crate::places::Places;
use crate::table::Hands;
use crate::views::Views;
use crate::web::{WebSettings, WebTools};
use polity_sandbox::Enter;
use polity_workspaces::Workspaces;
use std::path::Path;
use std::sync::Arc;

/// The directory of all workspaces, relative to the data directory.
const WORKSPACES: &str = "workspaces";

/// The directory of the commands' homes, temporary files and output, relative to the data directory.
const COMMANDS: &str = "commands";

/// Returns the tools of a society with this data directory and configuration directory. `enter` is the program that
/// sets up the sandbox of a command. `sandbox` returns what the person allows commands to do. `web` returns which
/// addresses agents may reach. The tool `merge_workspace` is not among these tools. The runtime adds it, because only
/// the society knows the descendants of an agent.
pub fn shipped(data: &Path, config: &Path, enter: Enter, sandbox: SettingsSource, web: WebSettings) -> Hands {
    // Commands run in other directories, where a relative path would mean another place. So relative paths become
    // absolute.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let (data, config) = (absolute(data), absolute(config));
    let workspaces = Arc::new(Workspaces::new(data.join(WORKSPACES)));
    let views = Arc::new(Views::new(data.join(WORKSPACES)));
    let places: Arc<dyn Places> = Arc::clone(&workspaces) as _;
    let hidden = vec![data.clone(), config];
    let state = data.join(COMMANDS);
    let commands = Arc::new(Commands::new(Arc::clone(&workspaces), enter, state, hidden, sandbox));
    let files = Files::new(Arc::clone(&places), Arc::clone(&views), Bounds::default());
    Hands::none()
        .in_workspaces(workspaces)
        .with_views(views)
        .with(Arc::new(StrReplaceEditor::new(files.clone())))
        .with(Arc::new(SearchFiles::new(places, Bounds::default())))
        .with_box(Arc::new(CommandTools::new(Arc::clone(&commands))))
        .with_commands(commands)
        .with_box(Arc::new(WebTools::new(web, files)))
}
