//! The current state of a society: the agents that work or wait, and what is stuck.

use super::{AgentView, Awaited, Circuit, ResumeScope};
use polity_society::id::{AgentId, ApprovalId, MessageId, RoleId, ServiceId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limit for the lists in a [`NowView`].
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NowFilter {
    /// The most cards to return. The same limit applies to the stuck things.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// What happens in a society at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NowView {
    /// The moment, by the clock of the process that read the data.
    pub at: i64,
    /// The number of the newest event at this moment.
    pub as_of: i64,
    /// Whether a process runs the society. If not, the cards show work that the next process will continue.
    pub running: bool,
    /// The agents that work or wait for somebody, newest activity first.
    pub working: Vec<CardView>,
    /// How many agents work or wait for somebody.
    pub working_total: u64,
    /// How many of these agents have work that they can do now. The others wait for answers.
    pub at_work_total: u64,
    /// The things that do not go on without help, oldest first.
    pub stuck: Vec<StuckView>,
    /// How many things are stuck.
    pub stuck_total: u64,
}

/// An agent that works or waits for somebody.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CardView {
    /// The same fields as in a list of agents.
    #[serde(flatten)]
    pub agent: AgentView,
    /// The beginning of the agent's objective; for root, the beginning of the prompt of the task `activeIn`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objective: Option<String>,
    /// The task of the agent's state: what the agent does or waits for, `objective` and `last` belong to this task.
    pub active_in: TaskId,
    /// The time of the agent's newest activity, in all of its tasks.
    pub active_at: i64,
    /// What the agent has last heard, said or done in this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LastView>,
}

/// What an agent has last heard, said or done.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct LastView {
    /// When it happened.
    pub at: i64,
    /// What it was.
    pub did: Deed,
    /// The beginning of the text, on one line; empty if there is no text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The sender of a message that the agent has heard.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The tools that the agent has called.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// The kinds of things that an agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Deed {
    /// The agent began to read a message.
    Heard,
    /// The agent's model answered with a text.
    Said,
    /// The agent's model called tools.
    Called,
    /// A turn of the agent failed.
    Failed,
}

/// Something that does not go on without help.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StuckView {
    /// A text that identifies this thing: as long as the thing is stuck, no other thing has the same text.
    pub key: String,
    /// Since when it is stuck.
    pub since: i64,
    /// What is stuck.
    #[serde(flatten)]
    pub stuck: Stuck,
    /// The task in which it is stuck. Absent for a service, and if root is paused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<TaskId>,
    /// The title of this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What the person can do about it; the best remedy first.
    pub remedies: Vec<Remedy>,
}

/// The kinds of things that do not go on without help.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "stuck", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Stuck {
    /// An agent has asked the person, who has not answered.
    Question {
        /// The agent that asks.
        agent: AgentId,
        /// The question.
        message: MessageId,
        /// The beginning of the question, on one line.
        text: String,
    },
    /// An agent asks whether it may make a call.
    Approval {
        /// The agent that asks.
        agent: AgentId,
        /// The question.
        approval: ApprovalId,
        /// The tool that the agent wants to call.
        tool: String,
        /// When the question expires; the call is then refused.
        expires_at: i64,
    },
    /// A request has no answer, and nobody works on an answer.
    Request {
        /// The request.
        message: MessageId,
        /// Who waits: an agent or `user`.
        from: AgentId,
        /// Who shall answer.
        to: AgentId,
        /// The beginning of the request, on one line.
        text: String,
        /// Why nobody works on an answer.
        cause: Cause,
    },
    /// An agent failed again and again, and does nothing until it is resumed or stopped.
    Parked {
        /// The parked agent.
        agent: AgentId,
        /// The failure for which it was parked.
        reason: String,
        /// The parties that wait for answers of the agent: agents or `user`; at most a few.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        asked_by: Vec<AgentId>,
    },
    /// An agent is paused and has work. Or root is paused, and so nobody can give root a task.
    Paused {
        /// The paused agent.
        agent: AgentId,
    },
    /// A service fails, or gives no answer.
    Service {
        /// The service.
        service: ServiceId,
        /// What is wrong with it.
        trouble: Trouble,
        /// Whether polity sends calls to the service.
        circuit: Circuit,
        /// Until this time, the service gets no calls. If the server is silent: until this time, polity waits for the
        /// server.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        until: Option<i64>,
        /// The most recent failure.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
        /// The agents that need this service now; at most a few.
        agents: Vec<AgentId>,
    },
    /// A task is idle and counts as answered, although root still waits for answers in the task.
    Answered {
        /// The requests of root that have no answer, oldest first.
        requests: Vec<Awaited>,
    },
}

/// Why nobody works on the answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Cause {
    /// The receiver is paused.
    Paused,
    /// The receiver has nothing to do, and waits for nobody.
    Idle,
    /// The receiver has work, but has done nothing for some time.
    Quiet,
}

/// What is wrong with a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Trouble {
    /// Its server has accepted a request, and sends nothing.
    Silent,
    /// Its last calls have failed.
    Failing,
    /// Its server has asked for a pause.
    Paused,
}

/// What the person can do about something that is stuck. Each remedy names the ids that its request needs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "remedy", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Remedy {
    /// Write to an agent: `POST /api/messages`. If the agent has asked something, the message is the answer.
    Write {
        /// The receiver.
        to: AgentId,
        /// The task of the message.
        task: TaskId,
    },
    /// Allow or refuse a call: `POST /api/approvals/{approval}`.
    Decide {
        /// The question about the call.
        approval: ApprovalId,
    },
    /// Resume a parked or paused agent: `POST /api/agents/{agent}/resume` with this `scope`.
    Resume {
        /// The agent.
        agent: AgentId,
        /// Which agents to resume.
        scope: ResumeScope,
    },
    /// Give a role another service: `PATCH /api/roles/{role}` with `serviceId`. If the field `resume` is present, then
    /// resume the agent that it names.
    Service {
        /// The role.
        role: RoleId,
        /// The name of the role.
        name: String,
        /// The services that meet the requirements of the role; at most a few, and none that is in trouble.
        services: Vec<ServiceId>,
        /// The agent of the role that must also be resumed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        resume: Option<AgentId>,
    },
    /// Root has no role whose service could be changed. Instead, begin a turn of root again with another service, in a
    /// new task: `POST /api/tasks/{task}/fork` with `turn` and `service`. The task itself stays as it is.
    RunAgain {
        /// The task.
        task: TaskId,
        /// The number of the turn.
        turn: i64,
        /// The services that root could use instead; at most a few, and none that is in trouble.
        services: Vec<ServiceId>,
    },
    /// End the pauses of a service, also those that it asked for, so that the next call is sent at once:
    /// `POST /api/services/{service}/try`.
    TryAgain {
        /// The service.
        service: ServiceId,
    },
    /// Find out what is wrong with a service: run `polity doctor`, and check the service's entry in
    /// `llmservices.json`.
    CheckService {
        /// The service.
        service: ServiceId,
    },
    /// Stop the work of an agent and of its descendants: `POST /api/agents/{agent}/stop`.
    StopAgent {
        /// The agent.
        agent: AgentId,
    },
    /// Stop a task: `POST /api/tasks/{task}/stop`.
    StopTask {
        /// The task.
        task: TaskId,
    },
}
