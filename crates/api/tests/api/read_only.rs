//! Tests of the routes on a society that was opened read-only.

use crate::support::{DESCRIPTION, Daemon, bare, parts};
use axum::Router;
use axum::body::{Body, Bytes, to_bytes};
use axum::http::{StatusCode, header};
use polity_runtime::Society;
use serde_json::Value;
use std::sync::Arc;
use tower::ServiceExt;

/// Opens the data of a daemon read-only and returns its routes.
async fn read_only(daemon: &Daemon) -> Router {
    let parts = parts(daemon.directory.path()).await;
    let society = Society::open_to_read(daemon.directory.path(), parts).await.unwrap();
    polity_api::read_only(Arc::new(society))
}

async fn send(app: &Router, request: axum::http::Request<Body>) -> (StatusCode, Bytes) {
    let response = app.clone().oneshot(request).await.unwrap();
    let status = response.status();
    (status, to_bytes(response.into_body(), usize::MAX).await.unwrap())
}

#[tokio::test]
async fn whoever_only_reads_is_told_the_same_and_asked_for_no_token() {
    let daemon = Daemon::start().await;
    daemon.prompt("What is there?").await;
    let app = read_only(&daemon).await;
    let stored = daemon.upload("/api/artifacts?filename=a.txt", "text/plain", b"some words").await.json();
    let content = format!("/api/artifacts/{}/content", stored["id"].as_str().unwrap());
    for path in [
        "/api/tasks",
        "/api/agents?ended=true",
        "/api/agents/root",
        "/api/agents/root/contacts",
        "/api/agents/root/conversation",
        "/api/agents/root/request",
        "/api/agents/nobody",
        "/api/messages?order=newest&limit=2",
        "/api/messages?limit=none",
        "/api/artifacts",
        "/api/search?q=what&limit=3",
        "/api/search?q=%22%20NEAR(*",
        "/api/services",
        "/api/servers",
        "/api/commands",
        "/api/config",
        "/api/usage",
        "/api/events?after=0&limit=1000",
        "/api/openapi.json",
        "/api/nothing",
        &content,
    ] {
        let expect = daemon.get(path).await;
        let (status, body) = send(&app, bare("GET", path).body(Body::empty()).unwrap()).await;
        assert_eq!((status, &body), (expect.status, &expect.body), "{path}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn whatever_would_write_or_wait_is_refused() {
    let daemon = Daemon::start().await;
    daemon.prompt("What is there?").await;
    let app = read_only(&daemon).await;
    let facts = daemon.society.data_facts().await.unwrap();
    let mut refused = 0;
    for (template, operations) in DESCRIPTION["paths"].as_object().unwrap() {
        let methods = operations.as_object().unwrap().keys();
        for method in methods.filter(|method| *method != "get") {
            let path = template.replace("{id}", "root");
            let request = bare(&method.to_ascii_uppercase(), &path).body(Body::from("{}")).unwrap();
            let (status, body) = send(&app, request).await;
            let problem: Value = serde_json::from_slice(&body).unwrap();
            assert_eq!((status.as_u16(), &problem["error"]), (409, &"read_only".into()), "{method} {path}");
            assert!(
                problem["detail"].as_str().unwrap().contains("start a polity: polity serve"),
                "{problem}"
            );
            refused += 1;
        }
    }
    assert!(refused >= 8, "{refused}");
    let stream = bare("GET", "/api/events").header(header::ACCEPT, "text/event-stream");
    let (status, body) = send(&app, stream.body(Body::empty()).unwrap()).await;
    assert_eq!(status, 409, "{body:?}");
    let (status, _) = send(&app, bare("GET", "/readyz").body(Body::empty()).unwrap()).await;
    assert_eq!(status, 503, "a read-only data directory is not ready for work");
    for page in ["/", "/login"] {
        let (status, _) = send(&app, bare("GET", page).body(Body::empty()).unwrap()).await;
        assert_eq!(status, 404, "{page}");
    }
    assert_eq!(daemon.society.data_facts().await.unwrap(), facts);
    daemon.stop().await;
}
