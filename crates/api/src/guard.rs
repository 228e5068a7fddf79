//! Who may ask. Everything but `GET /healthz` needs the token or the cookie of a browser that has shown it; and
//! whoever asks, a request that names a host of somebody else, or comes from a page of somebody else, is refused.
//!
//! [`Guard::judge`] decides, from the head of a request alone; [`stand`] acts.

mod host;
mod token;

pub use host::Hosts;
pub use token::Token;

use crate::login;
use crate::problem::{self, Problem};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, COOKIE, HOST, ORIGIN};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use token::Tickets;

/// What tells whether a request may pass.
#[derive(Debug)]
pub struct Guard {
    hosts: Hosts,
    token: Token,
    pub(crate) tickets: Tickets,
}

/// What is said of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It may pass.
    Pass,
    /// It calls us by a name that is not ours.
    ForeignHost,
    /// It comes from a page that is not ours.
    ForeignOrigin,
    /// It does not show who sends it.
    Unauthorized,
}

impl Guard {
    /// A guard that takes one token, under certain names.
    pub fn new(token: Token, hosts: Hosts) -> Self {
        Self { hosts, token, tickets: Tickets::default() }
    }

    /// The token.
    pub(crate) fn token(&self) -> &Token {
        &self.token
    }

    /// What the cookie is called. Cookies know no ports, so two daemons of one machine would overwrite each other's.
    pub(crate) fn cookie_name(&self) -> String {
        format!("polity-session-{}", self.hosts.port())
    }

    /// Judges a request by its head.
    pub(crate) fn judge(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        if uri.path() == "/healthz" && (method == Method::GET || method == Method::HEAD) {
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
        if uri.path() == "/login" {
            // Whether that lets anybody in is decided there.
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
        // A browser sends cookies by itself; what changes something must come from our own page.
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

/// Whether a browser says that the request comes from a page of ours, or from the person. A page on another port of
/// this machine is the same *site*, so that its requests have our cookie.
fn is_of_our_page(headers: &HeaderMap) -> bool {
    let says = |name: &'static str| headers.get(name).map(HeaderValue::as_bytes);
    match says("sec-fetch-site") {
        None | Some(b"same-origin" | b"none") => true,
        Some(_) => says("sec-fetch-dest") == Some(b"document"),
    }
}

/// The value of a header that stands there once.
fn only(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    let mut all = headers.get_all(name).iter();
    let value = all.next()?.to_str().ok()?;
    all.next().is_none().then_some(value)
}

/// The token of `Bearer TOKEN`.
fn bearer(value: &str) -> Option<&str> {
    let (scheme, token) = value.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// Lets requests pass or refuses them, and sees to it that no answer can be used by a page of somebody else.
pub(crate) async fn stand(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let is_openai = request.uri().path() == "/v1" || request.uri().path().starts_with("/v1/");
    let verdict = guard.judge(request.method(), request.uri(), request.headers());
    let mut response = match verdict {
        Verdict::Pass => next.run(request).await,
        Verdict::ForeignHost => Problem::foreign_host().into_response(),
        Verdict::ForeignOrigin => Problem::foreign_origin().into_response(),
        Verdict::Unauthorized if wants_page(&request) => login::form(login::Attempt::None),
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
    // A page that opens ours gets no hold of its window.
    headers.insert(
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    );
    // Not `no-referrer`, with which a browser calls the origin of our own form `null`.
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}

/// Whether it is a person who opens the page, and so can fill in a form.
fn wants_page(request: &Request) -> bool {
    request.uri().path() == "/" && matches!(*request.method(), Method::GET | Method::HEAD)
}

#[cfg(test)]
mod tests;
