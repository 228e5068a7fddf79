//! The state that all routes share.

use crate::guard::Guard;
use crate::readiness::Readiness;
use polity_runtime::Society;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// The state that all routes share.
pub(crate) struct Shared {
    pub(crate) society: Arc<Society>,
    /// The guard, which the login of a browser needs; `None` if no browser can reach the routes.
    pub(crate) guard: Option<Arc<Guard>>,
    /// Cancelled by the API when a client asks the daemon to end.
    pub(crate) asked: CancellationToken,
    /// Cancelled when the process must end. From then on, the process accepts no new work.
    pub(crate) draining: CancellationToken,
    /// Cancelled when endless responses, such as event streams, must end.
    pub(crate) ending: CancellationToken,
    /// Permits for uploads.
    pub(crate) uploads: Semaphore,
    /// Permits for event streams.
    pub(crate) streams: Arc<Semaphore>,
    /// The last result of the readiness check.
    pub(crate) readiness: Readiness,
    /// When the routes were built.
    pub(crate) started: Instant,
}
