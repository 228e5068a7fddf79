use crate::testing::{World, code};
use polity_society::contact::Source;
use polity_society::id::AgentId;
use polity_society::message::{Expects, Message};
use polity_society::present::{FirstWords, present};
use serde_json::{Value, json};

fn introduction(target: &str) -> Value {
    json!({"message_type": "introduction_response", "target_agent": {"id": target, "roleName": "国王"}, "usage_hint": "附上图片"})
}

async fn contacts(world: &World, owner: &str) -> Vec<String> {
    let line = "agent || ' ' || source || coalesce(' ' || introduced_by, '')";
    world
        .query(&format!(
            "SELECT {line} FROM contacts WHERE owner = '{owner}' ORDER BY agent = 'root' DESC, agent"
        ))
        .await
}

#[tokio::test]
async fn an_introducer_knows_both() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let reader = world.hire(&lead, "读者", json!({})).await;
    let writer = world.hire("root", "写手", json!({})).await;
    // An agent can introduce only agents that it knows. The lead does not know the writer, and root does not know the
    // reader.
    assert_eq!(code(&world.say(&lead, &writer, introduction(&reader)).await), "unknown_contact");
    assert_eq!(code(&world.say("root", &writer, introduction(&reader)).await), "unknown_contact");
    assert_eq!(contacts(&world, &writer).await, ["root parent"]);
    let itself = world.say("root", &writer, introduction(&writer)).await;
    assert_eq!((code(&itself), &itself["details"][0]["field"]), ("invalid_message", &json!("target_agent")));
}

#[tokio::test]
async fn an_introduction_makes_a_contact_and_tells_what_the_registry_knows() {
    let world = World::new().await;
    let spec = json!({"services": "读图", "input_format": "图片", "output_format": "文字", "examples": "…"});
    let extra = json!({"requiredCapabilities": ["vision"], "interface_spec": spec});
    let reader = world.hire("root", "读者", extra).await;
    let writer = world.hire("root", "写手", json!({})).await;
    world.say(&writer, "root", json!({"message_type": "introduction_request", "reason": "有图", "required_capability": "vision"})).await;
    world.begin_turn("root").await;
    assert_eq!(code(&world.say(&writer, &reader, json!("你好")).await), "unknown_contact");
    assert_eq!(code(&world.say("root", &writer, introduction(&reader)).await), "ok");
    assert_eq!(
        contacts(&world, &writer).await,
        ["root parent".to_owned(), format!("{reader} introduction root")]
    );
    assert_eq!(
        contacts(&world, &reader).await,
        ["root parent"],
        "the introduced agent learns of it with the first message"
    );

    let told = &world.mail(&writer).await[0];
    assert_eq!(told.in_reply_to, [world.mail("root").await[0].id.clone()]);
    let words = present(told, &FirstWords::new(), &world.snapshot.prompts.texts).opening;
    let line = words.lines().find(|line| line.starts_with("target_agent: ")).unwrap();
    let expect = json!({"id": reader, "roleName": "读者", "interface_spec": spec, "input": ["text", "vision"], "output": ["text", "tool_calling"]});
    assert_eq!(line, format!("target_agent: {expect}"));
    assert!(!words.contains("国王"), "{words}");

    let first = json!({"text": "请读这张图", "contact_reason": "有一张图"});
    assert_eq!(code(&world.say(&writer, &reader, first).await), "ok");
    assert_eq!(
        contacts(&world, &reader).await,
        ["root parent".to_owned(), format!("{writer} first_message")]
    );
    let heard = &world.mail(&reader).await[0];
    let introduction = heard.introduction.as_ref().unwrap();
    assert_eq!(
        (introduction.source, introduction.introduced_by.clone()),
        (Source::Introduction, Some(AgentId::root()))
    );
    assert_eq!((introduction.role.as_str(), introduction.duty.as_str()), ("写手", "读图"));
    let words = present(heard, &FirstWords::new(), &world.snapshot.prompts.texts).opening;
    insta::assert_snapshot!(words.replace(&writer, "writer-3m9q"), @"
    【来自 写手（writer-3m9q）的消息】
    （消息类型）请求 general，request_id: m000000003
    （自我介绍）我是 写手。职责：读图。我经 root 介绍认识你。
    联系原因：有一张图
    请读这张图
    ");
    world.say(&writer, &reader, json!("再来一张")).await;
    assert_eq!(world.mail(&reader).await[1].introduction, None);
    assert_eq!(code(&world.say(&reader, &writer, json!("好")).await), "ok");
}

#[tokio::test]
async fn nobody_is_introduced_where_nobody_is_known() {
    let world = World::new().await;
    let writer = world.hire("root", "写手", json!({})).await;
    let nobody = json!({"message_type": "introduction_response", "target_agent": null, "reason": "没有"});
    assert_eq!(code(&world.say("root", &writer, nobody).await), "ok");
    assert_eq!(contacts(&world, &writer).await, ["root parent"]);
    let unsaid = json!({"message_type": "introduction_response"});
    assert_eq!(code(&world.say("root", &writer, unsaid).await), "invalid_message");
}

/// To pass a request on, an agent names the id of this request in a new request. The answer comes back through the
/// same agents.
#[tokio::test]
async fn an_answer_comes_back_along_the_chain() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let writer = world.hire(&lead, "写手", json!({})).await;
    let reader = world.hire("root", "读者", json!({})).await;
    let ask = |id: Option<&Value>| {
        let mut ask = json!({"message_type": "introduction_request", "reason": "有图", "required_capability": "vision"});
        ask["request_id"] = id.cloned().unwrap_or(Value::Null);
        ask
    };
    let texts = &world.snapshot.prompts.texts;
    world.say(&writer, &lead, json!("另一件事")).await;
    let first = world.say(&writer, &lead, ask(None)).await["messageIds"][0]["id"].clone();
    world.begin_turn(&lead).await;
    let shown = |mail: Vec<Message>, index: usize| present(&mail[index], &FirstWords::new(), texts).opening;
    let request_line = format!("request_id: {}", first.as_str().unwrap());
    assert!(shown(world.mail(&lead).await, 1).contains(&request_line));

    world.say(&lead, "root", ask(Some(&first))).await;
    world.begin_turn("root").await;
    let passed_on = &world.mail("root").await[0];
    assert_eq!(json!(passed_on.on_behalf_of), first, "it is made on behalf of the named request");
    assert!(shown(world.mail("root").await, 0).contains(&format!("request_id: {}", passed_on.id)));
    let mut answer = introduction(&reader);
    answer["request_id"] = first.clone();
    assert_eq!(code(&world.say("root", &lead, answer.clone()).await), "ok");
    assert_eq!(code(&world.say(&lead, &writer, answer).await), "ok");
    let told = world.mail(&writer).await;
    assert_eq!(
        json!(told[0].in_reply_to),
        json!([first]),
        "not the older question, which the message could answer too"
    );
    assert_eq!(told[0].expects, Expects::Nothing);
    let known = contacts(&world, &writer).await;
    assert!(known.contains(&format!("{reader} introduction {lead}")), "{known:?}");
}

#[tokio::test]
async fn an_answer_that_names_the_first_request_is_one_to_the_request_that_passed_it_on() {
    let world = World::new().await;
    let lead = world.hire("root", "组长", json!({})).await;
    let clerk = world.hire(&lead, "文员", json!({})).await;
    let reader = world.hire("root", "读者", json!({"requiredCapabilities": ["vision"]})).await;
    let ask = |request: Value| json!({"message_type": "introduction_request", "reason": "有图", "required_capability": "vision", "request_id": request});
    // The lead asks root something else before it passes on the clerk's request. So the lead has two open requests to
    // root, and root must answer the second of them.
    world.say(&lead, "root", json!("什么时候交？")).await;
    world.say(&clerk, &lead, ask(Value::Null)).await;
    let first = world.mail(&lead).await[0].id.clone();
    world.begin_turn(&lead).await;
    world.say(&lead, "root", ask(json!(first))).await;
    world.begin_turn("root").await;
    let mut answer = introduction(&reader);
    answer["request_id"] = json!(first);
    assert_eq!(code(&world.say("root", &lead, answer).await), "ok");
    let asked: Vec<String> = world.mail("root").await.iter().map(|message| message.id.to_string()).collect();
    let answered =
        world.query("SELECT id FROM messages WHERE receiver = 'root' AND answered_by IS NOT NULL").await;
    assert_eq!(answered, asked[1..], "the older question stays open");
}
