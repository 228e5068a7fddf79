//! Events: what happened in a society, for people and programs that watch it. The store derives events from the
//! changes that it writes, in the same transaction. The society itself never reads them.

mod detail;
mod sentence;

pub use detail::{Because, NextAttempt, Outcome, Routing, Shown, SummarySource, WhyDescribed};
pub(crate) use sentence::beginning;
pub use sentence::{Span, Tone};

use crate::approval::ApprovalState;
use polity_llm::{FailureKind, Usage};
use polity_society::contact::Source;
use polity_society::content::{Capability, Kind};
use polity_society::id::{AgentId, ApprovalId, ArtifactId, CallId, MessageId, RoleId, ServiceId, TaskId};
use polity_society::message::{Finality, MessageType, NOTICE};
use polity_society::mime::MimeType;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;
use strum::{EnumDiscriminants, IntoStaticStr, VariantArray};

/// Reads a list of ids. Earlier versions wrote a single id instead of a list; this function reads both forms.
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
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, EnumDiscriminants)]
#[serde(tag = "event", rename_all = "snake_case", rename_all_fields = "camelCase")]
#[strum_discriminants(name(EventKind), doc = "A kind of event.")]
#[strum_discriminants(derive(VariantArray, IntoStaticStr), strum(serialize_all = "snake_case"))]
pub enum Event {
    /// The person began a task.
    TaskStarted {
        /// The new task.
        task: TaskId,
    },
    /// Nothing is left to do in a task. If the person then stops agents and this changes the outcome, the event comes
    /// again.
    TaskIdle {
        /// The idle task.
        task: TaskId,
        /// How the task ended.
        outcome: Outcome,
    },
    /// The person began a fork: a new task that is a copy of another task up to a turn.
    TaskForked {
        /// The new task.
        task: TaskId,
        /// The task that was copied.
        from: TaskId,
        /// The turn that the new task begins again.
        turn: i64,
    },
    /// The messages and records of an ended task were removed, to keep the database within its bound.
    TaskForgotten {
        /// The task that was forgotten.
        task: TaskId,
    },
    /// A role was created.
    RoleCreated {
        /// The task that the role belongs to.
        task: TaskId,
        /// The id of the role.
        role: RoleId,
        /// The name of the role.
        name: String,
        /// The agent that created the role.
        creator: AgentId,
        /// The service that was chosen for the role.
        service: ServiceId,
    },
    /// The person changed a role. The changes take effect at the next model call of the role's agents.
    RoleChanged {
        /// The task that the role belongs to.
        task: TaskId,
        /// The id of the role.
        role: RoleId,
        /// The name of the role.
        name: String,
        /// The changed fields, by their names in JSON.
        fields: Vec<String>,
        /// The service of the role after the change.
        service: ServiceId,
    },
    /// An agent was hired.
    AgentCreated {
        /// The task that the agent works for.
        task: TaskId,
        /// The new agent.
        agent: AgentId,
        /// The agent that hired the new agent.
        parent: AgentId,
        /// The role of the new agent.
        role: RoleId,
        /// The beginning of the objective in the task brief of the new agent.
        objective: String,
    },
    /// An agent was ended.
    AgentEnded {
        /// The agent that has ended.
        agent: AgentId,
        /// The reason that was given.
        reason: String,
    },
    /// A conversation outgrew the context window, so a summary replaced its older part.
    ContextCompacted {
        /// The task of the conversation.
        task: TaskId,
        /// The agent that has the conversation.
        agent: AgentId,
        /// Estimated tokens of the request that was too long.
        tokens: u64,
        /// How many of the newest entries were kept.
        kept: u64,
        /// Where the summary comes from.
        summary: SummarySource,
    },
    /// Agents wait for each other's answers. Each of these agents was notified.
    DeadlockFound {
        /// The task in which the agents wait.
        task: TaskId,
        /// The agents that wait for each other.
        agents: Vec<AgentId>,
    },
    /// An agent failed again and again, and was parked: it does nothing in the task until it is resumed or stopped.
    AgentParked {
        /// The task in which the agent is parked.
        task: TaskId,
        /// The parked agent.
        agent: AgentId,
        /// The failure for which the agent was parked.
        reason: String,
        /// How many turns of the agent had failed in a row. 0 if the agent was parked for another reason. Absent in
        /// events of earlier versions.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        failed_turns: Option<u64>,
    },
    /// The person paused an agent. The agent does nothing until somebody resumes it.
    AgentPaused {
        /// The paused agent.
        agent: AgentId,
    },
    /// A parked or paused agent was resumed.
    AgentResumed {
        /// The resumed agent.
        agent: AgentId,
    },
    /// The person stopped an agent in a task. The agent's turn was ended. The messages that waited for the agent and
    /// its questions to the person were dropped. If the agent was parked in the task, this has ended, too.
    AgentStopped {
        /// The task in which the agent was stopped.
        task: TaskId,
        /// The stopped agent.
        agent: AgentId,
    },
    /// A party got to know another party, and can write to it from now on.
    ContactAdded {
        /// The party that has the new contact.
        owner: AgentId,
        /// The new contact.
        agent: AgentId,
        /// How the party came to know the contact.
        source: Source,
        /// The agent that introduced the contact.
        #[serde(skip_serializing_if = "Option::is_none")]
        introduced_by: Option<AgentId>,
    },
    /// A message was accepted.
    MessageAccepted {
        /// The task of the message.
        task: TaskId,
        /// The id of the message.
        message: MessageId,
        /// The sender: an agent's id, `user` or `system`.
        from: String,
        /// The receiver.
        to: AgentId,
        /// The type of the message; `notice` for a notice of the system.
        #[serde(rename = "type")]
        message_type: String,
        /// The text of the message. A message to the person has its complete text here. Any other message has only
        /// the beginning of its text here.
        text: String,
        /// The attached artifacts.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        attachments: Vec<ArtifactId>,
        /// The requests that the message answers.
        #[serde(default, skip_serializing_if = "Vec::is_empty", deserialize_with = "one_or_several")]
        #[schemars(with = "Vec<MessageId>")]
        in_reply_to: Vec<MessageId>,
        /// Whether the message is final or interim. After an interim message, more messages will follow.
        finality: Finality,
    },
    /// An earlier interim message now counts as the final answer, because nothing more will follow. The message is not
    /// sent again.
    AnswerSettled {
        /// The task of the message.
        task: TaskId,
        /// The sender of the message.
        agent: AgentId,
        /// The message, which is final from now on.
        message: MessageId,
        /// The requests that the message answers from now on.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        answers: Vec<MessageId>,
    },
    /// A delayed message to the person is due.
    MessageDue {
        /// The task of the message.
        task: TaskId,
    },
    /// A message could not be delivered, because its receiver has ended.
    MessageBounced {
        /// The id of the message.
        message: MessageId,
        /// The receiver that has ended.
        to: AgentId,
    },
    /// An artifact was stored.
    ArtifactStored {
        /// The task of the artifact. Absent as long as the person has not sent the artifact to an agent.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        task: Option<TaskId>,
        /// The id of the artifact.
        artifact: ArtifactId,
        /// The party that stored the artifact.
        owner: AgentId,
        /// The kind of the content.
        kind: Kind,
        /// The MIME type of the bytes.
        mime_type: MimeType,
        /// The size in bytes.
        size: u64,
        /// The name of the file that the artifact came from.
        #[serde(skip_serializing_if = "Option::is_none")]
        filename: Option<String>,
    },
    /// An agent began to work on a message.
    TurnStarted {
        /// The task of the message.
        task: TaskId,
        /// The agent that works.
        agent: AgentId,
        /// The message that began the turn.
        message: MessageId,
    },
    /// A turn ended.
    TurnEnded {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose turn ended.
        agent: AgentId,
        /// Why the turn failed, if it failed.
        #[serde(skip_serializing_if = "Option::is_none")]
        failure: Option<String>,
    },
    /// A model answered.
    ModelAnswered {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose turn made the call.
        agent: AgentId,
        /// The service that answered.
        service: ServiceId,
        /// The model that answered, by the name that the server uses.
        model: String,
        /// The revision of the configuration that the call used.
        revision: u64,
        /// Tokens of the request and of the answer.
        usage: Usage,
        /// Number of attempts that the call needed.
        attempts: u32,
        /// How the request showed the artifacts of the conversation.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        content: Vec<Shown>,
        /// The number of the sent request that the model answered.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sent: Option<i64>,
    },
    /// An attempt of a model call failed.
    ModelFailed {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose turn made the call.
        agent: AgentId,
        /// The service that failed.
        service: ServiceId,
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The kind of failure.
        kind: FailureKind,
        /// The HTTP status, if the server sent one.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        status: Option<u16>,
        /// The failure in words.
        reason: String,
        /// What happens next.
        next: NextAttempt,
        /// The declared capabilities that are probably wrong. Present only if media in the request are the probable
        /// reason of the failure.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        suspects: Vec<Capability>,
        /// The number of the sent request. Absent if no request was sent.
        #[serde(skip_serializing_if = "Option::is_none", default)]
        sent: Option<i64>,
    },
    /// Polity sent a call to the fallback of a service. The service itself was skipped, because it is down or wants no
    /// calls for a while.
    ServiceSkipped {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose turn made the call.
        agent: AgentId,
        /// The service that was skipped.
        service: ServiceId,
        /// The service that got the call instead.
        fallback: ServiceId,
        /// Why the service was skipped.
        reason: String,
    },
    /// A tool that acts outside the society begins to run.
    ToolStarted {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose model called the tool.
        agent: AgentId,
        /// The id of the call.
        call: CallId,
        /// The name of the tool.
        tool: String,
        /// The beginning of the arguments, as JSON.
        arguments: String,
    },
    /// A tool that acts outside the society reports its progress. A call causes at most four such events a second.
    ToolProgress {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose model called the tool.
        agent: AgentId,
        /// The id of the call.
        call: CallId,
        /// The name of the tool.
        tool: String,
        /// The report.
        text: String,
    },
    /// The person is asked whether an agent may make a call. The agent waits.
    ApprovalRequested {
        /// The task of the turn.
        task: TaskId,
        /// The agent that wants to make the call.
        agent: AgentId,
        /// The id of the question.
        approval: ApprovalId,
        /// The name of the tool.
        tool: String,
        /// The beginning of the arguments, as JSON.
        arguments: String,
    },
    /// A question about a call has ended: the person answered it, or it was dropped, or it expired.
    ApprovalEnded {
        /// The task of the turn.
        task: TaskId,
        /// The agent that wanted to make the call.
        agent: AgentId,
        /// The id of the question.
        approval: ApprovalId,
        /// The name of the tool.
        tool: String,
        /// How the question ended.
        state: ApprovalState,
        /// The reason that the person gave.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A tool was called.
    ToolCalled {
        /// The task of the turn.
        task: TaskId,
        /// The agent whose model called the tool.
        agent: AgentId,
        /// The name of the tool.
        tool: String,
        /// The id of the call.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call: Option<CallId>,
        /// The code of the refusal, if the call was refused.
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<String>,
        /// How long the tool ran, in milliseconds, if it acts outside the society.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        duration_ms: Option<u64>,
        /// The beginning of the result, if the tool acts outside the society.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        head: Option<String>,
    },
    /// A limit was reached.
    LimitReached {
        /// The task in which the limit was reached.
        task: TaskId,
        /// The agent that reached the limit.
        agent: AgentId,
        /// The name of the limit in `app.json`.
        limit: String,
        /// The value of the limit.
        value: Number,
    },
    /// Polity began to use a changed configuration.
    ConfigTaken {
        /// The revision of the new configuration.
        revision: u64,
        /// The differences from the previous configuration.
        differences: Vec<String>,
        /// The problems that the configuration files still have.
        #[serde(skip_serializing_if = "Vec::is_empty", default)]
        problems: Vec<String>,
    },
    /// Polity rejected a changed configuration. It keeps using the last valid configuration.
    ConfigRefused {
        /// The revision that polity keeps using.
        revision: u64,
        /// The problems in the configuration files.
        problems: Vec<String>,
    },
    /// The bytes of an artifact could not be read.
    ArtifactUnreadable {
        /// The id of the artifact.
        artifact: ArtifactId,
        /// Why the bytes could not be read.
        reason: String,
    },
}

impl EventKind {
    /// All kinds.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in the database.
    pub fn as_str(self) -> &'static str {
        self.into()
    }
}

impl Event {
    /// Returns the kind of the event.
    pub fn kind(&self) -> EventKind {
        self.into()
    }

    /// Returns the task that the event belongs to, if there is one.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::TaskStarted { task }
            | Self::TaskIdle { task, .. }
            | Self::TaskForked { task, .. }
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
            | Self::ToolStarted { task, .. }
            | Self::ToolProgress { task, .. }
            | Self::ApprovalRequested { task, .. }
            | Self::ApprovalEnded { task, .. }
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

    /// Returns the agent that the event is about, if there is one.
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
            | Self::ToolStarted { agent, .. }
            | Self::ToolProgress { agent, .. }
            | Self::ApprovalRequested { agent, .. }
            | Self::ApprovalEnded { agent, .. }
            | Self::ToolCalled { agent, .. }
            | Self::LimitReached { agent, .. } => Some(agent),
            Self::RoleCreated { creator, .. } => Some(creator),
            Self::ContactAdded { owner, .. } | Self::ArtifactStored { owner, .. } => Some(owner),
            Self::MessageAccepted { to, .. } | Self::MessageBounced { to, .. } => Some(to),
            Self::TaskStarted { .. }
            | Self::RoleChanged { .. }
            | Self::TaskIdle { .. }
            | Self::TaskForked { .. }
            | Self::TaskForgotten { .. }
            | Self::MessageDue { .. }
            | Self::DeadlockFound { .. }
            | Self::ConfigTaken { .. }
            | Self::ConfigRefused { .. }
            | Self::ArtifactUnreadable { .. } => None,
        }
    }

    /// Returns the name that events use for a message type. `None` stands for a notice of the system.
    pub fn type_name(message_type: Option<MessageType>) -> String {
        message_type.map_or(NOTICE, MessageType::as_str).to_owned()
    }
}

/// An event with its number and time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The number of the event. Later events have higher numbers.
    pub seq: i64,
    /// The time of the event, in milliseconds since 1970.
    pub at: i64,
    /// The event itself.
    #[serde(flatten)]
    pub event: Event,
}
