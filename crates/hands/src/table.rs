//! The table of all tools that act outside the society.

use crate::command::Commands;
use crate::server_state::ServerState;
use crate::tool::Tool;
pub use crate::tool::Toolbox;
use crate::views::Views;
use futures::future::join_all;
use polity_workspaces::Workspaces;
use std::fmt;
use std::sync::Arc;

/// The table of all tools that act outside the society. It also holds what several tools share: the workspaces, the
/// runner of commands, and the record of the file contents that each agent has seen.
#[derive(Clone, Default)]
pub struct Hands {
    tools: Vec<Arc<dyn Tool>>,
    boxes: Vec<Arc<dyn Toolbox>>,
    workspaces: Option<Arc<Workspaces>>,
    commands: Option<Arc<Commands>>,
    views: Option<Arc<Views>>,
}

impl Hands {
    /// Makes an empty table.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a tool that always exists.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds a set of tools that may change while agents work.
    #[must_use]
    pub fn with_box(mut self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.boxes.push(toolbox);
        self
    }

    /// Sets the workspaces that the tools work in.
    #[must_use]
    pub fn in_workspaces(mut self, workspaces: Arc<Workspaces>) -> Self {
        self.workspaces = Some(workspaces);
        self
    }

    /// Sets the runner of commands. The runtime also uses it to end commands.
    #[must_use]
    pub fn with_commands(mut self, commands: Arc<Commands>) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Returns the runner of commands; `None` if no tool runs commands.
    pub fn commands(&self) -> Option<&Arc<Commands>> {
        self.commands.as_ref()
    }

    /// Sets the record of the file contents that each agent has seen.
    #[must_use]
    pub fn with_views(mut self, views: Arc<Views>) -> Self {
        self.views = Some(views);
        self
    }

    /// Returns the record of the file contents that each agent has seen; `None` if no tool works on files.
    pub fn views(&self) -> Option<&Arc<Views>> {
        self.views.as_ref()
    }

    /// Returns the workspaces that the tools work in; `None` if no tool needs a workspace.
    pub fn workspaces(&self) -> Option<&Arc<Workspaces>> {
        self.workspaces.as_ref()
    }

    /// Returns the tools that exist now, in the order in which models read them.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let live = self.boxes.iter().flat_map(|toolbox| toolbox.tools());
        self.tools.iter().cloned().chain(live).collect()
    }

    /// MCP servers may still be starting, and their tools are then not known yet. Waits briefly for these servers.
    pub async fn settled(&self) {
        join_all(self.boxes.iter().map(|toolbox| toolbox.settled())).await;
    }

    /// Returns the state of each MCP server.
    pub fn servers(&self) -> Vec<ServerState> {
        self.boxes.iter().flat_map(|toolbox| toolbox.servers()).collect()
    }

    /// Ends all background work of the tools, such as MCP servers, and waits until it has ended.
    pub async fn shut_down(&self) {
        join_all(self.boxes.iter().map(|toolbox| toolbox.shut_down())).await;
    }

    /// Returns the tool with this name, if it exists now.
    pub fn find(&self, name: &str) -> Option<Arc<dyn Tool>> {
        let fixed = self.tools.iter().find(|tool| tool.name() == name).cloned();
        fixed.or_else(|| {
            self.boxes.iter().flat_map(|toolbox| toolbox.tools()).find(|tool| tool.name() == name)
        })
    }
}

impl fmt::Debug for Hands {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.tools().iter().map(|tool| tool.name().to_owned())).finish()
    }
}
