//! Guesses at token counts, for servers that do not count.

use crate::chat::{Arguments, Message, Part, Reply, Request, Tool, ToolCall, Usage, UsageSource};

/// What one picture, sound or file is taken to cost: their bytes say nothing about it.
const TOKENS_PER_MEDIUM: u64 = 1_000;

/// Estimates the tokens of a text of so many characters: four a token, rounded up.
pub fn estimate_tokens(characters: usize) -> u64 {
    characters.div_ceil(4) as u64
}

/// Estimates the tokens of a request, its tools included.
pub fn estimate_prompt_tokens(request: &Request) -> u64 {
    let messages: u64 = request.messages.iter().map(message_tokens).sum();
    let tools: u64 = request.tools.iter().map(tool_tokens).sum();
    messages + tools
}

/// Estimates what a call cost whose server did not say.
pub(crate) fn estimate_usage(prompt_tokens: u64, reply: &Reply) -> Usage {
    let text = reply.text.as_deref().map_or(0, text_tokens);
    let calls: u64 = reply.tool_calls.iter().map(call_tokens).sum();
    // Thinking is paid for like any other output.
    let fields: u64 = reply.extra.values().map(|value| text_tokens(&value.to_string())).sum();
    Usage { prompt_tokens, completion_tokens: text + calls + fields, source: UsageSource::Estimated }
}

fn message_tokens(message: &Message) -> u64 {
    match message {
        Message::System(text) => text_tokens(text),
        Message::User(parts) => parts.iter().map(part_tokens).sum(),
        Message::Assistant { text, tool_calls, extra } => {
            let fields: u64 = extra.values().map(|value| text_tokens(&value.to_string())).sum();
            text.as_deref().map_or(0, text_tokens) + tool_calls.iter().map(call_tokens).sum::<u64>() + fields
        }
        Message::Tool { content, media, .. } => {
            let media: u64 =
                media.iter().map(|medium| text_tokens(&medium.label) + part_tokens(&medium.part)).sum();
            text_tokens(content) + media
        }
    }
}

fn part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text(text) => text_tokens(text),
        Part::Image { .. } | Part::Audio { .. } | Part::File { .. } => TOKENS_PER_MEDIUM,
    }
}

fn call_tokens(call: &ToolCall) -> u64 {
    let arguments = match &call.arguments {
        Arguments::Object(object) => text_tokens(&serde_json::to_string(object).unwrap_or_default()),
        Arguments::Malformed(text) => text_tokens(text),
    };
    text_tokens(&call.name) + arguments
}

fn tool_tokens(tool: &Tool) -> u64 {
    text_tokens(&tool.name) + text_tokens(&tool.description) + text_tokens(&tool.parameters.to_string())
}

fn text_tokens(text: &str) -> u64 {
    estimate_tokens(text.chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn check(characters: usize, expect: u64) {
        assert_eq!(estimate_tokens(characters), expect);
    }

    #[test]
    fn four_characters_are_a_token_rounded_up() {
        check(0, 0);
        check(1, 1);
        check(4, 1);
        check(5, 2);
        check(4_000, 1_000);
    }

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

    #[test]
    fn characters_count_not_bytes() {
        let request =
            Request { messages: vec![Message::System("四个汉字".into())], ..Request::default() };
        assert_eq!(estimate_prompt_tokens(&request), 1);
    }
}
