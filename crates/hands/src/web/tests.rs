use crate::call::{Access, Content, Hosts, Output, Progress, Source};
use crate::tool::{AfterCrash, Effect, Reach, acts};
use crate::web::testing::{Bench, Server, allowed, answer};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use polity_web::{Search, Settings};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

fn text(output: &Output) -> (&str, &str) {
    // The source must be set on all content from the web, because the policy depends on what an agent has seen.
    assert_eq!(output.sources, BTreeSet::from([Source::Web]));
    match &output.content {
        Content::Text { origin, text } => (origin, text),
        Content::Json(json) => panic!("{json}"),
    }
}

fn json_of(output: &Output) -> &Value {
    assert_eq!(output.sources, BTreeSet::from([Source::Web]));
    match &output.content {
        Content::Json(json) => json,
        Content::Text { origin, text } => panic!("{origin}: {text}"),
    }
}

fn reason(result: Result<Output, Refusal>) -> String {
    match result {
        Err(Refusal::ToolFailed { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

const HTML: &str = "<html><head><title>A page</title></head><body><nav><a href='/about'>About</a></nav>\
    <article><h1>Heading</h1><p>First words of a page that says something. <a href='/next'>Next</a></p>\
    </article></body></html>";

#[tokio::test]
async fn a_page_is_quoted_with_its_address_title_and_links() {
    let server = Server::start(|_| answer("200 OK", "content-type: text/html\r\n", HTML.as_bytes())).await;
    let bench = Bench::reaching(&[&server]);
    let output = bench.call("fetch_page", json!({"url": server.url("/a")})).await.unwrap();
    let (origin, text) = text(&output);
    assert_eq!(origin, server.url("/a"));
    assert!(text.starts_with("Title: A page\n"), "{text}");
    for words in ["First words", &server.url("/next"), &server.url("/about")] {
        assert_eq!(text.matches(words).count(), 1, "{words}: {text}");
    }
}

#[tokio::test]
async fn a_long_page_is_read_in_parts_that_lose_nothing() {
    let page: String = (0..6_000).map(|line| format!("äline {line}\n")).collect();
    let body = page.clone();
    let server = Server::start(move |_| {
        answer("404 Not Found", "content-type: text/plain; charset=utf-8\r\n", body.as_bytes())
    })
    .await;
    let bench = Bench::reaching(&[&server]);
    let (mut whole, mut offset) = (String::new(), 0);
    loop {
        let output =
            bench.call("fetch_page", json!({"url": server.url("/"), "offset": offset})).await.unwrap();
        let (origin, text) = text(&output);
        assert!(origin.contains("status 404"), "{origin}");
        whole.push_str(text);
        let Some((_, next)) = origin.split_once("continue with offset ") else { break };
        offset = next.parse().unwrap();
    }
    assert_eq!(whole.trim_end(), page.trim_end());
    let past = bench.call("fetch_page", json!({"url": server.url("/"), "offset": 1_000_000})).await;
    assert!(matches!(past, Err(Refusal::InvalidArguments(_))), "{past:?}");
}

#[tokio::test]
async fn what_is_no_text_becomes_a_file() {
    let server = Server::start(|_| answer("200 OK", "content-type: image/png\r\n", b"\x89PNG\0")).await;
    let bench = Bench::reaching(&[&server]);
    let get = json!({"method": "get", "url": server.url("/p.png")});
    for (tool, arguments) in [("fetch_page", json!({"url": server.url("/p.png")})), ("http_request", get)] {
        let output = bench.call(tool, arguments).await.unwrap();
        assert_eq!(json_of(&output)["bytes"], 5);
        let file = &output.files[0];
        assert_eq!(
            (file.filename.as_deref(), file.declared_mime.as_deref()),
            (Some("p.png"), Some("image/png"))
        );
        assert_eq!(&file.bytes[..], b"\x89PNG\0");
    }
}

#[tokio::test]
async fn a_request_is_sent_as_given_and_its_answer_is_quoted_unchanged() {
    let server =
        Server::start(|_| answer("201 Created", "content-type: text/html\r\n", b"<p>made</p>")).await;
    let bench = Bench::reaching(&[&server]);
    let headers = json!({"x-one": "1"});
    let output = bench
        .call(
            "http_request",
            json!({"method": "POST", "url": server.url("/x"), "headers": headers, "body": {"a": 1}}),
        )
        .await
        .unwrap();
    let (origin, text) = text(&output);
    assert_eq!(origin, format!("{}, with headers", server.url("/x")));
    assert!(text.contains("content-type: text/html\n") && text.ends_with("\n\n<p>made</p>"), "{text}");
    let request = &server.requests()[0];
    assert!(
        request.starts_with("POST /x HTTP/1.1\r\n") && request.ends_with("\r\n\r\n{\"a\":1}"),
        "{request}"
    );
    for header in ["x-one: 1\r\n", "content-type: application/json\r\n"] {
        assert!(request.contains(header), "{request}");
    }
    let words = json!({"method": "PUT", "url": server.url("/y"), "body": "some \"words\""});
    bench.call("http_request", words).await.unwrap();
    let request = &server.requests()[1];
    assert!(
        request.starts_with("PUT /y HTTP/1.1\r\n") && request.ends_with("\r\n\r\nsome \"words\""),
        "{request}"
    );
}

#[tokio::test]
async fn an_answer_is_saved_by_the_rules_of_the_workspace() {
    let server = Server::start(|_| answer("200 OK", "content-type: text/plain\r\n", b"new\0")).await;
    let bench = Bench::reaching(&[&server]);
    let save = |path: &str| json!({"method": "POST", "url": server.url("/"), "saveTo": path});
    let output = bench.call("http_request", save("made/here")).await.unwrap();
    assert_eq!(json_of(&output)["savedTo"], "made/here");
    assert_eq!(
        bench.prepare("http_request", save("./made/here")).await.unwrap(),
        json!({"path": "made/here"})
    );
    assert_eq!(std::fs::read(bench.file("made/here")).unwrap(), b"new\0");
    // The agent wrote this file itself, so it may replace the file.
    bench.call("http_request", save("made/here")).await.unwrap();
    assert_eq!(server.requests().len(), 2);

    std::fs::write(bench.file("other"), "of somebody else").unwrap();
    let refused = bench.call("http_request", save("other")).await;
    assert_eq!(refused, Err(Refusal::FileNotViewed { path: "other".to_owned() }));
    for path in ["../outside", ".git/config"] {
        let refused = bench.call("http_request", save(path)).await;
        assert!(matches!(refused, Err(Refusal::WorkspaceRefused { .. })), "{path}: {refused:?}");
    }
    let read_only = Bench::with(&[&server], Access::Read);
    let refused = read_only.call("http_request", save("f")).await;
    assert!(matches!(refused, Err(Refusal::WorkspaceRefused { .. })), "{refused:?}");
    assert_eq!(server.requests().len(), 2, "a request was sent whose answer cannot be saved");
    // If the call is interrupted, the file may be there and no result.
    assert_eq!(bench.brings("http_request", save("f")).await, BTreeSet::from([Source::Web]));
    let shown = json!({"method": "POST", "url": server.url("/")});
    assert_eq!(bench.brings("http_request", shown).await, BTreeSet::new());
}

#[tokio::test]
async fn an_answer_that_can_no_longer_be_saved_is_not_lost() {
    let base = Arc::new(Mutex::new(None::<std::path::PathBuf>));
    let file = Arc::clone(&base);
    let server = Server::start(move |_| {
        // Somebody else makes the file after the tool has checked that it can be written, and before the answer
        // arrives.
        let file = file.lock().unwrap().clone().unwrap();
        std::fs::write(file, "of somebody else").unwrap();
        answer("200 OK", "content-type: text/plain\r\n", b"paid")
    })
    .await;
    let bench = Bench::reaching(&[&server]);
    *base.lock().unwrap() = Some(bench.file("f"));
    let arguments = json!({"method": "POST", "url": server.url("/"), "saveTo": "f"});
    let output = bench.call("http_request", arguments).await.unwrap();
    assert_eq!(json_of(&output)["notSaved"], "file_changed");
    assert_eq!(&output.files[0].bytes[..], b"paid");
    assert_eq!(std::fs::read(bench.file("f")).unwrap(), b"of somebody else");
}

#[tokio::test]
async fn private_addresses_are_refused_at_once_and_behind_a_redirect() {
    let secret = Server::start(|_| answer("200 OK", "", b"secret")).await;
    let to = secret.url("/inside");
    let public = Server::start(move |_| answer("302 Found", &format!("location: {to}\r\n"), b"")).await;
    let bench = Bench::reaching(&[&public]);
    for url in [secret.url("/"), public.url("/")] {
        for (tool, arguments) in
            [("fetch_page", json!({"url": url})), ("http_request", json!({"method": "GET", "url": url}))]
        {
            let reason = reason(bench.call(tool, arguments).await);
            assert!(reason.contains("not an address of the public internet"), "{tool}: {reason}");
        }
    }
    assert_eq!(public.requests().len(), 2);
    assert!(secret.requests().is_empty());
    // A changed setting applies to the next call of the same tools.
    bench.settings.lock().unwrap().allow_hosts.push(allowed(&secret));
    let output = bench.call("fetch_page", json!({"url": public.url("/")})).await.unwrap();
    assert_eq!(text(&output), (secret.url("/inside").as_str(), "secret"));
}

#[tokio::test]
async fn a_redirect_leads_only_to_hosts_that_the_rules_permit() {
    let other = Server::start(|_| answer("200 OK", "", b"secret")).await;
    let to = format!("http://localhost:{}/", other.address.port());
    let location = format!("location: {to}\r\n");
    let first = Server::start(move |_| answer("302 Found", &location, b"")).await;
    let mut bench = Bench::reaching(&[&first, &other]);
    let by_name = format!("localhost:{}", other.address.port());
    bench.settings.lock().unwrap().allow_hosts.push(by_name.parse().unwrap());
    bench.hosts = Hosts::new(|host| match host {
        "127.0.0.1" => Ok(()),
        _ => Err("rule 1 denies it".to_owned()),
    });
    let calls = [
        ("fetch_page", json!({"url": first.url("/")})),
        ("http_request", json!({"method": "GET", "url": first.url("/")})),
    ];
    for (tool, arguments) in &calls {
        let reason = reason(bench.call(tool, arguments.clone()).await);
        assert!(reason.contains(&to) && reason.ends_with("rule 1 denies it"), "{tool}: {reason}");
    }
    assert_eq!((first.requests().len(), other.requests().len()), (2, 0));
    bench.hosts = Hosts::any();
    for (tool, arguments) in calls {
        bench.call(tool, arguments).await.unwrap();
    }
    assert_eq!(other.requests().len(), 2);
}

#[tokio::test]
async fn the_search_is_offered_while_a_provider_is_set() {
    let hit = |letter: &str| {
        let url = format!("https://example.org/{letter}");
        json!({"url": url, "title": letter, "content": format!("about {letter}")})
    };
    let hits = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j"].map(hit);
    let found = json!({"results": hits});
    let server = Server::start(move |_| answer("200 OK", "", found.to_string().as_bytes())).await;
    let bench = Bench::reaching(&[]);
    assert_eq!(bench.names(), ["fetch_page", "http_request"]);
    let search = Some(Search::Searxng { url: server.url("/").parse().unwrap() });
    *bench.settings.lock().unwrap() = Settings { search, ..Settings::default() };
    assert_eq!(bench.names(), ["fetch_page", "http_request", "web_search"]);
    let output = bench.call("web_search", json!({"query": "a b", "limit": 1})).await.unwrap();
    assert_eq!(text(&output), ("web search: 1 results", "1. a\n   https://example.org/a\n   about a\n"));
    let output = bench.call("web_search", json!({"query": "a b"})).await.unwrap();
    let (origin, list) = text(&output);
    assert_eq!((origin, list.lines().count()), ("web search: 8 results", 3 * 8), "{list}");
    assert!(server.requests()[0].starts_with("GET /search?q=a+b&format=json "), "{:?}", server.requests());
}

#[test]
fn only_reading_is_repeated_after_a_crash() {
    let bench = Bench::reaching(&[]);
    let check = |tool: &str, arguments: Value, effect: Effect, after: AfterCrash, groups: &[ToolGroup]| {
        let (tool, arguments) = (bench.tool(tool), arguments.as_object().unwrap().clone());
        assert_eq!((tool.effect(&arguments), tool.after_crash(&arguments)), (effect, after), "{arguments:?}");
        let needed: Vec<_> = acts(&*tool, &arguments).into_iter().map(|act| act.group).collect();
        assert_eq!(needed, groups, "{arguments:?}");
    };
    use AfterCrash::{Never, Repeat};
    use Effect::{Changes, Reads};
    let web = [ToolGroup::Web];
    check("fetch_page", json!({"url": "u"}), Reads, Repeat, &web);
    for method in ["GET", "head"] {
        check("http_request", json!({"method": method, "url": "u"}), Reads, Repeat, &web);
    }
    for method in ["POST", "OPTIONS", "?"] {
        check("http_request", json!({"method": method, "url": "u"}), Changes, Never, &web);
    }
    check("http_request", json!({}), Changes, Never, &web);
    let both = [ToolGroup::Web, ToolGroup::Files];
    for name in ["saveTo", "save_to"] {
        check("http_request", json!({"method": "GET", "url": "u", name: "f"}), Changes, Never, &both);
    }
    check("http_request", json!({"method": "GET", "url": "u", "saveTo": null}), Reads, Repeat, &web);
}

/// Rules about hosts judge the host that the request goes to, whatever style the name of the argument has.
#[tokio::test]
async fn the_host_that_is_judged_is_the_host_that_is_asked() {
    let server = Server::start(|_| answer("200 OK", "", b"here")).await;
    let bench = Bench::reaching(&[&server]);
    let url = server.url("/");
    let spelled =
        [json!({"url": url}), json!({"URL": url}), json!({"Url": url}), json!({"url": null, "u_rl": url})];
    for (number, arguments) in spelled.iter().enumerate() {
        for tool in ["fetch_page", "http_request"] {
            let mut given = arguments.clone();
            if tool == "http_request" {
                given["method"] = json!("GET");
            }
            let reach = bench.tool(tool).reach(given.as_object().unwrap());
            let expect = Reach::Web { host: Some("127.0.0.1".to_owned()), effect: Effect::Reads };
            assert_eq!(reach, expect, "{tool} {given}");
            bench.call(tool, given).await.unwrap();
        }
        assert_eq!(server.requests().len(), 2 * (number + 1), "{arguments}");
    }
    // Nothing is sent if two arguments name addresses. The one with the right name is judged.
    let both = json!({"url": "http://a.example/", "URL": url});
    let reach = bench.tool("fetch_page").reach(both.as_object().unwrap());
    assert_eq!(reach, Reach::Web { host: Some("a.example".to_owned()), effect: Effect::Reads });
    let refused = bench.call("fetch_page", both).await;
    assert!(matches!(refused, Err(Refusal::InvalidArguments(_))), "{refused:?}");
}

#[tokio::test]
async fn a_call_that_nobody_waits_for_ends_and_reports_before() {
    let server = Server::start(|_| Vec::new()).await;
    let bench = Bench::reaching(&[&server]);
    let cancel = CancellationToken::new();
    let (reports, stop) = (Arc::new(Mutex::new(Vec::new())), cancel.clone());
    let reported = Arc::clone(&reports);
    let progress = Progress::new(move |what| {
        reported.lock().unwrap().push(what.to_owned());
        stop.cancel();
    });
    let url = server.url("/");
    let call = bench.call_until(cancel, progress, "fetch_page", json!({"url": url}));
    let ended = tokio::time::timeout(Duration::from_secs(25), call).await.expect("the call ends by itself");
    assert_eq!(reason(ended), "cancelled before the answer was complete");
    assert_eq!(*reports.lock().unwrap(), [format!("GET {url}")]);
}

#[tokio::test]
async fn what_is_wrong_with_a_call_is_named_before_anything_is_sent() {
    let bench = Bench::reaching(&[]);
    let check = async |tool: &str, arguments: Value, argument: &str| {
        let refusal = bench.call(tool, arguments).await.unwrap_err();
        let Refusal::InvalidArguments(problems) = &refusal else { panic!("{refusal:?}") };
        assert!(format!("{problems:?}").contains(argument), "{refusal:?}");
    };
    check("fetch_page", json!({"url": "not an address"}), "url").await;
    check("fetch_page", json!({}), "url").await;
    check("http_request", json!({"method": "BREW", "url": "http://a.example"}), "method").await;
    let headers = json!({"host": "x"});
    check("http_request", json!({"method": "GET", "url": "http://a.example", "headers": headers}), "headers")
        .await;
}
