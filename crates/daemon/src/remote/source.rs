//! The source from which commands that only read get their data: the daemon or, if no daemon serves the data directory,
//! the directory itself. Both offer the same API.

use crate::config::{self, SEARCHING};
use crate::failure::Failure;
use crate::models;
use crate::output::Elapsed;
use crate::places;
use clap::Args;
use polity_client::Client;
use polity_runtime::Society;
use polity_store::maintenance::{self, Found};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The options that select what a command reads.
#[derive(Debug, Args)]
pub(crate) struct Source {
    /// The data directory of the society [default: `polity` in your user data directory].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,

    /// Where app.json and llmservices.json are, if no daemon serves the data directory [default: as for `polity run`].
    #[arg(long, value_name = "DIR")]
    config: Option<PathBuf>,
}

impl Source {
    /// Returns a client for the daemon that serves the data directory or, if there is none, for the data directory
    /// itself.
    pub(crate) async fn client(&self) -> Result<Client, Failure> {
        let data = places::data_path(self.data.clone())?;
        let daemon = Client::new(&data)?;
        match daemon.ready().await {
            Ok(()) => Ok(daemon),
            // There is no daemon, or the daemon ended during the request. So read the data directory itself.
            Err(error) if error.may_pass() => open(&data, self.config.clone()).await,
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the path of the data directory.
    pub(crate) fn data_path(&self) -> Result<PathBuf, Failure> {
        places::data_path(self.data.clone())
    }

    /// Returns the data directory that the user named, if any.
    pub(crate) fn named_data(&self) -> Option<String> {
        self.data.as_ref().map(|path| path.display().to_string())
    }

    /// Returns a client for the daemon. Does not check that the daemon is running.
    pub(crate) fn daemon(&self) -> Result<Client, Failure> {
        Ok(Client::new(&places::data_path(self.data.clone())?)?)
    }
}

/// Opens a data directory for reading only; creates no files there or elsewhere. Another process may write to the
/// directory at the same time: this process then reads everything that is committed.
async fn open(data: &Path, config_dir: Option<PathBuf>) -> Result<Client, Failure> {
    match maintenance::found(data) {
        Found::Society => {}
        Found::Lost => return Err(Failure::Lost(data.to_owned())),
        Found::Nothing => return Err(Failure::NoSociety(data.to_owned())),
    }
    let config_dir = places::config_as_it_is(config_dir)?;
    let searching = Elapsed::begin(SEARCHING);
    let (registry, _) = config::read(&config_dir.path).await?;
    drop(searching);
    let parts = models::reading_parts(Arc::new(registry), data);
    let society = Society::open_to_read(data, parts).await.map_err(Failure::Open)?;
    Ok(Client::in_process(polity_api::read_only(Arc::new(society)))?)
}
