use crate::testing::{World, code};
use polity_society::id::AgentId;
use polity_society::message::{Body, Message, Sender};
use polity_society::notice::Notice;
use serde_json::json;

fn bounced(message: &Message) -> Option<(&AgentId, &str)> {
    match (&message.from, &message.body) {
        (Sender::System, Body::Notice(Notice::Bounced { to, message })) => Some((to, message.as_str())),
        _ => None,
    }
}

async fn ended(world: &World) -> Vec<String> {
    world.query("SELECT id FROM agents WHERE ended_at IS NOT NULL ORDER BY id").await
}

#[tokio::test]
async fn a_subtree_ends_as_a_whole_and_its_mail_goes_back() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let reader = world.hire(&lead, "读者", json!({})).await;
    let friend = world.hire("root", "朋友", json!({})).await;
    world.say("root", &friend, json!({"message_type": "introduction_response", "target_agent": {"id": lead}, "usage_hint": "问他"})).await;
    world.say("root", &lead, json!("一")).await;
    world.say(&friend, &lead, json!("二")).await;
    world.call("root", "send_message", json!({"to": lead, "payload": "三", "delayMs": 60_000})).await;
    // Both the sender and the receiver of these two messages end, so nobody needs a notice about the messages.
    world.say(&lead, &reader, json!("四")).await;
    world.say(&reader, &lead, json!("五")).await;
    let done = world.call("root", "terminate_agent", json!({"agentId": lead, "reason": "够了"})).await;
    assert_eq!((code(&done), &done["ended"]), ("ok", &json!(2)));
    let mut expect = [lead.clone(), reader.clone()];
    expect.sort();
    assert_eq!(ended(&world).await, expect);

    let (of_root, of_friend) = (world.mail("root").await, world.mail(&friend).await);
    let to_lead = world.mail(&lead).await;
    let sent_by = |from: &str| -> Vec<String> {
        to_lead
            .iter()
            .filter(|message| message.from.as_str() == from)
            .map(|message| message.id.to_string())
            .collect()
    };
    let told = |mail: &[Message]| -> Vec<String> {
        mail.iter()
            .filter_map(bounced)
            .map(|(to, id)| {
                assert_eq!(to.as_str(), lead);
                id.to_owned()
            })
            .collect()
    };
    assert_eq!(told(&of_root), sent_by("root"));
    assert_eq!(told(&of_friend), sent_by(&friend));
    let waiting = format!(
        "SELECT id FROM messages WHERE receiver IN ('{lead}', '{reader}') AND state NOT IN ('bounced', 'failed')"
    );
    assert!(
        world.query(&waiting).await.is_empty(),
        "unread mail for ended agents would keep the task from becoming idle"
    );
}

#[tokio::test]
async fn a_parked_agent_that_ends_is_parked_no_longer() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let parked = world.of(&reader);
    let park = world.write(move |tx| {
        Box::pin(async move { polity_store::holds::insert(tx, &parked, "it failed").await })
    });
    assert!(park.await);
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    assert_eq!(ended(&world).await, [reader]);
    assert_eq!(world.query("SELECT agent FROM holds").await, [""; 0]);
}

#[tokio::test]
async fn the_questions_of_an_agent_that_ends_are_dropped() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let (snapshot, asker) = (world.snapshot.clone(), AgentId::new(reader.as_str()));
    let introduce = world.write(move |tx| {
        Box::pin(async move {
            let changes = polity_society::rules::introduce_person(&asker);
            polity_store::apply::apply(tx, &snapshot, changes).await
        })
    });
    introduce.await;
    let asked = world
        .say(&reader, "user", json!({"message_type": "collaboration_request", "text": "第几页？"}))
        .await;
    assert_eq!(code(&asked), "ok", "{asked}");
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    assert_eq!(ended(&world).await, [reader]);
    assert_eq!(world.query("SELECT state FROM messages WHERE receiver = 'user'").await, ["failed"]);
    let mut connection = world.store.reader().await.unwrap();
    assert_eq!(polity_store::messages::questions(&mut connection, &world.task).await.unwrap(), []);
    let standing = polity_store::tasks::standing(&mut connection, &world.task).await.unwrap().unwrap();
    assert!(!standing.asks_user);
}

#[tokio::test]
async fn mail_of_several_that_end_together_goes_back_to_one_sender() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let reader = world.hire(&lead, "读者", json!({})).await;
    let introduce = json!({"message_type": "introduction_response", "target_agent": {"id": reader}, "usage_hint": "问他"});
    world.say(&lead, "root", introduce).await;
    let first = world.say("root", &lead, json!("一")).await;
    let second = world.say("root", &reader, json!("二")).await;
    let done = world.call("root", "terminate_agent", json!({"agentId": "组长"})).await;
    assert_eq!(code(&done), "ok", "{done}");
    let mail = world.mail("root").await;
    let told: Vec<&str> = mail.iter().filter_map(bounced).map(|(_, id)| id).collect();
    assert_eq!(
        told,
        [first["messageIds"][0]["id"].as_str().unwrap(), second["messageIds"][0]["id"].as_str().unwrap()]
    );
}

#[tokio::test]
async fn an_open_turn_of_one_who_ends_is_stopped() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    world.say("root", &reader, json!("一")).await;
    world.begin_turn(&reader).await;
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    assert_eq!(world.query("SELECT state FROM turns").await, ["stopped"]);
    assert_eq!(world.query("SELECT state FROM messages WHERE sender = 'root'").await, ["bounced"]);
    let awaited = world.store.reader().await.unwrap();
    let mut awaited = awaited;
    let waits = polity_store::messages::pending(&mut awaited, &world.of("root")).await.unwrap();
    assert!(waits.is_empty(), "a request to an agent that has ended is closed");
}

#[tokio::test]
async fn one_who_has_ended_hears_nothing_more() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    let refused = world.say("root", &reader, json!("在吗")).await;
    assert_eq!((code(&refused), &refused["agentId"]), ("agent_terminated", &json!(reader)));
    let contacts = world.call("root", "list_contacts", json!({})).await;
    let entry =
        contacts["contacts"].as_array().unwrap().iter().find(|contact| contact["id"] == json!(reader));
    assert_eq!(entry.unwrap()["ended"], json!(true));
    // Ending the agent again changes nothing.
    let before = world.dump().await;
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    assert_eq!(world.dump().await, before);
}

#[tokio::test]
async fn only_descendants_can_be_ended() {
    let world = World::new().await;
    let (one, other) =
        (world.hire("root", "读者", json!({})).await, world.hire("root", "写手", json!({})).await);
    for (agent, target) in [
        (one.as_str(), other.as_str()),
        (&one, "root"),
        (&one, &one),
        (&one, "user"),
        ("root", "root"),
        ("root", "x-1"),
    ] {
        let refused = world.call(agent, "terminate_agent", json!({"agentId": target})).await;
        assert_eq!(code(&refused), "not_descendant", "{agent} ends {target}");
    }
    assert!(ended(&world).await.is_empty());
}

#[tokio::test]
async fn those_who_asked_an_agent_that_read_and_did_not_answer_are_told_but_for_who_ended_it() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let friend = world.hire("root", "朋友", json!({})).await;
    let introduce =
        json!({"message_type": "introduction_response", "target_agent": {"id": lead}, "usage_hint": "问他"});
    world.say("root", &friend, introduce).await;
    world.say("root", &lead, json!("一")).await;
    world.say(&friend, &lead, json!("二")).await;
    world
        .write(|tx| {
            Box::pin(async move {
                let read = "UPDATE messages SET state = 'done' WHERE expects = 'answer'";
                polity_sql::query(read).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    let done = world.call("root", "terminate_agent", json!({"agentId": lead, "reason": "够了"})).await;
    assert_eq!(code(&done), "ok", "{done}");
    let told = |mail: Vec<Message>| {
        let is_told = |message: &Message| {
            matches!(&message.body, Body::Notice(Notice::Terminated { agent, by: Some(by), reason })
                if agent.as_str() == lead && *by == AgentId::root() && reason == "够了")
        };
        mail.iter().filter(|message| is_told(message)).count()
    };
    assert_eq!(told(world.mail(&friend).await), 1);
    assert_eq!(told(world.mail("root").await), 0);

    // The agent has already ended, so the second call tells nobody.
    let again = world.call("root", "terminate_agent", json!({"agentId": lead})).await;
    assert_eq!(code(&again), "agent_terminated");
    assert_eq!(told(world.mail(&friend).await), 1);
}
