//! Decides what follows a redirect. Pure: the target is judged when the next request is sent.

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

/// The headers that are sent on to another origin. Any other header may contain a secret for the first origin.
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

/// Headers that describe a body.
const OF_BODY: &[HeaderName] = &[CONTENT_TYPE, CONTENT_ENCODING, CONTENT_LANGUAGE, CONTENT_LOCATION];

/// What an answer asks for.
#[derive(Debug)]
pub(crate) enum Next {
    /// The answer is the result.
    Done,
    /// The answer redirects; this is the next request.
    Follow(Box<Request>),
}

/// Decides what follows an answer with this status and these headers.
pub(crate) fn next(request: &Request, status: StatusCode, headers: &HeaderMap) -> Result<Next, Error> {
    let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    let Some(location) = headers.get(LOCATION).filter(|_| is_redirect) else {
        return Ok(Next::Done);
    };
    // Servers send URLs in UTF-8, although the header allows only ASCII.
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

/// Follows the Fetch standard: 303 turns every method except HEAD into GET; 301 and 302 turn POST into GET.
fn method_after(status: StatusCode, method: &Method) -> Method {
    let becomes_get = match status.as_u16() {
        303 => *method != Method::HEAD,
        301 | 302 => *method == Method::POST,
        _ => false,
    };
    if becomes_get { Method::GET } else { method.clone() }
}

/// Whether two URLs have the same origin, or the second has the host of the first and only changes from http to https.
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
