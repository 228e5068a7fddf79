//! What all routes share.

use crate::guard::Guard;
use crate::health::Readiness;
use axum::body::Bytes;
use polity_runtime::Society;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

/// What all routes share.
pub(crate) struct Shared {
    /// The society.
    pub(crate) society: Arc<Society>,
    /// Lets browsers in; none where no browser reaches the routes.
    pub(crate) guard: Option<Arc<Guard>>,
    /// Cancelled when the process is asked to end: nothing new is to be begun.
    pub(crate) draining: CancellationToken,
    /// Cancelled when what never ends by itself, such as a stream of events, has to.
    pub(crate) ending: CancellationToken,
    /// Places for those that bring files.
    pub(crate) uploads: Semaphore,
    /// Places for streams of events.
    pub(crate) streams: Arc<Semaphore>,
    /// Whether the daemon can work, as it was found out last.
    pub(crate) readiness: Readiness,
    /// When the API was put together.
    pub(crate) started: Instant,
    /// The description of the API.
    pub(crate) description: Bytes,
}
