//! The way out to a list of domains.

use std::path::Path;

/// Starts to forward connections to the proxy of the daemon.
pub(crate) fn forward(_socket: &Path) -> Result<(), String> {
    Err("a list of domains is not supported yet".to_owned())
}
