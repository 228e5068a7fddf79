//! The society from outside: what the command line and the API do with it.

mod reading;
mod services;
mod writing;

pub use reading::Content;
pub use writing::{Attachment, MAX_KEY_BYTES, Post, WriteError};

use crate::budget::Budgets;
use crate::handles::{Gates, Handles};
use crate::kept::Kept;
use crate::steer::{self, SteerError, Target};
use crate::supervisor::Supervisor;
use crate::tools::outside::OutsideTool;
use crate::trust::Trusts;
use polity_artifacts::{BlobStore, NewArtifact};
use polity_llm::ChatModel;
use polity_registry::{Outcome as ReportOutcome, Registry, Report, Snapshot, Synchronous};
use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_society::message::{Message, Payload};
use polity_store::Exchanges;
use polity_store::maintenance::{self, ARTIFACTS, DATABASE};
use polity_store::said;
use polity_store::{Durability, Error, Store, artifacts, events, messages, tasks};
use polity_view::{Entry, Event, Outcome};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// What a society is made of.
pub struct Parts {
    /// The configuration.
    pub registry: Arc<Registry>,
    /// What answers.
    pub model: Arc<dyn ChatModel>,
    /// Tools that reach outside, beside those of the society itself.
    pub outside_tools: Vec<OutsideTool>,
    /// The program that gets text out of documents when it is called with `polity_media::EXTRACT_ARGUMENT`; none where
    /// documents are only described to models that take no files.
    pub extractor: Option<PathBuf>,
}

/// A prompt of the person.
#[derive(Debug)]
pub struct Prompt {
    /// What it says.
    pub text: String,
    /// Files that go with it.
    pub attachments: Vec<NewArtifact>,
    /// The service that root uses for it, if not the default.
    pub service: Option<ServiceId>,
}

/// Why a prompt was not taken.
#[derive(Debug, thiserror::Error)]
pub enum PromptError {
    /// It says nothing.
    #[error("the prompt is empty; say what you want done")]
    Empty,
    /// It says too much.
    #[error(
        "the prompt has {characters} characters; limits.maxMessageChars in app.json allows {limit}; attach it as a file instead"
    )]
    TooLong {
        /// How long it is.
        characters: u64,
        /// The limit.
        limit: u64,
    },
    /// There is no such service.
    #[error("there is no service `{id}`; there are: {known}")]
    UnknownService {
        /// What was asked for.
        id: ServiceId,
        /// What there is.
        known: String,
    },
    /// A file is too large.
    #[error("{filename} has {size} bytes; limits.maxArtifactBytes in app.json allows {limit}")]
    TooLarge {
        /// The file.
        filename: String,
        /// Its size.
        size: u64,
        /// The limit.
        limit: u64,
    },
    /// The rules say no.
    #[error("{0}")]
    Refused(String),
    /// It could not be written.
    #[error("failed to store the prompt")]
    Store(#[from] Error),
}

impl Prompt {
    /// Whether it would be taken, apart from the sizes of its attachments.
    pub fn check(&self, snapshot: &Snapshot) -> Result<(), PromptError> {
        if self.text.trim().is_empty() {
            return Err(PromptError::Empty);
        }
        // Counted as the door does, which measures a message as JSON.
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

/// Something that was said to the person.
#[derive(Clone, Debug)]
pub struct Letter {
    /// The message.
    pub message: Message,
    /// Its text, in the language in force; without header and reply hint.
    pub text: String,
}

/// A society: one that runs, or one that is only read.
pub struct Society {
    handles: Arc<Handles>,
    events: watch::Receiver<i64>,
    first_event: i64,
    broken: watch::Receiver<Option<String>>,
    stop: CancellationToken,
    /// Cancelled when no agent works any more.
    ended: CancellationToken,
    tasks: TaskTracker,
}

impl Society {
    /// Opens what a data directory holds and goes on with whatever was left. The caller sees to it that no other
    /// process has the same directory.
    pub async fn start(data: &Path, parts: Parts) -> Result<Self, Error> {
        let durability = match parts.registry.current().settings.synchronous {
            Synchronous::Full => Durability::Full,
            Synchronous::Normal => Durability::Normal,
        };
        let (store, signals) = Store::open(&data.join(DATABASE), durability).await?;
        let blobs = BlobStore::open(data.join(ARTIFACTS)).await.map_err(Error::Blob)?;
        polity_points::point!("society::opened");
        let handles = handles(store, blobs, parts);
        let first_event = *signals.events.borrow();
        let stop = CancellationToken::new();
        let (tell_broken, broken) = watch::channel(None);
        let ended = CancellationToken::new();
        let supervisor =
            Supervisor::new(Arc::clone(&handles), signals.bells, stop.clone(), tell_broken, ended.clone());
        let tasks = TaskTracker::new();
        tasks.spawn(supervisor.run());
        tasks.spawn(note_reports(Arc::clone(&handles), handles.registry.reports(), stop.clone()));
        tasks.spawn(keep_bounded(Arc::clone(&handles), stop.clone()));
        tasks.close();
        Ok(Self { handles, events: signals.events, first_event, broken, stop, ended, tasks })
    }

    /// Opens what a data directory holds for reading alone: no agent works, nothing is written, and what would write
    /// fails with [`Error::ReadOnly`]. Another process may have the directory, and a society may be running there.
    ///
    /// # Errors
    ///
    /// Where [`Society::start`] would fail, and where that would have to bring the schema up to date.
    pub async fn open_to_read(data: &Path, parts: Parts) -> Result<Self, Error> {
        let (store, newest_event) = Store::open_to_read(&data.join(DATABASE)).await?;
        let handles = handles(store, BlobStore::as_it_is(data.join(ARTIFACTS)), parts);
        let (ended, tasks) = (CancellationToken::new(), TaskTracker::new());
        ended.cancel();
        tasks.close();
        Ok(Self {
            handles,
            events: watch::channel(newest_event).1,
            first_event: newest_event,
            broken: watch::channel(None).1,
            stop: CancellationToken::new(),
            ended,
            tasks,
        })
    }

    /// Has agents do nothing from now on, not even finish what they are asking a model, until they are resumed. What they
    /// have not written they do again then. Gives those that were not paused before.
    pub async fn pause(&self, target: Target) -> Result<Vec<AgentId>, SteerError> {
        steer::pause(&self.handles.store, target).await
    }

    /// Lets agents that were paused or parked go on. Gives those that were.
    pub async fn resume(&self, target: Target) -> Result<Vec<AgentId>, SteerError> {
        steer::resume(&self.handles.store, target).await
    }

    /// Ends what agents are doing, and what waits for them; whoever asked them is told. They stay, and can be written to.
    /// Gives those that had work.
    pub async fn stop_work(&self, target: Target) -> Result<Vec<AgentId>, SteerError> {
        steer::stop(&self.handles.store, self.handles.registry.current(), target).await
    }

    /// Ends a task: what its agents do in it, and what waits for them there. What they do in other tasks goes on. Gives
    /// those that had work in it.
    pub async fn stop_task(&self, task: &TaskId) -> Result<Vec<AgentId>, SteerError> {
        steer::stop_task(&self.handles.store, self.handles.registry.current(), task.clone()).await
    }

    /// Which requests of programs became which messages.
    pub fn exchanges(&self) -> Exchanges {
        Exchanges::new(self.handles.store.clone())
    }

    /// The number of the newest event when the society was started: what came after it is new.
    pub fn first_event(&self) -> i64 {
        self.first_event
    }

    /// The number of the newest event; changes when there is a newer one.
    pub fn newest_event(&self) -> watch::Receiver<i64> {
        self.events.clone()
    }

    /// The event that told of a message.
    pub async fn event_of(&self, message: &Message) -> Result<Option<Entry>, Error> {
        let mut reader = self.handles.store.reader().await?;
        events::of_message(&mut reader, &message.id, &message.task).await
    }

    /// What the person has not been shown yet, oldest first.
    pub async fn unshown(&self) -> Result<Vec<Letter>, Error> {
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

    /// What agents have asked the person in a task and not been told.
    pub async fn questions(&self, task: &TaskId) -> Result<Vec<Letter>, Error> {
        let mut reader = self.handles.store.reader().await?;
        let questions = messages::questions(&mut reader, task).await?;
        Ok(questions.into_iter().map(|message| self.letter(message)).collect())
    }

    fn letter(&self, message: Message) -> Letter {
        let snapshot = self.handles.registry.current();
        let text = said(&message, &snapshot.prompts.texts);
        Letter { message, text }
    }

    /// The tasks that are not idle, oldest first.
    pub async fn open_tasks(&self) -> Result<Vec<TaskId>, Error> {
        let mut reader = self.handles.store.reader().await?;
        tasks::open(&mut reader).await
    }

    /// The task that was begun last.
    pub async fn latest_task(&self) -> Result<Option<TaskId>, Error> {
        let mut reader = self.handles.store.reader().await?;
        tasks::latest(&mut reader).await
    }

    /// How a task stands, as if nothing were left to do in it.
    pub async fn outcome(&self, task: &TaskId) -> Result<Option<Outcome>, Error> {
        let mut reader = self.handles.store.reader().await?;
        Ok(tasks::standing(&mut reader, task).await?.map(|standing| standing.outcome()))
    }

    /// The name under which artifacts of a message are shown to the person: the file's, else the reference.
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

    /// Returns once the society cannot go on, with the reason.
    pub async fn broken(&self) -> String {
        let mut broken = self.broken.clone();
        match broken.wait_for(Option::is_some).await {
            Ok(reason) => reason.clone().unwrap_or_default(),
            // The supervisor has ended without a reason: it was stopped, and nothing will break any more.
            Err(_) => std::future::pending().await,
        }
    }

    /// Begins nothing new, and waits until what is under way has ended and is written, or until the grace period of the
    /// settings is over. [`Society::stop`] follows.
    pub async fn drain(&self) {
        let grace = self.handles.registry.current().settings.shutdown_grace;
        self.handles.draining.cancel();
        if tokio::time::timeout(grace, self.ended.cancelled()).await.is_err() {
            tracing::info!(?grace, "some agents are still at work; they go on at the next start");
        }
    }

    /// Stops: agents are dropped where they are, which is safe, and what they have asked to be written is.
    pub async fn stop(&self) {
        self.stop.cancel();
        self.tasks.wait().await;
        self.handles.store.close().await;
    }
}

/// What drives agents, and what reads.
fn handles(store: Store, blobs: BlobStore, parts: Parts) -> Arc<Handles> {
    Arc::new(Handles {
        store,
        blobs,
        registry: parts.registry,
        model: parts.model,
        gates: Gates::default(),
        draining: CancellationToken::new(),
        budgets: Budgets::default(),
        trusts: Trusts::default(),
        kept: Kept::default(),
        extractor: parts.extractor,
        outside: parts.outside_tools,
    })
}

/// Records what changes of the configuration lead to, until the society stops.
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
            // The newest reports say what is in force; those that were missed are history.
            Err(broadcast::error::RecvError::Lagged(_)) => continue,
            Err(broadcast::error::RecvError::Closed) => return,
        };
        let problems: Vec<String> = report.problems.iter().map(ToString::to_string).collect();
        let event = match report.outcome {
            // A file that was mended: what is in force is the same.
            ReportOutcome::Unchanged if problems.is_empty() => continue,
            ReportOutcome::Kept => Event::ConfigRefused { revision: report.revision, problems },
            ReportOutcome::Taken | ReportOutcome::Unchanged => {
                Event::ConfigTaken { revision: report.revision, differences: report.differences, problems }
            }
        };
        if let Err(error) = handles.store.note(event).await {
            tracing::error!(%error, "a change of the configuration could not be recorded");
        }
    }
}

/// How often events that have had their time are removed.
const RETENTION: Duration = Duration::from_secs(60 * 60);

/// Removes events that have had their time, and what was stored and never sent, now and every hour, until the society stops. A clock that is set forward
/// meanwhile makes no event old: what counts is what it said at the start, and the time that has passed since.
async fn keep_bounded(handles: Arc<Handles>, stop: CancellationToken) {
    let (begun_at, begun) = (polity_store::now(), tokio::time::Instant::now());
    let mut hours = tokio::time::interval(RETENTION);
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = hours.tick() => {}
        }
        let retention = handles.registry.current().settings.retention;
        let passed = i64::try_from(begun.elapsed().as_millis()).unwrap_or(i64::MAX);
        let now = polity_store::now().min(begun_at.saturating_add(passed));
        if let Err(error) = maintenance::remove_expired(&handles.store, retention, now).await {
            tracing::warn!(%error, "old events could not be removed");
        }
        if let Err(error) = maintenance::remove_unsent(&handles.store, now).await {
            tracing::warn!(%error, "what was stored and never sent could not be removed");
        }
        let within = match retention.max_database_bytes {
            Some(most) => maintenance::keep_within(&handles.store, most).await,
            None => Ok(0),
        };
        if let Err(error) = within {
            tracing::warn!(%error, "old tasks could not be forgotten");
        }
    }
}

#[cfg(test)]
mod tests;
