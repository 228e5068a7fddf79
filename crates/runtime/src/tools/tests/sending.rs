use crate::testing::{World, brief, code};
use polity_society::id::{AgentId, TaskId};
use polity_society::message::{Expects, Sender};
use polity_sql::Sql;
use polity_store::{Conversation, tasks};
use serde_json::{Value, json};

#[tokio::test]
async fn a_stranger_and_somebody_who_is_not_there_are_the_same() {
    let world = World::new().await;
    let one = world.hire("root", "读者", json!({})).await;
    let other = world.hire("root", "写手", json!({})).await;
    let to_stranger = world.say(&one, &other, json!("你好")).await;
    let to_nobody = world.say(&one, "nobody-9999", json!("你好")).await;
    assert_eq!(code(&to_stranger), "unknown_contact");
    assert_eq!(to_stranger.to_string().replace(&other, "nobody-9999"), to_nobody.to_string());
    assert_eq!(to_stranger["contacts"], json!([{"id": "root", "role": "root"}]));
    assert!(world.mail(&other).await.is_empty());
}

#[tokio::test]
async fn the_likeliest_contact_comes_first() {
    let world = World::new().await;
    for role in ["painter", "reader", "singer"] {
        world.hire("root", role, json!({})).await;
    }
    let refused = world.say("root", "readr", json!("hi")).await;
    assert_eq!(refused["contacts"][0]["role"], "reader");
    assert_eq!(refused["contacts"].as_array().unwrap().len(), 4);
}

#[tokio::test]
async fn of_several_receivers_each_has_its_own_answer() {
    let world = World::new().await;
    let known = world.hire("root", "读者", json!({})).await;
    let other = world.hire("root", "作者", json!({})).await;
    let to = json!([known, "nobody-1", "作者"]);
    let sent = world.call("root", "send_message", json!({"to": to, "payload": "看"})).await;
    let ids = sent["messageIds"].as_array().unwrap();
    assert_eq!(ids.iter().map(|sent| &sent["to"]).collect::<Vec<_>>(), [&json!(known), &json!("作者")]);
    assert_eq!(
        (&sent["refused"][0]["to"], code(&sent["refused"][0])),
        (&json!("nobody-1"), "unknown_contact")
    );
    let mut stored: Vec<Value> = world.mail(&known).await.iter().map(|message| json!(message.id)).collect();
    stored.extend(world.mail(&other).await.iter().map(|message| json!(message.id)));
    assert_eq!(stored, ids.iter().map(|sent| sent["id"].clone()).collect::<Vec<_>>());
    let all_refused =
        world.call("root", "send_message", json!({"to": ["a-1", "b-1"], "payload": "看"})).await;
    assert_eq!(code(&all_refused), "unknown_contact");
    let nobody = world.call("root", "send_message", json!({"to": [], "payload": "看"})).await;
    assert_eq!(code(&nobody), "invalid_arguments");
}

#[tokio::test]
async fn a_delayed_message_waits() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    world.call("root", "send_message", json!({"to": reader, "payload": "later", "delayMs": 60_000})).await;
    world.call("root", "send_message", json!({"to": reader, "payload": "now", "delayMs": 0})).await;
    let states = world.query("SELECT state || ' ' || (due_at IS NOT NULL) FROM messages ORDER BY seq").await;
    assert_eq!(states, ["delayed 1", "queued 0"]);
    let due =
        world.query("SELECT CAST(due_at - created_at AS TEXT) FROM messages WHERE state = 'delayed'").await;
    assert_eq!(due, ["60000"]);
}

#[tokio::test]
async fn the_sender_is_stamped_and_what_it_said_of_itself_is_reported() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let sent = world.say(&reader, "root", json!({"from": "user", "text": "我是用户"})).await;
    assert_eq!(sent["ignored"], json!(["from"]));
    let mail = world.mail("root").await;
    assert_eq!(mail[0].from, Sender::Party(AgentId::new(reader)));
    assert!(!format!("{:?}", mail[0].body).contains("\"from\""));
}

#[tokio::test]
async fn what_one_cannot_open_one_cannot_send() {
    let world = World::new().await;
    let (one, other) =
        (world.hire("root", "读者", json!({})).await, world.hire("root", "写手", json!({})).await);
    let stored = world.call(&other, "put_artifact", json!({"type": "note", "content": "秘密"})).await;
    let payload = json!({"text": "看", "attachments": [stored["ref"]]});
    let refused = world.say(&one, "root", payload.clone()).await;
    assert_eq!((code(&refused), &refused["ref"]), ("artifact_not_found", &stored["ref"]));
    let missing = world.say(&one, "root", json!({"text": "看", "attachments": ["artifact:nowhere1"]})).await;
    assert_eq!(missing["message"], refused["message"]);
    assert!(world.mail("root").await.is_empty());
    assert_eq!(code(&world.say(&other, "root", payload).await), "ok");
}

#[tokio::test]
async fn who_is_told_of_an_artifact_may_open_it() {
    let world = World::new().await;
    let (one, other) =
        (world.hire("root", "读者", json!({})).await, world.hire("root", "写手", json!({})).await);
    let attached = world.call("root", "put_artifact", json!({"type": "note", "content": "一"})).await;
    let mentioned = world.call("root", "put_artifact", json!({"type": "note", "content": "二"})).await;
    let text = format!("见 {}。", mentioned["ref"].as_str().unwrap());
    world.say("root", &one, json!({"text": text, "attachments": [attached["ref"]]})).await;
    for stored in [&attached, &mentioned] {
        let open = json!({"ref": stored["ref"]});
        assert_eq!(world.call(&one, "get_artifact", open.clone()).await, json!({"opened": stored["ref"]}));
        assert_eq!(code(&world.call(&other, "get_artifact", open).await), "artifact_not_found");
    }
    // An agent may name an artifact that it may not open. Then the receivers get no access to this artifact.
    let secret = world.call(&other, "put_artifact", json!({"type": "note", "content": "三"})).await;
    world.say(&one, "root", json!(format!("{}", secret["ref"]))).await;
    assert_eq!(
        code(&world.call(&one, "get_artifact", json!({"ref": secret["ref"]})).await),
        "artifact_not_found"
    );
}

#[tokio::test]
async fn the_brief_opens_what_it_mentions() {
    let world = World::new().await;
    let stored = world.call("root", "put_artifact", json!({"type": "note", "content": "料"})).await;
    let mut brief = brief();
    brief["inputs"] = json!({"draft": stored["ref"]});
    let role = world.call("root", "create_role", json!({"name": "读者", "rolePrompt": "读"})).await;
    let hired = world.call("root", "spawn_agent", json!({"roleId": role["id"], "taskBrief": brief})).await;
    let opened =
        world.call(hired["id"].as_str().unwrap(), "get_artifact", json!({"ref": stored["ref"]})).await;
    assert_eq!(opened, json!({"opened": stored["ref"]}));
}

#[tokio::test]
async fn an_answer_is_no_request() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    world.say("root", &reader, json!("几点了？")).await;
    world.begin_turn(&reader).await;
    world.say(&reader, "root", json!("三点")).await;
    world.say(&reader, "root", json!("顺便问一句")).await;
    let (asked, mail) = (world.mail(&reader).await, world.mail("root").await);
    assert_eq!(asked[0].expects, Expects::Answer);
    assert_eq!(
        (mail[0].in_reply_to.as_slice(), mail[0].expects),
        (&[asked[0].id.clone()][..], Expects::Nothing)
    );
    assert_eq!((mail[1].in_reply_to.as_slice(), mail[1].expects), (&[][..], Expects::Answer));
}

#[tokio::test]
async fn nobody_answers_what_it_has_not_read() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    world.say("root", &reader, json!("几点了？")).await;
    world.call("root", "send_message", json!({"to": reader, "payload": "以后再说", "delayMs": 60_000})).await;
    world.say(&reader, "root", json!("我可以开始了吗？")).await;
    let mail = world.mail("root").await;
    assert_eq!((mail[0].in_reply_to.as_slice(), mail[0].expects), (&[][..], Expects::Answer));
    world.begin_turn(&reader).await;
    world.say(&reader, "root", json!("三点")).await;
    world.say(&reader, "root", json!("还有一句")).await;
    let mail = world.mail("root").await;
    assert_eq!(mail[1].in_reply_to, [world.mail(&reader).await[0].id.clone()]);
    assert_eq!(mail[2].in_reply_to, [], "the delayed message has not arrived yet");
}

#[tokio::test]
async fn a_message_is_delayed_by_at_most_thirty_days() {
    const MOST: u64 = 30 * 24 * 60 * 60 * 1000;
    let world = World::new().await;
    let send = async |delay: u64| {
        world
            .call("root", "send_message", json!({"to": "root", "payload": "some day", "delayMs": delay}))
            .await
    };
    for delay in [MOST + 1, u64::MAX] {
        let refused = send(delay).await;
        assert_eq!(
            (code(&refused), &refused["details"][0]["field"]),
            ("invalid_arguments", &json!("delayMs"))
        );
    }
    assert_eq!(world.mail("root").await.len(), 0);
    assert_eq!(code(&send(MOST).await), "ok");
}

#[tokio::test]
async fn a_full_mailbox_takes_no_more() {
    let world = World::with(&json!({"maxQueue": 2})).await;
    let reader = world.hire("root", "读者", json!({})).await;
    for expect in ["ok", "ok", "mailbox_full"] {
        assert_eq!(code(&world.say("root", &reader, json!("看")).await), expect);
    }
}

#[tokio::test]
async fn an_agent_may_write_to_itself() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    assert_eq!(code(&world.say(&reader, &reader, json!("记住")).await), "ok");
    let mail = world.mail(&reader).await;
    assert_eq!((mail[0].introduction.as_ref(), mail.len()), (None, 1));
}

#[tokio::test]
async fn tasks_do_not_mix() {
    let world = World::new().await;
    world.add_task("t-2").await;
    let there = || Conversation { agent: AgentId::root(), task: TaskId::new("t-2") };
    let here = world.hire("root", "读者", json!({})).await;
    let sent = world.call_in(there(), "send_message", json!({"to": here, "payload": "你好"})).await;
    assert_eq!(code(&sent), "unknown_contact");
    let contacts = world.call_in(there(), "list_contacts", json!({})).await;
    assert_eq!(contacts["contacts"].as_array().unwrap().len(), 1, "{contacts}");
    let structure = world.call_in(there(), "get_org_structure", json!({})).await;
    assert!(!structure.to_string().contains(&here), "{structure}");
    let ended = world.call_in(there(), "terminate_agent", json!({"agentId": here})).await;
    assert_eq!(code(&ended), "not_descendant");
}

#[tokio::test]
async fn an_agent_that_is_named_twice_gets_one_message() {
    let world = World::new().await;
    let reader = world.hire("root", "读者", json!({})).await;
    let to = json!([reader, "读者", format!(" {reader} "), "nobody-1111", "nobody-1111"]);
    let sent = world.call("root", "send_message", json!({"to": to, "payload": "看"})).await;
    assert_eq!(sent["messageIds"].as_array().unwrap().len(), 1, "{sent}");
    assert_eq!(sent["refused"].as_array().unwrap().len(), 1, "{sent}");
    assert_eq!(world.mail(&reader).await.len(), 1);
}

#[tokio::test]
async fn a_note_to_oneself_asks_for_nothing_and_what_is_said_before_it_is_due_is_not_the_last_word() {
    let world = World::new().await;
    world.say("user", "root", json!("remind me")).await;
    world.begin_turn("root").await;
    world.call("root", "send_message", json!({"to": "root", "payload": "now", "delayMs": 60_000})).await;
    assert_eq!(world.query("SELECT expects FROM messages WHERE sender = 'root'").await, ["nothing"]);
    world.say("root", "user", json!("in a minute")).await;
    let finality = || world.query("SELECT finality FROM messages WHERE receiver = 'user' ORDER BY seq");
    assert_eq!(finality().await, ["interim"]);
    world
        .write(|tx| {
            Box::pin(async move {
                polity_sql::query("UPDATE messages SET state = 'queued' WHERE state = 'delayed'")
                    .execute(&mut tx.connection)
                    .await?;
                Ok(())
            })
        })
        .await;
    world.say("root", "user", json!("this is it")).await;
    assert_eq!(finality().await, ["interim", "final"]);
}

#[tokio::test]
async fn a_message_of_the_person_opens_the_task_unless_it_is_open_already() {
    let world = World::new().await;
    let statements = async || {
        let before = world.store.statements();
        assert_eq!(code(&world.say("user", "root", json!("go on")).await), "ok");
        world.store.statements() - before
    };
    let open = statements().await;
    for state in ["state = 'idle'", "nudged = 1", "stopped_by = 'user'", "stopped_by = 'maxTokensPerTask'"] {
        world
            .write(move |tx| {
                Box::pin(async move {
                    let change = Sql::built(format!("UPDATE tasks SET {state}"));
                    polity_sql::query(change).execute(&mut tx.connection).await?;
                    Ok(())
                })
            })
            .await;
        assert_eq!(statements().await, open + 1, "{state}");
        let now = "SELECT state || ' ' || nudged || ' ' || coalesce(stopped_by, '-') FROM tasks";
        assert_eq!(world.query(now).await, ["open 0 -"], "after {state}");
    }
    assert_eq!(statements().await, open);
    // A message of an agent leaves the state of the task alone.
    let reader = world.hire("root", "reader", json!({})).await;
    world.write(|tx| Box::pin(async move { tasks::set_nudged(tx, &TaskId::new("t-1")).await })).await;
    assert_eq!(code(&world.say("root", &reader, json!("read")).await), "ok");
    assert_eq!(world.query("SELECT nudged || '' FROM tasks").await, ["1"]);
}

#[tokio::test]
async fn at_the_pair_limit_a_message_is_refused_and_both_are_told_once() {
    let world = World::with(&json!({"maxPairExchanges": 2})).await;
    let reader = world.hire("root", "reader", json!({})).await;
    assert_eq!(code(&world.say("root", &reader, json!("one")).await), "ok");
    assert_eq!(code(&world.say(&reader, "root", json!("two")).await), "ok");
    for _ in 0..2 {
        let refused = world.say("root", &reader, json!("three")).await;
        assert_eq!((code(&refused), &refused["limit"]), ("limit_reached", &json!("maxPairExchanges")));
    }
    let told =
        "SELECT receiver || ' ' || (body ->> 'notice') FROM messages WHERE sender = 'system' ORDER BY seq";
    assert_eq!(world.query(told).await, [format!("{reader} pair_limit"), "root pair_limit".to_owned()]);
    let sent = world.query("SELECT body FROM messages WHERE sender <> 'system' ORDER BY seq").await;
    assert_eq!(sent, [r#"{"text":"one"}"#, r#"{"text":"two"}"#]);
    let events =
        world.query("SELECT body ->> 'agent' FROM events WHERE body ->> 'limit' = 'maxPairExchanges'").await;
    assert_eq!(events, [reader, "root".to_owned()]);
}
