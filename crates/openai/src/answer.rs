//! Turns a message into the answer that a client gets. Pure.

use crate::problem::Problem;
use axum::http::StatusCode;
use polity_runtime::view::MessageView;
use polity_society::message::{Expects, RESULT, SCHEMA_ERRORS};
use serde_json::Value;

/// What is given as an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// What was asked for.
    Text(String),
    /// What an agent asks, where an answer of a certain form was asked for: clients must not read it as that.
    Question(String),
}

impl Answer {
    /// The words.
    pub(crate) fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Question(text) => text,
        }
    }
}

/// In which form the answer is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In any.
    Free,
    /// As JSON that fits a schema.
    Schema,
}

/// What a message says as an answer, or why it is none.
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
    let reason = if errors.is_empty() { "it was not given as JSON".to_owned() } else { errors.join("; ") };
    let message =
        format!("the answer (message {}) does not fit the schema that was asked for: {reason}", message.id);
    Err(Problem::refused(StatusCode::BAD_GATEWAY, "answer_does_not_fit", message))
}

/// What an answer says, with its artifacts by name and reference: the same text whenever it is made.
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
