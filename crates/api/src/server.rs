//! HTTP on a socket. A client that is slow, silent or one of very many must not keep others from being served: the head
//! of a request has to come in time, a body has to go on coming, what is sent has to be read, and so many connections are open at once at most.

mod stalled;
mod watched;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
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
use tokio::sync::{Semaphore, watch};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use tower_http::timeout::RequestBodyTimeoutLayer;
use watched::{Watched, rest_is_late};

/// How many connections are open at once; others wait in line.
const MOST_CONNECTIONS: usize = 512;
/// Within what time the head of a request has to be there; also how long a connection may be silent between two.
const HEAD_WITHIN: Duration = Duration::from_secs(30);
/// How long nothing more of a body may come.
const BODY_SILENCE: Duration = Duration::from_secs(30);
/// How much of a head is taken.
const LARGEST_HEAD: usize = 64 * 1024;
/// How long answers under way may take once the daemon ends.
const LAST_ANSWERS: Duration = Duration::from_secs(5);
/// How long is waited where the system gives no more connections.
const OUT_OF_SOCKETS: Duration = Duration::from_millis(200);

/// Serves until `closing` is cancelled, and what is under way then a little longer.
pub async fn serve(listener: TcpListener, app: Router, closing: CancellationToken) {
    serve_at_most(MOST_CONNECTIONS, listener, app, closing).await;
}

async fn serve_at_most(most: usize, listener: TcpListener, app: Router, closing: CancellationToken) {
    let room = Arc::new(Semaphore::new(most));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = async {
            let place = Arc::clone(&room).acquire_owned().await;
            (place, listener.accept().await)
        };
        let (place, accepted) = tokio::select! {
            () = closing.cancelled() => break,
            accepted = accepted => accepted,
        };
        match accepted {
            Ok((stream, _)) => {
                // Events are small, and are to be seen at once.
                let _ = stream.set_nodelay(true);
                let (app, watcher) = (app.clone(), graceful.watcher());
                tokio::spawn(async move {
                    connection(stream, app, watcher).await;
                    drop(place);
                });
            }
            Err(error) => refused(&error).await,
        }
    }
    drop(listener);
    if tokio::time::timeout(LAST_ANSWERS, graceful.shutdown()).await.is_err() {
        tracing::info!("some answers were still under way when the daemon ended");
    }
}

/// Speaks HTTP on one connection until it is closed.
async fn connection(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    app: Router,
    watcher: Watcher,
) {
    let app = app.layer(RequestBodyTimeoutLayer::new(BODY_SILENCE));
    let (given_up, rest) = watch::channel(None);
    let given_up = Arc::new(given_up);
    let taken = move |request: Request<Incoming>| {
        given_up.send_replace(None);
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
        () = rest_is_late(rest) => tracing::debug!("the rest of a body did not come"),
    }
}

/// What is done where a connection cannot be taken: one that has gone already is nothing; where the system has no more
/// of them, trying at once would only keep it busy.
async fn refused(error: &io::Error) {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    if !matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset) {
        tracing::warn!(%error, "no connection can be taken just now");
        tokio::time::sleep(OUT_OF_SOCKETS).await;
    }
}

#[cfg(test)]
mod tests;
