//! The routes over a society that has just answered a prompt in rehearsal, without a socket.

#![expect(clippy::unwrap_used, reason = "a failure here is a failed test")]

use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode, header};
use polity_registry::{Environment, Registry};
use polity_rehearsal::RehearsalModel;
use polity_runtime::{Event, Parts, Prompt, Society};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;
use tower::ServiceExt;

async fn society(directory: &Path) -> Arc<Society> {
    let environment = Environment::look_up(|_| None);
    let (registry, _) =
        Registry::load(directory, environment, Box::new(|| Box::pin(async { None }))).await.unwrap();
    let parts = Parts {
        registry: Arc::new(registry),
        model: Arc::new(RehearsalModel),
        outside_tools: Vec::new(),
        extractor: None,
    };
    Arc::new(Society::start(directory, parts).await.unwrap())
}

async fn answer(society: &Society, text: &str) {
    let mut newest = society.newest_event();
    let prompt = Prompt { text: text.to_owned(), attachments: Vec::new(), service: None };
    society.prompt(prompt).await.unwrap();
    while !society.open_tasks().await.unwrap().is_empty() {
        newest.changed().await.unwrap();
    }
}

async fn get(society: &Arc<Society>, path: &str) -> (StatusCode, String, String) {
    let request = Request::get(path).body(Body::empty()).unwrap();
    let response = polity_api::router(Arc::clone(society)).oneshot(request).await.unwrap();
    let status = response.status();
    let content_type = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    (status, content_type, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn events_come_in_pages_without_gap_or_double() {
    let directory = tempfile::tempdir().unwrap();
    let society = society(directory.path()).await;
    answer(&society, "hello").await;
    let expected = society.events_after(0, 1000).await.unwrap();
    assert!(matches!(expected.first().unwrap().event, Event::TaskStarted { .. }));

    let mut collected = Vec::new();
    let mut after = 0;
    loop {
        let (status, _, body) = get(&society, &format!("/api/events?after={after}&limit=3")).await;
        assert_eq!(status, StatusCode::OK);
        let page: Value = serde_json::from_str(&body).unwrap();
        let events = page["events"].as_array().unwrap();
        assert!(events.len() <= 3);
        if events.is_empty() {
            break;
        }
        collected.extend(events.iter().map(|event| event["seq"].as_i64().unwrap()));
        after = page["next"].as_i64().unwrap();
    }
    assert_eq!(collected, expected.iter().map(|entry| entry.seq).collect::<Vec<_>>());
    society.stop().await;
}

#[tokio::test]
async fn bad_requests_are_problems() {
    let directory = tempfile::tempdir().unwrap();
    let society = society(directory.path()).await;
    for (path, expect, code) in [
        ("/api/events?after=soon", StatusCode::BAD_REQUEST, "invalid_arguments"),
        ("/api/events?since=1", StatusCode::BAD_REQUEST, "invalid_arguments"),
        ("/api/../polity.db", StatusCode::NOT_FOUND, "not_found"),
    ] {
        let (status, content_type, body) = get(&society, path).await;
        assert_eq!((status, content_type.as_str()), (expect, "application/problem+json"), "{path}");
        assert_eq!(serde_json::from_str::<Value>(&body).unwrap()["error"], code);
    }
    society.stop().await;
}

#[tokio::test]
async fn health() {
    let directory = tempfile::tempdir().unwrap();
    let society = society(directory.path()).await;
    let (status, _, body) = get(&society, "/healthz").await;
    assert_eq!((status, body.as_str()), (StatusCode::OK, "ok\n"));
    society.stop().await;
}
