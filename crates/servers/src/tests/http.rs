//! Tests of servers over streamable HTTP.

use super::world::*;
use crate::{Bounds, Config, Http, Launch, Plain, Secret, Standing};
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polity_hands::call::{Content, Progress};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Makes the HTTP response of a server to a call of its tool `bad`.
type Fault = fn(&Value) -> Response;

struct Site {
    generation: Generation,
    fault: Fault,
    /// Whether the server answers every request with status 503.
    is_down: AtomicBool,
    heard: Mutex<Vec<(Method, HeaderMap)>>,
}

fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response()
}

fn events(messages: &[Value]) -> Response {
    let body: String = messages.iter().map(|message| format!("data: {message}\n\n")).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn answer(State(site): State<Arc<Site>>, method: Method, headers: HeaderMap, body: Bytes) -> Response {
    site.heard.lock().unwrap().push((method.clone(), headers));
    if site.is_down.load(Ordering::SeqCst) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    if method != Method::POST {
        return StatusCode::METHOD_NOT_ALLOWED.into_response();
    }
    let message: Value = serde_json::from_slice(&body).unwrap();
    let answer = |result: Value| json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
    match (message["method"].as_str(), message["params"]["name"].as_str()) {
        (Some("tools/list"), _) => json_response(&answer(list(&json!([tool("good"), tool("bad")])))),
        (Some("tools/call"), Some("good")) => json_response(&answer(text("well"))),
        (Some("tools/call"), _) => (site.fault)(&message),
        (Some("subscriptions/listen"), _) => {
            let acknowledged = json!({
                "jsonrpc": "2.0",
                "method": "notifications/subscriptions/acknowledged",
                "params": {
                    "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]},
                    "notifications": message["params"]["notifications"],
                },
            });
            let first = futures::stream::iter([Ok::<_, std::io::Error>(format!("data: {acknowledged}\n\n"))]);
            let open = futures::StreamExt::chain(first, futures::stream::pending());
            ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(open)).into_response()
        }
        (Some("initialize"), _) if site.generation == Generation::Previous => {
            let mut response = json_response(&greeting(&message, site.generation).unwrap());
            response.headers_mut().insert("mcp-session-id", "session-1".parse().unwrap());
            response
        }
        _ => match greeting(&message, site.generation) {
            Some(answer) => json_response(&answer),
            None => StatusCode::ACCEPTED.into_response(),
        },
    }
}

async fn listen(router: Router) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
    url
}

async fn serve(generation: Generation, fault: Fault) -> (Arc<Site>, String) {
    let site = Arc::new(Site { generation, fault, is_down: AtomicBool::new(false), heard: Mutex::default() });
    let router = Router::new().route("/mcp", axum::routing::any(answer)).with_state(Arc::clone(&site));
    (site, listen(router).await)
}

fn at(url: &str, timeout: Duration) -> Config {
    let headers = BTreeMap::from([
        ("Authorization".to_owned(), Secret::new("Bearer secret-token")),
        ("X-Key".to_owned(), Secret::new("secret-key")),
    ]);
    Config { launch: Launch::Http(Http { url: url.parse().unwrap(), headers }), timeout }
}

const LONG: Duration = Duration::from_secs(60);

fn once() -> Bounds {
    Bounds { first_pause: Duration::from_secs(300), longest_pause: Duration::from_secs(300), ..bounds() }
}

async fn good(world: &World) {
    let Content::Text { text, .. } = world.call("s__good", json!({})).await.unwrap().content else {
        panic!()
    };
    assert_eq!(text, "well");
}

#[tokio::test]
async fn servers_of_both_generations_are_called_over_http() {
    for generation in [Generation::Current, Generation::Previous] {
        let (site, url) = serve(generation, |_| StatusCode::OK.into_response()).await;
        let world = World::new(Arc::new(Plain), bounds(), at(&url, LONG));
        good(&world).await;
        world.servers.shut_down().await;
        let heard = site.heard.lock().unwrap();
        for (_, headers) in heard.iter() {
            assert_eq!(headers["authorization"], "Bearer secret-token");
            assert_eq!(headers["x-key"], "secret-key");
        }
        let in_session = heard.iter().filter(|(_, headers)| headers.contains_key("mcp-session-id")).count();
        match generation {
            Generation::Current => assert_eq!(in_session, 0),
            Generation::Previous => {
                assert!(in_session > 1);
                // Stopping the server ends the session with a DELETE request.
                assert!(heard.iter().any(|(method, _)| *method == Method::DELETE));
            }
        }
    }
}

#[tokio::test]
async fn an_answer_may_be_a_stream_with_progress() {
    let (_site, url) = serve(Generation::Previous, |call| {
        let token = &call["params"]["_meta"]["progressToken"];
        let report = json!({"progressToken": token, "progress": 1, "message": "half"});
        events(&[
            json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": report}),
            json!({"jsonrpc": "2.0", "id": call["id"], "result": text("streamed")}),
        ])
    })
    .await;
    let world = World::new(Arc::new(Plain), bounds(), at(&url, LONG));
    let (reports, mut reported) = tokio::sync::mpsc::unbounded_channel();
    let mut invocation = invocation(json!({}));
    invocation.progress = Progress::new(move |what| drop(reports.send(what.to_owned())));
    let output = world.tool("s__bad").await.run(invocation).await.unwrap();
    assert_eq!(output.content, Content::Text { origin: "s: bad".to_owned(), text: "streamed".to_owned() });
    // The report may arrive shortly after the result. It may also never arrive, because the call is over. So the test
    // does not demand it.
    let _ = tokio::time::timeout(Duration::from_millis(1), reported.recv()).await;
}

#[tokio::test]
async fn a_fault_costs_its_call_and_nothing_else() {
    let faults: [(Fault, &str); 7] = [
        (|_| StatusCode::INTERNAL_SERVER_ERROR.into_response(), "500"),
        (|_| "hello".into_response(), "content type"),
        (|_| json_response(&json!({"a": 1})), ""),
        (
            |call| json_response(&json!({"jsonrpc": "2.0", "id": call["id"], "result": {"a": 1}})),
            "not a result",
        ),
        (|_| events(&[]), ""),
        (
            |call| {
                events(&[json!({"jsonrpc": "2.0", "id": call["id"], "result": text(&"a".repeat(200_000))})])
            },
            "",
        ),
        (
            |_| {
                let endless =
                    futures::stream::repeat_with(|| Ok::<_, std::io::Error>("data: \"x\"\n\n".repeat(99)));
                ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(endless)).into_response()
            },
            "",
        ),
    ];
    for (at_fault, (fault, why)) in faults.into_iter().enumerate() {
        for generation in [Generation::Current, Generation::Previous] {
            let (_site, url) = serve(generation, fault).await;
            let world = World::new(Arc::new(Plain), bounds(), at(&url, Duration::from_secs(2)));
            let reason = world.fails("s__bad").await;
            assert!(reason.contains(why), "fault {at_fault} of {generation:?}: {reason}");
            assert!(!reason.contains("secret"), "{reason}");
            good(&world).await;
            world.servers.shut_down().await;
        }
    }
}

#[tokio::test]
async fn a_server_that_is_down_for_a_while_is_used_again() {
    let (site, url) = serve(Generation::Previous, |_| StatusCode::OK.into_response()).await;
    let world = World::new(Arc::new(Plain), bounds(), at(&url, LONG));
    good(&world).await;
    site.is_down.store(true, Ordering::SeqCst);
    assert!(world.fails("s__good").await.contains("503"));
    site.is_down.store(false, Ordering::SeqCst);
    good(&world).await;
}

#[tokio::test]
async fn a_server_that_cannot_be_reached_fails_with_the_reason() {
    // The listener is dropped at once, so connections to its port are refused.
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let forbidden = Router::new().fallback(async || StatusCode::UNAUTHORIZED);
    let forbidden = listen(forbidden).await;
    let page = listen(Router::new().fallback(async || axum::response::Html("<p>hello"))).await;
    for (url, why) in [
        (format!("http://{closed}/mcp?key=secret-query"), "refused"),
        (forbidden, "401"),
        (page, "content type"),
    ] {
        let world = World::new(Arc::new(Plain), once(), at(&url, LONG));
        let standing = world.until(|standing| *standing != Standing::Starting).await;
        let Standing::Failed { why: said } = standing else { panic!("{standing:?}") };
        assert!(said.to_lowercase().contains(why), "{url}: {said}");
        assert!(!said.contains("secret-"), "{said}");
    }
}

#[tokio::test]
async fn keys_do_not_follow_a_redirect_to_another_origin() {
    let (other, other_url) = serve(Generation::Previous, |_| StatusCode::OK.into_response()).await;
    let redirect = Router::new().fallback(async move || axum::response::Redirect::temporary(&other_url));
    let url = listen(redirect).await;
    let world = World::new(Arc::new(Plain), once(), at(&url, LONG));
    let standing = world.until(|standing| *standing != Standing::Starting).await;
    assert!(matches!(standing, Standing::Failed { .. }), "{standing:?}");
    assert!(other.heard.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_redirect_at_the_same_origin_is_followed() {
    let site = Site {
        generation: Generation::Previous,
        fault: |_| StatusCode::OK.into_response(),
        is_down: AtomicBool::new(false),
        heard: Mutex::default(),
    };
    let router = Router::new()
        .route("/mcp/", axum::routing::any(answer))
        .route("/mcp", axum::routing::any(async || axum::response::Redirect::temporary("/mcp/")))
        .with_state(Arc::new(site));
    let url = listen(router).await;
    good(&World::new(Arc::new(Plain), bounds(), at(&url, LONG))).await;
}

#[tokio::test]
async fn headers_that_are_none_are_reported() {
    for (header, value) in [("a b", "x"), ("a", "x\ny")] {
        let headers = BTreeMap::from([(header.to_owned(), Secret::new(value))]);
        let launch = Launch::Http(Http { url: "http://127.0.0.1:1/".parse().unwrap(), headers });
        let world = World::new(Arc::new(Plain), once(), config(launch));
        let standing = world.until(|standing| *standing != Standing::Starting).await;
        let Standing::Failed { why } = standing else { panic!("{standing:?}") };
        assert!(why.contains("header"), "{why}");
    }
}
