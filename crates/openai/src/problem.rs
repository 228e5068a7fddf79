//! Errors, in the shape that OpenAI clients read: `{"error": {"message", "type", "param", "code"}}`.

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

/// Whether clients may try the same once more by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// They decide by the status.
    AsUsual,
    /// It would lead to the same.
    Useless,
}

impl Problem {
    /// What was sent is not what the endpoint takes; `param` says where.
    pub(crate) fn invalid(code: &'static str, param: impl Into<String>, message: impl Into<String>) -> Self {
        Self { param: Some(param.into()), ..Self::refused(StatusCode::BAD_REQUEST, code, message) }
    }

    /// It was understood and is not done.
    pub(crate) fn refused(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self { status, code, param: None, message: message.into(), again: Again::Useless }
    }

    /// It is our fault. What went wrong inside goes to the log, not to the caller.
    pub(crate) fn internal(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = %polity_runtime::in_full(error), "a request failed");
        let message = "the daemon could not do this; its log says why";
        Self {
            again: Again::AsUsual,
            ..Self::refused(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", message)
        }
    }

    /// The daemon is ending, or the disk refuses: later it may go.
    pub(crate) fn unavailable(message: impl Into<String>) -> Self {
        Self {
            again: Again::AsUsual,
            ..Self::refused(StatusCode::SERVICE_UNAVAILABLE, "unavailable", message)
        }
    }

    /// An error of the database.
    pub(crate) fn of_store(error: &polity_runtime::Error) -> Self {
        match error {
            polity_runtime::Error::Closed => {
                Self::unavailable("the daemon is ending; the task goes on when it is back")
            }
            error if error.may_pass() => {
                tracing::error!(error = %polity_runtime::in_full(error), "a request failed");
                Self::unavailable("the daemon cannot write now; its log says why")
            }
            error => Self::internal(error),
        }
    }

    /// The object that clients read, also within a stream.
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

/// What is said of a path that is no route.
pub(crate) async fn not_found() -> Problem {
    Problem::refused(StatusCode::NOT_FOUND, "not_found", "there is nothing here; see docs/openai.md")
}

/// What is said where a route takes another method.
pub(crate) async fn wrong_method() -> Problem {
    let message = "this route takes another method; see docs/openai.md";
    Problem::refused(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}
