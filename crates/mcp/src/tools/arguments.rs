//! What the tools take. The schemas are made of these types, and the same types read the arguments.

use super::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use polity_runtime::view::{AgentState, TaskState};
use polity_runtime::{Attachment, NewArtifact, Target};
use polity_society::content::{Capability, Direction, Kind};
use polity_society::id::{AgentId, ArtifactId, MessageId, TaskId};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Map;

/// `give_task`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct GiveTask {
    /// What is to be done, in the user's words, with all that is needed to do it.
    pub(crate) prompt: String,
    /// Files that go with it.
    pub(crate) attachments: Option<Vec<Attached>>,
    /// A key of your own choice: the same task given again under the same key is the same task.
    pub(crate) key: Option<String>,
}

/// Something that goes with a message: one of `reference`, `text` and `base64`.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Attached {
    /// An artifact that is there, as artifact:….
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
    /// `next` of the call before; without it, all that has happened is told.
    pub(crate) after: Option<i64>,
    /// How long to wait at most, in seconds; 20 where nothing is said, 0 to look only, 600 at most.
    pub(crate) wait_seconds: Option<u64>,
}

/// `send_message`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct SendMessage {
    /// The id of an agent; root with a task goes on with that task, root without one begins a new task.
    pub(crate) to: String,
    /// What it says.
    pub(crate) text: String,
    /// The task; for agents other than root it is the one that they were hired for.
    pub(crate) task: Option<TaskId>,
    /// Files that go with it.
    pub(crate) attachments: Option<Vec<Attached>>,
    /// A key of your own choice: the same message under the same key is sent once.
    pub(crate) key: Option<String>,
}

/// `answer_question`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct AnswerQuestion {
    /// The id of the message that asks.
    pub(crate) question: MessageId,
    /// The answer.
    pub(crate) text: String,
    /// Files that go with it.
    pub(crate) attachments: Option<Vec<Attached>>,
}

/// `list_tasks`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListTasks {
    /// Only those that are open, or idle.
    pub(crate) state: Option<TaskState>,
    /// `next` of the page before.
    pub(crate) after: Option<i64>,
    /// How many at most.
    pub(crate) limit: Option<u32>,
}

/// `list_agents`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ListAgents {
    /// Only those that were hired for this task, and root.
    pub(crate) task: Option<TaskId>,
    /// Only those that are in this state.
    pub(crate) state: Option<AgentState>,
    /// Only those of this role: its id, or its name.
    pub(crate) role: Option<String>,
    /// Only those whose service has this capability now.
    pub(crate) capability: Option<Capability>,
    /// In which direction; `input` where none is given.
    pub(crate) direction: Option<Direction>,
    /// Whether those are listed too that have ended.
    pub(crate) ended: Option<bool>,
    /// `next` of the page before.
    pub(crate) after: Option<i64>,
    /// How many at most.
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
    /// Only those of this task.
    pub(crate) task: Option<TaskId>,
    /// Only those that this agent has stored.
    pub(crate) owner: Option<AgentId>,
    /// Only those of this kind.
    pub(crate) kind: Option<Kind>,
    /// `next` of the page before.
    pub(crate) after: Option<i64>,
    /// How many at most.
    pub(crate) limit: Option<u32>,
}

/// `read_artifact`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReadArtifact {
    /// The reference, as artifact:….
    #[serde(rename = "ref")]
    pub(crate) reference: String,
    /// Where the page of a text begins, in characters.
    pub(crate) offset: Option<u64>,
    /// How many characters the page has at most.
    pub(crate) limit: Option<u64>,
}

/// `stop`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Stop {
    /// The id of the agent; `root` means everybody. Left out where a task is stopped.
    pub(crate) agent: Option<AgentId>,
    /// Whether all below it are meant too, which is what counts where nothing is said.
    #[serde(default)]
    pub(crate) scope: Scope,
    /// The task that is stopped as a whole, in the place of an agent.
    pub(crate) task: Option<TaskId>,
}

/// `pause` and `resume`
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Steer {
    /// The id of the agent; `root` means everybody.
    pub(crate) agent: AgentId,
    /// Whether all below it are meant too, which is what counts where nothing is said.
    #[serde(default)]
    pub(crate) scope: Scope,
}

/// Who is meant beside an agent.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scope {
    /// All below it.
    #[default]
    Subtree,
    /// Nobody.
    Agent,
}

impl Steer {
    /// Who is meant.
    pub(crate) fn target(self) -> Target {
        match self.scope {
            Scope::Subtree => Target::Subtree(self.agent),
            Scope::Agent => Target::Agent(self.agent),
        }
    }
}

impl Attached {
    /// What is to be stored, or named.
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
                Err(_) => return invalid("base64 is not base64"),
            },
            _ => return invalid("an attachment has one of reference, text and base64"),
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
