//! Makes the next request for a redirect. Pure. The URL of the next request is judged when that request is sent.

use bytes::Bytes;
use http::header::{
    ACCEPT, ACCEPT_LANGUAGE, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION,
    CONTENT_TYPE, IF_MODIFIED_SINCE, IF_NONE_MATCH, LOCATION, RANGE, USER_AGENT,
};
use http::{HeaderMap, HeaderName, Method, StatusCode};
use url::Url;

use crate::error::Error;
use crate::request::{Request, only_reads, text_of};
use crate::shown::shown_url;

/// The headers that the next request keeps if it goes to another origin. All other headers are removed, because they
/// may contain a secret that is only for the first origin.
const HARMLESS: &[HeaderName] = &[
    ACCEPT,
    ACCEPT_LANGUAGE,
    CACHE_CONTROL,
    CONTENT_LANGUAGE,
    CONTENT_TYPE,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    RANGE,
    USER_AGENT,
];

/// Headers that describe a body. If the next request has no body, polity removes these headers.
const OF_BODY: &[HeaderName] = &[CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// What to do after an answer.
#[derive(Debug)]
pub(crate) enum Next {
    /// The answer is not a redirect, so it is the result.
    Done,
    /// The answer redirects; this is the next request.
    Follow(Box<Request>),
}

/// Decides what to do after an answer with this status and these headers.
pub(crate) fn next(request: &Request, status: StatusCode, headers: &HeaderMap) -> Result<Next, Error> {
    let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = headers.get(LOCATION).filter(|_| is_redirect) else {
        return Ok(Next::Done);
    };
    // Some servers write URLs in UTF-8 into the header `Location`, although HTTP allows only ASCII there.
    let url = std::str::from_utf8(location.as_bytes())
        .ok()
        .and_then(|location| request.url.join(location.trim()).ok())
        .ok_or_else(|| Error::BadRedirect { location: text_of(location, 200) })?;
    let method = method_after(status, &request.method);
    let keeps_origin = is_same_or_secured(&request.url, &url);
    if !only_reads(&method) && !keeps_origin {
        return Err(Error::ChangeRedirected { method: method.to_string(), to: shown_url(url.as_str()) });
    }
    let keeps_body = method == request.method && keeps_origin;
    let mut kept = request.headers.clone();
    if !keeps_origin {
        kept = only(&kept, |name| HARMLESS.contains(name));
    }
    if !keeps_body {
        kept = only(&kept, |name| !OF_BODY.contains(name));
    }
    let body: Option<Bytes> = request.body.clone().filter(|_| keeps_body);
    Ok(Next::Follow(Box::new(Request { method, url, headers: kept, body })))
}

/// Returns the method of the next request, as in the Fetch standard. After a 303, the method is GET, unless it was
/// HEAD. After a 301 or 302, POST becomes GET. In all other cases, the method stays the same.
fn method_after(status: StatusCode, method: &Method) -> Method {
    let becomes_get = match status.as_u16() {
        303 => *method != Method::HEAD,
        301 | 302 => *method == Method::POST,
        _ => false,
    };
    if becomes_get { Method::GET } else { method.clone() }
}

/// Returns whether two URLs have the same origin. A change from http to https on the same host also counts as the same
/// origin.
fn is_same_or_secured(from: &Url, to: &Url) -> bool {
    let is_same = from.origin() == to.origin();
    let is_secured = from.scheme() == "http"
        && to.scheme() == "https"
        && from.host() == to.host()
        && from.port().is_none()
        && to.port().is_none();
    is_same || is_secured
}

fn only(headers: &HeaderMap, keep: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    headers.iter().filter(|(name, _)| keep(name)).map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests;
