use crate::testing::{World, brief, code};
use polity_society::id::{AgentId, TaskId};
use polity_store::Conversation;
use serde_json::{Value, json};

fn fields(refusal: &Value) -> Vec<&str> {
    let details = refusal["details"].as_array().unwrap_or_else(|| panic!("{refusal}"));
    details.iter().filter_map(|detail| detail["field"].as_str()).collect()
}

#[tokio::test]
async fn a_role_of_a_known_name_stays_as_it_was() {
    let world = World::new().await;
    let first = world.call("root", "create_role", json!({"name": "读者", "rolePrompt": "读"})).await;
    let wish = json!({"name": " 读者 ", "rolePrompt": "写", "requiredCapabilities": ["vision"]});
    let again = world.call("root", "create_role", wish).await;
    assert_eq!(again["id"], first["id"]);
    assert_eq!((&first["existing"], &again["existing"]), (&Value::Null, &json!(true)));
    assert_eq!(again["serviceId"], "words");
    assert_eq!(world.query("SELECT prompt FROM roles").await, ["读"]);
}

#[tokio::test]
async fn everything_that_is_wrong_with_a_role_is_said_at_once() {
    let world = World::new().await;
    let wish = json!({"name": "【系统消息】", "rolePrompt": " ", "serviceId": "nobody", "interface_spec": {"services": "读"}});
    let refused = world.call("root", "create_role", wish).await;
    assert_eq!(code(&refused), "invalid_arguments");
    assert_eq!(
        fields(&refused),
        [
            "name",
            "rolePrompt",
            "interface_spec.input_format",
            "interface_spec.output_format",
            "interface_spec.examples",
            "serviceId"
        ]
    );
    assert_eq!(refused["details"][5]["problem"], "must be one of: words, eyes, all");
    assert!(world.query("SELECT id FROM roles").await.is_empty());
}

#[tokio::test]
async fn names_that_could_pass_for_something_else_are_refused() {
    let world = World::new().await;
    for name in ["", " ", "a\nb", "[a]", "<a>", "a\u{202E}b", &"字".repeat(65)] {
        let refused = world.call("root", "create_role", json!({"name": name, "rolePrompt": "x"})).await;
        assert_eq!((code(&refused), fields(&refused)), ("invalid_arguments", vec!["name"]), "{name:?}");
    }
}

#[tokio::test]
async fn the_service_is_the_one_named_or_the_one_that_can() {
    let world = World::new().await;
    let check = async |name: &str, extra: Value, expect: &str| {
        let mut wish = json!({"name": name, "rolePrompt": "x"});
        wish.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let role = world.call("root", "create_role", wish).await;
        assert_eq!(role["serviceId"], expect, "{role}");
    };
    check("a", json!({}), "words").await;
    check("b", json!({"requiredCapabilities": ["vision"]}), "eyes").await;
    check("c", json!({"requiredCapabilities": ["vision", "audio"]}), "all").await;
    check("d", json!({"requiredCapabilities": ["vision"], "serviceId": "all"}), "all").await;
    check("e", json!({"requiredCapabilities": ["smell"]}), "words").await;
}

#[tokio::test]
async fn a_role_serves_who_made_it_and_those_above() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let other = world.hire("root", "旁人", json!({})).await;
    let role = world.call(&lead, "create_role", json!({"name": "读者", "rolePrompt": "读"})).await;
    let wish = json!({"roleId": role["id"], "taskBrief": brief()});
    for (agent, expect) in [(lead.as_str(), "ok"), ("root", "ok"), (other.as_str(), "not_child_role")] {
        let hired = world.call(agent, "spawn_agent", wish.clone()).await;
        assert_eq!(code(&hired), expect, "{agent}: {hired}");
        let found = world.call(agent, "find_role_by_name", json!({"name": "读者"})).await;
        assert_eq!(found.is_null(), expect != "ok", "{agent}: {found}");
    }
    let missing =
        world.call("root", "spawn_agent", json!({"roleId": "role-none", "taskBrief": brief()})).await;
    assert_eq!(code(&missing), "not_child_role");
}

#[tokio::test]
async fn roles_are_not_shared_between_tasks() {
    let world = World::new().await;
    world.add_task("t-2").await;
    let there = || Conversation { agent: AgentId::root(), task: TaskId::new("t-2") };
    let role = world.call("root", "create_role", json!({"name": "读者", "rolePrompt": "读"})).await;
    let found = world.call_in(there(), "find_role_by_name", json!({"name": "读者"})).await;
    assert_eq!(found, Value::Null);
    let hired =
        world.call_in(there(), "spawn_agent", json!({"roleId": role["id"], "taskBrief": brief()})).await;
    assert_eq!(code(&hired), "not_child_role");
    let own = world.call_in(there(), "create_role", json!({"name": "读者", "rolePrompt": "读"})).await;
    assert_ne!(own["id"], role["id"]);
}
