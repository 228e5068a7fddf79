//! Agents, and what others may see of them.

use crate::brief::TaskBrief;
use crate::content::Capabilities;
use crate::glyph::is_line_break;
use crate::id::{AgentId, RoleId, TaskId};
use crate::name::Name;
use crate::role::InterfaceSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An agent as it is hired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its id.
    pub id: AgentId,
    /// The task that it was hired for.
    pub task: TaskId,
    /// Who hired it.
    pub parent: AgentId,
    /// The role it fills.
    pub role: RoleId,
    /// A name of its own, if its parent gave one.
    pub name: Option<Name>,
    /// What it was told when it was hired.
    pub brief: TaskBrief,
    /// How many generations below root.
    pub depth: u32,
}

/// Whether an agent still takes part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// It does.
    Active,
    /// It has been ended, by its parent or with it.
    Ended,
}

/// What the rules need to know of one who takes part: an agent, root, or the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// Its id.
    pub id: AgentId,
    /// The task it belongs to; root and the person serve all.
    pub task: Option<TaskId>,
    /// The name of its role.
    pub role_name: String,
    /// What its role offers.
    pub interface_spec: Option<InterfaceSpec>,
    /// The first line of its brief's objective.
    pub objective: Option<String>,
    /// Whether it still takes part.
    pub standing: Standing,
    /// How many generations below root; root and the person are at 0.
    pub depth: u32,
    /// What its model takes and gives, at this moment.
    pub capabilities: Capabilities,
}

impl Party {
    /// Whether it takes part in that task.
    pub fn serves(&self, task: &TaskId) -> bool {
        self.task.as_ref().is_none_or(|own| own == task)
    }

    /// What it is there for, in a line: what its role offers, else what its brief says.
    pub fn duty(&self) -> String {
        let offered = self.interface_spec.as_ref().map(|spec| match &spec.services {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let duty = offered.or_else(|| self.objective.clone()).unwrap_or_else(|| self.role_name.clone());
        duty.split(is_line_break).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }
}
