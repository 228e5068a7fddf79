use bytes::Bytes;
use encoding_rs::{BIG5, EUC_JP, GBK, SHIFT_JIS, UTF_16LE, WINDOWS_1251};
use url::Url;

use super::{Page, filename, page_of};
use crate::error::Error;
use crate::request::Response;
use crate::settings::Settings;
use crate::testing::{Reply, Server, call, web_to};

fn page(content_type: Option<&str>, body: impl Into<Bytes>) -> Page {
    page_of(Response {
        status: 200,
        final_url: Url::parse("https://example.com/dir/file.bin").expect("a URL"),
        headers: Vec::new(),
        content_type: content_type.map(str::to_owned),
        body: body.into(),
        redirects: Vec::new(),
    })
}

fn text(content_type: &str, body: impl Into<Bytes>) -> String {
    match page(Some(content_type), body) {
        Page::Text(page) => page.text,
        Page::Other(other) => panic!("{other:?}"),
    }
}

#[test]
fn text_is_read_in_the_encoding_that_it_declares() {
    let chinese = "<meta charset=gbk><title>x</title><p>中文网页</p>";
    assert_eq!(text("text/html", GBK.encode(chinese).0.into_owned()), "中文网页");
    let old = "<meta http-equiv='Content-Type' content='text/html; charset=gb2312'><p>中文网页</p>";
    assert_eq!(text("text/html", GBK.encode(old).0.into_owned()), "中文网页");
    assert_eq!(text("text/html; charset=big5", BIG5.encode("<p>繁體</p>").0.into_owned()), "繁體");
    assert_eq!(text("text/plain; charset=\"Shift_JIS\"", SHIFT_JIS.encode("日本").0.into_owned()), "日本");
    assert_eq!(text("text/plain;charset=windows-1251", WINDOWS_1251.encode("мир").0.into_owned()), "мир");
    let xml = "<?xml version=\"1.0\" encoding=\"euc-jp\"?><a>日本</a>";
    assert_eq!(text("application/xml", EUC_JP.encode(xml).0.into_owned()), xml);
    // The header `Content-Type` takes precedence over a declaration in the page, and a byte order mark over both.
    assert_eq!(text("text/html; charset=utf-8", "<meta charset=gbk><p>中文</p>"), "中文");
    assert_eq!(text("text/plain; charset=gbk", "\u{feff}中文"), "中文");
    let utf16: Vec<u8> = "\u{feff}中文".encode_utf16().flat_map(u16::to_le_bytes).collect();
    assert_eq!(text("text/plain", utf16), "中文");
    assert_eq!(UTF_16LE.name(), "UTF-16LE");
    // If no encoding is declared, valid UTF-8 is read as UTF-8, and any other text as windows-1252, which very old
    // pages use. A wrong or unknown declaration does not count.
    assert_eq!(text("text/html", "<p>中文</p>"), "中文");
    assert_eq!(text("text/plain", &b"caf\xe9"[..]), "café");
    assert_eq!(text("text/html", "<meta charset=utf-16le><p>中文</p>"), "中文");
    assert_eq!(text("text/plain; charset=nonsense", "中文"), "中文");
}

#[test]
fn what_is_text_stays_as_it_is_and_the_rest_stays_bytes() {
    for mime in [
        "text/plain",
        "text/markdown",
        "text/csv",
        "application/json",
        "application/ld+json",
        "application/xml",
        "application/atom+xml",
        "text/x-rust",
        "application/javascript",
        "application/yaml",
        "TEXT/Plain ; x=y",
    ] {
        assert_eq!(text(mime, "{\"a\": 1}\n<b> *c*"), "{\"a\": 1}\n<b> *c*", "{mime}");
    }
    for (mime, body) in [
        ("image/png", &b"\x89PNG"[..]),
        ("application/pdf", b"%PDF"),
        ("image/svg+xml", b"<svg/>"),
        ("application/octet-stream", b"text"),
        ("text/plain", b"a\0b"),
        ("text/rtf", b"{\\rtf"),
        ("nonsense", b"x"),
    ] {
        let Page::Other(other) = page(Some(mime), body) else { panic!("{mime} is no text") };
        assert_eq!((other.mime.as_str(), other.filename.as_str(), &*other.bytes), (mime, "file.bin", body));
    }
    assert!(
        matches!(page(None, "<!DOCTYPE HTML><p>x"), Page::Text(page) if page.text == "x" && page.mime == "text/html")
    );
    assert!(matches!(page(None, "plain"), Page::Text(page) if page.text == "plain"));
    assert!(matches!(page(None, &b"\xff\xfe\0\x01"[..]), Page::Other(_)));
    assert!(matches!(page(Some("text/html"), "x\u{0}<p>y"), Page::Text(_)));
}

#[test]
fn a_file_name_is_a_name_and_no_path() {
    for (disposition, url, expected) in [
        ("attachment; filename=\"a b.pdf\"", "/x", "a b.pdf"),
        ("attachment; filename=plain.txt", "/x", "plain.txt"),
        ("attachment; filename=x.pdf; filename*=UTF-8''%E4%B8%AD%E6%96%87.pdf", "/x", "中文.pdf"),
        ("attachment; filename=\"../../etc/passwd\"", "/x", "passwd"),
        ("attachment; filename=\"C:\\\\dir\\\\a.exe\"", "/x", "a.exe"),
        ("attachment; filename*=UTF-8''..%2F..%2F.ssh%2Fauthorized_keys", "/x", "authorized_keys"),
        ("attachment; filename=\"..\"", "/real.png", "real.png"),
        ("attachment; filename=\".bashrc\"", "/x", "bashrc"),
        ("attachment; filename=\"a\u{0}b\u{202e}gpj.exe\"", "/x", "abgpj.exe"),
        ("inline", "/dir/pic%20ture.png?size=1#x", "pic ture.png"),
        ("inline", "/a%2F..%2F..%2Fb.txt", "b.txt"),
        ("inline", "/dir/", "download"),
        ("inline", "/", "download"),
        ("inline", "/a%3Ab%7Cc", "a_b_c"),
    ] {
        let url = Url::parse("https://example.com").and_then(|base| base.join(url)).expect("a URL");
        let headers = [("content-disposition".to_owned(), disposition.to_owned())];
        assert_eq!(filename::of(&headers, &url), expected, "{disposition} {url}");
    }
    let long = Url::parse(&format!("https://example.com/{}", "a".repeat(500))).expect("a URL");
    assert_eq!(filename::of(&[], &long).len(), 100);
}

#[tokio::test]
async fn a_page_is_fetched_with_its_redirects_and_its_status() {
    let server = Server::start(|request| match request {
        request if request.starts_with("GET /old") => Reply::redirect("301 Moved", "/new/page"),
        request if request.starts_with("GET /new") => Reply::with(
            "404 Not Found",
            &[("content-type", "text/html")],
            "<title>T</title><p>Gone, see <a href=x>x</a>",
        ),
        _ => Reply::ok("image/png", [0x89, b'P']),
    })
    .await;
    let web = web_to(&server, Settings::default());
    let Page::Text(page) = web.page(&server.url("/old"), &call()).await.expect("a page") else {
        panic!("no text")
    };
    assert_eq!((page.status, page.title.as_deref()), (404, Some("T")));
    assert_eq!(page.text, format!("Gone, see [x]({})", server.url("/new/x")));
    assert_eq!(page.url.as_str(), server.url("/new/page"));
    assert!(server.requests()[0].contains("accept: text/html"));
    let Page::Other(other) = web.page(&server.url("/a/p.png"), &call()).await.expect("a page") else {
        panic!("text")
    };
    assert_eq!((other.mime.as_str(), other.filename.as_str(), other.bytes.len()), ("image/png", "p.png", 2));
    assert!(matches!(web.page("nonsense", &call()).await, Err(Error::NotAUrl { .. })));
}
