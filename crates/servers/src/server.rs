//! One configured server, as its task and its tools know it.

use crate::bounds::Bounds;
use crate::config::Config;
use crate::launch::Launcher;
use polity_society::tool_group::ServerName;
use std::sync::Arc;

/// One configured server, as its task and its tools know it.
pub(crate) struct Server {
    pub(crate) name: ServerName,
    pub(crate) config: Config,
    pub(crate) bounds: Bounds,
    pub(crate) launcher: Arc<dyn Launcher>,
}
