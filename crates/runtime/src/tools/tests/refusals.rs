//! A refused call changes nothing. This holds for every tool, every agent and all arguments.

use crate::testing::{World, brief, code};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const TOOLS: [&str; 14] = [
    "create_role",
    "find_role_by_name",
    "spawn_agent",
    "spawn_agent_with_task",
    "spawn_agent_with_task",
    "terminate_agent",
    "get_org_structure",
    "send_message",
    "send_message",
    "find_capable_agents",
    "put_artifact",
    "get_artifact",
    "compress_context",
    "no_such_tool",
];

/// The names of agents in the arguments below. A name with `%` is replaced by the agent's id just before the call.
const PEOPLE: [&str; 7] = ["root", "user", "%lead", "%reader", "%friend", "%ended", "nobody-1"];

fn payload() -> BoxedStrategy<Value> {
    let types = select(vec![
        Value::Null,
        json!("gossip"),
        json!("task_assignment"),
        json!("introduction_request"),
        json!("introduction_response"),
        json!("status_report"),
    ]);
    let targets = select(PEOPLE.map(|id| json!({"id": id})).to_vec());
    let attachments = select(vec![
        json!([]),
        json!(["%mine"]),
        json!(["%secret"]),
        json!(["../x"]),
        json!("artifact:none"),
    ]);
    let texts = select(vec![Value::Null, json!("看"), json!("字".repeat(400)), json!("见 artifact:none")]);
    let object = (types, targets, attachments, texts, any::<bool>()).prop_map(|(kind, target, attachments, text, whole)| {
        let mut object = json!({"message_type": kind, "target_agent": target, "attachments": attachments, "text": text});
        if whole {
            object["usage_hint"] = json!("x");
            object["taskBrief"] = brief();
            object["reason"] = json!("x");
            object["required_capability"] = json!("vision");
        }
        object
    });
    prop_oneof![4 => object, 1 => select(vec![json!("好"), json!(" "), json!(3), json!({})])].boxed()
}

fn briefs() -> BoxedStrategy<Value> {
    let collaborators = select(PEOPLE.map(|id| json!([id])).to_vec());
    let whole = collaborators.prop_map(|collaborators| {
        let mut brief = brief();
        brief["collaborators"] = collaborators;
        brief
    });
    prop_oneof![3 => whole, 1 => select(vec![brief(), json!({}), json!("做"), json!({"objective": ""})])]
        .boxed()
}

/// Generates arguments for a tool. The arguments are drawn from the fields of all tools. Each field may be present or
/// missing, valid or invalid.
fn arguments() -> impl Strategy<Value = Value> {
    let of = |key: &'static str, values: BoxedStrategy<Value>| {
        (Just(key), proptest::option::weighted(0.9, values))
    };
    let one = |values: Vec<Value>| select(values).boxed();
    let people = || PEOPLE.map(Value::from).to_vec();
    let groups = PEOPLE.iter().flat_map(|a| PEOPLE.iter().map(move |b| json!([a, b]))).collect::<Vec<_>>();
    let fields = (
        of("name", one(vec![json!("读者"), json!("【x】"), json!(""), json!("新"), json!(5)])),
        of("rolePrompt", one(vec![json!("x"), json!("")])),
        of("serviceId", one(vec![json!("eyes"), json!("nobody")])),
        of("roleId", one(vec![json!("%role"), json!("%hidden"), json!("读者"), json!("role-none")])),
        of("taskBrief", briefs()),
        of("initialMessage", payload()),
        of("agentId", one(people())),
        of("to", one([people(), groups].concat())),
        of("payload", payload()),
        of(
            "content",
            one(vec![json!("x"), json!("%mine"), json!("%secret"), json!("y".repeat(300)), json!("AA=A")]),
        ),
        of("encoding", one(vec![json!("base64"), json!("utf-8"), json!("rot13")])),
        of("ref", one(vec![json!("%mine"), json!("%secret"), json!("artifact:none")])),
    );
    fields.prop_map(|fields| {
        let (a, b, c, d, e, f, g, h, i, j, k, l) = fields;
        let all = [a, b, c, d, e, f, g, h, i, j, k, l];
        let there: Map<String, Value> =
            all.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
        Value::Object(there)
    })
}

async fn society() -> (World, BTreeMap<&'static str, String>) {
    let limits = json!({"maxMessageChars": 300, "maxArtifactBytes": 200, "maxQueue": 20, "maxChildren": 5, "maxAgentsPerTask": 12});
    let world = World::with(&limits).await;
    let lead = world.hire("root", "组长", json!({})).await;
    let reader = world.hire(&lead, "读者", json!({})).await;
    let friend = world.hire("root", "朋友", json!({})).await;
    let ended = world.hire(&lead, "故人", json!({})).await;
    world.call(&lead, "terminate_agent", json!({"agentId": ended})).await;
    let role = world.call(&lead, "create_role", json!({"name": "写手", "rolePrompt": "x"})).await;
    let hidden = world.call("root", "create_role", json!({"name": "密使", "rolePrompt": "x"})).await;
    let mine = world.call(&lead, "put_artifact", json!({"type": "note", "content": "一"})).await;
    let secret = world.call(&friend, "put_artifact", json!({"type": "note", "content": "二"})).await;
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let names = BTreeMap::from([
        ("%lead", lead),
        ("%reader", reader),
        ("%friend", friend),
        ("%ended", ended),
        ("%role", text(&role["id"])),
        ("%hidden", text(&hidden["id"])),
        ("%mine", text(&mine["ref"])),
        ("%secret", text(&secret["ref"])),
    ]);
    (world, names)
}

fn named(text: &str, names: &BTreeMap<&str, String>) -> String {
    names.iter().fold(text.to_owned(), |text, (name, id)| text.replace(name, id))
}

#[test]
fn no_refusal_changes_anything() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (world, names) = runtime.block_on(society());
    let mut refused: BTreeMap<String, u32> = BTreeMap::new();
    let callers = select(vec!["%lead", "%lead", "root", "%reader", "%friend"]);
    let cases = (callers, select(TOOLS.to_vec()), arguments());
    // The cases are the same at each run. Otherwise some runs could miss a refusal code by chance.
    let seed = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let config = ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) };
    let mut runner = TestRunner::new_with_rng(config, seed);
    let codes = std::cell::RefCell::new(&mut refused);
    runner
        .run(&cases, |(caller, tool, arguments)| {
            let arguments = serde_json::from_str(&named(&arguments.to_string(), &names)).unwrap();
            runtime.block_on(async {
                let before = world.dump().await;
                let result = world.call(&named(caller, &names), tool, arguments).await;
                if result.get("error").is_some() {
                    *codes.borrow_mut().entry(code(&result).to_owned()).or_default() += 1;
                    prop_assert_eq!(world.dump().await, before, "{} was refused: {}", tool, result);
                }
                Ok(())
            })
        })
        .unwrap();
    // Every code must have occurred, because otherwise it was not tested.
    for expected in [
        "agent_terminated",
        "artifact_not_found",
        "invalid_arguments",
        "invalid_message",
        "invalid_task_brief",
        "limit_reached",
        "not_child_role",
        "not_descendant",
        "unknown_contact",
        "unknown_tool",
    ] {
        assert!(refused.contains_key(expected), "{expected} in {refused:?}");
    }
}
