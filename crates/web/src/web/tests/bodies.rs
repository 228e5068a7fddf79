//! Tests with bodies and headers of any size and form.

use std::time::Duration;

use async_compression::tokio::write::{BrotliEncoder, DeflateEncoder, GzipEncoder, ZlibEncoder, ZstdEncoder};
use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt};

use crate::error::Error;
use crate::request::Request;
use crate::settings::Settings;
use crate::testing::{Reply, Server, call, web_to};

const LIMIT: usize = 64 * 1024;

async fn fetched(reply: impl Fn() -> Reply + Send + Sync + 'static) -> Result<Bytes, Error> {
    let server = Server::start(move |_| reply()).await;
    let web = web_to(&server, Settings { max_bytes: LIMIT as u64, ..Settings::default() });
    let request = Request::get(&server.url("/")).expect("a request");
    web.request(request, &call()).await.map(|response| response.body)
}

async fn compressed(encoding: &str, body: &[u8]) -> Vec<u8> {
    async fn all<E: AsyncWrite + Unpin>(mut encoder: E, body: &[u8]) -> E {
        encoder.write_all(body).await.expect("compression");
        encoder.shutdown().await.expect("compression");
        encoder
    }
    let out = Vec::new();
    match encoding {
        "gzip" => all(GzipEncoder::new(out), body).await.into_inner(),
        "deflate" => all(ZlibEncoder::new(out), body).await.into_inner(),
        "bare deflate" => all(DeflateEncoder::new(out), body).await.into_inner(),
        "br" => all(BrotliEncoder::new(out), body).await.into_inner(),
        "zstd" => all(ZstdEncoder::new(out), body).await.into_inner(),
        other => panic!("{other}"),
    }
}

fn header_of(encoding: &str) -> String {
    encoding.trim_start_matches("bare ").to_owned()
}

const ENCODINGS: [&str; 5] = ["gzip", "deflate", "bare deflate", "br", "zstd"];

#[tokio::test]
async fn every_encoding_is_read() {
    for encoding in ENCODINGS {
        let body = compressed(encoding, b"hello hello hello").await;
        let header = header_of(encoding);
        let read = fetched(move || Reply::with("200 OK", &[("content-encoding", &header)], &body)).await;
        assert_eq!(read.expect(encoding), "hello hello hello");
    }
    let twice = compressed("gzip", &compressed("br", b"hello").await).await;
    let read = fetched(move || Reply::with("200 OK", &[("content-encoding", "br, gzip")], &twice)).await;
    assert_eq!(read.expect("two encodings"), "hello");
    let empty = fetched(|| Reply::with("200 OK", &[("content-encoding", "gzip")], "")).await;
    assert_eq!(empty.expect("no body"), "");
}

#[tokio::test]
async fn a_bomb_is_stopped_at_the_limit_in_every_encoding() {
    let zeros = vec![0; 20 * LIMIT];
    for encoding in ENCODINGS {
        let body = compressed(encoding, &zeros).await;
        assert!(body.len() < LIMIT / 4, "{encoding}: {} bytes are no bomb", body.len());
        let header = header_of(encoding);
        let read = fetched(move || Reply::with("200 OK", &[("content-encoding", &header)], &body)).await;
        assert!(matches!(read, Err(Error::TooLarge { .. })), "{encoding}: {read:?}");
    }
    let twice = compressed("gzip", &compressed("gzip", &zeros).await).await;
    let read = fetched(move || Reply::with("200 OK", &[("content-encoding", "gzip, gzip")], &twice)).await;
    assert!(matches!(read, Err(Error::TooLarge { .. })), "{read:?}");
}

#[tokio::test]
async fn a_compressed_body_without_an_end_or_a_result_is_stopped() {
    // The body is an endless sequence of empty gzip members: it never ends, but it decompresses to nothing.
    let empty = compressed("gzip", b"").await;
    let head = b"HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n".to_vec();
    let read = fetched(move || Reply::Endless(head.clone(), empty.repeat(100), Duration::ZERO)).await;
    assert!(matches!(read, Err(Error::TooLarge { .. })), "{read:?}");
}

#[tokio::test]
async fn unknown_or_false_encodings_are_named() {
    let unknown = fetched(|| Reply::with("200 OK", &[("content-encoding", "compress")], "x")).await;
    assert!(
        matches!(&unknown, Err(Error::Encoding { encoding, .. }) if encoding == "compress"),
        "{unknown:?}"
    );
    let many = fetched(|| Reply::with("200 OK", &[("content-encoding", "gzip,gzip,gzip,gzip")], "x")).await;
    assert!(matches!(many, Err(Error::Encoding { .. })), "{many:?}");
    for encoding in ENCODINGS {
        let header = header_of(encoding);
        let read =
            fetched(move || Reply::with("200 OK", &[("content-encoding", &header)], "\u{7f}this is not it"))
                .await;
        assert!(matches!(read, Err(Error::Broken { .. })), "{encoding}: {read:?}");
    }
}

#[tokio::test]
async fn a_body_may_have_the_limit_and_no_byte_more() {
    for (length, fits) in [(0, true), (LIMIT, true), (LIMIT + 1, false)] {
        let read = fetched(move || Reply::ok("text/plain", vec![b'a'; length])).await;
        assert_eq!(read.is_ok(), fits, "{length}: {:?}", read.map(|body| body.len()));
    }
}

#[tokio::test]
async fn a_body_without_end_is_stopped() {
    let head = b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n".to_vec();
    let read = fetched(move || Reply::Endless(head.clone(), vec![b'a'; 1000], Duration::ZERO)).await;
    assert!(matches!(read, Err(Error::TooLarge { limit, .. }) if limit == LIMIT as u64), "{read:?}");
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let read =
        fetched(move || Reply::Endless(head.clone(), b"5\r\naaaaa\r\n".repeat(100), Duration::ZERO)).await;
    assert!(matches!(read, Err(Error::TooLarge { .. })), "{read:?}");
}

#[tokio::test]
async fn a_false_length_neither_hangs_nor_passes_for_a_whole_body() {
    let short =
        fetched(|| Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfive!".to_vec())).await;
    assert!(matches!(short, Err(Error::Broken { .. })), "{short:?}");
    let long =
        fetched(|| Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nfive!and more".to_vec())).await;
    assert_eq!(long.expect("five bytes"), "five!");
    let huge =
        fetched(|| Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999999\r\n\r\nx".to_vec()))
            .await;
    assert!(matches!(huge, Err(Error::TooLarge { .. })), "{huge:?}");
    let two = fetched(|| {
        Reply::Bytes(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\ncontent-length: 6\r\n\r\nfive!!".to_vec())
    });
    assert!(matches!(two.await, Err(Error::Broken { .. })));
}

#[tokio::test]
async fn headers_without_end_are_stopped() {
    let head = b"HTTP/1.1 200 OK\r\n".to_vec();
    let start = head.clone();
    let many = fetched(move || Reply::Endless(start.clone(), b"x: y\r\n".to_vec(), Duration::ZERO)).await;
    assert!(matches!(many, Err(Error::HeadersTooLarge { .. })), "{many:?}");
    let start = [head.as_slice(), b"x: "].concat();
    let long = fetched(move || Reply::Endless(start.clone(), vec![b'y'; 1000], Duration::ZERO)).await;
    assert!(matches!(long, Err(Error::HeadersTooLarge { .. })), "{long:?}");
    let large = "y".repeat(70_000);
    let complete = fetched(move || Reply::with("200 OK", &[("x", &large)], "")).await;
    assert!(matches!(complete, Err(Error::HeadersTooLarge { .. })), "{complete:?}");
}

#[tokio::test]
async fn what_is_not_http_is_reported() {
    for nonsense in
        [&b"SSH-2.0-OpenSSH_9.6\r\n"[..], b"", b"HTTP/1.1 999999 X\r\n\r\n", &[0, 1, 2, 255, 13, 10, 13, 10]]
    {
        let read = fetched(move || Reply::Bytes(nonsense.to_vec())).await;
        assert!(matches!(read, Err(Error::Broken { .. })), "{read:?}");
    }
}

#[tokio::test]
async fn a_response_has_what_a_reader_needs() {
    let server = Server::start(|_| {
        Reply::with(
            "404 Not Found",
            &[
                ("content-type", "application/json; charset=utf-8"),
                ("x-ratelimit-remaining", "7"),
                ("x-secret", "no"),
                ("location", "/not-followed"),
                ("set-cookie", "a=b"),
            ],
            "{}",
        )
    })
    .await;
    let web = web_to(&server, Settings::default());
    let request =
        Request::new("POST", &server.url("/x"), [("Content-Type", "text/plain")], Some("body".into()));
    let response = web.request(request.expect("a request"), &call()).await.expect("an answer");
    assert_eq!(response.status, 404);
    assert_eq!(response.content_type.as_deref(), Some("application/json; charset=utf-8"));
    let names: Vec<&str> = response.headers.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["content-length", "content-type", "x-ratelimit-remaining", "location", "set-cookie"]);
    let request = &server.requests()[0];
    assert!(request.starts_with("POST /x HTTP/1.1") && request.ends_with("\r\n\r\nbody"), "{request}");

    let head = Request::new("HEAD", &server.url("/x"), [], None).expect("a request");
    assert!(web.request(head, &call()).await.is_ok());
}
