//! `POST /api/messages`: the person writes to an agent, as JSON or as a form with files.

use crate::bodies::MOST_STRUCTURE;
use crate::extract::{is_content_type, json};
use crate::openapi::{Routes, Verb};
use crate::problem::Problem;
use crate::shared::Shared;
use crate::upload::{self, Form};
use axum::Json;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use polity_bounds::weigh;
use polity_runtime::{Attachment, MAX_KEY_BYTES, NewArtifact, UserMessage};
use polity_society::id::{AgentId, ArtifactId, ServiceId, TaskId};
use polity_society::workspace::Root;
use polity_view::Posted;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json as value};
use std::sync::Arc;

const KEY: HeaderName = HeaderName::from_static("idempotency-key");
/// Bytes that the JSON of a message may have in addition to its text.
const EXTRA: usize = 64 * 1024;
/// Maximum number of bytes of a character in JSON: the length of an escape such as `\u0000`.
const BYTES_PER_CHARACTER: usize = 6;

/// A message from the person, with either `text` or `payload`, not both.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewMessage {
    /// The receiver: an agent's id, or the name of a role that only one agent has; root by default.
    to: Option<String>,
    /// The text of the message.
    text: Option<String>,
    /// The message in the form that agents use: an object with `text`, `message_type` and other fields.
    payload: Option<Map<String, Value>>,
    /// References of the attached artifacts, such as `artifact:abc123`.
    #[serde(default)]
    attachments: Vec<String>,
    /// The task that the message belongs to. Without it, a message to root begins a new task.
    task: Option<TaskId>,
    /// The service that root uses for a new task.
    service: Option<ServiceId>,
    /// The directory in which the agents of a new task work on files and run commands: an absolute path on the machine
    /// of the daemon. `:ro` at the end of the path makes the directory read-only. If this field is absent,
    /// polity makes a directory.
    workspace: Option<String>,
}

pub(super) fn routes(routes: &mut Routes) {
    routes.add(Verb::Post, "/api/messages", "postMessage", post, |operation| {
        let form = value!({
            "type": "object",
            "description": "The same fields as in JSON. `payload` is JSON text, `attachments` may be repeated, and \
                            `attachment` is a file and may be repeated, too.",
            "properties": {
                "to": {"type": "string"},
                "text": {"type": "string"},
                "payload": {"type": "string"},
                "attachments": {"type": "array", "items": {"type": "string"}},
                "task": {"type": "string"},
                "service": {"type": "string"},
                "workspace": {"type": "string"},
                "attachment": {
                    "type": "array",
                    "items": {"type": "string", "contentMediaType": "application/octet-stream"},
                },
            },
        });
        let key = value!({"type": "string", "minLength": 1, "maxLength": MAX_KEY_BYTES});
        operation
            .summary("Writes to an agent in the name of the person. A message to root begins a task.")
            .header("Idempotency-Key", "Under the same key, the same message is sent only once.", key)
            .takes::<NewMessage>()
            .takes_content("multipart/form-data", form)
            .gives::<Posted>(201, "The message was accepted and will not be lost.")
            .gives::<Posted>(200, "The message was accepted before, under the same key.")
            .refuses(&[400, 404, 408, 409, 413, 415, 422])
    });
}

async fn post(
    State(shared): State<Arc<Shared>>,
    headers: HeaderMap,
    request: Request,
) -> Result<(StatusCode, Json<Posted>), Problem> {
    let key = key(&headers)?;
    let (message, files) = if Form::is_in(&headers) {
        let _place = upload::place(&shared.uploads).await?;
        of_form(upload::form(request, upload::most_bytes(&shared), "attachment").await?)?
    } else if is_content_type(&headers, "application/json") {
        let characters = shared.society.config().limits.max_message_chars;
        let most = usize::try_from(characters).unwrap_or(usize::MAX).saturating_mul(BYTES_PER_CHARACTER);
        (json(request, most.saturating_add(EXTRA)).await?, Vec::new())
    } else {
        return Err(Problem::unsupported("send application/json or multipart/form-data"));
    };
    let posted = shared.society.write(assembled(message, files, key)?).await?;
    let status = if posted.duplicate { StatusCode::OK } else { StatusCode::CREATED };
    Ok((status, Json(posted)))
}

/// Returns the idempotency key of a request.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(key) = headers.get(KEY) else { return Ok(None) };
    let key = key.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len()));
    let key = key.ok_or_else(|| {
        Problem::bad_request(format!("`Idempotency-Key` needs 1 to {MAX_KEY_BYTES} visible ASCII characters"))
    })?;
    Ok(Some(key.to_owned()))
}

/// Turns the parsed request into the message that the society takes.
fn assembled(
    message: NewMessage,
    files: Vec<NewArtifact>,
    key: Option<String>,
) -> Result<UserMessage, Problem> {
    let payload = match (message.text, message.payload) {
        (Some(_), Some(_)) => {
            return Err(Problem::unprocessable(
                "invalid_arguments",
                "give `text` or `payload`, not both",
                None,
            ));
        }
        (text, None) => Value::String(text.unwrap_or_default()),
        (None, Some(payload)) => Value::Object(payload),
    };
    let mut attachments = Vec::new();
    for reference in &message.attachments {
        let id = ArtifactId::from_reference(reference).ok_or_else(|| {
            let detail = "a reference looks like artifact:abc123";
            Problem::unprocessable("artifact_not_found", detail, Some(value!({"ref": reference})))
        })?;
        attachments.push(Attachment::Stored(id));
    }
    let workspace = message.workspace.map_or(Ok(Root::Made), |text| Root::parse(&text));
    let workspace =
        workspace.map_err(|error| Problem::unprocessable("invalid_arguments", error.to_string(), None))?;
    attachments.extend(files.into_iter().map(Attachment::New));
    Ok(UserMessage {
        to: message.to.unwrap_or_else(|| AgentId::root().to_string()),
        payload,
        attachments,
        task: message.task,
        service: message.service,
        workspace,
        key,
    })
}

/// Takes the message and the files out of a form.
fn of_form(form: Form) -> Result<(NewMessage, Vec<NewArtifact>), Problem> {
    let mut message = NewMessage::default();
    for (name, text) in form.texts {
        match name.as_str() {
            "to" => message.to = Some(text),
            "text" => message.text = Some(text),
            "payload" => {
                if weigh(text.as_bytes()) > MOST_STRUCTURE {
                    return Err(Problem::too_large("`payload` has too many JSON values"));
                }
                let payload = serde_json::from_str(&text);
                message.payload =
                    Some(payload.map_err(|error| Problem::bad_request(format!("`payload`: {error}")))?);
            }
            "attachments" => message.attachments.push(text),
            "task" => message.task = Some(TaskId::new(text)),
            "service" => message.service = Some(ServiceId::new(text)),
            "workspace" => message.workspace = Some(text),
            _ => return Err(Problem::bad_request(format!("there is no field `{name}`"))),
        }
    }
    let mut files = Vec::new();
    for file in form.files {
        if file.field != "attachment" {
            return Err(Problem::bad_request("files must be in fields called `attachment`"));
        }
        files.push(NewArtifact {
            bytes: file.bytes,
            declared_mime: file.content_type,
            filename: file.filename,
            label: None,
            meta: Map::new(),
        });
    }
    Ok((message, files))
}
