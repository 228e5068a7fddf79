//! Errors, as `application/problem+json` (RFC 9457).

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

/// Why a request was not served.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
}

impl Problem {
    /// The request is not one that the route takes.
    pub(crate) fn bad_request(detail: String) -> Self {
        Self { status: StatusCode::BAD_REQUEST, code: "invalid_arguments", detail }
    }

    /// It is our fault. What went wrong inside goes to the log, not to the caller.
    pub(crate) fn internal(error: &polity_runtime::Error) -> Self {
        tracing::error!(%error, "a request failed");
        let detail = "the daemon could not do this; its log says why".to_owned();
        Self { status: StatusCode::INTERNAL_SERVER_ERROR, code: "internal_error", detail }
    }
}

/// What is said of a path that is no route.
pub(crate) async fn not_found() -> Problem {
    Problem { status: StatusCode::NOT_FOUND, code: "not_found", detail: "there is nothing here".to_owned() }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let title = self.status.canonical_reason().unwrap_or_default();
        let body = json!({
            "type": "about:blank",
            "title": title,
            "status": self.status.as_u16(),
            "detail": self.detail,
            "error": self.code,
        });
        (self.status, [(header::CONTENT_TYPE, "application/problem+json")], body.to_string()).into_response()
    }
}
