//! Tests of events, as pages and as streams.

use crate::support::{Daemon, asked};
use axum::body::Body;
use axum::http::{Response, header};
use futures::StreamExt;
use polity_view::EventFilter;
use polity_view::{Entry, Event};
use tower::ServiceExt;

/// Returns all events so far.
async fn events(daemon: &Daemon) -> Vec<Entry> {
    daemon.society.events_after(0, 1000, &EventFilter::default()).await.unwrap().events
}

/// Reads `many` events from a stream and returns their numbers.
async fn streamed(daemon: &Daemon, path: &str, last: Option<i64>, many: usize) -> Vec<i64> {
    let mut request = asked("GET", path).header(header::ACCEPT, "text/event-stream");
    if let Some(last) = last {
        request = request.header("Last-Event-ID", last.to_string());
    }
    let response = daemon.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(response.headers()[header::CONTENT_TYPE], "text/event-stream");
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while numbers(&text).len() < many {
        let bytes = body.next().await.unwrap().unwrap();
        text.push_str(std::str::from_utf8(&bytes).unwrap());
    }
    let mut numbers = numbers(&text);
    numbers.truncate(many);
    numbers
}

fn numbers(text: &str) -> Vec<i64> {
    let whole = text.rsplit_once("\n\n").map_or("", |(whole, _)| whole);
    whole.lines().filter_map(|line| line.strip_prefix("id: ")).map(|number| number.parse().unwrap()).collect()
}

#[tokio::test]
async fn pages_have_no_gap_and_no_double() {
    let daemon = Daemon::start().await;
    daemon.prompt("hello").await;
    let expected = events(&daemon).await;
    assert!(matches!(expected.first().unwrap().event, Event::TaskStarted { .. }));
    let mut collected = Vec::new();
    let mut after = 0;
    loop {
        let page = daemon.get(&format!("/api/events?after={after}&limit=3")).await.ok();
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 3);
        if events.is_empty() {
            break;
        }
        collected.extend(events.iter().map(|event| event["seq"].as_i64().unwrap()));
        after = page["next"].as_i64().unwrap();
    }
    assert_eq!(collected, expected.iter().map(|entry| entry.seq).collect::<Vec<_>>());
    daemon.stop().await;
}

#[tokio::test]
async fn a_stream_goes_on_where_it_was() {
    let daemon = Daemon::start().await;
    daemon.prompt("hello").await;
    let expected: Vec<i64> = events(&daemon).await.iter().map(|entry| entry.seq).collect();
    for cut in 0..expected.len() {
        let (before, left) = expected.split_at(cut);
        let mut all = streamed(&daemon, "/api/events", None, before.len()).await;
        all.extend(streamed(&daemon, "/api/events", before.last().copied(), left.len()).await);
        assert_eq!(all, expected);
    }
    let (_, left) = expected.split_at(3);
    assert_eq!(
        streamed(&daemon, &format!("/api/events?after={}", expected[2]), None, left.len()).await,
        left
    );
    daemon.stop().await;
}

/// Opens a stream that begins after the event `last`, and returns the texts of its first `many` frames.
async fn blocks(daemon: &Daemon, last: i64, many: usize) -> Vec<String> {
    let response = open(daemon, last).await;
    assert_eq!(response.status(), 200);
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while text.matches("\n\n").count() < many {
        text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    text.split("\n\n").take(many).map(str::to_owned).collect()
}

async fn open(daemon: &Daemon, last: i64) -> Response<Body> {
    let request = asked("GET", "/api/events").header(header::ACCEPT, "text/event-stream");
    let request = request.header("Last-Event-ID", last.to_string()).body(Body::empty()).unwrap();
    daemon.app.clone().oneshot(request).await.unwrap()
}

#[tokio::test]
async fn whoever_knows_what_never_happened_is_told_to_read_anew() {
    let daemon = Daemon::start().await;
    daemon.prompt("hello").await;
    let newest = events(&daemon).await.last().unwrap().seq;
    let told = blocks(&daemon, newest + 1, 2).await;
    assert_eq!(told[1], format!("event: reset\ndata: {{\"after\":{newest}}}"), "{told:?}");
    // After a reset, new events arrive on the same stream.
    let response = open(&daemon, newest + 100).await;
    daemon.prompt("and again").await;
    let next = events(&daemon).await.into_iter().find(|entry| entry.seq > newest).unwrap().seq;
    let mut body = response.into_body().into_data_stream();
    let mut text = String::new();
    while numbers(&text).is_empty() {
        text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(numbers(&text)[0], next);
    // A client that knows the newest event gets no reset.
    let told = blocks(&daemon, next, 2).await;
    assert!(told[1].starts_with("id: "), "{told:?}");
    daemon.stop().await;
}

#[tokio::test]
async fn streams_are_bounded_and_make_room_when_they_end() {
    let daemon = Daemon::start().await;
    let mut streams = Vec::new();
    let refused = loop {
        let response = open(&daemon, 0).await;
        if response.status() != 200 {
            break response;
        }
        streams.push(response);
        assert!(streams.len() <= 64);
    };
    assert_eq!((streams.len(), refused.status().as_u16()), (64, 503));
    assert!(refused.headers().contains_key(header::RETRY_AFTER));
    streams.pop();
    assert_eq!(open(&daemon, 0).await.status(), 200);
    daemon.stop().await;
}

#[tokio::test]
async fn a_stream_tells_what_happens_while_it_is_open() {
    let daemon = Daemon::start().await;
    let request = asked("GET", "/api/events").header(header::ACCEPT, "text/event-stream");
    let response = daemon.app.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let mut body = response.into_body().into_data_stream();
    daemon.prompt("hello").await;
    let expected = events(&daemon).await;
    let mut text = String::new();
    while numbers(&text).len() < expected.len() {
        text.push_str(std::str::from_utf8(&body.next().await.unwrap().unwrap()).unwrap());
    }
    assert_eq!(numbers(&text), expected.iter().map(|entry| entry.seq).collect::<Vec<_>>());
    assert!(text.contains("\nevent: task_idle\n"), "{text}");
    let first = text.lines().find_map(|line| line.strip_prefix("data: ")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(first).unwrap()["seq"], expected[0].seq);
    // The stream ends when the daemon shuts down.
    daemon.ending.closing.cancel();
    while let Some(rest) = body.next().await {
        rest.unwrap();
    }
    daemon.stop().await;
}

#[tokio::test]
async fn pages_go_back_too_and_filters_hold() {
    let daemon = Daemon::start().await;
    daemon.prompt("hello").await;
    let expected = events(&daemon).await;
    let newest = expected.last().unwrap().seq;
    let page = daemon.get(&format!("/api/events?before={}&limit=2", newest + 1)).await.ok();
    let numbers: Vec<i64> =
        page["events"].as_array().unwrap().iter().map(|event| event["seq"].as_i64().unwrap()).collect();
    assert_eq!(numbers, expected[expected.len() - 2..].iter().map(|entry| entry.seq).collect::<Vec<_>>());
    for (query, many) in
        [("kind=task_started,task_idle", 2), ("kind=task_idle", 1), ("task=nothing", 0), ("agent=nobody", 0)]
    {
        let page = daemon.get(&format!("/api/events?{query}")).await.ok();
        assert_eq!(page["events"].as_array().unwrap().len(), many, "{query}");
        assert!(page["next"].as_i64().unwrap() >= newest);
    }
    let idle = expected.iter().find(|entry| matches!(entry.event, Event::TaskIdle { .. })).unwrap().seq;
    assert_eq!(streamed(&daemon, "/api/events?kind=task_idle", None, 1).await, [idle]);
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_no_number_is_refused() {
    let daemon = Daemon::start().await;
    for path in [
        "/api/events?after=soon",
        "/api/events?after=-1",
        "/api/events?before=-1",
        "/api/events?limit=0",
        "/api/events?limit=1001",
        "/api/events?limit=99999999999999",
        "/api/events?since=1",
        "/api/events?after=1&after=2",
    ] {
        daemon.get(path).await.assert_problem(400, "invalid_arguments");
    }
    for last in ["x", "-1", "1e3"] {
        let request = asked("GET", "/api/events").header(header::ACCEPT, "text/event-stream");
        let request = request.header("Last-Event-ID", last).body(Body::empty()).unwrap();
        daemon.send(request).await.assert_problem(400, "invalid_arguments");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_kind_that_does_not_exist_is_refused_with_the_kinds_that_do() {
    let daemon = Daemon::start().await;
    for (accept, query) in
        [("*/*", "kind=nonsense"), ("*/*", "kind=task_idle,nonsense"), ("text/event-stream", "kind=nonsense")]
    {
        let request = asked("GET", &format!("/api/events?{query}")).header(header::ACCEPT, accept);
        let answer = daemon.send(request.body(Body::empty()).unwrap()).await;
        answer.assert_problem(400, "invalid_arguments");
        let told = String::from_utf8(answer.body.to_vec()).unwrap();
        assert!(told.contains("`nonsense`") && told.contains("task_started, task_idle"), "{told}");
    }
    daemon.get("/api/events?kind=,%20task_idle%20,").await.ok();
    daemon.stop().await;
}
