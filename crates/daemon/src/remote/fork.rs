//! `polity fork TASK --turn N`: copies a task up to a turn, and begins this turn again in the copy.

use super::At;
use super::send::{Awaiting, wait_for};
use crate::failure::Failure;
use crate::output::{Elapsed, Form, complain, print, print_json};
use crate::prompt::read_text;
use clap::Args;
use polity_client::IdempotencyKey;
use polity_society::id::{ServiceId, TaskId};
use polity_view::{Forked, NewFork};

/// `polity fork`
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The task to copy. It stays unchanged.
    #[arg(value_name = "TASK")]
    task: String,
    /// The turn that the new task begins again; `polity agent ID --conversation --json` shows the numbers of turns.
    #[arg(long, value_name = "N")]
    turn: i64,
    /// Another service for the agent of this turn.
    #[arg(long, value_name = "ID")]
    service: Option<String>,
    /// Another text in place of your message that began this turn; `-` reads it from standard input.
    #[arg(long, value_name = "TEXT", conflicts_with = "answer")]
    prompt: Option<String>,
    /// Another answer to the question of an agent, if this turn began with your answer.
    #[arg(long, value_name = "TEXT")]
    answer: Option<String>,
    /// Wait until nothing is left to do in the new task. Prints the id of the task on standard error and the messages for
    /// you on standard output, and exits with the code of `polity run`.
    #[arg(long)]
    wait: bool,
    #[command(flatten)]
    at: At,
    /// Print JSON: the new task, or with --wait every event of it.
    #[arg(long)]
    json: bool,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> Result<u8, Failure> {
    let text = arguments.prompt.or(arguments.answer).map(|text| read_text(&text)).transpose()?;
    let client = arguments.at.client()?;
    let form = if arguments.json { Form::Json } else { Form::Text };
    let copying = if arguments.json { Elapsed::hidden() } else { Elapsed::begin("copying the task") };
    let newest = super::events::newest_event(&client).await?;
    let fork = NewFork { turn: arguments.turn, service: arguments.service.map(ServiceId::new), text };
    let forked = client.fork(&TaskId::new(arguments.task), &fork, &IdempotencyKey::mint()).await?;
    drop(copying);
    if arguments.wait {
        if form == Form::Text {
            complain(&in_words(&forked));
        }
        let awaiting = Awaiting { task: &forked.task, to: &forked.agent, letter: None, newest, form };
        return wait_for(&client, awaiting).await;
    }
    match form {
        Form::Json => print_json(&forked)?,
        Form::Text => print(&in_words(&forked))?,
    }
    Ok(0)
}

fn in_words(forked: &Forked) -> String {
    let Forked { task, agent, from, turn, .. } = forked;
    format!("{task}: {agent} begins turn {turn} of {from} again")
}
