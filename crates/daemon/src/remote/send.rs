//! `polity send`: sends a message to root or another agent and, with `--wait`, prints the messages that come back.

use super::conversation::{Awaited, Resumable, Telling, tell_outcome};
use super::events::newest_event;
use super::{At, artifacts};
use crate::failure::Failure;
use crate::output::{Form, complain, print, print_json};
use crate::prompt::{is_reference, read_text, size_of_file};
use crate::signals::Interruption;
use crate::suggested::repeating;
use crate::values::workspace;
use clap::Args;
use polity_client::{Client, IdempotencyKey, NewMessage};
use polity_society::id::{AgentId, MessageId, ServiceId, TaskId};
use polity_society::message::MessageState;
use polity_view::{AgentFilter, AgentState, EventFilter, Outcome, Posted, Warning};
use std::path::{Path, PathBuf};

/// `polity send`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The text of the message; `-` reads it from standard input.
    #[arg(value_name = "TEXT")]
    text: String,
    /// The receiver: any agent that has not ended.
    #[arg(long, value_name = "AGENT", default_value = "root")]
    to: String,
    /// The task that the message continues [default: for root a new task; for another agent the task of that agent].
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// A file to attach, or the reference of an artifact; may be given several times.
    #[arg(long, value_name = "FILE")]
    attach: Vec<PathBuf>,
    /// The service that root uses for a new task.
    #[arg(long, value_name = "ID", conflicts_with = "task")]
    service: Option<String>,
    /// The directory in which the agents of a new task work on files and run commands; `:ro` at the end of its path
    /// makes the directory read-only [default: a new directory].
    #[arg(long, value_name = "DIR", value_parser = workspace, conflicts_with = "task")]
    workspace: Option<String>,
    /// Wait until nothing is left to do in the task. Prints the messages for you on standard output, and exits with the
    /// code of `polity run`. With --to, prints only messages that may answer yours.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    at: At,
    /// Print JSON: the accepted message, or with --wait every event of the task.
    #[arg(long)]
    json: bool,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let text = read_text(&arguments.text)?;
    let client = arguments.at.client()?;
    let form = if arguments.json { Form::Json } else { Form::Text };
    // Read the number of the newest event before the message is sent, so that no later event of its task is missed.
    let newest = newest_event(&client).await?;
    let letter = NewMessage {
        to: AgentId::new(arguments.to),
        text,
        attachments: Vec::new(),
        task: arguments.task.map(TaskId::new),
        service: arguments.service.map(ServiceId::new),
        workspace: arguments.workspace,
        key: IdempotencyKey::mint(),
    };
    let posted = post(&client, letter, &arguments.attach).await?;
    if !arguments.wait {
        match form {
            Form::Json => print_json(&posted)?,
            Form::Text => print(&in_words(&posted))?,
        }
        return Ok(0);
    }
    // In a task, root speaks for all agents. Any other agent is asked for itself, so only its answer counts.
    let letter = (!posted.to.is_root()).then_some(&posted.id);
    wait_for(&client, Awaiting { task: &posted.task, to: &posted.to, letter, newest, form }).await
}

/// The work that a command waits for.
#[derive(Clone, Copy)]
pub(super) struct Awaiting<'a> {
    pub(super) task: &'a TaskId,
    /// The agent that gets the first message.
    pub(super) to: &'a AgentId,
    /// If given, only messages that may answer this message are printed.
    pub(super) letter: Option<&'a MessageId>,
    /// The newest event when the command began.
    pub(super) newest: i64,
    pub(super) form: Form,
}

/// Prints what happens in a task until nothing is left to do or the user interrupts it; returns the exit code.
pub(super) async fn wait_for(client: &Client, awaiting: Awaiting<'_>) -> Result<u8, Failure> {
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    let waiting = client.waiting_aloud(complain);
    tokio::select! {
        code = wait(&waiting, awaiting) => code,
        () = interruption.happened() => Err(Failure::LeftWorking(awaiting.task.clone())),
    }
}

fn in_words(posted: &Posted) -> String {
    let again = if posted.duplicate { ", which had received it before" } else { "" };
    format!("{} to {} in {}{again}", posted.id, posted.to, posted.task)
}

/// Returns the reference of an attachment. If the attachment is a file, stores the file first.
pub(crate) async fn stored(client: &Client, attachment: &Path) -> Result<String, Failure> {
    if is_reference(attachment) {
        return Ok(attachment.to_string_lossy().into_owned());
    }
    Ok(artifacts::put(client, attachment).await?.reference)
}

/// Maximum total size, in bytes, of files that are sent in one request with their message. The size is limited because
/// the client holds these files in memory. If the files together are larger, they are stored one by one before the
/// message is sent.
const MOST_IN_MESSAGE: u64 = 64 << 20;
/// The HTTP status with which the daemon refuses a request whose files together are too large.
const TOO_LARGE: u16 = 413;

/// Sends a message with attachments, which are files or references of artifacts. If the daemon's answer contains
/// warnings, prints them on standard error.
pub(crate) async fn post(
    client: &Client,
    message: NewMessage,
    attach: &[PathBuf],
) -> Result<Posted, Failure> {
    let posted = post_with_files(client, message, attach).await?;
    for Warning { text, .. } in &posted.warnings {
        complain(&format!("warning: {}", repeating(text)));
    }
    Ok(posted)
}

async fn post_with_files(
    client: &Client,
    mut message: NewMessage,
    attach: &[PathBuf],
) -> Result<Posted, Failure> {
    let (references, files): (Vec<PathBuf>, Vec<PathBuf>) =
        attach.iter().cloned().partition(|attachment| is_reference(attachment));
    message.attachments.extend(references.iter().map(|reference| reference.to_string_lossy().into_owned()));
    let mut bytes = 0_u64;
    for file in &files {
        bytes = bytes.saturating_add(size_of_file(file)?);
    }
    if files.is_empty() {
        return Ok(client.send(&message).await?);
    }
    if bytes <= MOST_IN_MESSAGE {
        match client.send_with_files(&message, &files).await {
            // The files together are too large for one request. Each file alone may be small enough, so they are stored
            // one by one below.
            Err(polity_client::Error::Refused(problem)) if problem.status == TOO_LARGE && files.len() > 1 => {
            }
            sent => return Ok(sent?),
        }
    }
    for file in &files {
        message.attachments.push(stored(client, file).await?);
    }
    Ok(client.send(&message).await?)
}

async fn wait(client: &Client, awaiting: Awaiting<'_>) -> Result<u8, Failure> {
    let Awaiting { task, to, letter, newest, form } = awaiting;
    if let Some(words) = paused(client, to).await? {
        complain(&words);
    }
    let filter = EventFilter { task: Some(task.clone()), ..EventFilter::default() };
    let show_event = |entry: &polity_view::Entry| match form {
        Form::Json if entry.event.task() == Some(task) => print_json(entry),
        Form::Json | Form::Text => Ok(()),
    };
    let awaited = letter.map(|letter| Awaited { agent: to.clone(), letter: letter.clone() });
    let mut telling = Telling::new(client, std::slice::from_ref(task), form).awaiting(awaited);
    // A task that already existed may have messages that the user has not been shown. Print these messages first.
    telling.show_unshown(newest).await?;
    let outcome = telling.follow(newest, filter, show_event).await?;
    if let Some(letter) = letter
        && client.message(letter).await?.state == MessageState::Bounced
    {
        if form == Form::Text {
            complain(&format!("{to} does not accept {letter}: it was stopped or ended before it answered"));
        }
        // The outcome of the task may be that of an earlier prompt.
        return tell_outcome(client, task, Outcome::Unanswered, form).await;
    }
    // `polity run --resume` tries again only in the latest task, and this task may be an earlier one.
    telling.tell_outcome(outcome, Resumable::No).await
}

/// Returns a warning if an agent is paused, because it will not answer until it is resumed.
pub(crate) async fn paused(client: &Client, id: &AgentId) -> Result<Option<String>, Failure> {
    let paused = match id.is_root() {
        true => root_is_paused(client).await?,
        false => client.agent(id).await?.agent.state == AgentState::Paused,
    };
    let words = format!("{id} is paused and does nothing until it is resumed: polity resume {id}");
    Ok(paused.then(|| repeating(&words).into_owned()))
}

/// Returns whether root is paused. In each list of agents, the person and root come first. So this request costs the
/// same after any number of tasks, while the details of root contain what root has done in all tasks.
pub(crate) async fn root_is_paused(client: &Client) -> Result<bool, Failure> {
    let filter = AgentFilter { limit: Some(2), ..AgentFilter::default() };
    let first = client.agents(&filter).await?.agents;
    Ok(first.iter().any(|agent| agent.id.is_root() && agent.state == AgentState::Paused))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_taken() {
        let posted = Posted {
            id: MessageId::from_sequence(7),
            task: TaskId::new("task-1"),
            state: MessageState::Queued,
            to: AgentId::root(),
            duplicate: false,
            warnings: Vec::new(),
        };
        assert_eq!(in_words(&posted), "m000000007 to root in task-1");
        let again = Posted { duplicate: true, ..posted };
        assert_eq!(in_words(&again), "m000000007 to root in task-1, which had received it before");
    }
}
