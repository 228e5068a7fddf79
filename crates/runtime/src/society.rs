//! The society as other crates see it: everything that the command line and the API can do with it.

mod approvals;
mod files;
mod fork;
mod freeing;
mod now;
mod reading;
mod roles;
mod services;
mod upkeep;
mod why;
mod workspace;
mod writing;

pub use files::WorkspaceError;
pub use fork::Fork;
pub use reading::ArtifactContent;
pub use why::Explained;
pub use writing::{Attachment, MAX_KEY_BYTES, UserMessage, WriteError};

use crate::budget::Budgets;
use crate::commands;
use crate::every::every;
use crate::handles::{Gates, Handles};
use crate::kept::Kept;
use crate::steer::{self, SteerError, Target};
use crate::supervisor::Supervisor;
use crate::tools::{Copying, SearchTools, ToolCache};
use crate::trust::Trusts;
use futures::future::FutureExt;
use polity_artifacts::{BlobStore, NewArtifact};
use polity_hands::call::Caller;
use polity_hands::merge_workspace::{IsDescendant, MergeWorkspace};
use polity_hands::table::Hands;
use polity_llm::ChatModel;
use polity_registry::{Registry, ReloadOutcome, Report, Snapshot, Synchronous};
use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_society::message::{Message, Payload};
use polity_store::Exchanges;
use polity_store::maintenance::{ARTIFACTS, DATABASE};
use polity_store::said;
use polity_store::{Durability, Error, Gone, Store, agents, artifacts, events, messages, tasks};
use polity_view::{Entry, Event, Outcome};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Interval at which an idle society checks whether the files of its database still exist. Each write checks this,
/// too.
const LOOK_FOR_FILES: Duration = Duration::from_secs(1);

/// The parts from which a society is built.
pub struct Parts {
    /// The configuration; reloads take effect while the society runs.
    pub registry: Arc<Registry>,
    /// The client for chat models.
    pub model: Arc<dyn ChatModel>,
    /// Tools that act outside the society, in addition to the society's own tools.
    pub hands: Hands,
    /// The program that extracts text from documents. The program is called with `polity_media::EXTRACT_ARGUMENT`.
    /// Without a program, models that accept no files get only descriptions of documents.
    pub extractor: Option<PathBuf>,
}

/// A prompt of the person, which begins a task.
#[derive(Debug)]
pub struct Prompt {
    /// The text of the prompt; it must not be blank.
    pub text: String,
    /// Files to attach.
    pub attachments: Vec<NewArtifact>,
    /// The service that root uses in the task; `None` for the default service.
    pub service: Option<ServiceId>,
}

/// Why a prompt was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// The text is blank.
    #[error("the prompt is empty; say what you want done")]
    Empty,
    /// The text is longer than a message may be.
    #[error(
        "the prompt has {characters} characters; limits.maxMessageChars in app.json allows {limit}; attach it as a file instead"
    )]
    TooLong {
        /// The length of the prompt, measured as JSON.
        characters: u64,
        /// The value of `maxMessageChars`.
        limit: u64,
    },
    /// There is no service with this id.
    #[error("there is no service `{id}`; there are: {known}")]
    UnknownService {
        /// The id that the prompt named.
        id: ServiceId,
        /// The ids of all services, separated by commas.
        known: String,
    },
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
    /// The rules refused the prompt, for this reason.
    #[error("{0}")]
    Refused(String),
    /// The prompt could not be stored.
    #[error("failed to store the prompt")]
    Store(#[from] Error),
}

impl Prompt {
    /// Checks the prompt, except for the sizes of its attachments.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), PromptError> {
        if self.text.trim().is_empty() {
            return Err(PromptError::Empty);
        }
        // Count the characters of the JSON, as the door does later.
        let characters = Payload::text(self.text.as_str()).to_json_text().chars().count() as u64;
        let limit = snapshot.settings.limits.max_message_chars;
        if characters > limit {
            return Err(PromptError::TooLong { characters, limit });
        }
        if let Some(id) = self.service.as_ref().filter(|id| snapshot.catalogue.service(id).is_none()) {
            let known = snapshot.catalogue.services().iter().map(|service| service.id.as_str());
            let known = known.collect::<Vec<_>>().join(", ");
            return Err(PromptError::UnknownService { id: id.clone(), known });
        }
        Ok(())
    }
}

/// A message to the person.
#[derive(Clone, Debug)]
pub struct MessageToUser {
    /// The message as it is stored.
    pub message: Message,
    /// The text of the message in the current language, without the header and the reply hint that models get.
    pub text: String,
}

/// A society. Either the society runs, or it was opened read-only.
pub struct Society {
    handles: Arc<Handles>,
    /// The data directory.
    data: PathBuf,
    events: watch::Receiver<i64>,
    first_event: i64,
    broken: watch::Receiver<Option<String>>,
    stop: CancellationToken,
    /// Cancelled when no agent works any more.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl Society {
    /// Starts the society of a data directory. Agents continue their unfinished work.
    /// The caller must ensure that no other process uses the directory.
    pub async fn start(data: &Path, parts: Parts) -> Result<Self, Error> {
        let durability = match parts.registry.current().settings.synchronous {
            Synchronous::Full => Durability::Full,
            Synchronous::Normal => Durability::Normal,
        };
        let (store, signals) = Store::open(&data.join(DATABASE), durability).await?;
        let blobs = BlobStore::open(data.join(ARTIFACTS)).await.map_err(Error::Blob)?;
        polity_points::point!("society::opened");
        let handles = handles(store, blobs, parts, data);
        commands::begin(&handles).await;
        let first_event = *signals.events.borrow();
        let stop = CancellationToken::new();
        let (tell_broken, broken) = watch::channel(None);
        let tasks = TaskTracker::new();
        if signals.to_check {
            let check = upkeep::check_structure(data.join(DATABASE), tell_broken.clone(), stop.clone());
            tasks.spawn(check);
        }
        let ended = CancellationToken::new();
        let supervisor =
            Supervisor::new(Arc::clone(&handles), signals.bells, stop.clone(), tell_broken, ended.clone());
        tasks.spawn(supervisor.run());
        tasks.spawn(note_reports(Arc::clone(&handles), handles.registry.reports(), stop.clone()));
        tasks.spawn(upkeep::finish_merges(Arc::clone(&handles), stop.clone()));
        tasks.spawn(upkeep::make_findable(Arc::clone(&handles), stop.clone()));
        tasks.spawn(upkeep::keep_bounded(Arc::clone(&handles), stop.clone()));
        tasks.close();
        Ok(Self {
            handles,
            data: data.to_owned(),
            events: signals.events,
            first_event,
            broken,
            stop,
            ended,
            tasks,
        })
    }

    /// Opens the society of a data directory read-only: no agent works, and every write fails with [`Error::ReadOnly`].
    /// Another process may be using the directory, and a society may be running there.
    ///
    /// # Errors
    ///
    /// Fails for the same reasons as [`Society::start`], and also if the schema of the database is out of date.
    pub async fn open_to_read(data: &Path, parts: Parts) -> Result<Self, Error> {
        let (store, newest_event) = Store::open_to_read(&data.join(DATABASE)).await?;
        let handles = handles(store, BlobStore::as_it_is(data.join(ARTIFACTS)), parts, data);
        let (ended, tasks) = (CancellationToken::new(), TaskTracker::new());
        ended.cancel();
        tasks.close();
        Ok(Self {
            handles,
            data: data.to_owned(),
            events: watch::channel(newest_event).1,
            first_event: newest_event,
            broken: watch::channel(None).1,
            stop: CancellationToken::new(),
            ended,
            tasks,
        })
    }

    /// Pauses agents at once, even in the middle of a model call. They stay paused until somebody resumes them. When an
    /// agent is resumed, it repeats the work that it has not recorded. Returns the agents that were not paused before.
    pub async fn pause(&self, target: Target) -> Result<Vec<AgentId>, SteerError> {
        steer::pause(&self.handles.store, target).await
    }

    /// Resumes paused and parked agents. Returns the agents that were paused or parked.
    pub async fn resume(&self, target: Target) -> Result<Vec<AgentId>, SteerError> {
        steer::resume(&self.handles.store, target).await
    }

    /// Stops the current work of agents and drops their queued messages. Agents that wait for an answer from a stopped
    /// agent are told so. The stopped agents do not end: they can get new messages. Returns the agents that had work.
    pub async fn stop_work(&self, target: Target) -> Result<Vec<AgentId>, SteerError> {
        steer::stop(&self.handles.store, self.handles.registry.current(), target).await
    }

    /// Stops a task: ends the work of agents in this task, and drops the messages that are queued in it. The work of
    /// the same agents in other tasks continues. Returns the agents that had work in the task.
    pub async fn stop_task(&self, task: &TaskId) -> Result<Vec<AgentId>, SteerError> {
        steer::stop_task(&self.handles.store, self.handles.registry.current(), task.clone()).await
    }

    /// If a task has ended because no model could be used, lets root try again. Returns root if it does.
    pub async fn try_task(&self, task: &TaskId) -> Result<Vec<AgentId>, SteerError> {
        steer::try_again(&self.handles.store, self.handles.registry.current(), task.clone()).await
    }

    /// Returns the exchanges of OpenAI clients. An exchange is a request of a client, the message that it became, and
    /// the answer.
    pub fn exchanges(&self) -> Exchanges {
        Exchanges::new(self.handles.store.clone())
    }

    /// Returns the number of the newest event at the start of the society. Events with higher numbers are new.
    pub fn first_event(&self) -> i64 {
        self.first_event
    }

    /// Returns a channel that always contains the number of the newest event.
    pub fn newest_event(&self) -> watch::Receiver<i64> {
        self.events.clone()
    }

    /// Returns the event about the acceptance of a message.
    pub async fn event_of(&self, message: &Message) -> Result<Option<Entry>, Error> {
        let mut reader = self.handles.store.reader().await?;
        events::of_message(&mut reader, &message.id, &message.task).await
    }

    /// Returns the messages that the person has not been shown yet, oldest first.
    pub async fn unshown(&self) -> Result<Vec<MessageToUser>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let unshown = messages::unshown(&mut reader).await?;
        Ok(unshown.into_iter().map(|message| self.letter(message)).collect())
    }

    /// Notes that the person has been shown a message.
    pub async fn mark_shown(&self, message: MessageId) -> Result<(), Error> {
        self.handles
            .store
            .write(move |tx| Box::pin(async move { messages::mark_shown(tx, &message).await }))
            .await
    }

    /// Returns the questions in a task that agents have asked the person. Leaves out questions that the person has
    /// answered.
    pub async fn questions(&self, task: &TaskId) -> Result<Vec<MessageToUser>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let questions = messages::questions(&mut reader, task).await?;
        Ok(questions.into_iter().map(|message| self.letter(message)).collect())
    }

    fn letter(&self, message: Message) -> MessageToUser {
        let snapshot = self.handles.registry.current();
        let text = said(&message, &snapshot.prompts.texts);
        MessageToUser { message, text }
    }

    /// Returns the tasks that are not idle, oldest first.
    pub async fn open_tasks(&self) -> Result<Vec<TaskId>, Error> {
        let mut reader = self.handles.store.reader().await?;
        tasks::open(&mut reader).await
    }

    /// Returns the newest task.
    pub async fn latest_task(&self) -> Result<Option<TaskId>, Error> {
        let mut reader = self.handles.store.reader().await?;
        tasks::latest(&mut reader).await
    }

    /// Returns the outcome that a task would have if it ended now.
    pub async fn outcome(&self, task: &TaskId) -> Result<Option<Outcome>, Error> {
        let mut reader = self.handles.store.reader().await?;
        Ok(tasks::standing(&mut reader, task).await?.map(|standing| standing.outcome()))
    }

    /// Returns a name for each artifact of a message, for the person. The name consists of the file name and the
    /// reference. If an artifact has no file name, its name is only the reference.
    pub async fn artifact_names(&self, message: &Message) -> Result<Vec<String>, Error> {
        let polity_society::message::Body::Payload(payload) = &message.body else {
            return Ok(Vec::new());
        };
        let mut reader = self.handles.store.reader().await?;
        let stored = artifacts::get_many(&mut reader, &payload.attachments).await?;
        let name = |artifact: polity_society::content::Artifact| {
            let reference = artifact.id.reference();
            artifact
                .filename
                .map_or_else(|| reference.clone(), |filename| format!("{filename} ({reference})"))
        };
        Ok(stored.into_iter().map(|stored| name(stored.artifact)).collect())
    }

    /// Waits until the society is broken and cannot continue, and returns the reason.
    pub async fn broken(&self) -> String {
        let mut broken = self.broken.clone();
        match broken.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The supervisor was stopped without a fault, so the society will never be broken.
            Err(_) => std::future::pending().await,
        }
    }

    /// Waits until the files of the database are removed or replaced. From then on the store accepts no writes, because
    /// they would be lost. The caller must end the society.
    pub async fn gone(&self) -> Gone {
        let mut looks = every(LOOK_FOR_FILES);
        loop {
            looks.tick().await;
            if let Err(gone) = self.handles.store.check_place() {
                return gone;
            }
        }
    }

    /// From now on, agents begin no new work. Waits until their current work has ended and is stored, but not longer
    /// than the grace period in the settings. The caller must call [`Society::stop`] afterwards.
    pub async fn drain(&self) {
        let grace = self.handles.registry.current().settings.shutdown_grace;
        self.handles.draining.cancel();
        if tokio::time::timeout(grace, self.ended.cancelled()).await.is_err() {
            tracing::info!(?grace, "some agents are still working; they continue at the next start");
        }
    }

    /// Stops the society. Drops the drivers in the middle of their work. Writes that the drivers have already requested
    /// are finished. The next start repeats the work that the drivers have not recorded.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
        commands::end_all(&self.handles).await;
        self.handles.hands.shut_down().await;
        self.handles.store.close().await;
    }
}

/// Adds some outside tools: those that need the store. For this reason, they belong to the runtime.
pub(crate) fn with_own_tools(hands: Hands, store: &Store, registry: &Arc<Registry>) -> Hands {
    let hands = with_merging(hands, store);
    let search = SearchTools::new(hands.clone(), store.clone(), Arc::clone(registry));
    hands.with(Arc::new(search))
}

/// Adds the tool that merges worktrees. The tool needs the store to find out which agents are below its caller.
fn with_merging(hands: Hands, store: &Store) -> Hands {
    let Some(workspaces) = hands.workspaces().cloned() else { return hands };
    let store = store.clone();
    let is_descendant: IsDescendant = Arc::new(move |caller: &Caller, agent: &AgentId| {
        let (store, caller, agent) = (store.clone(), caller.agent.clone(), agent.clone());
        async move {
            let Ok(mut reader) = store.reader().await else { return false };
            let above = agents::ancestors(&mut reader, &agent).await;
            above.is_ok_and(|above| above.contains(&caller))
        }
        .boxed()
    });
    hands.with(Arc::new(MergeWorkspace::new(workspaces, is_descendant)))
}

/// Creates the handles that drivers and readers share.
fn handles(store: Store, blobs: BlobStore, parts: Parts, data: &Path) -> Arc<Handles> {
    let hands = with_own_tools(parts.hands, &store, &parts.registry);
    let copying = Copying::new(&hands, &store, &blobs, &parts.registry);
    let private = vec![data.to_owned(), parts.registry.config_dir().to_owned()];
    Arc::new(Handles {
        store,
        blobs,
        registry: parts.registry,
        model: parts.model,
        gates: Gates::default(),
        draining: CancellationToken::new(),
        board: Arc::default(),
        budgets: Budgets::default(),
        trusts: Trusts::default(),
        kept: Kept::default(),
        tool_cache: ToolCache::default(),
        extractor: parts.extractor,
        hands,
        copying,
        private,
    })
}

/// Records the changes of the configuration as events, until the society stops.
async fn note_reports(
    handles: Arc<Handles>,
    mut reports: broadcast::Receiver<Report>,
    stop: CancellationToken,
) {
    loop {
        let report = tokio::select! {
            () = stop.cancelled() => return,
            report = reports.recv() => report,
        };
        let report = match report {
            Ok(report) => report,
            // Missed reports do not matter, because the newest report describes the configuration in force.
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        let event = match report.outcome {
            // The files have no problems any more, and the configuration in force did not change: somebody has
            // corrected a faulty file. This needs no event.
            ReloadOutcome::Unchanged if problems.is_empty() => continue,
            ReloadOutcome::Kept => Event::ConfigRefused { revision: report.revision, problems },
            ReloadOutcome::Taken | ReloadOutcome::Unchanged => {
                Event::ConfigTaken { revision: report.revision, differences: report.differences, problems }
            }
        };
        if let Err(error) = handles.store.note(event).await {
            tracing::error!(%error, "failed to record a change of the configuration");
        }
    }
}

#[cfg(test)]
mod tests;
