//! Tests of calls to correct servers of both protocol generations.

use super::world::*;
use polity_hands::call::{Content, File, Output, Progress, Source};
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
        assert_eq!(tool.always(), Some(tool.effect(&none)));
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

/// Makes the result of a call that links to resources with these URIs.
fn links(uris: &[&str]) -> Value {
    let link = |uri: &&str| json!({"type": "resource_link", "name": "a", "uri": uri});
    json!({"content": uris.iter().map(link).collect::<Vec<_>>(), "resultType": "complete"})
}

/// Makes the result of `resources/read`.
fn resource(content: Value) -> Value {
    json!({"contents": [content], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
}

/// The server is asked once for each resource that its result links to, but not for pages of the web. What cannot be read
/// stays a line of text.
#[tokio::test]
async fn resources_that_a_result_links_to_become_files() {
    for generation in [Generation::Current, Generation::Previous] {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&asked);
        let world = World::playing(played(move |mut side| {
            let heard = Arc::clone(&heard);
            async move {
                let call = side.next_call(generation, &json!([tool("find")])).await.unwrap();
                let uris =
                    ["demo://d/a", "https://example.org/b", "demo://d/a", "file:///gone", "demo://c.png"];
                side.answer(&call, links(&uris)).await;
                while let Some(request) = side.next().await {
                    // Skip other requests: a server of the current generation may also be asked to report changes of
                    // its tools.
                    if request["method"] != "resources/read" {
                        continue;
                    }
                    let uri = request["params"]["uri"].as_str().unwrap().to_owned();
                    heard.lock().unwrap().push(uri.clone());
                    let content = match uri.as_str() {
                        "demo://d/a" => json!({"uri": uri, "mimeType": "text/plain", "text": "words"}),
                        "demo://c.png" => json!({"uri": uri, "mimeType": "image/png", "blob": "aGk="}),
                        _ => {
                            let error = json!({"code": -32602, "message": "no such resource"});
                            side.send(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).await;
                            continue;
                        }
                    };
                    side.answer(&request, resource(content)).await;
                }
            }
        }));
        let output = world.call("s__find", json!({})).await.unwrap();
        let said = "[resource a: demo://d/a]\n[resource a: https://example.org/b]\n[resource a: demo://d/a]\n\
                    [resource a: file:///gone; it could not be read: no such resource]\n\
                    [resource a: demo://c.png]";
        let file = |bytes: &'static [u8], mime: &str, filename: &str| File {
            bytes: bytes.into(),
            declared_mime: Some(mime.to_owned()),
            filename: Some(filename.to_owned()),
        };
        let expect = Output::text("s: find", said).from_source(Source::Server(name("s")));
        let expect = expect.with_file(file(b"words", "text/plain", "a"));
        assert_eq!(output, expect.with_file(file(b"hi", "image/png", "c.png")), "{generation:?}");
        let asked = asked.lock().unwrap().clone();
        assert_eq!(asked, ["demo://d/a", "file:///gone", "demo://c.png"], "{generation:?}");
        world.servers.shut_down().await;
    }
}

#[tokio::test]
async fn a_server_without_resources_is_not_asked_for_any() {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&asked);
    let world = World::playing(played(move |mut side| {
        let heard = Arc::clone(&heard);
        async move {
            while let Some(message) = side.next().await {
                match message["method"].as_str() {
                    Some("tools/list") => side.answer(&message, list(&json!([tool("find")]))).await,
                    Some("tools/call") => side.answer(&message, links(&["demo://a"])).await,
                    Some("resources/read") => {
                        heard.lock().unwrap().push(message["params"]["uri"].clone());
                        side.answer(&message, resource(json!({"uri": "demo://a", "text": "words"}))).await;
                    }
                    _ => {
                        if let Some(mut answer) = greeting(&message, Generation::Previous) {
                            if answer["result"].is_object() {
                                answer["result"]["capabilities"] = json!({"tools": {}});
                            }
                            side.send(answer).await;
                        }
                    }
                }
            }
        }
    }));
    let output = world.call("s__find", json!({})).await.unwrap();
    let expect = Output::text("s: find", "[resource a: demo://a]").from_source(Source::Server(name("s")));
    assert_eq!(output, expect);
    assert_eq!(*asked.lock().unwrap(), Vec::<Value>::new());
}

/// All resources of a result together must not exceed the bound on the size of one message.
#[tokio::test]
async fn large_resources_of_a_result_are_not_all_read() {
    let most = bounds().message_bytes;
    let world = World::playing(played(move |mut side| async move {
        let call = side.next_call(Generation::Previous, &json!([tool("find")])).await.unwrap();
        side.answer(&call, links(&["demo://1", "demo://2", "demo://3"])).await;
        for _ in 0..2 {
            let request = side.next().await.unwrap();
            let text = "x".repeat(most * 2 / 3);
            side.answer(&request, resource(json!({"uri": request["params"]["uri"], "text": text}))).await;
        }
        // Polity must not ask for the third resource. This server would never answer.
        side.next().await;
    }));
    let output = world.call("s__find", json!({})).await.unwrap();
    assert_eq!(output.files.len(), 1);
    let Content::Text { text, .. } = output.content else { panic!() };
    let too_large = format!("could not be read: the resources are longer than {most} bytes together");
    let told: Vec<bool> = text.lines().map(|line| line.contains(&too_large)).collect();
    assert_eq!(told, [false, true, true], "{text}");
}

/// If no answer comes for a resource, neither the result nor the connection is lost: polity tells the server that
/// nobody waits for the resource any more.
#[tokio::test]
async fn a_resource_without_an_answer_is_given_up_and_the_result_is_kept() {
    let (hears, mut heard) = mpsc::unbounded_channel();
    let world = World::playing(played(move |mut side| {
        let hears = hears.clone();
        async move {
            let call = side.next_call(Generation::Previous, &json!([tool("find")])).await.unwrap();
            side.answer(&call, links(&["demo://a"])).await;
            while let Some(message) = side.next().await {
                let _ = hears.send(message);
            }
        }
    }));
    let cancel = CancellationToken::new();
    let mut invocation = invocation(json!({}));
    invocation.cancel = cancel.clone();
    let tool = world.tool("s__find").await;
    let running = tokio::spawn(async move { tool.run(invocation).await });
    let request = next(&mut heard).await;
    assert_eq!(request["method"], "resources/read");
    cancel.cancel();
    let output = running.await.unwrap().unwrap();
    let said = "[resource a: demo://a; it could not be read: nobody waits for it any more]";
    assert_eq!(output.content, Content::Text { origin: "s: find".to_owned(), text: said.to_owned() });
    let told = next(&mut heard).await;
    assert_eq!(
        (&told["method"], &told["params"]["requestId"]),
        (&json!("notifications/cancelled"), &request["id"])
    );
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
