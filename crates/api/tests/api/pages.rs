//! Tests of the login, the pages of the live view, and the other routes outside `/api`.

use crate::support::{Daemon, HOST, NAME, PAGE, TOKEN, asked, bare};
use axum::body::Body;
use axum::http::{Request, header};
use base64::prelude::{BASE64_STANDARD, Engine};
use sha2::{Digest, Sha256};

fn login(token: &str) -> Request<Body> {
    let request = bare("POST", "/login").header(header::HOST, HOST).header(header::ORIGIN, PAGE);
    let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
    request.body(Body::from(format!("token={token}"))).unwrap()
}

#[tokio::test]
async fn the_token_opens_the_page() {
    let daemon = Daemon::start().await;
    let without = daemon.send(bare("GET", "/").header(header::HOST, HOST).body(Body::empty()).unwrap()).await;
    assert_eq!(without.status, 401);
    assert!(without.text().contains("<form method=\"post\" action=\"/login\">"));
    let policy = without.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'"));
    // The policy allows the style of the login form and no other style.
    let style = without
        .text()
        .split_once("<style>")
        .and_then(|(_, rest)| Some(rest.split_once("</style>")?.0.to_owned()));
    let hash = BASE64_STANDARD.encode(Sha256::digest(style.expect("a style")));
    assert!(policy.contains(&format!("style-src 'sha256-{hash}'")), "{policy}, not {hash}");
    // The form greets in both languages, and explains where the token is.
    let told = ["Welcome", "欢迎", "polity view", "the file <code>token</code>", "<code>token</code> 文件"];
    for words in told {
        assert!(without.text().contains(words), "{words:?} is not in {}", without.text());
    }

    assert_eq!(without.header("cross-origin-opener-policy"), "same-origin");
    // Only a GET or HEAD request for the page gets the login form.
    let posted = bare("POST", "/").header(header::HOST, HOST).body(Body::empty()).unwrap();
    daemon.send(posted).await.assert_problem(401, "unauthorized");

    assert_eq!(daemon.send(login("wrong")).await.status, 401);
    let answer = daemon.send(login(TOKEN)).await;
    assert_eq!((answer.status.as_u16(), answer.header("location")), (303, "/"));
    let cookie = answer.header("set-cookie");
    for part in ["polity-session-7717=", "HttpOnly", "SameSite=Strict", "Path=/"] {
        assert!(cookie.contains(part), "{cookie}");
    }
    assert!(!cookie.contains(TOKEN) && !cookie.contains("Secure"));
    let cookie = cookie.split(';').next().unwrap();

    let with = |method: &str, path: &str| {
        bare(method, path).header(header::HOST, HOST).header(header::COOKIE, cookie.to_owned())
    };
    let page = daemon.send(with("GET", "/").body(Body::empty()).unwrap()).await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("cross-origin-opener-policy"), "same-origin");
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.header("content-security-policy").contains("script-src 'self'"));
    let again = with("GET", "/").header(header::IF_NONE_MATCH, page.header("etag"));
    let again = daemon.send(again.body(Body::empty()).unwrap()).await;
    assert_eq!((again.status.as_u16(), again.body.len()), (304, 0));

    // A browser attaches the cookie to requests of any page, so a request that writes must come from our page.
    let forged = daemon.send(with("POST", "/api/session").body(Body::empty()).unwrap()).await;
    forged.assert_problem(403, "forbidden_origin");
    let ours = with("POST", "/api/session").header(header::ORIGIN, PAGE).body(Body::empty()).unwrap();
    assert_eq!(daemon.send(ours).await.status, 200);
    daemon.stop().await;
}

#[tokio::test]
async fn a_cookie_of_an_encrypted_page_is_sent_to_no_other() {
    let daemon = Daemon::start().await;
    let secure = async |origin: &str, forwarded: &str| {
        let request = bare("POST", "/login").header(header::HOST, NAME).header(header::ORIGIN, origin);
        let request = request.header("X-Forwarded-Proto", forwarded);
        let request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        let answer = daemon.send(request.body(Body::from(format!("token={TOKEN}"))).unwrap()).await;
        assert_eq!(answer.status, 303, "{origin}");
        answer.header("set-cookie").contains("; Secure")
    };
    assert!(secure(&format!("https://{NAME}"), "http").await);
    assert!(!secure(&format!("http://{NAME}"), "https").await);
    daemon.stop().await;
}

#[tokio::test]
async fn whoever_asks_in_the_last_moment_is_told_that_the_daemon_ends() {
    let daemon = Daemon::start().await;
    daemon.society.stop().await;
    let body = serde_json::json!({"text": "hello"});
    daemon.send_json("POST", "/api/messages", &body).await.assert_problem(503, "unavailable");
    daemon.get("/api/agents").await.assert_problem(503, "unavailable");
}

#[tokio::test]
async fn a_ticket_opens_the_page_once() {
    let daemon = Daemon::start().await;
    let session = daemon.call("POST", "/api/session").await.ok();
    let url = session["url"].as_str().unwrap();
    let path = url.strip_prefix(PAGE).unwrap();
    let ask = |method: &str| bare(method, path).header(header::HOST, HOST).body(Body::empty()).unwrap();
    let open = || ask("GET");
    // A HEAD request, for example for a link preview, does not use up the ticket.
    let looked_at = daemon.send(ask("HEAD")).await;
    assert_eq!((looked_at.status.as_u16(), looked_at.header("set-cookie")), (401, ""));
    let first = daemon.send(open()).await;
    assert_eq!(first.status, 303);
    assert!(first.header("set-cookie").starts_with("polity-session-7717="));
    let second = daemon.send(open()).await;
    assert_eq!(second.status, 401);
    assert_eq!(second.header("set-cookie"), "");
    daemon.stop().await;
}

#[tokio::test]
async fn a_form_that_is_none_is_a_wrong_token() {
    let daemon = Daemon::start().await;
    for (kind, body) in
        [("application/json", "{}"), ("application/x-www-form-urlencoded", "token=%FF"), ("", "")]
    {
        let request = bare("POST", "/login").header(header::HOST, HOST).header(header::CONTENT_TYPE, kind);
        assert_eq!(daemon.send(request.body(Body::from(body)).unwrap()).await.status, 401, "{kind}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn paths_that_are_none() {
    let daemon = Daemon::start().await;
    for path in
        ["/api", "/api/", "/api/events/", "/assets/", "/assets/..%2findex.html", "/assets/%00", "/index.html"]
    {
        daemon.get(path).await.assert_problem(404, "not_found");
    }
    daemon.call("DELETE", "/api/events").await.assert_problem(405, "method_not_allowed");
    daemon.call("POST", "/healthz").await.assert_problem(405, "method_not_allowed");
    daemon.stop().await;
}

#[tokio::test]
async fn a_daemon_that_ends_is_not_ready() {
    let daemon = Daemon::start().await;
    assert_eq!(daemon.get("/readyz").await.text(), "ready\n");
    daemon.ending.draining.cancel();
    daemon.get("/readyz").await.assert_problem(503, "unavailable");
    let request = asked("HEAD", "/healthz").body(Body::empty()).unwrap();
    assert_eq!(daemon.send(request).await.status, 200);
    daemon.stop().await;
}
