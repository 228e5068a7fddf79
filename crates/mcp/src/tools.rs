//! The tools: their names, schemas and implementations.

mod arguments;
mod asking;
mod follow;
mod schema;

pub(crate) use arguments::Attached;
pub(crate) use asking::{Inquiry, Person, Told};
pub(crate) use schema::Schema;

use crate::artifacts::{self, Block, Page};
use crate::refusal::Refusal;
use arguments::{
    AnswerQuestion, FollowTask, GetAgent, GiveTask, ListAgents, ListArtifacts, ListTasks, ReadArtifact,
    SendMessage, Steer, Stop,
};
use polity_runtime::{Society, UserMessage};
use polity_society::id::{AgentId, ApprovalId, ArtifactId, MessageId, TaskId};
use polity_society::message::Expects;
use polity_view::{
    AgentDetail, AgentFilter, AgentPage, ApprovalView, ArtifactFilter, ArtifactPage, MessageView, Posted,
    Steered, TaskFilter, TaskPage,
};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use strum::{EnumString, IntoStaticStr, VariantArray};
use tokio::sync::mpsc;

/// A tool that this server offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, VariantArray, IntoStaticStr, EnumString)]
#[strum(serialize_all = "snake_case")]
pub(crate) enum Tool {
    GiveTask,
    /// Waits for news in a task and reports the news.
    FollowTask,
    SendMessage,
    AnswerQuestion,
    ListTasks,
    ListAgents,
    GetAgent,
    ListArtifacts,
    ReadArtifact,
    /// Stops a task, or the work of agents.
    Stop,
    /// Halts agents until somebody resumes them.
    Pause,
    Resume,
}

/// What a tool does to the society.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The tool changes nothing.
    Reads,
    /// The tool adds something. A second call with the same arguments adds the same thing once more.
    Adds,
    /// The tool changes what agents do; a second call has no further effect.
    Steers,
    /// The tool ends the work of agents; a second call has no further effect.
    Ends,
}

/// The result of a tool.
#[derive(Debug)]
pub(crate) struct ToolOutput {
    /// The result as JSON, which matches the tool's output schema.
    pub(crate) data: Value,
    /// The result for display. If this is empty, the client gets `data` as text.
    pub(crate) blocks: Vec<Block>,
}

/// How a call of a tool ended.
#[derive(Debug)]
pub(crate) enum Outcome {
    Done(ToolOutput),
    /// The client asks the person first, and then repeats the call with the answers.
    Ask(Questions),
}

/// Questions to the person. Each question asks whether an agent may make a call.
#[derive(Debug)]
pub(crate) struct Questions {
    /// The questions to ask, oldest first.
    pub(crate) new: Vec<ApprovalView>,
    /// Questions that the person has put off. They are not asked again during this call.
    pub(crate) put_off: BTreeSet<ApprovalId>,
}

impl Tool {
    /// All tools, in the order in which clients see them.
    pub(crate) const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the tool's name in the protocol.
    pub(crate) fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the tool with this name.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Describes the tool for a model that chooses among tools.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::GiveTask => {
                "Give the society a new task. Its root agent hires others and works on it, which takes seconds to \
                 hours. Returns at once with the id of the task; use follow_task to wait for the answer."
            }
            Self::FollowTask => {
                "Wait until a task is done, an agent writes to the user, or waitSeconds have passed; then report \
                 what has happened since `after`. Call it again with `after` set to `next` until `finished` is true. \
                 Messages with expectsAnswer are questions: ask your user, then use answer_question. Only your user can \
                 decide about the calls in approvals."
            }
            Self::SendMessage => {
                "Write to an agent in the name of the user: to root with a task to continue it, or to any other \
                 agent. The agent's answer comes with follow_task."
            }
            Self::AnswerQuestion => "Answer a question that an agent has asked the user.",
            Self::ListTasks => "List the tasks of the society, newest first, with the state of each.",
            Self::ListAgents => {
                "List the agents of the society, parents before children, with what each is doing."
            }
            Self::GetAgent => "Show one agent: its role, brief, service, contacts, tasks and children.",
            Self::ListArtifacts => {
                "List the artifacts (files, pictures, reports) of the society, newest first."
            }
            Self::ReadArtifact => {
                "Read an artifact by its reference. Returns text in pages, pictures and sound as such; for other kinds \
                 only the description."
            }
            Self::Stop => {
                "End a task, or the work of an agent and all its descendants. What they have made stays."
            }
            Self::Pause => "Pause an agent and all its descendants: they do nothing until resumed.",
            Self::Resume => "Resume an agent and all its descendants, whether paused or parked.",
        }
    }

    /// Returns the tool's effect on the society.
    pub(crate) fn effect(self) -> Effect {
        match self {
            Self::FollowTask
            | Self::ListTasks
            | Self::ListAgents
            | Self::GetAgent
            | Self::ListArtifacts
            | Self::ReadArtifact => Effect::Reads,
            Self::GiveTask | Self::SendMessage | Self::AnswerQuestion => Effect::Adds,
            Self::Pause | Self::Resume => Effect::Steers,
            Self::Stop => Effect::Ends,
        }
    }

    /// Returns the schema of the tool's arguments.
    pub(crate) fn takes(self) -> Schema {
        match self {
            Self::GiveTask => Schema::taken::<GiveTask>(),
            Self::FollowTask => Schema::taken::<FollowTask>(),
            Self::SendMessage => Schema::taken::<SendMessage>(),
            Self::AnswerQuestion => Schema::taken::<AnswerQuestion>(),
            Self::ListTasks => Schema::taken::<ListTasks>(),
            Self::ListAgents => Schema::taken::<ListAgents>(),
            Self::GetAgent => Schema::taken::<GetAgent>(),
            Self::ListArtifacts => Schema::taken::<ListArtifacts>(),
            Self::ReadArtifact => Schema::taken::<ReadArtifact>(),
            Self::Stop => Schema::taken::<Stop>(),
            Self::Pause | Self::Resume => Schema::taken::<Steer>(),
        }
    }

    /// Returns the schema of the tool's result.
    pub(crate) fn gives(self) -> Schema {
        match self {
            Self::GiveTask | Self::SendMessage | Self::AnswerQuestion => Schema::given::<Posted>(),
            Self::FollowTask => Schema::given::<follow::Followed>(),
            Self::ListTasks => Schema::given::<TaskPage>(),
            Self::ListAgents => Schema::given::<AgentPage>(),
            Self::GetAgent => Schema::given::<AgentDetail>(),
            Self::ListArtifacts => Schema::given::<ArtifactPage>(),
            Self::ReadArtifact => Schema::given::<Page>(),
            Self::Stop | Self::Pause | Self::Resume => Schema::given::<Steered>(),
        }
    }

    /// Executes the tool. For each event during the call, sends a line over `progress`. A tool that waits also asks the
    /// person whether agents may make calls, if the client can show questions.
    pub(crate) async fn call(
        self,
        society: &Society,
        arguments: Map<String, Value>,
        progress: &mpsc::Sender<String>,
        person: Person,
    ) -> Result<Outcome, Refusal> {
        let output = match self {
            Self::GiveTask => {
                let GiveTask { prompt, attachments, key } = read(arguments)?;
                let to = AgentId::root().to_string();
                let attachments = attached(attachments)?;
                let post = UserMessage { attachments, key: own(key), ..UserMessage::text(to, prompt) };
                data(society.write(post).await?)
            }
            Self::FollowTask => return follow::follow(society, read(arguments)?, progress, person).await,
            Self::SendMessage => {
                let SendMessage { to, text, task, attachments, key } = read(arguments)?;
                let attachments = attached(attachments)?;
                let post = UserMessage { attachments, task, key: own(key), ..UserMessage::text(to, text) };
                data(society.write(post).await?)
            }
            Self::AnswerQuestion => {
                let AnswerQuestion { question, text, attachments } = read(arguments)?;
                answer(society, question, text, attached(attachments)?).await
            }
            Self::ListTasks => {
                let ListTasks { state, after, limit } = read(arguments)?;
                data(society.tasks(&TaskFilter { state, after, limit }).await?)
            }
            Self::ListAgents => {
                let ListAgents { task, state, role, capability, direction, ended, after, limit } =
                    read(arguments)?;
                let filter = AgentFilter {
                    ids: Vec::new(),
                    task,
                    state,
                    role,
                    capability,
                    direction,
                    include_ended: ended.unwrap_or_default(),
                    unfinished: false,
                    after,
                    limit,
                };
                data(society.agents(&filter).await?)
            }
            Self::GetAgent => {
                let GetAgent { agent } = read(arguments)?;
                match society.agent(&agent).await? {
                    Some(detail) => data(detail),
                    None => Err(Refusal::unknown(&format!("there is no agent `{agent}`"))),
                }
            }
            Self::ListArtifacts => {
                let ListArtifacts { task, owner, kind, after, limit } = read(arguments)?;
                data(society.artifacts(&ArtifactFilter { task, owner, kind, after, limit }).await?)
            }
            Self::ReadArtifact => {
                let ReadArtifact { reference, offset, limit } = read(arguments)?;
                let Some(id) = ArtifactId::from_reference(&reference) else {
                    return Err(Refusal::unknown(&format!("`{reference}` is not an artifact reference")));
                };
                let (page, block) = artifacts::page(society, &id, offset.unwrap_or(0), limit).await?;
                Ok(ToolOutput { blocks: vec![block], ..data(page)? })
            }
            Self::Stop => {
                let Stop { agent, scope, task } = read(arguments)?;
                let agents = match (agent, task) {
                    (None, Some(task)) => society.stop_task(&task).await?,
                    (Some(agent), None) => society.stop_work(Steer { agent, scope }.target()).await?,
                    (Some(_), Some(_)) | (None, None) => {
                        let message = "name either an agent or a task".to_owned();
                        return Err(Refusal { code: "invalid_arguments".to_owned(), message, details: None });
                    }
                };
                data(Steered { agents })
            }
            Self::Pause => {
                let steer: Steer = read(arguments)?;
                data(Steered { agents: society.pause(steer.target()).await? })
            }
            Self::Resume => {
                let steer: Steer = read(arguments)?;
                data(Steered { agents: society.resume(steer.target()).await? })
            }
        };
        output.map(Outcome::Done)
    }
}

fn read<T: DeserializeOwned>(arguments: Map<String, Value>) -> Result<T, Refusal> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| Refusal {
        code: "invalid_arguments".to_owned(),
        message: error.to_string(),
        details: None,
    })
}

fn data<T: Serialize>(result: T) -> Result<ToolOutput, Refusal> {
    let data = serde_json::to_value(result).map_err(|error| Refusal {
        code: "internal_error".to_owned(),
        message: error.to_string(),
        details: None,
    })?;
    Ok(ToolOutput { data, blocks: Vec::new() })
}

/// Prefixes the client's key, so that the key cannot collide with keys from other interfaces. An empty key counts as
/// no key, because some models send an empty string if they have no key.
fn own(key: Option<String>) -> Option<String> {
    key.filter(|key| !key.is_empty()).map(|key| format!("mcp {key}"))
}

fn attached(attachments: Option<Vec<Attached>>) -> Result<Vec<polity_runtime::Attachment>, Refusal> {
    attachments.unwrap_or_default().into_iter().map(Attached::into_attachment).collect()
}

/// Answers a question from an agent. The message names the question, because an agent may have asked several.
async fn answer(
    society: &Society,
    question: MessageId,
    text: String,
    attachments: Vec<polity_runtime::Attachment>,
) -> Result<ToolOutput, Refusal> {
    let unknown =
        || Refusal::unknown(&format!("`{question}` is not a question that waits for the user's answer"));
    let found = society.message(&question).await?;
    let asked = found
        .filter(|message| message.to.is_user() && message.expects == Expects::Answer)
        .ok_or_else(unknown)?;
    if let Some(answered) = &asked.answered_by {
        // The question already has an answer. If this call gives the same answer, the client probably did not get the
        // result of its first call, so this call also succeeds.
        let answered = society.message(answered).await?.filter(|answered| answered.text == text);
        let MessageView { id, task, state, to, .. } = answered.ok_or_else(unknown)?;
        return data(Posted { id, task, state, to, duplicate: true, warnings: Vec::new() });
    }
    // The key contains a hash of the text, so that the key is short. Two simultaneous calls with the same answer get
    // the same key.
    let key = Some(format!("mcp answer {question} {}", blake3::hash(text.as_bytes()).to_hex()));
    let payload = json!({"text": text, "request_id": question});
    let task = Some(asked.task);
    data(
        society
            .write(UserMessage { payload, attachments, task, key, ..UserMessage::text(asked.from, "") })
            .await?,
    )
}

/// Parses a task id. Removes spaces around it, because models sometimes add them.
pub(crate) fn task(id: &str) -> TaskId {
    TaskId::new(id.trim())
}
