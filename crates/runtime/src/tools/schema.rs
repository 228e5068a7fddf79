//! Builds the tools as models see them. The schemas come from the types, and the descriptions come from the prompts.

use super::arguments;
use polity_hands::table::Hands;
use polity_hands::tool::Words;
use polity_llm::Tool;
use polity_registry::{Snapshot, ToolText};
use polity_society::rules::{Rights, Verdict};
use polity_society::tool_group::ToolGroup;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::sync::{Arc, LazyLock};

/// The schema of each tool, without descriptions.
static SCHEMAS: LazyLock<Vec<(&'static str, Value)>> = LazyLock::new(|| {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut generator = settings.into_generator();
    let schemas = arguments::schemas(&mut generator);
    schemas.into_iter().map(|(name, schema)| (name, with_properties(plain(schema.to_value())))).collect()
});

/// Adds empty `properties` to an object without fields, because some servers refuse a schema without `properties`.
fn with_properties(mut schema: Value) -> Value {
    if let Some(object) = schema.as_object_mut() {
        object.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

/// Returns the society tools that an agent with these rights may call.
pub(crate) fn offered(rights: &Rights, snapshot: &Snapshot) -> Vec<Tool> {
    // Only agents that work in a workspace need to know that there is one.
    let has_workspace =
        [ToolGroup::Files, ToolGroup::Command].iter().any(|group| rights.decide(group) == Verdict::Allow);
    let may_give = rights.among(snapshot.settings.groups());
    let may_call =
        |name: &str| arguments::group_of(name).is_some_and(|group| rights.decide(&group) == Verdict::Allow);
    let chosen = SCHEMAS.iter().filter(|(name, _)| may_call(name));
    let tool = |(name, schema): &(&'static str, Value)| {
        let mut schema = schema.clone();
        list_groups(&mut schema, &may_give);
        if !has_workspace && let Some(Value::Object(properties)) = schema.get_mut("properties") {
            properties.shift_remove(super::WORKSPACE);
        }
        in_words(name, schema, snapshot.prompts.tool_texts.get(*name))
    };
    chosen.map(tool).collect()
}

/// Returns the tools that act outside and that an agent with these rights may call.
pub(crate) fn offered_outside(rights: &Rights, snapshot: &Snapshot, hands: &Hands) -> Vec<Tool> {
    let tools = hands.tools().into_iter().filter(|tool| rights.decide(&tool.group()) == Verdict::Allow);
    let tool = |tool: Arc<dyn polity_hands::tool::Tool>| {
        let parameters = with_properties(tool.parameters());
        match tool.words() {
            Words::FromPrompts => {
                in_words(tool.name(), parameters, snapshot.prompts.tool_texts.get(tool.name()))
            }
            Words::Own(description) => Tool { name: tool.name().to_owned(), description, parameters },
        }
    };
    tools.map(tool).collect()
}

/// Writes the groups that the caller may give to a role into the schemas of the tools that create roles.
fn list_groups(schema: &mut Value, may_give: &[ToolGroup]) {
    for path in ["/properties/toolGroups/items", "/properties/role/properties/toolGroups/items"] {
        if let Some(items) = schema.pointer_mut(path) {
            items["enum"] = may_give.iter().map(ToolGroup::name).collect();
        }
    }
}

fn in_words(name: &str, mut parameters: Value, text: Option<&ToolText>) -> Tool {
    if let Some(text) = text {
        for (path, description) in text.parameters.iter().filter(|(_, words)| !words.is_empty()) {
            let names: Vec<&str> = path.split('.').collect();
            describe(&mut parameters, &names, description);
        }
    }
    let description = text.map(|text| text.description.clone()).unwrap_or_default();
    Tool { name: name.to_owned(), description, parameters }
}

/// Adds a description to the field with this path. A path continues in the items of an array.
fn describe(schema: &mut Value, path: &[&str], description: &str) {
    let Some((name, rest)) = path.split_first() else {
        if let Some(object) = schema.as_object_mut() {
            object.insert("description".to_owned(), Value::String(description.to_owned()));
        }
        return;
    };
    if let Some(items) = schema.get_mut("items") {
        return describe(items, path, description);
    }
    if let Some(property) = schema.get_mut("properties").and_then(|properties| properties.get_mut(*name)) {
        describe(property, rest, description);
    }
}

/// Removes what models do not need and some servers do not accept: titles, formats, defaults, descriptions of the Rust
/// types, and `null` among the types of an optional field.
fn plain(value: Value) -> Value {
    match value {
        Value::Object(object) => Value::Object(plain_object(object)),
        Value::Array(items) => Value::Array(items.into_iter().map(plain).collect()),
        other => other,
    }
}

fn plain_object(object: Map<String, Value>) -> Map<String, Value> {
    let mut plainer = Map::new();
    for (key, value) in object {
        match (key.as_str(), value) {
            (
                "title" | "$schema" | "format" | "default" | "description" | "minimum",
                Value::String(_) | Value::Number(_) | Value::Array(_) | Value::Null | Value::Bool(_),
            ) => {}
            ("type", Value::Array(types)) => {
                let named: Vec<Value> = types.into_iter().filter(|name| name != "null").collect();
                let only =
                    if named.len() == 1 { named.into_iter().next() } else { Some(Value::Array(named)) };
                plainer.extend(only.map(|only| (key, only)));
            }
            ("properties", Value::Object(properties)) => {
                let properties = properties.into_iter().map(|(name, schema)| (name, plain(schema)));
                plainer.insert(key, Value::Object(properties.collect()));
            }
            (_, value) => {
                plainer.insert(key, plain(value));
            }
        }
    }
    plainer
}
