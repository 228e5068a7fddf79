//! The arguments of the tools. These types define the schemas, and they parse the arguments.

use crate::refusal::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polity_runtime::{Attachment, NewArtifact, Target};
use polity_society::content::{Capability, Direction, Kind};
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use polity_view::{AgentState, TaskState};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;

/// `give_task`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GiveTask {
    /// The task in the user's words, with everything that is needed to do it.
    pub(crate) prompt: String,
    /// Files to attach.
    pub(crate) attachments: Option<Vec<Attached>>,
    /// A key of your choice. If you give the same task again with the same key, no second task begins.
    pub(crate) key: Option<String>,
}

/// An attachment of a message: exactly one of `reference`, `text` and `base64`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Attached {
    /// An existing artifact, as artifact:….
    reference: Option<String>,
    /// The content of a new file, as text.
    text: Option<String>,
    /// The content of a new file, in base64.
    base64: Option<String>,
    /// The name of the new file.
    filename: Option<String>,
    /// The MIME type of the new file.
    mime_type: Option<String>,
}

/// `follow_task`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct FollowTask {
    /// The id of the task.
    pub(crate) task: String,
    /// The field `next` from the result of the previous call. Without it, the result contains everything that has
    /// happened.
    pub(crate) after: Option<i64>,
    /// Longest time to wait, in seconds. The default is 20, and the maximum is 600. With 0, the call does not wait.
    pub(crate) wait_seconds: Option<u64>,
}

/// `send_message`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// The id of an agent. A message to root continues the task that the field `task` names. If this field is missing,
    /// the message begins a new task.
    pub(crate) to: String,
    /// The text of the message.
    pub(crate) text: String,
    /// The task. For an agent other than root, this is the task that the agent was hired for.
    pub(crate) task: Option<TaskId>,
    /// Files to attach.
    pub(crate) attachments: Option<Vec<Attached>>,
    /// A key of your choice. If you send the same message again with the same key, it is delivered only once.
    pub(crate) key: Option<String>,
}

/// `answer_question`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerQuestion {
    /// The id of the message that contains the question.
    pub(crate) question: MessageId,
    /// The text of the answer.
    pub(crate) text: String,
    /// Files to attach.
    pub(crate) attachments: Option<Vec<Attached>>,
}

/// `list_tasks`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListTasks {
    /// Only tasks in this state: open, or idle.
    pub(crate) state: Option<TaskState>,
    /// `next` of the previous page.
    pub(crate) after: Option<i64>,
    /// Largest number of tasks to return.
    pub(crate) limit: Option<u32>,
}

/// `list_agents`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListAgents {
    /// Only root and the agents hired for this task.
    pub(crate) task: Option<TaskId>,
    /// Only agents in this state.
    pub(crate) state: Option<AgentState>,
    /// Only agents of this role: its id, or its name.
    pub(crate) role: Option<String>,
    /// Only agents whose service has this capability now.
    pub(crate) capability: Option<Capability>,
    /// The direction of the capability; `input` by default.
    pub(crate) direction: Option<Direction>,
    /// Whether to include agents that have ended.
    pub(crate) ended: Option<bool>,
    /// `next` of the previous page.
    pub(crate) after: Option<i64>,
    /// Largest number of agents to return.
    pub(crate) limit: Option<u32>,
}

/// `get_agent`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GetAgent {
    /// The id of the agent.
    pub(crate) agent: AgentId,
}

/// `list_artifacts`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListArtifacts {
    /// Only artifacts of this task.
    pub(crate) task: Option<TaskId>,
    /// Only artifacts that this agent has stored.
    pub(crate) owner: Option<AgentId>,
    /// Only artifacts of this kind.
    pub(crate) kind: Option<Kind>,
    /// `next` of the previous page.
    pub(crate) after: Option<i64>,
    /// Largest number of artifacts to return.
    pub(crate) limit: Option<u32>,
}

/// `read_artifact`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadArtifact {
    /// The reference, as artifact:….
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    /// If the artifact is a text: where the page to read begins, in characters.
    pub(crate) offset: Option<u64>,
    /// Largest number of characters in the page.
    pub(crate) limit: Option<u64>,
}

/// `stop`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Stop {
    /// The id of the agent; `root` means everybody. Leave it out to stop a task.
    pub(crate) agent: Option<AgentId>,
    /// The agents that the call affects: the agent with all its descendants (the default), or the agent alone.
    #[serde(default)]
    pub(crate) scope: Scope,
    /// The task to stop as a whole, instead of an agent.
    pub(crate) task: Option<TaskId>,
}

/// `pause` and `resume`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Steer {
    /// The id of the agent; `root` means everybody.
    pub(crate) agent: AgentId,
    /// The agents that the call affects: the agent with all its descendants (the default), or the agent alone.
    #[serde(default)]
    pub(crate) scope: Scope,
}

/// The agents that the call affects.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// The agent and all its descendants.
    #[default]
    Subtree,
    /// The agent alone.
    Agent,
}

impl Steer {
    /// Returns the agents that the call affects.
    pub(crate) fn target(self) -> Target {
        match self.scope {
            Scope::Subtree => Target::Subtree(self.agent),
            Scope::Agent => Target::Agent(self.agent),
        }
    }
}

impl Attached {
    /// Converts the argument into a new file to store, or into a reference to a stored artifact.
    pub(crate) fn into_attachment(self) -> Result<Attachment, Refusal> {
        let invalid = |message: &str| {
            Err(Refusal { code: "invalid_arguments".to_owned(), message: message.to_owned(), details: None })
        };
        let bytes = match (self.reference, self.text, self.base64) {
            (Some(reference), None, None) => {
                let id = ArtifactId::from_reference(&reference);
                return id.map_or_else(
                    || invalid("reference is not of the form artifact:…"),
                    |id| Ok(Attachment::Stored(id)),
                );
            }
            (None, Some(text), None) => text.into_bytes(),
            (None, None, Some(base64)) => match STANDARD.decode(base64.trim()) {
                Ok(bytes) => bytes,
                Err(_) => return invalid("the field base64 does not contain valid base64"),
            },
            _ => return invalid("an attachment needs exactly one of reference, text and base64"),
        };
        Ok(Attachment::New(NewArtifact {
            bytes: bytes.into(),
            declared_mime: self.mime_type,
            filename: self.filename,
            label: None,
            meta: Map::new(),
        }))
    }
}
