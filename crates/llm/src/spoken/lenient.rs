//! Reads JSON as models write it. Accepts deviations from JSON whose meaning is clear: trailing commas, single
//! quotes, names without quotes, Python literals, line breaks in strings, comments, and missing brackets at the very
//! end.

use super::cursor::Cursor;
use serde_json::{Map, Number, Value};

/// Maximum depth of nested values. The reader calls itself for each level, so the depth must be limited. The arguments
/// of tools have fewer levels than this.
const DEEPEST: usize = 64;

/// Maximum number of characters that the description of a problem quotes from the text.
const NEAR: usize = 24;

/// Quotation marks of Gemma. The same mark opens and closes a string.
const MARKS: [&str; 2] = ["<|\"|>", "<escape>"];

/// Why a value cannot be read.
#[derive(Clone, Debug)]
pub(super) enum Fault {
    /// The text ends inside the value. The field tells what should come next.
    Cut(&'static str),
    /// The text has `near` at the place where `expected` should be.
    Wrong { expected: &'static str, near: String },
    /// The value is nested deeper than [`DEEPEST`].
    Deep,
}

impl Fault {
    pub(super) fn wrong(expected: &'static str, cursor: &Cursor<'_>) -> Self {
        if cursor.is_at_end() {
            return Self::Cut(expected);
        }
        let near = cursor.rest().chars().take(NEAR).take_while(|character| *character != '\n');
        Self::Wrong { expected, near: near.collect() }
    }

    pub(super) fn is_cut(&self) -> bool {
        matches!(self, Self::Cut(_))
    }

    /// Describes the fault, as a sentence for the model.
    pub(super) fn problem(&self) -> String {
        match self {
            Self::Cut(expected) => format!("The call breaks off where {expected} is expected."),
            Self::Wrong { expected, near } => {
                format!("The call cannot be read at `{near}`, where {expected} is expected.")
            }
            Self::Deep => format!("The arguments of the call are nested deeper than {DEEPEST} levels."),
        }
    }
}

/// Reads one value and moves past it.
pub(super) fn value(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    skip_blanks(cursor);
    value_at(cursor, 0)
}

/// Reads a text that consists of one value. Returns `None` for any other text.
pub(super) fn whole(text: &str) -> Option<Value> {
    let mut cursor = Cursor::new(text);
    let value = value(&mut cursor).ok()?;
    skip_blanks(&mut cursor);
    cursor.is_at_end().then_some(value)
}

/// Moves past a comma and returns `true`, or moves past the closing bracket and returns `false`. At the end of the
/// text, and before a closing tag or a code fence, nothing else than this bracket can follow. So the bracket may be
/// missing there.
pub(super) fn goes_on(cursor: &mut Cursor<'_>, closer: &str) -> Result<bool, Fault> {
    skip_blanks(cursor);
    if cursor.eat(",") {
        return Ok(true);
    }
    let is_end = cursor.is_at_end() || cursor.starts_with("<") || cursor.starts_with("```");
    if cursor.eat(closer) || is_end {
        return Ok(false);
    }
    Err(Fault::wrong("a comma or a closing bracket", cursor))
}

/// Skips blanks and comments.
pub(super) fn skip_blanks(cursor: &mut Cursor<'_>) {
    loop {
        cursor.skip_blanks();
        if cursor.starts_with("//") || cursor.starts_with("#") {
            cursor.take_while(|character| character != '\n');
        } else if !(cursor.eat("/*") && cursor.until("*/").is_some()) {
            return;
        }
    }
}

fn value_at(cursor: &mut Cursor<'_>, depth: usize) -> Result<Value, Fault> {
    if depth >= DEEPEST {
        return Err(Fault::Deep);
    }
    match cursor.peek() {
        Some('{') => object(cursor, depth).map(Value::Object),
        Some('[') => array(cursor, depth).map(Value::Array),
        Some('-' | '0'..='9') => number(cursor),
        Some(letter) if letter.is_ascii_alphabetic() => literal(cursor),
        _ => match string(cursor)? {
            Some(text) => Ok(Value::String(text)),
            None => Err(Fault::wrong("a value", cursor)),
        },
    }
}

fn object(cursor: &mut Cursor<'_>, depth: usize) -> Result<Map<String, Value>, Fault> {
    cursor.bump();
    let mut fields = Map::new();
    loop {
        skip_blanks(cursor);
        if cursor.eat("}") {
            return Ok(fields);
        }
        let name = field_name(cursor)?;
        skip_blanks(cursor);
        if !cursor.eat(":") {
            return Err(Fault::wrong("a colon", cursor));
        }
        skip_blanks(cursor);
        fields.insert(name, value_at(cursor, depth + 1)?);
        if !goes_on(cursor, "}")? {
            return Ok(fields);
        }
    }
}

fn field_name(cursor: &mut Cursor<'_>) -> Result<String, Fault> {
    if let Some(name) = string(cursor)? {
        return Ok(name);
    }
    let starts_name = cursor.peek().is_some_and(|first| first.is_ascii_alphabetic() || first == '_');
    if !starts_name {
        return Err(Fault::wrong("the name of a field in quotation marks", cursor));
    }
    Ok(cursor.path().to_owned())
}

fn array(cursor: &mut Cursor<'_>, depth: usize) -> Result<Vec<Value>, Fault> {
    cursor.bump();
    let mut items = Vec::new();
    loop {
        skip_blanks(cursor);
        if cursor.eat("]") {
            return Ok(items);
        }
        items.push(value_at(cursor, depth + 1)?);
        if !goes_on(cursor, "]")? {
            return Ok(items);
        }
    }
}

fn number(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let start = *cursor;
    let digits = cursor.take_while(|character| character.is_ascii_digit() || "+-.eE".contains(character));
    // The text ends directly after the digits. Perhaps it was cut off, and more digits are missing.
    if cursor.is_at_end() {
        return Err(Fault::Cut("the rest of a number"));
    }
    match digits.parse::<Number>() {
        Ok(number) => Ok(Value::Number(number)),
        Err(_) => Err(Fault::wrong("a number", &start)),
    }
}

fn literal(cursor: &mut Cursor<'_>) -> Result<Value, Fault> {
    let start = *cursor;
    let word = cursor.take_while(|character| character.is_ascii_alphanumeric() || character == '_');
    match word {
        "true" | "True" => Ok(Value::Bool(true)),
        "false" | "False" => Ok(Value::Bool(false)),
        "null" | "None" => Ok(Value::Null),
        _ => Err(Fault::wrong("a value, with strings in quotation marks,", &start)),
    }
}

/// Reads a string in any kind of quotation marks. Returns `None` if the text does not continue with a string.
fn string(cursor: &mut Cursor<'_>) -> Result<Option<String>, Fault> {
    const CUT: Fault = Fault::Cut("the end of a string");
    if let Some(mark) = MARKS.into_iter().find(|mark| cursor.eat(mark)) {
        return cursor.until(mark).map(|text| Some(text.to_owned())).ok_or(CUT);
    }
    // Try Python's triple quotation marks first: """ also begins with ", and ''' also begins with '.
    let Some(quote) = ["\"\"\"", "'''", "\"", "'"].into_iter().find(|quote| cursor.eat(quote)) else {
        return Ok(None);
    };
    let mut text = String::new();
    loop {
        text.push_str(cursor.take_while(|character| character != '\\' && !quote.starts_with(character)));
        if cursor.eat(quote) {
            return Ok(Some(text));
        }
        match cursor.bump() {
            None => return Err(CUT),
            Some('\\') => escape(cursor, &mut text),
            // Part of the string. A string in """ may contain ", and a string in ''' may contain '.
            Some(other) => text.push(other),
        }
    }
}

/// Reads the escape after a backslash. An escape that neither JSON nor Python knows stays unchanged.
fn escape(cursor: &mut Cursor<'_>, text: &mut String) {
    match cursor.bump() {
        // The text ends inside the string; the caller reports it.
        None => {}
        Some('n') => text.push('\n'),
        Some('t') => text.push('\t'),
        Some('r') => text.push('\r'),
        Some('b') => text.push('\u{8}'),
        Some('f') => text.push('\u{c}'),
        Some(plain @ ('"' | '\'' | '\\' | '/')) => text.push(plain),
        Some('\n') => {}
        Some('u') => match hexadecimal(cursor) {
            Some(unit) => text.push(character(unit, cursor)),
            None => text.push_str("\\u"),
        },
        Some(other) => text.extend(['\\', other]),
    }
}

/// `unit` is the first UTF-16 unit of a character. Returns the character. If it has a second unit, reads that unit,
/// too.
fn character(unit: u16, cursor: &mut Cursor<'_>) -> char {
    let mut ahead = *cursor;
    let second = if ahead.eat("\\u") { hexadecimal(&mut ahead) } else { None };
    if let Some(second) = second
        && let Some(Ok(both)) = char::decode_utf16([unit, second]).next()
        && u32::from(both) > 0xffff
    {
        *cursor = ahead;
        return both;
    }
    char::from_u32(u32::from(unit)).unwrap_or(char::REPLACEMENT_CHARACTER)
}

fn hexadecimal(cursor: &mut Cursor<'_>) -> Option<u16> {
    let digits =
        cursor.rest().get(..4).filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let unit = u16::from_str_radix(digits, 16).ok()?;
    cursor.eat(digits);
    Some(unit)
}
