//! Limits on the number of open connections. A connection is a stranger until one of its requests has shown the
//! token. The number of strangers is small, and a new stranger replaces the oldest stranger. So a client without the
//! token cannot block clients with the token, however many connections it opens.

use crate::problem::Problem;
use axum::http::Extensions;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// How long a stranger that has shown the token waits until it can become a known connection.
const PLACE_WITHIN: Duration = Duration::from_secs(10);
/// The value of `Retry-After` for a request that got no place, in seconds.
const COME_AGAIN: u16 = 5;

/// Maximum numbers of open connections.
#[derive(Clone, Copy, Debug)]
pub(super) struct Most {
    /// Connections that have not shown the token.
    pub(super) strangers: usize,
    /// Connections that have shown the token.
    pub(super) known: usize,
}

/// The open connections.
pub(super) struct Crowd {
    most_strangers: usize,
    strangers: Mutex<Strangers>,
    known: Arc<Semaphore>,
}

/// The strangers in the order of their arrival, each with the cancellation token that ends its connection.
#[derive(Default)]
struct Strangers {
    next: u64,
    waiting: BTreeMap<u64, CancellationToken>,
}

impl Crowd {
    pub(super) fn new(most: Most) -> Arc<Self> {
        let known = Arc::new(Semaphore::new(most.known));
        Arc::new(Self { most_strangers: most.strangers, strangers: Mutex::default(), known })
    }

    /// Takes in a new connection as a stranger. Evicts the oldest strangers if there are too many strangers.
    pub(super) fn enter(self: &Arc<Self>) -> Place {
        let evicted = CancellationToken::new();
        let mut strangers = self.strangers();
        let number = strangers.next;
        strangers.next += 1;
        strangers.waiting.insert(number, evicted.clone());
        while strangers.waiting.len() > self.most_strangers {
            let Some((_, oldest)) = strangers.waiting.pop_first() else { break };
            oldest.cancel();
        }
        drop(strangers);
        Place(Arc::new(Connection { crowd: Arc::clone(self), number, evicted, known: Mutex::default() }))
    }

    /// Evicts the oldest stranger, because the process has no file descriptor left.
    pub(super) fn evict_oldest(&self) {
        if let Some((_, oldest)) = self.strangers().waiting.pop_first() {
            oldest.cancel();
        }
    }

    fn strangers(&self) -> MutexGuard<'_, Strangers> {
        // A panic of another thread cannot leave the map half changed, so the map is usable even after a panic.
        self.strangers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The place of a connection in the crowd. Each request on the connection carries a clone.
#[derive(Clone)]
pub(crate) struct Place(Arc<Connection>);

struct Connection {
    crowd: Arc<Crowd>,
    number: u64,
    evicted: CancellationToken,
    /// The permit of a known connection, which counts against the maximum number of known connections; `None` for a
    /// stranger.
    known: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Connection {
    fn known(&self) -> MutexGuard<'_, Option<OwnedSemaphorePermit>> {
        // A panic of another thread cannot leave this value half changed, so the value is usable even after a panic.
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.crowd.strangers().waiting.remove(&self.number);
    }
}

impl Place {
    /// Waits until the connection is evicted. The connection must then close and leave its place to a new connection.
    pub(super) async fn evicted(&self) {
        self.0.evicted.cancelled().await;
    }

    /// Makes the connection known, because its request has shown the token. Waits if too many connections are known.
    async fn admit(&self) -> Result<(), Problem> {
        if self.0.known().is_some() {
            return Ok(());
        }
        let free = Arc::clone(&self.0.crowd.known).acquire_owned();
        let Ok(Ok(permit)) = tokio::time::timeout(PLACE_WITHIN, free).await else {
            return Err(Problem::busy("too many connections are open; close some", COME_AGAIN));
        };
        self.0.known().replace(permit);
        self.0.crowd.strangers().waiting.remove(&self.0.number);
        Ok(())
    }
}

/// Notes that the connection of this request has shown the token. Such a connection is never closed to make room for
/// another.
pub(crate) async fn admit(request: &Extensions) -> Result<(), Problem> {
    // A request from inside this process came over no socket. So it has no place in the crowd, and needs none.
    match request.get::<Place>().cloned() {
        Some(place) => place.admit().await,
        None => Ok(()),
    }
}
