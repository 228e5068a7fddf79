//! Estimates how much memory a JSON text takes once it is parsed into a tree of `serde_json::Value`.
//!
//! The estimate is the length of the text, plus a fixed weight for each comma, colon and opening bracket outside
//! strings. A property test checks that parsing takes at most 256 bytes more than the estimate. For most texts, the
//! estimate is a few times the length of the text.

use serde_json::Value;

/// Bytes that a value takes in its array or object: up to three times its size. An array or object doubles its capacity
/// when it grows, and during the growth, both the old and the new memory are in use.
const VALUE: usize = 3 * size_of::<Value>();
/// Bytes that an array takes in addition to its values. A new array has room for four values.
const ARRAY: usize = 4 * size_of::<Value>();
/// Bytes that an object takes in addition to its members: its table, and room for the first members.
const OBJECT: usize = 512;
/// Bytes that a member takes in addition to its value: its hash, its place in the table, and its key.
const MEMBER: usize = 128;

/// Weighs a JSON text that arrives in pieces.
#[derive(Clone, Debug, Default)]
pub struct Weigher {
    place: Place,
    weight: usize,
}

/// Where the next byte of the text is: outside a string, in a string, or after a backslash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Place {
    #[default]
    Outside,
    InString,
    /// After a backslash in a string.
    Escaped,
}

impl Weigher {
    /// Weighs the next piece of the text. Returns the weight of all pieces so far.
    pub fn add(&mut self, piece: &[u8]) -> usize {
        let mut added = piece.len();
        for byte in piece {
            match (self.place, byte) {
                (Place::Outside, b'"') => self.place = Place::InString,
                (Place::Outside, b',') => added += VALUE,
                (Place::Outside, b'[') => added += VALUE + ARRAY,
                (Place::Outside, b'{') => added += VALUE + OBJECT,
                (Place::Outside, b':') => added += MEMBER,
                (Place::InString, b'"') => self.place = Place::Outside,
                (Place::InString, b'\\') => self.place = Place::Escaped,
                (Place::Escaped, _) => self.place = Place::InString,
                (Place::Outside | Place::InString, _) => {}
            }
        }
        self.weight = self.weight.saturating_add(added);
        self.weight
    }
}

/// Returns the weight of a whole text.
pub fn weigh(text: &[u8]) -> usize {
    Weigher::default().add(text)
}

/// Returns the weight of a parsed value.
pub fn weigh_value(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => VALUE,
        Value::String(text) => VALUE + text.len(),
        Value::Array(values) => VALUE + ARRAY + values.iter().map(weigh_value).sum::<usize>(),
        Value::Object(members) => {
            let of_member = |(key, value): (&String, &Value)| MEMBER + key.len() + weigh_value(value);
            VALUE + OBJECT + members.iter().map(of_member).sum::<usize>()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use allocation_counter::measure;
    use proptest::prelude::*;

    /// Returns the memory that parsing takes at its peak, in bytes.
    fn taken(text: &str) -> usize {
        let mut parsed = None;
        let taken = measure(|| parsed = serde_json::from_str::<Value>(text).ok());
        assert!(parsed.is_some(), "{text}");
        usize::try_from(taken.bytes_max).unwrap()
    }

    #[test]
    fn texts_of_tiny_values_are_not_underestimated() {
        let check = |one: &str| {
            let text = format!("[{}0]", format!("{one},").repeat(10_000));
            assert!(
                weigh(text.as_bytes()) >= taken(&text),
                "{one}: {} < {}",
                weigh(text.as_bytes()),
                taken(&text)
            );
        };
        for one in ["0", "[]", "[0]", "{}", "[[[[0]]]]", r#""""#, r#""x""#, r#"{"a":0}"#, r#"{"a":{"b":[]}}"#]
        {
            check(one);
        }
        check(r#"{"a":0,"b":0,"c":0,"d":0,"e":0}"#);
    }

    #[test]
    fn a_long_text_weighs_little_more_than_its_length() {
        let text = serde_json::json!({"content": "a, b: [c] {d} \" \\ ".repeat(100_000)}).to_string();
        assert!(weigh(text.as_bytes()) < text.len() + 1_000);
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<i64>().prop_map(Value::from),
            "[a-z\"\\\\,:{}\\[\\]é]{0,12}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 64, 8, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                proptest::collection::vec(("[a-z\"]{0,6}", inner), 0..8)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_weight_is_the_same_however_the_text_is_cut(value in value(), cuts in proptest::collection::vec(0_usize..200, 0..5)) {
            let text = value.to_string().into_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let (mut weigher, mut from, mut weight) = (Weigher::default(), 0, 0);
            for cut in cuts.into_iter().chain([text.len()]) {
                weight = weigher.add(&text[from..cut]);
                from = cut;
            }
            prop_assert_eq!(weight, weigh(&text));
        }

        #[test]
        fn no_tree_takes_more_than_its_weight(value in value()) {
            // The parser itself needs a little memory for strings with escapes; hence the 256 bytes.
            let text = value.to_string();
            prop_assert!(taken(&text) <= weigh(text.as_bytes()) + 256);
            prop_assert!(taken(&text) <= weigh_value(&value) + 256);
        }
    }
}
