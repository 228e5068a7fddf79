//! Turns a message of an agent into the answer that a client gets. Does no I/O.

use crate::problem::Problem;
use axum::http::StatusCode;
use polity_society::message::{Expects, RESULT, SCHEMA_ERRORS};
use polity_view::MessageView;
use serde_json::Value;

/// An answer to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The answer itself, in the requested form.
    Text(String),
    /// The client requested JSON, but an agent asks a question. The client must not parse the question as JSON.
    Question(String),
}

impl Answer {
    /// Returns the text of the answer or of the question.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Question(text) => text,
        }
    }
}

/// The form of the answer that the client requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Any text.
    Free,
    /// JSON that fits a schema.
    Schema,
}

/// Turns a message of an agent into an answer, or reports why the message does not have the requested form.
pub(crate) fn of(message: &MessageView, form: Form) -> Result<Answer, Problem> {
    if form == Form::Free {
        return Ok(Answer::Text(text(message)));
    }
    if message.expects == Expects::Answer {
        return Ok(Answer::Question(text(message)));
    }
    let field = |name: &str| message.payload.as_ref().and_then(|payload| payload.get(name));
    if let Some(result) = field(RESULT) {
        return Ok(Answer::Text(result.to_string()));
    }
    let errors = field(SCHEMA_ERRORS).and_then(Value::as_array).into_iter().flatten();
    let errors: Vec<&str> = errors.filter_map(Value::as_str).collect();
    let reason = if errors.is_empty() { "it is not JSON".to_owned() } else { errors.join("; ") };
    let message = format!("the answer (message {}) does not fit the requested schema: {reason}", message.id);
    Err(Problem::refused(StatusCode::BAD_GATEWAY, "answer_does_not_fit", message))
}

/// Renders the text of an answer, with a line for each attached artifact. The same message must always give the same
/// text, because the fingerprint of the conversation depends on the text.
fn text(answer: &MessageView) -> String {
    let mut text = answer.text.trim().to_owned();
    if text.is_empty()
        && let Some(payload) = &answer.payload
    {
        text = Value::Object(payload.clone()).to_string();
    }
    for (index, artifact) in answer.attachments.iter().enumerate() {
        let name = artifact.filename.as_deref().unwrap_or("artifact");
        let gap = match index {
            0 if text.is_empty() => "",
            0 => "\n\n",
            _ => "\n",
        };
        text += &format!(
            "{gap}- {name} ({}, {}, {} bytes)",
            artifact.reference, artifact.mime_type, artifact.size
        );
    }
    text
}
