//! Explains why a call of a tool was refused, and decides what the person can do about it.

use super::MOST;
use polity_society::id::{AgentId, CallId, RoleId, TaskId};
use polity_society::tool_group::ToolGroup;
use polity_view::{Fact, Why, WhyRemedy};

/// The facts about a refused call. The text tells what was true at the time of the call; the other facts are true now.
#[derive(Clone, Debug, Default)]
pub struct Refusal {
    /// The text with which the society refused the call.
    pub text: Option<String>,
    /// What denies the caller groups of tools that the call needed.
    pub denied: Vec<Denied>,
    /// The agent of the task that the call named and the caller does not know.
    pub stranger: Option<AgentId>,
}

/// Something that denies an agent groups of tools.
#[derive(Clone, Debug)]
pub struct Denied {
    pub by: Denier,
    /// The groups that it denies.
    pub groups: Vec<ToolGroup>,
}

/// What denies an agent groups of tools.
#[derive(Clone, Debug)]
pub enum Denier {
    /// The settings do not give the groups to root.
    Settings,
    /// A role that restricts the agent does not name the groups.
    Role {
        role: RoleId,
        /// The agent that has the role.
        agent: AgentId,
        /// The groups that the role names.
        names: Vec<ToolGroup>,
    },
}

impl Refusal {
    /// Returns what the person can do so that the same call is not refused again.
    pub(super) fn remedies(&self, caller: &AgentId, task: &TaskId) -> Vec<WhyRemedy> {
        let allow = |denied: &Denied| match &denied.by {
            Denier::Settings => WhyRemedy::AllowRoot { groups: denied.groups.clone() },
            Denier::Role { role, agent, names } => WhyRemedy::AllowGroups {
                role: role.clone(),
                agent: agent.clone(),
                groups: denied.groups.clone(),
                tool_groups: names.iter().chain(&denied.groups).cloned().collect(),
            },
        };
        let mut remedies: Vec<WhyRemedy> = self.denied.iter().take(MOST).map(allow).collect();
        if !remedies.is_empty() {
            // The model of the caller was told that it has no right to the tool. Nothing else tells it otherwise.
            remedies.push(WhyRemedy::Write { agent: caller.clone(), task: task.clone() });
        }
        remedies.extend(self.stranger.clone().map(|agent| WhyRemedy::Introduce {
            agent,
            service: None,
            to: caller.clone(),
            task: task.clone(),
        }));
        remedies
    }
}

/// A call that was refused.
pub(super) struct Call<'a> {
    pub(super) task: &'a TaskId,
    pub(super) caller: &'a AgentId,
    pub(super) tool: &'a str,
    pub(super) id: Option<&'a CallId>,
    /// The code of the refusal.
    pub(super) code: &'a str,
}

/// Explains a refused call.
pub(super) fn explained(call: &Call<'_>, refusal: Refusal) -> Why {
    let remedies = refusal.remedies(call.caller, call.task);
    let (agent, tool, code) = (call.caller.clone(), call.tool.to_owned(), call.code.to_owned());
    let mut chain = vec![Fact::CallRefused { agent, tool, code, call: call.id.cloned() }];
    chain.extend(refusal.text.map(|text| Fact::Said { text }));
    Why { chain, remedies }
}
