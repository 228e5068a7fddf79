//! Which groups of tools an agent may use.
//!
//! Root has the groups that the settings grant. Every other agent has only groups that its parent has, and that the
//! creator of its role has. The rights are computed at every tool call. So when somebody removes a group from a role or
//! from the settings, all agents that have the group from there lose it at once.
//!
//! The tools of an MCP server are in the server's own group, and in the further groups that the settings put the server
//! into. A role or the settings can give these tools by the name of any of these groups. Several servers may share a
//! group. The name of one server does not give the shared group: only the name of the group or `mcp:*` gives it. So an
//! agent that may use only one server of the group cannot give another agent the right to all servers of the group.

use crate::id::AgentId;
use crate::tool_group::{Grant, ServerGroups, ToolGroup};

/// A role that restricts an agent: the agent's own role, or the role of an agent above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The agent that has the role.
    pub agent: AgentId,
    /// The name of the role.
    pub role: String,
    /// The groups that the role names. An empty list restricts nothing: the role has the rights of its creator.
    pub groups: Vec<ToolGroup>,
}

/// Why an agent may not use a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The settings do not give the group to root.
    Settings,
    /// A role that restricts the agent does not name the group.
    Role {
        /// The agent that has the role.
        agent: AgentId,
        /// The name of the role.
        role: String,
    },
}

/// Where the right to a group comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The grant of the settings that gives the group to root.
    pub grant: Grant,
    /// The nearest role that names the group. `None` if no role names it: then the agent has the group because root has
    /// it, and no role takes it away.
    pub role: Option<RoleOf>,
}

/// A role, and the agent that has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleOf {
    /// The agent that has the role.
    pub agent: AgentId,
    /// The name of the role.
    pub role: String,
}

/// The verdict on one use of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent may call the tool.
    Allow,
    /// The agent may not call the tool. Requests do not offer the tool to the model, and a call of the tool is
    /// refused.
    Deny,
}

/// The rights of one agent at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rights {
    root: Vec<Grant>,
    chain: Vec<Link>,
    servers: ServerGroups,
}

impl Rights {
    /// Makes the rights of an agent. `root` contains the rights that the settings grant to root.
    /// `chain` contains the roles that restrict the agent, nearest first.
    pub fn of(root: &[Grant], chain: &[Link]) -> Self {
        Self { root: root.to_vec(), chain: chain.to_vec(), servers: ServerGroups::default() }
    }

    /// Returns the same rights with knowledge of the shared groups in `servers`. The tools of an MCP server then also
    /// belong to the further groups that the settings put the server into.
    #[must_use]
    pub fn with_servers(self, servers: ServerGroups) -> Self {
        Self { servers, ..self }
    }

    /// Decides about a tool of this group.
    pub fn decide(&self, group: &ToolGroup) -> Verdict {
        match self.denial(group) {
            Some(_) => Verdict::Deny,
            None => Verdict::Allow,
        }
    }

    /// Returns the first reason why the agent may not use a group; `None` if it may use the group.
    pub fn denial(&self, group: &ToolGroup) -> Option<Denial> {
        self.denials(group).into_iter().next()
    }

    /// Returns all reasons why the agent may not use a group: first the settings, then the roles, nearest first.
    pub fn denials(&self, group: &ToolGroup) -> Vec<Denial> {
        if group.is_for_everybody() {
            return Vec::new();
        }
        let names = self.servers.of(group);
        let root_has_it = self.root.iter().any(|grant| names.iter().any(|name| grant.gives(name)));
        let settings = (!root_has_it).then_some(Denial::Settings);
        let gives = |link: &Link| link.groups.iter().any(|given| names.contains(given));
        let denies = |link: &&Link| !link.groups.is_empty() && !gives(link);
        let denial = |link: &Link| Denial::Role { agent: link.agent.clone(), role: link.role.clone() };
        settings.into_iter().chain(self.chain.iter().filter(denies).map(denial)).collect()
    }

    /// Returns where the right to a group comes from. Returns `None` if the agent may not use the group, and for a group
    /// that every agent has.
    pub fn origin(&self, group: &ToolGroup) -> Option<Origin> {
        if group.is_for_everybody() || self.decide(group) == Verdict::Deny {
            return None;
        }
        let names = self.servers.of(group);
        let grant = self.root.iter().find(|grant| names.iter().any(|name| grant.gives(name)))?;
        let names_it = |link: &&Link| link.groups.iter().any(|given| names.contains(given));
        let role = self.chain.iter().find(names_it);
        let role = role.map(|link| RoleOf { agent: link.agent.clone(), role: link.role.clone() });
        Some(Origin { grant: grant.clone(), role })
    }

    /// Returns the groups in `existing` that the agent may use.
    pub fn among(&self, existing: impl IntoIterator<Item = ToolGroup>) -> Vec<ToolGroup> {
        existing.into_iter().filter(|group| self.decide(group) == Verdict::Allow).collect()
    }

    /// Returns the groups that the agent wants to give to a new role but lacks itself.
    pub fn lacking(&self, wanted: &[ToolGroup]) -> Vec<ToolGroup> {
        // A group that is reserved for a later version of polity has no tools, so an agent may give it to a role
        // without having it.
        let lacks = |group: &&ToolGroup| !group.is_later() && self.decide(group) == Verdict::Deny;
        wanted.iter().filter(lacks).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool_group::ServerName;
    use proptest::prelude::*;
    use proptest::sample::subsequence;
    use std::collections::BTreeSet;

    fn server() -> ToolGroup {
        "mcp:git".parse().unwrap()
    }

    fn all() -> Vec<ToolGroup> {
        ToolGroup::BUILT_IN.iter().cloned().chain([server()]).collect()
    }

    fn groups() -> impl Strategy<Value = Vec<ToolGroup>> {
        subsequence(all(), 0..=all().len())
    }

    fn grants() -> impl Strategy<Value = Vec<Grant>> {
        let grants: Vec<Grant> = all().into_iter().map(Grant::Group).chain([Grant::EveryServer]).collect();
        subsequence(grants.clone(), 0..=grants.len())
    }

    fn chain() -> impl Strategy<Value = Vec<Link>> {
        let link = |groups| Link { agent: AgentId::new("a"), role: "r".to_owned(), groups };
        proptest::collection::vec(groups().prop_map(link), 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_group_is_allowed_if_the_settings_and_every_role_above_allow_it(root in grants(), chain in chain()) {
            let rights = Rights::of(&root, &chain);
            let every_server = root.contains(&Grant::EveryServer);
            for group in all() {
                let everybody = chain.iter().all(|link| link.groups.is_empty() || link.groups.contains(&group));
                let given = root.contains(&Grant::Group(group.clone())) || every_server && group == server();
                let allowed = group == ToolGroup::Messages || given && everybody;
                let expect = if allowed { Verdict::Allow } else { Verdict::Deny };
                prop_assert_eq!(rights.decide(&group), expect);
                prop_assert_eq!(rights.denial(&group).is_some(), expect == Verdict::Deny);
                prop_assert_eq!(rights.among(all()).contains(&group), expect == Verdict::Allow);
                let has_origin = expect == Verdict::Allow && group != ToolGroup::Messages;
                prop_assert_eq!(rights.origin(&group).is_some(), has_origin);
            }
        }

        #[test]
        fn a_group_is_allowed_once_everything_that_denied_it_gives_it(root in grants(), chain in chain()) {
            let agent = |number: usize| AgentId::new(format!("a{number}"));
            let links = chain.into_iter().enumerate();
            let chain: Vec<Link> = links.map(|(number, link)| Link { agent: agent(number), ..link }).collect();
            for group in all() {
                let (mut root, mut chain) = (root.clone(), chain.clone());
                for denial in Rights::of(&root, &chain).denials(&group) {
                    match denial {
                        Denial::Settings => root.push(Grant::Group(group.clone())),
                        Denial::Role { agent, .. } => {
                            let mut restricting = chain.iter_mut().filter(|link| link.agent == agent);
                            restricting.next().unwrap().groups.push(group.clone());
                        }
                    }
                }
                prop_assert_eq!(Rights::of(&root, &chain).decide(&group), Verdict::Allow);
            }
        }

        #[test]
        fn rights_only_shrink_on_the_way_down(root in grants(), above in chain(), below in chain()) {
            let parent = Rights::of(&root, &above);
            let child = Rights::of(&root, &[below, above].concat());
            for group in child.among(all()) {
                prop_assert_eq!(parent.decide(&group), Verdict::Allow);
            }
            prop_assert_eq!(child.lacking(&child.among(all())), []);
        }
    }

    #[test]
    fn a_right_comes_from_the_nearest_role_that_names_it_or_from_the_settings_alone() {
        let named = |name: &str| ServerName::new(name).unwrap();
        let servers = ServerGroups::new([(named("git"), BTreeSet::from([named("code")]))]);
        let link = |agent: &str, groups: &[&str]| Link {
            agent: AgentId::new(agent),
            role: format!("role of {agent}"),
            groups: groups.iter().map(|name| name.parse().unwrap()).collect(),
        };
        let check = |root: &[&str], chain: &[Link], group: &str, expect: Option<(&str, Option<&str>)>| {
            let root: Vec<Grant> = root.iter().map(|grant| grant.parse().unwrap()).collect();
            let rights = Rights::of(&root, chain).with_servers(servers.clone());
            let origin = rights.origin(&group.parse().unwrap());
            let found = origin
                .map(|Origin { grant, role }| (grant.to_string(), role.map(|role| role.agent.to_string())));
            let expect = expect.map(|(grant, agent)| (grant.to_owned(), agent.map(str::to_owned)));
            assert_eq!(found, expect, "{group} of {chain:?}");
        };
        let (clerk, heir, lead) =
            (link("clerk", &["files"]), link("heir", &[]), link("lead", &["files", "web"]));
        check(&["files", "mcp:*"], &[], "files", Some(("files", None)));
        check(&["files"], std::slice::from_ref(&heir), "files", Some(("files", None)));
        check(&["files"], &[heir.clone(), lead.clone()], "files", Some(("files", Some("lead"))));
        check(&["files"], &[clerk.clone(), heir, lead.clone()], "files", Some(("files", Some("clerk"))));
        check(&["files", "web"], &[clerk, lead.clone()], "web", None);
        check(&["files"], &[lead], "web", None);
        check(&["mcp:*"], &[], "mcp:git", Some(("mcp:*", None)));
        check(&["mcp:code"], &[link("coder", &["mcp:code"])], "mcp:git", Some(("mcp:code", Some("coder"))));
        check(&["files"], &[], "messages", None);
    }

    #[test]
    fn a_shared_group_gives_the_tools_of_all_its_servers_but_a_server_does_not_give_the_group() {
        let named = |name: &str| ServerName::new(name).unwrap();
        let group = |name: &str| ToolGroup::Server(named(name));
        let servers = ServerGroups::new([
            (named("git"), BTreeSet::from([named("code")])),
            (named("hub"), BTreeSet::from([named("code")])),
            (named("mail"), BTreeSet::new()),
        ]);
        let rights = |root: &str, chain: &[&str]| {
            let link = |name: &&str| Link {
                agent: AgentId::new("a"),
                role: "r".to_owned(),
                groups: vec![group(name)],
            };
            let chain: Vec<Link> = chain.iter().map(link).collect();
            let rights = Rights::of(&[root.parse().unwrap()], &chain).with_servers(servers.clone());
            let names = ["git", "hub", "mail", "code"];
            names.into_iter().filter(|name| rights.decide(&group(name)) == Verdict::Allow).collect::<Vec<_>>()
        };
        assert_eq!(rights("mcp:*", &[]), ["git", "hub", "mail", "code"]);
        assert_eq!(rights("mcp:code", &[]), ["git", "hub", "code"]);
        assert_eq!(rights("mcp:git", &[]), ["git"]);
        assert_eq!(rights("mcp:*", &["code"]), ["git", "hub", "code"]);
        assert_eq!(rights("mcp:*", &["git", "code"]), ["git"]);
        assert_eq!(rights("mcp:*", &["code", "git"]), ["git"]);
        assert_eq!(rights("mcp:mail", &["code"]), [""; 0]);
    }

    proptest! {
        #[test]
        fn servers_in_further_groups_widen_no_right_to_anything_else(
            root in grants(), chain in chain(), shared in prop::sample::select(vec!["git", "code", "mail"]),
        ) {
            let named = |name: &str| ServerName::new(name).unwrap();
            let servers = ServerGroups::new([(named("hub"), BTreeSet::from([named(shared)]))]);
            let plain = Rights::of(&root, &chain);
            let sharing = plain.clone().with_servers(servers);
            for group in all() {
                prop_assert_eq!(plain.decide(&group), sharing.decide(&group));
            }
        }
    }

    /// A role may name only one group, and this group may be one that every agent has anyway or one that has no tools
    /// yet. Such a role gives its agents no other group. Only a role with an empty list takes over the rights of its
    /// creator.
    #[test]
    fn a_role_that_names_no_group_with_tools_has_none() {
        for named in ["messages", "memory"] {
            let link =
                Link { agent: AgentId::new("a"), role: "r".to_owned(), groups: vec![named.parse().unwrap()] };
            let rights = Rights::of(&Grant::everything(), &[link]);
            assert_eq!(rights.among(ToolGroup::deniable()), [], "{named}");
        }
    }
}
