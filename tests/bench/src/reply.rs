//! The replies of the scripted model, and their form in HTTP: one JSON object, or a stream of chunks.

use std::fmt::Write as _;

use serde_json::{Value, json};

/// Number of characters in one chunk of a streamed text. This is about a token.
const PIECE: usize = 8;
/// The text of one chunk of a long stream.
const SMALL: &str = "abcd";

/// A tool call of the model.
pub(crate) struct Call {
    pub(crate) id: String,
    pub(crate) tool: &'static str,
    pub(crate) arguments: Value,
}

/// The model's reply to a request.
pub(crate) enum Reply {
    Text(&'static str),
    Calls(Vec<Call>),
    /// A text of this many small pieces. The server sends each piece on its own.
    Pieces(usize),
}

/// A rendered answer: the chunks of a stream, or one body.
pub(crate) enum Rendered {
    Whole(String),
    /// The chunks are sent together.
    Stream(String),
    /// Each chunk is sent on its own: first `first`, then `count` times `piece`, then `last`.
    Long {
        first: String,
        piece: String,
        count: usize,
        last: String,
    },
}

impl Reply {
    /// Renders the reply to a request.
    pub(crate) fn render(&self, request: &[u8]) -> Rendered {
        if !contains(request, br#""stream":true"#) {
            return Rendered::Whole(self.whole());
        }
        let mut stream = String::new();
        delta(&mut stream, &json!({"role": "assistant", "content": ""}));
        match self {
            Self::Text(text) => {
                for piece in text.as_bytes().chunks(PIECE) {
                    delta(&mut stream, &json!({"content": String::from_utf8_lossy(piece)}));
                }
            }
            Self::Calls(calls) => {
                for (index, call) in calls.iter().enumerate() {
                    let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
                    let call =
                        json!({"index": index, "id": call.id, "type": "function", "function": function});
                    delta(&mut stream, &json!({"tool_calls": [call]}));
                }
            }
            Self::Pieces(count) => {
                let (mut piece, mut last) = (String::new(), String::new());
                delta(&mut piece, &json!({"content": SMALL}));
                self.end(&mut last);
                return Rendered::Long { first: stream, piece, count: *count, last };
            }
        }
        self.end(&mut stream);
        Rendered::Stream(stream)
    }

    fn finish_reason(&self) -> &'static str {
        match self {
            Self::Calls(_) => "tool_calls",
            Self::Text(_) | Self::Pieces(_) => "stop",
        }
    }

    fn end(&self, stream: &mut String) {
        let choice = json!({"index": 0, "delta": {}, "finish_reason": self.finish_reason()});
        chunk(stream, &json!([choice]), &Value::Null);
        chunk(stream, &json!([]), &usage());
        stream.push_str("data: [DONE]\n\n");
    }

    fn whole(&self) -> String {
        let mut message = json!({"role": "assistant", "content": null});
        match self {
            Self::Text(text) => message["content"] = json!(text),
            Self::Pieces(count) => message["content"] = json!(SMALL.repeat(*count)),
            Self::Calls(calls) => {
                let call = |call: &Call| {
                    let function = json!({"name": call.tool, "arguments": call.arguments.to_string()});
                    json!({"id": call.id, "type": "function", "function": function})
                };
                message["tool_calls"] = calls.iter().map(call).collect();
            }
        }
        let choice = json!({"index": 0, "message": message, "finish_reason": self.finish_reason()});
        json!({
            "id": "chatcmpl-bench", "object": "chat.completion", "created": 0, "model": "bench",
            "choices": [choice], "usage": usage(),
        })
        .to_string()
    }
}

fn usage() -> Value {
    json!({"prompt_tokens": 2000, "completion_tokens": 20, "total_tokens": 2020})
}

fn delta(stream: &mut String, delta: &Value) {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": null});
    chunk(stream, &json!([choice]), &Value::Null);
}

fn chunk(stream: &mut String, choices: &Value, usage: &Value) {
    let chunk = json!({
        "id": "chatcmpl-bench", "object": "chat.completion.chunk", "created": 0, "model": "bench",
        "choices": choices, "usage": usage,
    });
    // Writing into a text cannot fail.
    let _ = write!(stream, "data: {chunk}\n\n");
}

/// Returns whether the bytes contain `wanted`.
pub(crate) fn contains(bytes: &[u8], wanted: &[u8]) -> bool {
    bytes.windows(wanted.len()).any(|window| window == wanted)
}
