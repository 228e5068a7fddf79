//! `polity mcp`: MCP over standard input and output. Only protocol messages go to standard output.

mod bridge;

use crate::config;
use crate::failure::Failure;
use crate::models;
use crate::output::{Form, Output, complain};
use crate::places;
use crate::signals::Interruption;
use clap::Args;
use polity_client::{Error, FindError};
use polity_runtime::Society;
use std::path::PathBuf;
use std::sync::Arc;

/// `polity mcp`
#[derive(Debug, Args)]
pub(crate) struct McpArguments {
    /// Where app.json and llmservices.json are [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    pub(crate) config: Option<PathBuf>,

    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,
}

/// Runs the command; returns the exit code.
pub(crate) async fn run(arguments: McpArguments) -> Result<u8, Failure> {
    let data = match places::data(arguments.data) {
        // Another process uses the directory. If that process is a daemon, relay to it; otherwise report that the
        // directory is in use.
        Err(Failure::InUse(path)) => {
            return match bridge::run(&path).await {
                Err(Failure::Client(Error::Find(FindError::NotServing(_)))) => Err(Failure::InUse(path)),
                ended => ended,
            };
        }
        data => data?,
    };
    let config_dir = places::config(arguments.config)?;
    let (registry, problems) = config::read(&config_dir.path).await?;
    let output = Output::new(Form::Text);
    output.problems(&problems);
    let (registry, _watch) = config::watched(registry);
    let parts = models::parts(registry, &data.path);
    let mut interruption = Interruption::listen()
        .map_err(|error| Failure::Defect(format!("cannot listen for signals: {error}")))?;
    let society = tokio::select! {
        started = Society::start(&data.path, parts) => Arc::new(started.map_err(Failure::Open)?),
        () = interruption.happened() => return Ok(0),
    };
    let spoken = polity_mcp::serve(Arc::clone(&society), tokio::io::stdin(), tokio::io::stdout());
    let code = tokio::select! {
        spoken = spoken => {
            if let Err(error) = spoken {
                complain(&error.to_string());
            }
            Ok(0)
        }
        () = interruption.happened() => Ok(0),
        reason = society.broken() => Err(Failure::Broken(reason)),
        gone = society.gone() => Err(Failure::Gone(gone)),
    };
    // Stop without finishing the work in progress, because the editor or assistant that started this command does not
    // wait for it. The next start continues the work.
    society.stop().await;
    drop(data);
    code
}
