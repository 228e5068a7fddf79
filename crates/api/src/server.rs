//! Serves HTTP on a socket. Clients that are slow, silent or numerous must not block other clients. So the server
//! limits the number of connections, the time for the head of a request, the pauses in a body, and the time that an
//! answer stays unread.

mod crowd;
mod stalled;
mod watched;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
pub(crate) use crowd::admit;
use crowd::{Crowd, Most, Place};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::{GracefulShutdown, Watcher};
use hyper_util::service::TowerToHyperService;
use stalled::Stalled;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
pub(crate) use watched::Unread;
use watched::{Watched, rest_is_late};

/// Maximum numbers of open connections. These connections and the open files of the daemon together need fewer than
/// the 1,024 file descriptors that many systems allow a process.
const MOST_CONNECTIONS: Most = Most { strangers: 128, known: 512 };
/// Time limit for the head of a request, and for the silence between two requests on a connection.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// Largest head of a request, in bytes.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long the daemon waits for unfinished answers when it shuts down.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// Pause after `accept` has failed because no file descriptor was free.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(200);

/// Serves connections until `closing` is cancelled, and then gives unfinished answers a few more seconds.
pub async fn serve(listener: TcpListener, app: Router, closing: CancellationToken) {
    serve_at_most(MOST_CONNECTIONS, listener, app, closing).await;
}

async fn serve_at_most(most: Most, listener: TcpListener, app: Router, closing: CancellationToken) {
    let crowd = Crowd::new(most);
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            () = closing.cancelled() => break,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                // Events are small; without this option the operating system may delay them.
                let _ = stream.set_nodelay(true);
                tokio::spawn(connection(stream, app.clone(), graceful.watcher(), crowd.enter()));
            }
            Err(error) => refused(&error, &crowd).await,
        }
    }
    drop(listener);
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::info!("some answers were unfinished when the daemon shut down");
    }
}

/// Serves one connection until it is closed.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    watcher: Watcher,
    place: Place,
) {
    let (given_up, rest) = watch::channel(None);
    let given_up = Arc::new(given_up);
    let placed = place.clone();
    let taken = move |mut request: Request<Incoming>| {
        given_up.send_replace(None);
        request.extensions_mut().insert(placed.clone());
        request.map(|body| Body::new(Watched::new(body, Arc::clone(&given_up))))
    };
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .max_buf_size(LARGEST_HEAD)
        .serve_connection(
            TokioIo::new(Stalled::new(stream)),
            TowerToHyperService::new(app.map_request(taken)),
        );
    tokio::select! {
        served = watcher.watch(connection) => {
            if let Err(error) = served {
                tracing::debug!(%error, "a connection ended early");
            }
        }
        () = place.evicted() => tracing::debug!("closed the oldest connection without the token, because there are too many"),
        () = rest_is_late(rest) => tracing::debug!("closed a connection because the rest of a body did not arrive"),
    }
}

/// Handles a failed `accept`. Ignores a connection that the client has already closed. For any other failure, closes
/// the oldest of the connections that have not shown the token, and waits before the next attempt: an immediate attempt
/// would only waste processor time.
async fn refused(error: &io::Error, crowd: &Crowd) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "cannot accept connections just now");
        crowd.evict_oldest();
        tokio::time::sleep(OUT_OF_SOCKETS).await;
    }
}

#[cfg(test)]
mod tests;
