//! Which groups of tools an agent may use.
//!
//! Rights only shrink on the way down: root has the groups of the settings, and each agent has at most those of its
//! parent and of the agent that made its role. They are looked up at every call, so a role or a setting that becomes
//! narrower counts for all agents below it at once.

use crate::id::AgentId;
use crate::role::ToolGroup;
use std::collections::BTreeMap;

/// A role that restricts an agent: its own, or that of an agent above it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The agent that has the role.
    pub agent: AgentId,
    /// The name of the role.
    pub role: String,
    /// The groups that the role names. None restricts nothing: the role has the rights of its creator.
    pub groups: Vec<ToolGroup>,
}

/// Why an agent may not use a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Denial {
    /// The settings do not give the group to root.
    Settings,
    /// A role in the chain does not name the group.
    Role {
        /// The agent that has the role.
        agent: AgentId,
        /// The name of the role.
        role: String,
    },
}

/// The verdict on one use of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The agent may call the tool.
    Allow,
    /// The tool is not offered, and a call to it is refused.
    Deny,
}

/// The rights of one agent at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    denied: BTreeMap<ToolGroup, Denial>,
}

impl Rights {
    /// Computes the rights of an agent from the groups of root and the chain of roles above it, nearest first.
    pub fn of(root: &[ToolGroup], chain: &[Link]) -> Self {
        let mut denied = BTreeMap::new();
        for link in chain.iter().filter(|link| !link.groups.is_empty()) {
            for group in ToolGroup::ALL.iter().copied().filter(|group| !link.groups.contains(group)) {
                let denial = Denial::Role { agent: link.agent.clone(), role: link.role.clone() };
                denied.entry(group).or_insert(denial);
            }
        }
        for group in ToolGroup::ALL.iter().copied().filter(|group| !root.contains(group)) {
            denied.insert(group, Denial::Settings);
        }
        Self { denied }
    }

    /// Decides about a tool of this group. A tool without a group belongs to everybody.
    pub fn decide(&self, group: Option<ToolGroup>) -> Verdict {
        match group {
            Some(group) if self.denied.contains_key(&group) => Verdict::Deny,
            Some(_) | None => Verdict::Allow,
        }
    }

    /// Returns the groups that the agent may use.
    pub fn groups(&self) -> Vec<ToolGroup> {
        ToolGroup::ALL.iter().copied().filter(|group| !self.denied.contains_key(group)).collect()
    }

    /// Returns why the agent may not use a group, if it may not.
    pub fn denial(&self, group: ToolGroup) -> Option<&Denial> {
        self.denied.get(&group)
    }

    /// Returns the groups of a new role that its creator lacks.
    pub fn lacking(&self, wanted: &[ToolGroup]) -> Vec<ToolGroup> {
        wanted.iter().copied().filter(|group| self.denied.contains_key(group)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::sample::subsequence;

    fn groups() -> impl Strategy<Value = Vec<ToolGroup>> {
        subsequence(ToolGroup::ALL.to_vec(), 0..=ToolGroup::ALL.len())
    }

    fn chain() -> impl Strategy<Value = Vec<Link>> {
        let link = |groups| Link { agent: AgentId::new("a"), role: "r".to_owned(), groups };
        proptest::collection::vec(groups().prop_map(link), 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(512))]

        #[test]
        fn a_group_is_allowed_if_the_settings_and_every_role_above_allow_it(root in groups(), chain in chain()) {
            let rights = Rights::of(&root, &chain);
            for group in ToolGroup::ALL.iter().copied() {
                let everybody = chain.iter().all(|link| link.groups.is_empty() || link.groups.contains(&group));
                let expect = if root.contains(&group) && everybody { Verdict::Allow } else { Verdict::Deny };
                prop_assert_eq!(rights.decide(Some(group)), expect);
                prop_assert_eq!(rights.denial(group).is_some(), expect == Verdict::Deny);
                prop_assert_eq!(rights.groups().contains(&group), expect == Verdict::Allow);
            }
            prop_assert_eq!(rights.decide(None), Verdict::Allow);
        }

        #[test]
        fn rights_only_shrink_on_the_way_down(root in groups(), above in chain(), below in chain()) {
            let parent = Rights::of(&root, &above);
            let child = Rights::of(&root, &[below, above].concat());
            for group in child.groups() {
                prop_assert_eq!(parent.decide(Some(group)), Verdict::Allow);
            }
            prop_assert_eq!(child.lacking(&child.groups()), []);
        }
    }
}
