//! Refuses schemas that would take long to compare with an answer. The functions are pure.
//!
//! Each time the validator finds a reference, it follows the reference again. If `d0` refers to `d1` twice, `d1` to
//! `d2` twice, and so on, every step doubles the number of comparisons, and a schema of a few lines takes years. The
//! same happens if a schema refers to itself twice for the same value. The validator does not limit the number of
//! comparisons. So this module first counts the schemas that the validator would follow.

use serde_json::{Map, Value};

/// Maximum number of schemas inside one schema. A schema to which several references lead counts once for each of them.
const LARGEST: u64 = 20_000;

/// Maximum length of a chain of references in which each leads to the next.
const LONGEST_CHAIN: usize = 64;

/// The cost of following a schema.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// The number of schemas that the validator follows.
    size: u64,
    /// While the validator follows a schema, a reference may lead it back to this schema. This is the number of such
    /// returns for the same value.
    returns: u64,
}

impl Cost {
    /// Returns the cost of two schemas together. The validator compares both with the same value.
    fn and(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            returns: self.returns.saturating_add(other.returns),
        }
    }

    /// Returns the cost of two schemas together. The validator compares each with another value, for example with
    /// another property.
    fn or(self, other: Self) -> Self {
        Self { size: self.size.saturating_add(other.size), returns: self.returns.max(other.returns) }
    }
}

/// Refuses a schema that would take long to compare with an answer. The error tells why the schema is too costly.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    let mut follower = Follower { root: schema, followed: Vec::new(), size: 0 };
    let cost = follower.schema(schema)?;
    if cost.returns > 1 {
        return Err("refers to itself in several ways for the same value".to_owned());
    }
    Ok(())
}

struct Follower<'s> {
    root: &'s Value,
    /// The references that are being followed.
    followed: Vec<&'s str>,
    /// The number of schemas that were followed so far.
    size: u64,
}

impl<'s> Follower<'s> {
    fn schema(&mut self, schema: &'s Value) -> Result<Cost, String> {
        self.size += 1;
        if self.size > LARGEST {
            return Err(format!("comes to more than {LARGEST} schemas with its references"));
        }
        let Value::Object(keywords) = schema else { return Ok(Cost { size: 1, returns: 0 }) };
        let mut cost = Cost { size: 1, returns: 0 };
        for (name, value) in keywords {
            let of_keyword = match (name.as_str(), value) {
                ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                    self.reference(reference)?
                }
                // A definition is not counted here. It is counted at each reference to it. The values of `const`,
                // `enum`, `default` and `examples` are not schemas.
                ("$defs" | "definitions" | "const" | "enum" | "default" | "examples", _) => Cost::default(),
                ("properties", Value::Object(all)) => self.each(all, Cost::or)?,
                ("patternProperties" | "dependentSchemas" | "dependencies", Value::Object(all)) => {
                    self.each(all, Cost::and)?
                }
                ("prefixItems", Value::Array(all)) => self.all(all, Cost::or)?,
                (_, Value::Array(all)) => self.all(all, Cost::and)?,
                (_, Value::Object(_)) => self.schema(value)?,
                _ => Cost::default(),
            };
            cost = cost.and(of_keyword);
        }
        Ok(cost)
    }

    fn each(&mut self, all: &'s Map<String, Value>, join: fn(Cost, Cost) -> Cost) -> Result<Cost, String> {
        let mut cost = Cost::default();
        for schema in all.values() {
            cost = join(cost, self.schema(schema)?);
        }
        Ok(cost)
    }

    fn all(&mut self, all: &'s [Value], join: fn(Cost, Cost) -> Cost) -> Result<Cost, String> {
        let mut cost = Cost::default();
        for schema in all.iter().filter(|schema| schema.is_object()) {
            cost = join(cost, self.schema(schema)?);
        }
        Ok(cost)
    }

    fn reference(&mut self, reference: &'s str) -> Result<Cost, String> {
        if reference == "#" || self.followed.contains(&reference) {
            return Ok(Cost { size: 1, returns: 1 });
        }
        let found = reference.strip_prefix('#').and_then(|pointer| self.root.pointer(pointer));
        let Some(found) = found else {
            return Err(format!("refers to {reference:?}, which is no place in it"));
        };
        if self.followed.len() >= LONGEST_CHAIN {
            return Err(format!("has more than {LONGEST_CHAIN} references in a row"));
        }
        self.followed.push(reference);
        let cost = self.schema(found);
        self.followed.pop();
        cost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_people_write_is_cheap() {
        let good = |schema: Value| assert_eq!(check(&schema), Ok(()), "{schema}");
        good(json!(true));
        good(json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}));
        // These schemas refer to themselves: a list, a tree, and a tree in the form that schema generators write.
        good(json!({"properties": {"next": {"anyOf": [{"type": "null"}, {"$ref": "#"}]}}}));
        good(json!({"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}}));
        good(json!({
            "$ref": "#/$defs/node",
            "$defs": {"node": {"properties": {
                "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
                "parent": {"anyOf": [{"$ref": "#/$defs/node"}, {"type": "null"}]},
            }}},
        }));
        good(json!({"const": {"$ref": "nothing"}, "enum": [{"allOf": [{}, {}]}]}));
    }

    #[test]
    fn what_would_take_long_is_refused() {
        let bad = |schema: Value| assert!(check(&schema).is_err(), "{schema}");
        let mut doubling = json!({"$ref": "#/$defs/d0", "$defs": {"d40": {"type": "string"}}});
        for number in 0..40 {
            let next = json!({"$ref": format!("#/$defs/d{}", number + 1)});
            doubling["$defs"][format!("d{number}")] = json!({"allOf": [next, next]});
        }
        bad(doubling);
        bad(json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}));
        bad(json!({"properties": {"a": {"$ref": "#"}}, "patternProperties": {".": {"$ref": "#"}}}));
        let mut chain = json!({"$ref": "#/$defs/d0", "$defs": {"d100": {}}});
        for number in 0..100 {
            chain["$defs"][format!("d{number}")] = json!({"$ref": format!("#/$defs/d{}", number + 1)});
        }
        bad(chain);
        bad(json!({"$ref": "https://example.com/schema.json"}));
        bad(json!({"$ref": "#/nowhere"}));
    }
}
