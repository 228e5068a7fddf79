//! Reads TOML files that contain texts.

use crate::problem::Place;
use std::collections::BTreeMap;
use toml::{Table, Value};

/// The place at which a text is not valid TOML, and the reason.
pub(super) struct SyntaxError {
    pub(super) place: Place,
    pub(super) what: String,
}

/// Parses the content of a TOML file, which may begin with a byte order mark.
pub(super) fn parse(text: &str) -> Result<Table, SyntaxError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    text.parse::<Table>().map_err(|error| {
        let before = error.span().and_then(|span| text.get(..span.start));
        let place = before.map_or(Place::Whole, |before| {
            let start_of_line = before.rfind('\n').map_or(0, |newline| newline + 1);
            let line = before.matches('\n').count() + 1;
            let column = before.get(start_of_line..).map_or(0, |line| line.chars().count()) + 1;
            Place::Position { line, column }
        });
        // The parser's message may have several lines, but a problem is shown on one line.
        SyntaxError { place, what: error.message().lines().collect::<Vec<_>>().join(", ") }
    })
}

/// Collects the strings in a table, under their dotted keys in the file, such as `a.b`. If a value is not a string,
/// passes its key to `wrong`.
pub(super) fn flatten(
    prefix: &str,
    table: Table,
    wrong: &mut impl FnMut(&str, &'static str),
) -> BTreeMap<String, String> {
    let mut texts = BTreeMap::new();
    for (key, value) in table {
        let key = if prefix.is_empty() { key } else { format!("{prefix}.{key}") };
        match value {
            Value::String(text) => {
                texts.insert(key, text);
            }
            Value::Table(inner) => texts.extend(flatten(&key, inner, wrong)),
            _ => wrong(&key, "must be a string"),
        }
    }
    texts
}
