//! A chat server that plays a script and checks every request.

use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{ConnectInfo, DefaultBodyLimit, State};
use axum::http::{HeaderMap, Uri, header};
use axum::response::Response;
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::answer::{Answer, End, JSON, Rendered, Sent};
use crate::connection::{BreakableListener, Breaker};
use crate::conversation::Conversation;
use crate::validity::{conversation_problems, schema_problems};

/// A request that the server received, valid or not.
#[derive(Clone, Debug)]
pub struct Captured {
    /// The model that the request names; empty if it names none.
    pub model: String,
    /// The body, parsed; `null` if it is not JSON.
    pub body: Arc<Value>,
    /// The body as received.
    pub raw: Bytes,
    /// The HTTP headers of the request.
    pub headers: HeaderMap,
}

impl Captured {
    /// Returns the request as scripts see it.
    pub fn conversation(&self) -> Conversation {
        Conversation::new(Arc::clone(&self.body))
    }
}

/// A chat server that answers by a script, on its own port and in its own threads.
///
/// The server answers 400 to a request that breaks a rule. Such a request also makes the test fail. This happens when
/// the server is dropped, if not earlier.
pub struct ScriptedServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    thread: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

type Script = dyn Fn(&Conversation) -> Answer + Send + Sync;

/// Whether a server keeps the requests that it receives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    Requests,
    Nothing,
}

struct Shared {
    script: Box<Script>,
    keep: Keep,
    seen: Mutex<Seen>,
    changed: Condvar,
}

#[derive(Default)]
struct Seen {
    requests: Vec<Captured>,
    /// Number of completion requests so far, including requests that the server did not keep.
    count: usize,
    violations: Vec<String>,
    /// Pairs of a model and a non-standard field that this model has sent. Later requests to this model may contain the
    /// field. Requests to other models must not contain it.
    own_fields: BTreeSet<(String, String)>,
}

impl ScriptedServer {
    /// Starts a server that answers every valid request with the answer that `script` returns.
    ///
    /// The script may block. The server still answers other requests meanwhile. If the script panics, the test fails,
    /// as it does after an invalid request.
    pub fn start(script: impl Fn(&Conversation) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_keeping(Keep::Requests, script)
    }

    /// Starts a server that checks and answers requests but does not keep them, to save memory. The script must
    /// collect what the test needs.
    pub fn start_forgetful(script: impl Fn(&Conversation) -> Answer + Send + Sync + 'static) -> Self {
        Self::start_keeping(Keep::Nothing, script)
    }

    fn start_keeping(keep: Keep, script: impl Fn(&Conversation) -> Answer + Send + Sync + 'static) -> Self {
        let script: Box<Script> = Box::new(script);
        let shared = Arc::new(Shared { script, keep, seen: Mutex::default(), changed: Condvar::new() });
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        listener.set_nonblocking(true).expect("a listener that tokio takes");
        let (stop, stopped) = oneshot::channel();
        let router = router(Arc::clone(&shared));
        let thread = std::thread::spawn(move || serve(listener, router, stopped));
        Self { address, shared, thread: Some((stop, thread)) }
    }

    /// Returns the `baseURL` for `llmservices.json`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns all completion requests so far, in order of arrival.
    pub fn requests(&self) -> Vec<Captured> {
        self.shared.seen().requests.clone()
    }

    /// Returns the number of completion requests so far.
    pub fn request_count(&self) -> usize {
        self.shared.seen().count
    }

    /// Waits until `condition` accepts the requests so far. The server receives no request while `condition` runs.
    ///
    /// # Panics
    /// If `condition` has not accepted the requests after the time `within`.
    #[track_caller]
    pub fn wait_until(&self, within: Duration, condition: impl Fn(&[Captured]) -> bool) {
        let deadline = Instant::now() + within;
        let mut seen = self.shared.seen();
        while !condition(&seen.requests) {
            let left = deadline.saturating_duration_since(Instant::now());
            let count = seen.count;
            assert!(!left.is_zero(), "the {count} requests so far are not as expected after {within:?}");
            let waited = self.shared.changed.wait_timeout(seen, left);
            seen = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Returns all violations so far: of the JSON Schema and of the other rules.
    pub fn schema_violations(&self) -> Vec<String> {
        self.shared.seen().violations.clone()
    }

    /// Returns the violations so far and forgets them, for a test that breaks rules on purpose.
    pub fn take_violations(&self) -> Vec<String> {
        std::mem::take(&mut self.shared.seen().violations)
    }

    /// Fails the test if a request has broken a rule.
    ///
    /// # Panics
    /// If there are violations. The message lists them.
    #[track_caller]
    pub fn assert_clean(&self) {
        let violations = self.schema_violations();
        assert!(violations.is_empty(), "invalid requests:\n{}", violations.join("\n"));
    }
}

impl Drop for ScriptedServer {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.thread.take() {
            // Ignore an error: the thread has ended already, and `join` below reports why.
            let _ = stop.send(());
            let ended = thread.join();
            if !std::thread::panicking() {
                ended.expect("the server's thread ends in good order");
            }
        }
        if !std::thread::panicking() {
            self.assert_clean();
        }
    }
}

impl Shared {
    /// Locks the record of all requests. The record stays valid even if a script has panicked while the record was
    /// locked.
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn violated(&self, violations: impl IntoIterator<Item = String>) {
        self.seen().violations.extend(violations);
    }
}

impl Seen {
    /// Returns the body of a request without the non-standard fields that are allowed in it. These are the fields that
    /// the requested model has sent before.
    fn without_own_fields<'b>(&self, body: &'b Value) -> Cow<'b, Value> {
        if self.own_fields.is_empty() {
            return Cow::Borrowed(body);
        }
        let mut stripped = body.clone();
        let messages = stripped["messages"].as_array_mut().into_iter().flatten();
        for message in messages.filter_map(Value::as_object_mut) {
            if message.get("role").is_some_and(|role| role == "assistant") {
                for (_, field) in self.own_fields.iter().filter(|(model, _)| body["model"] == **model) {
                    message.remove(field);
                }
            }
        }
        Cow::Owned(stripped)
    }
}

fn serve(listener: std::net::TcpListener, router: Router, stopped: oneshot::Receiver<()>) {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let listener = BreakableListener(TcpListener::from_std(listener).expect("the listener"));
        let service = router.into_make_service_with_connect_info::<Breaker>();
        tokio::select! {
            served = axum::serve(listener, service) => served.expect("a server that goes on"),
            _ = stopped => {}
        }
    });
    // Do not wait for the scripts, which may block for any time.
    runtime.shutdown_background();
}

fn router(shared: Arc<Shared>) -> Router {
    Router::new()
        .route("/v1/chat/completions", post(complete))
        .route("/v1/models", get(models))
        .fallback(unknown)
        .layer(DefaultBodyLimit::disable())
        .with_state(shared)
}

async fn models() -> Json<Value> {
    let model = json!({"id": "scripted", "object": "model", "created": 0, "owned_by": "script"});
    Json(json!({"object": "list", "data": [model]}))
}

async fn unknown(State(shared): State<Arc<Shared>>, uri: Uri) -> Response {
    let violation = format!("the server has no route {uri}");
    let response = refuse(404, std::slice::from_ref(&violation));
    shared.violated([violation]);
    response
}

async fn complete(
    State(shared): State<Arc<Shared>>,
    ConnectInfo(breaker): ConnectInfo<Breaker>,
    headers: HeaderMap,
    raw: Bytes,
) -> Response {
    let parsed = serde_json::from_slice::<Value>(&raw);
    let problems = match &parsed {
        Ok(body) => problems(&shared.seen().without_own_fields(body), &headers),
        Err(error) => vec![format!("the body is not JSON: {error}")],
    };
    let body = Arc::new(parsed.unwrap_or_default());
    let conversation = Conversation::new(Arc::clone(&body));
    let number = {
        let mut seen = shared.seen();
        if shared.keep == Keep::Requests {
            seen.requests.push(Captured { model: conversation.model().to_owned(), body, raw, headers });
        }
        seen.count += 1;
        seen.count
    };
    shared.changed.notify_all();

    if !problems.is_empty() {
        let agent = conversation.agent_id();
        shared.violated(problems.iter().map(|problem| format!("request {number} of {agent:?}: {problem}")));
        return refuse(400, &problems);
    }
    let script = Arc::clone(&shared);
    let play = move || {
        let answer = (script.script)(&conversation);
        let own = answer.own_fields().map(|field| (conversation.model().to_owned(), field.to_owned()));
        script.seen().own_fields.extend(own);
        answer.render(&conversation)
    };
    let played = tokio::task::spawn_blocking(play).await;
    match played {
        Ok(Rendered::Hang) => std::future::pending().await,
        Ok(Rendered::Reset) => {
            breaker.break_connection();
            Response::new(Body::empty())
        }
        Ok(Rendered::Respond(sent)) => respond(sent),
        Err(error) => {
            // If the error is no panic, the server has stopped before it ran the script. Then nobody waits for the
            // answer.
            let Ok(panic) = error.try_into_panic() else {
                return std::future::pending().await;
            };
            let violation = format!("request {number}: the script failed: {}", panic_message(&*panic));
            let response = refuse(400, std::slice::from_ref(&violation));
            shared.violated([violation]);
            response
        }
    }
}

fn problems(body: &Value, headers: &HeaderMap) -> Vec<String> {
    let mut problems = schema_problems(body);
    problems.extend(conversation_problems(body));
    let content_type = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    if !content_type.is_some_and(|content_type| content_type.starts_with(JSON)) {
        problems.push(format!("the content type is {content_type:?}"));
    }
    problems
}

fn refuse(status: u16, problems: &[String]) -> Response {
    let error =
        json!({"message": problems.join("\n"), "type": "invalid_request_error", "param": null, "code": null});
    respond(Sent::whole(status, JSON, json!({ "error": error }).to_string().into()))
}

fn respond(sent: Sent) -> Response {
    let mut response =
        Response::builder().status(sent.status).header(header::CONTENT_TYPE, &sent.content_type);
    if let Some(text) = &sent.retry_after {
        response = response.header(header::RETRY_AFTER, text);
    }
    response.body(body(sent)).expect("a status and headers that HTTP knows")
}

fn body(sent: Sent) -> Body {
    if let (End::Closed, [whole]) = (sent.end, &sent.pieces[..]) {
        return Body::from(whole.clone());
    }
    let pieces = sent.pieces.into_iter().map(Ok);
    let pieces: BoxStream<'static, Result<Bytes, &str>> = match sent.end {
        End::Closed => stream::iter(pieces).boxed(),
        End::Torn => stream::iter(pieces.chain([Err("the script breaks the connection")])).boxed(),
        End::Silent => stream::iter(pieces).chain(stream::pending()).boxed(),
        End::Again => stream::iter(pieces.collect::<Vec<_>>().into_iter().cycle()).boxed(),
    };
    Body::from_stream(pieces.then(move |piece| async move {
        if !sent.pause.is_zero() {
            tokio::time::sleep(sent.pause).await;
        }
        // Let the connection send the previous piece first. Only after that, this piece is sent or the connection
        // breaks.
        tokio::task::yield_now().await;
        piece
    }))
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    let text =
        panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::mpsc;

    use super::*;
    use crate::raw_http::{Answered, End, post};

    const PATIENCE: Duration = Duration::from_secs(60);

    fn asking(text: &str) -> Value {
        json!({"model": "m", "messages": [
            {"role": "system", "content": "agentId=root"}, {"role": "user", "content": text},
        ]})
    }

    fn streaming(text: &str) -> Value {
        let mut body = asking(text);
        body["stream"] = json!(true);
        body
    }

    fn ask(server: &ScriptedServer, body: &Value) -> Answered {
        post(&server.base_url(), "/chat/completions", &body.to_string()).expect("an answer")
    }

    #[test]
    fn a_request_is_shown_to_the_script_and_kept() {
        let server = ScriptedServer::start(|asked| Answer::say(format!("heard {}", asked.last_user_text())));
        let answered = ask(&server, &asking("你好"));
        let completion: Value = serde_json::from_slice(&answered.body).expect("JSON");
        assert_eq!((answered.status, answered.end), (200, End::Complete));
        assert_eq!(completion["choices"][0]["message"]["content"], "heard 你好");
        let [request] = &server.requests()[..] else { panic!("expected one request") };
        assert_eq!((request.model.as_str(), &*request.body), ("m", &asking("你好")));
        assert_eq!(request.raw, asking("你好").to_string());
        assert_eq!(request.headers["content-type"], "application/json");
        server.assert_clean();
    }

    #[test]
    fn a_forgetful_server_checks_and_answers_and_keeps_nothing() {
        let server = ScriptedServer::start_forgetful(|_| Answer::say("x"));
        assert_eq!(ask(&server, &asking("x")).status, 200);
        assert_eq!(ask(&server, &json!({"model": "m", "messages": []})).status, 400);
        assert_eq!((server.request_count(), server.requests().len()), (2, 0));
        assert!(!server.take_violations().is_empty());
    }

    #[test]
    fn a_stream_is_events_that_end_with_done() {
        let server =
            ScriptedServer::start(|_| Answer::say("一二三四五六七八九十").slowly(Duration::from_millis(1)));
        let answered = ask(&server, &streaming("x"));
        assert!(answered.head.contains("content-type: text/event-stream"));
        assert_eq!(answered.end, End::Complete);
        let text = answered.text();
        assert!(text.contains("一二三四五") && text.contains("六七八九十"), "{text}");
        assert!(text.ends_with("data: [DONE]\n\n"), "{text}");
    }

    #[test]
    fn errors_carry_their_status_and_when_to_come_back() {
        let server =
            ScriptedServer::start(|_| Answer::error(429, json!({"error": "slow down"})).retry_after(3));
        let answered = ask(&server, &asking("x"));
        assert_eq!((answered.status, answered.text()), (429, json!({"error": "slow down"}).to_string()));
        assert!(answered.head.contains("retry-after: 3"));
        let date = "Sat, 21 Nov 2026 10:00:00 GMT";
        let server = ScriptedServer::start(move |_| Answer::error(429, json!({})).retry_after_text(date));
        let head = ask(&server, &asking("x")).head;
        assert!(head.contains(&format!("retry-after: {}", date.to_lowercase())), "{head}");
    }

    #[test]
    fn raw_bodies_go_out_as_they_are() {
        let server = ScriptedServer::start(|_| Answer::raw("text/html", "<p>"));
        let answered = ask(&server, &asking("x"));
        assert_eq!((answered.status, answered.text().as_str()), (200, "<p>"));
        assert!(answered.head.contains("content-type: text/html"));
    }

    #[test]
    fn half_an_answer_ends_in_good_order_and_a_torn_one_does_not() {
        for body in [asking("x"), streaming("x")] {
            let half = ScriptedServer::start(|_| Answer::say("a text of some length").half());
            let torn = ScriptedServer::start(|_| Answer::say("a text of some length").torn());
            let (half, torn) = (ask(&half, &body), ask(&torn, &body));
            assert_eq!((half.status, half.end), (200, End::Complete));
            assert_eq!((torn.status, torn.end), (200, End::CutOff));
            assert!(!half.body.is_empty() && half.body == torn.body);
        }
    }

    #[test]
    fn a_reset_connection_gives_no_byte() {
        let server = ScriptedServer::start(|_| Answer::reset());
        let failed = post(&server.base_url(), "/chat/completions", &asking("x").to_string());
        assert_eq!(failed.expect_err("no answer").kind(), ErrorKind::ConnectionReset);
        assert_eq!(server.requests().len(), 1);
    }

    #[test]
    fn a_hanging_request_ends_with_the_server() {
        let server = ScriptedServer::start(|_| Answer::hang());
        let base_url = server.base_url();
        let client =
            std::thread::spawn(move || post(&base_url, "/chat/completions", &asking("x").to_string()));
        server.wait_until(PATIENCE, |requests| requests.len() == 1);
        assert!(!client.is_finished());
        drop(server);
        assert!(client.join().expect("a client").is_err());
    }

    #[test]
    fn a_script_may_block_without_holding_up_the_others() {
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let server = ScriptedServer::start(move |asked| {
            if asked.text_contains("wait") {
                released.lock().expect("one waiter").recv().expect("a release");
            }
            Answer::say("done")
        });
        let base_url = server.base_url();
        let blocked =
            std::thread::spawn(move || post(&base_url, "/chat/completions", &asking("wait").to_string()));
        server.wait_until(PATIENCE, |requests| requests.len() == 1);
        assert_eq!(ask(&server, &asking("go")).status, 200);
        release.send(()).expect("a waiter");
        assert_eq!(blocked.join().expect("a client").expect("an answer").status, 200);
    }

    #[test]
    fn broken_rules_are_refused_and_remembered() {
        let server = ScriptedServer::start(|_| panic!("the script is not asked"));
        let mut unknown_field = asking("x");
        unknown_field["artifact"] = json!(1);
        let refused = ask(&server, &unknown_field);
        assert_eq!(refused.status, 400);
        assert!(refused.text().contains("artifact"));
        let two_systems = json!({"model": "m", "messages": [
            {"role": "system", "content": "s"}, {"role": "user", "content": "u"}, {"role": "system", "content": "t"},
            {"role": "user", "content": "v"},
        ]});
        assert_eq!(ask(&server, &two_systems).status, 400);
        let no_json = post(&server.base_url(), "/chat/completions", "{").expect("an answer");
        assert_eq!(no_json.status, 400);
        assert_eq!(post(&server.base_url(), "/responses", "{}").expect("an answer").status, 404);

        let violations = server.take_violations();
        let expected = ["artifact", "a second system message", "not JSON", "/v1/responses"];
        for expected in expected {
            assert_eq!(
                violations.iter().filter(|violation| violation.contains(expected)).count(),
                1,
                "{violations:?}"
            );
        }
        assert_eq!(server.requests().len(), 3);
        server.assert_clean();
    }

    #[test]
    fn a_field_of_its_own_comes_back_to_the_model_that_sent_it_and_to_no_other() {
        let server = ScriptedServer::start(|_| Answer::say("x").and_field("reasoning_content", json!("hm")));
        let asked = |model: &str| {
            let mut body = asking("x");
            let said = json!({"role": "assistant", "content": "x", "reasoning_content": "hm"});
            let messages = body["messages"].as_array_mut().expect("messages");
            messages.extend([said, json!({"role": "user", "content": "y"})]);
            body["model"] = json!(model);
            body
        };
        assert_eq!(ask(&server, &asking("x")).status, 200);
        assert_eq!(ask(&server, &asked("m")).status, 200);
        assert_eq!(ask(&server, &asked("another")).status, 400);
        assert!(server.take_violations()[0].contains("reasoning_content"));
    }

    #[test]
    fn a_violation_that_nobody_took_fails_the_test_at_the_end() {
        let server = ScriptedServer::start(|_| Answer::say("x"));
        assert_eq!(ask(&server, &json!({"model": "m", "messages": []})).status, 400);
        assert!(!server.schema_violations().is_empty());
        let failed = catch_unwind(AssertUnwindSafe(|| drop(server)));
        let message = *failed.expect_err("a failure").downcast::<String>().expect("a message");
        assert!(message.starts_with("invalid requests:\n"), "{message}");
    }

    #[test]
    fn a_failing_script_fails_the_test() {
        let server = ScriptedServer::start(|_| panic!("never asked twice"));
        assert_eq!(ask(&server, &asking("x")).status, 400);
        assert!(server.take_violations()[0].contains("never asked twice"));
    }

    #[test]
    fn large_requests_are_taken() {
        let server = ScriptedServer::start(|_| Answer::say("x"));
        assert_eq!(ask(&server, &asking(&"x".repeat(8 << 20))).status, 200);
    }

    #[test]
    #[should_panic(expected = "not as expected")]
    fn waiting_ends() {
        ScriptedServer::start(|_| Answer::say("x")).wait_until(Duration::from_millis(1), |_| false);
    }
}
