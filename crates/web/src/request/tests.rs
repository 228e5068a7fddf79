use super::Request;
use crate::error::Error;

fn with_header(name: &str, value: &str) -> Result<Request, Error> {
    Request::new("GET", "https://example.com/", [(name, value)], None)
}

#[test]
fn headers_of_the_connection_are_refused_by_name() {
    for name in [
        "Host",
        "host",
        " HOST ",
        "Connection",
        "Keep-Alive",
        "Transfer-Encoding",
        "Content-Length",
        "Accept-Encoding",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Proxy-Authorization",
        "Proxy-Connection",
        "proxy-anything",
    ] {
        let error = with_header(name, "x").expect_err(name);
        assert!(matches!(error, Error::ForbiddenHeader { .. }), "{error}");
    }
    for name in ["Authorization", "Cookie", "X-Api-Key", "User-Agent", "Range", "Origin"] {
        assert!(with_header(name, "x").is_ok(), "{name}");
    }
}

#[test]
fn a_header_cannot_smuggle_another_one() {
    for (name, value) in [
        ("a\r\nHost", "x"),
        ("a b", "x"),
        ("", "x"),
        ("a:", "x"),
        ("a", "x\r\nHost: evil"),
        ("a", "x\ny"),
        ("a", "\0"),
    ] {
        assert!(matches!(with_header(name, value), Err(Error::BadHeader { .. })), "{name:?}: {value:?}");
    }
    assert!(matches!(with_header("a", &"x".repeat(20_000)), Err(Error::BadHeader { .. })));
}

#[test]
fn a_method_or_address_that_cannot_be_used_is_answered_with_those_that_can() {
    let error = Request::new("CONNECT", "https://example.com/", [], None).expect_err("no tunnel");
    insta::assert_snapshot!(error, @"the method `CONNECT` is not available: use GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS");
    assert_eq!(Request::new(" post", "https://example.com/", [], None).expect("a request").method(), "POST");
    let error = Request::get("example.com/page").expect_err("no scheme");
    insta::assert_snapshot!(error, @"`example.com/page` is not a web address (relative URL without a base): write it in full, such as https://example.org/page");
}
