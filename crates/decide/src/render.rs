//! Builds a request from a conversation, for the service that is configured now. The result is never stored.
//!
//! [`artifacts_of`] lists the artifacts that the conversation shows. The module `fetch` of the runtime then loads
//! these artifacts, except those for which [`route_of`] chooses a description. [`render`] builds the messages. The
//! functions of this module are plain: the same conversation, service and artifacts give the same request.

mod content;
mod system;

pub use system::{SystemFacts, system_message};

use crate::history::{History, turn_failed};
use bytes::Bytes;
use content::ArtifactRenderer;
use polity_llm::{Data, Message as Wire, Part, ToolCall};
use polity_routing::{FileTypes, Reason, Routable, Route, route};
use polity_society::contact::KnownParty;
use polity_society::content::{Artifact, Capabilities, Kind};
use polity_society::defuse::{defuse, json_line};
use polity_society::id::{AgentId, ArtifactId, CallId, ServiceId};
use polity_society::limits::Limits;
use polity_society::message::{Body, Message};
use polity_society::mime::MimeType;
use polity_society::notice::Notice;
use polity_society::present::present;
use polity_society::text::{TextKey, Texts};
use polity_store::record::{Content, Record, Replied, ToolResult};
use polity_view::Shown;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;

/// The facts that decide how a request shows a conversation to one service.
pub struct Sight<'a> {
    pub service: &'a ServiceId,
    /// What the service's model can take and give.
    pub capabilities: &'a Capabilities,
    /// The file types that the service's server accepts.
    pub file_types: &'a FileTypes,
    /// Maximum size of all media in one request, in bytes after base64 encoding.
    pub media_bytes: u64,
    pub limits: &'a Limits,
    /// The texts in the current language.
    pub texts: &'a Texts,
    /// The contacts of the agent whose model gets the request. The agent could forward content to its contacts.
    pub contacts: &'a [KnownParty],
    /// The service of each contact.
    pub contact_services: &'a HashMap<AgentId, ServiceId>,
    /// All services of the catalogue.
    pub services: &'a [Taker],
    /// Whether media are shown, or only described.
    pub media: MediaUse,
    /// The artifacts that the service has refused.
    pub refused: &'a BTreeSet<ArtifactId>,
}

/// A service, and what its model and server take.
#[derive(Clone, Debug)]
pub struct Taker {
    pub id: ServiceId,
    pub capabilities: Capabilities,
    pub file_types: FileTypes,
}

impl Taker {
    /// Returns whether the service, according to its declared capabilities, takes this artifact.
    pub fn takes(&self, artifact: &Artifact) -> bool {
        !matches!(route(&Routable::of(artifact), &self.capabilities, &self.file_types), Route::Describe(_))
    }
}

/// Whether media are shown to a model that takes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MediaUse {
    /// Media are shown.
    Shown,
    /// Media are described, because the server has just refused them.
    Described,
}

/// An artifact, and the content that was loaded from the store for a request.
#[derive(Clone, Debug)]
pub struct Fetched {
    /// The metadata from the artifact's row.
    pub artifact: Artifact,
    pub bytes: Fetch,
}

/// The loaded content of an artifact, or why there is none.
#[derive(Clone, Debug)]
pub enum Fetch {
    /// Nothing was loaded, because the request only describes the artifact.
    Spared,
    /// The bytes of a text.
    Text(Bytes),
    /// A medium in a form that the service takes, with the MIME type of that form.
    Medium(MimeType, Data),
    /// The text of a document that the model does not take.
    Extracted(String),
    /// There is no content, because the artifact could not be converted to a picture that the service takes.
    LeftOut(Reason),
    /// The store could not read the bytes.
    Failed,
}

/// The conversation as messages, and how the artifacts in it are shown.
#[derive(Debug)]
pub struct Rendered {
    /// The messages after the system message.
    pub messages: Vec<Wire>,
    /// How each artifact is shown, in order.
    pub shown: Vec<Shown>,
    /// For each record that is shown, the range of `messages` that shows this record.
    pub spans: Vec<Range<usize>>,
}

/// A share of the window, in percent. If the requests take more than this share, the advice to the agent to save space
/// becomes more urgent.
const SHARP_PERCENT: u64 = 90;

/// Returns the artifacts that a conversation shows, each once.
pub fn artifacts_of(history: &History) -> Vec<ArtifactId> {
    let mut ids = Vec::new();
    for record in history.told().all() {
        for id in artifacts_in(record, &history.messages) {
            if !ids.contains(&id) {
                ids.push(id);
            }
        }
    }
    ids
}

fn artifacts_in(record: &Record, messages: &HashMap<String, Message>) -> Vec<ArtifactId> {
    match record {
        Record::Heard { message } => match messages.get(message.as_str()).map(|message| &message.body) {
            Some(Body::Payload(payload)) => payload.attachments.clone(),
            Some(Body::Notice(_)) | None => Vec::new(),
        },
        Record::ToolFinished { result: ToolResult::Artifact { artifact, .. }, .. } => vec![artifact.clone()],
        Record::ToolFinished { result: ToolResult::Outside { artifacts, .. }, .. } => artifacts.clone(),
        _ => Vec::new(),
    }
}

/// Decides how an artifact is shown to this service.
pub fn route_of(artifact: &Artifact, sight: &Sight<'_>) -> Route {
    if artifact.kind == Kind::Image && polity_media::is_never_converted(artifact.mime_type.as_str()) {
        return Route::Describe(Reason::NotConvertible);
    }
    let route = route(&Routable::of(artifact), sight.capabilities, sight.file_types);
    let is_refused = sight.media == MediaUse::Described || sight.refused.contains(&artifact.id);
    match route {
        Route::Image | Route::Audio(_) | Route::File if is_refused => Route::Describe(Reason::Refused),
        // The size of pictures does not matter here: they are scaled to fit.
        Route::Audio(_) | Route::File => match too_large(artifact.size, sight) {
            Some(reason) => Route::Describe(reason),
            None => route,
        },
        Route::Text | Route::Image | Route::Describe(_) => route,
    }
}

/// Decides how an artifact is shown after the runtime has tried to load its content.
fn route_of_fetched(fetched: &Fetched, sight: &Sight<'_>) -> Route {
    let route = route_of(&fetched.artifact, sight);
    match (&route, &fetched.bytes) {
        (Route::Describe(_), _) => route,
        (_, Fetch::LeftOut(reason)) => Route::Describe(reason.clone()),
        (_, Fetch::Medium(_, data)) => too_large(data.len() as u64, sight).map_or(route, Route::Describe),
        (_, Fetch::Spared | Fetch::Text(_) | Fetch::Extracted(_) | Fetch::Failed) => route,
    }
}

/// Returns a reason if a medium of this size is too large for a request, even without other media.
fn too_large(bytes: u64, sight: &Sight<'_>) -> Option<Reason> {
    let encoded = encoded_size(bytes);
    let limit = sight.media_bytes;
    (encoded > limit).then_some(Reason::TooLarge { encoded, limit })
}

/// Turns the conversation into the messages of a request.
pub fn render(history: &History, fetched: &HashMap<ArtifactId, Fetched>, sight: &Sight<'_>) -> Rendered {
    let told = history.told();
    let records: Vec<&Record> = told.all().collect();
    let old = too_old(&records, history, fetched, sight);
    let mut content = ArtifactRenderer::new(sight, fetched, old);
    let mut messages = Vec::with_capacity(records.len() + 1);
    if let Some(summary) = told.summary {
        let text = sight.texts.fill(TextKey::SystemSummary, &[("summary", &defuse(summary, sight.texts))]);
        messages.push(Wire::User(vec![Part::Text(text)]));
    }
    let mut calls: HashMap<&str, &ToolCall> = HashMap::new();
    let mut spans = Vec::with_capacity(records.len());
    for (position, record) in records.iter().enumerate() {
        let before = messages.len();
        match record {
            Record::Heard { message } => {
                if let Some(message) = history.messages.get(message.as_str()) {
                    messages.push(Wire::User(heard(message, history, position, &mut content)));
                }
            }
            Record::Noticed { notice } => messages.push(noticed(notice, sight.texts)),
            Record::Failed { reason } | Record::Stopped { reason } => {
                messages.push(noticed(&turn_failed(reason), sight.texts));
            }
            Record::Replied(replied) => {
                calls.extend(replied.calls.iter().map(|call| (call.id.as_str(), call)));
                messages.extend(replied_message(replied, sight.service));
            }
            Record::ToolFinished { call, result } => {
                messages.push(finished(call, result, position, &mut content));
            }
            Record::Status { used, window } => {
                messages.push(Wire::User(vec![Part::Text(status(*used, *window, sight.texts))]));
            }
            Record::ToolStarted { .. }
            | Record::Asked { .. }
            | Record::Judged { .. }
            | Record::Compacted { .. } => {}
        }
        spans.push(before..messages.len());
    }
    Rendered { messages, shown: content.shown(), spans }
}

/// Returns the message that shows a notice of the system to the model. Some notices are given within a turn, others say
/// that a turn ended early.
fn noticed(notice: &Notice, texts: &Texts) -> Wire {
    let header = texts.get(TextKey::MessageFromSystem);
    Wire::User(vec![Part::Text(format!("{header}\n{}", defuse(&notice.text(texts), texts)))])
}

/// Returns the lines that tell the agent how full its window is, and what to do about that.
fn status(used: u64, window: u64, texts: &Texts) -> String {
    let percent = used.saturating_mul(100) / window.max(1);
    let numbers = [("used", used), ("window", window), ("percent", percent)]
        .map(|(name, number)| (name, number.to_string()));
    let values: Vec<(&str, &str)> = numbers.iter().map(|(name, number)| (*name, number.as_str())).collect();
    let advice = if percent > SHARP_PERCENT { TextKey::ContextNearlyFull } else { TextKey::ContextFilling };
    format!("{}\n{}", texts.fill(TextKey::ContextStatus, &values), texts.get(advice))
}

fn heard(
    message: &Message,
    history: &History,
    position: usize,
    content: &mut ArtifactRenderer<'_>,
) -> Vec<Part> {
    let presentation = present(message, &history.asked, content.texts());
    let mut parts = vec![Part::Text(presentation.opening)];
    if let Body::Payload(payload) = &message.body {
        for attachment in &payload.attachments {
            parts.extend(content.attachment(attachment, position));
        }
    }
    parts.extend(presentation.closing.map(Part::Text));
    join_texts(parts)
}

/// Joins texts that follow one another into one part, so that a message without media is one text.
fn join_texts(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (joined.last_mut(), part) {
            (Some(Part::Text(before)), Part::Text(text)) => {
                before.push('\n');
                before.push_str(&text);
            }
            (_, part) => joined.push(part),
        }
    }
    joined
}

/// Returns an earlier answer of the model as a message. Fields that only one service understands are sent only to
/// that service.
fn replied_message(replied: &Replied, service: &ServiceId) -> Option<Wire> {
    if replied.is_empty() {
        return None;
    }
    let own = replied.service.as_ref() == Some(service);
    let calls = replied.calls.iter().map(|call| {
        let mut call = call.clone();
        if !own {
            call.extra.clear();
        }
        call
    });
    Some(Wire::Assistant {
        text: replied.text.clone(),
        tool_calls: calls.collect(),
        extra: if own { replied.extra.clone() } else { serde_json::Map::new() },
    })
}

fn finished(call: &CallId, result: &ToolResult, position: usize, content: &mut ArtifactRenderer<'_>) -> Wire {
    let (text, media) = match result {
        ToolResult::Json(value) => (json_line(value), Vec::new()),
        ToolResult::Artifact { artifact, offset, limit, ignored } => {
            let most = content.most();
            let ignored = shown_names(ignored, most / 4);
            let most = most - chars_of_ignored(ignored);
            let (text, media) = content.tool_result(artifact, call, (*offset, *limit), position, most);
            (with_ignored(text, ignored), media)
        }
        ToolResult::Outside { content: returned, artifacts, .. } => {
            let mut text = outside(returned, content.texts());
            let mut media = Vec::new();
            for artifact in artifacts {
                let (line, medium) = content.file_of_result(artifact, call, position);
                text.push('\n');
                text.push_str(&line);
                media.extend(medium);
            }
            (text, media)
        }
    };
    Wire::Tool { call_id: call.to_string(), content: text, media }
}

/// Returns the content of the result of an outside tool. A text is quoted. Otherwise a line of the text could look like
/// a line that the system wrote.
fn outside(content: &Content, texts: &Texts) -> String {
    match content {
        Content::Json(value) => json_line(value),
        Content::Text { origin, text } => {
            let origin = defuse(&origin.replace(['\n', '\r'], " "), texts);
            let heading = texts.fill(TextKey::ToolQuoted, &[("origin", &origin)]);
            format!("{heading}\n{}", defuse(text, texts))
        }
    }
}

/// Returns the first of these names: as many as a result can list with at most `most` characters.
fn shown_names(ignored: &[String], most: usize) -> &[String] {
    let fits = |count: &usize| chars_of_ignored(&ignored[..*count]) <= most;
    &ignored[..(0..=ignored.len()).rev().find(fits).unwrap_or(0)]
}

/// Returns how many characters [`with_ignored`] adds to a result.
fn chars_of_ignored(ignored: &[String]) -> usize {
    // `with_ignored` turns `{}` into `{"ignored":[…]}`. The two characters `{` and `}` were there before, so they do
    // not count. If the result has other fields, a comma comes in addition. So the number is the length minus two, plus
    // one.
    if ignored.is_empty() { 0 } else { with_ignored("{}".to_owned(), ignored).chars().count() - 1 }
}

/// Adds to the result of a tool call the names of the arguments that the tool does not know.
fn with_ignored(text: String, ignored: &[String]) -> String {
    if ignored.is_empty() {
        return text;
    }
    match serde_json::from_str(&text) {
        Ok(serde_json::Value::Object(mut result)) => {
            result.insert("ignored".to_owned(), ignored.into());
            json_line(&result)
        }
        // Cannot happen: every result is an object.
        _ => text,
    }
}

/// Why a request describes media and does not show them, although each medium alone would fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Crowded {
    /// The media are older than other media, and the request has no room for all media.
    Out,
    /// The media of the same message or tool result together are too large for a request.
    Together,
}

/// Finds the records whose media do not fit into a request. Returns the positions of these records, each with the
/// reason. A medium that would not fit even alone does not count here, because it is described anyway ([`route_of`]).
///
/// If the media take more than the request has room for, the oldest media are left out until the other media take at
/// most half of the room. Then there is room for new media, and the next requests need not change earlier messages
/// again. So a server that caches the beginning of a prompt can still use its cache.
fn too_old(
    records: &[&Record],
    history: &History,
    fetched: &HashMap<ArtifactId, Fetched>,
    sight: &Sight<'_>,
) -> BTreeMap<usize, Crowded> {
    let room = sight.media_bytes;
    let mut shown: VecDeque<(usize, u64)> = VecDeque::new();
    let mut taken = 0;
    let mut old = BTreeMap::new();
    let encoded_in_request = |fetched: &Fetched| match (&fetched.bytes, route_of_fetched(fetched, sight)) {
        (_, Route::Describe(_) | Route::Text) => 0,
        (Fetch::Medium(_, data), Route::Image | Route::Audio(_) | Route::File) => {
            encoded_size(data.len() as u64)
        }
        (_, Route::Image | Route::Audio(_) | Route::File) => 0,
    };
    for (position, record) in records.iter().enumerate() {
        let media = artifacts_in(record, &history.messages);
        let encoded: u64 = media.iter().filter_map(|id| fetched.get(id)).map(encoded_in_request).sum();
        if encoded == 0 {
            continue;
        }
        if encoded > room {
            old.insert(position, Crowded::Together);
            continue;
        }
        shown.push_back((position, encoded));
        taken += encoded;
        if taken <= room {
            continue;
        }
        // The media of the newest record always stay. They fit if the media of all other records are left out.
        while taken > room / 2 && shown.len() > 1 {
            let Some((position, encoded)) = shown.pop_front() else { break };
            old.insert(position, Crowded::Out);
            taken -= encoded;
        }
    }
    old
}

/// Returns how many bytes a medium takes in a request: base64 turns three bytes into four.
fn encoded_size(bytes: u64) -> u64 {
    bytes.div_ceil(3).saturating_mul(4)
}

#[cfg(test)]
mod tests;
