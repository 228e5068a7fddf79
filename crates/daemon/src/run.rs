//! `polity run`: gives a prompt to the society in a data directory, or continues its work. The command is a client of
//! the daemon that serves the directory. If there is no daemon, this process runs the society itself, and the client
//! calls the society's API without a socket.

use crate::config::{self, SEARCHING};
use crate::failure::Failure;
use crate::models;
use crate::output::{Elapsed, Form, Output, complain};
use crate::places::{self, ConfigDirectory, DataDirectory};
use crate::prompt;
use crate::remote::run::RunArguments;
use crate::remote::run::{Others, Run};
use crate::signals::Interruption;
use polity_api::Ending;
use polity_client::{Client, FindError};
use polity_registry::Registry;
use polity_runtime::Society;
use polity_society::id::TaskId;
use polity_society::workspace::READ_ONLY;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Maximum wait for a process that has locked the data directory: it may be a daemon that is not ready yet.
const STARTING: Duration = Duration::from_secs(1);
/// Polling interval while waiting for a process to become ready as a daemon.
const GLANCE: Duration = Duration::from_millis(50);

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: RunArguments) -> Result<u8, Failure> {
    let data_path = places::data_path(arguments.data.clone())?;
    if let Some(client) = daemon(&data_path).await? {
        let text = arguments.prompt.as_deref().map(prompt::read_text).transpose()?;
        return through_daemon(&arguments, text, &client, &data_path).await;
    }
    let config_dir = match &arguments.workspace {
        Some(workspace) => places::config_beside(arguments.config.clone(), &directory_of(workspace))?,
        None => places::config(arguments.config.clone())?,
    };
    let searching = if arguments.json { Elapsed::hidden() } else { Elapsed::begin(SEARCHING) };
    let (registry, problems) = config::read(&config_dir.path).await?;
    drop(searching);
    let (argument, service) = (arguments.prompt.as_deref(), arguments.service.as_ref());
    let text = prompt::check(argument, &arguments.attach, service, &registry.current())?;
    let data = match places::data(arguments.data.clone()) {
        Err(Failure::InUse(path)) => {
            let client = daemon_soon(&path).await?.ok_or(Failure::InUse(path))?;
            return through_daemon(&arguments, text, &client, &data_path).await;
        }
        taken => taken?,
    };
    let output = output(&arguments);
    output.problems(&problems);
    in_this_process(&arguments, text, &output, &config_dir, registry, data).await
}

/// Returns the path of a workspace without the suffix `:ro`.
fn directory_of(workspace: &str) -> PathBuf {
    PathBuf::from(workspace.strip_suffix(READ_ONLY).unwrap_or(workspace))
}

fn output(arguments: &RunArguments) -> Output {
    Output::new(if arguments.json { Form::Json } else { Form::Text })
}

fn deadline(arguments: &RunArguments) -> Option<Instant> {
    arguments.timeout.and_then(|timeout| Instant::now().checked_add(timeout))
}

fn interruption() -> Result<Interruption, Failure> {
    Interruption::listen().map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))
}

/// Starts the society, runs as its client, and stops it.
async fn in_this_process(
    arguments: &RunArguments,
    text: Option<String>,
    output: &Output,
    config_dir: &ConfigDirectory,
    registry: Registry,
    data: DataDirectory,
) -> Result<u8, Failure> {
    output.own_sources(config_dir, &data.path, &registry.current().catalogue)?;
    let (registry, _watch) = config::watched(registry);
    let parts = models::parts(registry, &data.path);
    // Listen for signals before any agent works. Otherwise a signal would end the process at once, without stopping the
    // society first.
    let mut interruption = interruption()?;
    let society = tokio::select! {
        started = Society::start(&data.path, parts) => Arc::new(started.map_err(Failure::Open)?),
        () = interruption.happened() => return Err(Failure::Interrupted),
    };
    let client = Client::in_process(polity_api::in_process(Arc::clone(&society), Ending::default()))?;
    let run = Run {
        client: &client,
        output,
        arguments,
        data: &data.path,
        others: Others::OfThisProcess,
        since: society.first_event(),
    };
    let (tell, _) = watch::channel(None);
    let code = tokio::select! {
        // If the run has ended and a signal has arrived too, the exit code is that of the run: the first branch counts.
        biased;
        code = run.work(text, deadline(arguments), &tell) => code,
        () = interruption.happened() => Err(Failure::Interrupted),
        reason = society.broken() => Err(Failure::Broken(reason)),
        gone = society.gone() => Err(Failure::Gone(gone)),
    };
    let end = async {
        if matches!(code, Err(Failure::Interrupted)) {
            complain(
                "letting the work in progress finish; interrupt once more to stop at once, which is safe too",
            );
            society.drain().await;
        }
        society.stop().await;
        polity_points::point!("run::stopped");
    };
    tokio::select! {
        // Release the lock only after the society has stopped, so that no other process uses the data while the
        // society still writes.
        () = end => drop(data),
        // On a second signal, end at once: everything that polity has acknowledged to clients is on disk already. The
        // data directory stays locked until the process ends.
        () = interruption.happened() => std::mem::forget(data),
    }
    code
}

/// Runs as a client of a daemon. The daemon continues the work even if this process ends.
async fn through_daemon(
    arguments: &RunArguments,
    text: Option<String>,
    client: &Client,
    data: &Path,
) -> Result<u8, Failure> {
    let mut interruption = interruption()?;
    let output = output(arguments);
    if arguments.config.is_some() {
        complain("a daemon serves this data directory: its configuration is used, not that of --config");
    }
    let (tell, begun) = watch::channel(None);
    let work = async {
        output.sources_of_daemon(client, data).await?;
        let since = crate::remote::events::newest_event(client).await?;
        let run = Run { client, output: &output, arguments, data, others: Others::OfTheDaemon, since };
        run.work(text, deadline(arguments), &tell).await
    };
    let code = tokio::select! {
        // If the run has ended and a signal has arrived too, the exit code is that of the run: the first branch counts.
        biased;
        code = work => code,
        () = interruption.happened() => Err(Failure::Interrupted),
    };
    let task: Option<TaskId> = begun.borrow().clone();
    code.map_err(|failure| match (failure, task) {
        (Failure::Interrupted, Some(task)) => Failure::LeftWorking(task),
        (Failure::Interrupted, None) => Failure::Left,
        (Failure::TimedOut, Some(task)) => Failure::TimedOutWorking(task),
        (failure, _) => failure,
    })
}

/// Returns a client for the daemon that serves a data directory; nothing if no daemon does.
async fn daemon(data: &Path) -> Result<Option<Client>, Failure> {
    let client = Client::new(data)?;
    match client.ready().await {
        Ok(()) => Ok(Some(client)),
        Err(polity_client::Error::Find(FindError::NotServing(_))) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Returns a client for the process that has locked a data directory, if that process is a daemon. Waits at most
/// [`STARTING`], because a daemon that is starting is not ready yet.
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
