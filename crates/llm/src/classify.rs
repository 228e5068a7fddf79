//! Classifies failed answers by their status and their text.
//!
//! Servers use different statuses for the same failure: if the model cannot see a picture, one server answers 500 and
//! another server answers 400. So known phrases in the text take precedence over most statuses.

use crate::chat::{CallError, FailureKind};
use serde_json::Value;

/// A classified failure with the server's message. The message may still contain keys or media: see `scrub`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
}

/// Longest answer, in bytes.
pub(crate) const MAX_ANSWER: usize = 32 * 1024 * 1024;
/// Maximum memory that the parsed JSON of an answer may take, in bytes. The memory is not measured but estimated, and
/// the estimate may be twice as high as the real memory.
pub(crate) const MAX_PARSED: usize = 2 * MAX_ANSWER;

/// Phrases with which servers report that a request is longer than the context window.
const OVERFLOW: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size",
    "context_window_exceeded",
    "model_context_window_exceeded",
    "maximum context length",
    "context length exceeded",
    "context length of",
    "exceeds the context",
    "exceeds the available context",
    "exceed context window",
    "exceeds context window",
    "exceeded model token limit",
    "longer than the model's context",
    "greater than the context length",
    "larger than the context",
    "tokens to keep from the initial prompt",
    "maximum prompt length",
    "prompt is too long",
    "prompt too long",
    "input is too long",
    "input length exceeds",
    "input token count",
    "too many tokens",
    "reduce the length of the messages",
    "reduce the length of your prompt",
    "range of input length should be",
];

/// Phrases with which servers report that they cannot parse the model's tool call.
const CALL: &[&str] = &[
    // In the text of the error, this phrase is followed by the name of a grammar, for example "peg-native format".
    "produced output that does not match the expected",
    "error parsing tool call",
    "failed to parse tool call",
    "failed to parse input at pos",
    "failed to parse the generated",
    "could not parse tool call",
    "unable to parse tool call",
    "failed to parse function call",
    "error parsing function call",
    "tool_use_failed",
    "failed to call a function",
    "malformed_function_call",
    "malformed function call",
];

/// Phrases with which servers refuse tools, either for one model or until somebody starts the server with other
/// options.
const TOOLS: &[&str] = &[
    "does not support tools",
    "does not support tool",
    "do not support tool",
    "doesn't support tool",
    "not support function calling",
    "tools are not supported",
    "tool use is not supported",
    "tool calling is not supported",
    "function calling is not supported",
    "tool choice requires --enable-auto-tool-choice",
    "tools param requires --jinja",
    "no endpoints found that support tool use",
];

/// Phrases with which servers report that they have loaded no model.
const NOTHING_LOADED: &[&str] =
    &["no models loaded", "no model loaded", "no model is loaded", "no models are loaded"];

/// Phrases with which servers report that a model does not exist, if the text also contains the word `model`.
const NO_SUCH_MODEL: &[&str] = &[
    "not found",
    "not_found",
    "does not exist",
    "is not a valid model",
    "not installed",
    "invalid model identifier",
];

/// Phrases with which servers refuse a picture, a sound or a file.
const MEDIA: &[&str] = &[
    "image input is not supported",
    "audio input is not supported",
    "video input is not supported",
    "unsupported content[].type",
    "unsupported content part",
    "unsupported chat content part type",
    "unsupported content type in message",
    "does not support image",
    "does not support vision",
    "does not support audio",
    "does not support video",
    "does not support file",
    "does not support multimodal",
    "do not support image",
    "doesn't support image",
    "not support image input",
    "no endpoints found that support image",
    "no endpoints found that support file",
    "no endpoints found that support audio",
    "no endpoints found that support input audio",
    "no endpoints found that support video",
    "image_url is only supported by certain models",
    "unknown variant `image_url`",
    "unknown variant `input_audio`",
    "unknown variant `file`",
    "is not a multimodal model",
    "at most 0 image",
    "at most 0 audio",
    "image(s) may be provided in one request",
    "missing data required for multimodal",
    "invalid message format",
    "invalid image",
    "invalid_image",
    "invalid_base64_image",
    "image_parse_error",
    "unsupported image",
    "unsupported_image",
    "unsupported audio",
    "unsupported file",
    "unsupported_file",
    "unsupported mime type",
    "could not process image",
    "cannot process image",
    "failed to decode image",
    "failed to decode audio",
    "failed to load image",
    "failed to load audio",
    "failed to process image",
    "cannot identify image",
    "image data you provided",
    "image exceeds",
    "image too large",
    "image is too large",
    "image_too_large",
    "invalid value: 'image_url'",
    "invalid value: 'input_audio'",
    "invalid value: 'file'",
    "invalid file data",
    "invalid audio",
    "invalid 'messages' in payload",
];

/// Words for media, and for the parts of a model or a request that take media.
const NAMES_OF_MEDIA: &[&str] = &[
    "image",
    "images",
    "image_url",
    "input_image",
    "picture",
    "pictures",
    "photo",
    "vision",
    "visual",
    "mmproj",
    "audio",
    "input_audio",
    "video",
    "video_url",
    "pdf",
    "media",
    "modality",
    "modalities",
    "multimodal",
    "attachment",
    "attachments",
];

/// Phrases with which servers reject something.
const COMPLAINTS: &[&str] = &[
    "not support",
    "n't support",
    "unsupported",
    "no support",
    "not allowed",
    "not accept",
    "n't accept",
    "not permitted",
    "not enabled",
    "not available",
    "not implemented",
    "not recognized",
    "not a valid",
    "not valid",
    "only text",
    "text only",
    "text-only",
    "only supports",
    "cannot",
    "can not",
    "can't",
    "unable to",
    "failed to",
    "could not",
    "invalid",
    "unknown",
    "unexpected",
    "unrecognized",
    "too large",
    "too big",
    "too many",
    "exceed",
    "corrupt",
    "required",
];

impl CallError {
    /// Returns whether the server may have failed because of the media in the request. Use this only if the request had
    /// media. Without media, the same status or the same words mean something else.
    pub fn may_refuse_media(&self) -> bool {
        match (self.kind, self.status) {
            (
                FailureKind::Misconfigured
                | FailureKind::CallNotParsed
                | FailureKind::ToolsRefused
                | FailureKind::NoSuchModel
                | FailureKind::NothingLoaded
                | FailureKind::WrongAddress,
                _,
            ) => false,
            (FailureKind::MediaRefused, _) | (_, Some(400 | 413 | 415 | 422)) => true,
            // The server sent its refusal inside an answer with a success status. So the status of the refusal is
            // unknown, and media may be the cause.
            (FailureKind::Refused, Some(200)) => true,
            (FailureKind::Refused | FailureKind::Unauthorized | FailureKind::Passing, Some(_)) => {
                complains_of_media(&self.message.to_lowercase())
            }
            _ => false,
        }
    }
}

/// Returns whether a text in lower case contains a complaint and a word for media. The result means something only if
/// the text answers a request that contains media.
fn complains_of_media(text: &str) -> bool {
    let text = text.replace("multi-modal", "multimodal");
    let mut words = text.split(|char: char| !char.is_alphanumeric() && char != '_');
    MEDIA.iter().any(|phrase| text.contains(phrase))
        || words.any(|word| NAMES_OF_MEDIA.contains(&word))
            && COMPLAINTS.iter().any(|complaint| text.contains(complaint))
}

/// Some servers reject a key with another status than 401. These are phrases from their answers.
const KEY: &[&str] = &["api_key_invalid", "invalid_api_key", "api key not valid", "incorrect api key"];

/// Phrases with which servers report that an account has used up its quota or credit. A later attempt would fail too.
const EXHAUSTED: &[&str] = &["insufficient_quota", "billing_hard_limit_reached", "credit balance is too low"];

/// Classifies an answer with a failing status.
pub(crate) fn classify(status: u16, body: &str) -> Failure {
    let json: Option<Value> = serde_json::from_str(body).ok();
    let said = json.as_ref().map(said_by).unwrap_or_default();
    let message = said.message.clone().unwrap_or_else(|| message_of_text(status, body));
    let haystack = format!("{} {}", said.codes, said.message.as_deref().unwrap_or(body)).to_lowercase();
    Failure { kind: kind_of(status, &haystack), message }
}

/// Finds the error in a JSON answer that has a success status, or in a chunk of a stream.
pub(crate) fn error_in(value: &Value) -> Option<Failure> {
    let object = value.as_object()?;
    let marked = |name| object.get(name).and_then(Value::as_str) == Some("error");
    let has_error = object.get("error").is_some_and(|error| match error {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) | Value::Number(_) | Value::Array(_) | Value::Object(_) => true,
    });
    if !has_error && !marked("object") && !marked("type") {
        return None;
    }
    let said = said_by(value);
    let haystack = format!("{} {}", said.codes, said.message.as_deref().unwrap_or_default()).to_lowercase();
    let kind = kind_of(said.status.unwrap_or_else(|| status_of_codes(&haystack)), &haystack);
    let message = said.message.unwrap_or_else(|| "an error without a message".to_owned());
    Some(Failure { kind, message })
}

/// Describes a body that is neither JSON nor a stream from a chat model.
pub(crate) fn not_an_answer(body: &str) -> Failure {
    let message = match first_line(body) {
        _ if is_html(body) => format!("an HTML page{} instead of a model's answer", title(body)),
        Some(line) => format!("not the answer of a chat model: {line}"),
        None => "an empty answer".to_owned(),
    };
    Failure { kind: FailureKind::NotAnAnswer, message }
}

/// Describes an answer that is longer than [`MAX_ANSWER`] or takes more memory than [`MAX_PARSED`].
pub(crate) fn too_large() -> Failure {
    let message = format!("an answer of more than {} MiB", MAX_ANSWER / 1024 / 1024);
    Failure { kind: FailureKind::NotAnAnswer, message }
}

fn kind_of(status: u16, text: &str) -> FailureKind {
    let says = |phrases: &[&str]| phrases.iter().any(|phrase| text.contains(phrase));
    match status {
        401 => FailureKind::Unauthorized,
        429 if says(EXHAUSTED) => FailureKind::Refused,
        // Some servers answer 429 to a request that can never fit into the context window.
        429 if says(&["context_length_exceeded"]) => FailureKind::ContextOverflow,
        429 => FailureKind::RateLimited,
        _ if says(CALL) => FailureKind::CallNotParsed,
        _ if says(OVERFLOW) => FailureKind::ContextOverflow,
        413 if text.contains("token") => FailureKind::ContextOverflow,
        _ if says(TOOLS) => FailureKind::ToolsRefused,
        _ if says(NOTHING_LOADED) => FailureKind::NothingLoaded,
        400 | 404 if text.contains("model") && says(NO_SUCH_MODEL) => FailureKind::NoSuchModel,
        _ if says(MEDIA) => FailureKind::MediaRefused,
        403 => FailureKind::Unauthorized,
        400..500 if says(KEY) => FailureKind::Unauthorized,
        408 | 409 => FailureKind::Passing,
        500.. => FailureKind::Passing,
        _ => FailureKind::Refused,
    }
}

/// Guesses the HTTP status of an error that contains no status, from the codes in the error.
fn status_of_codes(text: &str) -> u16 {
    let says = |phrase| text.contains(phrase);
    if says("rate_limit") || says("ratelimit") || says("insufficient_quota") {
        429
    } else if says("authentication_error") || says("invalid_api_key") {
        401
    } else if says("invalid_request") || says("badrequest") || says("not_found") {
        400
    } else {
        500
    }
}

/// The contents of an error object: its message for people, its codes for programs, and an HTTP status if the object
/// contains one.
#[derive(Default)]
struct ErrorContents {
    message: Option<String>,
    codes: String,
    status: Option<u16>,
}

fn said_by(value: &Value) -> ErrorContents {
    // Some servers wrap the error in an array.
    let value = value.as_array().and_then(|errors| errors.first()).unwrap_or(value);
    let error = match value.get("error") {
        Some(error @ (Value::Object(_) | Value::String(_))) => error,
        Some(_) | None => value,
    };
    let text =
        |value: &Value| value.as_str().map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned);
    let field = |name| error.get(name).and_then(text).or_else(|| value.get(name).and_then(text));
    let message = text(error).or_else(|| field("message")).or_else(|| detail(value));
    let mut said = ErrorContents { message, ..ErrorContents::default() };
    for name in ["code", "type", "status"] {
        let Some(code) = error.get(name) else { continue };
        if let Some(word) = code.as_str() {
            said.codes.push_str(word);
            said.codes.push(' ');
        }
        let number = code.as_u64().or_else(|| code.as_str()?.parse().ok());
        let status =
            number.and_then(|number| u16::try_from(number).ok()).filter(|status| (400..600).contains(status));
        said.status = said.status.or(status);
    }
    said
}

/// Reads the `detail` field of FastAPI: a text, or a list of problems.
fn detail(value: &Value) -> Option<String> {
    match value.get("detail")? {
        Value::String(text) => Some(text.clone()),
        Value::Array(problems) => {
            let texts: Vec<&str> =
                problems.iter().filter_map(|problem| problem.get("msg")?.as_str()).collect();
            (!texts.is_empty()).then(|| texts.join("; "))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => None,
    }
}

fn message_of_text(status: u16, body: &str) -> String {
    if is_html(body) {
        return format!("HTTP {status} with an HTML page{}", title(body));
    }
    match first_line(body) {
        Some(line) => line.to_owned(),
        None => format!("HTTP {status} with an empty body"),
    }
}

fn first_line(body: &str) -> Option<&str> {
    body.lines().map(str::trim).find(|line| !line.is_empty())
}

pub(crate) fn is_html(body: &str) -> bool {
    let start: String = body.trim_start_matches('\u{feff}').trim_start().chars().take(15).collect();
    let start = start.to_ascii_lowercase();
    ["<!doctype html", "<html", "<head", "<body", "<center", "<h1"].iter().any(|tag| start.starts_with(tag))
}

fn title(body: &str) -> String {
    let between = || {
        let (_, after) = body.split_once("<title>")?;
        let (title, _) = after.split_once("</title>")?;
        first_line(title)
    };
    between().map(|title| format!(" ({title})")).unwrap_or_default()
}

#[cfg(test)]
mod tests;
