//! Converts the result of a server's tool into the output for the agent. Pure.

use crate::bounds::Bounds;
use crate::links::Linked;
use crate::text::{cut, on_one_line};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use polity_hands::call::{Content, File, Output, Source};
use polity_society::tool_group::ServerName;
use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// The content of a result, separated into texts and files.
#[derive(Default)]
struct Sorted {
    texts: Vec<String>,
    files: Vec<File>,
    left_out: usize,
}

/// Returns the output for the agent. `linked` are the resources that the result links to. If the server reports that the
/// call failed, returns the server's reason as the error.
pub(crate) fn output(
    server: &ServerName,
    tool: &str,
    result: CallToolResult,
    linked: Linked,
    bounds: &Bounds,
) -> Result<Output, String> {
    let CallToolResult { content, structured_content, is_error, .. } = result;
    let sorted = sorted(content, linked, bounds);
    let whole = sorted.texts.join("\n");
    let text = cut(&whole, bounds.text_chars);
    if is_error == Some(true) {
        let reason = match (text.is_empty(), structured_content) {
            (true, Some(structured)) => structured.to_string(),
            (true, None) => "the server gives no reason".to_owned(),
            (false, _) => text,
        };
        return Err(cut(&reason, bounds.description_chars));
    }
    let content = match structured_content {
        Some(structured) => Content::Json(with_text(structured, &whole, text)),
        None => Content::Text { origin: on_one_line(&format!("{server}: {tool}"), bounds.line_chars), text },
    };
    let sources = BTreeSet::from([Source::Server(server.clone())]);
    Ok(Output { content, files: sorted.files, referred: None, sources, goes_on: None })
}

/// Returns the structured content of a result. If the text of the result says something else, also returns the text.
/// Most servers repeat the structured content as text, for clients that only read text. `whole` is the text before it
/// was cut; a cut text repeats nothing.
fn with_text(structured: Value, whole: &str, text: String) -> Value {
    let read = serde_json::from_str(whole).unwrap_or_else(|_| Value::String(whole.to_owned()));
    let repeats = read == structured
        || structured.as_object().is_some_and(|object| object.values().any(|value| *value == read));
    if text.is_empty() || repeats {
        structured
    } else {
        json!({"structuredContent": structured, "text": text})
    }
}

fn sorted(content: Vec<ContentBlock>, mut linked: Linked, bounds: &Bounds) -> Sorted {
    let mut sorted = Sorted::default();
    for block in content {
        match block {
            ContentBlock::Text(text) => sorted.texts.push(text.text),
            ContentBlock::Image(image) => {
                sorted.add_encoded(&image.data, Some(image.mime_type), None, bounds)
            }
            ContentBlock::Audio(audio) => {
                sorted.add_encoded(&audio.data, Some(audio.mime_type), None, bounds)
            }
            ContentBlock::Resource(embedded) => sorted.add_resource(embedded.resource, None, bounds),
            ContentBlock::ResourceLink(link) => {
                let (read, why) = match linked.remove(&link.uri) {
                    Some(Ok(read)) => (read, None),
                    Some(Err(why)) => (Vec::new(), Some(why)),
                    None => (Vec::new(), None),
                };
                sorted.texts.push(in_words(&link, why.as_deref(), bounds));
                read.into_iter().for_each(|resource| {
                    sorted.add_resource(resource, link.mime_type.as_deref(), bounds);
                });
            }
            _ => sorted.texts.push("[content of an unknown kind]".to_owned()),
        }
    }
    if sorted.left_out > 0 {
        let note = format!("[{} further files of the result were left out]", sorted.left_out);
        sorted.texts.push(note);
    }
    sorted
}

impl Sorted {
    fn add(
        &mut self,
        bytes: Bytes,
        declared_mime: Option<String>,
        filename: Option<String>,
        bounds: &Bounds,
    ) {
        if self.files.len() < bounds.files {
            self.files.push(File { bytes, declared_mime, filename });
        } else {
            self.left_out += 1;
        }
    }

    fn add_encoded(&mut self, data: &str, mime: Option<String>, filename: Option<String>, bounds: &Bounds) {
        match BASE64_STANDARD.decode(data.trim_ascii()) {
            Ok(bytes) => self.add(bytes.into(), mime, filename, bounds),
            Err(error) => {
                self.texts.push(format!("[a file of the result is not valid base64: {error}]"));
            }
        }
    }

    /// Adds a resource. If the resource does not state its own type, `mime` is its type.
    fn add_resource(&mut self, resource: ResourceContents, mime: Option<&str>, bounds: &Bounds) {
        let mime = mime.map(str::to_owned);
        match resource {
            ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
                self.add(text.into_bytes().into(), mime_type.or(mime), filename(&uri, bounds), bounds);
            }
            ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
                self.add_encoded(&blob, mime_type.or(mime), filename(&uri, bounds), bounds);
            }
            _ => self.texts.push("[a resource of an unknown kind]".to_owned()),
        }
    }
}

/// Returns the last component of the path in a URI.
fn filename(uri: &str, bounds: &Bounds) -> Option<String> {
    let path = uri.split(['?', '#']).next()?;
    let name = on_one_line(path.trim_end_matches('/').rsplit('/').next()?, bounds.line_chars);
    (!name.is_empty()).then_some(name)
}

/// Returns a line of text for a link. `why` is the reason why the resource could not be read.
fn in_words(link: &Resource, why: Option<&str>, bounds: &Bounds) -> String {
    let mime = link.mime_type.as_ref().map(|mime| format!(" ({mime})")).unwrap_or_default();
    let why = why.map(|why| format!("; it could not be read: {why}")).unwrap_or_default();
    on_one_line(&format!("[resource {}: {}{mime}{why}]", link.name, link.uri), bounds.line_chars)
}

#[cfg(test)]
mod tests;
