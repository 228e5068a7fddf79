//! The daemon that serves a data directory, and the configuration that this daemon uses. `polity config` and the doctor
//! show this configuration by default, because the configuration of the daemon is the one in force.

use crate::failure::Failure;
use crate::places;
use polity_client::Client;
use polity_view::ConfigView;
use std::path::{Path, PathBuf};

/// A daemon that serves a data directory.
pub(crate) struct Running {
    pub(crate) client: Client,
    pub(crate) config: ConfigView,
    data: PathBuf,
}

impl Running {
    /// Finds the daemon of a data directory. Returns `None` if no daemon runs, or if it does not answer.
    pub(crate) async fn find(data: &Path) -> Option<Self> {
        let client = Client::new(data).ok()?;
        let config = client.config().await.ok()?;
        Some(Self { client, config, data: data.to_owned() })
    }

    /// Finds the daemon whose configuration the command shows: the daemon of the data directory. Returns `None` if the
    /// user has named a configuration directory.
    pub(crate) async fn looked_at(
        data: Option<PathBuf>,
        named: Option<&PathBuf>,
    ) -> Result<Option<Self>, Failure> {
        if named.is_some() {
            return Ok(None);
        }
        Ok(Self::find(&places::data_path(data)?).await)
    }

    /// Returns the configuration directory of the daemon.
    pub(crate) fn directory(&self) -> Option<PathBuf> {
        self.config.directory.as_ref().map(PathBuf::from)
    }

    /// Says which daemon uses which configuration.
    pub(crate) fn words(&self) -> String {
        format!(
            "the daemon on {} uses {}; its configuration {} is in force",
            self.data.display(),
            self.config.directory.as_deref().unwrap_or("no directory"),
            self.config.revision
        )
    }
}
