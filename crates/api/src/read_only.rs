//! What stands before the routes of a society that is only read: they answer, and whatever would change something, or
//! would wait for something to happen, is refused.

use crate::events::wants_stream;
use crate::problem::Problem;
use axum::extract::Request;
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Why a request is refused that needs a society that runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    /// It changes something.
    Writer,
    /// It waits for what happens.
    Events,
}

/// What a request needs beside the data, judged by its head.
fn needs(method: &Method, headers: &HeaderMap) -> Option<Needs> {
    if !method.is_safe() {
        return Some(Needs::Writer);
    }
    wants_stream(headers).then_some(Needs::Events)
}

/// Lets requests pass that only read.
pub(crate) async fn stand(request: Request, next: Next) -> Response {
    match needs(request.method(), request.headers()) {
        None => next.run(request).await,
        Some(Needs::Writer) => Problem::read_only("nothing can be changed").into_response(),
        Some(Needs::Events) => Problem::read_only("nothing happens that could be followed").into_response(),
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
