//! Errors of the API, as `application/problem+json` (RFC 9457).

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use polity_runtime::WriteError;
use polity_society::refusal::Refusal;
use polity_store::Error;
use polity_view as view;
use polity_view::in_full;
use serde_json::{Value, json};
use std::any::Any;

/// The content type of an error.
pub(crate) const PROBLEM_JSON: &str = "application/problem+json";

/// Why a request was not served.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    code: &'static str,
    detail: String,
    details: Option<Value>,
    /// Value of `Retry-After`, in seconds.
    retry_after: Option<u16>,
}

impl Problem {
    fn new(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Self {
        Self { status, code, detail: detail.into(), details: None, retry_after: None }
    }

    /// The request does not have the form that the route requires.
    pub(crate) fn bad_request(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "invalid_arguments", detail)
    }

    /// No resource exists at the path, or with the requested id.
    pub(crate) fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", detail)
    }

    /// The thing exists, but there is nothing to explain about it.
    pub(crate) fn nothing_to_explain(id: &str) -> Self {
        let detail = format!("there is nothing to explain about `{id}`");
        Self::new(StatusCode::NOT_FOUND, "nothing_to_explain", detail)
    }

    /// The rules of the society refuse the request. `code` is a stable error code for programs.
    pub(crate) fn refused(
        status: StatusCode,
        code: &'static str,
        detail: impl Into<String>,
        details: Option<Value>,
    ) -> Self {
        Self { details, ..Self::new(status, code, detail) }
    }

    /// The request is well-formed, but its values do not fit the route, or do not fit each other.
    pub(crate) fn unprocessable(
        code: &'static str,
        detail: impl Into<String>,
        details: Option<Value>,
    ) -> Self {
        Self::refused(StatusCode::UNPROCESSABLE_ENTITY, code, detail, details)
    }

    /// The body is too large.
    pub(crate) fn too_large(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", detail)
    }

    /// The body has a content type that the route does not accept, or an encoding that no route accepts.
    pub(crate) fn unsupported(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported_media_type", detail)
    }

    /// The requested range starts after the end of the content.
    pub(crate) fn outside(size: u64) -> Self {
        let detail = format!("the range is outside the content, which has {size} bytes");
        Self::new(StatusCode::RANGE_NOT_SATISFIABLE, "invalid_range", detail)
    }

    /// The body arrives too slowly, or stops arriving.
    pub(crate) fn too_slow() -> Self {
        Self::new(StatusCode::REQUEST_TIMEOUT, "too_slow", "the body arrived too slowly, or stopped arriving")
    }

    /// The request carries no valid token or cookie.
    pub(crate) fn unauthorized() -> Self {
        let advice = "send the token of the data directory: Authorization: Bearer TOKEN";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", advice)
    }

    /// The host of the request is not a name of this daemon.
    pub(crate) fn foreign_host() -> Self {
        let advice = "this host name is not allowed; use a loopback address, or start with --allow-host NAME";
        Self::new(StatusCode::FORBIDDEN, "forbidden_host", advice)
    }

    /// The request comes from a page that the daemon did not serve.
    pub(crate) fn foreign_origin() -> Self {
        let advice = "this request comes from a page that polity did not serve";
        Self::new(StatusCode::FORBIDDEN, "forbidden_origin", advice)
    }

    /// Turns an error of the society into a problem. The details go to the log, not to the client. A failure of the
    /// disk is reported as temporary.
    pub(crate) fn internal(error: &Error) -> Self {
        if matches!(error, Error::Closed) {
            // The daemon is shutting down; neither the client nor the daemon is at fault.
            return Self::ending();
        }
        if matches!(error, Error::ReadOnly) {
            return Self::read_only("nothing can be changed");
        }
        if error.may_pass() {
            tracing::warn!(error = %in_full(error), "a request failed because the data directory is unusable for now");
            let advice = "the data directory cannot be used just now; try again later, the log says why";
            return Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", advice);
        }
        tracing::error!(error = %in_full(error), "a request failed");
        Self::defect()
    }

    /// A defect of polity, without details for the client.
    pub(crate) fn defect() -> Self {
        let detail = "polity could not do this; its log says why";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", detail)
    }

    /// The request needs a running society, but this society is open read-only.
    pub(crate) fn read_only(why: &str) -> Self {
        let advice = format!("{why}: the data directory is open read-only; start a polity: polity serve");
        Self::new(StatusCode::CONFLICT, "read_only", advice)
    }

    /// The daemon is shutting down.
    pub(crate) fn ending() -> Self {
        Self::unavailable("the daemon is shutting down")
    }

    /// There are too many requests of this kind now. The client may retry after `retry_after` seconds.
    pub(crate) fn busy(detail: impl Into<String>, retry_after: u16) -> Self {
        Self { retry_after: Some(retry_after), ..Self::unavailable(detail) }
    }

    /// The daemon is shutting down, or something that it needs is unavailable.
    pub(crate) fn unavailable(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", detail)
    }
}

/// Answers a request to an unknown path.
pub(crate) async fn no_route() -> Problem {
    Problem::not_found("there is no such path; /api/openapi.json lists all paths")
}

/// Answers a request whose method the path does not accept.
pub(crate) async fn no_method() -> Problem {
    let detail = "this path does not accept this method; /api/openapi.json lists those that it accepts";
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", detail)
}

/// Answers a request whose handler panicked.
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let said = panic.downcast_ref::<&str>().copied();
    let said = said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no text");
    tracing::error!(panic = said, "a request caused a panic");
    Problem::defect().into_response()
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::internal(&error)
    }
}

impl From<WriteError> for Problem {
    fn from(error: WriteError) -> Self {
        let status = match &error {
            WriteError::Store(error) => return Self::internal(error),
            WriteError::NoTask(_) | WriteError::NoRole(_) => StatusCode::NOT_FOUND,
            WriteError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            WriteError::KeyReused | WriteError::Stopped { .. } => StatusCode::CONFLICT,
            WriteError::Invalid(_) | WriteError::UnknownService { .. } => StatusCode::UNPROCESSABLE_ENTITY,
            WriteError::Refused { refusal, .. } => match refusal.as_ref() {
                // These refusals mean a conflict with the current state of the society; the request itself is valid.
                Refusal::AgentTerminated { .. }
                | Refusal::LimitReached { .. }
                | Refusal::MailboxFull { .. } => StatusCode::CONFLICT,
                _ => StatusCode::UNPROCESSABLE_ENTITY,
            },
        };
        Self::refused(status, error.code(), error.to_string(), error.details())
    }
}

/// The code and the text of a problem, attached to its response for [`in_openai_shape`].
#[derive(Clone)]
struct ProblemText {
    code: &'static str,
    detail: String,
}

/// Converts a problem response into the format of the OpenAI API. Returns any other response unchanged.
pub(crate) fn in_openai_shape(mut response: Response) -> Response {
    let Some(ProblemText { code, detail }) = response.extensions_mut().remove::<ProblemText>() else {
        return response;
    };
    let kind = if response.status().is_client_error() { "invalid_request_error" } else { "server_error" };
    let error = json!({"error": {"message": detail, "type": kind, "param": null, "code": code}});
    let (mut head, _) = response.into_parts();
    head.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    head.headers.remove(header::CONTENT_LENGTH);
    Response::from_parts(head, error.to_string().into())
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let text = ProblemText { code: self.code, detail: self.detail.clone() };
        let body = view::Problem {
            problem_type: "about:blank".to_owned(),
            title: self.status.canonical_reason().unwrap_or_default().to_owned(),
            status: self.status.as_u16(),
            detail: self.detail,
            error: self.code.to_owned(),
            details: self.details,
        };
        let mut response = (self.status, axum::Json(body)).into_response();
        response.extensions_mut().insert(text);
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(PROBLEM_JSON));
        if matches!(self.status, StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE) {
            // The connection must close, because the server does not wait for the rest of the body.
            response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        if let Some(after) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(after));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_society_that_has_ended_is_no_defect() {
        let problem = Problem::from(Error::Closed);
        assert_eq!((problem.status.as_u16(), problem.code), (503, "unavailable"));
        let problem = Problem::from(Error::Panicked);
        assert_eq!((problem.status.as_u16(), problem.code), (500, "internal_error"));
    }

    #[test]
    fn whoever_is_to_come_back_is_told_when() {
        let response = Problem::busy("later", 5).into_response();
        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(response.headers()[header::RETRY_AFTER], "5");
        assert!(!Problem::ending().into_response().headers().contains_key(header::RETRY_AFTER));
    }
}
