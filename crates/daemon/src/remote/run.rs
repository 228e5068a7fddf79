//! `polity run` where a daemon serves the data directory already: the same output and exit codes, but the work is done
//! there, and only its own task is shown, or with
//! `--resume` those that are not finished.

use super::conversation::Telling;
use super::events::newest_event;
use super::send::stored;
use crate::cli::RunArguments;
use crate::config::small_window;
use crate::failure::Failure;
use crate::output::{Form, Output, Sources, complain};
use crate::signals::Interruption;
use polity_client::{Client, IdempotencyKey, Letter, Scope, Step};
use polity_registry::Origin;
use polity_society::id::{AgentId, ServiceId, TaskId};
use polity_view::Entry;
use polity_view::{AgentState, EventFilter, MAX_PAGE, TaskFilter, TaskState};
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
        // Before anything is begun, so that what comes of it is not missed.
        let newest = newest_event(client).await?;
        let tasks = begin(client, &output, arguments, text, data).await?;
        let Some(task) = tasks.last().cloned() else {
            return Err(Failure::NothingToResume(data.to_owned()));
        };
        tell.send_replace(Some(task.clone()));
        tokio::select! {
            code = show_tasks(client, &output, arguments, &tasks, newest) => code,
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

/// Shows what happens in tasks until nothing is left to do in them; gives the exit code of the last.
async fn show_tasks(
    client: &Client,
    output: &Output,
    arguments: &RunArguments,
    tasks: &[TaskId],
    newest: i64,
) -> Result<u8, Failure> {
    let form = if arguments.json { Form::Json } else { Form::Text };
    let client = &client.waiting();
    let mut telling = Telling::new(client, tasks, form);
    telling.show_unshown(newest).await?;
    let filter = match tasks {
        [task] => EventFilter { task: Some(task.clone()), ..EventFilter::default() },
        _ => EventFilter::default(),
    };
    let show_event = |entry: &Entry| match entry.event.task() {
        Some(task) if !tasks.contains(task) => Ok(()),
        // What belongs to no task concerns every one.
        Some(_) | None => output.event(entry),
    };
    let outcome = match telling.outcome().await? {
        // That it came to its end was told then; that a new task did is told by the stream.
        Some(outcome) if arguments.resume => outcome,
        Some(_) | None => telling.follow(&mut client.follow(newest, filter), show_event).await?,
    };
    telling.tell_outcome(outcome).await
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
    // It may have been taken out of the configuration since.
    let first = client.service(&config.default_service).await.ok();
    output.sources(&Sources {
        config: &format!("{directory} (of the daemon at {})", client.url()?),
        config_dir: &directory,
        data,
        services: config.services.iter().map(ServiceId::as_str).collect(),
        origin: &config.origin,
        is_rehearsal: config.origin == Origin::Rehearsal.to_string(),
        small_window: first.and_then(|first| small_window(&first.id, first.context_window)),
    })
}

/// Gives the tasks: the one of the prompt, or those that are not finished and the latest, which stands last.
async fn begin(
    client: &Client,
    output: &Output,
    arguments: &RunArguments,
    text: Option<String>,
    data: &Path,
) -> Result<Vec<TaskId>, Failure> {
    let root = AgentId::root();
    let Some(text) = text else {
        client.steer(&root, Step::Resume, Scope::Subtree).await?;
        let filter = TaskFilter { limit: Some(1), ..TaskFilter::default() };
        let latest = client.tasks(&filter).await?.tasks.pop();
        let latest = latest.ok_or_else(|| Failure::NothingToResume(data.to_owned()))?;
        let open = open_tasks(client).await?;
        if open.is_empty() && latest.state == TaskState::Idle {
            output.nothing_left();
        }
        return Ok(with_last(open, latest.id));
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
    Ok(vec![client.send(&letter).await?.task])
}

/// The tasks in which something is left to do.
async fn open_tasks(client: &Client) -> Result<Vec<TaskId>, Failure> {
    let mut filter =
        TaskFilter { state: Some(TaskState::Open), limit: Some(MAX_PAGE), ..TaskFilter::default() };
    let mut open = Vec::new();
    loop {
        let page = client.tasks(&filter).await?;
        open.extend(page.tasks.into_iter().map(|task| task.id));
        if page.next.is_none() {
            return Ok(open);
        }
        filter.after = page.next;
    }
}

/// Tasks from the oldest on, of which they come newest first, and one that stands last whether it is among them or not.
fn with_last(newest_first: Vec<TaskId>, last: TaskId) -> Vec<TaskId> {
    let mut tasks: Vec<TaskId> = newest_first.into_iter().rev().filter(|task| *task != last).collect();
    tasks.push(last);
    tasks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_latest_task_is_the_last() {
        let check = |open: &[&str], expect: &[&str]| {
            let open = open.iter().map(|task| TaskId::new(*task)).collect();
            let tasks = with_last(open, TaskId::new("c"));
            assert_eq!(tasks.iter().map(TaskId::as_str).collect::<Vec<_>>(), expect);
        };
        check(&[], &["c"]);
        check(&["c"], &["c"]);
        check(&["c", "b", "a"], &["a", "b", "c"]);
        check(&["b", "a"], &["a", "b", "c"]);
    }
}
