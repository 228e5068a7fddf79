//! Why a tool refused a call, as a text for the client's model.

use polity_runtime::{SteerError, WriteError};
use serde_json::{Value, json};

/// The reason why a tool refused a call, for the model that made the call.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    /// A stable code, the same as in the HTTP API.
    pub(crate) code: String,
    /// What failed, and what the caller should do.
    pub(crate) message: String,
    /// Further data about the refusal. Its fields depend on `code`.
    pub(crate) details: Option<Value>,
}

impl Refusal {
    pub(crate) fn unknown(message: &str) -> Self {
        Self { code: "not_found".to_owned(), message: message.to_owned(), details: None }
    }

    /// Reports that the daemon is shutting down and therefore ends calls that are waiting.
    pub(crate) fn ending() -> Self {
        let message = "the daemon is shutting down; tasks continue when it is back";
        Self { code: "unavailable".to_owned(), message: message.to_owned(), details: None }
    }

    /// Returns the refusal as the JSON text that the model reads.
    pub(crate) fn text(&self) -> String {
        let mut told = json!({"error": self.code, "message": self.message});
        if let Some(details) = &self.details {
            told["details"] = details.clone();
        }
        told.to_string()
    }
}

impl From<polity_store::Error> for Refusal {
    fn from(error: polity_store::Error) -> Self {
        if matches!(error, polity_store::Error::Closed) {
            return Self::ending();
        }
        tracing::error!(error = %polity_view::in_full(&error), "a tool call failed");
        let (code, message) = if error.may_pass() {
            ("unavailable", "the daemon cannot do this now; its log says why; try again later")
        } else {
            ("internal_error", "the daemon could not do this; its log says why")
        };
        Self { code: code.to_owned(), message: message.to_owned(), details: None }
    }
}

impl From<WriteError> for Refusal {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Store(error) => error.into(),
            error => {
                Self { code: error.code().to_owned(), message: error.to_string(), details: error.details() }
            }
        }
    }
}

impl From<SteerError> for Refusal {
    fn from(error: SteerError) -> Self {
        let code = match error {
            SteerError::Store(error) => return error.into(),
            SteerError::Unknown(_) | SteerError::NoTask(_) => "not_found",
            SteerError::Ended(_) => "agent_terminated",
            SteerError::User => "invalid_arguments",
        };
        Self { code: code.to_owned(), message: error.to_string(), details: None }
    }
}
