//! Creates a value that fits a JSON Schema, for a prompt that asks for an answer in a certain form. This file supports
//! the common keywords of schemas. If a schema has other keywords, the value may not fit. The society's own check of
//! answers then reports the error.

use serde_json::{Map, Value, json};

/// Maximum nesting of a value. Without this limit, a value for a schema that refers to itself would have no end.
const DEEPEST: usize = 16;

/// Returns a value that fits a schema. `words` is the value of each string that the schema does not restrict.
pub(crate) fn sample(schema: &Value, words: &str) -> Value {
    Sampler { root: schema, words }.value(schema, 0)
}

struct Sampler<'s> {
    root: &'s Value,
    words: &'s str,
}

impl Sampler<'_> {
    fn value(&self, schema: &Value, depth: usize) -> Value {
        if depth > DEEPEST {
            return Value::Null;
        }
        let found = schema.get("$ref").and_then(Value::as_str).and_then(|pointer| pointer.strip_prefix('#'));
        if let Some(found) = found.and_then(|pointer| self.root.pointer(pointer)) {
            return self.value(found, depth + 1);
        }
        if let Some(only) = schema.get("const") {
            return only.clone();
        }
        let first = |name: &str| schema.get(name).and_then(Value::as_array).and_then(|all| all.first());
        if let Some(first) = first("enum") {
            return first.clone();
        }
        if let Some(first) = ["anyOf", "oneOf", "allOf"].iter().find_map(|name| first(name)) {
            return self.value(first, depth + 1);
        }
        let kind = schema.get("type").and_then(Value::as_str);
        match kind.or_else(|| first("type").and_then(Value::as_str)) {
            Some("object") => self.object(schema, depth),
            Some("array") => self.array(schema, depth),
            Some("string") => json!(self.words),
            Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
            Some("boolean") => json!(true),
            Some("null") => Value::Null,
            Some(_) | None if schema.get("properties").is_some() => self.object(schema, depth),
            Some(_) | None => json!(self.words),
        }
    }

    fn object(&self, schema: &Value, depth: usize) -> Value {
        let properties = schema.get("properties").and_then(Value::as_object);
        let made = properties.into_iter().flatten();
        let mut made: Map<String, Value> =
            made.map(|(name, property)| (name.clone(), self.value(property, depth + 1))).collect();
        let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
        for name in required.filter_map(Value::as_str) {
            made.entry(name).or_insert_with(|| json!(self.words));
        }
        if made.is_empty() {
            made.insert("answer".to_owned(), json!(self.words));
        }
        Value::Object(made)
    }

    fn array(&self, schema: &Value, depth: usize) -> Value {
        let items = schema.get("items").cloned().unwrap_or_else(|| json!({}));
        let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(1).clamp(1, 8);
        (0..least).map(|_| self.value(&items, depth + 1)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_common_schemas() {
        let check = |schema: Value, expect: Value| assert_eq!(sample(&schema, "w"), expect, "{schema}");
        check(json!({"type": "object"}), json!({"answer": "w"}));
        check(
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string"},
                    "kind": {"enum": ["a", "b"]},
                    "count": {"type": "integer", "minimum": 3},
                    "sure": {"type": "boolean"},
                    "maybe": {"anyOf": [{"type": "string"}, {"type": "null"}]},
                    "steps": {"type": "array", "items": {"$ref": "#/$defs/step"}, "minItems": 2},
                },
                "$defs": {"step": {"type": "object", "properties": {"x": {"const": 7}}}},
            }),
            json!({"name": "w", "kind": "a", "count": 3, "sure": true, "maybe": "w", "steps": [{"x": 7}, {"x": 7}]}),
        );
        check(json!({"type": ["string", "null"]}), json!("w"));
        check(json!({}), json!("w"));
        // A schema that refers to itself must not make the function run for ever.
        let _ = sample(&json!({"type": "object", "properties": {"child": {"$ref": "#"}}}), "w");
    }
}
