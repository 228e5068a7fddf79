//! `polity run` where a daemon serves the data directory already: the same output and exit codes, but the work is done
//! there, and only its own task is shown.

use super::conversation::{self, follow_task, show_unshown};
use super::send::stored;
use crate::cli::RunArguments;
use crate::failure::Failure;
use crate::output::{Form, Output, Sources, complain};
use crate::signals::Interruption;
use polity_client::{Client, IdempotencyKey, Letter, Scope, Step};
use polity_registry::Origin;
use polity_runtime::Entry;
use polity_runtime::view::{AgentState, EventFilter, TaskFilter, TaskState};
use polity_society::id::{AgentId, ServiceId, TaskId};
use std::path::Path;
use tokio::sync::watch;
use tokio::time::Instant;

/// Runs the command through a daemon; gives the exit code.
pub(crate) async fn run(
    arguments: &RunArguments,
    text: Option<String>,
    client: &Client,
    data: &Path,
) -> Result<u8, Failure> {
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    let form = if arguments.json { Form::Json } else { Form::Text };
    let output = Output::new(form);
    if arguments.config.is_some() {
        complain("a daemon serves this data directory: its configuration counts, not that of --config");
    }
    sources(client, &output, data).await?;
    let deadline = arguments.timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let (tell, begun) = watch::channel(None);
    let work = async {
        let task = begin(client, &output, arguments, text, data).await?;
        tell.send_replace(Some(task.clone()));
        tokio::select! {
            code = show_task(client, &output, arguments, &task) => code,
            // However little time there is, the prompt is begun.
            () = passed(deadline) => Err(Failure::TimedOutWorking(task)),
        }
    };
    tokio::select! {
        // What has ended is not interrupted any more.
        biased;
        code = work => code,
        () = interruption.happened() => Err(begun.borrow().clone().map_or(Failure::Left, Failure::LeftWorking)),
    }
}

/// Shows what happens in a task until nothing is left to do in it; gives its exit code.
async fn show_task(
    client: &Client,
    output: &Output,
    arguments: &RunArguments,
    task: &TaskId,
) -> Result<u8, Failure> {
    let form = if arguments.json { Form::Json } else { Form::Text };
    show_unshown(client, task, form).await?;
    let filter = EventFilter { task: Some(task.clone()), ..EventFilter::default() };
    let show_event = |entry: &Entry| match entry.event.task() {
        Some(of) if of == task => output.event(entry),
        Some(_) | None => Ok(()),
    };
    // From the beginning where it is a new task, because that is when its first event happened.
    let after = if arguments.resume { super::events::newest_event(client).await? } else { 0 };
    let waiting = client.waiting();
    let outcome = match conversation::outcome(client, task).await? {
        Some(outcome) if arguments.resume => outcome,
        Some(_) | None => {
            follow_task(&waiting, &mut client.follow(after, filter), task, form, show_event).await?
        }
    };
    conversation::tell_outcome(&waiting, task, outcome, form).await
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Says which files count and where the models come from, as a run of its own would.
async fn sources(client: &Client, output: &Output, data: &Path) -> Result<(), Failure> {
    let config = client.config().await?;
    let directory = config.directory.clone().unwrap_or_default();
    output.sources(&Sources {
        config: &format!("{directory} (of the daemon at {})", client.url()?),
        config_dir: &directory,
        data,
        services: config.services.iter().map(ServiceId::as_str).collect(),
        origin: &config.origin,
        is_rehearsal: config.origin == Origin::Rehearsal.to_string(),
    })
}

/// Gives the task: the one of the prompt, or the latest.
async fn begin(
    client: &Client,
    output: &Output,
    arguments: &RunArguments,
    text: Option<String>,
    data: &Path,
) -> Result<TaskId, Failure> {
    let root = AgentId::root();
    let Some(text) = text else {
        client.steer(&root, Step::Resume, Scope::Subtree).await?;
        let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
        let latest = client.tasks(&filter).await?.tasks.pop();
        let latest = latest.ok_or_else(|| Failure::NothingToResume(data.to_owned()))?;
        if latest.state == TaskState::Idle {
            output.nothing_left();
        }
        return Ok(latest.id);
    };
    if client.agent(&root).await?.agent.state == AgentState::Paused {
        return Err(Failure::RootPaused("polity resume root"));
    }
    let letter = Letter {
        to: root,
        text,
        attachments: stored(client, &arguments.attach).await?,
        task: None,
        service: arguments.service.clone(),
        key: IdempotencyKey::mint(),
    };
    Ok(client.send(&letter).await?.task)
}
