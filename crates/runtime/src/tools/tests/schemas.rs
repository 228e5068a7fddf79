use crate::society::with_own_tools;
use crate::testing::tool::shipped_hands;
use crate::testing::{World, snapshot};
use crate::tools::{Asker, Offering, ToolCache, offered, offered_outside};
use polity_hands::table::Hands;
use polity_llm::Tool;
use polity_society::id::AgentId;
use polity_society::rules::{Link, Rights};
use polity_society::tool_group::{Grant, ToolGroup};
use serde_json::{Value, json};

async fn tools() -> Vec<Tool> {
    let (rights, snapshot) = (Rights::of(&Grant::everything(), &[]), snapshot(&json!({})).await);
    let asker = Asker { rights: &rights, role: "", snapshot: &snapshot, hands: &Hands::none() };
    offered(asker, &ToolCache::default())
}

#[tokio::test]
async fn what_models_are_told_about_the_tools() {
    let shown: Vec<Value> = tools()
        .await
        .into_iter()
        .map(
            |tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters}),
        )
        .collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&shown).unwrap());
}

fn walk(value: &Value, path: &str, look: &mut dyn FnMut(&str, &Value)) {
    look(path, value);
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                walk(value, &format!("{path}/{key}"), look);
            }
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                walk(value, &format!("{path}/{index}"), look);
            }
        }
        _ => {}
    }
}

#[tokio::test]
async fn schemas_are_plain_and_valid() {
    for tool in tools().await {
        let parameters = &tool.parameters;
        assert!(jsonschema::meta::is_valid(parameters), "{}", tool.name);
        assert_eq!(parameters["type"], "object", "{}", tool.name);
        assert!(
            parameters["properties"].is_object(),
            "{}: servers refuse an object without properties",
            tool.name
        );
        walk(parameters, &tool.name, &mut |path, value| {
            for word in ["$ref", "$schema", "$defs", "title", "format", "default", "oneOf", "allOf"] {
                let is_field = path.ends_with("/properties");
                assert!(is_field || value.get(word).is_none(), "{path} has {word}");
            }
            if let Some(Value::Array(types)) = value.get("type") {
                panic!("{path} is one of several types: {types:?}");
            }
        });
    }
}

/// The places in schemas that accept any object. Every other object in a schema must list its fields.
const OPEN: [&str; 4] =
    ["/properties/meta", "/properties/taskBrief", "/properties/interface_spec", "/properties/target_agent"];

#[tokio::test]
async fn objects_name_their_fields_unless_any_will_do() {
    for tool in tools().await {
        walk(&tool.parameters, &tool.name, &mut |path, value| {
            if value.get("type") != Some(&json!("object")) || value.get("properties").is_some() {
                return;
            }
            assert!(OPEN.iter().any(|open| path.contains(open)), "{path} names no fields");
        });
    }
}

#[tokio::test]
async fn a_role_has_the_tools_of_its_groups_and_those_for_writing() {
    let snapshot = snapshot(&json!({})).await;
    let names = |groups: &[ToolGroup]| -> Vec<String> {
        let link = Link { agent: AgentId::new("a"), role: "r".to_owned(), groups: groups.to_vec() };
        let rights = Rights::of(&Grant::everything(), &[link]);
        let asker = Asker { rights: &rights, role: "r", snapshot: &snapshot, hands: &Hands::none() };
        offered(asker, &ToolCache::default()).into_iter().map(|tool| tool.name.clone()).collect()
    };
    assert_eq!(names(&[]).len(), polity_decide::arguments::NAMES.len());
    assert_eq!(
        names(&[ToolGroup::Context]),
        ["send_message", "list_contacts", "find_capable_agents", "compress_context"]
    );
    assert_eq!(
        names(&[ToolGroup::Artifacts]),
        [
            "send_message",
            "list_contacts",
            "find_capable_agents",
            "put_artifact",
            "get_artifact",
            "list_artifacts"
        ]
    );
    assert_eq!(names(ToolGroup::BUILT_IN), names(&[]));
}

/// The policy denies the clerk three things: the tools `list_*`, the calls of `http_request` that change something, and
/// the tools of the group `files`.
#[tokio::test]
async fn what_the_policy_denies_to_a_role_in_every_case_is_not_offered() {
    let policy = json!([
        {"role": "clerk", "tool": "list_*", "decide": "deny"},
        {"role": "clerk", "tool": "http_request", "write": true, "decide": "deny"},
        {"role": "clerk", "group": "files", "decide": "deny"},
    ]);
    let snapshot = snapshot(&json!({"tools": {"policy": policy}})).await;
    let (rights, hands) = (Rights::of(&Grant::everything(), &[]), shipped_hands());
    let shown = |role: &str| -> Vec<Tool> {
        let asker = Asker { rights: &rights, role, snapshot: &snapshot, hands: &hands };
        offered(asker, &ToolCache::default())
            .into_iter()
            .chain(offered_outside(asker, &Offering::default(), &ToolCache::default()))
            .collect()
    };
    let missing = |role: &str| -> Vec<&str> {
        let shown = shown(role);
        let all =
            ["list_artifacts", "list_contacts", "str_replace_editor", "search_files", "http_request", "bash"];
        all.into_iter().filter(|name| !shown.iter().any(|tool| tool.name == *name)).collect()
    };
    assert_eq!(missing("writer"), [""; 0]);
    // The rule for `list_*` does not hide `list_contacts`: the policy cannot deny the tools for messages.
    assert_eq!(missing("clerk"), ["list_artifacts", "str_replace_editor", "search_files"]);
    for (tool, argument) in [("put_artifact", "path"), ("get_artifact", "saveTo"), ("http_request", "saveTo")]
    {
        let has = |role: &str| {
            let tool = shown(role).into_iter().find(|shown| shown.name == tool).unwrap();
            tool.parameters["properties"].get(argument).is_some()
        };
        assert!(has("writer") && !has("clerk"), "{tool}");
    }
}

/// Lists the required arguments of each tool. All other arguments are optional.
#[tokio::test]
async fn what_a_call_cannot_do_without() {
    let tools = tools().await;
    let check = |name: &str, expect: &[&str]| {
        let tool = tools.iter().find(|tool| tool.name == name).unwrap();
        let required = tool.parameters.get("required").cloned().unwrap_or_else(|| json!([]));
        assert_eq!(required, json!(expect), "{name}");
    };
    check("create_role", &["name", "rolePrompt"]);
    check("find_role_by_name", &["name"]);
    check("spawn_agent", &["roleId", "taskBrief"]);
    check("spawn_agent_with_task", &["taskBrief", "initialMessage"]);
    check("terminate_agent", &["agentId"]);
    check("get_org_structure", &[]);
    check("send_message", &["to", "payload"]);
    check("list_contacts", &[]);
    check("find_capable_agents", &["capability"]);
    check("put_artifact", &["type", "content"]);
    check("get_artifact", &["ref"]);
    check("list_artifacts", &[]);
    check("compress_context", &["summary"]);
}

/// Returns the names of the outside tools that root is offered if this rule holds for files, commands and the web.
async fn offered_under(rule: &Value) -> Vec<String> {
    let rules: Vec<Value> = ["files", "command", "web"]
        .into_iter()
        .map(|group| {
            let mut rule = rule.clone();
            rule["group"] = json!(group);
            rule
        })
        .collect();
    let world = World::with_app(&json!({"tools": {"policy": rules}})).await;
    let hands = with_own_tools(shipped_hands(), &world.store, &world.registry);
    let rights = Rights::of(&Grant::everything(), &[]);
    let asker = Asker { rights: &rights, role: "root", snapshot: &world.snapshot, hands: &hands };
    let offered = offered_outside(asker, &Offering::default(), &ToolCache::default());
    offered.into_iter().map(|tool| tool.name.clone()).collect()
}

/// Every call of `merge_workspace` changes something, and no call of `search_files` does. With the other two tools, it
/// depends on the arguments.
#[tokio::test]
async fn a_tool_is_not_offered_where_a_rule_denies_all_that_it_does() {
    const DEPENDING: [&str; 2] = ["str_replace_editor", "http_request"];
    const CHANGING: [&str; 3] = ["merge_workspace", "bash", "bash_stop"];
    let all = offered_under(&json!({"decide": "allow"})).await;
    assert!(["merge_workspace", "search_files"].iter().all(|name| all.iter().any(|offered| offered == name)));
    let changes = |name: &&String| CHANGING.contains(&name.as_str());
    let depends = |name: &&String| DEPENDING.contains(&name.as_str());
    let without_changing: Vec<&String> = all.iter().filter(|name| !changes(name)).collect();
    let without_reading: Vec<&String> = all.iter().filter(|name| changes(name) || depends(name)).collect();
    for (write, expect) in [(true, without_changing), (false, without_reading)] {
        let offered = offered_under(&json!({"write": write, "decide": "deny"})).await;
        assert_eq!(offered.iter().collect::<Vec<_>>(), expect, "write: {write}");
    }
}

/// No call of a society tool changes anything outside the society. An argument that copies a file or saves an answer has
/// the effect of the copy.
#[tokio::test]
async fn a_rule_about_an_effect_hides_society_tools_and_arguments_that_always_have_it() {
    for write in [true, false] {
        let rule = |on: &str, name: &str| json!({on: name, "write": write, "decide": "deny"});
        let policy = json!([rule("tool", "list_artifacts"), rule("group", "files")]);
        let snapshot = snapshot(&json!({"tools": {"policy": policy}})).await;
        let (rights, hands) = (Rights::of(&Grant::everything(), &[]), shipped_hands());
        let asker = Asker { rights: &rights, role: "root", snapshot: &snapshot, hands: &hands };
        let mut shown = offered(asker, &ToolCache::default());
        shown.extend(offered_outside(asker, &Offering::default(), &ToolCache::default()));
        let tool = |name: &str| shown.iter().find(|tool| tool.name == name);
        let has =
            |name: &str, argument: &str| tool(name).unwrap().parameters["properties"].get(argument).is_some();
        assert_eq!(tool("list_artifacts").is_some(), write, "write: {write}");
        assert_eq!(has("put_artifact", "path"), write, "write: {write}");
        for name in ["get_artifact", "http_request"] {
            assert_eq!(has(name, "saveTo"), !write, "{name}, write: {write}");
        }
    }
}

#[tokio::test]
async fn the_effect_that_a_tool_always_has_is_that_of_each_call() {
    let world = World::new().await;
    let hands = with_own_tools(shipped_hands(), &world.store, &world.registry);
    let calls = [
        json!({}),
        json!({"command": "view", "path": "a"}),
        json!({"command": "create", "path": "a", "file_text": "x"}),
        json!({"method": "GET", "url": "http://a.example/"}),
        json!({"method": "POST", "url": "http://a.example/", "saveTo": "f"}),
    ];
    for tool in hands.tools() {
        for call in &calls {
            let effect = tool.reach(call.as_object().unwrap()).effect();
            assert!(tool.always().is_none_or(|always| always == effect), "{} {call}", tool.name());
        }
    }
}
