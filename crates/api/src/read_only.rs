//! The middleware in front of the routes of a read-only society.
//!
//! The middleware refuses requests that change something or follow events.

use crate::events::wants_stream;
use crate::problem::Problem;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Why a request needs a running society.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// The request changes something.
    Writer,
    /// The request follows events.
    Events,
}

/// Returns why a request needs a running society, or `None` if stored data is enough. Reads only the head of the
/// request.
fn needs(method: &Method, headers: &HeaderMap) -> Option<Needs> {
    if !method.is_safe() {
        return Some(Needs::Writer);
    }
    wants_stream(headers).then_some(Needs::Events)
}

/// Passes requests that only read, and refuses all others.
pub(crate) async fn stand(request: Request, next: Next) -> Response {
    match needs(request.method(), request.headers()) {
        None => next.run(request).await,
        Some(Needs::Writer) => Problem::read_only("nothing can be changed").into_response(),
        Some(Needs::Events) => Problem::read_only("there are no new events to follow").into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::{HeaderValue, header};

    #[test]
    fn what_needs_a_society_that_runs() {
        let check = |method: &str, accept: &'static str, expect: Option<Needs>| {
            let accepted = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static(accept))]);
            assert_eq!(needs(&method.parse().unwrap(), &accepted), expect, "{method} {accept}");
        };
        check("GET", "application/json", None);
        check("HEAD", "*/*", None);
        check("GET", "text/event-stream", Some(Needs::Events));
        check("GET", "application/json, Text/Event-Stream;q=0.5", Some(Needs::Events));
        for method in ["POST", "PATCH", "PUT", "DELETE", "BREW"] {
            check(method, "application/json", Some(Needs::Writer));
        }
    }
}
