//! Agents, roles and contacts.

use super::UsageSum;
use polity_society::agent::Standing;
use polity_society::brief::TaskBrief;
use polity_society::contact::Source;
use polity_society::content::{Capabilities, Capability, Direction};
use polity_society::id::{AgentId, RoleId, ServiceId, TaskId};
use polity_society::role::{InterfaceSpec, ToolGroup};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An agent, root, or the person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// Its id.
    pub id: AgentId,
    /// A name of its own, if its parent gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its role; root and the person have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_id: Option<RoleId>,
    /// The name of its role; `root` or `user` for those two.
    pub role: String,
    /// Who hired it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The task that it was hired for; root and the person serve all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// How many generations below root.
    pub depth: u32,
    /// What it is doing.
    pub state: AgentState,
    /// The service that is in force for it now; for root the default, because each task may have another. None for the
    /// person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceId>,
    /// The model of that service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What that service takes and gives now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// How many messages it has not read yet.
    pub waiting: u64,
    /// The agents whose answers it waits for.
    pub waits_for: Vec<AgentId>,
    /// When it was hired.
    pub created_at: i64,
    /// When it was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// What it has spent.
    pub usage: UsageSum,
}

/// What an agent is doing; the first that holds, in the order of precedence `ended`, `paused`, `parked`, `thinking`,
/// `queued`, `waiting`, `idle`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum AgentState {
    /// A turn of it is open.
    Thinking,
    /// Messages wait for it, and no turn is open.
    Queued,
    /// It waits for somebody's answer, and no turn is open.
    Waiting,
    /// It failed again and again, and does not go on in some task until somebody says so.
    Parked,
    /// The person has paused it.
    Paused,
    /// None of all this.
    Idle,
    /// It has ended.
    Ended,
}

impl AgentState {
    /// Every state.
    pub const ALL: [Self; 7] =
        [Self::Thinking, Self::Queued, Self::Waiting, Self::Parked, Self::Paused, Self::Idle, Self::Ended];
}

/// Which agents are meant. They come in the order in which they were hired, so
/// parents before children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentFilter {
    /// Only those that were hired for this task, and root and the person; what is told of those two is what they do and
    /// have spent in this task, and root is as it is served there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only those that are in this state. `ended` brings those that have ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<AgentState>,
    /// Only those of this role: its id, or its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only those whose service has this capability now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// In which direction; `input` where none is given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Whether those are meant too that have ended.
    #[serde(rename = "ended", skip_serializing_if = "is_false")]
    pub include_ended: bool,
    /// Where the page begins: `next` of the page before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// How many at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// A page of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentPage {
    /// The agents.
    pub agents: Vec<AgentView>,
    /// Where the next page begins, if there may be one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
    /// The number of the newest event when this was read: what happened after it is not in here.
    pub as_of: i64,
}

/// An agent with all that is known of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetail {
    /// What a list shows of it.
    #[serde(flatten)]
    pub agent: AgentView,
    /// What its role says about its work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_prompt: Option<String>,
    /// What its role offers to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The capabilities that were asked for its role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_capabilities: Option<Vec<String>>,
    /// The groups of tools that it has; all where the list is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_groups: Option<Vec<ToolGroup>>,
    /// What it was told when it was hired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<TaskBrief>,
    /// Whom it can write to, oldest entry first; a page of them.
    pub contacts: Vec<ContactView>,
    /// The tasks that it has a conversation in, the newest first; a page of them.
    pub tasks: Vec<TaskId>,
    /// The tasks in which it is parked.
    pub holds: Vec<HoldView>,
    /// Whom it has hired, those included that have ended; a page of them.
    pub children: Vec<AgentId>,
}

/// That an agent does not go on in a task until somebody says so.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    /// The task.
    pub task: TaskId,
    /// What failed.
    pub reason: String,
}

/// An entry of an agent's registry.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContactView {
    /// Whom it can write to.
    pub agent: AgentId,
    /// The name of that one's role.
    pub role: String,
    /// How the entry came there.
    pub source: Source,
    /// Who introduced the two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_by: Option<AgentId>,
    /// Since when.
    pub since: i64,
    /// Whether that one still takes part.
    pub standing: Standing,
    /// What the service of that one takes and gives now; empty for the person.
    pub capabilities: Capabilities,
    /// What the role of that one offers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// What is wrong with the row of that one, or of its role, in the database, where it is damaged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// A role that agents are hired into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleView {
    /// Its id.
    pub id: RoleId,
    /// The task in which it was made.
    pub task: TaskId,
    /// Who made it.
    pub creator: AgentId,
    /// Its name.
    pub name: String,
    /// What its agents are told about their work.
    pub prompt: String,
    /// What it offers to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The service that was chosen for it; the default serves it where that one is gone.
    pub service_id: ServiceId,
    /// The capabilities that were asked for.
    pub required_capabilities: Vec<String>,
    /// The groups of tools that its agents have; all where the list is empty.
    pub tool_groups: Vec<ToolGroup>,
    /// How many of its agents have not ended.
    pub agents: u64,
}

/// What is to be different about a role; what is absent stays. Counts for the next model call of its agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolePatch {
    /// What its agents are told about their work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The service that serves them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_id: Option<ServiceId>,
    /// What it offers to others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The capabilities that are asked for. Another service is chosen by them only where `serviceId` says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_capabilities: Option<Vec<String>>,
    /// The groups of tools that its agents have; all where the list is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_groups: Option<Vec<ToolGroup>>,
}
