//! Reads calls in Python syntax: `send_message(to="root")`, alone, in a list, or inside `print`.

use super::cursor::Cursor;
use super::lenient::{self, Fault};
use super::stop::{Stop, When};
use super::tools::{Context, has_parameter};
use super::{Offered, SpokenCall};
use serde_json::{Map, Value};

/// Maximum depth to which lists are nested in lists, or calls are nested in `print`.
const DEEPEST: usize = 3;

/// Whether the text continues with a name and an opening parenthesis.
pub(super) fn begins_call(mut cursor: Cursor<'_>) -> bool {
    !cursor.path().is_empty() && cursor.starts_with("(")
}

/// Whether the text continues with a list of calls. A list of values is JSON and does not count.
pub(super) fn begins_list(mut cursor: Cursor<'_>) -> bool {
    cursor.eat("[") && {
        cursor.skip_blanks();
        begins_call(cursor)
    }
}

/// Reads a call, a list of calls, or calls inside `print`.
pub(super) fn calls(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<Vec<SpokenCall>, Stop> {
    nested_calls(cursor, context, 0)
}

fn nested_calls(
    cursor: &mut Cursor<'_>,
    context: Context<'_>,
    depth: usize,
) -> Result<Vec<SpokenCall>, Stop> {
    if depth > DEEPEST {
        return Err(Stop::Text);
    }
    if cursor.eat("[") {
        return list(cursor, context, depth);
    }
    let mut ahead = *cursor;
    let name = ahead.path();
    if name == "print" && context.tools.find(name).is_none() && ahead.eat("(") {
        *cursor = ahead;
        cursor.skip_blanks();
        let printed = nested_calls(cursor, context, depth + 1)?;
        lenient::goes_on(cursor, ")").map_err(|_| Stop::Text)?;
        return Ok(printed);
    }
    call(cursor, context).map(|call| vec![call])
}

fn list(cursor: &mut Cursor<'_>, context: Context<'_>, depth: usize) -> Result<Vec<SpokenCall>, Stop> {
    let mut calls = Vec::new();
    loop {
        lenient::skip_blanks(cursor);
        if !calls.is_empty() && cursor.eat("]") {
            return Ok(calls);
        }
        calls.extend(nested_calls(cursor, context, depth + 1)?);
        if !lenient::goes_on(cursor, "]").map_err(|_| Stop::Text)? {
            return Ok(calls);
        }
    }
}

fn call(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<SpokenCall, Stop> {
    let path = cursor.path();
    // Llama writes a call of a built-in tool as `tool_name.call(…)`.
    let written = if context.is_tagged { path.strip_suffix(".call").unwrap_or(path) } else { path };
    let name = context.accept(written).ok_or(Stop::Text)?;
    let start = *cursor;
    if !cursor.eat("(") {
        return Err(Stop::Text);
    }
    let tool = context.tools.find(&name);
    match arguments(cursor, tool) {
        Ok(arguments) => Ok(SpokenCall { name, arguments }),
        Err(unread) => Err(broken(cursor, start, &name, tool, unread)),
    }
}

/// Why arguments cannot be read.
enum Unread {
    Fault(Fault),
    /// The values have no names, so nobody knows to which parameters they belong.
    Positional,
}

impl From<Fault> for Unread {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

fn arguments(cursor: &mut Cursor<'_>, tool: Option<&Offered<'_>>) -> Result<Map<String, Value>, Unread> {
    let mut arguments = Map::new();
    let mut positional = Vec::new();
    loop {
        lenient::skip_blanks(cursor);
        if cursor.eat(")") {
            break;
        }
        let name = keyword(cursor);
        let value = lenient::value(cursor)?;
        match name {
            Some(name) => {
                arguments.insert(name.to_owned(), value);
            }
            None => positional.push(value),
        }
        if !lenient::goes_on(cursor, ")")? {
            break;
        }
    }
    let only_parameter = tool.and_then(|tool| match tool.parameters {
        [only] => Some((*only).to_owned()),
        _ => None,
    });
    match (positional.pop(), positional.is_empty() && arguments.is_empty(), only_parameter) {
        (None, _, _) => Ok(arguments),
        (Some(Value::Object(fields)), true, _) => Ok(fields),
        (Some(value), true, Some(name)) => Ok(Map::from_iter([(name, value)])),
        (Some(_), _, _) => Err(Unread::Positional),
    }
}

/// Reads `name=` and moves past it.
fn keyword<'a>(cursor: &mut Cursor<'a>) -> Option<&'a str> {
    let mut ahead = *cursor;
    let name = ahead.path();
    ahead.skip_blanks();
    if name.is_empty() || !ahead.eat("=") || ahead.starts_with("=") {
        return None;
    }
    *cursor = ahead;
    Some(name)
}

/// Decides whether an unreadable text is a broken call or prose. `start` is the position of the opening parenthesis. An
/// example of prose is `finish(status) ends the task`. In prose, the parentheses contain nothing that looks like an
/// argument, or words follow the closing parenthesis.
fn broken<'a>(
    cursor: &mut Cursor<'a>,
    start: Cursor<'a>,
    name: &str,
    tool: Option<&Offered<'_>>,
    unread: Unread,
) -> Stop {
    if !begins_like_arguments(start, tool) && !matches!(unread, Unread::Positional) {
        return Stop::Text;
    }
    let (problem, is_cut) = match unread {
        Unread::Fault(fault) => (fault.problem(), fault.is_cut()),
        Unread::Positional => (format!("The arguments of `{name}` need names, as in name=value."), false),
    };
    match behind_parenthesis(start) {
        Some(behind) => {
            *cursor = behind;
            Stop::broken(Some(name), problem, When::NothingElseFollows)
        }
        None if is_cut => Stop::broken(Some(name), problem, When::Always),
        None => Stop::Text,
    }
}

fn begins_like_arguments(mut cursor: Cursor<'_>, tool: Option<&Offered<'_>>) -> bool {
    cursor.eat("(");
    cursor.skip_blanks();
    let is_object = cursor.starts_with("{");
    let name = keyword(&mut cursor);
    is_object || name.is_some_and(|name| tool.is_none_or(|tool| has_parameter(tool, name)))
}

/// Returns the position after the parenthesis that closes the first parenthesis. Parentheses inside strings do not
/// count.
fn behind_parenthesis(mut cursor: Cursor<'_>) -> Option<Cursor<'_>> {
    let mut depth = 0usize;
    while let Some(next) = cursor.bump() {
        match next {
            '(' => depth += 1,
            ')' if depth <= 1 => return Some(cursor),
            ')' => depth -= 1,
            '"' | '\'' => {
                while let Some(inside) = cursor.bump().filter(|inside| *inside != next) {
                    if inside == '\\' {
                        cursor.bump();
                    }
                }
            }
            _ => {}
        }
    }
    None
}
