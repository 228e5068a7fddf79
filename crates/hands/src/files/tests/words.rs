//! Tests of the prompts that describe the file tools to models.

use crate::call::Access;
use crate::files::testing::Bench;
use crate::files::{Bounds, SearchFiles};
use crate::places::Places;
use crate::tool::{Tool, Words};
use futures::future::BoxFuture;
use polity_files::Workspace;
use polity_society::refusal::Refusal;
use polity_society::tool_group::ToolGroup;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of tokens for the definition of one tool.
const MAX_TOKENS: usize = 150;

const PROMPTS: [(&str, &str); 2] = [
    ("en", include_str!("../../../../../prompts/en/tools.toml")),
    ("zh", include_str!("../../../../../prompts/zh/tools.toml")),
];

struct Nowhere;

impl Places for Nowhere {
    fn open<'a>(&'a self, _: &'a crate::call::Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>> {
        panic!("no call is made")
    }
}

fn tools() -> Vec<Box<dyn Tool>> {
    let editor = Bench::new().editor(Access::Write);
    vec![Box::new(editor), Box::new(SearchFiles::new(Arc::new(Nowhere), Bounds::default()))]
}

#[test]
fn the_schemas_are_those_that_models_know() {
    let tools = tools();
    let schemas: Vec<Value> = tools.iter().map(|tool| json!([tool.name(), tool.parameters()])).collect();
    let text = json!({"type": "string"});
    let number = json!({"type": "integer"});
    let range = json!({"type": "array", "items": number});
    let commands = json!({"type": "string", "enum": ["view", "create", "str_replace", "insert"]});
    let editor = json!(["str_replace_editor", {
        "type": "object",
        "properties": {
            "command": commands, "path": text, "file_text": text, "old_str": text, "new_str": text,
            "insert_line": number, "view_range": range,
        },
        "required": ["command", "path"],
    }]);
    let search = json!(["search_files", {
        "type": "object",
        "properties": {"pattern": text, "glob": text, "path": text, "context": number, "limit": number},
    }]);
    assert_eq!(schemas, [editor, search]);
}

#[test]
fn each_tool_is_described_in_few_words() {
    let tokenizer = tiktoken_rs::o200k_base().unwrap();
    for (language, prompts) in PROMPTS {
        let prompts: toml::Table = prompts.parse().unwrap();
        for tool in tools() {
            assert_eq!((tool.group(), tool.words()), (ToolGroup::Files, Words::FromPrompts));
            let texts = &prompts[tool.name()];
            let mut parameters = tool.parameters();
            let described: BTreeSet<&String> = texts["parameters"].as_table().unwrap().keys().collect();
            let there = parameters["properties"].as_object().unwrap();
            assert_eq!(described, there.keys().collect(), "{language} {}", tool.name());
            for (name, description) in texts["parameters"].as_table().unwrap() {
                if let Some(description) = description.as_str().filter(|text| !text.is_empty()) {
                    parameters["properties"][name]["description"] = json!(description);
                }
            }
            let description = texts["description"].as_str().unwrap();
            let function = json!({"name": tool.name(), "description": description, "parameters": parameters});
            let definition = json!({"type": "function", "function": function}).to_string();
            let tokens = tokenizer.encode_ordinary(&definition).len();
            println!("{language} {}: {tokens} tokens", tool.name());
            assert!(tokens <= MAX_TOKENS, "{language}: {tokens} tokens: {definition}");
        }
    }
}
