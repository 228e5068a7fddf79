//! Joins the pieces of fields that only the service understands, such as `reasoning_content`.

use polity_bounds::weigh_value;
use serde_json::map::Entry;
use serde_json::{Map, Value};

/// Joins a piece of a field to the earlier pieces of the same field. A string or an array is appended to the earlier
/// value. An object is merged into the earlier object. `null` changes nothing. Any other value replaces the earlier
/// value. Returns the additional memory that the fields take, in bytes.
pub(super) fn merge(fields: &mut Map<String, Value>, name: String, piece: Value) -> usize {
    if piece.is_null() {
        return 0;
    }
    match fields.entry(name) {
        Entry::Vacant(entry) => {
            let weight = entry.key().len() + weigh_value(&piece);
            entry.insert(piece);
            weight
        }
        Entry::Occupied(mut entry) => match (entry.get_mut(), piece) {
            (Value::String(text), Value::String(piece)) => {
                text.push_str(&piece);
                piece.len()
            }
            (Value::Array(items), Value::Array(piece)) => {
                let weight = piece.iter().map(weigh_value).sum();
                items.extend(piece);
                weight
            }
            (Value::Object(object), Value::Object(piece)) => {
                piece.into_iter().map(|(name, value)| merge(object, name, value)).sum()
            }
            (value, piece) => {
                let weight = weigh_value(&piece);
                *value = piece;
                weight
            }
        },
    }
}
