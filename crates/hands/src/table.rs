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

/// All tools that act outside the society.
#[derive(Clone, Default)]
pub struct Hands {
    tools: Vec<Arc<dyn Tool>>,
    boxes: Vec<Arc<dyn Toolbox>>,
    workspaces: Option<Arc<Workspaces>>,
    commands: Option<Arc<Commands>>,
    views: Option<Arc<Views>>,
}

impl Hands {
    /// Makes a table without tools.
    pub fn none() -> Self {
        Self::default()
    }

    /// Adds a tool.
    #[must_use]
    pub fn with(mut self, tool: Arc<dyn Tool>) -> Self {
        self.tools.push(tool);
        self
    }

    /// Adds tools that may change while agents work.
    #[must_use]
    pub fn with_box(mut self, toolbox: Arc<dyn Toolbox>) -> Self {
        self.boxes.push(toolbox);
        self
    }

    /// Sets the workspaces in which the tools work.
    #[must_use]
    pub fn in_workspaces(mut self, workspaces: Arc<Workspaces>) -> Self {
        self.workspaces = Some(workspaces);
        self
    }

    /// Sets the runner of the commands that the tools start.
    #[must_use]
    pub fn with_commands(mut self, commands: Arc<Commands>) -> Self {
        self.commands = Some(commands);
        self
    }

    /// Returns the runner of commands, if there is one.
    pub fn commands(&self) -> Option<&Arc<Commands>> {
        self.commands.as_ref()
    }

    /// Sets what the agents have seen of the files in the workspaces.
    #[must_use]
    pub fn with_views(mut self, views: Arc<Views>) -> Self {
        self.views = Some(views);
        self
    }

    /// Returns what the agents have seen of the files in the workspaces, if there are any.
    pub fn views(&self) -> Option<&Arc<Views>> {
        self.views.as_ref()
    }

    /// Returns the workspaces in which the tools work, if there are any.
    pub fn workspaces(&self) -> Option<&Arc<Workspaces>> {
        self.workspaces.as_ref()
    }

    /// Returns the tools that exist now, in the order in which models see them.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let live = self.boxes.iter().flat_map(|toolbox| toolbox.tools());
        self.tools.iter().cloned().chain(live).collect()
    }

    /// Waits until the tools of servers that are being started are known, but only for a short time.
    pub async fn settled(&self) {
        join_all(self.boxes.iter().map(|toolbox| toolbox.settled())).await;
    }

    /// Returns how the MCP servers are doing, by name.
    pub fn servers(&self) -> Vec<ServerState> {
        self.boxes.iter().flat_map(|toolbox| toolbox.servers()).collect()
    }

    /// Ends everything that the tools keep running between calls, and waits for the end.
    pub async fn shut_down(&self) {
        join_all(self.boxes.iter().map(|toolbox| toolbox.shut_down())).await;
    }

    /// Returns the tool with this name.
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
