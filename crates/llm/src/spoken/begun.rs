//! Finds the name of the tool in a tool call whose JSON is incomplete or invalid.

use super::cursor::Cursor;
use super::lenient;
use super::shape::{ARGUMENTS, BESIDE, NAMES, WRAPPERS};
use super::tools::{Context, has_parameter};
use serde_json::Value;

/// The search for the arguments skips at most this many fields and brackets. Otherwise it would go through a long text
/// to the end.
const STEPS: usize = 16;

/// Returns the tool that the model meant to call in an unreadable text. The text must contain the tool's name and the
/// beginning of the arguments. But if a mark such as `<tool_call>` comes before the text, the name is enough.
pub(super) fn tool(text: &str, context: Context<'_>) -> Option<String> {
    let mut cursor = Cursor::new(text);
    let mut name = None;
    for _ in 0..STEPS {
        lenient::skip_blanks(&mut cursor);
        if cursor.eat_any(&["{", "[", ","]) {
            continue;
        }
        let Some(key) = field(&mut cursor) else { break };
        let key = key.as_str();
        let opens_value = cursor.starts_with("{") || cursor.starts_with("[");
        if ARGUMENTS.contains(&key) && name.is_some() {
            return name;
        }
        if name.is_none() && opens_value && begins_arguments(key, cursor, context) {
            return context.accept(key);
        }
        let is_wrapper = opens_value && WRAPPERS.contains(&key);
        if is_wrapper {
            continue;
        }
        let Ok(Value::String(text)) = lenient::value(&mut cursor) else { break };
        if NAMES.contains(&key) && name.is_none() {
            name = context.accept(&text);
        } else if !BESIDE.contains(&key) {
            break;
        }
    }
    name.filter(|_| context.is_tagged)
}

/// Reads `"name":` and stops before the value.
fn field(cursor: &mut Cursor<'_>) -> Option<String> {
    if !matches!(cursor.peek(), Some('"' | '\'')) {
        return None;
    }
    let Ok(Value::String(key)) = lenient::value(cursor) else { return None };
    lenient::skip_blanks(cursor);
    if !cursor.eat(":") {
        return None;
    }
    lenient::skip_blanks(cursor);
    Some(key)
}

/// Returns whether a field has the name of an offered tool, and the value of the field begins with a parameter of this
/// tool.
fn begins_arguments(key: &str, mut cursor: Cursor<'_>, context: Context<'_>) -> bool {
    let Some(tool) = context.tools.find(key) else { return false };
    cursor.eat("{") && {
        lenient::skip_blanks(&mut cursor);
        field(&mut cursor).is_some_and(|key| has_parameter(tool, &key))
    }
}
