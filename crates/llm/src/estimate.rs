//! Estimates token counts, for servers that do not report them.

use crate::chat::{Arguments, Message, Part, Reply, Request, ToolCall, Usage, UsageSource};
use crate::tokens::estimate_tokens;
use crate::tool::Tool;

/// Estimated tokens of one picture, sound or file. The size in bytes tells nothing about the tokens, so every medium
/// gets the same number.
const TOKENS_PER_MEDIUM: u64 = 1_000;

/// Estimates the tokens of a request, including its tools.
pub fn estimate_prompt_tokens(request: &Request) -> u64 {
    let messages: u64 = request.messages.iter().map(estimate_message_tokens).sum();
    let tools: u64 = request.tools.iter().map(Tool::tokens).sum();
    messages + tools
}

/// Estimates the usage of a call for which the server reported none.
pub(crate) fn estimate_usage(prompt_tokens: u64, reply: &Reply) -> Usage {
    let text = reply.text.as_deref().map_or(0, estimate_tokens);
    let calls: u64 = reply.tool_calls.iter().map(call_tokens).sum();
    // These fields contain the model's thinking. A service charges for thinking as for any other output, so it counts,
    // too.
    let fields: u64 = reply.extra.values().map(|value| estimate_tokens(&value.to_string())).sum();
    Usage { prompt_tokens, completion_tokens: text + calls + fields, source: UsageSource::Estimated }
}

/// Estimates the tokens of one message, including its media and the fields that only the service understands.
pub fn estimate_message_tokens(message: &Message) -> u64 {
    match message {
        Message::System(text) => estimate_tokens(text),
        Message::User(parts) => parts.iter().map(part_tokens).sum(),
        Message::Assistant { text, tool_calls, extra } => {
            let fields: u64 = extra.values().map(|value| estimate_tokens(&value.to_string())).sum();
            text.as_deref().map_or(0, estimate_tokens)
                + tool_calls.iter().map(call_tokens).sum::<u64>()
                + fields
        }
        Message::Tool { content, media, .. } => {
            let media: u64 =
                media.iter().map(|medium| estimate_tokens(&medium.label) + part_tokens(&medium.part)).sum();
            estimate_tokens(content) + media
        }
    }
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text(text) => estimate_tokens(text),
        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => TOKENS_PER_MEDIUM,
    }
}

fn call_tokens(call: &ToolCall) -> u64 {
    let arguments = match &call.arguments {
        Arguments::Object(object) => estimate_tokens(&serde_json::to_string(object).unwrap_or_default()),
        Arguments::Malformed(text) => estimate_tokens(text),
    };
    estimate_tokens(&call.name) + arguments
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn media_count_by_the_piece_whatever_their_size() {
        let small = Request {
            messages: vec![Message::User(vec![Part::Image {
                mime_type: "image/png".into(),
                data: Bytes::from_static(b"x").into(),
            }])],
            ..Request::default()
        };
        let large = Request {
            messages: vec![Message::User(vec![Part::Image {
                mime_type: "image/png".into(),
                data: vec![0; 1_000_000].into(),
            }])],
            ..Request::default()
        };
        assert_eq!(estimate_prompt_tokens(&small), TOKENS_PER_MEDIUM);
        assert_eq!(estimate_prompt_tokens(&large), TOKENS_PER_MEDIUM);
    }
}
