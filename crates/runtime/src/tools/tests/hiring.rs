use crate::testing::{World, brief, code};
use polity_society::policy::Source;
use polity_store::seen;
use serde_json::{Value, json};

async fn role(world: &World) -> Value {
    let role = world.call("root", "create_role", json!({"name": "读者", "rolePrompt": "读"})).await;
    role["id"].clone()
}

fn with(key: &str, value: Value) -> Value {
    let mut brief = brief();
    brief[key] = value;
    brief
}

async fn agents(world: &World) -> usize {
    world.query("SELECT id FROM agents").await.len()
}

#[tokio::test]
async fn every_fault_of_a_brief_is_named_and_nobody_is_hired() {
    let world = World::new().await;
    let role = role(&world).await;
    let check = async |arguments: Value, expect: &[&str]| {
        for tool in ["spawn_agent", "spawn_agent_with_task"] {
            let mut arguments = arguments.clone();
            arguments["roleId"] = role.clone();
            arguments["initialMessage"] = json!("开始");
            let refused = world.call("root", tool, arguments).await;
            assert_eq!(code(&refused), "invalid_task_brief", "{refused}");
            let details = refused["details"].as_array().unwrap();
            let said: Vec<String> = details
                .iter()
                .map(|fault| {
                    format!("{}: {}", fault["field"].as_str().unwrap(), fault["problem"].as_str().unwrap())
                })
                .collect();
            assert_eq!(said, expect);
        }
    };
    let all = ["objective", "constraints", "inputs", "outputs", "completion_criteria"];
    let all = all.map(|field| format!("{field}: missing"));
    check(json!({}), &all.each_ref().map(String::as_str)).await;
    check(
        json!({"taskBrief": {"objective": "", "constraints": [], "inputs": "x", "completion_criteria": []}}),
        &["objective: empty", "outputs: missing", "completion_criteria: empty"],
    )
    .await;
    check(json!({"taskBrief": "做吧"}), &["taskBrief: must be an object"]).await;
    assert_eq!(agents(&world).await, 2);
}

#[tokio::test]
async fn an_unknown_collaborator_hires_nobody() {
    let world = World::new().await;
    let role = role(&world).await;
    let known = world.hire("root", "写手", json!({})).await;
    let brief = with("collaborators", json!([{"agentId": known}, {"agentId": "nobody-1234"}]));
    let refused = world.call("root", "spawn_agent", json!({"roleId": role, "taskBrief": brief})).await;
    assert_eq!(code(&refused), "unknown_contact");
    assert_eq!(refused["to"], "nobody-1234");
    assert_eq!(agents(&world).await, 3);
}

#[tokio::test]
async fn a_child_knows_its_parent_and_its_collaborators() {
    let world = World::new().await;
    let role = role(&world).await;
    let writer = world.hire("root", "写手", json!({})).await;
    // A brief may name a contact by its role. The stored brief contains the id.
    let brief = with("collaborators", json!([{"agentId": "写手", "description": "文案"}, "user"]));
    let hired =
        world.call("root", "spawn_agent", json!({"roleId": role, "taskBrief": brief, "name": "阿读"})).await;
    let id = hired["id"].as_str().unwrap();
    assert_eq!(hired["roleName"], "读者");
    let contacts = world
        .query(&format!("SELECT agent || ' ' || source || ' ' || coalesce(introduced_by, '-') FROM contacts WHERE owner = '{id}' ORDER BY 1"))
        .await;
    let mut expect =
        ["root parent -".to_owned(), "user preset root".to_owned(), format!("{writer} preset root")];
    expect.sort();
    assert_eq!(contacts, expect);
    let stored = world.query(&format!("SELECT brief FROM agents WHERE id = '{id}'")).await;
    assert!(stored[0].contains(&writer), "{stored:?}");
    assert_eq!(code(&world.say(id, &writer, json!("你好")).await), "ok");
}

#[tokio::test]
async fn limits_of_hiring() {
    let check = async |limits: Value, expect: &str| {
        let world = World::with(&limits).await;
        let first = world.hire("root", "读者", json!({})).await;
        let parent = if expect == "maxDepth" { first.as_str() } else { "root" };
        let role = world.call(parent, "create_role", json!({"name": "写手", "rolePrompt": "写"})).await;
        let refused =
            world.call(parent, "spawn_agent", json!({"roleId": role["id"], "taskBrief": brief()})).await;
        assert_eq!(
            (code(&refused), &refused["limit"], &refused["value"]),
            ("limit_reached", &json!(expect), &json!(1))
        );
        assert_eq!(agents(&world).await, 3);
    };
    check(json!({"maxDepth": 1}), "maxDepth").await;
    check(json!({"maxChildren": 1}), "maxChildren").await;
    check(json!({"maxAgentsPerTask": 1}), "maxAgentsPerTask").await;
}

#[tokio::test]
async fn hiring_with_a_message_is_one_step() {
    let world = World::new().await;
    let role = role(&world).await;
    let arguments = json!({"roleId": role, "taskBrief": brief(), "initialMessage": {"message_type": "task_assignment", "text": "开始"}});
    let hired = world.call("root", "spawn_agent_with_task", arguments).await;
    let mail = world.mail(hired["id"].as_str().unwrap()).await;
    assert_eq!(mail.len(), 1);
    assert_eq!(json!(mail[0].id), hired["messageId"]);
    assert_eq!(mail[0].introduction, None, "the parent needs no introduction");
}

#[tokio::test]
async fn a_refused_first_message_hires_nobody() {
    let world = World::with(&json!({"maxMessageChars": 500})).await;
    let role = role(&world).await;
    let before = world.dump().await;
    let check = async |message: Value, expect: &str| {
        let arguments = json!({"roleId": role, "taskBrief": brief(), "initialMessage": message});
        let refused = world.call("root", "spawn_agent_with_task", arguments).await;
        assert_eq!(code(&refused), expect, "{refused}");
        assert_eq!(world.dump().await, before);
    };
    check(json!({}), "invalid_message").await;
    check(json!({"message_type": "introduction_request"}), "invalid_message").await;
    check(json!("字".repeat(501)), "limit_reached").await;
    check(json!({"text": "看", "attachments": ["artifact:nowhere1"]}), "artifact_not_found").await;
}

/// One call creates a role and hires an agent into it. If any part of the call is refused, the whole call does
/// nothing.
#[tokio::test]
async fn a_role_is_made_with_the_agent_that_is_hired_into_it() {
    let world = World::new().await;
    let hire = |more: Value| {
        let mut arguments = json!({"taskBrief": brief(), "initialMessage": "开始"});
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        arguments
    };
    let role = json!({"name": "译者", "rolePrompt": "译", "requiredCapabilities": "vision"});
    let hired = world.call("root", "spawn_agent_with_task", hire(json!({"role": role}))).await;
    assert_eq!((code(&hired), &hired["roleName"]), ("ok", &json!("译者")));
    let required = world.query("SELECT required_capabilities FROM roles WHERE name = '译者'").await;
    assert_eq!(required, [r#"["vision"]"#]);

    // If the call names an existing role, the description of a role is ignored. A call with neither a role id nor a
    // description is refused.
    let both = json!({"roleId": hired["roleId"], "role": {"name": "别人", "rolePrompt": "x"}});
    let again = world.call("root", "spawn_agent_with_task", hire(both)).await;
    assert_eq!((code(&again), &again["ignored"]), ("ok", &json!(["role"])));
    let neither = world.call("root", "spawn_agent_with_task", hire(json!({}))).await;
    assert_eq!((code(&neither), &neither["details"][0]["field"]), ("invalid_arguments", &json!("roleId")));
    let half = json!({"role": {"name": "半个"}});
    let half = world.call("root", "spawn_agent_with_task", hire(half)).await;
    assert_eq!((code(&half), &half["details"][0]["field"]), ("invalid_arguments", &json!("role.rolePrompt")));

    // The message is refused, so the role is not created either.
    let refused = json!({"role": {"name": "无人", "rolePrompt": "x"}, "initialMessage": {"attachments": ["artifact:nothing"]}});
    let refused = world.call("root", "spawn_agent_with_task", hire(refused)).await;
    assert_eq!(code(&refused), "artifact_not_found");
    assert_eq!(world.query("SELECT name FROM roles WHERE name IN ('别人', '半个', '无人')").await, [""; 0]);
}

/// Synonyms of arguments are understood if their meaning is unambiguous. The result then names the synonyms.
#[tokio::test]
async fn arguments_by_other_words_are_understood_and_noted() {
    let world = World::new().await;
    let made = world
        .call(
            "root",
            "create_role",
            json!({"roleName": "读者", "prompt": "读", "capabilities": "vision, audio"}),
        )
        .await;
    assert_eq!(code(&made), "ok", "{made}");
    let noted = json!(["prompt → rolePrompt", "roleName → name", "capabilities → requiredCapabilities"]);
    assert_eq!(made["understood"], noted);
    let brief = json!({"goal": "读图", "constraints": "不超过一页", "input": "附件", "outputs": "文字", "acceptance_criteria": "写完"});
    let arguments = json!({"roleId": "读者", "brief": brief, "message": "开始"});
    let hired = world.call("root", "spawn_agent_with_task", arguments).await;
    assert_eq!(code(&hired), "ok", "{hired}");
    assert_eq!(hired["understood"], json!(["brief → taskBrief", "message → initialMessage"]));
    let sent = world.call("root", "send_message", json!({"recipient": hired["id"], "text": "还有"})).await;
    assert_eq!(code(&sent), "ok", "{sent}");
    // Two arguments mean the same: `to` and its synonym `recipient`. Only `to` is used, and the result reports
    // `recipient` as ignored.
    let both = json!({"to": hired["id"], "recipient": "x", "payload": "还有"});
    let sent = world.call("root", "send_message", both).await;
    assert_eq!((code(&sent), &sent["ignored"]), ("ok", &json!(["recipient"])));
}

/// Notes that an agent has read the web.
async fn read_web(world: &World, agent: &str) {
    let reader = world.of(agent);
    world
        .write(move |tx| Box::pin(async move { seen::read(tx, &reader, &Source::Web, "fetch_page").await }))
        .await;
}

/// Returns all agents that have seen the web.
async fn readers(world: &World) -> Vec<String> {
    world.query("SELECT substr(holder, 7) FROM seen WHERE source = 'web' ORDER BY holder").await
}

#[tokio::test]
async fn a_hired_agent_has_seen_what_its_parent_has_seen_at_that_time() {
    let world = World::new().await;
    let clean = world.hire("root", "a", json!({})).await;
    read_web(&world, "root").await;
    let child = world.hire("root", "b", json!({})).await;
    let grandchild = world.hire(&child, "c", json!({})).await;
    assert_eq!(readers(&world).await, [child.as_str(), &grandchild, "root"], "{clean} was hired before");
}

/// An agent may hire into a role that its child has made. The role prompt is then a text of the child.
#[tokio::test]
async fn a_hired_agent_has_seen_what_the_creator_of_its_role_has_seen() {
    let world = World::new().await;
    let maker = world.hire("root", "a", json!({})).await;
    read_web(&world, &maker).await;
    let role = world.call(&maker, "create_role", json!({"name": "b", "rolePrompt": "…"})).await;
    let arguments = json!({"roleId": role["id"], "taskBrief": brief()});
    let hired = world.call("root", "spawn_agent", arguments).await;
    assert_eq!(readers(&world).await, [maker.as_str(), hired["id"].as_str().unwrap()]);
}

/// Creates two roles of an agent that has read the web: `plain`, and `open`, which says what it offers. Then hires an
/// agent into the role `open`. Returns the agent that has read the web, and the hired agent.
async fn offering(world: &World) -> (String, String) {
    let maker = world.hire("root", "a", json!({})).await;
    read_web(world, &maker).await;
    world.call(&maker, "create_role", json!({"name": "plain", "rolePrompt": "…"})).await;
    let spec = json!({"services": "…", "input_format": "…", "output_format": "…", "examples": "…"});
    let hired = world.hire(&maker, "open", json!({"interface_spec": spec})).await;
    (maker, hired)
}

#[tokio::test]
async fn who_finds_a_role_has_seen_what_the_writer_of_its_offer_has_seen() {
    let world = World::new().await;
    let (maker, hired) = offering(&world).await;
    let before = [maker.as_str(), &hired];
    let plain = world.call("root", "find_role_by_name", json!({"name": "plain"})).await;
    assert_eq!((code(&plain), readers(&world).await), ("ok", sorted(&before)));
    let open = world.call("root", "find_role_by_name", json!({"name": "open"})).await;
    assert!(open["interface_spec"].is_object(), "{open}");
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired, "root"]));
    let way = world.query("SELECT way FROM seen WHERE holder = 'agent:root'").await;
    assert_eq!(way, [json!({"by": "role", "from": maker}).to_string()]);
    let mut reader = world.store.reader().await.unwrap();
    let way = seen::way(&mut reader, &world.of("root"), &Source::Web).await.unwrap();
    let holders: Vec<String> = way.iter().map(|passed| passed.holder.to_string()).collect();
    assert_eq!(holders, [format!("agent:{maker}"), "agent:root".to_owned()]);
}

/// Root hires into both roles of the maker. Root does not see the prompt of a role, but its next request shows the new
/// contacts, with what the role `open` offers.
#[tokio::test]
async fn who_hires_into_a_role_has_seen_what_the_writer_of_its_offer_has_seen() {
    let world = World::new().await;
    let (maker, hired) = offering(&world).await;
    let hire = async |role: &str| {
        let agent = world.call("root", "spawn_agent", json!({"roleId": role, "taskBrief": brief()})).await;
        assert_eq!(code(&agent), "ok", "{agent}");
        agent["id"].as_str().unwrap().to_owned()
    };
    let plain = hire("plain").await;
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired, &plain]));
    let open = hire("open").await;
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired, &plain, &open, "root"]));
    let way = world.query("SELECT way FROM seen WHERE holder = 'agent:root'").await;
    assert_eq!(way, [json!({"by": "role", "from": maker}).to_string()]);
}

/// The maker introduces its child to root, and root introduces it to a writer. Neither the maker nor root has said
/// anything from outside. But even before the receiver reads the introduction, its requests show the new contact, with
/// what the role of the contact offers.
#[tokio::test]
async fn who_is_told_of_an_offer_has_seen_what_its_writer_has_seen() {
    let world = World::new().await;
    let (maker, hired) = offering(&world).await;
    let introduction = |agent: &str| json!({"message_type": "introduction_response", "target_agent": {"id": agent}, "usage_hint": "ask it"});
    let writer = world.hire("root", "b", json!({})).await;
    let listed = world.call("root", "list_contacts", json!({})).await;
    assert!(!listed.to_string().contains("interface_spec"), "{listed}");
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired]));
    assert_eq!(code(&world.say(&maker, "root", introduction(&hired)).await), "ok");
    let listed = world.call("root", "list_contacts", json!({})).await;
    assert!(listed.to_string().contains("interface_spec"), "{listed}");
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired, "root"]));
    assert_eq!(code(&world.say("root", &writer, introduction(&hired)).await), "ok");
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired, "root", &writer]));
}

#[tokio::test]
async fn who_is_told_of_an_agent_that_offers_nothing_has_seen_nothing() {
    let world = World::new().await;
    let maker = world.hire("root", "a", json!({})).await;
    read_web(&world, &maker).await;
    let hired = world.hire(&maker, "plain", json!({})).await;
    let writer = world.hire("root", "b", json!({})).await;
    let target = json!({"id": hired});
    let introduction =
        json!({"message_type": "introduction_response", "target_agent": target, "usage_hint": "ask it"});
    assert_eq!(code(&world.say(&maker, "root", introduction.clone()).await), "ok");
    let listed = world.call("root", "list_contacts", json!({})).await;
    assert!(listed.to_string().contains(&hired), "{listed}");
    assert_eq!(code(&world.say("root", &writer, introduction).await), "ok");
    assert_eq!(readers(&world).await, sorted(&[&maker, &hired]));
}

fn sorted(agents: &[&str]) -> Vec<String> {
    let mut agents: Vec<String> = agents.iter().map(|agent| (*agent).to_owned()).collect();
    agents.sort();
    agents
}
