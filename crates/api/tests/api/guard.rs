//! Tests of access control, for every path and method in the OpenAPI document.

use crate::support::{DESCRIPTION, Daemon, HOST, PAGE, TOKEN, asked, bare};
use axum::Router;
use axum::body::Body;
use axum::http::header;
use axum::routing::get;

/// Returns every documented method and path, with the name `root` in place of each parameter.
fn all() -> Vec<(String, String)> {
    let paths = DESCRIPTION["paths"].as_object().unwrap();
    let mut all = Vec::new();
    for (template, operations) in paths {
        let parts = template.split('/').map(|part| if part.starts_with('{') { "root" } else { part });
        let path = parts.collect::<Vec<_>>().join("/");
        for method in operations.as_object().unwrap().keys() {
            all.push((method.to_ascii_uppercase(), path.clone()));
        }
    }
    all.push(("GET".to_owned(), "/".to_owned()));
    all.push(("GET".to_owned(), "/assets/app.js".to_owned()));
    all.push(("GET".to_owned(), "/nowhere".to_owned()));
    all.push(("GET".to_owned(), "/v1/models".to_owned()));
    all
}

async fn daemon() -> Daemon {
    let mounted = Router::new().route("/v1/models", get(async || "models"));
    Daemon::start_in(tempfile::tempdir().unwrap(), vec![mounted]).await
}

#[tokio::test]
async fn nothing_but_health_is_open() {
    let daemon = daemon().await;
    for (method, path) in all() {
        if path == "/healthz" {
            assert_eq!(daemon.send(bare(&method, &path).body(Body::empty()).unwrap()).await.text(), "ok\n");
            continue;
        }
        let open = path == "/login";
        let request = bare(&method, &path).header(header::HOST, HOST).body(Body::empty()).unwrap();
        let answer = daemon.send(request).await;
        assert_eq!(answer.status, 401, "{method} {path}");
        assert_eq!(answer.header("www-authenticate"), "Bearer");
        if !open && path != "/" {
            answer.assert_problem_of(&path, 401, "unauthorized");
        }
        for secret in ["Bearer wrong", "Basic dXNlcjpwYXNz", "Bearer "] {
            let request =
                bare(&method, &path).header(header::HOST, HOST).header(header::AUTHORIZATION, secret);
            assert_eq!(
                daemon.send(request.body(Body::empty()).unwrap()).await.status,
                401,
                "{method} {path}"
            );
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn no_foreign_host_and_no_foreign_origin() {
    let daemon = daemon().await;
    for (method, path) in all() {
        if path == "/healthz" {
            continue;
        }
        for host in ["evil.example", "evil.example:7717", "127.0.0.1:7718", "127.0.0.1", ""] {
            let request = bare(&method, &path).header(header::HOST, host);
            let request =
                request.header(header::AUTHORIZATION, format!("Bearer {TOKEN}")).body(Body::empty());
            daemon.send(request.unwrap()).await.assert_problem_of(&path, 403, "forbidden_host");
        }
        let request = bare(&method, &path).header(header::AUTHORIZATION, format!("Bearer {TOKEN}"));
        daemon.send(request.body(Body::empty()).unwrap()).await.assert_problem_of(
            &path,
            403,
            "forbidden_host",
        );
        for origin in
            ["http://evil.example", "http://127.0.0.1:3000", "null", "http://127.0.0.1:7717.evil.example"]
        {
            let request = asked(&method, &path).header(header::ORIGIN, origin).body(Body::empty()).unwrap();
            daemon.send(request).await.assert_problem_of(&path, 403, "forbidden_origin");
        }
    }
    daemon.stop().await;
}

#[tokio::test]
async fn what_is_mounted_stands_behind_the_guard() {
    let daemon = daemon().await;
    let request = asked("GET", "/v1/models").header(header::ORIGIN, PAGE).body(Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(daemon.app.clone(), request).await.unwrap();
    assert_eq!(answer.status(), 200);
    daemon.get("/v1/nothing").await.assert_openai_problem(404, "not_found");
    daemon.stop().await;
}

#[tokio::test]
async fn a_panic_is_a_problem() {
    let mounted = Router::new().route("/v1/models", get(async || -> &'static str { panic!("on purpose") }));
    let daemon = Daemon::start_in(tempfile::tempdir().unwrap(), vec![mounted]).await;
    let request = asked("GET", "/v1/models").body(Body::empty()).unwrap();
    let answer = tower::ServiceExt::oneshot(daemon.app.clone(), request).await.unwrap();
    assert_eq!(answer.status(), 500);
    assert_eq!(answer.headers()[header::CONTENT_TYPE], "application/json");
    assert_eq!(answer.headers()[header::X_CONTENT_TYPE_OPTIONS], "nosniff");
    assert_eq!(daemon.get("/readyz").await.status, 200);
    daemon.stop().await;
}
