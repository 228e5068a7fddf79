//! Reads calls in tags: `<function=…>`, `<invoke name="…">`, `<arg_key>`, and tags with the name of a tool.

use super::cursor::Cursor;
use super::lenient;
use super::named;
use super::stop::{Stop, When};
use super::tools::{Context, has_parameter};
use super::{Offered, SpokenCall};
use serde_json::{Map, Value};

/// Reads a call that begins with `<`.
pub(super) fn calls(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<Vec<SpokenCall>, Stop> {
    let call = if cursor.eat("<function=") {
        function(cursor, context)
    } else if let Some(invocation) = invocation(cursor) {
        invoked(cursor, invocation, context)
    } else {
        tool_tag(cursor, context)
    };
    call.map(|call| vec![call])
}

/// Whether the text continues with a tag that occurs only in calls.
pub(super) fn begins_tag_form(mut cursor: Cursor<'_>) -> bool {
    cursor.starts_with("<function=") || invocation(&mut cursor).is_some_and(|invocation| invocation.is_sure)
}

/// Reads a call of Llama or Qwen3-Coder. JSON or tags with parameters follow `<function=name>`. Llama sometimes omits
/// the `>`.
fn function(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<SpokenCall, Stop> {
    let context = Context { is_tagged: true, ..context };
    cursor.eat("\"");
    let name = context.accept(cursor.path()).ok_or(Stop::Text)?;
    cursor.eat("\"");
    let has_bracket = cursor.eat(">");
    cursor.skip_blanks();
    if cursor.starts_with("{") {
        let arguments = named::arguments(cursor, &name)?;
        return Ok(SpokenCall { name, arguments });
    }
    if !has_bracket {
        return Err(Stop::Text);
    }
    invoked_as(cursor, name, "", "</function>")
}

/// The opening tag of a call. One of its attributes names the tool.
#[derive(Clone, Copy)]
struct Invocation<'a> {
    name: &'a str,
    /// A prefix such as `ns:`, with which the name of every tag of the call begins. Often empty.
    prefix: &'a str,
    /// Whether the tag occurs only in calls, and in no other XML.
    is_sure: bool,
}

/// Reads `<invoke name="x">`, or MiniCPM's `<function name="x">`. XML that describes interfaces also contains such
/// tags, so such a tag alone does not always mean a call.
fn invocation<'a>(cursor: &mut Cursor<'a>) -> Option<Invocation<'a>> {
    let mut ahead = *cursor;
    if !ahead.eat("<") {
        return None;
    }
    let tag = ahead.take_while(|character| character.is_ascii_alphabetic() || ":_|｜".contains(character));
    let prefix = tag.strip_suffix("invoke").or_else(|| tag.strip_suffix("function"))?;
    if !prefix.is_empty() && !prefix.ends_with([':', '|', '｜']) {
        return None;
    }
    let attributes = ahead.until(">").filter(|attributes| !attributes.contains(['\n', '<']))?;
    *cursor = ahead;
    let is_sure = tag.ends_with("invoke") && !attributes.trim().contains(' ');
    Some(Invocation { name: attribute(attributes, "name")?, prefix, is_sure })
}

fn invoked(
    cursor: &mut Cursor<'_>,
    invocation: Invocation<'_>,
    context: Context<'_>,
) -> Result<SpokenCall, Stop> {
    let name = context.accept(invocation.name).ok_or(Stop::Text)?;
    cursor.skip_blanks();
    if cursor.starts_with("{") {
        let arguments = named::arguments(cursor, &name)?;
        return Ok(SpokenCall { name, arguments });
    }
    let prefix = invocation.prefix;
    invoked_as(cursor, name, prefix, &format!("</{prefix}invoke>"))
}

/// Reads the parameters of a call after its opening tag. `closer` is the closing tag of the call. If it comes next,
/// moves past it. The reader skips any other closing tag later.
fn invoked_as(cursor: &mut Cursor<'_>, name: String, prefix: &str, closer: &str) -> Result<SpokenCall, Stop> {
    let mut arguments = Map::new();
    loop {
        cursor.skip_blanks();
        let Some(parameter) = parameter(cursor, prefix) else { break };
        let Some(written) = cursor.until(&parameter.closer) else {
            return Err(never_closed(&name, parameter.name));
        };
        let value = if parameter.is_string { Value::String(written.to_owned()) } else { value(written) };
        arguments.insert(parameter.name.to_owned(), value);
    }
    // The text may end here. If no parameter was read, parameters may be missing, so the call is broken. If at least
    // one was read, only closing tags are missing, and the call is good.
    if !cursor.eat(closer) && cursor.is_at_end() && arguments.is_empty() {
        return Err(Stop::broken(Some(&name), "The call breaks off before its parameters.", When::Always));
    }
    Ok(SpokenCall { name, arguments })
}

fn never_closed(name: &str, parameter: &str) -> Stop {
    let problem = format!("The parameter `{parameter}` of the call is never closed.");
    Stop::broken(Some(name), problem, When::Always)
}

struct Parameter<'a> {
    name: &'a str,
    closer: String,
    /// Whether the tag marks its value as a string, as the tags of DeepSeek do.
    is_string: bool,
}

/// Reads `<parameter=name>`, `<parameter name="name">` or `<param name="name">`.
fn parameter<'a>(cursor: &mut Cursor<'a>, prefix: &str) -> Option<Parameter<'a>> {
    let mut ahead = *cursor;
    if !(ahead.eat("<") && ahead.eat(prefix)) {
        return None;
    }
    let tag = ["parameter", "param"].into_iter().find(|tag| ahead.eat(tag))?;
    let attributes = ahead.until(">").filter(|attributes| !attributes.contains(['\n', '<']))?;
    let name = match attributes.strip_prefix('=') {
        Some(name) => name.trim().trim_matches('"'),
        None => attribute(attributes, "name")?,
    };
    *cursor = ahead;
    let is_string = attribute(attributes, "string") == Some("true");
    Some(Parameter { name, closer: format!("</{prefix}{tag}>"), is_string })
}

/// Returns the value of an attribute, which must be in quotation marks.
fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, behind) = attributes.split_once(name)?;
    let value = behind.strip_prefix('=')?;
    let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
    value[1..].split_once(quote).map(|(value, _)| value)
}

/// Reads the arguments of a GLM call: keys and values in turn, after the name.
pub(super) fn keys_and_values(cursor: &mut Cursor<'_>, name: &str) -> Result<Map<String, Value>, Stop> {
    let mut arguments = Map::new();
    loop {
        cursor.skip_blanks();
        if !cursor.eat("<arg_key>") {
            return Ok(arguments);
        }
        let key = cursor.until("</arg_key>").ok_or_else(|| never_closed(name, "arg_key"))?.trim();
        cursor.skip_blanks();
        let written = if cursor.eat("<arg_value>") { cursor.until("</arg_value>") } else { None };
        let written = written.ok_or_else(|| never_closed(name, key))?;
        arguments.insert(key.to_owned(), value(written));
    }
}

/// Reads a call in a tag that has the name of an offered tool. Inside this tag, each argument has its own tag.
fn tool_tag(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<SpokenCall, Stop> {
    let mut ahead = *cursor;
    ahead.eat("<");
    let tool = context.tools.find(ahead.path()).ok_or(Stop::Text)?;
    let is_empty = ahead.eat("/>") || ahead.eat(" />");
    if !is_empty && !ahead.eat(">") {
        return Err(Stop::Text);
    }
    *cursor = ahead;
    let arguments = if is_empty { Map::new() } else { children(cursor, tool)? };
    Ok(SpokenCall { name: tool.name.to_owned(), arguments })
}

/// Reads the tags of the arguments. The first tag must name a parameter of the tool. Otherwise, if there were a tool
/// with the name `section`, every `<section>` in HTML would count as a call of this tool.
fn children(cursor: &mut Cursor<'_>, tool: &Offered<'_>) -> Result<Map<String, Value>, Stop> {
    let closer = format!("</{}>", tool.name);
    let mut arguments = Map::new();
    loop {
        cursor.skip_blanks();
        if cursor.eat(&closer) {
            return Ok(arguments);
        }
        if arguments.is_empty() && cursor.starts_with("{") {
            let fields = named::arguments(cursor, tool.name)?;
            cursor.skip_blanks();
            return if cursor.eat(&closer) { Ok(fields) } else { Err(Stop::Text) };
        }
        if !arguments.is_empty() && cursor.is_at_end() {
            return Ok(arguments);
        }
        let key = child(cursor).ok_or(Stop::Text)?;
        if arguments.is_empty() && !has_parameter(tool, key) {
            return Err(Stop::Text);
        }
        let written = cursor.until(&format!("</{key}>")).ok_or_else(|| never_closed(tool.name, key))?;
        arguments.insert(key.to_owned(), value(written));
    }
}

fn child<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let is_tag = cursor.eat("<");
    let key = cursor.path();
    (is_tag && !key.is_empty() && cursor.eat(">")).then_some(key)
}

/// Returns the value of a parameter. JSON is parsed. Any other text is a string, without the line breaks next to the
/// tags.
fn value(written: &str) -> Value {
    let trimmed = written.trim();
    let is_composite = trimmed.starts_with('{') && trimmed.ends_with('}')
        || trimmed.starts_with('[') && trimmed.ends_with(']');
    let read = if is_composite { lenient::whole(trimmed) } else { serde_json::from_str(trimmed).ok() };
    read.unwrap_or_else(|| Value::String(without_outer_breaks(written).to_owned()))
}

fn without_outer_breaks(written: &str) -> &str {
    let start = written.strip_prefix("\r\n").or_else(|| written.strip_prefix('\n')).unwrap_or(written);
    start.strip_suffix("\r\n").or_else(|| start.strip_suffix('\n')).unwrap_or(start)
}
