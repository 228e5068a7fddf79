//! Tests calls over real connections, against servers that misbehave in the way that each test chooses.

#![expect(clippy::unwrap_used, reason = "a test helper may panic like the test itself")]

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use futures::stream::{self, StreamExt};
use polity_llm::{
    Arguments, CallError, ChatModel, Dialect, Endpoint, FailureKind, Gate, HttpModel, Message, Nobody, Part,
    Patience, Reply, Request, Stream, Timeouts, Usage, UsageSource, WhileOpen,
};
use serde_json::{Map, Value, json};
use std::convert::Infallible;
use std::future::pending;
use std::io;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::mpsc;

/// A time limit that no step of a passing test reaches.
const AT_LAST: Duration = Duration::from_secs(60);

/// A server that calls a function to make each answer, and records all requests.
struct Server {
    address: String,
    seen: Seen,
}

type Seen = Arc<Mutex<Vec<(HeaderMap, Value)>>>;
type Answer = Arc<dyn Fn() -> Response + Send + Sync>;

impl Server {
    async fn start(answer: impl Fn() -> Response + Send + Sync + 'static) -> Self {
        let seen = Seen::default();
        let state: (Answer, Seen) = (Arc::new(answer), seen.clone());
        let handler =
            async |State((answer, seen)): State<(Answer, Seen)>, headers: HeaderMap, body: Bytes| {
                seen.lock().unwrap().push((headers, serde_json::from_slice(&body).unwrap()));
                answer()
            };
        let router = Router::new().route("/v1/chat/completions", post(handler)).with_state(state);
        Self { address: serve(router).await, seen }
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint { timeout: AT_LAST, ..Endpoint::new(&self.address, "m") }
    }

    fn seen(&self) -> Vec<(HeaderMap, Value)> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

fn whole(endpoint: Endpoint) -> Endpoint {
    Endpoint { dialect: Dialect { stream: Stream::Whole, ..Dialect::default() }, ..endpoint }
}

fn request() -> Request {
    Request { messages: vec![Message::User(vec![Part::Text("hello".to_owned())])], ..Request::default() }
}

async fn call(endpoint: &Endpoint) -> Result<Reply, CallError> {
    HttpModel::default().call(endpoint, &request(), &Nobody).await
}

/// Returns the error of a call to a server with this answer. Checks that a streamed call and a whole call fail in the
/// same way.
async fn failure(answer: impl Fn() -> Response + Send + Sync + 'static) -> CallError {
    let server = Server::start(answer).await;
    let streamed = call(&server.endpoint()).await.unwrap_err();
    let whole = call(&whole(server.endpoint())).await.unwrap_err();
    assert_eq!((streamed.kind, streamed.status), (whole.kind, whole.status), "{streamed} / {whole}");
    assert_eq!(server.seen().len(), 2, "nothing is retried");
    streamed
}

fn events(events: impl IntoIterator<Item = Value>) -> String {
    events.into_iter().map(|event| format!("data: {event}\n\n")).collect()
}

fn delta(delta: Value) -> Value {
    json!({"id": "x", "model": "m-1", "choices": [{"index": 0, "delta": delta, "finish_reason": null}], "usage": null})
}

fn end(reason: &str) -> Value {
    json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]})
}

/// A streamed answer with everything that an answer can have: text, thoughts, a call, opaque fields and usage.
fn rich_stream() -> String {
    let mut text = events([
        delta(json!({"role": "assistant", "content": "", "reasoning_content": "想一"})),
        delta(json!({"reasoning_content": "想"})),
        delta(json!({"content": "你好🙂"})),
        delta(
            json!({"tool_calls": [{"index": 0, "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\""}}]}),
        ),
        delta(json!({"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]})),
        delta(json!({"tool_calls": [{"extra_content": {"google": {"thought_signature": "sig"}}}]})),
        end("tool_calls"),
        json!({"choices": [], "usage": {"prompt_tokens": 11, "completion_tokens": 5}}),
    ]);
    text.insert_str(0, ": a sign of life\r\n\r\n");
    text.push_str("data: [DONE]\n\n");
    text
}

fn rich_message() -> Value {
    json!({"role": "assistant", "content": "你好🙂", "reasoning_content": "想一想", "tool_calls": [{
        "id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"},
        "extra_content": {"google": {"thought_signature": "sig"}}}]})
}

fn rich_whole() -> Value {
    json!({"model": "m-1", "choices": [{"index": 0, "message": rich_message(), "finish_reason": "tool_calls"}],
        "usage": {"prompt_tokens": 11, "completion_tokens": 5}})
}

fn check_rich(reply: &Reply) {
    assert_eq!(reply.text.as_deref(), Some("你好🙂"));
    assert_eq!(Value::from(reply.extra.clone()), json!({"reasoning_content": "想一想"}));
    assert_eq!(reply.tool_calls.len(), 1);
    assert_eq!(reply.tool_calls[0].id, "c1");
    assert_eq!(
        reply.tool_calls[0].arguments,
        Arguments::Object(Map::from_iter([("x".to_owned(), json!(1))]))
    );
    assert_eq!(
        Value::from(reply.tool_calls[0].extra.clone()),
        json!({"extra_content": {"google": {"thought_signature": "sig"}}})
    );
    assert_eq!(reply.finish_reason, "tool_calls");
    assert_eq!(reply.model.as_deref(), Some("m-1"));
    assert_eq!(reply.usage, Usage { prompt_tokens: 11, completion_tokens: 5, source: UsageSource::Reported });
}

fn event_stream(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], body).into_response()
}

fn json_answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

/// Returns a body that sends a text in frames of `size` bytes.
fn in_frames(text: &str, size: usize) -> Body {
    let frames: Vec<_> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
    Body::from_stream(stream::iter(frames).then(async |frame| {
        tokio::task::yield_now().await;
        Ok::<_, Infallible>(frame)
    }))
}

#[tokio::test]
async fn a_stream_in_any_frames_is_one_answer() {
    for size in [1, 2, 3, 7, 64, 100_000] {
        let server = Server::start(move || event_stream(in_frames(&rich_stream(), size))).await;
        check_rich(&call(&server.endpoint()).await.unwrap());
        let (_, body) = &server.seen()[0];
        assert_eq!(body["stream"], true);
        assert_eq!(body["stream_options"], json!({"include_usage": true}));
    }
}

#[tokio::test]
async fn a_whole_answer() {
    let server = Server::start(|| json_answer(StatusCode::OK, &rich_whole())).await;
    check_rich(&call(&whole(server.endpoint())).await.unwrap());
    assert_eq!(server.seen()[0].1["stream"], false);
}

#[tokio::test]
async fn a_server_that_does_not_stream_is_understood() {
    let server = Server::start(|| json_answer(StatusCode::OK, &rich_whole())).await;
    check_rich(&call(&server.endpoint()).await.unwrap());
}

#[tokio::test]
async fn a_stream_that_does_not_say_that_it_is_one_is_understood() {
    let server = Server::start(|| Response::new(in_frames(&rich_stream(), 50))).await;
    check_rich(&call(&server.endpoint()).await.unwrap());
}

#[tokio::test]
async fn opaque_fields_go_back_to_the_service_that_sent_them() {
    let server = Server::start(|| event_stream(rich_stream().into())).await;
    let endpoint = server.endpoint();
    let reply = call(&endpoint).await.unwrap();
    let answer = Message::Assistant { text: reply.text, tool_calls: reply.tool_calls, extra: reply.extra };
    let result = Message::Tool { call_id: "c1".to_owned(), content: "{}".to_owned(), media: Vec::new() };
    let again =
        Request { messages: [request().messages, vec![answer, result]].concat(), ..Request::default() };
    HttpModel::default().call(&endpoint, &again, &Nobody).await.unwrap();
    assert_eq!(server.seen()[1].1["messages"][1], rich_message());
}

#[tokio::test]
async fn an_error_with_a_success_status_is_a_failure() {
    let error =
        failure(|| json_answer(StatusCode::OK, &json!({"error": {"code": 503, "message": "overloaded"}})))
            .await;
    assert_eq!((error.kind, error.status), (FailureKind::Passing, Some(200)));
    assert_eq!(error.message, "overloaded");
}

#[tokio::test]
async fn an_error_in_a_stream_is_a_failure() {
    let text = events([
        delta(json!({"content": "half"})),
        json!({"error": {"message": "image input is not supported"}}),
    ]);
    let server = Server::start(move || event_stream(text.clone().into())).await;
    let error = call(&server.endpoint()).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::MediaRefused);
}

#[tokio::test]
async fn what_is_no_model_is_said_to_be_none() {
    let error =
        failure(|| axum::response::Html("<!doctype html><title>Router</title>").into_response()).await;
    assert_eq!(error.kind, FailureKind::NotAnAnswer);
    assert_eq!(error.message, "an HTML page (Router) instead of a model's answer");
    let error = failure(|| json_answer(StatusCode::OK, &json!({"hello": "world"}))).await;
    assert_eq!(error.kind, FailureKind::NotAnAnswer);
    let error = failure(|| ().into_response()).await;
    assert_eq!(error.kind, FailureKind::NotAnAnswer);
}

#[tokio::test]
async fn a_stream_of_garbage_is_no_answer() {
    let server = Server::start(|| event_stream("data: {\"choices\n\n".into())).await;
    assert_eq!(call(&server.endpoint()).await.unwrap_err().kind, FailureKind::NotAnAnswer);
}

#[tokio::test]
async fn a_stream_that_ends_early_is_never_a_short_answer() {
    for ending in ["", "data: [DONE]\n\n"] {
        let text = events([delta(json!({"content": "half an ans"}))]) + ending;
        let server = Server::start(move || event_stream(text.clone().into())).await;
        assert_eq!(call(&server.endpoint()).await.unwrap_err().kind, FailureKind::BrokenOff);
    }
}

/// A body that sends this text and then breaks the connection.
fn breaking(text: String) -> Body {
    let frames = [Ok(Bytes::from(text)), Err(io::Error::other("gone"))];
    Body::from_stream(stream::iter(frames).then(async |frame| {
        tokio::task::yield_now().await;
        frame
    }))
}

#[tokio::test]
async fn a_connection_that_breaks_is_a_broken_answer() {
    let server = Server::start(|| event_stream(breaking(events([delta(json!({"content": "half"}))])))).await;
    let error = call(&server.endpoint()).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::BrokenOff, "{error}");
    let error = failure(|| {
        let half = breaking("{\"choices\": [".to_owned());
        ([(header::CONTENT_TYPE, "application/json")], half).into_response()
    });
    assert_eq!(error.await.kind, FailureKind::BrokenOff);
}

#[tokio::test]
async fn a_connection_that_closes_without_a_word_is_a_broken_answer() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 64];
        tokio::io::AsyncReadExt::read(&mut socket, &mut buffer).await.unwrap();
    });
    let error = call(&Endpoint::new(address, "m")).await.unwrap_err();
    assert_eq!((error.kind, error.status), (FailureKind::BrokenOff, None), "{error}");
}

#[tokio::test]
async fn nobody_there() {
    // The test binds the port, so that no other process can take it during the call. But nobody listens on the port.
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = format!("http://{}/v1", socket.local_addr().unwrap());
    let error = call(&Endpoint::new(address, "m")).await.unwrap_err();
    assert_eq!((error.kind, error.status), (FailureKind::Unreachable, None));
}

#[tokio::test]
async fn a_server_that_hangs_is_too_slow() {
    let router = Router::new().route("/v1/chat/completions", post(pending::<()>));
    let endpoint = Endpoint { timeout: Duration::from_millis(50), ..Endpoint::new(serve(router).await, "m") };
    assert_eq!(call(&endpoint).await.unwrap_err().kind, FailureKind::TimedOut);
    assert_eq!(call(&whole(endpoint)).await.unwrap_err().kind, FailureKind::TimedOut);
}

#[tokio::test]
async fn a_stream_that_never_ends_is_too_slow() {
    let server = Server::start(|| {
        let first = Bytes::from(events([delta(json!({"content": "and "}))]));
        event_stream(Body::from_stream(stream::iter([Ok::<_, Infallible>(first)]).chain(stream::pending())))
    })
    .await;
    let endpoint = Endpoint { timeout: Duration::from_millis(50), ..server.endpoint() };
    assert_eq!(call(&endpoint).await.unwrap_err().kind, FailureKind::TimedOut);
}

fn too_late(error: &CallError, field: &str) {
    assert_eq!(error.kind, FailureKind::TimedOut, "{error}");
    assert!(error.message.contains(&format!("raise {field} of the service")), "{error}");
}

#[tokio::test]
async fn a_first_byte_that_does_not_come_is_named() {
    let first_byte = Some(Duration::from_millis(50));
    let timeouts = Timeouts { first_byte, ..Timeouts::default() };
    // One server sends nothing at all. The second server sends only the head of its response.
    let silent = serve(Router::new().route("/v1/chat/completions", post(pending::<()>))).await;
    let head =
        Server::start(|| event_stream(Body::from_stream(stream::pending::<io::Result<Bytes>>()))).await;
    for address in [silent, head.address.clone()] {
        let endpoint = Endpoint { timeouts, timeout: AT_LAST, ..Endpoint::new(address, "m") };
        too_late(&call(&endpoint).await.unwrap_err(), "timeouts.firstByteMs");
        too_late(&call(&whole(endpoint)).await.unwrap_err(), "timeouts.firstByteMs");
    }
}

#[tokio::test]
async fn an_answer_that_stands_still_is_named() {
    let timeouts = Timeouts { between_bytes: Duration::from_millis(50), ..Timeouts::default() };
    for content_type in ["text/event-stream", "application/json", "text/plain"] {
        let server = Server::start(move || {
            let first = Bytes::from(events([delta(json!({"content": "and "}))]));
            let body = stream::iter([Ok::<_, Infallible>(first)]).chain(stream::pending());
            ([(header::CONTENT_TYPE, content_type)], Body::from_stream(body)).into_response()
        })
        .await;
        let endpoint = Endpoint { timeouts, ..server.endpoint() };
        too_late(&call(&endpoint).await.unwrap_err(), "timeouts.betweenBytesMs");
        too_late(&call(&whole(endpoint)).await.unwrap_err(), "timeouts.betweenBytesMs");
    }
}

#[tokio::test]
async fn the_body_of_a_failure_that_stands_still_hides_no_failure() {
    // The first part of the body arrives together with the head, and two seconds are enough for this.
    let timeouts = Timeouts { between_bytes: Duration::from_secs(2), ..Timeouts::default() };
    let server = Server::start(|| {
        let first = stream::iter([Ok::<_, Infallible>(Bytes::from_static(b"overloaded"))]);
        (StatusCode::SERVICE_UNAVAILABLE, Body::from_stream(first.chain(stream::pending()))).into_response()
    })
    .await;
    let error = call(&Endpoint { timeouts, ..server.endpoint() }).await.unwrap_err();
    assert_eq!((error.kind, error.message.as_str()), (FailureKind::Passing, "overloaded"));
}

#[tokio::test]
async fn signs_of_life_are_bytes_and_the_whole_call_is_bounded_all_the_same() {
    let server = Server::start(|| {
        let life = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(b": alive\n\n")));
        event_stream(Body::from_stream(life.then(async |piece| {
            tokio::time::sleep(Duration::from_millis(1)).await;
            piece
        })))
    })
    .await;
    // Only a silence of a minute would reach these two limits.
    let timeouts = Timeouts { first_byte: Some(AT_LAST), between_bytes: AT_LAST, ..Timeouts::default() };
    let endpoint = Endpoint { timeouts, timeout: Duration::from_millis(100), ..server.endpoint() };
    too_late(&call(&endpoint).await.unwrap_err(), "timeoutMs");
}

/// Returns a listener whose queue is full, so that nobody else can connect. Also returns the connections that fill
/// the queue.
async fn full() -> (tokio::net::TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut made = Vec::new();
    // While the queue has room, the system connects at once, and the runtime notices this long before the timeout. When
    // the queue is full, the timeout ends the loop.
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_secs(2), tokio::net::TcpStream::connect(address)).await
    {
        made.push(connected.unwrap());
    }
    (listener, made)
}

#[tokio::test]
async fn a_connection_that_is_not_made_is_an_unreachable_server() {
    let (listener, _made) = full().await;
    let timeouts = Timeouts { connect: Duration::from_millis(50), ..Timeouts::default() };
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let endpoint = Endpoint { timeouts, timeout: AT_LAST, ..Endpoint::new(address, "m") };
    let error = call(&endpoint).await.unwrap_err();
    assert_eq!((error.kind, error.status), (FailureKind::Unreachable, None), "{error}");
    assert!(error.message.contains("within 50ms") && error.message.contains("timeouts.connectMs"), "{error}");
}

/// Starts a server that answers only one request on each connection, although its answer does not say that the
/// connection ends. After the answer, the server gives the connection to `then`. Returns the server's base URL and a
/// counter of connections.
async fn answers_once(then: fn(tokio::net::TcpStream)) -> (String, Arc<Mutex<u32>>) {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    let connections = Arc::new(Mutex::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        loop {
            let (mut socket, _) = listener.accept().await.unwrap();
            *count.lock().unwrap() += 1;
            let mut received = Vec::new();
            while !received.ends_with(b"}") {
                tokio::io::AsyncReadExt::read_buf(&mut socket, &mut received).await.unwrap();
            }
            let body = rich_whole().to_string();
            let answer = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
                body.len()
            );
            tokio::io::AsyncWriteExt::write_all(&mut socket, answer.as_bytes()).await.unwrap();
            then(socket);
        }
    });
    (address, connections)
}

#[tokio::test]
async fn a_connection_that_was_closed_while_it_was_idle_costs_nothing() {
    // One server closes the connection in an orderly way. The second server resets it.
    for then in [drop as fn(tokio::net::TcpStream), |socket| socket.set_zero_linger().unwrap()] {
        let (address, connections) = answers_once(then).await;
        let model = HttpModel::default();
        let endpoint = Endpoint { timeout: AT_LAST, ..Endpoint::new(address, "m") };
        for _ in 0..20 {
            // The client may learn before, during or after its request that the connection is closed. At worst, the
            // answer breaks off at once.
            match model.call(&endpoint, &request(), &Nobody).await {
                Ok(reply) => check_rich(&reply),
                Err(error) => assert_eq!(error.kind, FailureKind::BrokenOff, "{error}"),
            }
        }
        assert!(*connections.lock().unwrap() >= 10);
    }
}

#[tokio::test]
async fn a_connection_on_which_nobody_answers_any_more_is_given_up_in_time() {
    // The server keeps the connection open but never reads from it again.
    let (address, _) = answers_once(std::mem::forget).await;
    let model = HttpModel::default();
    let endpoint = Endpoint { timeout: AT_LAST, ..Endpoint::new(address, "m") };
    model.call(&endpoint, &request(), &Nobody).await.unwrap();
    let timeouts = Timeouts { first_byte: Some(Duration::from_millis(50)), ..Timeouts::default() };
    let error =
        model.call(&Endpoint { timeouts, ..endpoint.clone() }, &request(), &Nobody).await.unwrap_err();
    too_late(&error, "timeouts.firstByteMs");
    // The next call gets a new connection.
    model.call(&endpoint, &request(), &Nobody).await.unwrap();
}

#[tokio::test]
async fn waiting_for_a_place_is_no_part_of_the_call() {
    let server = Server::start(|| event_stream(rich_stream().into())).await;
    let gate = Gate::new(NonZeroUsize::new(1));
    let patience = Patience { longest_pause: AT_LAST, while_open: WhileOpen::Wait };
    let inside = gate.enter(patience).await.unwrap();
    let endpoint = Endpoint { timeout: AT_LAST, ..server.endpoint() };
    let waits = async {
        let _pass = gate.enter(patience).await.unwrap();
        call(&endpoint).await
    };
    let leaves = async {
        // On a paused clock, the whole timeout of the call passes before the call begins.
        tokio::time::pause();
        tokio::time::sleep(endpoint.timeout).await;
        tokio::time::resume();
        drop(inside);
    };
    let (answered, ()) = tokio::join!(waits, leaves);
    check_rich(&answered.unwrap());
}

/// A guard that sends the text `dropped` when it is dropped.
struct Dropped(mpsc::UnboundedSender<&'static str>);

impl Drop for Dropped {
    fn drop(&mut self) {
        let _ = self.0.send("dropped");
    }
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (sender, mut told) = mpsc::unbounded_channel();
    let server = Server::start(move || {
        let guard = Dropped(sender.clone());
        let _ = sender.send("asked");
        let first = Bytes::from(events([delta(json!({"content": "and "}))]));
        let frames = stream::iter([Ok::<_, Infallible>(first)]).chain(stream::pending());
        event_stream(Body::from_stream(frames.inspect(move |_| {
            // Moves the guard into the body, so that both are dropped together.
            let _ = &guard;
        })))
    })
    .await;
    let (model, endpoint, request) = (HttpModel::default(), server.endpoint(), request());
    tokio::select! {
        answer = model.call(&endpoint, &request, &Nobody) => panic!("{answer:?}"),
        asked = told.recv() => assert_eq!(asked, Some("asked")),
    }
    let dropped = tokio::time::timeout(AT_LAST, told.recv()).await;
    assert_eq!(dropped.unwrap(), Some("dropped"));
}

#[tokio::test]
async fn a_limit_says_how_long() {
    let error = failure(|| {
        let body = json!({"error": {"message": "Rate limit reached"}}).to_string();
        (StatusCode::TOO_MANY_REQUESTS, [(header::RETRY_AFTER, "7")], body).into_response()
    })
    .await;
    assert_eq!((error.kind, error.status), (FailureKind::RateLimited, Some(429)));
    assert_eq!(error.retry_after, Some(Duration::from_secs(7)));
    assert_eq!(error.to_string(), "rate limited: Rate limit reached");
}

#[tokio::test]
async fn a_failing_status_keeps_its_meaning() {
    let error = failure(|| {
        json_answer(
            StatusCode::INTERNAL_SERVER_ERROR,
            &json!({"error": {"message": "image input is not supported"}}),
        )
    })
    .await;
    assert_eq!((error.kind, error.status), (FailureKind::MediaRefused, Some(500)));
    let error =
        failure(|| (StatusCode::BAD_GATEWAY, "<html><title>502 Bad Gateway</title></html>").into_response())
            .await;
    assert_eq!((error.kind, error.status), (FailureKind::Passing, Some(502)));
    let error = failure(|| (StatusCode::UNAUTHORIZED, "").into_response()).await;
    assert_eq!((error.kind, error.status), (FailureKind::Unauthorized, Some(401)));
}

#[tokio::test]
async fn a_failure_without_end_is_read_no_further_than_it_matters() {
    let error = failure(|| {
        let endless = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(b"overloaded ")));
        (StatusCode::SERVICE_UNAVAILABLE, Body::from_stream(endless)).into_response()
    })
    .await;
    assert_eq!(error.kind, FailureKind::Passing);
    assert!(error.message.len() <= 2_048);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let error = failure(|| (StatusCode::FOUND, [(header::LOCATION, "/login")]).into_response()).await;
    assert_eq!((error.kind, error.status), (FailureKind::Misconfigured, Some(302)));
    assert_eq!(error.message, "the server redirects to /login: use the address it redirects to as baseURL");
}

#[tokio::test]
async fn an_answer_without_end_is_no_answer() {
    for content_type in ["text/event-stream", "application/json", "text/plain"] {
        let server = Server::start(move || {
            let line = Bytes::from(format!(":{}\n\n", " ".repeat(256 * 1024)));
            let endless = stream::repeat_with(move || Ok::<_, Infallible>(line.clone()));
            ([(header::CONTENT_TYPE, content_type)], Body::from_stream(endless)).into_response()
        })
        .await;
        let error = call(&server.endpoint()).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::NotAnAnswer, "{content_type}: {error}");
        let error = call(&whole(server.endpoint())).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::NotAnAnswer, "{content_type}: {error}");
    }
}

#[tokio::test]
async fn keys_and_headers_are_sent_and_nothing_else_about_us() {
    let server = Server::start(|| event_stream(rich_stream().into())).await;
    let headers = vec![("X-Team".to_owned(), "society".to_owned().into())];
    // Cargo sets this variable when it runs a test.
    let endpoint = Endpoint { api_key: "${CARGO_PKG_NAME}".to_owned().into(), headers, ..server.endpoint() };
    call(&endpoint).await.unwrap();
    call(&server.endpoint()).await.unwrap();
    let seen = server.seen();
    assert_eq!(seen[0].0.get("authorization").unwrap(), "Bearer polity-llm");
    assert_eq!(seen[0].0.get("x-team").unwrap(), "society");
    let mut names: Vec<&str> = seen[1].0.keys().map(|name| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["accept", "content-length", "content-type", "host", "user-agent"]);
}

#[tokio::test]
async fn a_key_that_is_not_set_stops_the_call_before_it_is_made() {
    let server = Server::start(|| event_stream(rich_stream().into())).await;
    for key in ["${POLITY_TEST_KEY_THAT_NOBODY_SETS}", "sk-\u{1}"] {
        let endpoint = Endpoint { api_key: key.to_owned().into(), ..server.endpoint() };
        assert_eq!(call(&endpoint).await.unwrap_err().kind, FailureKind::Misconfigured);
    }
    assert!(server.seen().is_empty());
}

#[tokio::test]
async fn a_server_that_repeats_the_key_does_not_get_it_into_the_error() {
    let server =
        Server::start(|| (StatusCode::UNAUTHORIZED, "no such key: sk-very-secret").into_response()).await;
    let endpoint = Endpoint { api_key: "sk-very-secret".to_owned().into(), ..server.endpoint() };
    let error = call(&endpoint).await.unwrap_err();
    assert_eq!(error.message, "no such key: [key]");
    assert!(!format!("{error:?} {endpoint:?}").contains("secret"));
}

/// Starts a server that answers chats and lists its models only below `/v1`.
async fn below_v1(status: StatusCode, refusal: &'static str) -> String {
    listing(&["a", "b"], status, refusal).await
}

/// Does the same as [`below_v1`], with models of these names.
async fn listing(names: &[&str], status: StatusCode, refusal: &'static str) -> String {
    let models: Vec<Value> = names.iter().map(|name| json!({"id": name})).collect();
    let models = json!({"object": "list", "data": models});
    let router = Router::new()
        .route("/v1/models", get(async move || axum::Json(models)))
        .route("/v1/chat/completions", post(async move || (status, refusal)));
    serve(router).await
}

#[tokio::test]
async fn a_base_url_without_v1_is_told_with_the_right_one() {
    let right = below_v1(StatusCode::OK, "").await;
    let root = right.strip_suffix("/v1").unwrap();
    for wrong in
        [root.to_owned(), format!("{root}/"), format!("{root}/api"), format!("{right}/chat/completions")]
    {
        let error = call(&Endpoint::new(&wrong, "a")).await.unwrap_err();
        assert_eq!(error.kind, FailureKind::WrongAddress, "{wrong}: {error}");
        assert!(error.message.ends_with(&format!("; a model server answers at {right}")), "{wrong}: {error}");
    }
    let nowhere = serve(Router::new()).await;
    let error = call(&Endpoint::new(nowhere.strip_suffix("/v1").unwrap(), "a")).await.unwrap_err();
    assert_eq!(error.kind, FailureKind::Refused, "{error}");
}

#[tokio::test]
async fn a_missing_model_is_told_with_the_models_that_there_are() {
    let refusal = r#"{"error":{"message":"model 'x' not found"}}"#;
    let error = call(&Endpoint::new(below_v1(StatusCode::NOT_FOUND, refusal).await, "x")).await.unwrap_err();
    assert_eq!(error.to_string(), "no such model: model 'x' not found; the server has \"a\", \"b\"");
    let refusal = r#"{"error":{"message":"No models loaded."}}"#;
    let error =
        call(&Endpoint::new(below_v1(StatusCode::BAD_REQUEST, refusal).await, "x")).await.unwrap_err();
    assert_eq!(error.to_string(), "no model is loaded: No models loaded; the server has \"a\", \"b\"");
}

#[tokio::test]
async fn names_of_models_bring_neither_the_key_nor_a_long_text_into_the_error() {
    let refusal = r#"{"error":{"message":"model 'x' not found"}}"#;
    let long = "a long name ".repeat(1 << 17);
    let plain = "someone/a-model-whose-name-is-long-but-not-too-long-32B-GGUF-Q4_K_M";
    let base_url = listing(&["m-sk-very-secret", plain, &long, "b"], StatusCode::NOT_FOUND, refusal).await;
    let endpoint = Endpoint { api_key: "sk-very-secret".to_owned().into(), ..Endpoint::new(&base_url, "x") };
    let error = call(&endpoint).await.unwrap_err();
    let begin = format!("model 'x' not found; the server has \"m-[key]\", {plain:?}, \"a long name a long");
    assert!(error.message.starts_with(&begin), "{error}");
    assert!(error.message.ends_with("…\", \"b\""), "{error}");
    assert!(error.message.len() < 500, "{} bytes", error.message.len());
}
