//! Making roles (contract section 8).

use crate::change::Change;
use crate::id::{AgentId, RoleId, ServiceId, TaskId};
use crate::name::Name;
use crate::refusal::{ContactLine, Refusal};
use crate::role::{InterfaceSpec, Role};
use crate::tool_group::ToolGroup;

/// What the caller specifies when it makes a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleWish {
    /// The name, unique among the caller's roles in this task.
    pub name: Name,
    /// The prompt that tells the role's agents what their work is.
    pub prompt: String,
    /// What the role offers to other parties, if the caller described it.
    pub interface_spec: Option<InterfaceSpec>,
    /// The capabilities that the role's model must have.
    pub required_capabilities: Vec<String>,
    /// The groups of tools that the role's agents get. If the list is empty, they get the groups of the caller.
    pub tool_groups: Vec<ToolGroup>,
}

/// Makes a role.
/// If the creator has made a role of this name in this task already, returns that role and changes nothing.
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

/// Finds the role that an agent means. `usable` contains the roles that the agent may hire into. `meant` is the id of a
/// role, or else the name of a role. If several roles have this name, the role that the agent itself made takes
/// precedence. If its descendants made all of them, the name is refused as ambiguous.
pub fn find_role(usable: Vec<Role>, agent: &AgentId, meant: &str) -> Result<Option<Role>, Refusal> {
    let meant = meant.trim();
    if let Some(by_id) = usable.iter().find(|role| role.id.as_str() == meant) {
        return Ok(Some(by_id.clone()));
    }
    let named: Vec<Role> = usable.into_iter().filter(|role| role.name.as_str() == meant).collect();
    if let Some(own) = named.iter().find(|role| role.creator == *agent) {
        return Ok(Some(own.clone()));
    }
    match named.as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(only.clone())),
        several => Err(Refusal::AmbiguousName {
            meant: meant.to_owned(),
            candidates: several.iter().map(ContactLine::from).collect(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(id: &str, creator: &str, name: &str) -> Role {
        Role {
            id: RoleId::new(id),
            task: TaskId::new("t-1"),
            creator: AgentId::new(creator),
            name: Name::parse(name).unwrap(),
            prompt: "read".to_owned(),
            interface_spec: None,
            service: ServiceId::new("words"),
            required_capabilities: Vec::new(),
            tool_groups: Vec::new(),
        }
    }

    fn wish(name: &str) -> RoleWish {
        RoleWish {
            name: Name::parse(name).unwrap(),
            prompt: "write".to_owned(),
            interface_spec: None,
            required_capabilities: vec!["vision".to_owned()],
            tool_groups: vec![ToolGroup::Context],
        }
    }

    #[test]
    fn a_role_is_made_as_it_was_wished() {
        let creator = (AgentId::root(), TaskId::new("t-2"));
        let (made, changes) =
            create_role(wish("reader"), None, creator, RoleId::new("role-9"), ServiceId::new("eyes"));
        assert_eq!(changes, [Change::RoleCreated(made.clone())]);
        let expect = Role {
            task: TaskId::new("t-2"),
            prompt: "write".to_owned(),
            service: ServiceId::new("eyes"),
            required_capabilities: vec!["vision".to_owned()],
            tool_groups: vec![ToolGroup::Context],
            ..role("role-9", "root", "reader")
        };
        assert_eq!(made, expect);
    }

    #[test]
    fn a_role_that_is_there_already_stays_as_it_was() {
        let there = role("role-1", "root", "reader");
        let creator = (AgentId::root(), TaskId::new("t-1"));
        let made = create_role(
            wish("reader"),
            Some(there.clone()),
            creator,
            RoleId::new("role-9"),
            ServiceId::new("eyes"),
        );
        assert_eq!(made, (there, Vec::new()));
    }

    #[test]
    fn a_role_is_found_by_id_then_by_ones_own_name_then_by_a_name_that_only_one_has() {
        let roles = || {
            vec![
                role("role-1", "lead-1", "reader"),
                role("role-2", "root", "reader"),
                role("role-3", "lead-1", "writer"),
                role("role-4", "lead-2", "writer"),
                role("role-5", "lead-2", "role-1"),
                role("role-6", "lead-2", "singer"),
            ]
        };
        let found = |agent: &str, meant: &str| {
            find_role(roles(), &AgentId::new(agent), meant).map(|role| role.map(|role| role.id.to_string()))
        };
        let check = |agent: &str, meant: &str, expect: Option<&str>| {
            assert_eq!(found(agent, meant), Ok(expect.map(str::to_owned)), "{agent}: {meant}");
        };
        check("root", "role-4", Some("role-4"));
        check("root", " role-4 ", Some("role-4"));
        check("root", "role-1", Some("role-1"));
        check("root", "reader", Some("role-2"));
        check("lead-1", "reader", Some("role-1"));
        check("lead-1", "writer", Some("role-3"));
        check("root", " singer ", Some("role-6"));
        check("root", "painter", None);
        check("root", "read", None);
        let candidates = [("role-3", "writer"), ("role-4", "writer")];
        let candidates =
            candidates.map(|(id, role)| ContactLine { id: id.to_owned(), role: role.to_owned() });
        let refusal = Refusal::AmbiguousName { meant: "writer".to_owned(), candidates: candidates.to_vec() };
        assert_eq!(found("root", "writer"), Err(refusal));
    }
}
