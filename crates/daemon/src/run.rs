//! `polity run`: the society runs in this process until it is idle.

use crate::cli::RunArguments;
use crate::config;
use crate::failure::{self, Failure};
use crate::models;
use crate::output::{Form, Output, Titles, complain};
use crate::patience::patiently;
use crate::places;
use crate::prompt;
use crate::remote;
use crate::signals::Interruption;
use polity_client::{Client, FindError};
use polity_runtime::{Letter, Prompt, Society, Target};
use polity_society::id::{AgentId, TaskId};
use polity_view::AgentState;
use polity_view::Event;
use polity_view::EventFilter;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;
use tokio::time::Instant;

/// How many events are read at once.
const PAGE: u32 = 500;
/// How long somebody who has the data directory may take to turn out to be a daemon.
const STARTING: Duration = Duration::from_secs(1);
/// How often is looked meanwhile.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs the command; gives the exit code.
pub(crate) async fn run(arguments: RunArguments) -> Result<u8, Failure> {
    let data_path = places::data_path(arguments.data.clone())?;
    if let Some(client) = daemon(&data_path).await? {
        let text = arguments.prompt.as_deref().map(prompt::read_text).transpose()?;
        return remote::run::run(&arguments, text, &client, &data_path).await;
    }
    let config_dir = places::config(arguments.config.clone())?;
    let (registry, problems) = config::read(&config_dir.path).await?;
    let prompt = prompt::read(&arguments, &registry.current())?;
    let data = match places::data(arguments.data.clone()) {
        Err(Failure::InUse(path)) => {
            let client = daemon_soon(&path).await?.ok_or(Failure::InUse(path))?;
            let text = prompt.map(|prompt| prompt.text);
            return remote::run::run(&arguments, text, &client, &data_path).await;
        }
        taken => taken?,
    };

    let mut output = Output::new(if arguments.json { Form::Json } else { Form::Text });
    output.problems(&problems);
    output.own_sources(&config_dir, &data.path, &registry.current().catalogue)?;
    let (registry, _watch) = config::watched(registry);
    let parts = models::parts(registry)?;
    // Before any agent works, so that no signal ends the process in another way.
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    let society = tokio::select! {
        started = Society::start(&data.path, parts) => started.map_err(Failure::Open)?,
        () = interruption.happened() => return Err(Failure::Interrupted),
    };
    let code = tokio::select! {
        // What has ended is not interrupted any more.
        biased;
        code = work(&society, &mut output, &data.path, prompt, arguments.timeout) => code,
        () = interruption.happened() => Err(Failure::Interrupted),
        reason = society.broken() => Err(Failure::Broken(reason)),
    };
    let interrupted = matches!(code, Err(Failure::Interrupted));
    let end = async {
        if interrupted {
            complain("what is under way may still end; once more to stop at once, which is safe too");
            society.drain().await;
        }
        society.stop().await;
        polity_points::point!("run::stopped");
    };
    tokio::select! {
        // Held until here, so that no other process sees the data of a society that is still stopping.
        () = end => drop(data),
        // Somebody is in a hurry: what was acknowledged is on disk already, and the lock goes with the process.
        () = interruption.happened() => std::mem::forget(data),
    }
    code
}

/// A client for the daemon that serves a data directory, if one does.
async fn daemon(data: &Path) -> Result<Option<Client>, Failure> {
    let client = Client::new(data)?;
    match client.ready().await {
        Ok(()) => Ok(Some(client)),
        Err(polity_client::Error::Find(FindError::NotServing(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// A client for whoever has a data directory, once it turns out to be a daemon: one that is starting is not ready yet.
async fn daemon_soon(data: &Path) -> Result<Option<Client>, Failure> {
    let deadline = Instant::now() + STARTING;
    loop {
        let found = daemon(data).await?;
        if found.is_some() || Instant::now() >= deadline {
            return Ok(found);
        }
        tokio::time::sleep(GLANCE).await;
    }
}

/// Shows what nobody has seen yet, and begins the task of the prompt, or finds the latest one.
async fn begin(
    society: &Society,
    output: &mut Output,
    data: &Path,
    prompt: Option<Prompt>,
    deadline: Option<Instant>,
) -> Result<TaskId, Failure> {
    if prompt.is_none() {
        society.resume(Target::Everybody).await?;
    }
    polity_points::point!("run::begun");
    // In this order: a task that comes to its end in between is among both.
    let open = society.open_tasks().await?;
    let unshown = society.unshown().await?;
    let mut left: BTreeSet<TaskId> = open.iter().cloned().collect();
    left.extend(unshown.iter().map(|letter| letter.message.task.clone()));
    let several = left.len() + usize::from(prompt.is_some()) > 1;
    if several {
        output.titles = Titles::read(society, &left).await?;
    }
    let shown = async {
        for letter in &unshown {
            show(society, output, letter).await?;
        }
        Ok::<(), Failure>(())
    };
    tokio::select! {
        // Where there is nothing to show, a prompt is begun however little time there is.
        biased;
        shown = shown => shown?,
        () = passed(deadline) => return Err(Failure::TimedOut),
    }
    let Some(prompt) = prompt else {
        let latest = society.latest_task().await?;
        if latest.is_some() && open.is_empty() {
            output.nothing_left();
        }
        return latest.ok_or_else(|| Failure::NothingToResume(data.to_owned()));
    };
    let root = &AgentId::root();
    let root = patiently(async || society.agent(root).await).await?;
    if root.is_some_and(|root| root.agent.state == AgentState::Paused) {
        return Err(Failure::RootPaused("polity run --resume"));
    }
    let text = prompt.text.clone();
    let task = society.prompt(prompt).await?;
    if several {
        output.titles.add(task.clone(), &text);
    }
    Ok(task)
}

/// Begins, and shows what happens until the society is idle; gives the exit code of the task.
async fn work(
    society: &Society,
    output: &mut Output,
    data: &Path,
    prompt: Option<Prompt>,
    timeout: Option<Duration>,
) -> Result<u8, Failure> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let task = &begin(society, output, data, prompt, deadline).await?;
    tokio::select! {
        idle = follow(society, output) => idle?,
        () = passed(deadline) => return Err(Failure::TimedOut),
    }
    polity_points::point!("run::idle");
    let Some(outcome) = patiently(|| society.outcome(task)).await? else {
        return Err(Failure::Defect(format!("the task {task} has gone")));
    };
    let code = failure::exit_code(outcome);
    output.outcome(society, task, outcome, code).await?;
    Ok(code)
}

/// Shows something that was said to the person, and notes that it was.
async fn show(society: &Society, output: &Output, letter: &Letter) -> Result<(), Failure> {
    output.letter(society, letter).await?;
    patiently(|| society.mark_shown(letter.message.id.clone())).await?;
    polity_points::point!("output::noted");
    Ok(())
}

async fn passed(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

/// Shows events as they come, until no task is open.
async fn follow(society: &Society, output: &Output) -> Result<(), Failure> {
    let mut newest = society.newest_event();
    let mut seen = society.first_event();
    let mut look = Look::AtTasks;
    let everything = EventFilter::default();
    loop {
        newest.mark_unchanged();
        loop {
            let page = patiently(|| society.events_after(seen, PAGE, &everything)).await?;
            // Beyond the last event where damaged ones come after it: they are not read again.
            seen = page.next.max(seen);
            if page.events.is_empty() {
                break;
            }
            for entry in &page.events {
                output.event(entry)?;
                if matches!(entry.event, Event::TaskIdle { .. }) {
                    look = Look::AtTasks;
                }
            }
            for letter in patiently(|| society.unshown()).await? {
                show(society, output, &letter).await?;
            }
        }
        if look == Look::AtTasks && patiently(|| society.open_tasks()).await?.is_empty() {
            if patiently(|| society.events_after(seen, 1, &everything)).await?.events.is_empty() {
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
