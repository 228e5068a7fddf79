//! What an agent is doing at this moment.

mod words;

pub use words::elapsed;

use crate::event::NextAttempt;
use polity_society::id::{AgentId, ApprovalId, MessageId, ServiceId, TaskId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use strum::{EnumString, IntoStaticStr, VariantArray};

/// What an agent is doing at this moment. If several variants apply, the first in this order counts: `ended`,
/// `paused`, `thinking`, `running`, `retrying`, `queued`, `ready`, `parked`, `asking` about a call, `asking` a question,
/// `waiting`, `idle`. In a task in which an agent is parked or asks about a call, it is in none of the states from
/// `thinking` to `ready`. So an agent with several tasks is `parked` or `asking` only if it can go on in none of them.
///
/// Only the rows of the database tell whether an agent has work. The variants `thinking`, `running`, `retrying` and
/// `queued` tell how far an agent is with its work. Only the process that runs the society knows this, and it stores
/// this nowhere.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "state", rename_all = "lowercase", rename_all_fields = "camelCase")]
pub enum Doing {
    /// The agent wants an answer from the person.
    Asking {
        /// The task in which the agent asks.
        task: TaskId,
        /// What the agent asks.
        about: About,
        /// When the agent asked.
        since: i64,
    },
    /// The agent has sent a request to a model, and the answer is not complete.
    Thinking {
        /// The task for which the agent works.
        task: TaskId,
        /// The service that is called now. It may be a fallback.
        service: ServiceId,
        /// The number of this attempt, counted from 1 for each call.
        attempt: u32,
        /// When the request was sent.
        since: i64,
        /// When the first byte of the answer arrived.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        first_byte: Option<i64>,
        /// Tokens of the answer that have arrived, estimated from its length.
        tokens: u64,
        /// Present if nothing has arrived from the server for some time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        silence: Option<Silence>,
    },
    /// The agent waits for its model: no request has been sent yet.
    Queued {
        /// The task for which the agent works.
        task: TaskId,
        /// The service that the agent waits for.
        service: ServiceId,
        /// The place in the queue of the service, from 1. Absent once the agent has left the queue. Polity then
        /// prepares the request. If the task's budget has no room for this call yet, polity first waits until other
        /// calls have ended.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        place: Option<u64>,
        /// When the agent began to wait.
        since: i64,
        /// Until this time, the service gets no calls at all.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        closed_until: Option<i64>,
    },
    /// The agent runs tools that act outside the society.
    Running {
        /// The task for which the agent works.
        task: TaskId,
        /// The names of the tools that have not ended.
        tools: Vec<String>,
        /// When the first of these tools was started.
        since: i64,
    },
    /// The agent pauses after a failure, and then calls the same service again.
    Retrying {
        /// The task for which the agent works.
        task: TaskId,
        /// The service that failed.
        service: ServiceId,
        /// The number of the attempt that failed, from 1.
        attempt: u32,
        /// The most attempts that the call may make.
        of: u32,
        /// How the attempt failed.
        why: String,
        /// When the attempt failed.
        since: i64,
        /// When the next attempt begins.
        until: i64,
    },
    /// The agent has work, but no other variant describes what it does: for instance, its last step is being written.
    /// Without a daemon, every agent with work is in this state.
    Ready {
        /// The task in which the agent has work.
        task: TaskId,
        /// Since when the agent has this work.
        since: i64,
    },
    /// The agent waits for answers from others, and has nothing else to do.
    Waiting {
        /// The requests that have no answer, oldest first; at most [`MAX_AWAITED`].
        requests: Vec<Awaited>,
        /// When the oldest of these requests was sent.
        since: i64,
    },
    /// The agent failed again and again in some task, and does nothing in that task until it is resumed or stopped.
    Parked {
        /// The task in which the agent is parked.
        task: TaskId,
        /// The failure for which the agent was parked.
        reason: String,
        /// When the agent was parked.
        since: i64,
    },
    /// The person has paused the agent in all tasks.
    Paused {
        /// When the agent was paused.
        since: i64,
    },
    /// The agent has nothing to do.
    Idle,
    /// The agent has ended and does nothing more.
    Ended {
        /// When the agent was ended.
        since: i64,
    },
}

/// Maximum number of requests that [`Doing::Waiting`] lists.
pub const MAX_AWAITED: usize = 20;

/// What an agent asks the person.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum About {
    /// Whether the agent may make a call.
    Approval(ApprovalId),
    /// A request to the person.
    Question(MessageId),
}

/// A request that has no answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Awaited {
    /// Who shall answer.
    pub agent: AgentId,
    /// The request.
    pub request: MessageId,
    /// The task of the request.
    pub task: TaskId,
    /// When the request was sent.
    pub since: i64,
}

/// A server has accepted a request, and sends nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Silence {
    /// When the last byte arrived or, if none has arrived, when the request was sent.
    pub since: i64,
    /// When the attempt is given up if the server stays silent.
    pub until: i64,
    /// What the call does after the attempt is given up.
    pub then: NextAttempt,
    /// The service that gets the next attempt, if `then` is `fallback`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fallback: Option<ServiceId>,
}

/// The state of an agent: the variant of [`Doing`], without its details.
#[derive(
    Clone,
    Copy,
    Debug,
    PartialEq,
    Eq,
    Hash,
    Serialize,
    Deserialize,
    JsonSchema,
    VariantArray,
    IntoStaticStr,
    EnumString,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum AgentState {
    /// The agent wants an answer from the person: to a question, or about a call that the person must allow.
    Asking,
    /// The agent has sent a request to a model, and the answer is not complete.
    Thinking,
    /// The agent runs a tool that acts outside the society.
    Running,
    /// The agent pauses after a failed call, before it tries again.
    Retrying,
    /// The agent waits for its model. The service must serve other agents first, or it gets no calls for a while.
    Queued,
    /// The agent has work, but no other state describes what it does.
    Ready,
    /// The agent waits for an answer, and has nothing else to do.
    Waiting,
    /// The agent failed again and again in some task, and does nothing in that task until it is resumed or stopped.
    Parked,
    /// The person has paused the agent in all tasks.
    Paused,
    /// The agent has nothing to do.
    Idle,
    /// The agent has ended and does nothing more.
    Ended,
}

impl AgentState {
    /// All states.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name in JSON and in SQL statements.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns whether an agent in this state has work that it can do now. Then the agent waits neither for another
    /// agent nor for the person.
    pub fn is_at_work(self) -> bool {
        matches!(self, Self::Thinking | Self::Running | Self::Retrying | Self::Queued | Self::Ready)
    }
}

impl Doing {
    /// Returns the state without its details.
    pub fn state(&self) -> AgentState {
        match self {
            Self::Asking { .. } => AgentState::Asking,
            Self::Thinking { .. } => AgentState::Thinking,
            Self::Queued { .. } => AgentState::Queued,
            Self::Running { .. } => AgentState::Running,
            Self::Retrying { .. } => AgentState::Retrying,
            Self::Ready { .. } => AgentState::Ready,
            Self::Waiting { .. } => AgentState::Waiting,
            Self::Parked { .. } => AgentState::Parked,
            Self::Paused { .. } => AgentState::Paused,
            Self::Idle => AgentState::Idle,
            Self::Ended { .. } => AgentState::Ended,
        }
    }

    /// Returns the time at which the agent began to do this; `None` for an agent that has nothing to do.
    pub fn since(&self) -> Option<i64> {
        match self {
            Self::Asking { since, .. }
            | Self::Thinking { since, .. }
            | Self::Queued { since, .. }
            | Self::Running { since, .. }
            | Self::Retrying { since, .. }
            | Self::Ready { since, .. }
            | Self::Waiting { since, .. }
            | Self::Parked { since, .. }
            | Self::Paused { since }
            | Self::Ended { since } => Some(*since),
            Self::Idle => None,
        }
    }

    /// Returns the task in which the agent works, asks the person, is parked, or has waited longest; `None` in all other
    /// states.
    pub fn task(&self) -> Option<&TaskId> {
        match self {
            Self::Asking { task, .. }
            | Self::Thinking { task, .. }
            | Self::Queued { task, .. }
            | Self::Running { task, .. }
            | Self::Retrying { task, .. }
            | Self::Ready { task, .. }
            | Self::Parked { task, .. } => Some(task),
            Self::Waiting { requests, .. } => requests.first().map(|oldest| &oldest.task),
            Self::Paused { .. } | Self::Idle | Self::Ended { .. } => None,
        }
    }

    /// Returns the service that the agent calls now or next. The agent may wait for its call, or may pause after a
    /// failed call.
    pub fn service(&self) -> Option<&ServiceId> {
        match self {
            Self::Thinking { service, .. }
            | Self::Queued { service, .. }
            | Self::Retrying { service, .. } => Some(service),
            Self::Asking { .. }
            | Self::Running { .. }
            | Self::Ready { .. }
            | Self::Waiting { .. }
            | Self::Parked { .. }
            | Self::Paused { .. }
            | Self::Idle
            | Self::Ended { .. } => None,
        }
    }
}

/// A transient event of an event stream: what an agent does at this moment, and what its model has said since the
/// previous glimpse. Glimpses have no numbers and are not stored, and some may be lost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Glimpse {
    /// The agent.
    pub agent: AgentId,
    /// The task for which the agent works.
    pub task: TaskId,
    /// What the agent does, as long as it is thinking, running, retrying or queued. Absent afterwards: then the stored
    /// events tell what happened next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doing: Option<Doing>,
    /// What the model has said since the previous glimpse; present while its answer arrives.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<Said>,
}

/// A part of an answer that is still arriving.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Said {
    /// The number of the attempt, counted since the start of the daemon. If this number differs from the number in the
    /// previous glimpse, a new answer has begun. The texts of earlier glimpses do not belong to the new answer.
    pub answer: u64,
    /// The next piece of the text.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The next piece of the reasoning.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reasoning: String,
    /// The names of all tools that the answer calls so far, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<String>,
    /// Whether characters are missing before `text`, because the model wrote faster than glimpses were sent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub text_skipped: bool,
    /// Whether characters are missing before `reasoning`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reasoning_skipped: bool,
}
