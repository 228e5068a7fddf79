//! Tests of the routes on a society in this process with the rehearsal models.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod support;

use axum::body::Body;
use axum::http::Request;
use polity_runtime::{Target, UserMessage};
use polity_society::id::AgentId;
use polity_society::message::Finality;
use polity_view::Event;
use polity_view::{AgentFilter, EventFilter, MessageFilter, TaskFilter};
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use support::{Say, Script, World};
use tower::ServiceExt;

const PICTURE: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// Returns an agent that root has hired.
async fn hired(world: &World) -> AgentId {
    let agents = world.society.agents(&AgentFilter::default()).await.unwrap().agents;
    agents.into_iter().map(|agent| agent.id).find(|id| !id.is_root() && !id.is_user()).unwrap()
}

/// Counts the tasks, and the messages that the person has sent.
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
    // The person has seen the answer. The person has not seen root's interim message, because the answer was not
    // streamed.
    let unshown = world.society.unshown().await.unwrap();
    assert!(unshown.iter().all(|letter| letter.message.finality == Finality::Interim), "{unshown:?}");
    assert_eq!(unshown.len(), 1);
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
    assert_eq!(counts(&world).await, (1, 3), "only the new question is sent on");
}

#[tokio::test]
async fn conversations_that_read_the_same_never_get_into_one_task() {
    let world = World::new().await;
    let (one, two) = (world.chat(json!([user("一")])).await, world.chat(json!([user("一")])).await);
    assert_ne!(one.task(), two.task(), "each was answered, so the second is not a repetition");
    // Both tasks have the same messages. The first request that continues the conversation gets one of the tasks, and
    // the second request gets the other task.
    let (one_text, two_text) = (one.text(), two.text());
    let first = world.chat(json!([user("一"), assistant(&one_text), user("二")])).await;
    let second = world.chat(json!([user("一"), assistant(&two_text), user("三")])).await;
    assert_ne!(first.task(), second.task());
    // Both tasks now contain a second question. A client that continues from the first answer, without the second
    // question, gets a new task.
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
    // The official clients report retries in a header.
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
    assert_eq!(counts(&world).await, (1, 1), "the task was not started twice");
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
    assert!(content.contains("1 × 1"), "the picture's bytes reached a model with vision: {content}");
    let ends: Vec<&Value> =
        chunks.iter().filter(|chunk| chunk["choices"][0]["finish_reason"] == "stop").collect();
    assert_eq!(ends.len(), 1);
    let last = chunks.last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert!(last["usage"]["total_tokens"].as_u64() > Some(0));
    assert!(chunks[..chunks.len() - 1].iter().all(|chunk| chunk.get("usage") == Some(&Value::Null)));
    // The conversation can continue from the streamed answer.
    let more = world.chat(json!([messages[0], assistant(&content), user("谢谢")])).await;
    assert_eq!(more.task(), answer.task());
}

#[tokio::test]
async fn every_live_agent_is_a_model() {
    let world = World::new().await;
    let content =
        json!([{"type": "text", "text": "看看"}, {"type": "image_url", "image_url": {"url": PICTURE}}]);
    let task = world.chat(json!([{"role": "user", "content": content}])).await.task();
    let agent = format!("polity/{}", hired(&world).await);
    for path in [format!("/v1/models/{agent}"), format!("/v1/models/{}", agent.replace('/', "%2F"))] {
        assert_eq!(world.get(&path).await.json()["id"], agent.as_str());
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
    assert_eq!(counts(&world).await, (0, 0), "no task was begun by a refused request");
}

#[tokio::test]
async fn what_root_asks_is_answered_and_then_it_answers() {
    let says = [
        Say::Send("collaboration_request", "红还是蓝"),
        Say::Text("已经问了，等您回答"),
        Say::Text("那就红"),
    ];
    let world = World::with(Arc::new(Script::new(says))).await;
    let asked = world.chat(json!([user("画")])).await;
    assert_eq!(asked.text(), "红还是蓝");
    let answer = world.chat(json!([user("画"), assistant(&asked.text()), user("红")])).await;
    assert_eq!((answer.task(), answer.text()), (asked.task(), "那就红".to_owned()));
}

#[tokio::test]
async fn the_answer_is_what_is_said_last_in_a_turn() {
    let says =
        [Say::Send("general", "先说一点"), Say::Send("status_report", "再说一点"), Say::Text("说完了")];
    let world = World::with(Arc::new(Script::new(says))).await;
    let filter = || MessageFilter { to: Some(AgentId::user()), ..MessageFilter::default() };
    let answer = world.chat(json!([user("说")])).await;
    let said = world.society.messages(&filter()).await.unwrap().messages;
    assert!(said.len() > 1, "{said:?}");
    assert_eq!(said[0].finality, Finality::Final);
    assert_eq!(answer.text(), said.last().unwrap().text);
}

#[tokio::test]
async fn where_the_agent_is_paused_it_says_so_and_the_message_waits() {
    let world = World::new().await;
    world.society.pause(Target::Agent(AgentId::root())).await.unwrap();
    let paused = world.chat(json!([user("一")])).await;
    assert_eq!((paused.status.as_u16(), paused.code().as_str()), (503, "agent_paused"));
    let body = json!({"model": "polity", "messages": [user("一")], "stream": true});
    let streamed = world.chat_with(body, &[]).await.chunks();
    assert_eq!(streamed.last().unwrap()["error"]["code"], "agent_paused");
    world.society.resume(Target::Agent(AgentId::root())).await.unwrap();
    assert!(!world.chat(json!([user("一")])).await.text().is_empty());
    assert_eq!(counts(&world).await, (1, 1), "it was sent once");
}

#[tokio::test]
async fn what_nobody_saw_stays_news_for_the_person() {
    let content =
        json!([{"type": "text", "text": "看看"}, {"type": "image_url", "image_url": {"url": PICTURE}}]);
    let messages = json!([{"role": "user", "content": content}]);
    for stream in [false, true] {
        let world = World::new().await;
        world.chat_with(json!({"model": "polity", "messages": messages, "stream": stream}), &[]).await;
        let filter = MessageFilter { to: Some(AgentId::user()), ..MessageFilter::default() };
        let said = world.society.messages(&filter).await.unwrap().messages;
        let interim: Vec<_> = said
            .iter()
            .filter(|message| message.finality == Finality::Interim)
            .map(|message| message.id.clone())
            .collect();
        assert!(!interim.is_empty());
        let unshown: Vec<_> =
            world.society.unshown().await.unwrap().into_iter().map(|letter| letter.message.id).collect();
        assert_eq!(unshown, if stream { Vec::new() } else { interim });
    }
}

#[tokio::test]
async fn what_was_sent_before_a_crash_is_gone_on_with_whatever_the_instructions_are_now() {
    let world = World::new().await;
    let key = format!("openai key {}", blake3::hash(b"k").to_hex());
    let payload = json!({"text": "一", "instructions": "Monday"});
    world
        .society
        .write(UserMessage { payload, key: Some(key), ..UserMessage::text("root", "") })
        .await
        .unwrap();
    let messages = json!([{"role": "system", "content": "Tuesday"}, user("一")]);
    let body = json!({"model": "polity", "messages": messages});
    let answer = world.chat_with(body, &[("idempotency-key", "k")]).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(counts(&world).await, (1, 1));
}

#[tokio::test]
async fn who_waits_is_told_when_the_daemon_ends() {
    let world = World::with(Arc::new(Script::new([Say::Nothing]))).await;
    world.ending.cancel();
    let answer = world.chat(json!([user("一")])).await;
    assert_eq!((answer.status.as_u16(), answer.code().as_str()), (503, "unavailable"));
    assert!(answer.headers.get("x-should-retry").is_none());
}

#[tokio::test]
async fn few_bodies_are_read_at_once() {
    let world = World::new().await;
    let read = Arc::new(AtomicUsize::new(0));
    let mut requests: Vec<_> = (0..6)
        .map(|_| {
            let read = Arc::clone(&read);
            let body = futures::stream::poll_fn(move |_| {
                read.fetch_add(1, Ordering::SeqCst);
                Poll::<Option<Result<&[u8], std::io::Error>>>::Pending
            });
            let request = Request::post("/v1/chat/completions").body(Body::from_stream(body)).unwrap();
            Box::pin(world.router.clone().oneshot(request))
        })
        .collect();
    for request in &mut requests {
        assert!(futures::poll!(request).is_pending());
    }
    assert_eq!(read.load(Ordering::SeqCst), 4);
}

fn form(schema: &Value) -> Value {
    json!({"type": "json_schema", "json_schema": {"name": "city", "schema": schema, "strict": true}})
}

fn city() -> Value {
    json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": false})
}

#[tokio::test]
async fn an_answer_in_the_form_that_was_asked_for() {
    let says = [Say::Text("It is Paris."), Say::Text("```json\n{\"city\": \"Paris\"}\n```")];
    let world = World::with(Arc::new(Script::new(says))).await;
    let body = json!({"model": "polity", "messages": [user("capital of France?")], "response_format": form(&city())});
    let answer = world.chat_with(body, &[]).await;
    assert_eq!(
        answer.text(),
        r#"{"city":"Paris"}"#,
        "the society rejected the first text, and the client gets the second as JSON"
    );
    let task = answer.task();
    let filter =
        MessageFilter { task: Some(polity_society::id::TaskId::new(task)), ..MessageFilter::default() };
    let messages = world.society.messages(&filter).await.unwrap().messages;
    assert_eq!(messages.len(), 2, "the first was not sent: {messages:?}");
    assert_eq!(messages[0].payload.as_ref().unwrap()["result_schema"], city());
    assert_eq!(messages[1].payload.as_ref().unwrap()["checked_result"], json!({"city": "Paris"}));
}

#[tokio::test]
async fn an_answer_that_never_fits_is_refused_with_the_reason() {
    for stream in [false, true] {
        let world = World::with(Arc::new(Script::new([Say::Text("{\"town\": \"Paris\"}")]))).await;
        let body = json!({"model": "polity", "messages": [user("capital?")], "response_format": form(&city()), "stream": stream});
        let answer = world.chat_with(body, &[]).await;
        let error = if stream {
            let chunks = answer.chunks();
            assert!(
                chunks
                    .iter()
                    .all(|chunk| chunk["choices"][0]["delta"]["content"].as_str().is_none_or(str::is_empty))
            );
            chunks.last().unwrap()["error"].clone()
        } else {
            assert_eq!(answer.status, 502);
            answer.json()["error"].clone()
        };
        assert_eq!(error["code"], "answer_does_not_fit");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("city") && message.contains("town"), "{message}");
        let filter = MessageFilter { to: Some(AgentId::user()), ..MessageFilter::default() };
        let said = world.society.messages(&filter).await.unwrap().messages;
        assert!(said.last().unwrap().payload.as_ref().unwrap().contains_key("schema_errors"));
    }
}

#[tokio::test]
async fn an_answer_by_message_is_compared_too_and_a_word_after_it_is_no_answer() {
    let says = [
        Say::Send("general", "Paris"),
        Say::Send("general", "{\"city\": \"Paris\"}"),
        Say::Text("I have answered."),
    ];
    let world = World::with(Arc::new(Script::new(says))).await;
    let body = json!({"model": "polity", "messages": [user("capital?")], "response_format": form(&city())});
    assert_eq!(world.chat_with(body, &[]).await.text(), r#"{"city":"Paris"}"#);
}

#[tokio::test]
async fn what_an_agent_asks_is_no_answer_in_that_form() {
    let says = [
        Say::Send("collaboration_request", "of which country?"),
        Say::Text("asked"),
        Say::Text("{\"city\": \"Paris\"}"),
    ];
    let world = World::with(Arc::new(Script::new(says))).await;
    let body =
        |messages: Value| json!({"model": "polity", "messages": messages, "response_format": form(&city())});
    let asked = world.chat_with(body(json!([user("capital?")])), &[]).await.json();
    let message = &asked["choices"][0]["message"];
    assert_eq!((&message["content"], &message["refusal"]), (&Value::Null, &json!("of which country?")));
    let answer = world.chat_with(body(json!([user("capital?"), message, user("France")])), &[]).await;
    assert_eq!(answer.text(), r#"{"city":"Paris"}"#);
    assert_eq!(counts(&world).await.0, 1, "the reply continued the same task");
}

#[tokio::test]
async fn any_object_and_a_schema_that_is_none() {
    let world = World::with(Arc::new(Script::new([Say::Text("{\"a\": 1}")]))).await;
    let ask = |format: Value| json!({"model": "polity", "messages": [user("x")], "response_format": format});
    assert_eq!(world.chat_with(ask(json!({"type": "json_object"})), &[]).await.text(), r#"{"a":1}"#);
    let wrong = world.chat_with(ask(form(&json!({"type": "no such type"}))), &[]).await;
    assert_eq!((wrong.status.as_u16(), wrong.code().as_str()), (400, "invalid_value"));
    assert_eq!(wrong.json()["error"]["param"], "response_format.json_schema.schema");
    assert_eq!(counts(&world).await, (1, 1), "the refused request began no task");
}

#[tokio::test]
async fn the_list_names_who_is_at_work() {
    let world = World::new().await;
    let content =
        json!([{"type": "text", "text": "看看"}, {"type": "image_url", "image_url": {"url": PICTURE}}]);
    world.chat(json!([{"role": "user", "content": content}])).await;
    let ids = |answer: &Value| -> Vec<String> {
        answer["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|model| model["id"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        ids(&world.get("/v1/models").await.json()),
        ["polity", "polity-direct"],
        "idle agents are not listed"
    );
    let name = format!("polity/{}", hired(&world).await);
    assert_eq!(world.get(&format!("/v1/models/{name}")).await.json()["id"], name, "it can still be asked");
    assert_eq!(world.get("/v1/models/polity-direct").await.json()["id"], "polity-direct");
}

#[tokio::test]
async fn the_service_itself_is_asked_without_a_society() {
    let says =
        [Say::Text("<think>short</think>Greeting"), Say::Text("no JSON"), Say::Text("{\"city\": \"Paris\"}")];
    let world = World::with(Arc::new(Script::new(says))).await;
    let ask = |more: Value| {
        let mut body = json!({"model": "polity-direct", "messages": [user("a title for this chat")]});
        for (name, value) in more.as_object().into_iter().flatten() {
            body[name] = value.clone();
        }
        body
    };
    assert_eq!(world.chat_with(ask(json!({})), &[]).await.text(), "Greeting");
    let answer = world.chat_with(ask(json!({"response_format": form(&city())})), &[]).await;
    assert_eq!(answer.text(), r#"{"city":"Paris"}"#);
    let chunks = world.chat_with(ask(json!({"stream": true})), &[]).await.chunks();
    assert_eq!(chunks[1]["choices"][0]["delta"]["content"], r#"{"city": "Paris"}"#);
    let refused = world.chat_with(ask(json!({"response_format": form(&json!({"type": 7}))})), &[]).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (400, "invalid_value"));
    assert_eq!(counts(&world).await, (0, 0), "no task was begun");
    let silent = World::with(Arc::new(Script::new([Say::Text("<think>nothing else</think>")]))).await;
    let empty = silent.chat_with(ask(json!({})), &[]).await;
    assert_eq!((empty.status.as_u16(), empty.code().as_str()), (502, "no_model"));
}

#[tokio::test]
async fn responses_have_the_same_tasks() {
    let world = World::new().await;
    let first = world.respond(json!({"model": "polity", "input": "一"})).await;
    let (task, body) = (first.task(), first.json());
    assert_eq!((&body["object"], &body["status"]), (&json!("response"), &json!("completed")));
    let text = body["output"][0]["content"][0]["text"].as_str().unwrap().to_owned();
    assert!(!text.is_empty());
    assert!(body["usage"]["total_tokens"].as_u64().unwrap() > 0);
    // There are two ways to continue a conversation: with the id of its last response, and with all its messages. Both
    // work even if the earlier requests used the other route.
    let more = json!({"model": "polity", "input": "二", "previous_response_id": body["id"]});
    let second = world.respond(more.clone()).await;
    assert_eq!(second.task(), task);
    let gone_on =
        world.respond(json!({"model": "polity", "input": "三", "previous_response_id": body["id"]})).await;
    assert_eq!((gone_on.status.as_u16(), gone_on.code().as_str()), (409, "not_the_newest"));
    let other = world.chat(json!([user("四")])).await;
    let items = json!([
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "四"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": other.text()}]},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "五"}]},
    ]);
    assert_eq!(world.respond(json!({"model": "polity", "input": items})).await.task(), other.task());
    let unknown =
        world.respond(json!({"model": "polity", "input": "x", "previous_response_id": "resp_none"})).await;
    assert_eq!(unknown.code(), "previous_response_not_found");
}

#[tokio::test]
async fn a_streamed_response_tells_what_happens_and_then_the_answer() {
    let world = World::new().await;
    let content =
        json!([{"type": "input_text", "text": "看看"}, {"type": "input_image", "image_url": PICTURE}]);
    let input = json!([{"role": "user", "content": content}]);
    let answer = world.respond(json!({"model": "polity", "input": input, "stream": true})).await;
    let events: Vec<Value> = answer
        .body
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|data| serde_json::from_str(data).unwrap())
        .collect();
    let of = |kind: &str, field: &str| -> String {
        events
            .iter()
            .filter(|event| event["type"] == kind)
            .filter_map(|event| event[field].as_str())
            .collect()
    };
    assert!(of("response.reasoning_summary_text.delta", "delta").contains("root hired "));
    assert!(of("response.output_text.delta", "delta").contains("1 × 1"));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.completed");
    assert_eq!(last["response"]["output"][1]["type"], "message");
    // A failed response reports its failure in the stream.
    world.society.pause(Target::Agent(AgentId::root())).await.unwrap();
    let failed = world.respond(json!({"model": "polity", "input": "一", "stream": true})).await.body;
    assert!(failed.contains("event: response.failed") && failed.contains("agent_paused"), "{failed}");
}

/// Root sends the person an answer while a helper is still working. After the helper is done, root adds nothing to
/// the answer that it has sent.
#[tokio::test]
async fn an_answer_that_was_interim_first_is_given_in_its_form() {
    for last in ["{\"city\": \"Paris\"}", ""] {
        let says = [Say::Hire, Say::Text("{\"city\": \"Paris\"}"), Say::Text(last)];
        let world = World::with(Arc::new(Script::new(says))).await;
        let body =
            json!({"model": "polity", "messages": [user("capital?")], "response_format": form(&city())});
        let answer = world.chat_with(body, &[]).await;
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.text(), r#"{"city":"Paris"}"#);
    }
}

#[tokio::test]
async fn the_same_answer_twice_is_one() {
    let says = [
        Say::Send("general", "{\"city\": \"Paris\"}"),
        Say::Send("general", "{\"city\": \"Paris\"}"),
        Say::Text(""),
    ];
    let world = World::with(Arc::new(Script::new(says))).await;
    let body = json!({"model": "polity", "messages": [user("capital?")], "response_format": form(&city())});
    assert_eq!(world.chat_with(body, &[]).await.text(), r#"{"city":"Paris"}"#);
    let filter = MessageFilter { to: Some(AgentId::user()), ..MessageFilter::default() };
    assert_eq!(world.society.messages(&filter).await.unwrap().messages.len(), 1);
}

#[tokio::test]
async fn the_service_itself_knows_of_no_conversation() {
    let world = World::new().await;
    let body = json!({"model": "polity-direct", "input": "x", "previous_response_id": "resp_m000000001"});
    let refused = world.respond(body).await;
    assert_eq!((refused.status.as_u16(), refused.code().as_str()), (400, "unsupported_parameter"));
}
