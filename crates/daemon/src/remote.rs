//! Commands that ask the daemon of a data directory: each asks the client, and shows what comes back. How it looks is
//! decided by plain functions over what came. Those that only read take their client from [`Source`], which needs no
//! daemon; the others from [`At`].

pub(crate) mod agent;
pub(crate) mod agents;
pub(crate) mod artifacts;
pub(crate) mod chat;
pub(crate) mod conversation;
pub(crate) mod events;
pub(crate) mod export;
pub(crate) mod messages;
pub(crate) mod reload;
pub(crate) mod run;
pub(crate) mod send;
pub(crate) mod services;
pub(crate) mod steer;
pub(crate) mod tasks;
pub(crate) mod usage;
pub(crate) mod view;
pub(crate) mod watch;

mod source;
mod words;

use source::Source;

#[cfg(test)]
mod examples;

use crate::failure::Failure;
use crate::output::{Form, complain, print_json, show};
use crate::places;
use clap::Args;
use polity_client::Client;
use serde::Serialize;
use std::path::PathBuf;

/// Whose daemon is asked.
#[derive(Debug, Args)]
pub(crate) struct At {
    /// Where the society lives, whose daemon is asked [default: your data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

impl At {
    /// A client for the daemon, which need not be there.
    pub(crate) fn client(&self) -> Result<Client, Failure> {
        Ok(Client::new(&places::data_path(self.data.clone())?)?)
    }
}

/// How a list is shown.
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

    /// Shows a list: as lines of JSON, or in the words that are made of it. That there is nothing is said aside.
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

    /// Shows one thing.
    fn one<T: Serialize>(&self, thing: &T, words: impl FnOnce(&T) -> String) -> Result<(), Failure> {
        match self.form() {
            Form::Json => print_json(thing),
            Form::Text => show(&words(thing)),
        }
    }
}
