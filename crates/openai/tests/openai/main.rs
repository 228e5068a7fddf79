//! The routes over a society that lives in this process, with the rehearsal models.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod support;

use polity_runtime::view::{EventFilter, MessageFilter, TaskFilter};
use polity_runtime::{Event, Target};
use polity_society::id::AgentId;
use polity_society::message::Finality;
use serde_json::{Value, json};
use support::World;

const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// How many tasks there are, and how many messages the person has sent.
async fn counts(world: &World) -> (usize, usize) {
    let tasks = world.society.tasks(&TaskFilter::default()).await.unwrap().tasks.len();
    let filter = MessageFilter { from: Some("user".to_owned()), ..MessageFilter::default() };
    (tasks, world.society.messages(&filter).await.unwrap().messages.len())
}

#[tokio::test]
async fn an_answer_has_all_that_clients_read() {
    let world = World::new().await;
    let answer = world.chat(json!([user("你好")])).await;
    let body = answer.json();
    assert_eq!(body["object"], "chat.completion");
    assert_eq!(body["choices"][0]["finish_reason"], "stop");
    assert_eq!(body.pointer("/choices/0/logprobs"), Some(&Value::Null));
    assert!(!answer.text().is_empty());
    let events = world.society.events_after(0, 1000, &EventFilter::default()).await.unwrap().events;
    let until = events.iter().position(|entry| match &entry.event {
        Event::MessageAccepted { to, finality, .. } => to.is_user() && *finality == Finality::Final,
        _ => false,
    });
    let spent = events[..until.unwrap()].iter().filter_map(|entry| match &entry.event {
        Event::ModelAnswered { usage, .. } => Some((usage.prompt_tokens, usage.completion_tokens)),
        _ => None,
    });
    let spent = spent.fold((0, 0), |sum, call| (sum.0 + call.0, sum.1 + call.1));
    assert_eq!(
        (&body["usage"]["prompt_tokens"], &body["usage"]["completion_tokens"]),
        (&json!(spent.0), &json!(spent.1))
    );
    assert_eq!(world.society.unshown().await.unwrap().len(), 0, "the person has seen it");
}

#[tokio::test]
async fn a_conversation_goes_on_with_its_task_after_a_restart_too() {
    let world = World::new().await;
    let first = world.chat(json!([user("一")])).await;
    let mut said = vec![
        json!({"role": "system", "content": "Monday"}),
        user("一"),
        assistant(&first.text()),
        user("二"),
    ];
    let second = world.chat(json!(said)).await;
    assert_eq!(second.task(), first.task());
    let world = world.again().await;
    said[0] = json!({"role": "system", "content": "Tuesday"});
    said.extend([assistant(&second.text()), user("三")]);
    assert_eq!(world.chat(json!(said)).await.task(), first.task());
    assert_eq!(counts(&world).await, (1, 3), "only what is new is sent on");
}

#[tokio::test]
async fn conversations_that_read_the_same_never_get_into_one_task() {
    let world = World::new().await;
    let (one, two) = (world.chat(json!([user("一")])).await, world.chat(json!([user("一")])).await);
    assert_ne!(one.task(), two.task(), "each was answered: the second is no repetition");
    // Whoever goes on first gets one of them, and whoever comes then the other: the same was said in both.
    let (one_text, two_text) = (one.text(), two.text());
    let first = world.chat(json!([user("一"), assistant(&one_text), user("二")])).await;
    let second = world.chat(json!([user("一"), assistant(&two_text), user("三")])).await;
    assert_ne!(first.task(), second.task());
    // From here on neither stands at its first answer: what goes on from there is a branch, and a task of its own.
    let branch = world.chat(json!([user("一"), assistant(&one_text), user("四")])).await;
    assert!(![one.task(), two.task()].contains(&branch.task()));
}

#[tokio::test]
async fn a_conversation_that_was_held_elsewhere_is_told_to_root() {
    let world = World::new().await;
    let messages = json!([
        {"role": "system", "content": "be brief"},
        user("what is six times seven"), assistant("42"), user("and eight times nine"),
    ]);
    let task = world.chat(messages).await.task();
    let filter = MessageFilter { from: Some("user".to_owned()), ..MessageFilter::default() };
    let sent = world.society.messages(&filter).await.unwrap().messages.remove(0);
    assert_eq!((sent.task.as_str(), sent.text.as_str()), (task.as_str(), "and eight times nine"));
    let payload = Value::Object(sent.payload.unwrap());
    assert_eq!(payload["instructions"], "be brief");
    assert_eq!(payload["conversation"][1], json!({"role": "assistant", "text": "42"}));
}

#[tokio::test]
async fn what_is_repeated_is_sent_once() {
    let world = World::new().await;
    let body = json!({"model": "polity", "messages": [user("一")]});
    let key = [("idempotency-key", "a key of the client's own")];
    let (one, two) = (world.chat_with(body.clone(), &key).await, world.chat_with(body.clone(), &key).await);
    assert_eq!((one.task(), one.text()), (two.task(), two.text()));
    assert_eq!(one.json()["usage"], two.json()["usage"]);
    let other = json!({"model": "polity", "messages": [user("二")]});
    let reused = world.chat_with(other, &key).await;
    assert_eq!((reused.status.as_u16(), reused.code().as_str()), (409, "key_reused"));
    // The official clients say when they send the same again.
    let first = world.chat_with(body.clone(), &[("x-stainless-retry-count", "0")]).await;
    let retried = world.chat_with(body.clone(), &[("x-stainless-retry-count", "1")]).await;
    assert_eq!(first.task(), retried.task());
    assert_ne!(first.task(), one.task());
    assert_eq!(counts(&world).await, (2, 2));
}

#[tokio::test]
async fn whoever_goes_away_finds_the_answer_when_the_same_is_asked_again() {
    let world = World::new().await;
    world.society.pause(Target::Everybody).await.unwrap();
    world.leave(json!({"model": "polity", "messages": [user("一")], "stream": true})).await;
    assert_eq!(counts(&world).await, (1, 1));
    let world = world.again().await;
    world.society.resume(Target::Everybody).await.unwrap();
    let answer = world.chat(json!([user("一")])).await;
    assert!(!answer.text().is_empty());
    assert_eq!(counts(&world).await, (1, 1), "the task was not doubled");
}

#[tokio::test]
async fn a_stream_tells_what_happens_and_ends_with_the_usage() {
    let world = World::new().await;
    let content =
        json!([{"type": "text", "text": "看看"}, {"type": "image_url", "image_url": {"url": PICTURE}}]);
    let messages = json!([{"role": "user", "content": content}]);
    let body = json!({"model": "polity", "messages": messages, "stream": true, "stream_options": {"include_usage": true}});
    let answer = world.chat_with(body, &[]).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let chunks = answer.chunks();
    assert_eq!(chunks[0]["choices"][0]["delta"]["role"], "assistant");
    let all = |field: &str| -> String {
        let pieces = chunks.iter().filter_map(|chunk| chunk["choices"][0]["delta"][field].as_str());
        pieces.collect()
    };
    let (reasoning, content) = (all("reasoning_content"), all("content"));
    assert!(reasoning.contains("root hired "), "{reasoning}");
    assert!(content.contains("1 × 1"), "the picture's bytes reached a model that sees: {content}");
    let ends: Vec<&Value> =
        chunks.iter().filter(|chunk| chunk["choices"][0]["finish_reason"] == "stop").collect();
    assert_eq!(ends.len(), 1);
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].as_u64() > Some(0));
    assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
    // What was streamed is what the conversation goes on from.
    let more = world.chat(json!([messages[0], assistant(&content), user("谢谢")])).await;
    assert_eq!(more.task(), answer.task());
}

#[tokio::test]
async fn every_live_agent_is_a_model() {
    let world = World::new().await;
    let content =
        json!([{"type": "text", "text": "看看"}, {"type": "image_url", "image_url": {"url": PICTURE}}]);
    let task = world.chat(json!([{"role": "user", "content": content}])).await.task();
    let list = world.get("/v1/models").await.json();
    let ids: Vec<&str> =
        list["data"].as_array().unwrap().iter().filter_map(|model| model["id"].as_str()).collect();
    assert_eq!(ids[0], "polity");
    let agent = *ids.get(1).unwrap();
    for path in [format!("/v1/models/{agent}"), format!("/v1/models/{}", agent.replace('/', "%2F"))] {
        assert_eq!(world.get(&path).await.json()["id"], agent);
    }
    let answer = world.chat_with(json!({"model": agent, "messages": [user("你好")]}), &[]).await;
    assert_eq!(answer.task(), task, "an agent works for the task that it was hired for");
    assert!(!answer.text().is_empty());
    world.society.stop_work(Target::Subtree(AgentId::root())).await.unwrap();
    assert_eq!(world.get("/v1/models/polity%2Fuser").await.code(), "model_not_found");
}

#[tokio::test]
async fn a_task_can_be_named() {
    let world = World::new().await;
    let task = world.chat(json!([user("一")])).await.task();
    let body = |extra: Value| {
        let mut body = json!({"model": "polity", "messages": [user("二")]});
        body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        body
    };
    let named = world.chat_with(body(json!({"metadata": {"polity_task": task}})), &[]).await;
    assert_eq!(named.task(), task);
    let named = world.chat_with(body(json!({"seed": 1})), &[("x-polity-task", &task)]).await;
    assert_eq!(named.task(), task);
    let unknown = world.chat_with(body(json!({})), &[("x-polity-task", "t-nothing")]).await;
    assert_eq!((unknown.status.as_u16(), unknown.code().as_str()), (404, "unknown_task"));
}

#[tokio::test]
async fn errors_are_objects_that_clients_read() {
    let world = World::new().await;
    let check = async |body: Value, status: u16, code: &str| {
        let answer = world.chat_with(body, &[]).await;
        assert_eq!((answer.status.as_u16(), answer.code().as_str()), (status, code));
    };
    check(json!({"model": "gpt-4o", "messages": [user("x")]}), 404, "model_not_found").await;
    check(json!({"model": "user", "messages": [user("x")]}), 404, "model_not_found").await;
    check(json!({"model": "polity", "messages": []}), 400, "invalid_value").await;
    check(json!({"model": "polity", "messages": [user("x")], "n": 3}), 400, "unsupported_parameter").await;
    check(json!({"model": "polity"}), 400, "invalid_body").await;
    let stored = json!([{"type": "file", "file": {"file_id": "artifact:nothing"}}]);
    let messages = json!([{"role": "user", "content": stored}]);
    let answer = world.chat_with(json!({"model": "polity", "messages": messages}), &[]).await;
    assert!(answer.status.is_client_error() && !answer.code().is_empty(), "{}", answer.body);
    assert_eq!(answer.headers["x-should-retry"], "false");
    assert_eq!(world.get("/v1/models/nobody").await.code(), "model_not_found");
    assert_eq!(world.get("/v1/nothing").await.code(), "not_found");
    assert_eq!(world.get("/v1/chat/completions").await.status, 405);
    assert_eq!(counts(&world).await, (0, 0), "nothing was begun");
}
