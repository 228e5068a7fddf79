use crate::testing::{World, code};
use polity_store::record::{Keeps, Record, ToolResult};
use serde_json::{Value, json};

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn who_can_is_found_among_contacts_or_through_one() {
    let world = World::new().await;
    let eyes = json!({"requiredCapabilities": ["vision"]});
    let lead = world.hire("root", "组长", json!({})).await;
    let writer = world.hire("root", "写手", json!({})).await;
    let wish = json!({"capability": "vision"});
    let none = world.call(&writer, "find_capable_agents", wish.clone()).await;
    assert_eq!(
        (&none["agents"], &none["othersExist"], &none["ask"]),
        (&json!([]), &json!(false), &json!([]))
    );
    assert_eq!(none["services"], json!(["eyes", "all"]));

    let reader = world.hire("root", "读者", eyes).await;
    let found = world.call(&writer, "find_capable_agents", wish.clone()).await;
    assert_eq!(
        (&found["agents"], &found["othersExist"], &found["ask"]),
        (&json!([]), &json!(true), &json!(["root"]))
    );
    let found = world.call("root", "find_capable_agents", wish.clone()).await;
    assert_eq!((ids(&found["agents"]), &found["othersExist"]), (vec![reader.as_str()], &json!(false)));
    let itself = world.call(&reader, "find_capable_agents", wish.clone()).await;
    assert_eq!((&itself["agents"], &itself["othersExist"]), (&json!([]), &json!(false)));
    let output = json!({"capability": "vision", "direction": "output"});
    assert_eq!(world.call("root", "find_capable_agents", output).await["agents"], json!([]));
    assert_eq!(
        code(&world.call("root", "find_capable_agents", json!({"capability": " "})).await),
        "invalid_arguments"
    );

    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    let found = world.call("root", "find_capable_agents", wish).await;
    assert_eq!((&found["agents"], &found["othersExist"]), (&json!([]), &json!(false)));
    assert!(!lead.is_empty());
}

#[tokio::test]
async fn the_structure_shows_what_is_below_and_who_is_known() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let reader = world.hire(&lead, "读者", json!({})).await;
    let stranger = world.hire("root", "旁人", json!({})).await;
    let seen = world.call(&lead, "get_org_structure", json!({})).await;
    assert_eq!(seen["self"]["id"], json!(lead));
    assert_eq!(
        (ids(&seen["descendants"]), &seen["descendants"][0]["parentAgentId"]),
        (vec![reader.as_str()], &json!(lead))
    );
    assert_eq!(ids(&seen["contacts"]), ["root"]);
    assert!(!seen.to_string().contains(&stranger));
    let all = world.call("root", "get_org_structure", json!({})).await;
    let mut below = ids(&all["descendants"]);
    below.sort_unstable();
    let mut expect = [lead.as_str(), &reader, &stranger];
    expect.sort_unstable();
    assert_eq!(below, expect);
    let leaf = world.call(&reader, "get_org_structure", json!({})).await;
    assert_eq!((ids(&leaf["contacts"]), ids(&leaf["descendants"])), (vec![lead.as_str()], vec![]));
}

#[tokio::test]
async fn contacts_are_listed_with_what_one_may_know_of_them() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({"requiredCapabilities": ["vision"]})).await;
    let listed = world.call("root", "list_contacts", json!({})).await;
    let mut listed = listed["contacts"].clone();
    for contact in listed.as_array_mut().unwrap() {
        // The person is a contact from the beginning, so a time for this contact would tell a model nothing.
        let since = contact.as_object_mut().unwrap().remove("since");
        assert_eq!(since.is_some(), contact["id"] != "user");
        assert!(since.is_none_or(|since| since.as_str().unwrap().ends_with('Z')));
    }
    assert_eq!(
        listed,
        json!([
            {"id": "user", "roleName": "user", "source": "system"},
            {"id": reader, "roleName": "读者", "source": "child",
             "capabilities": {"input": ["text", "vision"], "output": ["text", "tool_calling"]}},
        ])
    );
}

#[tokio::test]
async fn a_summary_is_kept_as_a_record() {
    let world = World::new().await;
    let wish = json!({"summary": "做了一半", "keepRecentCount": 2});
    let done = world.done(world.of("root"), "compress_context", wish).await;
    let summary =
        Record::Compacted { summary: "做了一半".to_owned(), keep_recent: 2, keeps: Keeps::Turn };
    assert_eq!(done.record, Some(summary));
    assert_eq!(done.result, ToolResult::Json(json!({"status": "success", "keepRecentCount": 2})));
    let by_default = world.call("root", "compress_context", json!({"summary": "做了一半"})).await;
    assert_eq!(by_default, json!({"status": "success", "keepRecentCount": 6}));
    let refused = world.call("root", "compress_context", json!({})).await;
    assert_eq!(code(&refused), "invalid_arguments");
}
