//! What may be shown of what happens. Events are derived from what is written, in the same transaction; they are for
//! people and programs that follow, never for the society itself.

mod line;

use polity_llm::{FailureKind, Usage};
use polity_society::contact::Source;
use polity_society::content::{Capability, Kind};
use polity_society::id::{AgentId, ArtifactId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::message::{Finality, MessageType};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

/// Reads what earlier versions wrote, too: one id in the place of a list.
fn one_or_several<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Vec<MessageId>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Ids {
        Several(Vec<MessageId>),
        One(MessageId),
    }
    Ok(match Option::<Ids>::deserialize(deserializer)? {
        Some(Ids::Several(ids)) => ids,
        Some(Ids::One(id)) => vec![id],
        None => Vec::new(),
    })
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
pub enum Event {
    /// The person began a task.
    TaskStarted {
        /// The task.
        task: TaskId,
    },
    /// Nothing is left to do in a task.
    TaskIdle {
        /// The task.
        task: TaskId,
        /// How it stands.
        outcome: Outcome,
    },
    /// What was said and done in a task that is over was removed, to keep the database within its bound.
    TaskForgotten {
        /// The task.
        task: TaskId,
    },
    /// A role was made.
    RoleCreated {
        /// The task.
        task: TaskId,
        /// The role.
        role: RoleId,
        /// Its name.
        name: String,
        /// Who made it.
        creator: AgentId,
        /// The service that was chosen for it.
        service: ServiceId,
    },
    /// The person changed a role: it counts for the next model call of its agents.
    RoleChanged {
        /// The task.
        task: TaskId,
        /// The role.
        role: RoleId,
        /// Its name.
        name: String,
        /// The fields that are different now, under their names in JSON.
        fields: Vec<String>,
        /// The service that is chosen for it now.
        service: ServiceId,
    },
    /// An agent was hired.
    AgentCreated {
        /// The task.
        task: TaskId,
        /// The agent.
        agent: AgentId,
        /// Who hired it.
        parent: AgentId,
        /// The role.
        role: RoleId,
        /// What it is to reach.
        objective: String,
    },
    /// An agent was ended.
    AgentEnded {
        /// The agent.
        agent: AgentId,
        /// Why.
        reason: String,
    },
    /// The older part of a conversation was replaced by a summary, because it outgrew the context window.
    ContextCompacted {
        /// The task.
        task: TaskId,
        /// Whose conversation it is.
        agent: AgentId,
        /// How many tokens the request was estimated at.
        tokens: u64,
        /// How many of the newest entries stayed.
        kept: u64,
        /// Where the summary comes from.
        summary: SummarySource,
    },
    /// Agents wait for each other's answers; each of them was told.
    DeadlockFound {
        /// The task.
        task: TaskId,
        /// The agents.
        agents: Vec<AgentId>,
    },
    /// An agent failed again and again: it does not go on until somebody says so.
    AgentParked {
        /// The task.
        task: TaskId,
        /// The agent.
        agent: AgentId,
        /// What failed.
        reason: String,
    },
    /// The person paused an agent: it does nothing until it is resumed.
    AgentPaused {
        /// The agent.
        agent: AgentId,
    },
    /// An agent that was parked or paused goes on.
    AgentResumed {
        /// The agent.
        agent: AgentId,
    },
    /// The person stopped what an agent was doing in a task, and what it was asked to do.
    AgentStopped {
        /// The task.
        task: TaskId,
        /// The agent.
        agent: AgentId,
    },
    /// Somebody can write to somebody from now on.
    ContactAdded {
        /// Whose registry it is.
        owner: AgentId,
        /// Whom it can write to.
        agent: AgentId,
        /// How it came there.
        source: Source,
        /// Who introduced the two.
        #[serde(skip_serializing_if = "Option::is_none")]
        introduced_by: Option<AgentId>,
    },
    /// A message was accepted.
    MessageAccepted {
        /// The task.
        task: TaskId,
        /// The message.
        message: MessageId,
        /// The sender: an agent's id, `user` or `system`.
        from: String,
        /// The receiver.
        to: AgentId,
        /// Its type; `notice` where the system speaks.
        #[serde(rename = "type")]
        message_type: String,
        /// What it says: whole where it is for the person, the beginning otherwise.
        text: String,
        /// Its artifacts.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<ArtifactId>,
        /// The requests that it answers.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_several")]
        #[schemars(with = "Vec<MessageId>")]
        in_reply_to: Vec<MessageId>,
        /// Whether it is the last word.
        finality: Finality,
    },
    /// A message that was sent before turns out to be the answer: nothing more is to come, and it is not sent again.
    AnswerSettled {
        /// The task.
        task: TaskId,
        /// Who said it.
        agent: AgentId,
        /// The message, which is final from now on.
        message: MessageId,
        /// The requests that it answers from now on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<MessageId>,
    },
    /// A message to the person that was sent with a delay is due.
    MessageDue {
        /// The task.
        task: TaskId,
    },
    /// A message could not be delivered, because its receiver has ended.
    MessageBounced {
        /// The message.
        message: MessageId,
        /// The receiver.
        to: AgentId,
    },
    /// An artifact was stored.
    ArtifactStored {
        /// The task; none where the person has stored it and sent it to nobody yet.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// The artifact.
        artifact: ArtifactId,
        /// Who stored it.
        owner: AgentId,
        /// What it is.
        kind: Kind,
        /// Its MIME type.
        mime_type: String,
        /// Its size in bytes.
        size: u64,
        /// Its file name.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    /// An agent began to work on a message.
    TurnStarted {
        /// The task.
        task: TaskId,
        /// The agent.
        agent: AgentId,
        /// The message.
        message: MessageId,
    },
    /// A turn ended.
    TurnEnded {
        /// The task.
        task: TaskId,
        /// The agent.
        agent: AgentId,
        /// Why it ended early, if it did.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A model answered.
    ModelAnswered {
        /// The task.
        task: TaskId,
        /// Who asked.
        agent: AgentId,
        /// The service.
        service: ServiceId,
        /// The model.
        model: String,
        /// The revision of the configuration that served it.
        revision: u64,
        /// Tokens in and out.
        usage: Usage,
        /// How many attempts it took.
        attempts: u32,
        /// How the artifacts of the conversation were shown to it.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        content: Vec<Shown>,
    },
    /// A model call brought no answer.
    ModelFailed {
        /// The task.
        task: TaskId,
        /// Who asked.
        agent: AgentId,
        /// The service.
        service: ServiceId,
        /// Which attempt it was.
        attempt: u32,
        /// What sort of failure.
        kind: FailureKind,
        /// The HTTP status, where there was one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        status: Option<u16>,
        /// What was said.
        reason: String,
        /// What is done about it.
        next: NextAttempt,
        /// Where the server blames media: the declared capabilities that look wrong.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        suspects: Vec<Capability>,
    },
    /// A service was not asked, because it is down or has asked to be left alone; its fallback is.
    ServiceSkipped {
        /// The task.
        task: TaskId,
        /// Who asks.
        agent: AgentId,
        /// The service.
        service: ServiceId,
        /// The one that is asked instead.
        fallback: ServiceId,
        /// Why.
        reason: String,
    },
    /// A tool was called.
    ToolCalled {
        /// The task.
        task: TaskId,
        /// Who called.
        agent: AgentId,
        /// The tool.
        tool: String,
        /// The code of the refusal, where it was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
    },
    /// A limit was reached.
    LimitReached {
        /// The task.
        task: TaskId,
        /// Where it was reached.
        agent: AgentId,
        /// Its name in `app.json`.
        limit: String,
        /// Its value.
        value: Number,
    },
    /// A change of the configuration is in force.
    ConfigTaken {
        /// The revision.
        revision: u64,
        /// What differs from the one before.
        differences: Vec<String>,
        /// What is wrong with the files all the same.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        problems: Vec<String>,
    },
    /// A change of the configuration was not taken: the last good one goes on.
    ConfigRefused {
        /// The revision that goes on.
        revision: u64,
        /// What is wrong.
        problems: Vec<String>,
    },
    /// An artifact could not be read from the store.
    ArtifactUnreadable {
        /// The artifact.
        artifact: ArtifactId,
        /// Why.
        reason: String,
    },
}

/// How an artifact was shown to a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Shown {
    /// The artifact.
    pub artifact: ArtifactId,
    /// `text`, `image_url`, `input_audio`, `file`, or `described`.
    pub routing: String,
}

/// What is done about a call that brought no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum NextAttempt {
    /// The same again, after a pause.
    Retry,
    /// The same with media described in text.
    DescribeMedia,
    /// The same with older history summed up.
    Compact,
    /// The same, with a line more that says how to call tools.
    Reword,
    /// Another service.
    Fallback,
    /// Nothing: the turn fails.
    GiveUp,
}

/// Who made a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SummarySource {
    /// The model of the agent's service.
    Model,
    /// Nobody: no model could, so the last entries were kept as they were.
    Entries,
}

/// How a task stands when nothing is left to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The person has a final answer.
    Answered,
    /// An agent waits for the person's answer.
    AwaitsUser,
    /// There is no answer.
    Unanswered,
    /// There is no answer, and no model has ever answered.
    NoModel,
    /// There is no answer, because a limit stopped the task.
    Limited,
}

impl Event {
    /// The task that it belongs to, where it belongs to one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::TaskStarted { task }
            | Self::TaskIdle { task, .. }
            | Self::TaskForgotten { task }
            | Self::RoleCreated { task, .. }
            | Self::RoleChanged { task, .. }
            | Self::AgentCreated { task, .. }
            | Self::MessageAccepted { task, .. }
            | Self::MessageDue { task }
            | Self::AnswerSettled { task, .. }
            | Self::TurnStarted { task, .. }
            | Self::TurnEnded { task, .. }
            | Self::ContextCompacted { task, .. }
            | Self::DeadlockFound { task, .. }
            | Self::AgentParked { task, .. }
            | Self::AgentStopped { task, .. }
            | Self::ModelAnswered { task, .. }
            | Self::ModelFailed { task, .. }
            | Self::ServiceSkipped { task, .. }
            | Self::ToolCalled { task, .. }
            | Self::LimitReached { task, .. } => Some(task),
            Self::ArtifactStored { task, .. } => task.as_ref(),
            Self::AgentEnded { .. }
            | Self::AgentPaused { .. }
            | Self::AgentResumed { .. }
            | Self::ConfigTaken { .. }
            | Self::ConfigRefused { .. }
            | Self::ContactAdded { .. }
            | Self::MessageBounced { .. }
            | Self::ArtifactUnreadable { .. } => None,
        }
    }

    /// The agent that it is about, where it is about one.
    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::AgentCreated { agent, .. }
            | Self::AgentEnded { agent, .. }
            | Self::ContextCompacted { agent, .. }
            | Self::AgentParked { agent, .. }
            | Self::AgentPaused { agent }
            | Self::AgentResumed { agent }
            | Self::AgentStopped { agent, .. }
            | Self::AnswerSettled { agent, .. }
            | Self::TurnStarted { agent, .. }
            | Self::TurnEnded { agent, .. }
            | Self::ModelAnswered { agent, .. }
            | Self::ModelFailed { agent, .. }
            | Self::ServiceSkipped { agent, .. }
            | Self::ToolCalled { agent, .. }
            | Self::LimitReached { agent, .. } => Some(agent),
            Self::RoleCreated { creator, .. } => Some(creator),
            Self::ContactAdded { owner, .. } | Self::ArtifactStored { owner, .. } => Some(owner),
            Self::MessageAccepted { to, .. } | Self::MessageBounced { to, .. } => Some(to),
            Self::TaskStarted { .. }
            | Self::RoleChanged { .. }
            | Self::TaskIdle { .. }
            | Self::TaskForgotten { .. }
            | Self::MessageDue { .. }
            | Self::DeadlockFound { .. }
            | Self::ConfigTaken { .. }
            | Self::ConfigRefused { .. }
            | Self::ArtifactUnreadable { .. } => None,
        }
    }

    /// The name of its type in a message event.
    pub fn type_name(message_type: Option<MessageType>) -> String {
        message_type.map_or("notice", MessageType::as_str).to_owned()
    }
}

/// An event with its place in the order of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// Its number; numbers grow.
    pub seq: i64,
    /// When, in milliseconds since 1970.
    pub at: i64,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}
