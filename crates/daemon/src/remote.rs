//! Commands that call the API of a daemon through the client and print the answers. Plain functions format the answers,
//! so tests need no daemon. Commands that only read get their client from [`Source`], which works without a daemon. All
//! other commands get their client from [`At`].

pub(crate) mod advice;
pub(crate) mod agent;
pub(crate) mod agents;
// Circle: `approvals` uses its submodule `terminal`, which formats questions with functions of `approvals`.
pub(crate) mod approvals;
pub(crate) mod artifacts;
// Circle: `chat` reads its input with its submodule `lines`, and `lines` calls the parser of `chat`.
pub(crate) mod chat;
pub(crate) mod conversation;
pub(crate) mod events;
pub(crate) mod export;
mod finished;
pub(crate) mod fork;
pub(crate) mod live;
pub(crate) mod messages;
pub(crate) mod reload;
mod root;
pub(crate) mod run;
pub(crate) mod search;
pub(crate) mod send;
pub(crate) mod services;
pub(crate) mod shutdown;
pub(crate) mod status;
pub(crate) mod steer;
pub(crate) mod tasks;
pub(crate) mod unfinished;
pub(crate) mod usage;
pub(crate) mod view;
pub(crate) mod watch;
pub(crate) mod why;

mod source;
pub(crate) mod words;

use source::Source;

#[cfg(test)]
mod examples;
use crate::failure::Failure;
use crate::output::{Form, complain, print_json, show};
use crate::places;
use clap::Args;
use polity_client::Client;
use polity_society::id::{AgentId, TaskId};
use serde::Serialize;
use std::path::PathBuf;

/// The option that selects the daemon, for commands that need a daemon.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// The data directory whose daemon is used [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl At {
    /// Returns a client for the daemon. Does not check that the daemon is running.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(&places::data_path(self.data.clone())?)?)
    }
}

/// The option that selects text or JSON.
#[derive(Debug, Args)]
pub(crate) struct Shape {
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

impl Shape {
    fn form(&self) -> Form {
        if self.json { Form::Json } else { Form::Text }
    }

    /// Prints a list. In JSON form, each row is a line. In text form, prints what `words` returns. If the list is
    /// empty, prints the text in the parameter `nothing` on standard error instead.
    fn list<T: Serialize>(
        &self,
        rows: &[T],
        nothing: &str,
        words: impl FnOnce(&[T]) -> String,
    ) -> Result<(), Failure> {
        match self.form() {
            Form::Json => rows.iter().try_for_each(print_json),
            Form::Text if rows.is_empty() => {
                complain(nothing);
                Ok(())
            }
            Form::Text => show(&words(rows)),
        }
    }

    /// Prints one value, as JSON or as text.
    fn one<T: Serialize>(&self, thing: &T, words: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        match self.form() {
            Form::Json => print_json(thing),
            Form::Text => show(&words(thing)),
        }
    }
}

/// Returns the task that an option names. Fails if there is no such task.
async fn named_task(client: &Client, id: Option<String>) -> Result<Option<TaskId>, Failure> {
    let Some(id) = id else { return Ok(None) };
    Ok(Some(client.task(&TaskId::new(id)).await?.id))
}

/// Returns the party that an option names: an agent, `user` or `system`. Fails if there is no such agent.
async fn named_party(client: &Client, id: Option<String>) -> Result<Option<AgentId>, Failure> {
    let Some(id) = id.map(AgentId::new) else { return Ok(None) };
    if id.is_user() || id.as_str() == SYSTEM {
        return Ok(Some(id));
    }
    Ok(Some(client.agent(&id).await?.agent.id))
}

/// In options such as `--from`, this name selects the sender of notices, which are messages of polity itself.
const SYSTEM: &str = "system";
