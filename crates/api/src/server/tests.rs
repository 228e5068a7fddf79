//! Tests with slow, silent and many clients. Most use a paused clock, which jumps forward as soon as all tasks wait.

use super::stalled::UNREAD_FOR;
use super::watched::{REST_WITHIN, SILENCE};
use super::*;
use axum::body::Bytes;
use axum::extract::Request;
use axum::http::Extensions;
use axum::middleware::{self, Next};
use axum::response::IntoResponse;
use axum::routing::{get, post};
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::Instant;

async fn take(request: Request) -> axum::response::Response {
    use axum::extract::FromRequest;
    match Bytes::from_request(request, &()).await {
        Ok(bytes) => format!("{} bytes", bytes.len()).into_response(),
        Err(rejection) => {
            crate::extract::unread(rejection.status().as_u16(), rejection.body_text(), &rejection)
                .into_response()
        }
    }
}

fn app() -> Router {
    let without_end = async || {
        let piece = || Ok::<_, std::convert::Infallible>(Bytes::from_static(&[b'x'; 1000]));
        Body::from_stream(futures::stream::repeat_with(piece))
    };
    Router::new()
        .route("/", get(async || "hello"))
        .route("/take", post(take))
        .route("/without-end", get(without_end))
}

/// Returns the place of the only connection.
fn alone() -> Place {
    Crowd::new(MOST_CONNECTIONS).enter()
}

/// Sends `sent` and then nothing more. Returns the answer, and how long the connection stayed open.
async fn after_silence(sent: &str) -> (String, Duration) {
    let (mut client, server) = duplex(1024 * 1024);
    let begun = Instant::now();
    let graceful = GracefulShutdown::new();
    let served = tokio::spawn(connection(server, app(), graceful.watcher(), alone()));
    client.write_all(sent.as_bytes()).await.unwrap();
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    served.await.unwrap();
    (answer, begun.elapsed())
}

#[tokio::test(start_paused = true)]
async fn silence_closes_a_connection() {
    let head = "GET / HTTP/1.1\r\nHost: localhost\r\n";
    for sent in ["", "GET", head] {
        let (answer, lasted) = after_silence(sent).await;
        assert!(!answer.contains("200 OK"), "{sent:?}: {answer}");
        assert_eq!(lasted.as_secs(), HEAD_WITHIN.as_secs(), "{sent:?}");
    }
    // After an answer, a client has as much time for its next request as a new client has for its first request.
    let (answer, lasted) = after_silence(&format!("{head}\r\n")).await;
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_eq!(lasted.as_secs(), HEAD_WITHIN.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_head_that_trickles_in_is_given_up() {
    let (mut client, server) = duplex(1024);
    let begun = Instant::now();
    let graceful = GracefulShutdown::new();
    let served = tokio::spawn(connection(server, app(), graceful.watcher(), alone()));
    let trickle = async {
        for byte in b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Slow: ".iter().chain(std::iter::repeat(&b'x')) {
            tokio::time::sleep(HEAD_WITHIN / 10).await;
            if client.write_all(&[*byte]).await.is_err() {
                break;
            }
        }
    };
    let (ended, ()) = tokio::join!(served, trickle);
    ended.unwrap();
    assert!(begun.elapsed() <= HEAD_WITHIN + HEAD_WITHIN / 5, "{:?}", begun.elapsed());
}

#[tokio::test(start_paused = true)]
async fn the_oldest_stranger_makes_room_and_whoever_is_known_stays() {
    let crowd = Crowd::new(Most { strangers: 2, known: 1 });
    let request = |place: &Place| {
        let mut request = Extensions::new();
        request.insert(place.clone());
        request
    };
    let is_evicted =
        |place: Place| async move { futures::FutureExt::now_or_never(place.evicted()).is_some() };
    let known = crowd.enter();
    admit(&request(&known)).await.unwrap();
    let strangers: Vec<Place> = (0..4).map(|_| crowd.enter()).collect();
    let mut evicted = Vec::new();
    for place in &strangers {
        evicted.push(is_evicted(place.clone()).await);
    }
    assert_eq!(evicted, [true, true, false, false]);
    assert!(!is_evicted(known.clone()).await);
    // `known` has taken the only place for known connections, so a stranger cannot become known.
    assert!(admit(&request(&strangers[3])).await.is_err());
    admit(&request(&known)).await.unwrap();
    drop(known);
    admit(&request(&strangers[3])).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_body_that_stops_is_given_up() {
    let head = "POST /take HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n";
    let (answer, lasted) = after_silence(&format!("{head}01234")).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\"too_slow\""), "{answer}");
    assert!((SILENCE..=SILENCE + REST_WITHIN).contains(&lasted), "{lasted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_body_that_nobody_reads_is_not_waited_for() {
    for framing in ["Content-Length: 10\r\n\r\n01234", "Transfer-Encoding: chunked\r\n\r\na\r\n01234"] {
        let sent = format!("POST /nowhere HTTP/1.1\r\nHost: localhost\r\n{framing}");
        let (answer, lasted) = after_silence(&sent).await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
        assert!(lasted <= HEAD_WITHIN, "{lasted:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn who_sends_the_rest_may_go_on() {
    let whole = "POST /nowhere HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n{}";
    let next = "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
    let (answer, lasted) = after_silence(&format!("{whole}{next}")).await;
    assert!(answer.ends_with("\r\n\r\nhello"), "{answer}");
    assert_eq!(lasted.as_secs(), HEAD_WITHIN.as_secs());
}

#[tokio::test(start_paused = true)]
async fn a_body_that_goes_on_coming_is_taken() {
    let (mut client, server) = duplex(1024);
    let graceful = GracefulShutdown::new();
    tokio::spawn(connection(server, app(), graceful.watcher(), alone()));
    let head = "POST /take HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: 10\r\n\r\n";
    client.write_all(head.as_bytes()).await.unwrap();
    for _ in 0..10 {
        tokio::time::sleep(SILENCE / 2).await;
        client.write_all(b"x").await.unwrap();
    }
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.unwrap();
    assert!(answer.ends_with("10 bytes"), "{answer}");
}

/// Opens a connection on which the server sends an endless answer.
async fn without_end(graceful: &GracefulShutdown) -> (DuplexStream, JoinHandle<()>) {
    let (mut client, server) = duplex(1024);
    let served = tokio::spawn(connection(server, app(), graceful.watcher(), alone()));
    client.write_all(b"GET /without-end HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    (client, served)
}

#[tokio::test(start_paused = true)]
async fn whoever_does_not_read_is_not_waited_for() {
    let graceful = GracefulShutdown::new();
    let (_client, served) = without_end(&graceful).await;
    let begun = Instant::now();
    served.await.unwrap();
    assert_eq!(begun.elapsed().as_secs(), UNREAD_FOR.as_secs());
}

#[tokio::test(start_paused = true)]
async fn whoever_reads_slowly_is_sent_all() {
    let graceful = GracefulShutdown::new();
    let (mut client, served) = without_end(&graceful).await;
    for _ in 0..20 {
        tokio::time::sleep(UNREAD_FOR / 2).await;
        client.read_exact(&mut [0; 1024]).await.unwrap();
    }
    assert!(!served.is_finished());
}

#[tokio::test(start_paused = true)]
async fn a_head_without_end_is_not_kept() {
    let mut sent = "GET / HTTP/1.1\r\nHost: localhost\r\nX: ".to_owned();
    sent.push_str(&"x".repeat(2 * LARGEST_HEAD));
    let (answer, lasted) = after_silence(&sent).await;
    assert!(answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(lasted, Duration::ZERO);
}

#[tokio::test]
async fn only_so_many_are_served_at_a_time() {
    const MOST: Most = Most { strangers: 12, known: 2 };
    let (inside, highest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (now, most_seen) = (Arc::clone(&inside), Arc::clone(&highest));
    let enter = async move || {
        most_seen.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        now.fetch_sub(1, Ordering::SeqCst);
        "done"
    };
    let admitted = async |request: Request, next: Next| {
        admit(request.extensions()).await.unwrap();
        next.run(request).await
    };
    let app = Router::new().route("/", get(enter)).layer(middleware::from_fn(admitted));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, closing) = (listener.local_addr().unwrap(), CancellationToken::new());
    let server = tokio::spawn(serve_at_most(MOST, listener, app, closing.clone()));
    let clients = (0..12).map(|_| async move {
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.unwrap();
        assert!(answer.ends_with("done"), "{answer}");
    });
    futures::future::join_all(clients).await;
    assert_eq!(highest.load(Ordering::SeqCst), MOST.known);
    closing.cancel();
    server.await.unwrap();
}

#[tokio::test]
async fn what_is_idle_is_closed_at_the_end() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (address, closing) = (listener.local_addr().unwrap(), CancellationToken::new());
    let server = tokio::spawn(serve(listener, app(), closing.clone()));
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut answer = vec![0; 4096];
    let read = client.read(&mut answer).await.unwrap();
    assert!(answer[..read].starts_with(b"HTTP/1.1 200 OK"));
    closing.cancel();
    server.await.unwrap();
    while client.read(&mut answer).await.unwrap() > 0 {}
    assert!(TcpStream::connect(address).await.is_err());
}
