//! A tool as the model sees it.

use crate::tokens::estimate_tokens;
use serde::{Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};
use std::ops::Deref;
use std::sync::Arc;

/// A tool as the model sees it. The definition never changes. So it is written as JSON only once, and all clones of the
/// tool share it.
#[derive(Clone, Debug)]
pub struct Tool(Arc<ToolDefinition>);

/// The definition of a tool.
#[derive(Debug)]
pub struct ToolDefinition {
    /// The name by which the model calls the tool.
    pub name: String,
    /// What the tool does. The model reads this text.
    pub description: String,
    /// The JSON Schema that the arguments of a call must fit.
    pub parameters: Value,
    tokens: u64,
    /// The definition as an entry of the field `tools` of a request.
    json: Box<RawValue>,
}

impl Tool {
    /// Makes a tool, and writes its definition as JSON.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        let (name, description) = (name.into(), description.into());
        let tokens =
            [name.as_str(), &description, &parameters.to_string()].into_iter().map(estimate_tokens).sum();
        let function = Function { name: &name, description: &description, parameters: &parameters };
        // Cannot fail: the definition consists of texts and a JSON value.
        let json = to_raw_value(&Entry::Function { function }).unwrap_or_else(|_| RawValue::NULL.to_owned());
        Self(Arc::new(ToolDefinition { name, description, parameters, tokens, json }))
    }

    /// Returns how many tokens the tool takes in a request. The number is an estimate.
    pub fn tokens(&self) -> u64 {
        self.0.tokens
    }
}

impl Deref for Tool {
    type Target = ToolDefinition;

    fn deref(&self) -> &ToolDefinition {
        &self.0
    }
}

impl PartialEq for Tool {
    fn eq(&self, other: &Self) -> bool {
        let ToolDefinition { name, description, parameters, .. } = &**self;
        (name, description, parameters) == (&other.name, &other.description, &other.parameters)
    }
}

impl Serialize for Tool {
    /// Writes the tool as an entry of the field `tools` of a request.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.json.serialize(serializer)
    }
}

/// An entry of the field `tools` of a request.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Entry<'a> {
    Function { function: Function<'a> },
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_tool_is_written_as_requests_contain_it() {
        let parameters = json!({"type": "object", "properties": {"b": {}, "a": {}}});
        let tool = Tool::new("f", "does \"f\"", parameters.clone());
        let written = serde_json::to_string(&[&tool]).unwrap();
        let function = json!({"name": "f", "description": "does \"f\"", "parameters": parameters});
        assert_eq!(written, json!([{"type": "function", "function": function}]).to_string());
        assert_eq!(tool, Tool::new("f", "does \"f\"", parameters));
        assert_ne!(tool, Tool::new("f", "does \"f\"", json!({})));
    }
}
