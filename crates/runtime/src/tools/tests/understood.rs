//! Everything that a model writes in a call is understood, refused or reported as ignored.

use crate::testing::{World, brief, code};
use serde_json::{Value, json};

/// Returns the ids of the agents that an ambiguous name may mean. The refusal lists them.
#[track_caller]
fn candidates(refused: &Value) -> Vec<&str> {
    assert_eq!(code(refused), "ambiguous_name", "{refused}");
    let candidates = refused["candidates"].as_array().unwrap();
    let mut ids: Vec<&str> = candidates.iter().map(|candidate| candidate["id"].as_str().unwrap()).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn a_name_that_several_have_reaches_none_of_them() {
    let world = World::new().await;
    let mut readers =
        [world.hire("root", "读者", json!({})).await, world.hire("root", "读者", json!({})).await];
    readers.sort_unstable();
    let writer = world.hire("root", "写手", json!({})).await;
    let before = world.dump().await;

    let sent = world.say("root", "读者", json!("看")).await;
    assert_eq!(candidates(&sent), readers);
    assert_eq!((&sent["name"], &sent["candidates"][0]["role"]), (&json!("读者"), &json!("读者")));
    let introduction =
        json!({"message_type": "introduction_response", "target_agent": {"id": "读者"}, "usage_hint": "x"});
    assert_eq!(candidates(&world.say("root", &writer, introduction).await), readers);
    let mut with_readers = brief();
    with_readers["collaborators"] = json!(["读者"]);
    let arguments = json!({"roleId": "写手", "taskBrief": with_readers});
    assert_eq!(candidates(&world.call("root", "spawn_agent", arguments).await), readers);
    let ended = world.call("root", "terminate_agent", json!({"agentId": "读者"})).await;
    assert_eq!(candidates(&ended), readers);
    assert_eq!(world.dump().await, before);

    // If a message has several receivers, the result states for each receiver whether the message was sent or
    // refused.
    let sent = world.call("root", "send_message", json!({"to": ["读者", "写手"], "payload": "看"})).await;
    assert_eq!(
        (sent["messageIds"].as_array().unwrap().len(), candidates(&sent["refused"][0])),
        (1, vec![readers[0].as_str(), &readers[1]])
    );
    // Two agents have the same role name. After one of them has ended, `terminate_agent` understands this name as the
    // agent that is left.
    world.call("root", "terminate_agent", json!({"agentId": readers[0]})).await;
    let ended = world.call("root", "terminate_agent", json!({"agentId": " 读者 "})).await;
    assert_eq!((&ended["id"], &ended["ended"]), (&json!(readers[1]), &json!(1)));
}

#[tokio::test]
async fn a_role_name_of_several_descendants_is_refused_and_ones_own_comes_first() {
    let world = World::new().await;
    let role = json!({"name": "画家", "rolePrompt": "画"});
    let mut made = Vec::new();
    for lead in ["组长", "主管"] {
        let lead = world.hire("root", lead, json!({})).await;
        made.push(world.call(&lead, "create_role", role.clone()).await["id"].as_str().unwrap().to_owned());
    }
    made.sort_unstable();
    let spawn = |role: &str| json!({"roleId": role, "taskBrief": brief()});
    assert_eq!(candidates(&world.call("root", "find_role_by_name", json!({"name": "画家"})).await), made);
    assert_eq!(candidates(&world.call("root", "spawn_agent", spawn("画家")).await), made);
    let hired = world.call("root", "spawn_agent", spawn(&made[1])).await;
    assert_eq!(hired["roleId"], json!(made[1]));
    let own = world.call("root", "create_role", role).await;
    let hired = world.call("root", "spawn_agent", spawn("画家")).await;
    assert_eq!(hired["roleId"], own["id"]);
}

#[tokio::test]
async fn every_result_names_what_was_not_understood() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let stored =
        world.call("root", "put_artifact", json!({"type": "note", "content": "一", "title": "x"})).await;
    assert_eq!(stored["ignored"], json!(["title"]));
    let calls = [
        ("create_role", json!({"name": "写手", "rolePrompt": "写"})),
        ("find_role_by_name", json!({"name": "写手"})),
        ("find_role_by_name", json!({"name": "nobody"})),
        ("spawn_agent", json!({"roleId": "写手", "taskBrief": brief()})),
        ("spawn_agent_with_task", json!({"roleId": "写手", "taskBrief": brief(), "initialMessage": "写"})),
        ("send_message", json!({"to": reader, "payload": "看"})),
        ("list_contacts", json!({})),
        ("find_capable_agents", json!({"capability": "vision"})),
        ("list_artifacts", json!({})),
        ("compress_context", json!({"summary": "做了一半"})),
        ("get_org_structure", json!({})),
        ("terminate_agent", json!({"agentId": reader})),
        // A refusal also names ignored arguments. This helps a model that has given a required argument a wrong name:
        // the argument is ignored, and the call is refused because the required argument is missing.
        ("terminate_agent", json!({"agentId": "nobody"})),
        ("spawn_agent", json!({})),
    ];
    for (tool, mut arguments) in calls {
        let plain = world.call("root", tool, arguments.clone()).await;
        assert!(plain.get("ignored").is_none(), "{tool}: {plain}");
        arguments["colour"] = json!("red");
        arguments["nothing"] = Value::Null;
        let said = world.call("root", tool, arguments).await;
        assert_eq!(said["ignored"], json!(["colour"]), "{tool}: {said}");
    }
}

#[tokio::test]
async fn an_artifact_is_opened_with_what_was_not_understood() {
    let world = World::new().await;
    let stored = world.call("root", "put_artifact", json!({"type": "note", "content": "一"})).await;
    let opened = world.call("root", "get_artifact", json!({"ref": stored["ref"], "page": 2})).await;
    assert_eq!(opened, json!({"opened": stored["ref"], "ignored": ["page"]}));
}

#[tokio::test]
async fn attachments_beside_a_message_arrive_with_it() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let stored = world.call("root", "put_artifact", json!({"type": "note", "content": "一"})).await;
    let sent = world
        .call("root", "send_message", json!({"to": reader, "payload": "看", "attachments": [stored["ref"]]}))
        .await;
    assert_eq!((code(&sent), sent.get("ignored")), ("ok", None));
    let mail = world.mail(&reader).await;
    let polity_society::message::Body::Payload(payload) = &mail[0].body else { panic!("a payload") };
    assert_eq!(json!(payload.attachments[0].reference()), stored["ref"]);
    let opened = world.call(&reader, "get_artifact", json!({"ref": stored["ref"]})).await;
    assert_eq!(opened, json!({"opened": stored["ref"]}));
}

#[tokio::test]
async fn all_that_a_brief_says_is_stored() {
    let world = World::new().await;
    world.call("root", "create_role", json!({"name": "写手", "rolePrompt": "写"})).await;
    let mut more = brief();
    more["globalConstraints"] = json!(["no network"]);
    let hired =
        world.call("root", "spawn_agent", json!({"role_id": "写手", "task_brief": more.to_string()})).await;
    let stored = world
        .query(&format!("SELECT brief FROM agents WHERE id = '{}'", hired["id"].as_str().unwrap()))
        .await;
    assert_eq!(serde_json::from_str::<Value>(&stored[0]).unwrap(), more);
}

#[tokio::test]
async fn a_named_request_that_is_not_open_is_reported_for_each_kind_of_message() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let message = json!({"text": "看", "request_id": ["m000000077"]});
    let sent = world.say("root", &reader, message.clone()).await;
    assert_eq!((code(&sent), &sent["ignored"]), ("ok", &json!(["payload.request_id: m000000077"])));
    let hire = json!({"roleId": "读者", "taskBrief": brief(), "initialMessage": message});
    let hired = world.call("root", "spawn_agent_with_task", hire).await;
    assert_eq!((code(&hired), &hired["ignored"]), ("ok", &json!(["initialMessage.request_id: m000000077"])));
}

#[tokio::test]
async fn a_summary_says_something() {
    let world = World::new().await;
    for summary in ["", " \n"] {
        let refused = world.call("root", "compress_context", json!({"summary": summary})).await;
        assert_eq!(
            (code(&refused), &refused["details"][0]["field"]),
            ("invalid_arguments", &json!("summary"))
        );
    }
}

#[tokio::test]
async fn what_the_brief_lacks_and_the_first_message_states_is_taken_and_noted() {
    let world = World::new().await;
    let mut lacking = brief();
    lacking.as_object_mut().unwrap().remove("outputs");
    let hire = |text: &str| {
        let role = json!({"name": "写手", "rolePrompt": "写"});
        json!({"role": role, "taskBrief": lacking, "initialMessage": {"text": text}})
    };
    let refused = world.call("root", "spawn_agent_with_task", hire("写一句话")).await;
    assert_eq!(code(&refused), "invalid_task_brief");
    let hired = world.call("root", "spawn_agent_with_task", hire("写一句话\noutputs: 一句话")).await;
    assert!(hired["id"].is_string(), "{hired}");
    assert_eq!(hired["understood"], json!(["initialMessage.outputs → taskBrief.outputs"]));
}

#[tokio::test]
async fn an_unknown_tool_is_answered_with_those_there_are_the_likeliest_first() {
    let world = World::new().await;
    let refused = world.call("root", "get_artefact", json!({})).await;
    assert_eq!((code(&refused), &refused["tools"][0]), ("unknown_tool", &json!("get_artifact")));
}

#[tokio::test]
async fn a_brief_that_says_everything_needs_no_first_message() {
    let world = World::new().await;
    let role = json!({"name": "写手", "rolePrompt": "写"});
    let hired =
        world.call("root", "spawn_agent_with_task", json!({"role": role, "taskBrief": brief()})).await;
    assert!(hired["messageId"].is_string(), "{hired}");
    assert_eq!(hired["understood"], json!(["taskBrief → initialMessage"]));
    let refused = world.call("root", "spawn_agent_with_task", json!({"role": role})).await;
    assert_eq!(code(&refused), "invalid_task_brief");
    let missing = json!({"field": "initialMessage", "problem": "missing"});
    assert!(refused["details"].as_array().unwrap().contains(&missing), "{refused}");
}

#[tokio::test]
async fn nobody_assigns_the_person_a_task() {
    let world = World::new().await;
    let payload = json!({"message_type": "task_assignment", "text": "那就红吧"});
    let sent = world.say("root", "user", payload.clone()).await;
    assert_eq!(sent["understood"], json!(["payload.message_type: task_assignment → general"]), "{sent}");
    let writer = world.hire("root", "写手", json!({})).await;
    assert_eq!(code(&world.say("root", &writer, payload).await), "invalid_message");
}
