//! A tool's request to the web, and the response of the server.

use bytes::Bytes;
use http::header::{
    ACCEPT_ENCODING, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use url::Url;

use crate::error::Error;
use crate::shown::{one_line, shown_url};

const METHODS: &[Method] =
    &[Method::GET, Method::HEAD, Method::POST, Method::PUT, Method::PATCH, Method::DELETE, Method::OPTIONS];

/// Headers that a tool cannot set. They describe the connection or the length of the message. A wrong value could make
/// the server understand a different request from the one that polity has checked.
const FORBIDDEN: &[HeaderName] =
    &[HOST, CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING, ACCEPT_ENCODING, TE, TRAILER, UPGRADE, EXPECT];

/// Maximum size of all headers of a request together, in bytes.
const LARGEST_HEADERS: usize = 16 * 1024;

/// A request whose parts are well-formed. Its URL is judged only when the request is sent.
#[derive(Clone, Debug)]
pub struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Bytes>,
}

impl Request {
    /// Reads the parts of a request from text.
    pub fn new<'h>(
        method: &str,
        url: &str,
        headers: impl IntoIterator<Item = (&'h str, &'h str)>,
        body: Option<Bytes>,
    ) -> Result<Self, Error> {
        Ok(Self { method: method_of(method)?, url: url_of(url)?, headers: headers_of(headers)?, body })
    }

    /// Makes a request with the method GET, without headers and without a body.
    pub fn get(url: &str) -> Result<Self, Error> {
        Self::new("GET", url, [], None)
    }

    /// Returns the URL of the request, before any redirect.
    pub fn url(&self) -> &Url {
        &self.url
    }

    /// Returns the method, in capitals.
    pub fn method(&self) -> &str {
        self.method.as_str()
    }

    /// Returns whether the request only reads: its method is GET, HEAD or OPTIONS.
    pub fn only_reads(&self) -> bool {
        only_reads(&self.method)
    }
}

pub(crate) fn only_reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD | Method::OPTIONS)
}

fn method_of(method: &str) -> Result<Method, Error> {
    let wanted = method.trim().to_ascii_uppercase();
    let known = METHODS.iter().find(|known| known.as_str() == wanted);
    known.cloned().ok_or_else(|| Error::Method { method: one_line(method, 20) })
}

pub(crate) fn url_of(url: &str) -> Result<Url, Error> {
    Url::parse(url.trim())
        .map_err(|reason| Error::NotAUrl { url: shown_url(url), reason: reason.to_string() })
}

fn headers_of<'h>(headers: impl IntoIterator<Item = (&'h str, &'h str)>) -> Result<HeaderMap, Error> {
    let mut read = HeaderMap::new();
    let mut size = 0;
    for (name, value) in headers {
        let bad = |reason| Error::BadHeader { name: one_line(name, 60), reason };
        let header: HeaderName =
            name.trim().parse().map_err(|_| bad("a name consists of letters, digits and `-`"))?;
        if FORBIDDEN.contains(&header) || is_hop_by_hop(header.as_str()) {
            return Err(Error::ForbiddenHeader { name: header.as_str().to_owned() });
        }
        size += name.len() + value.len();
        if size > LARGEST_HEADERS {
            return Err(bad("the headers of a request may have 16 KiB together; send long data in the body"));
        }
        let value = HeaderValue::from_str(value.trim())
            .map_err(|_| bad("a value is one line without control characters"))?;
        read.append(header, value);
    }
    Ok(read)
}

fn is_hop_by_hop(name: &str) -> bool {
    name == "keep-alive" || name.starts_with("proxy-")
}

/// The answer of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The URL that answered, after all redirects.
    pub final_url: Url,
    /// The headers that matter to a reader, in the order of their arrival. Each value has at most 1,000 characters.
    pub headers: Vec<(String, String)>,
    /// The header `Content-Type`: the media type with its parameters, in one line.
    pub content_type: Option<String>,
    /// The body, decompressed.
    pub body: Bytes,
    /// The URLs that answered with a redirect, in order. `final_url` is not among them.
    pub redirects: Vec<Url>,
}

/// Headers of responses that a reader may need.
const SELECTED: &[&str] = &[
    "allow",
    "cache-control",
    "content-disposition",
    "content-language",
    "content-length",
    "content-range",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "link",
    "location",
    "retry-after",
    "server",
    "set-cookie",
    "www-authenticate",
];

/// Maximum number of response headers that the caller gets.
const MOST_HEADERS: usize = 40;

pub(crate) fn selected(headers: &HeaderMap) -> Vec<(String, String)> {
    let matters =
        |name: &str| SELECTED.contains(&name) || name.contains("ratelimit") || name.contains("total");
    headers
        .iter()
        .filter(|(name, _)| matters(name.as_str()))
        .take(MOST_HEADERS)
        .map(|(name, value)| (name.as_str().to_owned(), text_of(value, 1000)))
        .collect()
}

/// Returns the value of a server's header as one line of at most `longest` characters.
pub(crate) fn text_of(value: &HeaderValue, longest: usize) -> String {
    one_line(&String::from_utf8_lossy(value.as_bytes()), longest)
}

#[cfg(test)]
mod tests;
