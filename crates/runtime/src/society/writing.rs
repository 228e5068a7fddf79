//! Everything that the person can write: prompts, answers, messages to any agent, artifacts, and changes of roles.

use super::{Prompt, PromptError, Society, workspace};
use crate::door;
use crate::handles::Handles;
use crate::tools;
use polity_artifacts::index::{NO_TASK, Stored};
use polity_artifacts::{BlobHash, NewArtifact, Prepared, prepare};
use polity_decide::budget::{self, Reached};
use polity_decide::foresee::{Asked, Attached, foresee};
use polity_decide::inline;
use polity_registry::Snapshot;
use polity_society::contact;
use polity_society::content::Artifact;
use polity_society::id::{AgentId, ArtifactId, RoleId, ServiceId, TaskId};
use polity_society::limits::{ARTIFACT_LIMIT, TooLarge};
use polity_society::message::{MessageState, Payload};
use polity_society::problem::{Fault, FieldProblem};
use polity_society::refusal::{ContactLine, Refusal};
use polity_society::rules::{Answering, Draft, LastWord, introduce_person};
use polity_society::workspace::Root;
use polity_society::written::is_blank;
use polity_store::Connection;
use polity_store::mint;
use polity_store::posts::{self, KeyedMessage};
use polity_store::view::artifacts::shown;
use polity_store::{
    Conversation, Error, Stopped, Tx, agents, apply, artifacts, events, keep, messages, tasks, usage,
};
use polity_view::{ArtifactView, Event, Posted, Warning};
use serde_json::{Number, Value, json};
use std::sync::Arc;

/// A message that the person wants to send to an agent. The door (`door.rs`) checks all messages of agents and of the
/// person. It has not yet accepted this message.
#[derive(Clone, Debug)]
pub struct UserMessage {
    /// The receiver: an agent's id, or the role name of an agent that the person knows in the task.
    pub to: String,
    /// The content: a text, or an object with the fields that the payloads of agents have.
    pub payload: Value,
    /// Attachments in addition to the attachments in the payload.
    pub attachments: Vec<Attachment>,
    /// The task of the message. If it is `None`, a message to root begins a new task, and a message to another agent
    /// belongs to the task for which that agent was hired.
    pub task: Option<TaskId>,
    /// If the message begins a new task, the service that root uses.
    pub service: Option<ServiceId>,
    /// If the message begins a new task, the place where agents work on files and run commands.
    pub workspace: Root,
    /// The idempotency key, chosen by the caller. A message that is sent again with the same key is stored only once.
    pub key: Option<String>,
}

impl UserMessage {
    /// Creates a message that is only a text.
    pub fn text(to: impl Into<String>, text: impl Into<String>) -> Self {
        Self {
            to: to.into(),
            payload: Value::String(text.into()),
            attachments: Vec::new(),
            task: None,
            service: None,
            workspace: Root::Made,
            key: None,
        }
    }
}

/// An attachment of a message from the person.
#[derive(Clone, Debug)]
pub enum Attachment {
    /// An artifact that is stored already.
    Stored(ArtifactId),
    /// A file. Either both the file and the message are stored, or neither of them.
    New(NewArtifact),
}

/// The length limit of an idempotency key, in bytes.
pub const MAX_KEY_BYTES: usize = 255;

/// Why a write of the person failed. A write that fails changes nothing.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The rules refused the write.
    #[error("{message}")]
    Refused {
        /// The refusal as data, with all values that its message contains.
        refusal: Box<Refusal>,
        /// The refusal in words.
        message: String,
        /// The details of the refusal, for programs to read.
        details: Option<Value>,
    },
    /// A field of the request is invalid.
    #[error("{0}")]
    Invalid(FieldProblem),
    /// There is no such task, or its messages were removed to make room.
    #[error("there is no task `{0}`, or its messages were removed to make room")]
    NoTask(TaskId),
    /// There is no role with this id.
    #[error("there is no role `{0}`")]
    NoRole(RoleId),
    /// There is no service with this id.
    #[error("there is no service `{id}`; there are: {known}")]
    UnknownService {
        /// The id that the request named.
        id: ServiceId,
        /// The ids of all services, separated by commas.
        known: String,
    },
    /// The idempotency key was used for a different message.
    #[error("the idempotency key was used for another message; use a new one")]
    KeyReused,
    /// An attached file is too large.
    #[error("{filename} has {size} bytes; limits.maxArtifactBytes in app.json allows {limit}")]
    TooLarge {
        /// The name of the file; empty if it has none.
        filename: String,
        /// The size of the file in bytes.
        size: u64,
        /// The value of `maxArtifactBytes`.
        limit: u64,
    },
    /// A limit has stopped the task, and the next model call would exceed the limit again.
    #[error("the task has reached limits.{limit} ({value}); raise it in app.json, or begin a new task")]
    Stopped {
        /// The name of the limit in `app.json`.
        limit: &'static str,
        /// The current value of the limit.
        value: Number,
    },
    /// The change could not be stored.
    #[error("failed to store the change")]
    Store(#[from] Error),
}

impl WriteError {
    /// Returns the stable code of the error.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Refused { refusal, .. } => refusal.code(),
            Self::Invalid(_) | Self::UnknownService { .. } => "invalid_arguments",
            Self::NoTask(_) | Self::NoRole(_) => "not_found",
            Self::KeyReused => "key_reused",
            Self::TooLarge { .. } | Self::Stopped { .. } => "limit_reached",
            Self::Store(error) if error.may_pass() => "unavailable",
            Self::Store(_) => "internal_error",
        }
    }

    /// Returns the details of the error, if errors with this code have details.
    pub fn details(&self) -> Option<Value> {
        match self {
            Self::Refused { details, .. } => details.clone(),
            Self::Invalid(problem) => Some(json!([problem])),
            Self::TooLarge { limit, .. } => Some(json!({"limit": ARTIFACT_LIMIT, "value": limit})),
            Self::Stopped { limit, value } => Some(json!({"limit": limit, "value": value})),
            Self::UnknownService { .. }
            | Self::NoTask(_)
            | Self::NoRole(_)
            | Self::KeyReused
            | Self::Store(_) => None,
        }
    }

    fn refused(refusal: Refusal, snapshot: &Snapshot) -> Self {
        let texts = &snapshot.prompts.texts;
        let details = refusal.details(texts);
        let message = match &refusal {
            // The person can write to every agent, so a contact that is unknown here does not exist.
            Refusal::UnknownContact { meant, .. } => {
                format!("there is no agent `{meant}`; see the list of agents")
            }
            refusal => refusal.message(texts),
        };
        Self::Refused { refusal: Box::new(refusal), message, details }
    }

    pub(super) fn invalid(field: &str, rule: &str) -> Self {
        Self::Invalid(FieldProblem::new(field, Fault::Rule(rule.to_owned())))
    }
}

/// The result of a function within a transaction: a value, an error for the person, or an error of the database.
type Verdict<T> = Result<T, Stopped<WriteError>>;

impl Society {
    /// Begins a task with a prompt of the person. When this function returns, the prompt is stored durably.
    pub async fn prompt(&self, prompt: Prompt) -> Result<TaskId, PromptError> {
        prompt.check(&self.handles.registry.current())?;
        let post = UserMessage {
            attachments: prompt.attachments.into_iter().map(Attachment::New).collect(),
            service: prompt.service,
            ..UserMessage::text(AgentId::root().as_str(), prompt.text)
        };
        match self.write(post).await {
            Ok(posted) => Ok(posted.task),
            Err(WriteError::TooLarge { filename, size, limit }) => {
                Err(PromptError::TooLarge { filename, size, limit })
            }
            Err(WriteError::UnknownService { id, known }) => Err(PromptError::UnknownService { id, known }),
            Err(WriteError::Store(error)) => Err(PromptError::Store(error)),
            Err(other) => Err(PromptError::Refused(other.to_string())),
        }
    }

    /// Sends a message from the person to any agent. When this function returns, the message is stored durably. The
    /// message answers the open questions of this agent to the person. If the task was idle, the task continues.
    pub async fn write(&self, post: UserMessage) -> Result<Posted, WriteError> {
        write(&self.handles, post).await
    }

    /// Stores an artifact of the person. If a task is given, the artifact belongs to it. Otherwise the person can send
    /// the artifact later.
    pub async fn put_artifact(
        &self,
        artifact: NewArtifact,
        task: Option<TaskId>,
    ) -> Result<ArtifactView, WriteError> {
        put_artifact(&self.handles, artifact, task).await
    }
}

async fn write(handles: &Arc<Handles>, mut post: UserMessage) -> Result<Posted, WriteError> {
    let snapshot = handles.registry.current();
    if post.key.as_ref().is_some_and(|key| key.is_empty() || key.len() > MAX_KEY_BYTES) {
        return Err(WriteError::invalid("key", "must have 1 to 255 bytes"));
    }
    if post.to.trim() == AgentId::user().as_str() {
        return Err(WriteError::invalid("to", "must not be the person who writes"));
    }
    let begins = post.task.is_none() && post.to.trim() == AgentId::root().as_str();
    if post.service.is_some() && !begins {
        return Err(WriteError::invalid("service", "can be chosen only for a new task"));
    }
    if post.workspace != Root::Made && !begins {
        return Err(WriteError::invalid("workspace", "can be chosen only for a new task"));
    }
    // Attachments alone are enough for a message, even if no text names them.
    let parse = if post.attachments.is_empty() { Payload::parse } else { Payload::parse_accompanied };
    let parsed = match &post.payload {
        // If a text of the person looks like JSON, it stays text. (If a text of a model looks like JSON, it is read as
        // an object.)
        Value::String(text) if !is_blank(text) => Ok((Payload::text(text), Vec::new())),
        payload => parse(payload),
    };
    let (mut payload, _) =
        parsed.map_err(|problems| WriteError::refused(invalid_message(problems), &snapshot))?;
    let key = post.key.clone().map(|key| (key, fingerprint(&post, &payload)));
    if let Some(key) = &key {
        // If the caller repeats an accepted message under the same key, return that message, even if the service has
        // been removed or a limit has been lowered since.
        let mut moment = handles.store.moment().await?;
        if let Some(before) = keep(written_before(&mut moment, key).await)?? {
            return Ok(before);
        }
    }
    post.workspace = workspace::checked(post.workspace, &handles.private).await?;
    if let Some(id) = &post.service {
        check_service(id, &snapshot)?;
    }
    let mut prepared = Vec::new();
    for (id, artifact) in bytes_in(&mut payload) {
        // The bytes become an attachment, like a file. In the text, a reference replaces the bytes.
        prepared.push(prepare_bounded(handles, &snapshot, artifact, id.clone()).await?);
        payload.attachments.push(id);
    }
    for attachment in &post.attachments {
        match attachment {
            Attachment::Stored(id) if payload.attachments.contains(id) => {}
            Attachment::Stored(id) => payload.attachments.push(id.clone()),
            Attachment::New(new) => {
                let stored = prepare_bounded(handles, &snapshot, new.clone(), mint::artifact()).await?;
                payload.attachments.push(stored.artifact.id.clone());
                prepared.push(stored);
            }
        }
    }
    polity_points::point!("society::attachments_stored");
    let handles_of_job = Arc::clone(handles);
    let writing = Writing { handles: handles_of_job, snapshot, payload, prepared, begins, key, post };
    // A refused message begins no task, and adds no contact.
    let written = handles.store.write_or_undo(move |tx| Box::pin(writing.run(tx))).await;
    polity_points::point!("society::prompted");
    written
}

/// Builds the refusal of an invalid payload. A problem that concerns the whole payload is reported for the field
/// `payload`.
fn invalid_message(problems: Vec<FieldProblem>) -> Refusal {
    let named = |problem: FieldProblem| {
        if problem.field.is_empty() { problem.inside("payload") } else { problem }
    };
    Refusal::InvalidMessage(problems.into_iter().map(named).collect())
}

/// Removes encoded files from the texts of a message, and puts references in their place.
///
/// No text may contain binary data (docs/contract.md, section 3). To keep a text byte for byte, the person can send it
/// as a file.
fn bytes_in(payload: &mut Payload) -> Vec<(ArtifactId, NewArtifact)> {
    let mut found = Vec::new();
    inline::replace_in_object(&mut payload.fields, &mut |written| {
        let id = mint::artifact();
        let reference = id.reference();
        found.push((id, written.into()));
        Some(reference)
    });
    found
}

async fn prepare_bounded(
    handles: &Handles,
    snapshot: &Snapshot,
    new: NewArtifact,
    id: ArtifactId,
) -> Result<Prepared, WriteError> {
    if let Err(TooLarge { size, limit }) = snapshot.settings.limits.check_artifact(new.bytes.len() as u64) {
        return Err(WriteError::TooLarge { filename: new.filename.unwrap_or_default(), size, limit });
    }
    // `prepare` below writes a blob, before any transaction begins. So a read-only society must refuse here.
    handles.store.check_writable()?;
    let prepared = prepare(&handles.blobs, new, id, polity_store::now().as_millis()).await;
    prepared.map_err(|error| WriteError::Store(Error::Blob(error)))
}

pub(super) fn check_service(id: &ServiceId, snapshot: &Snapshot) -> Result<(), WriteError> {
    if snapshot.catalogue.service(id).is_some() {
        return Ok(());
    }
    let known = snapshot.catalogue.services().iter().map(|service| service.id.as_str());
    Err(WriteError::UnknownService { id: id.clone(), known: known.collect::<Vec<_>>().join(", ") })
}

/// Returns a hash of a message from the person. Two messages with the same hash count as the same message. The order of
/// an object's fields does not matter.
fn fingerprint(post: &UserMessage, said: &Payload) -> String {
    let attached: Vec<Value> = post
        .attachments
        .iter()
        .map(|attachment| match attachment {
            Attachment::Stored(id) => json!(id),
            Attachment::New(new) => json!({
                "bytes": BlobHash::of(&new.bytes).as_str(),
                "filename": new.filename,
                "mimeType": new.declared_mime,
                "type": new.label,
                "meta": new.meta,
            }),
        })
        .collect();
    let mut all = json!({
        "to": post.to.trim(),
        "task": post.task,
        "service": post.service,
        "type": said.message_type,
        "fields": said.fields,
        "attachments": said.attachments,
        "attached": attached,
    });
    // In older versions, no message had a workspace. A message without a workspace must keep the hash that it had
    // there. So the hash includes the workspace only if there is one.
    if post.workspace != Root::Made {
        all["workspace"] = json!(post.workspace);
    }
    all.sort_all_objects();
    BlobHash::of(all.to_string().as_bytes()).as_str().to_owned()
}

/// A message from the person that is about to be written to the database.
struct Writing {
    handles: Arc<Handles>,
    snapshot: Arc<Snapshot>,
    payload: Payload,
    prepared: Vec<Prepared>,
    /// Whether the message begins a task.
    begins: bool,
    /// The idempotency key, and the hash of the content.
    key: Option<(String, String)>,
    post: UserMessage,
}

impl Writing {
    async fn run(mut self, tx: &mut Tx) -> Verdict<Posted> {
        // Check the key again, because another call may have stored the same message since the first check.
        if let Some(key) = &self.key
            && let Some(before) = written_before(&mut tx.connection, key).await?
        {
            return Ok(before);
        }
        self.post(tx).await
    }

    async fn post(&mut self, tx: &mut Tx) -> Verdict<Posted> {
        let warnings = self.warnings(&mut tx.connection).await?;
        let (task, agent) = self.destination(tx).await?;
        let user = Conversation { agent: AgentId::user(), task: task.clone() };
        let mentioned = door::mentioned(&self.payload);
        let brings = !self.prepared.is_empty() || !mentioned.is_empty();
        let held = if brings { artifacts::bytes_of_task(&mut tx.connection, &task).await? } else { 0 };
        for stored in self.prepared.drain(..) {
            tools::store(tx, &user, stored).await?;
        }
        for artifact in mentioned {
            // The person may open every artifact.
            if artifacts::get(&mut tx.connection, &artifact).await?.is_some() {
                artifacts::grant(&mut tx.connection, &user.agent, &artifact).await?;
                artifacts::adopt(&mut tx.connection, &artifact, &task).await?;
            }
        }
        let bytes = if brings { artifacts::bytes_of_task(&mut tx.connection, &task).await? } else { 0 };
        // Check the limit only if the message brings new artifacts. If the limit was lowered, the artifacts of the task
        // may already exceed it; a message without new artifacts is then still accepted.
        if let (true, Err(refusal)) =
            (bytes > held, self.snapshot.settings.limits.check_artifacts_of_task(bytes))
        {
            return Err(Stopped::Refused(WriteError::refused(refusal, &self.snapshot)));
        }
        if let Some(agent) = &agent {
            apply::apply(tx, &self.snapshot, introduce_person(agent)).await?;
        }
        if let Some(meant) = self.payload.introduced() {
            // The person can write to every agent of a task, so the person can also introduce each of them.
            let row = agents::get(&mut tx.connection, &AgentId::new(meant.trim())).await?;
            if let Some(known) = row.filter(|row| row.task.as_ref() == Some(&task)) {
                apply::apply(tx, &self.snapshot, introduce_person(&known.id)).await?;
            }
        }
        let to = agent.map_or_else(|| self.post.to.clone(), |agent| agent.to_string());
        let payload = self.payload.clone();
        let draft = Draft { to, payload, answering: Answering::AsWritten, due_at: None };
        let sent = keep(door::send(tx, &self.snapshot, &user, draft, LastWord::UnlessWaiting).await)?;
        let refused = |refusal| Stopped::Refused(WriteError::refused(refusal, &self.snapshot));
        let door::Sent { id, to, .. } = sent.map_err(refused)?;
        if let Some((key, content)) = &self.key {
            let kept = KeyedMessage { content: content.clone(), message: id.clone() };
            posts::insert(tx, key, &kept, &task).await?;
        }
        Ok(Posted { id, task, state: MessageState::Queued, to, duplicate: false, warnings })
    }

    /// Returns warnings about what will not work, so that the person reads them before any request goes to a model.
    async fn warnings(&self, connection: &mut Connection) -> Result<Vec<Warning>, Error> {
        let mut attached: Vec<Attached> = Vec::new();
        let mut add = |artifact: &Artifact| {
            let name = artifact.filename.clone().unwrap_or_else(|| artifact.id.reference());
            attached.push(Attached { name, kind: artifact.kind, size: artifact.size });
        };
        for id in &self.payload.attachments {
            match self.prepared.iter().find(|prepared| prepared.artifact.id == *id) {
                Some(prepared) => add(&prepared.artifact),
                None => artifacts::get(connection, id).await?.iter().for_each(|stored| add(&stored.artifact)),
            }
        }
        let Snapshot { catalogue, prompts, settings, .. } = &*self.snapshot;
        let root = self.begins.then(|| catalogue.service_for(self.post.service.as_ref()).as_ref());
        let text = self.payload.content().and_then(|(_, content)| content.as_str()).unwrap_or_default();
        let asked = Asked { text, attached: &attached, root, limits: &settings.limits };
        let foreseen = foresee(asked, catalogue, prompts);
        Ok(foreseen.iter().map(|one| one.warning(&prompts.texts)).collect())
    }

    /// Determines the task and the receiver. The receiver is `None` if `to` is a role name: then `door::send` later
    /// finds the agent with this role.
    async fn destination(&self, tx: &mut Tx) -> Verdict<(TaskId, Option<AgentId>)> {
        if self.begins {
            let task = mint::task();
            tasks::insert(tx, &task, self.post.service.as_ref()).await?;
            if self.post.workspace != Root::Made {
                tasks::set_workspace(tx, &task, &self.post.workspace).await?;
            }
            events::append(tx, &Event::TaskStarted { task: task.clone() }).await?;
            return Ok((task, Some(AgentId::root())));
        }
        let meant = AgentId::new(self.post.to.trim());
        let row = agents::get(&mut tx.connection, &meant).await?;
        let own = row.as_ref().and_then(|row| row.task.clone());
        let task = match (own, self.post.task.clone()) {
            (Some(own), Some(task)) if own != task => {
                let rule = format!("the agent `{meant}` was hired for the task `{own}`");
                return Err(Stopped::Refused(WriteError::invalid("task", &rule)));
            }
            (Some(own), _) => own,
            (None, Some(task)) => task,
            (None, None) => return Err(Stopped::Refused(self.unknown(tx, &meant).await?)),
        };
        if !tasks::is_remembered(&mut tx.connection, &task).await? {
            return Err(Stopped::Refused(WriteError::NoTask(task)));
        }
        if let Some(Reached { limit, value }) = self.still_stopped(tx, &task).await? {
            return Err(Stopped::Refused(WriteError::Stopped { limit, value }));
        }
        Ok((task, row.map(|row| row.id)))
    }

    /// Builds the error for a receiver that does not exist.
    async fn unknown(&self, tx: &mut Tx, meant: &AgentId) -> Result<WriteError, Error> {
        let everywhere = Conversation { agent: AgentId::user(), task: TaskId::new(NO_TASK) };
        let known = door::known_parties(&mut tx.connection, &self.snapshot.catalogue, &everywhere).await?;
        let nearest = contact::nearest_first(&known, meant.as_str());
        let contacts = nearest.into_iter().map(ContactLine::from).collect();
        let refusal = Refusal::UnknownContact { meant: meant.to_string(), contacts };
        Ok(WriteError::refused(refusal, &self.snapshot))
    }

    /// Returns the limit that has stopped a task, if the next call would exceed this limit again. Returns `None` if
    /// the person has raised the limit far enough.
    async fn still_stopped(&self, tx: &mut Tx, task: &TaskId) -> Result<Option<Reached>, Error> {
        let Some(name) = tasks::stopped_by(&mut tx.connection, task).await? else { return Ok(None) };
        let spent = usage::of_task(&mut tx.connection, task).await?;
        // The next call probably needs as many tokens as the last call.
        let root = Conversation { agent: AgentId::root(), task: task.clone() };
        let tokens = usage::in_context(&mut tx.connection, &root).await?.unwrap_or_default();
        let chosen = tasks::service(&mut tx.connection, task).await?;
        let need = budget::need(tokens, self.snapshot.catalogue.service_for(chosen.as_ref()));
        // While an agent works for the task, the stored working time is lower than the real working time. So ask the
        // budget in memory first.
        let worked = match self.handles.budgets.worked(task) {
            Some(worked) => worked,
            None => tasks::worked(&mut tx.connection, task).await?,
        };
        Ok(budget::still_reached(&name, spent, need, worked, &self.snapshot.settings.limits))
    }
}

/// Returns the message that was stored under an idempotency key; `None` if the key is new. Refuses the key if the
/// stored message has another content. The second argument contains the key and the hash of the new content.
async fn written_before(
    connection: &mut Connection,
    (key, content): &(String, String),
) -> Verdict<Option<Posted>> {
    let Some(kept) = posts::get(connection, key).await? else { return Ok(None) };
    if kept.content != *content {
        return Err(Stopped::Refused(WriteError::KeyReused));
    }
    let (message, state) = messages::with_state(connection, &kept.message).await?;
    Ok(Some(Posted {
        id: message.id,
        task: message.task,
        state,
        to: message.to,
        duplicate: true,
        warnings: Vec::new(),
    }))
}

async fn put_artifact(
    handles: &Handles,
    artifact: NewArtifact,
    task: Option<TaskId>,
) -> Result<ArtifactView, WriteError> {
    let snapshot = handles.registry.current();
    let prepared = prepare_bounded(handles, &snapshot, artifact, mint::artifact()).await?;
    let stored = handles.store.write_unless_refused(move |tx| {
        Box::pin(async move {
            if let Some(task) = &task
                && !tasks::is_remembered(&mut tx.connection, task).await?
            {
                return Err(Stopped::Refused(WriteError::NoTask(task.clone())));
            }
            let task = task.unwrap_or_else(|| TaskId::new(NO_TASK));
            let owner = Conversation { agent: AgentId::user(), task };
            let stored = Stored {
                artifact: prepared.artifact.clone(),
                blob: prepared.blob.hash.clone(),
                owner: owner.agent.clone(),
                task: owner.task.clone(),
                damage: None,
            };
            tools::store(tx, &owner, prepared).await?;
            Ok(shown(stored))
        })
    });
    stored.await
}
