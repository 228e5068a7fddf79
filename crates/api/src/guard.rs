//! Access control. Every request needs the token or a cookie, except `GET /healthz` and a login. A browser gets the
//! cookie after it has shown the token. Even with a valid token or cookie, the guard refuses a request that names a
//! foreign host or comes from a foreign page.
//!
//! [`Guard::judge`] reads only the head of a request and returns a verdict. [`stand`] passes or refuses the request.

mod host;
mod token;

pub use host::Hosts;
pub use token::Token;

use crate::login_form::{self, Attempt};
use crate::problem::{self, Problem};
use crate::server::admit;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use token::Tickets;

/// The paths that need no token. The handler of `/login` itself checks the token or the ticket.
const HEALTH: &str = "/healthz";
const LOGIN: &str = "/login";

/// Largest body of a request to a path that needs no token, in bytes. The bound is small, because the sender has not
/// shown the token yet.
pub(crate) const LARGEST_OF_STRANGERS: usize = 4 * 1024;

/// Whether the guard passes requests to this path without the token.
pub(crate) fn needs_no_token(path: &str) -> bool {
    [HEALTH, LOGIN].contains(&path)
}

/// The guard of all routes, which decides whether a request may pass.
#[derive(Debug)]
pub struct Guard {
    hosts: Hosts,
    token: Token,
    pub(crate) tickets: Tickets,
}

/// The decision about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The request may pass.
    Pass,
    /// The host of the request is not a name of this daemon.
    ForeignHost,
    /// The request comes from a page that the daemon did not serve.
    ForeignOrigin,
    /// The request carries no valid token or cookie.
    Unauthorized,
}

impl Guard {
    /// Creates a guard that accepts this token for requests to these hosts.
    pub fn new(token: Token, hosts: Hosts) -> Self {
        Self { hosts, token, tickets: Tickets::default() }
    }

    /// Returns the token that clients must send.
    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// Returns the name of the cookie. The name contains the port, because browsers share cookies between ports and two
    /// daemons on one machine would otherwise overwrite each other's cookie.
    pub(crate) fn cookie_name(&self) -> String {
        format!("polity-session-{}", self.hosts.port())
    }

    /// Judges a request by its head.
    pub(crate) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        if uri.path() == HEALTH && (method == Method::GET || method == Method::HEAD) {
            return Verdict::Pass;
        }
        let Some(host) = only(headers, HOST) else { return Verdict::ForeignHost };
        if !self.hosts.contain(host)
            || uri.authority().is_some_and(|named| !self.hosts.contain(named.as_str()))
        {
            return Verdict::ForeignHost;
        }
        let from_page = headers.contains_key(ORIGIN);
        if from_page && !only(headers, ORIGIN).is_some_and(|origin| host::is_same_origin(origin, host)) {
            return Verdict::ForeignOrigin;
        }
        if uri.path() == LOGIN {
            // The login handler itself checks the ticket or the token.
            return Verdict::Pass;
        }
        if headers.contains_key(AUTHORIZATION) {
            let given = only(headers, AUTHORIZATION).and_then(bearer);
            return if given.is_some_and(|given| self.token.is(given)) {
                Verdict::Pass
            } else {
                Verdict::Unauthorized
            };
        }
        if !self.has_session(headers) || !is_of_our_page(headers) {
            return Verdict::Unauthorized;
        }
        // A browser attaches cookies to the requests of any page, so a request that changes something must come from
        // our own page.
        if method.is_safe() || from_page { Verdict::Pass } else { Verdict::ForeignOrigin }
    }

    fn has_session(&self, headers: &HeaderMap) -> bool {
        let name = self.cookie_name();
        let all = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(key, value)| key == name && self.token.is_session(value))
    }
}

/// Whether a request with our cookie comes from our page or from the person, who may have followed a link. The headers
/// `Sec-Fetch-Site` and `Sec-Fetch-Dest` tell this; if `Sec-Fetch-Site` is missing, the result is `true`.
///
/// The cookie alone proves too little: for browsers, a page on another port of this machine is the same *site*, so they
/// attach our cookie to the requests of such a page.
fn is_of_our_page(headers: &HeaderMap) -> bool {
    let says = |name: &'static str| headers.get(name).map(HeaderValue::as_bytes);
    match says("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => true,
        Some(_) => says("sec-fetch-dest") == Some(b"document"),
    }
}

/// Returns the value of a header, if the header occurs exactly once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(value)
}

/// Returns the token in `Bearer TOKEN`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Passes or refuses requests. Adds headers to every answer so that foreign pages cannot use the answer.
pub(crate) async fn stand(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_openai = request.uri().path() == "/v1" || request.uri().path().starts_with("/v1/");
    let verdict = guard.judge(request.method(), request.uri(), request.headers());
    let mut response = match verdict {
        Verdict::Pass if needs_no_token(request.uri().path()) => next.run(request).await,
        Verdict::Pass => match admit(request.extensions()).await {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        },
        Verdict::ForeignHost => Problem::foreign_host().into_response(),
        Verdict::ForeignOrigin => Problem::foreign_origin().into_response(),
        Verdict::Unauthorized if wants_page(&request) => login_form::form(Attempt::None),
        Verdict::Unauthorized => Problem::unauthorized().into_response(),
    };
    if is_openai {
        response = problem::in_openai_shape(response);
    }
    let headers = response.headers_mut();
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    );
    // If a foreign page opens our page in a window, this header hides the window from the scripts of the foreign
    // page.
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    // With the value `no-referrer`, browsers would send `Origin: null` for our own login form, and the guard would
    // refuse the login.
    headers.entry(header::REFERRER_POLICY).or_insert(HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether the request asks for the page of the live view. If such a request has no valid token, the answer is the
/// login form, because a person sees the answer in a browser.
fn wants_page(request: &Request) -> bool {
    request.uri().path() == "/" && matches!(*request.method(), Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests;
