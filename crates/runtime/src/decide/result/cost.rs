//! Refuses schemas with which a comparison would take long. Pure.
//!
//! A reference is followed as often as it stands somewhere, so a few lines can stand for more comparisons than anybody can
//! wait for: `d0` twice `d1`, `d1` twice `d2`, and so on; or a schema that refers to itself in two ways for the same
//! value. The validator does not guard against that.

use serde_json::{Map, Value};

/// How many schemas one may come to, with every reference followed.
const LARGEST: u64 = 20_000;

/// How many references may stand in a row.
const LONGEST_CHAIN: usize = 64;

/// What following a schema comes to.
#[derive(Clone, Copy, Debug, Default)]
struct Cost {
    /// How many schemas it is.
    size: u64,
    /// How often it comes back, for one and the same value, to a schema that is being followed already.
    returns: u64,
}

impl Cost {
    /// For the same value.
    fn and(self, other: Self) -> Self {
        Self {
            size: self.size.saturating_add(other.size),
            returns: self.returns.saturating_add(other.returns),
        }
    }

    /// For values of which none is the other.
    fn or(self, other: Self) -> Self {
        Self { size: self.size.saturating_add(other.size), returns: self.returns.max(other.returns) }
    }
}

/// Says what makes a schema too costly.
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
    /// How many schemas there were so far.
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
                // They count where they are referred to, and values are no schemas.
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
        // A list, a tree, and what generators of schemas make of them.
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
