//! Tests with slow servers. The clock of these tests does not run by itself. When all tasks wait, the clock jumps to
//! the next timer.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use crate::error::Error;
use crate::request::Request;
use crate::settings::Settings;
use crate::testing::{Reply, Server, call, web_to};
use crate::web::Call;

const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n";

async fn error_of(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Error {
    let server = Server::start(move |_| reply()).await;
    let web = web_to(&server, Settings::default());
    let request = Request::get(&server.url("/")).expect("a request");
    web.request(request, &call()).await.expect_err("no answer")
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_the_time_limit() {
    let error = error_of(|| Reply::Silent(Vec::new())).await;
    assert!(matches!(error, Error::TimedOut { limit_ms: 30_000 }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_is_given_up_before_the_time_limit() {
    let error = error_of(|| Reply::Silent([HEAD, b"a"].concat())).await;
    assert!(matches!(error, Error::Stalled { seconds: 15, .. }), "{error}");
    let compressed = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n";
    let error = error_of(|| Reply::Silent(compressed.to_vec())).await;
    assert!(matches!(error, Error::Stalled { seconds: 15, .. }), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_byte_now_and_then_does_not_prolong_the_time_limit() {
    let error = error_of(|| Reply::Endless(HEAD.to_vec(), b"a".to_vec(), Duration::from_secs(5))).await;
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
    let header = b"x: y\r\n".to_vec();
    let error = error_of(move || {
        Reply::Endless(b"HTTP/1.1 200 OK\r\n".to_vec(), header.clone(), Duration::from_secs(5))
    })
    .await;
    assert!(matches!(error, Error::TimedOut { .. }), "{error}");
}

#[tokio::test]
async fn a_cancelled_call_ends_at_once_and_closes_its_connection() {
    let server = Server::start(|_| Reply::Silent(HEAD.to_vec())).await;
    let web = web_to(&server, Settings { timeout_ms: 3_600_000, ..Settings::default() });
    let cancel = CancellationToken::new();
    let request = Request::get(&server.url("/")).expect("a request");
    let call = Call::new(cancel.clone());
    let running = tokio::spawn(async move { web.request(request, &call).await });
    while server.requests().is_empty() {
        tokio::task::yield_now().await;
    }
    cancel.cancel();
    let result = running.await.expect("no panic");
    assert!(matches!(result, Err(Error::Cancelled)), "{result:?}");
}
