//! Writes a request as the body of a Chat Completions call.
//!
//! The serializer writes the fields directly, and builds no tree of JSON values first. Media are encoded only once,
//! because `Data` keeps their base64 form for the next request.

mod messages;
mod parts;
pub(crate) mod pieces;

#[cfg(test)]
mod tests;

use crate::chat::{Message, Part, Request, ToolChoice};
use crate::endpoint::{Endpoint, Stream, StreamUsage};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::Value;

/// A request to one endpoint, in the form in which the server gets it.
///
/// The serialized body is valid even for the strictest server, because it has only fields that the API defines. There
/// are two exceptions: the fields of the endpoint's `extra_body`, and fields of earlier answers that only the service
/// understands.
#[derive(Clone, Copy, Debug)]
pub struct Body<'a> {
    request: &'a Request,
    endpoint: &'a Endpoint,
}

impl<'a> Body<'a> {
    /// Combines a request with the endpoint that decides how the request is written.
    pub fn new(request: &'a Request, endpoint: &'a Endpoint) -> Self {
        Self { request, endpoint }
    }

    /// Returns the body as JSON. If the buffer had to grow, the media would be copied. So the buffer is large enough
    /// from the start.
    ///
    /// # Errors
    ///
    /// Fails if a field of the endpoint's `extra_body` is not JSON. The configuration's parser already prevents that.
    pub fn to_json(&self) -> serde_json::Result<Vec<u8>> {
        let mut json = Vec::with_capacity(self.request.messages.iter().map(length_of).sum::<usize>() + SLACK);
        serde_json::to_writer(&mut json, self)?;
        Ok(json)
    }
}

/// Bytes reserved for everything except the messages, such as the tools. This is a generous guess.
const SLACK: usize = 64 * 1024;

/// Estimates how many bytes a message takes in the body. The estimate assumes that JSON doubles the length of every
/// text, so it is usually too high.
fn length_of(message: &Message) -> usize {
    let of_part = |part: &Part| match part {
        Part::Text(text) => 2 * text.len(),
        Part::Image { data, .. } | Part::Audio { data, .. } | Part::File { data, .. } => {
            data.len().div_ceil(3) * 4 + 512
        }
    };
    match message {
        Message::System(text) => 2 * text.len(),
        Message::User(parts) => parts.iter().map(of_part).sum(),
        Message::Assistant { text, .. } => 1024 + 2 * text.as_ref().map_or(0, String::len),
        Message::Tool { content, media, .. } => {
            512 + 2 * content.len() + media.iter().map(|medium| of_part(&medium.part)).sum::<usize>()
        }
    }
}

/// Returns whether the answer will be streamed. The dialect decides this, unless `extra_body` contains the field
/// `stream`: `extra_body` overrides every field of the body.
pub(crate) fn stream_of(endpoint: &Endpoint) -> Stream {
    match endpoint.extra_body.get("stream") {
        Some(Value::Bool(stream)) => Stream::from(*stream),
        _ => endpoint.dialect.stream,
    }
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Endpoint { model, max_tokens, extra_body, dialect, .. } = self.endpoint;
        let mut body = Fields { map: serializer.serialize_map(None)?, replaced: extra_body };
        body.put("model", model)?;
        body.put("messages", &messages::arrange(&self.request.messages, dialect))?;
        if !self.request.tools.is_empty() {
            body.put("tools", &self.request.tools)?;
            match self.request.tool_choice {
                ToolChoice::Auto => {}
                ToolChoice::None => body.put("tool_choice", "none")?,
            }
        }
        if let Some(max_tokens) = max_tokens {
            body.put(dialect.max_tokens_field.into(), max_tokens)?;
        }
        match (stream_of(self.endpoint), dialect.stream_usage) {
            (Stream::Whole, _) => body.put("stream", &false)?,
            (Stream::Streamed, StreamUsage::NotAsked) => body.put("stream", &true)?,
            (Stream::Streamed, StreamUsage::Asked) => {
                body.put("stream", &true)?;
                body.put("stream_options", &StreamOptions { include_usage: true })?;
            }
        }
        body.finish()
    }
}

/// Writes the fields of a JSON object. The fields in `replaced` override fields of the same name.
struct Fields<'a, M> {
    map: M,
    replaced: &'a serde_json::Map<String, Value>,
}

impl<M: SerializeMap> Fields<'_, M> {
    fn put<T: Serialize + ?Sized>(&mut self, name: &str, value: &T) -> Result<(), M::Error> {
        if self.replaced.contains_key(name) {
            return Ok(());
        }
        self.map.serialize_entry(name, value)
    }

    fn finish(mut self) -> Result<M::Ok, M::Error> {
        for (name, value) in self.replaced {
            self.map.serialize_entry(name, value)?;
        }
        self.map.end()
    }
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}
