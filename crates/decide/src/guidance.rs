//! Decides how many of the rules and tools a request contains: all if the window is large enough, otherwise fewer.
//! The functions are pure.

use crate::found::SEARCH_TOOLS;
use polity_llm::Tool;

/// Context windows up to this size, in tokens, always get short rules and few tools, because longer rules and more
/// tools would confuse small models.
const SMALL_WINDOW: u64 = 8_192;

/// The tools that every agent needs, even in a small window.
const ESSENTIAL: [&str; 5] =
    ["spawn_agent_with_task", "send_message", "list_contacts", "put_artifact", "get_artifact"];

/// More tools for a small window. Only an agent that cannot hire other agents gets them, because it must do its work
/// itself.
const OF_WORKERS: [&str; 4] = ["str_replace_editor", "bash", "fetch_page", "web_search"];

/// The text between the name of an MCP server and the name of its tool, as in `hub__search`. Only the names of MCP
/// tools contain this text.
const SERVER_SEPARATOR: &str = "__";

/// The tool that hires agents.
const HIRES: &str = "spawn_agent_with_task";

/// How much of the rules and tools a request contains, from most to least.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Guidance {
    /// All rules, and all tools of the role.
    Full,
    /// Short rules, but all tools of the role.
    ShortRules,
    /// Short rules, and only the essential tools of the role.
    FewTools,
}

impl Guidance {
    pub fn is_short(self) -> bool {
        self != Self::Full
    }

    /// Chooses the tools that a request with this guidance contains, from the tools of the role.
    pub fn choose(self, tools: Vec<Tool>) -> Vec<Tool> {
        match self {
            Self::Full | Self::ShortRules => tools,
            Self::FewTools => {
                let may_hire = tools.iter().any(|tool| tool.name == HIRES);
                let stays = |tool: &Tool| {
                    let name = tool.name.as_str();
                    let works =
                        OF_WORKERS.contains(&name) || name == SEARCH_TOOLS || name.contains(SERVER_SEPARATOR);
                    ESSENTIAL.contains(&name) || !may_hire && works
                };
                tools.into_iter().filter(stays).collect()
            }
        }
    }
}

/// Returns whether a context window of this many tokens is so small that its agents always get short rules and few
/// tools.
pub fn is_small(window: u64) -> bool {
    window <= SMALL_WINDOW
}

/// Chooses how much of the rules and tools the requests to a model with this context window contain. `cost` returns the
/// tokens that the rules and tools of a request take. If the rules and tools take more than half of the window, too
/// little room is left for the work, so the requests contain less of them.
pub fn guidance(window: Option<u64>, cost: impl Fn(Guidance) -> u64) -> Guidance {
    let Some(window) = window else { return Guidance::Full };
    if is_small(window) {
        return Guidance::FewTools;
    }
    let has_room = |guidance: &Guidance| cost(*guidance) <= window / 2;
    [Guidance::Full, Guidance::ShortRules].into_iter().find(has_room).unwrap_or(Guidance::FewTools)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_a_small_window_only_those_who_cannot_hire_work_themselves() {
        let chosen = |names: &[&str]| -> Vec<String> {
            let tool = |name: &&str| Tool::new(*name, "", serde_json::Value::Null);
            let chosen = Guidance::FewTools.choose(names.iter().map(tool).collect());
            chosen.iter().map(|tool| tool.name.clone()).collect()
        };
        let worker = [
            "send_message",
            "search_files",
            "str_replace_editor",
            "bash",
            "search_tools",
            "git__log",
            "fetch_page",
            "http_request",
            "web_search",
        ];
        let kept = [
            "send_message",
            "str_replace_editor",
            "bash",
            "search_tools",
            "git__log",
            "fetch_page",
            "web_search",
        ];
        assert_eq!(chosen(&worker), kept);
        assert_eq!(chosen(&[&worker[..], &[HIRES]].concat()), ["send_message", HIRES]);
    }

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
        let tool = |name: &str| Tool::new(name, "", serde_json::Value::Null);
        let all =
            || vec![tool("create_role"), tool("send_message"), tool("list_artifacts"), tool("get_artifact")];
        assert_eq!(Guidance::ShortRules.choose(all()).len(), 4);
        let few = Guidance::FewTools.choose(all());
        let names: Vec<&str> = few.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!(names, ["send_message", "get_artifact"]);
    }
}
