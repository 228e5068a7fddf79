//! Reads calls in the style of ReAct: a line `Action:` and a line `Action Input:`.

use super::cursor::Cursor;
use super::named;
use super::python;
use super::stop::{Stop, When};
use super::tokens;
use super::tools::Context;
use super::{Offered, SpokenCall};
use serde_json::{Map, Value};

pub(super) const ACTION: &str = "Action:";

/// Moves from `Thought:` to the action after it. Returns whether an action follows.
pub(super) fn skip_thought(cursor: &mut Cursor<'_>) -> bool {
    if !cursor.starts_with("Thought:") {
        return false;
    }
    match cursor.rest().find("\nAction:") {
        Some(at) => {
            *cursor = Cursor::new(&cursor.rest()[at + 1..]);
            true
        }
        None => false,
    }
}

/// Reads a call that begins with the label `Action:`. If a call in another form follows the label, moves past the label
/// only, and returns `None`.
pub(super) fn call(cursor: &mut Cursor<'_>, context: Context<'_>) -> Result<Option<SpokenCall>, Stop> {
    cursor.eat(ACTION);
    cursor.skip_blanks();
    let is_other_form = cursor.starts_with("{") || cursor.starts_with("[") || cursor.starts_with("```");
    if is_other_form || python::begins_call(*cursor) {
        return Ok(None);
    }
    let line = cursor.take_while(|character| character != '\n');
    let tool = context.tools.find(line.trim().trim_matches('`')).ok_or(Stop::Text)?;
    cursor.skip_blanks();
    if !cursor.eat("Action Input:") {
        return Err(Stop::Text);
    }
    cursor.skip_blanks();
    tokens::skip_fence(cursor);
    cursor.skip_blanks();
    let arguments =
        if cursor.starts_with("{") { named::arguments(cursor, tool.name)? } else { plain(cursor, tool)? };
    Ok(Some(SpokenCall { name: tool.name.to_owned(), arguments }))
}

/// Reads an input that is not a JSON object, up to the end of its line. If the input is empty, the call has no
/// arguments. If the tool has exactly one parameter, the input is its value. In every other case, the meaning of the
/// input is unclear, and this function fails.
fn plain(cursor: &mut Cursor<'_>, tool: &Offered<'_>) -> Result<Map<String, Value>, Stop> {
    // If the label `Observation:` follows at once, the input is empty.
    let line = if cursor.starts_with("Observation:") {
        ""
    } else {
        cursor.take_while(|character| character != '\n')
    };
    let input = tokens::without_ends(line).trim_matches('"');
    match (input, tool.parameters) {
        ("" | "None" | "none" | "null" | "N/A", _) => Ok(Map::new()),
        (input, [only]) => Ok(Map::from_iter([((*only).to_owned(), Value::from(input))])),
        (_, _) => {
            let problem = "The action input must be one JSON object.";
            Err(Stop::broken(Some(tool.name), problem, When::NothingElseFollows))
        }
    }
}
