//! Explanations of events, artifacts, agents, messages, questions about calls and tasks. An explanation consists of a
//! chain of facts and a list of remedies. Each fact contains the ids of the things that it is about.

mod sentence;

use crate::{ApprovalState, Because, Doing, NextAttempt, Outcome};
use polity_llm::FailureKind;
use polity_society::content::Capability;
use polity_society::id::{AgentId, ApprovalId, ArtifactId, CallId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::tool_group::ToolGroup;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// The explanation of one thing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Why {
    /// The facts. Each fact is a reason for the fact before it. But if a task has ended with an answer, unanswered
    /// requests in it are no reason for its end.
    pub chain: Vec<Fact>,
    /// What the person can do, the best remedy first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<WhyRemedy>,
}

/// A fact in an explanation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "fact", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Fact {
    /// A request did not show an artifact to an agent's model, but contained a description of the artifact instead.
    Described {
        /// The artifact.
        artifact: ArtifactId,
        /// The name of its file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
        /// The agent whose model got the description.
        agent: AgentId,
        /// The number of the request.
        sent: i64,
    },
    /// The model of a service takes only some kinds of content.
    ServiceTakes {
        /// The service.
        service: ServiceId,
        /// The revision of the configuration that says so.
        revision: u64,
        /// The capabilities of the model.
        takes: Vec<Capability>,
    },
    /// Why the request did not show the content.
    NotShown {
        /// The reason.
        because: Because,
        /// The service that got the request.
        service: ServiceId,
        /// The revision of the configuration for which the request was made.
        revision: u64,
    },
    /// Other services could take the content.
    OthersCan {
        /// The services.
        services: Vec<ServiceId>,
    },
    /// No other service could take the content.
    NobodyCan,
    /// None of the agent's contacts used one of these services.
    NoContactOn {
        /// The agent.
        agent: AgentId,
        /// The services.
        services: Vec<ServiceId>,
    },
    /// The agent had contacts that could take the content, so it could have sent the content to one of them.
    HasContacts {
        /// The agent.
        agent: AgentId,
        /// The contacts that could take the content.
        contacts: Vec<AgentId>,
    },
    /// A call of a tool was refused.
    CallRefused {
        /// The agent whose model made the call.
        agent: AgentId,
        /// The name of the tool.
        tool: String,
        /// The code of the refusal.
        code: String,
        /// The id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
    },
    /// The text with which the society refused the call, in the language of the society. Or a text that tells why polity
    /// asks the person about a call.
    Said {
        /// The text.
        text: String,
    },
    /// An attempt to call a model failed.
    AttemptFailed {
        /// The agent whose turn made the call.
        agent: AgentId,
        /// The service that failed.
        service: ServiceId,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The kind of failure.
        kind: FailureKind,
        /// The HTTP status, if the server sent one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        status: Option<u16>,
        /// The failure in the words of the server or of the network.
        reason: String,
        /// The number of the request, if one was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        sent: Option<i64>,
    },
    /// What the call did after the failed attempt.
    Then {
        /// The next step.
        next: NextAttempt,
    },
    /// A call skipped a service and went to the fallback of this service instead.
    ServiceSkipped {
        /// The service that was skipped.
        service: ServiceId,
        /// The service that got the call instead.
        fallback: ServiceId,
        /// Why the service was skipped.
        reason: String,
    },
    /// A turn of an agent failed.
    TurnFailed {
        /// The agent.
        agent: AgentId,
        /// Why the turn failed.
        reason: String,
        /// When the turn failed, if it is one of several failed turns.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<i64>,
    },
    /// So many turns of an agent failed in a row that the agent was parked.
    FailedTurns {
        /// The agent.
        agent: AgentId,
        /// The number of the failed turns.
        count: u64,
        /// The name of the limit in `app.json`.
        limit: String,
        /// The value of the limit now.
        value: u64,
    },
    /// An agent is parked: it failed again and again, and does nothing until it is resumed or stopped.
    Parked {
        /// The agent.
        agent: AgentId,
        /// The task in which it is parked.
        task: TaskId,
        /// The failure for which it was parked.
        reason: String,
    },
    /// An agent has ended.
    AgentEnded {
        /// The agent.
        agent: AgentId,
        /// The reason that was given.
        reason: String,
    },
    /// The person has paused an agent.
    Paused {
        /// The agent.
        agent: AgentId,
    },
    /// What an agent does at the moment of the explanation.
    Does {
        /// The agent.
        agent: AgentId,
        /// What it does.
        doing: Doing,
    },
    /// Something is left to do in a task.
    TaskOpen {
        /// The task.
        task: TaskId,
        /// When the task began.
        since: i64,
    },
    /// Nothing is left to do in a task.
    TaskEnded {
        /// The task.
        task: TaskId,
        /// How it ended.
        outcome: Outcome,
    },
    /// The person has stopped a task.
    StoppedByUser {
        /// The task.
        task: TaskId,
    },
    /// A limit of a task was reached.
    LimitReached {
        /// The name of the limit in `app.json`.
        limit: String,
        /// Its value at that time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        value: Option<Number>,
    },
    /// A request has no answer.
    Unanswered {
        /// The request.
        message: MessageId,
        /// Who asked.
        from: String,
        /// Who was asked.
        to: AgentId,
        /// When the request was sent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        since: Option<i64>,
    },
    /// A message came back, because its receiver has ended.
    Bounced {
        /// The message.
        message: MessageId,
        /// The receiver that has ended.
        to: AgentId,
    },
    /// A request of the person was taken back, because the person stopped the work on it.
    Withdrawn {
        /// The request.
        message: MessageId,
        /// Who was asked.
        to: AgentId,
    },
    /// The person has stopped the work of an agent in a task.
    AgentStopped {
        /// The agent.
        agent: AgentId,
        /// The task.
        task: TaskId,
        /// When it was stopped.
        at: i64,
    },
    /// An agent has asked the person whether it may make a call.
    CallAsked {
        /// The question.
        approval: ApprovalId,
        /// The agent that asks.
        agent: AgentId,
        /// The task of the call.
        task: TaskId,
        /// The tool that the agent wants to call.
        tool: String,
        /// The beginning of the arguments of the call, as JSON.
        arguments: String,
        /// Whether the question is open, or how it ended.
        state: ApprovalState,
        /// When the question was asked.
        since: i64,
        /// When the question ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<i64>,
        /// The reason that the person gave for the answer.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
}

/// Something that can be done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "remedy", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum WhyRemedy {
    /// Introduce an agent to another agent, so that they become contacts.
    Introduce {
        /// The agent that can help, or to which the other agent wanted to write.
        agent: AgentId,
        /// The service of that agent, if the agent can help because of its service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<ServiceId>,
        /// The agent that needs help, or that wanted to write.
        to: AgentId,
        /// The task of both.
        task: TaskId,
    },
    /// Give the role of the agent another service.
    UseService {
        /// The role.
        role: RoleId,
        /// The agent.
        agent: AgentId,
        /// The service.
        service: ServiceId,
    },
    /// Give a role further groups of tools: `PATCH /api/roles/{role}` with `toolGroups`. The agents of the role can use
    /// these groups from their next call on, unless something else denies them.
    AllowGroups {
        /// The role.
        role: RoleId,
        /// The agent that has the role: the agent whose call was refused, or an agent above it.
        agent: AgentId,
        /// The groups that the role lacks.
        groups: Vec<ToolGroup>,
        /// The groups that the role names now, and then the groups that it lacks.
        tool_groups: Vec<ToolGroup>,
    },
    /// Add groups of tools to `tools.root` in `app.json`.
    AllowRoot {
        /// The groups.
        groups: Vec<ToolGroup>,
    },
    /// Tell the agent to hire somebody who uses this service.
    Hire {
        /// The agent.
        agent: AgentId,
        /// The task.
        task: TaskId,
        /// The service.
        service: ServiceId,
    },
    /// Declare a service with this capability in `llmservices.json`.
    Declare {
        /// The capability.
        capability: Capability,
    },
    /// Resume a parked or paused agent: `POST /api/agents/{agent}/resume` with this `scope`.
    Resume {
        /// The agent.
        agent: AgentId,
        /// Which agents to resume.
        #[serde(default)]
        scope: ResumeScope,
    },
    /// Raise a limit in `app.json`.
    RaiseLimit {
        /// The name of the limit.
        limit: String,
    },
    /// Find out what is wrong with a service: run `polity doctor`, and check the service's entry in `llmservices.json`.
    CheckService {
        /// The service.
        service: ServiceId,
    },
    /// Answer a question.
    Answer {
        /// The question.
        message: MessageId,
        /// Who asks.
        agent: AgentId,
        /// The task.
        task: TaskId,
    },
    /// Allow or refuse a call that an agent asks about.
    Decide {
        /// The question about the call.
        approval: ApprovalId,
    },
    /// Stop the work of an agent, so that nobody waits for it any more.
    Stop {
        /// The agent.
        agent: AgentId,
    },
    /// Write to an agent, so that it goes on.
    Write {
        /// The agent.
        agent: AgentId,
        /// The task.
        task: TaskId,
    },
    /// Begin the turn that sent the request again, in a fork of the task.
    RunAgain {
        /// The agent whose turn it is.
        agent: AgentId,
        /// The task.
        task: TaskId,
        /// The turn.
        turn: i64,
        /// The service to use: one that takes the content that the agent's service does not take, or one that has not
        /// failed. Absent if there is no such service.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        service: Option<ServiceId>,
    },
}

/// Which agents a remedy resumes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ResumeScope {
    /// Only the agent itself.
    #[default]
    Agent,
    /// The agent and all its descendants: a pause applies to all of them.
    Subtree,
}

/// A filter that selects the request to explain, if several requests described an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WhyFilter {
    /// Only requests of this agent count. This applies only to the explanation of an artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentId>,
    /// The number of the request to explain. By default, the newest request that described the artifact is explained.
    /// This applies only to the explanation of an artifact.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<i64>,
}
