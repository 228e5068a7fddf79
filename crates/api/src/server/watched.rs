//! Protection against bodies that do not arrive, and against bodies that no handler reads to the end. Without this
//! protection, the server would keep a connection open after the answer, and wait for the rest of the body for as long
//! as the client takes to send it.

use hyper::body::{Body, Bytes, Frame, SizeHint};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep};

/// Time limit for reading the rest of a body after the handler has dropped the body.
pub(super) const REST_WITHIN: Duration = Duration::from_secs(10);

/// Longest pause between two pieces of a body.
pub(super) const SILENCE: Duration = Duration::from_secs(30);

/// Why a body could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Unread<E> {
    #[error(transparent)]
    Broken(E),
    #[error("nothing more of the body came for {} seconds", SILENCE.as_secs())]
    Silent,
}

/// A body of a request. Reading the body fails if no piece arrives for the time [`SILENCE`]. If a handler drops the
/// body before the last piece has arrived, the connection learns this from `given_up`.
pub(super) struct Watched<B: Body + Unpin> {
    body: B,
    /// The timer that runs while a handler waits for the next piece.
    silence: Option<Pin<Box<Sleep>>>,
    progress: Progress,
    given_up: Arc<watch::Sender<Option<Instant>>>,
}

#[derive(PartialEq, Eq)]
enum Progress {
    Coming,
    Ended,
}

impl<B: Body + Unpin> Watched<B> {
    /// Wraps a body. If the handler drops the body early, `given_up` gets the deadline for the rest of the body.
    pub(super) fn new(body: B, given_up: Arc<watch::Sender<Option<Instant>>>) -> Self {
        Self { body, silence: None, progress: Progress::Coming, given_up }
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for Watched<B> {
    type Data = Bytes;
    type Error = Unread<B::Error>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        // Ask the body before the timer: a piece may have arrived in time while the daemon was too busy to read it.
        match Pin::new(&mut self.body).poll_frame(context) {
            Poll::Ready(arrived) => {
                self.silence = None;
                if !matches!(arrived, Some(Ok(_))) {
                    self.progress = Progress::Ended;
                }
                Poll::Ready(arrived.map(|piece| piece.map_err(Unread::Broken)))
            }
            Poll::Pending => {
                let silence = self.silence.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
                silence.as_mut().poll(context).map(|()| Some(Err(Unread::Silent)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B: Body + Unpin> Drop for Watched<B> {
    fn drop(&mut self) {
        if self.progress == Progress::Coming && !self.body.is_end_stream() {
            self.given_up.send_replace(Some(Instant::now() + REST_WITHIN));
        }
    }
}

/// Waits until the deadline for the rest of a body has passed. The next request on the connection removes the deadline.
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

#[cfg(test)]
mod tests {
    use super::*;
    use futures::StreamExt as _;
    use http_body_util::{BodyExt as _, StreamBody};
    use std::convert::Infallible;
    use tokio::sync::mpsc;

    /// Returns a body with a sender of its pieces.
    fn body()
    -> (mpsc::UnboundedSender<&'static str>, impl Body<Data = Bytes, Error = Unread<Infallible>> + Unpin)
    {
        let (sender, mut pieces) = mpsc::unbounded_channel();
        let pieces = futures::stream::poll_fn(move |context| pieces.poll_recv(context));
        let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(Bytes::from(piece))));
        (sender, Watched::new(StreamBody::new(frames), Arc::new(watch::channel(None).0)))
    }

    #[tokio::test(start_paused = true)]
    async fn a_silent_client_is_told_so_but_not_one_whose_body_was_not_asked_for() {
        let (sender, mut body) = body();
        assert!(futures::poll!(body.frame()).is_pending());
        // The daemon is busy for longer than the limit. The piece arrives during this time.
        sender.send("piece").unwrap();
        tokio::time::advance(SILENCE * 2).await;
        let piece = body.frame().await.unwrap().unwrap();
        assert_eq!(piece.into_data().unwrap(), "piece");
        assert!(matches!(body.frame().await, Some(Err(Unread::Silent))));
    }
}
