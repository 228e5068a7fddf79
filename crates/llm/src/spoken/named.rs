//! Reads calls that begin with a name: `send_message{"to": "root"}`. Knows the separators that Mistral, DeepSeek, Kimi
//! and Gemma put between the name and the arguments.

use super::SpokenCall;
use super::cursor::Cursor;
use super::lenient;
use super::shape;
use super::stop::Stop;
use super::tokens;
use super::tools::Context;
use super::xml;
use serde_json::{Map, Value};

/// DeepSeek separates the type, the name and the arguments of a call with a token. These are its spellings.
const SEPARATORS: [&str; 3] = ["<｜tool▁sep｜>", "<|tool▁sep|>", "<|tool_sep|>"];

/// Reads a call that begins with a name.
pub(super) fn call(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<SpokenCall, Stop> {
    if context.is_tagged {
        cursor.eat("call:");
    }
    let path = cursor.path();
    if is_kimi(cursor) {
        return with_arguments(cursor, path, Context { is_tagged: true, ..context });
    }
    if cursor.eat_any(&SEPARATORS) {
        return separated(cursor, path, context);
    }
    let is_mistral = context.is_tagged && skip_mistral(cursor);
    cursor.skip_blanks();
    if cursor.starts_with("{") || is_mistral {
        return with_arguments(cursor, path, context);
    }
    if cursor.starts_with("<arg_key>") {
        let name = context.accept(path).ok_or(Stop::Text)?;
        let arguments = xml::keys_and_values(cursor, &name)?;
        return Ok(SpokenCall { name, arguments });
    }
    let tool = context.tools.find(path).ok_or(Stop::Text)?;
    // A name without arguments is a call only inside a tag. In prose, the name is an ordinary word.
    if !context.is_tagged || !tokens::closes(cursor) {
        return Err(Stop::Text);
    }
    Ok(SpokenCall { name: tool.name.to_owned(), arguments: Map::new() })
}

/// Reads the arguments of a call as JSON.
pub(super) fn arguments(cursor: &mut Cursor<'_>, name: &str) -> Result<Map<String, Value>, Stop> {
    let written = lenient::value(cursor).map_err(|fault| Stop::fault(Some(name), &fault))?;
    shape::arguments(written).map_err(|_| shape::no_object(name))
}

fn with_arguments(cursor: &mut Cursor<'_>, path: &str, context: Context<'_>) -> Result<SpokenCall, Stop> {
    let name = context.accept(path).ok_or(Stop::Text)?;
    let arguments = arguments(cursor, &name)?;
    Ok(SpokenCall { name, arguments })
}

/// Moves past `:0<|tool_call_argument_begin|>`, which follows the name in Kimi's calls. Returns whether the text
/// contained it.
fn is_kimi(cursor: &mut Cursor<'_>) -> bool {
    let mut ahead = *cursor;
    if ahead.eat(":") {
        ahead.take_while(|character| character.is_ascii_digit());
    }
    ahead.skip_blanks();
    let is_kimi = ahead.eat("<|tool_call_argument_begin|>");
    if is_kimi {
        *cursor = ahead;
    }
    is_kimi
}

/// Moves past Mistral's `[CALL_ID]…` and `[ARGS]`. Returns whether `[ARGS]` was there.
fn skip_mistral(cursor: &mut Cursor<'_>) -> bool {
    if cursor.eat("[CALL_ID]") {
        cursor.path();
    }
    cursor.eat("[ARGS]")
}

/// Reads a call of DeepSeek. It begins with `function<｜tool▁sep｜>name` and a code fence, or with `name<｜tool▁sep｜>` and
/// JSON.
fn separated(cursor: &mut Cursor<'_>, first: &str, context: Context<'_>) -> Result<SpokenCall, Stop> {
    let context = Context { is_tagged: true, ..context };
    cursor.skip_blanks();
    let name = if cursor.starts_with("{") || cursor.starts_with("```") { first } else { cursor.path() };
    cursor.skip_blanks();
    tokens::skip_fence(cursor);
    with_arguments(cursor, name, context)
}
