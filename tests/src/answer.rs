//! The answers that a script gives in the place of a model, and how they are encoded in HTTP.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use crate::conversation::Conversation;

/// A tool call in the answer of a script. The server chooses its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// The name of the tool. It is not checked, so a script can call a tool that the request does not offer.
    pub tool: String,
    /// The arguments as the model writes them: JSON text, valid or not.
    pub arguments: String,
}

impl Call {
    /// Creates a call whose arguments are valid JSON.
    pub fn new(tool: &str, arguments: Value) -> Self {
        Self { tool: tool.to_owned(), arguments: arguments.to_string() }
    }
}

/// The response of the scripted model to a request.
///
/// The server sends the answer as a stream if the request asks for a stream, otherwise in one piece.
#[derive(Clone, Debug)]
pub struct Answer(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Reply(Reply),
    Error { status: u16, body: Value, retry_after: Option<String> },
    Raw { status: u16, content_type: String, body: Bytes },
    Endless { content_type: String, piece: Bytes },
    Hang,
    Reset,
}

#[derive(Clone, Debug)]
struct Reply {
    text: Option<String>,
    calls: Vec<Call>,
    finish_reason: Option<String>,
    usage: Option<(u64, u64)>,
    fields: Map<String, Value>,
    pause: Duration,
    ending: Ending,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
    Complete,
    Half,
    Torn,
    Stuck,
}

impl Answer {
    /// Answers with text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::reply(Some(text.into()), Vec::new())
    }

    /// Calls one tool.
    pub fn call(tool: &str, arguments: Value) -> Self {
        Self::calls(vec![Call::new(tool, arguments)])
    }

    /// Calls several tools in one batch.
    pub fn calls(calls: Vec<Call>) -> Self {
        Self::reply(None, calls)
    }

    /// Answers with neither text nor calls.
    pub fn nothing() -> Self {
        Self::reply(None, Vec::new())
    }

    /// Answers with an HTTP error status and a JSON body.
    pub fn error(status: u16, body: Value) -> Self {
        Self(Kind::Error { status, body, retry_after: None })
    }

    /// Answers 200 with exactly this body.
    pub fn raw(content_type: &str, body: impl Into<Bytes>) -> Self {
        Self::raw_with_status(200, content_type, body)
    }

    /// Answers with this status and exactly this body.
    pub fn raw_with_status(status: u16, content_type: &str, body: impl Into<Bytes>) -> Self {
        Self(Kind::Raw { status, content_type: content_type.to_owned(), body: body.into() })
    }

    /// Answers 200 and repeats the same piece for ever.
    pub fn endless(content_type: &str, piece: impl Into<Bytes>) -> Self {
        Self(Kind::Endless { content_type: content_type.to_owned(), piece: piece.into() })
    }

    /// Keeps the connection open and never answers.
    pub fn hang() -> Self {
        Self(Kind::Hang)
    }

    /// Resets the connection. The client does not get a single byte of an answer.
    pub fn reset() -> Self {
        Self(Kind::Reset)
    }

    /// Adds a call to a reply.
    pub fn and_call(self, tool: &str, arguments: Value) -> Self {
        self.change(|reply| reply.calls.push(Call::new(tool, arguments)))
    }

    /// Adds text to a reply that calls tools.
    pub fn and_say(self, text: impl Into<String>) -> Self {
        self.change(|reply| reply.text = Some(text.into()))
    }

    /// Adds a field to the assistant message, such as `reasoning_content`.
    pub fn and_field(self, name: &str, value: Value) -> Self {
        self.change(|reply| {
            reply.fields.insert(name.to_owned(), value);
        })
    }

    /// Sets the finish reason of the reply, instead of the usual `stop` or `tool_calls`.
    pub fn finishing(self, reason: &str) -> Self {
        self.change(|reply| reply.finish_reason = Some(reason.to_owned()))
    }

    /// Reports this usage, in tokens, instead of an estimate.
    pub fn costing(self, prompt_tokens: u64, completion_tokens: u64) -> Self {
        self.change(|reply| reply.usage = Some((prompt_tokens, completion_tokens)))
    }

    /// Pauses before each piece of the reply.
    pub fn slowly(self, pause: Duration) -> Self {
        self.change(|reply| reply.pause = pause)
    }

    /// Ends the body in the middle of the reply. As an HTTP body it is complete, but the reply has no finish reason.
    pub fn half(self) -> Self {
        self.change(|reply| reply.ending = Ending::Half)
    }

    /// Breaks the connection in the middle of the body.
    pub fn torn(self) -> Self {
        self.change(|reply| reply.ending = Ending::Torn)
    }

    /// Stops sending in the middle of the body, but keeps the connection open.
    pub fn stuck(self) -> Self {
        self.change(|reply| reply.ending = Ending::Stuck)
    }

    /// Adds the header `Retry-After` to an error, in seconds.
    pub fn retry_after(self, seconds: u64) -> Self {
        self.retry_after_text(&seconds.to_string())
    }

    /// Adds the header `Retry-After` to an error, with this text: an HTTP date, or any other text that a server may
    /// send.
    pub fn retry_after_text(mut self, text: &str) -> Self {
        let Kind::Error { retry_after, .. } = &mut self.0 else {
            panic!("only an error can have a Retry-After header: {self:?}");
        };
        *retry_after = Some(text.to_owned());
        self
    }

    fn reply(text: Option<String>, calls: Vec<Call>) -> Self {
        Self(Kind::Reply(Reply {
            text,
            calls,
            finish_reason: None,
            usage: None,
            fields: Map::new(),
            pause: Duration::ZERO,
            ending: Ending::Complete,
        }))
    }

    fn change(mut self, change: impl FnOnce(&mut Reply)) -> Self {
        let Kind::Reply(reply) = &mut self.0 else {
            panic!("only a reply can be changed in this way: {self:?}");
        };
        change(reply);
        self
    }

    /// Returns the names of non-standard fields: fields of the assistant message that the API does not define.
    pub(crate) fn own_fields(&self) -> impl Iterator<Item = &str> {
        let fields = match &self.0 {
            Kind::Reply(reply) => Some(&reply.fields),
            Kind::Error { .. } | Kind::Raw { .. } | Kind::Endless { .. } | Kind::Hang | Kind::Reset => None,
        };
        fields.into_iter().flat_map(Map::keys).map(String::as_str)
    }

    /// Renders what the server sends as the answer to `conversation`.
    pub(crate) fn render(self, conversation: &Conversation) -> Rendered {
        let reply = match self.0 {
            Kind::Reply(reply) => reply,
            Kind::Error { status, body, retry_after } => {
                let sent = Sent::whole(status, JSON, body.to_string().into());
                return Rendered::Respond(Sent { retry_after, ..sent });
            }
            Kind::Raw { status, content_type, body } => {
                return Rendered::Respond(Sent::whole(status, &content_type, body));
            }
            Kind::Endless { content_type, piece } => {
                let sent = Sent::whole(200, &content_type, piece);
                return Rendered::Respond(Sent { end: End::Again, pause: Duration::from_millis(1), ..sent });
            }
            Kind::Hang => return Rendered::Hang,
            Kind::Reset => return Rendered::Reset,
        };
        let ids = fresh_ids(conversation, reply.calls.len());
        let (content_type, mut pieces) = match conversation.wants_stream() {
            true => ("text/event-stream", stream(&reply, &ids, conversation)),
            false => (JSON, in_pieces(&whole(&reply, &ids, conversation).to_string(), 64)),
        };
        if reply.ending != Ending::Complete {
            pieces.truncate(pieces.len().div_ceil(2));
        }
        Rendered::Respond(Sent {
            status: 200,
            content_type: content_type.to_owned(),
            retry_after: None,
            pieces: pieces.into_iter().map(Bytes::from).collect(),
            pause: reply.pause,
            end: match reply.ending {
                Ending::Complete | Ending::Half => End::Closed,
                Ending::Torn => End::Torn,
                Ending::Stuck => End::Silent,
            },
        })
    }
}

/// The content type of JSON bodies.
pub(crate) const JSON: &str = "application/json";

/// What the server does after the last piece of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// Ends the body properly.
    Closed,
    /// Breaks the connection.
    Torn,
    /// Sends nothing more, but keeps the connection open.
    Silent,
    /// Sends the same pieces again, for ever.
    Again,
}

/// What the server does with the connection of a request.
#[derive(Debug)]
pub(crate) enum Rendered {
    Respond(Sent),
    Hang,
    Reset,
}

/// An HTTP response whose body is sent in pieces.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) status: u16,
    pub(crate) content_type: String,
    pub(crate) retry_after: Option<String>,
    pub(crate) pieces: Vec<Bytes>,
    pub(crate) pause: Duration,
    pub(crate) end: End,
}

impl Sent {
    /// Creates a response whose body is one piece.
    pub(crate) fn whole(status: u16, content_type: &str, body: Bytes) -> Self {
        let content_type = content_type.to_owned();
        Self {
            status,
            content_type,
            retry_after: None,
            pieces: vec![body],
            pause: Duration::ZERO,
            end: End::Closed,
        }
    }
}

/// Returns `count` call ids that the conversation does not contain yet.
///
/// The ids depend only on the conversation, so the same request gets the same answer.
fn fresh_ids(conversation: &Conversation, count: usize) -> Vec<String> {
    let numbers = conversation.call_ids().into_iter().filter_map(|id| id.strip_prefix("call_")?.parse().ok());
    let first = numbers.max().map_or(1, |highest: usize| highest + 1);
    (first..first + count).map(|number| format!("call_{number}")).collect()
}

fn whole(reply: &Reply, ids: &[String], conversation: &Conversation) -> Value {
    let mut message = reply.fields.clone();
    message.insert("role".to_owned(), json!("assistant"));
    message.insert("content".to_owned(), json!(reply.text));
    if !reply.calls.is_empty() {
        let calls = reply.calls.iter().zip(ids).map(|(call, id)| {
            json!({"id": id, "type": "function", "function": {"name": call.tool, "arguments": call.arguments}})
        });
        message.insert("tool_calls".to_owned(), calls.collect());
    }
    json!({
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": CREATED,
        "model": conversation.model(),
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)}],
        "usage": usage(reply, conversation),
    })
}

/// Returns the server-sent events of a reply. Each event is cut into two pieces. The cut may be in the middle of a
/// character.
fn stream(reply: &Reply, ids: &[String], conversation: &Conversation) -> Vec<Vec<u8>> {
    let mut deltas = vec![json!({"role": "assistant", "content": ""})];
    deltas.extend(reply.fields.iter().map(|(name, value)| json!({ name: value })));
    for piece in split(reply.text.as_deref().unwrap_or_default(), 5) {
        deltas.push(json!({"content": piece}));
    }
    for (index, (call, id)) in reply.calls.iter().zip(ids).enumerate() {
        let function = json!({"name": call.tool, "arguments": ""});
        deltas.push(
            json!({"tool_calls": [{"index": index, "id": id, "type": "function", "function": function}]}),
        );
        for piece in split(&call.arguments, 40) {
            deltas.push(json!({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}));
        }
    }
    let choice = |delta: Value, reason: Value| json!([{"index": 0, "delta": delta, "finish_reason": reason}]);
    let mut choices: Vec<Value> = deltas.into_iter().map(|delta| choice(delta, Value::Null)).collect();
    choices.push(choice(json!({}), json!(finish_reason(reply))));

    let mut chunks: Vec<Value> = choices.into_iter().map(|choices| chunk(choices, conversation)).collect();
    if conversation.wants_usage() {
        for chunk in &mut chunks {
            chunk["usage"] = Value::Null;
        }
        let mut last = chunk(json!([]), conversation);
        last["usage"] = usage(reply, conversation);
        chunks.push(last);
    }
    let mut events: Vec<String> = chunks.iter().map(|chunk| format!("data: {chunk}\n\n")).collect();
    events.push("data: [DONE]\n\n".to_owned());
    events.iter().flat_map(|event| in_pieces(event, event.len().div_ceil(2))).collect()
}

fn chunk(choices: Value, conversation: &Conversation) -> Value {
    json!({
        "id": "chatcmpl-scripted",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": conversation.model(),
        "choices": choices,
    })
}

/// The creation time of every answer, in Unix seconds.
const CREATED: u32 = 1_767_225_600;

fn finish_reason(reply: &Reply) -> &str {
    let usual = if reply.calls.is_empty() { "stop" } else { "tool_calls" };
    reply.finish_reason.as_deref().unwrap_or(usual)
}

fn usage(reply: &Reply, conversation: &Conversation) -> Value {
    let written: usize = reply.calls.iter().map(|call| call.arguments.len()).sum::<usize>()
        + reply.text.as_ref().map_or(0, String::len);
    let characters: usize = conversation.messages().iter().map(|message| message.to_string().len()).sum();
    let (prompt, completion) = reply.usage.unwrap_or((characters as u64 / 4 + 1, written as u64 / 4 + 1));
    json!({"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion})
}

fn split(text: &str, characters: usize) -> Vec<String> {
    let characters_of: Vec<char> = text.chars().collect();
    characters_of.chunks(characters).map(|piece| piece.iter().collect()).collect()
}

fn in_pieces(text: &str, bytes: usize) -> Vec<Vec<u8>> {
    text.as_bytes().chunks(bytes).map(<[u8]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn conversation(body: Value) -> Conversation {
        Conversation::new(Arc::new(body))
    }

    fn streamed() -> Conversation {
        conversation(json!({"model": "m", "stream": true, "stream_options": {"include_usage": true}}))
    }

    fn body(answer: Answer, conversation: &Conversation) -> String {
        let Rendered::Respond(sent) = answer.render(conversation) else { panic!("expected a response") };
        String::from_utf8(sent.pieces.concat()).expect("text")
    }

    fn chunks(answer: Answer, conversation: &Conversation) -> Vec<Value> {
        let body = body(answer, conversation);
        let events = body.split_terminator("\n\n").map(|event| event.strip_prefix("data: ").expect("data"));
        events
            .filter(|data| *data != "[DONE]")
            .map(|data| serde_json::from_str(data).expect("JSON"))
            .collect()
    }

    #[test]
    fn a_whole_answer_is_one_completion() {
        let conversation = conversation(json!({"model": "m"}));
        let answer =
            Answer::call("t", json!({"a": 1})).and_say("hm").and_field("reasoning_content", json!("r"));
        let completion: Value =
            serde_json::from_str(&body(answer.costing(3, 4), &conversation)).expect("JSON");
        assert_eq!(completion["model"], "m");
        assert_eq!(
            completion["choices"][0],
            json!({"index": 0, "logprobs": null, "finish_reason": "tool_calls", "message": {
                "role": "assistant", "content": "hm", "reasoning_content": "r", "tool_calls":
                [{"id": "call_1", "type": "function", "function": {"name": "t", "arguments": "{\"a\":1}"}}],
            }})
        );
        assert_eq!(completion["usage"]["total_tokens"], 7);
    }

    #[test]
    fn streamed_text_comes_in_several_deltas_and_joins_again() {
        let chunks = chunks(Answer::say("工件 content, long enough"), &streamed());
        let deltas: Vec<&str> =
            chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"]["content"].as_str()).collect();
        assert!(deltas.len() > 4);
        assert_eq!(deltas.concat(), "工件 content, long enough");
        let [.., end, usage] = &chunks[..] else { panic!("expected several chunks") };
        assert_eq!((&end["choices"][0]["finish_reason"], &end["usage"]), (&json!("stop"), &Value::Null));
        assert_eq!(usage["choices"], json!([]));
        assert!(usage["usage"]["prompt_tokens"].is_u64());
    }

    #[test]
    fn streamed_arguments_come_in_several_deltas_with_the_id_on_the_first() {
        let arguments = json!({"text": "x".repeat(100)});
        let chunks = chunks(Answer::call("a", json!({})).and_call("b", arguments.clone()), &streamed());
        let deltas: Vec<&Value> = chunks
            .iter()
            .map(|chunk| &chunk["choices"][0]["delta"]["tool_calls"][0])
            .filter(|delta| delta["index"] == 1)
            .collect();
        assert!(deltas.len() > 3);
        assert_eq!(deltas[0]["id"], "call_2");
        assert!(deltas[1..].iter().all(|delta| delta.get("id").is_none()));
        let joined: String =
            deltas.iter().filter_map(|delta| delta["function"]["arguments"].as_str()).collect();
        assert_eq!(joined, arguments.to_string());
    }

    #[test]
    fn usage_is_streamed_only_if_asked_for() {
        let conversation = conversation(json!({"model": "m", "stream": true}));
        assert!(chunks(Answer::say("x"), &conversation).iter().all(|chunk| chunk.get("usage").is_none()));
    }

    #[test]
    fn half_an_answer_has_no_end() {
        for (conversation, end) in [(streamed(), "[DONE]"), (conversation(json!({})), "\"usage\"")] {
            for answer in
                [Answer::say("a text of some length").half(), Answer::say("a text of some length").torn()]
            {
                let body = body(answer, &conversation);
                assert!(!body.is_empty());
                assert!(!body.contains("\"stop\"") && !body.contains(end), "{body}");
            }
        }
    }

    #[test]
    fn ids_are_new_in_the_conversation_and_the_same_when_asked_again() {
        let call =
            |id: &str| json!({"id": id, "type": "function", "function": {"name": "t", "arguments": "{}"}});
        let history =
            json!({"messages": [{"role": "assistant", "tool_calls": [call("call_7"), call("other")]}]});
        let conversation = conversation(history);
        assert_eq!(fresh_ids(&conversation, 2), ["call_8", "call_9"]);
        assert_eq!(fresh_ids(&conversation, 2), ["call_8", "call_9"]);
    }

    #[test]
    #[should_panic(expected = "only a reply")]
    fn an_error_says_nothing() {
        let _ = Answer::error(500, json!({})).and_say("x");
    }
}
