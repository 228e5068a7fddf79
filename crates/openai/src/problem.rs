//! Errors, in the format of the OpenAI API: `{"error": {"message", "type", "param", "code"}}`.

use axum::Json;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// Why a request was not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) status: StatusCode,
    pub(crate) code: &'static str,
    pub(crate) param: Option<String>,
    pub(crate) message: String,
    pub(crate) again: Again,
}

/// Whether clients should retry automatically.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The client uses the HTTP status to decide whether to retry.
    AsUsual,
    /// A retry would fail in the same way.
    Useless,
}

impl Problem {
    /// Reports an invalid field of the request. `param` is the path of the field in the body.
    pub(crate) fn invalid(code: &'static str, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::refused(StatusCode::BAD_REQUEST, code, message) }
    }

    /// Reports a request that is well-formed but refused.
    pub(crate) fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, param: None, message: message.into(), again: Again::Useless }
    }

    /// Reports a defect of the daemon. The details go to the log, not to the client.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %polity_view::in_full(error), "a request failed");
        let message = "the daemon could not do this; its log says why";
        Self {
            again: Again::AsUsual,
            ..Self::refused(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
        }
    }

    /// Reports that the daemon is shutting down or cannot use its disk. A later retry may succeed.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self {
            again: Again::AsUsual,
            ..Self::refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
        }
    }

    /// Turns an error of the database into a problem.
    pub(crate) fn of_store(error: &polity_store::Error) -> Self {
        match error {
            polity_store::Error::Closed => {
                Self::unavailable("the daemon is shutting down; the task continues when it is back")
            }
            error if error.may_pass() => {
                tracing::error!(error = %polity_view::in_full(error), "a request failed");
                Self::unavailable("the daemon cannot write now; its log says why")
            }
            error => Self::internal(error),
        }
    }

    /// Returns the error object, for a response body or an event of a stream.
    pub(crate) fn body(&self) -> Value {
        let kind = match self.status {
            StatusCode::NOT_FOUND => "not_found_error",
            StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
            status if status.is_client_error() => "invalid_request_error",
            _ => "server_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": self.param, "code": self.code}})
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if self.again == Again::Useless {
            response.headers_mut().insert("x-should-retry", HeaderValue::from_static("false"));
        }
        response
    }
}

/// Answers a request to an unknown path.
pub(crate) async fn not_found() -> Problem {
    Problem::refused(StatusCode::NOT_FOUND, "not_found", "there is nothing here; see docs/openai.md")
}

/// Answers a request with a method that the route does not accept.
pub(crate) async fn wrong_method() -> Problem {
    let message = "this route accepts another method; see docs/openai.md";
    Problem::refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
