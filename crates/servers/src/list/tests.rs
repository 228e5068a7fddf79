//! Tests of reading lists of tools, including hostile lists.

use super::*;
use proptest::prelude::*;

fn listed(tools: Value, bounds: &Bounds) -> Listed {
    let mut listed = Listed::default();
    listed.accept(serde_json::from_value(tools).unwrap(), &ServerName::new("s").unwrap(), bounds);
    listed
}

#[test]
fn a_tool_is_taken_over() {
    let tools = json!([{
        "name": "read file",
        "description": "Reads.",
        "inputSchema": {"type": "object", "properties": {"path": {"type": "string", "description": "Where"}}},
        "annotations": {"readOnlyHint": true},
    }]);
    let listed = listed(tools, &Bounds::default());
    let expect = Definition {
        own_name: "read file".to_owned(),
        name: names::name(&ServerName::new("s").unwrap(), "read file"),
        description: "Reads.".to_owned(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string", "description": "Where"}}}),
        effect: Effect::Reads,
        after_crash: AfterCrash::Repeat,
    };
    assert_eq!(listed, Listed { definitions: vec![expect], left_out: 0 });
}

#[test]
fn hints_tell_the_effects() {
    let check = |hints: Value, effect, after_crash| {
        let hints: ToolAnnotations = serde_json::from_value(hints).unwrap();
        assert_eq!(effects(&hints), (effect, after_crash), "{hints:?}");
    };
    check(json!({}), Effect::Changes, AfterCrash::Never);
    check(json!({"readOnlyHint": false}), Effect::Changes, AfterCrash::Never);
    check(json!({"destructiveHint": false}), Effect::Changes, AfterCrash::Never);
    check(json!({"idempotentHint": true}), Effect::Changes, AfterCrash::Repeat);
    check(json!({"readOnlyHint": true, "idempotentHint": false}), Effect::Reads, AfterCrash::Repeat);
}

#[test]
fn tools_that_cannot_be_used_are_left_out() {
    let bounds = Bounds { schema_bytes: 60, tools: 2, description_chars: 4, ..Bounds::default() };
    let tools = json!([
        {"name": "a", "inputSchema": {}, "description": "abcdef"},
        {"name": "a", "inputSchema": {}, "description": "the same name again"},
        {"name": "b", "inputSchema": {"properties": {"a_name_that_makes_the_schema_too_large": {}}}},
        {"name": "c", "inputSchema": {"type": "array"}, "title": "C"},
        {"name": "d", "inputSchema": {}},
    ]);
    let listed = listed(tools, &bounds);
    let kept: Vec<_> =
        listed.definitions.iter().map(|tool| (tool.name.as_str(), tool.description.as_str())).collect();
    assert_eq!(kept, [("s__a", "abcd…"), ("s__c", "C")]);
    assert_eq!(listed.left_out, 3);
    assert_eq!(listed.definitions[1].parameters, json!({"type": "object"}));
}

proptest! {
    #[test]
    fn each_tool_is_kept_once_or_left_out(
        names in prop::collection::vec("[a-c.]{0,2}", 0..30),
        most in 0..10_usize,
        pages in 1..4_usize,
    ) {
        let bounds = Bounds { tools: most, ..Bounds::default() };
        let tools: Vec<Tool> = names.iter()
            .map(|name| serde_json::from_value(json!({"name": name, "inputSchema": {}})).unwrap()).collect();
        let mut listed = Listed::default();
        for page in tools.chunks(names.len() / pages + 1) {
            listed.accept(page.to_vec(), &ServerName::new("s").unwrap(), &bounds);
        }
        let distinct: BTreeSet<&String> = names.iter().collect();
        prop_assert_eq!(listed.definitions.len(), distinct.len().min(most));
        prop_assert_eq!(listed.definitions.len() + listed.left_out, names.len());
        let kept: BTreeSet<&String> = listed.definitions.iter().map(|tool| &tool.name).collect();
        prop_assert_eq!(kept.len(), listed.definitions.len());
    }
}
