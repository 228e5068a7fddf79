//! Agents, roles and contacts.

use super::{AgentState, Doing, UsageSum};
use polity_society::agent::Standing;
use polity_society::brief::TaskBrief;
use polity_society::contact::Source;
use polity_society::content::{Capabilities, Capability, Direction};
use polity_society::id::{AgentId, RoleId, ServiceId, TaskId};
use polity_society::role::InterfaceSpec;
use polity_society::tool_group::ToolGroup;
use schemars::JsonSchema;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An agent, root, or the person.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentView {
    /// The id of the agent.
    pub id: AgentId,
    /// The name that the parent gave to the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The id of the agent's role. Root and the person have no role id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_id: Option<RoleId>,
    /// The name of the agent's role; `root` for root and `user` for the person.
    pub role: String,
    /// The agent that hired this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<AgentId>,
    /// The task that the agent was hired for. Root and the person serve all tasks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// How many generations below root the agent is: 0 for root and the person, 1 for an agent that root hired.
    pub depth: u32,
    /// What the agent is doing, in one word.
    pub state: AgentState,
    /// What the agent is doing, with the details of this state.
    pub doing: Doing,
    /// The service that serves the agent now. While the agent calls a service or waits for a service, this service is
    /// shown, even if it is a fallback. Otherwise, the service of the agent's role is shown. For root, this is the
    /// default service, because root may use a different service in each task. Absent for the person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<ServiceId>,
    /// The model of the agent's service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The input and output capabilities that the agent's service has now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Capabilities>,
    /// Number of messages that the agent has not read.
    pub waiting: u64,
    /// The agents whose answers this agent waits for.
    pub waits_for: Vec<AgentId>,
    /// The time at which the agent was hired.
    pub created_at: i64,
    /// The time at which the agent was ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<i64>,
    /// The tokens and the cost that the agent has spent.
    pub usage: UsageSum,
}

/// A filter for agents. Lists are in the order of hiring, so parents come before children.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentFilter {
    /// Only the agents with these ids, separated by commas.
    #[serde(
        skip_serializing_if = "Vec::is_empty",
        serialize_with = "joined",
        deserialize_with = "separated"
    )]
    #[schemars(with = "Option<String>")]
    pub ids: Vec<AgentId>,
    /// Only agents of this task, plus root and the person. For root and the person, the view then shows the state and
    /// the usage in this task. For root, it also shows the service that root uses in this task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// Only agents in this state. With the state `ended`, the field `ended` is not needed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<AgentState>,
    /// Only agents of this role, given by id or by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub role: Option<String>,
    /// Only agents with this capability: the service of the agent's role must have it now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capability: Option<Capability>,
    /// The direction of `capability`; `input` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<Direction>,
    /// Whether to include agents that have ended.
    #[serde(rename = "ended", skip_serializing_if = "is_false")]
    pub include_ended: bool,
    /// Whether to leave out finished agents: agents that have ended, and most idle agents of finished tasks.
    #[serde(skip_serializing_if = "is_false")]
    pub unfinished: bool,
    /// The beginning of the page: the value of `next` from the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<i64>,
    /// The most agents to return; 100 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// Maximum length of an id in a filter, in bytes. Ids that polity makes are shorter.
const LONGEST_ID: usize = 200;

/// Writes ids as one text, separated by commas, because the query of an address has no lists.
fn joined<S: Serializer>(ids: &[AgentId], serializer: S) -> Result<S::Ok, S::Error> {
    let ids: Vec<&str> = ids.iter().map(AgentId::as_str).collect();
    serializer.serialize_str(&ids.join(","))
}

/// Reads what [`joined`] writes. Refuses a text that cannot be an id: it would select nothing.
fn separated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<AgentId>, D::Error> {
    let read = |id: &str| {
        let is_id = (1..=LONGEST_ID).contains(&id.len())
            && !id.contains(|character: char| character.is_whitespace() || character.is_control());
        is_id.then(|| AgentId::new(id)).ok_or_else(|| {
            D::Error::custom(format!("`{}` is no id; give ids, separated by commas", id.escape_debug()))
        })
    };
    String::deserialize(deserializer)?.split(',').map(read).collect()
}

/// A page of agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentPage {
    /// The agents in the order of hiring.
    pub agents: Vec<AgentView>,
    /// The beginning of the next page, if more agents may follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<i64>,
    /// Number of agents that `unfinished` leaves out. Only the first page has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out: Option<u64>,
    /// The number of the newest event when the page was read. The page does not reflect later events.
    pub as_of: i64,
}

/// Whether an agent may use a group of tools.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RightView {
    /// The group of tools.
    pub group: ToolGroup,
    /// Whether the agent may use the tools of the group.
    pub allowed: bool,
    /// The agent whose role gives the group: the agent itself or the nearest agent above it whose role names the group.
    /// Absent if only app.json gives it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_by: Option<AgentId>,
    /// The role that gives the group; `tools.root` if no role names the group, so that the agent has it because root
    /// has it. Absent if the agent may not use the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted_in: Option<String>,
    /// The entry of `tools.root` in app.json that gives the group to root: the group, a group that servers share, or
    /// `mcp:*`. Absent if the agent may not use the group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root_grant: Option<String>,
    /// The agent whose role forbids the group: the agent itself or an agent above it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_by: Option<AgentId>,
    /// The role that forbids the group; `tools.root` if app.json does not give the group to root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied_in: Option<String>,
}

/// An agent with all details.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentDetail {
    /// The same fields as in a list of agents.
    #[serde(flatten)]
    pub agent: AgentView,
    /// The prompt of the agent's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub role_prompt: Option<String>,
    /// The interface spec of the agent's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The capabilities that the agent's role requires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_capabilities: Option<Vec<String>>,
    /// The groups of tools that the agent's role names. An empty list does not restrict the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_groups: Option<Vec<ToolGroup>>,
    /// For each group of tools, whether the agent may use the group now, and what gives or forbids the group.
    #[serde(default)]
    pub rights: Vec<RightView>,
    /// The task brief that the agent was hired with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brief: Option<TaskBrief>,
    /// The agent's contacts, in the order in which the agent came to know them. Ended agents come last. If there are
    /// too many, only the newest.
    pub contacts: Vec<ContactView>,
    /// Whether `contacts` leaves out older contacts.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_contacts: bool,
    /// The tasks in which the agent has a conversation, newest first. If there are too many, only the newest.
    pub tasks: Vec<TaskId>,
    /// Whether `tasks` leaves out older tasks.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_tasks: bool,
    /// The tasks in which the agent is parked.
    pub holds: Vec<HoldView>,
    /// The agents that this agent hired, including ended agents, in the order of hiring. If there are too many, only
    /// the newest.
    pub children: Vec<AgentId>,
    /// Whether `children` leaves out agents that were hired earlier.
    #[serde(default, skip_serializing_if = "is_false")]
    pub more_children: bool,
}

/// An agent is parked in a task: it does nothing there until it is resumed or stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HoldView {
    /// The task in which the agent is parked.
    pub task: TaskId,
    /// The failure for which the agent was parked.
    pub reason: String,
}

/// A contact of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContactView {
    /// The party that the agent can write to.
    pub agent: AgentId,
    /// The name of the contact's role.
    pub role: String,
    /// How the agent came to know the contact.
    pub source: Source,
    /// The agent that introduced the contact.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub introduced_by: Option<AgentId>,
    /// The time at which the agent came to know the contact.
    pub since: i64,
    /// Whether the contact has ended.
    pub standing: Standing,
    /// The input and output capabilities that the contact's service has now; empty for the person.
    pub capabilities: Capabilities,
    /// The interface spec of the contact's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// A description of the damage, if there is any: the row of the contact in the database is damaged, or the row of
    /// the contact's role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// A role that agents are hired into.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RoleView {
    /// The id of the role.
    pub id: RoleId,
    /// The task in which the role was created.
    pub task: TaskId,
    /// The agent that created the role.
    pub creator: AgentId,
    /// The name of the role.
    pub name: String,
    /// The prompt: what agents of the role are told about their work.
    pub prompt: String,
    /// The interface spec: what the role offers to other agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The service that was chosen for the role. If it no longer exists, the default service serves the role.
    pub service_id: ServiceId,
    /// The capabilities that the role requires.
    pub required_capabilities: Vec<String>,
    /// The groups of tools that agents of the role may use. An empty list means the groups of the role's creator.
    pub tool_groups: Vec<ToolGroup>,
    /// Number of agents of the role that have not ended.
    pub agents: u64,
}

/// Changes to a role. Absent fields stay unchanged. The changes take effect at the next model call of the role's
/// agents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RolePatch {
    /// The new prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The new service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_id: Option<ServiceId>,
    /// The new interface spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interface_spec: Option<InterfaceSpec>,
    /// The new required capabilities. The role keeps its service, even if the service does not meet them: only
    /// `serviceId` changes the service.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub required_capabilities: Option<Vec<String>>,
    /// The new groups of tools. An empty list means the groups of the role's creator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_groups: Option<Vec<ToolGroup>>,
}
