//! The table of all tools that act outside the society.

use crate::tool::Tool;
use crate::workspaces::Workspaces;
use std::fmt;
use std::sync::Arc;

/// A set of tools that may change while agents work, such as those of an MCP server.
pub trait Toolbox: Send + Sync {
    /// Returns the tools that exist now.
    fn tools(&self) -> Vec<Arc<dyn Tool>>;
}

/// All tools that act outside the society.
#[derive(Clone, Default)]
pub struct Hands {
    tools: Vec<Arc<dyn Tool>>,
    boxes: Vec<Arc<dyn Toolbox>>,
    workspaces: Option<Arc<Workspaces>>,
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

    /// Returns the workspaces in which the tools work, if there are any.
    pub fn workspaces(&self) -> Option<&Arc<Workspaces>> {
        self.workspaces.as_ref()
    }

    /// Returns the tools that exist now, in the order in which models see them.
    pub fn tools(&self) -> Vec<Arc<dyn Tool>> {
        let live = self.boxes.iter().flat_map(|toolbox| toolbox.tools());
        self.tools.iter().cloned().chain(live).collect()
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
