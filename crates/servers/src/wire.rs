//! Limits the messages from a server before the MCP library reads them.

use crate::bounds::Bounds;
use crate::pace::Pace;
use rmcp::RoleClient;
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::Transport;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, ReadBuf};
use tokio::sync::watch;
use tokio_util::sync::{CancellationToken, DropGuard};

/// If a server does not read, messages to it wait to be written. If this many wait, polity drops further requests from
/// this server instead of answering them.
const MOST_UNSENT: usize = 64;

/// This many bytes count as one message, so that a server that sends an endless line is slowed down as well.
const BYTES_OF_A_MESSAGE: usize = 64 << 10;

/// The standard output of a server. Reports lines that are too long, because the MCP library drops them. Slows down
/// a server that writes too many lines, even if the lines are no messages.
pub(crate) struct Watched<R> {
    inner: R,
    pace: Pace,
    /// Number of bytes of the current line that were read so far.
    line: usize,
    /// Number of bytes that do not count as a message yet, because they are fewer than [`BYTES_OF_A_MESSAGE`].
    uncounted: usize,
    most: usize,
    too_long: watch::Sender<u64>,
}

impl<R> Watched<R> {
    /// Makes a wrapper around `inner`. `too_long` receives the number of lines so far that were too long.
    pub(crate) fn new(inner: R, bounds: &Bounds, too_long: watch::Sender<u64>) -> Self {
        let pace = Pace::new(bounds.messages, bounds.message_every);
        Self { inner, pace, line: 0, uncounted: 0, most: bounds.message_bytes, too_long }
    }

    fn look_at(&mut self, read: &[u8]) {
        let bytes = self.uncounted.saturating_add(read.len());
        self.uncounted = bytes % BYTES_OF_A_MESSAGE;
        let mut messages = u32::try_from(bytes / BYTES_OF_A_MESSAGE).unwrap_or(u32::MAX);
        for piece in read.split_inclusive(|byte| *byte == b'\n') {
            let before = self.line;
            self.line = before.saturating_add(piece.len());
            if before <= self.most && self.line > self.most {
                self.too_long.send_modify(|count| *count += 1);
            }
            if piece.ends_with(b"\n") {
                self.line = 0;
                messages = messages.saturating_add(1);
            }
        }
        self.pace.count(messages);
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        ready!(self.pace.poll_ready(context));
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(context, buffer))?;
        self.look_at(&buffer.filled()[before..]);
        Poll::Ready(Ok(()))
    }
}

/// Wraps the transport that carries the messages of one server. Slows down a server that sends too many messages. Drops
/// requests of a server that does not read the answers. Drops late answers to the first requests of the handshake.
pub(crate) struct Paced<T> {
    inner: T,
    pace: Pace,
    /// A message that was read and has to wait. It is stored here, so that it is not lost if the caller drops the
    /// future.
    held: Option<ServerJsonRpcMessage>,
    /// Each message that is being written holds a clone, so the reference count tells how many messages are not
    /// written yet.
    unsent: Arc<()>,
    /// The requests of the handshake, in order. If a server does not answer the first request in time, the library sends
    /// another one. If the answer to the first request comes after that, the library ends the handshake as failed.
    handshake: Vec<RequestId>,
    /// Cancelled when the connection has ended, or when the library drops this transport.
    ended: CancellationToken,
    _at_the_latest: DropGuard,
}

impl<T> Paced<T> {
    /// Wraps a transport. The wrapper cancels `ended` when the connection has ended.
    pub(crate) fn new(inner: T, bounds: &Bounds, ended: CancellationToken) -> Self {
        let pace = Pace::new(bounds.messages, bounds.message_every);
        let guard = ended.clone().drop_guard();
        let (unsent, handshake) = (Arc::new(()), Vec::new());
        Self { inner, pace, held: None, unsent, handshake, ended, _at_the_latest: guard }
    }

    fn is_unwelcome(&self, message: &ServerJsonRpcMessage) -> bool {
        let answered = match message {
            JsonRpcMessage::Request(_) => return Arc::strong_count(&self.unsent) > MOST_UNSENT,
            JsonRpcMessage::Response(response) => Some(&response.id),
            JsonRpcMessage::Error(error) => error.id.as_ref(),
            JsonRpcMessage::Notification(_) => None,
        };
        let Some((_last, earlier)) = self.handshake.split_last() else { return false };
        answered.is_some_and(|id| earlier.contains(id))
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Paced<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        message: ClientJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        if let JsonRpcMessage::Request(request) = &message
            && let ClientRequest::DiscoverRequest(_) | ClientRequest::InitializeRequest(_) = &request.request
        {
            self.handshake.push(request.id.clone());
        }
        let unsent = Arc::clone(&self.unsent);
        let sending = self.inner.send(message);
        async move {
            let sent = sending.await;
            drop(unsent);
            sent
        }
    }

    async fn receive(&mut self) -> Option<ServerJsonRpcMessage> {
        loop {
            if self.held.is_none() {
                self.held = self.inner.receive().await;
                self.pace.count(1);
                if self.held.is_none() {
                    self.ended.cancel();
                }
            }
            self.pace.ready().await;
            let message = self.held.take()?;
            if !self.is_unwelcome(&message) {
                return Some(message);
            }
        }
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.inner.close().await
    }
}

#[cfg(test)]
mod tests;
