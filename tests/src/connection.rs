//! TCP connections that a request handler can break on purpose.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};

/// A listener for TCP connections. Each connection has a [`Breaker`]: if a request handler uses it, the connection ends
/// with a reset.
pub(crate) struct BreakableListener(pub(crate) TcpListener);

/// A TCP connection. After its breaker was used, the next write fails.
pub(crate) struct BreakableStream {
    stream: TcpStream,
    breaker: Breaker,
}

/// Breaks a connection. A request handler gets this value for the connection on which its request arrived.
#[derive(Clone, Default)]
pub(crate) struct Breaker(Arc<AtomicBool>);

impl Breaker {
    /// Makes the connection end with a reset at its next write.
    pub(crate) fn break_connection(&self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Connected<IncomingStream<'_, BreakableListener>> for Breaker {
    fn connect_info(stream: IncomingStream<'_, BreakableListener>) -> Self {
        stream.io().breaker.clone()
    }
}

impl Listener for BreakableListener {
    type Io = BreakableStream;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, Self::Addr) {
        let (stream, address) = Listener::accept(&mut self.0).await;
        (BreakableStream { stream, breaker: Breaker::default() }, address)
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

impl AsyncRead for BreakableStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for BreakableStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.breaker.0.load(Ordering::SeqCst) {
            // With a linger time of zero, closing the socket sends a reset instead of an orderly end.
            self.stream.set_zero_linger()?;
            return Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()));
        }
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
