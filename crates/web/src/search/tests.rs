use bytes::Bytes;
use url::Url;

use super::{hits, question};
use crate::error::Error;
use crate::request::Response;
use crate::settings::{Search, SearchKey, Settings};
use crate::testing::{Reply, Server, call, web};

fn brave() -> Search {
    Search::Brave { key: SearchKey::new("k3y") }
}

fn tavily() -> Search {
    Search::Tavily { key: SearchKey::new("k3y") }
}

fn answer(status: u16, body: &str) -> Response {
    Response {
        status,
        final_url: Url::parse("https://example.com/").expect("a URL"),
        headers: Vec::new(),
        content_type: None,
        body: Bytes::copy_from_slice(body.as_bytes()),
        redirects: Vec::new(),
    }
}

#[tokio::test]
async fn searxng_at_a_private_address_is_asked_but_may_not_redirect_to_another_one() {
    let secret = Server::start(|_| Reply::ok("application/json", r#"{"results": []}"#)).await;
    let elsewhere = secret.url("/");
    let server = Server::start(move |request| match request {
        request if request.contains("q=away") => Reply::redirect("302 Found", &elsewhere),
        _ => Reply::ok(
            "application/json",
            r#"{"query": "q", "results": [
                {"url": "https://a.example/1", "title": " A\n a ", "content": "Some <T> text\u200b"},
                {"url": "javascript:alert(1)", "title": "no"},
                {"url": "https://b.example/", "title": null, "content": null},
                {"url": "https://c.example/", "title": "C", "content": "c"}
            ]}"#,
        ),
    })
    .await;
    let url = Url::parse(&server.url("/searx/")).expect("a URL");
    let settings = Settings { search: Some(Search::Searxng { url }), ..Settings::default() };
    let web = web(settings, std::sync::Arc::default(), None);
    let hits = web.search(" 中文 & more ", 2, &call()).await.expect("hits");
    let shown: Vec<String> =
        hits.iter().map(|hit| format!("{} | {} | {}", hit.title, hit.url, hit.snippet)).collect();
    assert_eq!(shown, ["A a | https://a.example/1 | Some <T> text", " | https://b.example/ | "]);
    let request = &server.requests()[0];
    assert!(
        request.starts_with("GET /searx/search?q=%E4%B8%AD%E6%96%87+%26+more&format=json HTTP/1.1"),
        "{request}"
    );

    assert!(matches!(web.search("away", 2, &call()).await, Err(Error::RefusedRedirect { .. })));
    assert!(secret.requests().is_empty());
    // The search may reach the private address of the provider, but a request for a page at this address is refused.
    assert!(matches!(web.page(&server.url("/"), &call()).await, Err(Error::Refused(_))));
    assert!(matches!(web.search(" ", 2, &call()).await, Err(Error::BadQuery { .. })));
    assert!(matches!(web.search(&"a".repeat(401), 2, &call()).await, Err(Error::BadQuery { .. })));
    let none = web.with_settings(Settings::default());
    assert!(matches!(none.search("x", 2, &call()).await, Err(Error::NoSearch)));
}

#[test]
fn providers_with_a_key_get_it_in_a_header() {
    let request = question(&brave(), "a b", 5).expect("a request");
    assert_eq!(request.url().as_str(), "https://api.search.brave.com/res/v1/web/search?q=a+b&count=5");
    assert_eq!(request.headers["x-subscription-token"], "k3y");
    let request = question(&tavily(), "a \"b\"", 5).expect("a request");
    assert_eq!((request.method(), request.url().as_str()), ("POST", "https://api.tavily.com/search"));
    assert_eq!(request.headers["authorization"], "Bearer k3y");
    assert_eq!(request.body.expect("a body"), r#"{"query":"a \"b\"","max_results":5}"#);
}

#[test]
fn answers_of_providers_are_read() {
    let body = r#"{"web": {"results": [{"url": "https://a.example/", "title": "A &amp; <strong>B</strong>", "description": "x &lt;y&gt;"}]}}"#;
    let found = hits(&brave(), &answer(200, body), 5).expect("hits");
    assert_eq!((found[0].title.as_str(), found[0].snippet.as_str()), ("A & B", "x <y>"));
    assert_eq!(hits(&brave(), &answer(200, r#"{"type": "search"}"#), 5).expect("none"), []);
    let body = r#"{"results": [{"url": "https://a.example/", "title": "A", "content": "c", "score": 0.9}]}"#;
    assert_eq!(hits(&tavily(), &answer(200, body), 5).expect("hits").len(), 1);
}

#[test]
fn failures_of_providers_say_what_to_do() {
    let error = |search: &Search, status, body| {
        hits(search, &answer(status, body), 5).expect_err("a failure").to_string()
    };
    let searxng = Search::Searxng { url: Url::parse("http://localhost/").expect("a URL") };
    insta::assert_snapshot!(error(&searxng, 403, ""), @"the search at SearXNG failed: it answered 403; the user must list `json` under `search.formats` in its settings.yml, and its limiter must admit polity");
    insta::assert_snapshot!(error(&brave(), 401, ""), @"the search at Brave Search failed: it answered 401; the user must check the key in tools.web.search and its quota");
    insta::assert_snapshot!(error(&tavily(), 429, ""), @"the search at Tavily failed: it answered 429, too many requests; wait a minute and search again");
    insta::assert_snapshot!(error(&tavily(), 503, ""), @"the search at Tavily failed: it answered 503; try again later");
    assert!(error(&searxng, 200, "<html>").contains("settings.yml"));
}
