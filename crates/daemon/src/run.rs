//! `polity run`: the society runs in this process until it is idle.

use crate::cli::RunArguments;
use crate::config;
use crate::failure::{self, Failure};
use crate::models::Models;
use crate::output::Output;
use crate::places;
use crate::signals::Interruption;
use polity_llm::HttpModel;
use polity_registry::{Environment, Registry, Watch};
use polity_rehearsal::RehearsalModel;
use polity_runtime::{Event, NewArtifact, Parts, Prompt, Society};
use polity_society::id::TaskId;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How many events are read at once.
const PAGE: u32 = 500;

/// Runs the command; gives the exit code.
pub(crate) async fn run(arguments: RunArguments) -> Result<u8, Failure> {
    let prompt = arguments.prompt.as_deref().map(read_prompt).transpose()?;
    let config_dir = places::config(arguments.config)?;
    let environment = Environment::look_up(|name| std::env::var(name).ok());
    let (registry, problems) =
        Registry::load(&config_dir, environment, Box::new(|| Box::pin(config::discover()))).await?;
    let limit = registry.current().settings.limits.max_artifact_bytes;
    let attachments =
        arguments.attach.iter().map(|path| read_attachment(path, limit)).collect::<Result<Vec<_>, _>>()?;
    let data = places::data(arguments.data)?;

    let mut output = Output::new(arguments.json);
    output.problems(&problems);
    output.origin(&registry.current().catalogue)?;
    let registry = Arc::new(registry);
    let watch = Watch::start(&registry);
    if let Err(error) = &watch {
        // Changes are still seen, at the next model call.
        tracing::warn!(%error, "changes of the configuration are not watched");
    }
    let http = HttpModel::new().map_err(|error| Failure::Defect(error.to_string()))?;
    let parts = Parts {
        registry,
        model: Arc::new(Models { http, rehearsal: RehearsalModel }),
        outside_tools: Vec::new(),
        extractor: std::env::current_exe().ok(),
    };
    // Before any agent works, so that no signal ends the process in another way.
    let mut interruption = Interruption::listen().map_err(|error| Failure::Defect(error.to_string()))?;
    let society = Society::start(&data.path, parts).await.map_err(Failure::Open)?;
    let outcome =
        attend(&society, &mut output, &data.path, arguments.timeout, &mut interruption, async |society| {
            let Some(text) = prompt else { return Ok(None) };
            let prompt = Prompt { text, attachments, service: arguments.service };
            Ok(Some(society.prompt(prompt).await?))
        })
        .await;
    society.stop().await;
    // Held until here, so that no other process sees the data of a society that is still stopping.
    drop(data);
    outcome
}

fn read_prompt(argument: &str) -> Result<String, Failure> {
    if argument != "-" {
        return Ok(argument.to_owned());
    }
    let mut text = String::new();
    std::io::stdin().read_to_string(&mut text).map_err(Failure::StandardInput)?;
    Ok(text)
}

fn read_attachment(path: &Path, limit: u64) -> Result<NewArtifact, Failure> {
    let unreadable = |source| Failure::Attachment { path: path.to_owned(), source };
    let file = File::open(path).map_err(unreadable)?;
    let facts = file.metadata().map_err(unreadable)?;
    if !facts.is_file() {
        return Err(Failure::NotAFile(path.to_owned()));
    }
    // A file can grow while it is read; more than one byte too many is never read.
    let mut bytes = Vec::new();
    file.take(limit.saturating_add(1)).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > limit {
        return Err(Failure::AttachmentTooLarge { path: path.to_owned(), size: facts.len(), limit });
    }
    let filename = path.file_name().map(|name| name.to_string_lossy().into_owned());
    Ok(NewArtifact { bytes: bytes.into(), filename, ..NewArtifact::default() })
}

/// Shows what happens until the society is idle; gives the exit code.
async fn attend(
    society: &Society,
    output: &mut Output,
    data: &Path,
    timeout: Option<Duration>,
    interruption: &mut Interruption,
    begin: impl AsyncFnOnce(&Society) -> Result<Option<TaskId>, Failure>,
) -> Result<u8, Failure> {
    // What came before is shown first: nobody has seen it.
    for letter in society.unshown().await.map_err(broken)? {
        output.letter(society, &letter).await?;
    }
    let task = match begin(society).await? {
        Some(task) => task,
        None => {
            let latest = society.latest_task().await.map_err(broken)?;
            let latest = latest.ok_or_else(|| Failure::NothingToResume(data.to_owned()))?;
            if society.open_tasks().await.map_err(broken)?.is_empty() {
                output.nothing_left();
            }
            latest
        }
    };
    tokio::select! {
        idle = follow(society, output) => idle?,
        () = interruption.happened() => return Err(Failure::Interrupted),
        () = elapsed(timeout) => return Err(Failure::TimedOut),
        reason = society.broken() => return Err(Failure::Broken(reason)),
    }
    let outcome = society.outcome(&task).await.map_err(broken)?;
    let Some(outcome) = outcome else {
        return Err(Failure::Defect(format!("the task {task} has gone")));
    };
    let code = failure::exit_code(outcome);
    output.outcome(society, &task, outcome, code).await?;
    Ok(code)
}

async fn elapsed(timeout: Option<Duration>) {
    match timeout {
        Some(timeout) => tokio::time::sleep(timeout).await,
        None => std::future::pending().await,
    }
}

/// Shows events as they come, until no task is open.
async fn follow(society: &Society, output: &mut Output) -> Result<(), Failure> {
    let mut newest = society.newest_event();
    let mut seen = society.first_event();
    let mut look = Look::AtTasks;
    loop {
        newest.mark_unchanged();
        loop {
            let page = society.events_after(seen, PAGE).await.map_err(broken)?;
            let Some(last) = page.last() else { break };
            seen = last.seq;
            for entry in &page {
                output.event(entry)?;
                if matches!(entry.event, Event::TaskIdle { .. }) {
                    look = Look::AtTasks;
                }
            }
            for letter in society.unshown().await.map_err(broken)? {
                output.letter(society, &letter).await?;
            }
        }
        if look == Look::AtTasks && society.open_tasks().await.map_err(broken)?.is_empty() {
            if society.events_after(seen, 1).await.map_err(broken)?.is_empty() {
                return Ok(());
            }
            // Something was written between the last page and the question whether anything is left: it is shown first.
            continue;
        }
        look = Look::AtEvents;
        if newest.changed().await.is_err() {
            // The writer has ended; whoever stops the society says why.
            std::future::pending::<()>().await;
        }
    }
}

/// What to look at next.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    AtTasks,
    AtEvents,
}

fn broken(error: polity_runtime::Error) -> Failure {
    Failure::Broken(error.to_string())
}
