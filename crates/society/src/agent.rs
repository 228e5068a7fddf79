//! Agents, and the facts about parties that the rules need.

use crate::brief::TaskBrief;
use crate::content::Capabilities;
use crate::glyph::is_line_break;
use crate::id::{AgentId, RoleId, TaskId};
use crate::name::Name;
use crate::role::InterfaceSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The facts about an agent that are fixed when its parent hires it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The id, made by the system.
    pub id: AgentId,
    /// The task that the agent was hired for.
    pub task: TaskId,
    /// The parent, which hired the agent.
    pub parent: AgentId,
    /// The role of the agent.
    pub role: RoleId,
    /// The name of the agent, if its parent chose one.
    pub name: Option<Name>,
    /// The brief that the parent wrote for the agent.
    pub brief: TaskBrief,
    /// Number of generations below root; a child of root is at 1.
    pub depth: u32,
}

/// Whether an agent still takes part in the society.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// The agent still takes part.
    Active,
    /// Somebody ended the agent itself or one of the agents above it.
    Ended,
}

/// What the rules need to know about a party: an agent, root or the person.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Party {
    /// The id. Root has the id `root`, and the person has the id `user`.
    pub id: AgentId,
    /// The task that the party belongs to; `None` for root and the person, who serve all tasks.
    pub task: Option<TaskId>,
    /// The name of the party's role.
    pub role_name: String,
    /// What the party's role offers, if the role has an interface spec.
    pub interface_spec: Option<InterfaceSpec>,
    /// The objective in the party's brief; `None` if the party has no brief.
    pub objective: Option<String>,
    /// Whether the party still takes part.
    pub standing: Standing,
    /// Number of generations below root; root and the person are at 0.
    pub depth: u32,
    /// The capabilities of the party's model at this moment.
    pub capabilities: Capabilities,
}

impl Party {
    /// Returns whether the party takes part in this task. Root and the person take part in every task.
    pub fn serves(&self, task: &TaskId) -> bool {
        self.task.as_ref().is_none_or(|own| own == task)
    }

    /// Returns the purpose of the party in one line: what the party's role offers, else the party's objective,
    /// else the name of the role.
    pub fn duty(&self) -> String {
        let offered = self.interface_spec.as_ref().map(|spec| match &spec.services {
            serde_json::Value::String(text) => text.clone(),
            other => other.to_string(),
        });
        let duty = offered.or_else(|| self.objective.clone()).unwrap_or_else(|| self.role_name.clone());
        duty.split(is_line_break).map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().to_owned()
    }
}
