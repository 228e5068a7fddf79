//! Tests of calls to correct servers of both protocol generations.

use super::world::*;
use polity_hands::call::{Content, Output, Progress, Source};
use polity_hands::tool::{AfterCrash, Effect, Words};
use polity_society::tool_group::ToolGroup;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// A server that answers each call with the name and the arguments of the call.
fn echo(generation: Generation) -> Arc<Played> {
    played(move |mut side| async move {
        let tools = json!([
            {"name": "echo", "inputSchema": {}, "annotations": {"readOnlyHint": true, "title": "Says it"}},
            {"name": "set", "inputSchema": {}, "annotations": {"idempotentHint": true}},
            {"name": "add", "description": "Adds.", "inputSchema": {"properties": {"x": {"type": "integer"}}}},
        ]);
        while let Some(call) = side.next_call(generation, &tools).await {
            let said = format!("{} {}", call["params"]["name"], call["params"]["arguments"]);
            side.answer(&call, text(&said)).await;
        }
    })
}

#[tokio::test]
async fn servers_of_both_generations_are_called() {
    for generation in [Generation::Current, Generation::Previous] {
        let world = World::playing(echo(generation));
        let output = world.call("s__add", json!({"x": 1})).await.unwrap();
        let expect = Output::text("s: add", r#""add" {"x":1}"#).from_source(Source::Server(name("s")));
        assert_eq!(output, expect, "{generation:?}");
        world.servers.shut_down().await;
    }
}

#[tokio::test]
async fn tools_are_described_by_their_server() {
    let world = World::playing(echo(Generation::Previous));
    let described = async |tool: &str| {
        let tool = world.tool(tool).await;
        assert_eq!(tool.group(), ToolGroup::Server(name("s")));
        assert_eq!(tool.parameters()["type"], "object");
        let none = serde_json::Map::new();
        (tool.words(), tool.effect(&none), tool.after_crash(&none))
    };
    let own = |words: &str| Words::Own(words.to_owned());
    assert_eq!(described("s__echo").await, (own("Says it"), Effect::Reads, AfterCrash::Repeat));
    assert_eq!(described("s__set").await, (own("set"), Effect::Changes, AfterCrash::Repeat));
    assert_eq!(described("s__add").await, (own("Adds."), Effect::Changes, AfterCrash::Never));
    assert_eq!(world.tool("s__add").await.parameters()["properties"], json!({"x": {"type": "integer"}}));
}

#[tokio::test]
async fn progress_is_passed_on() {
    let world = World::playing(played(|mut side| async move {
        let call = side.next_call(Generation::Previous, &json!([tool("work")])).await.unwrap();
        let token = &call["params"]["_meta"]["progressToken"];
        let reports = [
            json!({"progressToken": token, "progress": 1, "total": 4}),
            json!({"progressToken": "another", "progress": 2, "message": "not for this call"}),
            json!({"progressToken": token, "progress": 3, "message": "nearly\ndone"}),
        ];
        for params in reports {
            side.send(json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params})).await;
            // The MCP library handles each notification in a separate task, so it may handle two notifications in the
            // wrong order. Waiting for the answer to a ping keeps the order.
            side.send(json!({"jsonrpc": "2.0", "id": 99, "method": "ping"})).await;
            side.next().await.unwrap();
        }
        side.answer(&call, text("done")).await;
        side.next().await;
    }));
    let reports = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reports);
    let mut invocation = invocation(json!({}));
    invocation.progress = Progress::new(move |what| sink.lock().unwrap().push(what.to_owned()));
    let output = world.tool("s__work").await.run(invocation).await.unwrap();
    assert_eq!(output.content, Content::Text { origin: "s: work".to_owned(), text: "done".to_owned() });
    assert_eq!(*reports.lock().unwrap(), ["1 of 4", "nearly done"]);
}

/// A server that never answers calls. It passes the first call and all later messages on to the receiver.
fn silent() -> (Arc<Played>, mpsc::UnboundedReceiver<Value>) {
    let (hears, heard) = mpsc::unbounded_channel();
    let script = played(move |mut side| {
        let hears = hears.clone();
        async move {
            let call = side.next_call(Generation::Previous, &json!([tool("wait")])).await;
            hears.send(call.unwrap()).unwrap();
            while let Some(message) = side.next().await {
                let _ = hears.send(message);
            }
        }
    });
    (script, heard)
}

/// Returns the next message that the silent server has received.
async fn next(heard: &mut mpsc::UnboundedReceiver<Value>) -> Value {
    tokio::time::timeout(PATIENCE, heard.recv()).await.expect("a message").unwrap()
}

#[tokio::test]
async fn a_cancelled_call_is_cancelled_at_the_server() {
    let (script, mut heard) = silent();
    let world = World::playing(script);
    let cancel = CancellationToken::new();
    let mut invocation = invocation(json!({}));
    invocation.cancel = cancel.clone();
    let tool = world.tool("s__wait").await;
    let running = tokio::spawn(async move { tool.run(invocation).await });
    let call = next(&mut heard).await;
    cancel.cancel();
    assert!(reason(running.await.unwrap()).contains("nobody waits"));
    let told = next(&mut heard).await;
    assert_eq!(told["method"], "notifications/cancelled");
    assert_eq!(told["params"]["requestId"], call["id"]);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let (script, mut heard) = silent();
    let world = World::playing(script);
    let tool = world.tool("s__wait").await;
    let running = tokio::spawn(async move { tool.run(invocation(json!({}))).await });
    let call = next(&mut heard).await;
    running.abort();
    let told = next(&mut heard).await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&json!("notifications/cancelled"), &call["id"])
    );
}

#[tokio::test]
async fn requests_of_a_server_are_declined() {
    let world = World::playing(played(|mut side| async move {
        let call = side.next_call(Generation::Previous, &json!([tool("ask")])).await.unwrap();
        let schema = json!({"type": "object", "properties": {}});
        let requests = [
            ("sampling/createMessage", json!({"messages": [], "maxTokens": 1})),
            ("elicitation/create", json!({"message": "Your password?", "requestedSchema": schema})),
            ("roots/list", json!({})),
            ("ping", json!({})),
        ];
        let mut answers = Vec::new();
        for (id, (method, params)) in requests.into_iter().enumerate() {
            side.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
            let answer = side.next().await.unwrap();
            answers.push(format!("{}{}", answer["result"], answer["error"]["code"]));
        }
        side.answer(&call, text(&answers.join("\n"))).await;
        side.next().await;
    }));
    let output = world.call("s__ask", json!({})).await.unwrap();
    let Content::Text { text, .. } = output.content else { panic!() };
    let expect = ["null-32601", r#"{"action":"decline"}null"#, r#"{"roots":[]}null"#, "{}null"];
    assert_eq!(text.lines().collect::<Vec<_>>(), expect);
}

#[tokio::test]
async fn input_that_the_current_generation_asks_for_is_a_failure() {
    let world = World::playing(played(|mut side| async move {
        let call = side.next_call(Generation::Current, &json!([tool("ask")])).await.unwrap();
        let wanted = json!({
            "resultType": "input_required",
            "inputRequests": {"a": {"method": "roots/list"}},
            "requestState": "x",
        });
        side.answer(&call, wanted).await;
        side.next().await;
    }));
    assert!(world.fails("s__ask").await.contains("input of a person"));
}
