//! A configured server: what its Tokio task and its tools need.

use crate::bounds::Bounds;
use crate::config::Config;
use crate::launch::Launcher;
use polity_society::tool_group::ServerName;
use std::sync::Arc;

/// A configured server: what its Tokio task and its tools need.
pub(crate) struct Server {
    pub(crate) name: ServerName,
    pub(crate) config: Config,
    pub(crate) bounds: Bounds,
    pub(crate) launcher: Arc<dyn Launcher>,
}
