//! Protection against bodies that no handler reads to the end. After the answer, the connection would stay open until
//! the client has sent the rest of the body, which may take very long.

use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Time limit for reading the rest of a body after the handler has dropped the body.
pub(super) const REST_WITHIN: Duration = Duration::from_secs(10);

/// A body that reports when a handler drops it before its end.
pub(super) struct Watched {
    body: Incoming,
    progress: Progress,
    given_up: Arc<watch::Sender<Option<Instant>>>,
}

#[derive(PartialEq, Eq)]
enum Progress {
    Coming,
    Ended,
}

impl Watched {
    /// Wraps a body. If the handler drops the body early, `given_up` gets the deadline for the rest of the body.
    pub(super) fn new(body: Incoming, given_up: Arc<watch::Sender<Option<Instant>>>) -> Self {
        Self { body, progress: Progress::Coming, given_up }
    }
}

impl Body for Watched {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(context);
        if matches!(polled, Poll::Ready(None | Some(Err(_)))) {
            self.progress = Progress::Ended;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        if self.progress == Progress::Coming && !self.body.is_end_stream() {
            self.given_up.send_replace(Some(Instant::now() + REST_WITHIN));
        }
    }
}

/// Returns when the deadline for the rest of a body has passed and no other request has arrived on the connection.
pub(super) async fn rest_is_late(mut rest: watch::Receiver<Option<Instant>>) {
    loop {
        let due = *rest.borrow_and_update();
        let late = async {
            match due {
                Some(due) => tokio::time::sleep_until(due).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = late => return,
            changed = rest.changed() => {
                if changed.is_err() {
                    // The connection has already ended, so there is nothing to time out.
                    std::future::pending::<()>().await;
                }
            }
        }
    }
}
