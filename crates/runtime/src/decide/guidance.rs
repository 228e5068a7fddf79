//! How much a request says of rules and tools: all of it where the window is large enough, else less. Pure.

use polity_llm::Tool;
use polity_society::role::ToolGroup;

/// Windows of more tokens have room for all rules and tools. With this many, small models get lost in them.
const SMALL_WINDOW: u64 = 8_192;

/// The tools that an agent cannot do without, where the window has no room for more.
const ESSENTIAL: [&str; 5] =
    ["spawn_agent_with_task", "send_message", "list_contacts", "put_artifact", "get_artifact"];

/// How much of the rules and the tools a request has, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Guidance {
    /// All rules, all tools of the role.
    Full,
    /// Short rules, all tools of the role.
    ShortRules,
    /// Short rules, and of the tools of the role those that it cannot do without.
    FewTools,
}

impl Guidance {
    /// Whether the rules are the short ones.
    pub(crate) fn is_short(self) -> bool {
        self != Self::Full
    }

    /// The tools that are left of those of a role.
    pub(crate) fn choose(self, tools: Vec<Tool>) -> Vec<Tool> {
        match self {
            Self::Full | Self::ShortRules => tools,
            Self::FewTools => {
                tools.into_iter().filter(|tool| ESSENTIAL.contains(&tool.name.as_str())).collect()
            }
        }
    }
}

/// The guidance for a window. `cost` says how many tokens the rules and tools of a request take: more than half of the
/// window would leave too little for the work itself.
pub(crate) fn guidance(window: Option<u64>, cost: impl Fn(Guidance) -> u64) -> Guidance {
    let Some(window) = window else { return Guidance::Full };
    if window <= SMALL_WINDOW {
        return Guidance::FewTools;
    }
    let has_room = |guidance: &Guidance| cost(*guidance) <= window / 2;
    [Guidance::Full, Guidance::ShortRules].into_iter().find(has_room).unwrap_or(Guidance::FewTools)
}

/// Whether a role that has these groups may create agents. One that names none has all.
pub(crate) fn may_hire(groups: &[ToolGroup]) -> bool {
    groups.is_empty() || groups.contains(&ToolGroup::Organization)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_window_has_short_rules_and_few_tools() {
        let cost = |guidance| match guidance {
            Guidance::Full => 6_000,
            Guidance::ShortRules => 4_200,
            Guidance::FewTools => 3_000,
        };
        assert_eq!(guidance(None, cost), Guidance::Full);
        assert_eq!(guidance(Some(4_096), cost), Guidance::FewTools);
        assert_eq!(guidance(Some(8_192), |_| 1), Guidance::FewTools);
        assert_eq!(guidance(Some(8_193), |_| 1), Guidance::Full);
        assert_eq!(guidance(Some(8_300), cost), Guidance::FewTools);
        assert_eq!(guidance(Some(8_400), cost), Guidance::ShortRules);
        assert_eq!(guidance(Some(12_000), cost), Guidance::Full);
    }

    #[test]
    fn few_tools_are_those_that_no_agent_can_do_without() {
        let tool = |name: &str| Tool {
            name: name.to_owned(),
            description: String::new(),
            parameters: serde_json::Value::Null,
        };
        let all =
            || vec![tool("create_role"), tool("send_message"), tool("list_artifacts"), tool("get_artifact")];
        assert_eq!(Guidance::ShortRules.choose(all()).len(), 4);
        let few = Guidance::FewTools.choose(all());
        let names: Vec<&str> = few.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["send_message", "get_artifact"]);
    }
}
