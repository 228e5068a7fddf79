use bytes::Bytes;
use http::{HeaderMap, HeaderValue, StatusCode};

use super::{Next, next};
use crate::error::Error;
use crate::request::Request;

const HEADERS: [(&str, &str); 6] = [
    ("authorization", "Bearer secret"),
    ("cookie", "session=secret"),
    ("x-api-key", "secret"),
    ("accept", "text/html"),
    ("content-type", "application/json"),
    ("user-agent", "me"),
];

fn after(method: &str, from: &str, status: u16, to: &str) -> Result<Next, Error> {
    let body = (method != "GET").then(|| Bytes::from_static(b"{}"));
    let request = Request::new(method, from, HEADERS, body).expect("a request");
    let mut headers = HeaderMap::new();
    headers.insert("location", HeaderValue::from_bytes(to.as_bytes()).expect("a value"));
    next(&request, StatusCode::from_u16(status).expect("a status"), &headers)
}

fn check(method: &str, from: &str, status: u16, to: &str, expect: &str) {
    let shown = match after(method, from, status, to) {
        Ok(Next::Done) => "done".to_owned(),
        Ok(Next::Follow(request)) => {
            let mut names: Vec<&str> = request.headers.keys().map(http::HeaderName::as_str).collect();
            names.sort_unstable();
            let body = if request.body.is_some() { " +body" } else { "" };
            format!("{} {} [{}]{body}", request.method, request.url, names.join(" "))
        }
        Err(Error::ChangeRedirected { to, .. }) => format!("refused: change to {to}"),
        Err(Error::BadRedirect { location }) => format!("refused: {location}"),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(shown, expect, "{method} {from} {status} {to}");
}

#[test]
fn a_redirect_keeps_what_it_may_and_nothing_else() {
    let here = "https://a.example/x/y?q";
    let all = "accept authorization content-type cookie user-agent x-api-key";
    let without_body = "accept authorization cookie user-agent x-api-key";
    let abroad = "accept user-agent";
    check("GET", here, 301, "/z", &format!("GET https://a.example/z [{all}]"));
    check("GET", here, 302, "z#part", &format!("GET https://a.example/x/z#part [{all}]"));
    check("GET", here, 302, "//b.example/", "GET https://b.example/ [accept user-agent]");
    check("GET", here, 307, "http://a.example/", &format!("GET http://a.example/ [{abroad}]"));
    check("GET", here, 307, "https://a.example:444/", &format!("GET https://a.example:444/ [{abroad}]"));
    check("GET", "http://a.example/", 301, "https://a.example/", &format!("GET https://a.example/ [{all}]"));
    check(
        "GET",
        "http://a.example:81/",
        301,
        "https://a.example/",
        &format!("GET https://a.example/ [{abroad}]"),
    );
    check("POST", here, 301, "/z", &format!("GET https://a.example/z [{without_body}]"));
    check("POST", here, 302, "/z", &format!("GET https://a.example/z [{without_body}]"));
    check("POST", here, 303, "/z", &format!("GET https://a.example/z [{without_body}]"));
    check("DELETE", here, 303, "/z", &format!("GET https://a.example/z [{without_body}]"));
    check("HEAD", here, 303, "/z", &format!("HEAD https://a.example/z [{all}] +body"));
    check("POST", here, 307, "/z", &format!("POST https://a.example/z [{all}] +body"));
    check("PUT", here, 301, "/z", &format!("PUT https://a.example/z [{all}] +body"));
    check("POST", here, 302, "https://b.example/", &format!("GET https://b.example/ [{abroad}]"));
    check("POST", here, 307, "https://b.example/", "refused: change to https://b.example/");
    check("DELETE", here, 308, "https://b.example/", "refused: change to https://b.example/");
    check("PUT", here, 302, "https://b.example/", "refused: change to https://b.example/");
    check("GET", here, 302, "/中文", &format!("GET https://a.example/%E4%B8%AD%E6%96%87 [{all}]"));
    check("GET", here, 302, "file:///etc/passwd", &format!("GET file:///etc/passwd [{abroad}]"));
    check("GET", here, 302, "http://", "refused: http://");
    for status in [200, 201, 300, 304, 305, 306, 404, 500] {
        check("GET", here, status, "/z", "done");
    }
}
