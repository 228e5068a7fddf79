//! Tests of uploads and downloads.

use crate::support::{Daemon, File, asked};
use axum::body::{Body, Bytes};
use axum::http::header;
use serde_json::Value;
use std::convert::Infallible;

async fn stored(daemon: &Daemon, filename: &str, content_type: &str, bytes: &[u8]) -> String {
    let answer = daemon.upload(&format!("/api/artifacts?filename={filename}"), content_type, bytes).await;
    assert_eq!(answer.status, 201, "{:?}", answer.body);
    answer.json()["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_part_of_the_bytes() {
    let daemon = Daemon::start().await;
    let all: Vec<u8> = (0..=255).cycle().take(100_000).collect();
    let id = stored(&daemon, "a.bin", "application/octet-stream", &all).await;
    let path = format!("/api/artifacts/{id}/content");
    let whole = daemon.get(&path).await;
    assert_eq!((whole.status.as_u16(), &whole.body[..]), (200, &all[..]));
    assert_eq!((whole.header("accept-ranges"), whole.header("content-length")), ("bytes", "100000"));
    let tag = whole.header("etag").to_owned();

    let ask = async |name: &str, value: &str, range: &str| {
        let request = asked("GET", &path).header(name, value).header(header::RANGE, range);
        daemon.send(request.body(Body::empty()).unwrap()).await
    };
    let check = async |range: &str, from: usize, to: usize| {
        let answer = ask("x-nothing", "", range).await;
        assert_eq!((answer.status.as_u16(), &answer.body[..]), (206, &all[from..=to]), "{range}");
        assert_eq!(answer.header("content-range"), format!("bytes {from}-{to}/100000"));
        assert_eq!(answer.header("content-length"), (to - from + 1).to_string());
    };
    check("bytes=0-0", 0, 0).await;
    check("bytes=10-70000", 10, 70_000).await;
    check("bytes=99990-", 99_990, 99_999).await;
    check("bytes=-5", 99_995, 99_999).await;
    let outside = ask("x-nothing", "", "bytes=100000-").await;
    outside.assert_problem(416, "invalid_range");
    assert_eq!(outside.header("content-range"), "bytes */100000");
    assert_eq!(ask("x-nothing", "", "bytes=0-1,3-4").await.status, 200);
    assert_eq!(ask("If-Range", &tag, "bytes=0-1").await.status, 206);
    assert_eq!(ask("If-Range", "\"another\"", "bytes=0-1").await.status, 200);
    let known = ask("If-None-Match", &tag, "bytes=0-1").await;
    assert_eq!((known.status.as_u16(), known.body.len()), (304, 0));
    let head = daemon.call("HEAD", &path).await;
    assert_eq!((head.header("content-length"), head.body.len()), ("100000", 0));
    daemon.stop().await;
}

#[tokio::test]
async fn what_needs_no_bytes_reads_none() {
    let directory = tempfile::tempdir().unwrap();
    let blobs = directory.path().join("artifacts");
    let daemon = Daemon::start_in(directory, Vec::new()).await;
    let id = stored(&daemon, "a.txt", "text/plain", b"hello").await;
    let path = format!("/api/artifacts/{id}/content");
    let whole = daemon.get(&path).await;
    std::fs::remove_dir_all(blobs).unwrap();
    let ask = |method: &str, name: &str, value: &str| {
        asked(method, &path).header(name, value.to_owned()).body(Body::empty()).unwrap()
    };
    let known = daemon.send(ask("GET", "If-None-Match", whole.header("etag"))).await;
    assert_eq!((known.status.as_u16(), known.header("etag")), (304, whole.header("etag")));
    // The server must ignore `Range` in a HEAD request (RFC 9110, section 14.2).
    for (name, value) in [("x-nothing", ""), ("Range", "bytes=0-1"), ("Range", "bytes=9-")] {
        let head = daemon.send(ask("HEAD", name, value)).await;
        assert_eq!((head.status.as_u16(), head.body.len()), (200, 0), "{value}");
        for header in ["content-length", "content-type", "content-disposition", "etag", "accept-ranges"] {
            assert_eq!(head.header(header), whole.header(header), "{header}");
        }
    }
    daemon.get(&path).await.assert_problem(500, "internal_error");
    daemon.stop().await;
}

#[tokio::test]
async fn nothing_that_is_stored_runs_in_a_browser() {
    let daemon = Daemon::start().await;
    let script = b"<html><script>alert(1)</script></html>";
    let svg = b"<svg xmlns=\"http://www.w3.org/2000/svg\"><script>alert(1)</script></svg>";
    for (filename, content_type, bytes) in [
        ("a.html", "text/html", &script[..]),
        ("a.xhtml", "application/xhtml+xml", script),
        ("a.svg", "image/svg+xml", svg),
        ("a.js", "text/javascript", b"alert(1)"),
        ("a.png", "image/png", script),
        ("a", "multipart/related; boundary=x", script),
        ("a", "", script),
    ] {
        let id = stored(&daemon, filename, content_type, bytes).await;
        let answer = daemon.get(&format!("/api/artifacts/{id}/content")).await;
        let told = answer.header("content-type");
        let harmless = told == "text/plain; charset=utf-8"
            || answer.header("content-disposition").starts_with("attachment");
        assert!(harmless, "{content_type} became {told}");
        assert_eq!(answer.header("content-security-policy"), "sandbox; default-src 'none'");
        assert_eq!(answer.header("x-content-type-options"), "nosniff");
        assert_eq!(answer.header("cross-origin-resource-policy"), "same-origin");
        assert_eq!(&answer.body[..], bytes);
    }
    let empty = stored(&daemon, "empty", "application/octet-stream", b"").await;
    let path = format!("/api/artifacts/{empty}/content");
    for range in ["", "bytes=0-", "bytes=-1"] {
        let request = asked("GET", &path).header(header::RANGE, range).body(Body::empty()).unwrap();
        let answer = daemon.send(request).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 0), "{range:?}");
    }
    daemon.stop().await;
}

#[tokio::test]
async fn a_page_for_a_frame_runs_nothing_and_contacts_nobody() {
    let daemon = Daemon::start().await;
    let markup =
        b"<meta http-equiv=refresh content=0><link rel=preconnect href=//a.example><script>1</script>";
    for (filename, content_type) in
        [("a.html", "text/html"), ("a.svg", "image/svg+xml"), ("a.htm", "text/plain")]
    {
        let id = stored(&daemon, filename, content_type, markup).await;
        let answer = daemon.get(&format!("/api/artifacts/{id}/page")).await;
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("sandbox; default-src 'none'; "), "{policy}");
        assert!(!policy.contains("allow-") && policy.ends_with("frame-ancestors 'self'"), "{policy}");
        assert_eq!(answer.header("x-dns-prefetch-control"), "off");
        assert_eq!(answer.header("referrer-policy"), "no-referrer");
        assert_eq!(
            answer.text(),
            "<x-meta http-equiv=refresh content=0><x-link rel=preconnect href=//a.example><script>1</script>"
        );
    }
    let pdf = stored(&daemon, "a.pdf", "application/pdf", b"%PDF-1.4\n%%EOF").await;
    let answer = daemon.get(&format!("/api/artifacts/{pdf}/page")).await;
    assert_eq!((answer.header("content-type"), &answer.body[..5]), ("application/pdf", &b"%PDF-"[..]));
    assert!(answer.header("content-security-policy").starts_with("default-src 'none'; "));
    let text = stored(&daemon, "a.txt", "text/plain", b"<b>a</b>").await;
    let refused = daemon.get(&format!("/api/artifacts/{text}/page")).await;
    refused.assert_problem(422, "invalid_arguments");
    daemon.stop().await;
}

#[tokio::test]
async fn uploads_are_bounded() {
    let directory = tempfile::tempdir().unwrap();
    let settings = r#"{"limits": {"maxArtifactBytes": 1000}}"#;
    std::fs::write(directory.path().join("app.json"), settings).unwrap();
    let daemon = Daemon::start_in(directory, Vec::new()).await;
    let (fits, too_large) = (vec![b'x'; 1000], vec![b'x'; 1001]);
    let path = "/api/artifacts?filename=a";
    assert_eq!(daemon.upload(path, "text/plain", &fits).await.status, 201);
    daemon.upload(path, "text/plain", &too_large).await.assert_problem(413, "body_too_large");

    // The body has no declared length and never ends. The server stops reading it at the limit.
    let endless = futures::stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 100])));
    let request = asked("POST", path).body(Body::from_stream(endless)).unwrap();
    daemon.send(request).await.assert_problem(413, "body_too_large");

    fn file(bytes: &[u8]) -> File<'_> {
        File { field: "file", filename: "a.txt", content_type: "text/plain", bytes }
    }
    assert_eq!(
        daemon.post_form("/api/artifacts", &[("type", "notes")], &[file(&fits)]).await.ok()["type"],
        "notes"
    );
    let refused = daemon.post_form("/api/artifacts", &[], &[file(&too_large)]).await;
    refused.assert_problem(413, "body_too_large");
    // The limit applies to all files of a message together.
    let attached = |bytes| File { field: "attachment", ..file(bytes) };
    let halves = [attached(&fits[..500]), attached(&fits[..501])];
    daemon.post_form("/api/messages", &[("text", "a")], &halves).await.assert_problem(413, "body_too_large");
    // A field that is no file has another limit, and the error names the field.
    let long = "a".repeat((1 << 20) + 1);
    let refused = daemon.post_form("/api/artifacts", &[("label", &long)], &[file(&[])]).await;
    refused.assert_problem(413, "body_too_large");
    assert_eq!(
        refused.json()["detail"],
        "the field `label` may have at most 1048576 bytes, because it is not a file"
    );
    // Each of these fields is short enough, but the form is too long.
    let (half, file_too) = ("a".repeat(600_000), [file(&fits)]);
    let refused = daemon.post_form("/api/artifacts", &[("label", &half), ("type", &half)], &file_too).await;
    refused.assert_problem(413, "body_too_large");
    let said = refused.json()["detail"].to_string();
    assert!(said.contains("a form may have at most 1049576 bytes"), "{said}");
    let fields: Vec<(&str, &str)> = (0..70).map(|_| ("text", "a")).collect();
    daemon.post_form("/api/messages", &fields, &[]).await.assert_problem(400, "invalid_arguments");
    daemon.stop().await;
}

#[tokio::test]
async fn forms_that_are_none() {
    let daemon = Daemon::start().await;
    for (content_type, body) in [
        ("multipart/form-data", "x"),
        ("multipart/form-data; boundary=x", ""),
        ("multipart/form-data; boundary=x", "--x\r\n"),
        (
            "multipart/form-data; boundary=x",
            "--x\r\nContent-Disposition: form-data; name=\"file\"\r\n\r\nno end",
        ),
        ("multipart/form-data; boundary=x", "--x--\r\n"),
    ] {
        for path in ["/api/artifacts", "/api/messages"] {
            let answer = daemon.upload(path, content_type, body.as_bytes()).await;
            assert!(
                [400, 422].contains(&answer.status.as_u16()),
                "{body:?}: {} {:?}",
                answer.status,
                answer.body
            );
        }
    }
    let file = |field| File { field, filename: "a", content_type: "text/plain", bytes: b"a" };
    let two = daemon.post_form("/api/artifacts", &[], &[file("file"), file("file")]).await;
    two.assert_problem(400, "invalid_arguments");
    let elsewhere = daemon.post_form("/api/messages", &[("text", "a")], &[file("picture")]).await;
    elsewhere.assert_problem(400, "invalid_arguments");
    let unknown = daemon.post_form("/api/messages", &[("words", "a")], &[]).await;
    unknown.assert_problem(400, "invalid_arguments");
    let payload = daemon.post_form("/api/messages", &[("payload", "{")], &[]).await;
    payload.assert_problem(400, "invalid_arguments");
    daemon.upload("/api/artifacts?task=nothing", "text/plain", b"a").await.assert_problem(404, "not_found");
    let all: Value = daemon.get("/api/artifacts").await.ok();
    assert_eq!(all["artifacts"].as_array().unwrap().len(), 0);
    daemon.stop().await;
}
