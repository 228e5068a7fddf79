//! Making roles (contract section 8).

use crate::change::Change;
use crate::id::{AgentId, RoleId, ServiceId, TaskId};
use crate::name::Name;
use crate::role::{InterfaceSpec, Role, ToolGroup};

/// A role that somebody wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleWish {
    /// Its name.
    pub name: Name,
    /// What its agents are told.
    pub prompt: String,
    /// What it offers to others.
    pub interface_spec: Option<InterfaceSpec>,
    /// What its model must be able to do.
    pub required_capabilities: Vec<String>,
    /// The tools of its agents.
    pub tool_groups: Vec<ToolGroup>,
}

/// Makes a role. Where the creator has one of that name in this task already, that one stays as it is, and nothing changes.
pub fn create_role(
    wish: RoleWish,
    existing: Option<Role>,
    creator: (AgentId, TaskId),
    id: RoleId,
    service: ServiceId,
) -> (Role, Vec<Change>) {
    if let Some(existing) = existing {
        return (existing, Vec::new());
    }
    let (creator, task) = creator;
    let role = Role {
        id,
        task,
        creator,
        name: wish.name,
        prompt: wish.prompt,
        interface_spec: wish.interface_spec,
        service,
        required_capabilities: wish.required_capabilities,
        tool_groups: wish.tool_groups,
    };
    (role.clone(), vec![Change::RoleCreated(role)])
}
