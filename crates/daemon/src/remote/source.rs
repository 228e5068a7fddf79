//! Where commands that only read get what they show: from the daemon, or from the data directory itself where none
//! serves it. Either way they speak to the same API.

use crate::config;
use crate::failure::Failure;
use crate::models;
use crate::places;
use clap::Args;
use polity_client::Client;
use polity_runtime::{Society, maintenance};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is read.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// Where the society lives [default: your data directory].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Where app.json and llmservices.json are, if no daemon serves the data directory [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
}

impl Source {
    /// A client for the daemon that serves the data directory; where none does, for the data directory itself.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let data = places::data_path(self.data.clone())?;
        let daemon = Client::new(&data)?;
        match daemon.ready().await {
            Ok(()) => Ok(daemon),
            // There is none, or it has gone while it was asked.
            Err(error) if error.may_pass() => open(&data, self.config.clone()).await,
            Err(error) => Err(error.into()),
        }
    }

    /// A client for the daemon, which need not be there.
    pub(crate) fn daemon(&self) -> Result<Client, Failure> {
        Ok(Client::new(&places::data_path(self.data.clone())?)?)
    }
}

/// Opens a data directory for reading alone. Nothing is made, in the data directory or elsewhere. Whoever has it may
/// write to it meanwhile: what is read is what was committed before.
async fn open(data: &Path, config_dir: Option<PathBuf>) -> Result<Client, Failure> {
    if !maintenance::is_data_directory(data) {
        return Err(Failure::NoSociety(data.to_owned()));
    }
    let config_dir = places::config_as_it_is(config_dir)?;
    let (registry, _) = config::read(&config_dir.path).await?;
    let parts = models::reading_parts(Arc::new(registry));
    let society = Society::open_to_read(data, parts).await.map_err(Failure::Open)?;
    Ok(Client::in_process(polity_api::read_only(Arc::new(society)))?)
}
