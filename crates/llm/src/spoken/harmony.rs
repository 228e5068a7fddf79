//! Reads messages in Harmony, the format of gpt-oss.

use super::SpokenCall;
use super::cursor::Cursor;
use super::named;
use super::stop::Stop;
use super::tools::Context;

/// Possible beginnings of a message. Some servers lose the special tokens such as `<|channel|>`, so some of the
/// beginnings have none.
const BEGINNINGS: [&str; 6] = [
    "<|channel|>",
    "<|start|>assistant",
    "commentary to=",
    "assistantcommentary to=",
    "assistant commentary to=",
    "to=functions.",
];

/// The result of reading one message.
#[derive(Clone, Debug)]
pub(super) enum Message {
    /// A call: the message names a tool as its recipient.
    Call(SpokenCall),
    /// A message in which the model thinks or announces a call.
    Preamble,
}

#[derive(Clone, Copy, Debug, Default)]
struct Header<'a> {
    recipient: Option<&'a str>,
    is_final: bool,
    has_tokens: bool,
}

pub(super) fn begins(cursor: &Cursor<'_>) -> bool {
    BEGINNINGS.iter().any(|beginning| cursor.starts_with(beginning))
}

/// Reads a message. Fails if the message is an ordinary text, such as the final answer.
pub(super) fn message(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<Message, Stop> {
    let header = header(cursor);
    let context = Context { is_tagged: header.has_tokens, ..context };
    match header.recipient {
        Some(recipient) => {
            let name = context.accept(recipient).ok_or(Stop::Text)?;
            let arguments = named::arguments(cursor, &name)?;
            Ok(Message::Call(SpokenCall { name, arguments }))
        }
        None if header.is_final => Err(Stop::Text),
        None => cursor.until("<|end|>").map(|_| Message::Preamble).ok_or(Stop::Text),
    }
}

/// Reads the header of a message. The header contains the recipient (the tool to call) and the channel (the kind of
/// message), in either order.
fn header<'a>(cursor: &mut Cursor<'a>) -> Header<'a> {
    let mut header = Header::default();
    loop {
        cursor.skip_blanks();
        if cursor.eat("<|message|>") {
            header.has_tokens = true;
            return header;
        }
        if cursor.eat("to=") {
            header.recipient = Some(cursor.path());
        } else if cursor.eat_any(&["<|start|>", "<|channel|>", "<|constrain|>"]) {
            header.has_tokens = true;
        } else if cursor.eat("final") {
            header.is_final = true;
        } else if !cursor.eat_any(&["assistant", "analysis", "commentary", "json", "code"]) {
            return header;
        }
    }
}
