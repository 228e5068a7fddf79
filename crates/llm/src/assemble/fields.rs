//! Joins the pieces of fields that only the service understands, such as `reasoning_content`.

use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Joins a piece of a field to the earlier pieces. Strings and arrays grow, objects merge, and any other value replaces
/// the earlier value. `null` changes nothing.
pub(super) fn merge(fields: &mut Map<String, Value>, name: String, piece: Value) {
    if piece.is_null() {
        return;
    }
    match fields.entry(name) {
        Entry::Vacant(entry) => {
            entry.insert(piece);
        }
        Entry::Occupied(mut entry) => match (entry.get_mut(), piece) {
            (Value::String(text), Value::String(piece)) => text.push_str(&piece),
            (Value::Array(items), Value::Array(piece)) => items.extend(piece),
            (Value::Object(object), Value::Object(piece)) => {
                for (name, value) in piece {
                    merge(object, name, value);
                }
            }
            (value, piece) => *value = piece,
        },
    }
}
