//! Tests of the protocol, over HTTP and over streams, on a society in this process with the rehearsal models.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failure here is a failed test")]

mod elicitation;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::Request;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use polity_llm::{Arguments, CallError, ChatModel, Endpoint, Reply, ToolCall};
use polity_registry::{Environment, Registry};
use polity_rehearsal::RehearsalModel;
use polity_runtime::{Parts, Society, Target};
use polity_society::id::{MessageId, TaskId};
use polity_view::{MessageFilter, TaskFilter};
use serde_json::{Map, Value, json};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

/// A model that asks the user two questions in its first reply. Each later reply is one word.
#[derive(Default)]
struct Asking(AtomicBool);

impl ChatModel for Asking {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a polity_llm::Request,
        _: &'a dyn polity_llm::Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        if self.0.swap(true, Ordering::SeqCst) {
            return ready(Ok(Reply { text: Some("好".to_owned()), ..Reply::default() })).boxed();
        }
        let ask = |text: &str| {
            let payload = json!({"message_type": "collaboration_request", "text": text});
            let Value::Object(arguments) = json!({"to": "user", "payload": payload}) else { panic!() };
            let arguments = Arguments::Object(arguments);
            ToolCall { id: String::new(), name: "send_message".to_owned(), arguments, extra: Map::new() }
        };
        ready(Ok(Reply { tool_calls: vec![ask("一"), ask("二")], ..Reply::default() })).boxed()
    }
}

struct World {
    society: Arc<Society>,
    router: Router,
    ending: CancellationToken,
    directory: TempDir,
}

async fn start(directory: &Path, model: Arc<dyn ChatModel>) -> Arc<Society> {
    let app = directory.join("app.json");
    if !app.exists() {
        std::fs::write(app, r#"{"discover": false}"#).unwrap();
    }
    let environment = Environment::look_up(|_| None);
    let (registry, problems) =
        Registry::load(directory, environment, Box::new(|| Box::pin(async { Vec::new() }))).await.unwrap();
    assert_eq!(problems, []);
    let parts = Parts {
        registry: Arc::new(registry),
        model,
        hands: polity_runtime::hands::table::Hands::none(),
        extractor: None,
    };
    Arc::new(Society::start(&directory.join("data"), parts).await.unwrap())
}

impl World {
    async fn new() -> Self {
        Self::with(Arc::new(RehearsalModel)).await
    }

    async fn with(model: Arc<dyn ChatModel>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        Self::of(start(directory.path(), model).await, directory)
    }

    fn of(society: Arc<Society>, directory: TempDir) -> Self {
        let ending = CancellationToken::new();
        Self { router: polity_mcp::router(Arc::clone(&society), ending.clone()), society, ending, directory }
    }

    /// Restarts the society on the same data directory.
    async fn again(self) -> Self {
        self.society.stop().await;
        let society = start(self.directory.path(), Arc::new(RehearsalModel)).await;
        Self::of(society, self.directory)
    }

    /// Sends a message and returns all messages of the response, which is one object or a stream of events. The last
    /// message is the result.
    async fn post(&self, message: Value) -> Vec<Value> {
        let request = Request::post("/mcp")
            .header("host", "127.0.0.1:7717")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25")
            .body(Body::from(message.to_string()))
            .unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        let events = response.headers().get("content-type").is_some_and(|kind| kind == "text/event-stream");
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        let read = |text: &str| serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"));
        if !events {
            return vec![read(&body)];
        }
        let data =
            body.lines().filter_map(|line| line.strip_prefix("data: ")).filter(|data| !data.is_empty());
        data.map(read).collect()
    }

    async fn request(&self, method: &str, params: Value) -> Value {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.post(message).await.pop().unwrap()
    }

    async fn tool(&self, name: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": name, "arguments": arguments})).await;
        answer.get("result").cloned().unwrap_or_else(|| panic!("{answer}"))
    }

    /// Calls a tool and checks the result against the tool's output schema.
    async fn call(&self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments).await;
        assert_ne!(result["isError"], true, "{result}");
        let tools = self.request("tools/list", json!({})).await;
        let tools = tools["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        let validator = jsonschema::validator_for(&tool["outputSchema"]).unwrap();
        let data = result["structuredContent"].clone();
        let errors: Vec<String> = validator.iter_errors(&data).map(|error| error.to_string()).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}: {data}");
        data
    }

    async fn refused(&self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments).await;
        assert_eq!(result["isError"], true, "{result}");
        assert!(
            result.get("structuredContent").is_none(),
            "a refusal would violate the tool's output schema"
        );
        let told: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        told["error"].as_str().unwrap().to_owned()
    }

    /// Follows a task to its end and returns the messages to the person.
    async fn follow(&self, task: &Value) -> Vec<Value> {
        let (mut said, mut next) = (Vec::new(), json!(0));
        loop {
            let arguments = json!({"task": task, "after": next, "waitSeconds": 600});
            let followed = self.call("follow_task", arguments).await;
            said.extend(followed["messages"].as_array().unwrap().iter().cloned());
            next = followed["next"].clone();
            if followed["finished"] == true {
                return said;
            }
        }
    }
}

#[tokio::test]
async fn every_tool_says_what_it_takes_and_gives() {
    let world = World::new().await;
    let tools = world.request("tools/list", json!({})).await;
    let tools = tools["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 12);
    for tool in tools {
        for schema in ["inputSchema", "outputSchema"] {
            let schema = &tool[schema];
            assert_eq!(schema["type"], "object", "{tool}");
            assert!(schema.get("$schema").is_none(), "old clients do not know this dialect");
            assert!(!schema.to_string().contains("\"format\""), "{schema}");
            jsonschema::validator_for(schema).unwrap();
        }
        assert_eq!(tool["inputSchema"]["additionalProperties"], false);
        let required = &tool["inputSchema"]["required"];
        match tool["name"].as_str().unwrap() {
            "give_task" => assert_eq!(*required, json!(["prompt"])),
            "list_agents" => assert_eq!(*required, Value::Null),
            "stop" => assert_eq!(*required, Value::Null),
            "pause" => assert_eq!(*required, json!(["agent"])),
            _ => {}
        }
    }
}

#[tokio::test]
async fn a_task_is_given_and_followed_to_its_end_even_over_a_restart() {
    let world = World::new().await;
    world.society.pause(Target::Everybody).await.unwrap();
    let attachment = json!({"text": "a,b\n1,2\n", "filename": "t.csv", "mimeType": "text/csv"});
    let given = world.call("give_task", json!({"prompt": "读这个文件", "attachments": [attachment]})).await;
    let waits = world.call("follow_task", json!({"task": given["task"], "waitSeconds": 0})).await;
    assert_eq!((&waits["finished"], &waits["messages"]), (&json!(false), &json!([])));
    let world = world.again().await;
    world.call("resume", json!({"agent": "root"})).await;
    let said = world.follow(&given["task"]).await;
    assert_eq!(said.last().unwrap()["finality"], "final");
    let agents = world.call("list_agents", json!({"task": given["task"]})).await;
    let ids: Vec<&str> =
        agents["agents"].as_array().unwrap().iter().filter_map(|agent| agent["id"].as_str()).collect();
    assert!(ids.contains(&"root"));
    for id in ids.into_iter().filter(|id| *id != "user") {
        world.call("get_agent", json!({"agent": id})).await;
    }
    world.call("list_tasks", json!({})).await;
    let more = json!({"to": "root", "text": "再说一遍", "task": given["task"], "key": "a"});
    let (one, two) = (world.call("send_message", more.clone()).await, world.call("send_message", more).await);
    assert_eq!((&one["id"], &two["duplicate"]), (&two["id"], &json!(true)));
}

#[tokio::test]
async fn artifacts_are_read_as_what_they_are() {
    let world = World::new().await;
    let png =
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==";
    let attachments = json!([
        {"base64": png, "filename": "a.png", "mimeType": "image/png"},
        {"base64": "Qk0AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=", "filename": "a.bmp", "mimeType": "image/bmp"},
        {"text": "一二三四五", "filename": "t.txt", "mimeType": "text/plain"},
    ]);
    let given = world.call("give_task", json!({"prompt": "看看", "attachments": attachments})).await;
    world.follow(&given["task"]).await;
    let artifacts = world.call("list_artifacts", json!({"task": given["task"], "owner": "user"})).await;
    let of = |mime: &str| {
        let all = artifacts["artifacts"].as_array().unwrap();
        all.iter().find(|artifact| artifact["mimeType"] == mime).unwrap().clone()
    };
    let (picture, text) = (of("image/png"), of("text/plain"));
    let shown = world.tool("read_artifact", json!({"ref": picture["reference"]})).await;
    assert_eq!(shown["content"][0], json!({"type": "image", "data": png, "mimeType": "image/png"}));
    let other = of("image/bmp");
    assert_eq!(other["kind"], "image");
    let described = world.tool("read_artifact", json!({"ref": other["reference"]})).await;
    assert_eq!(described["content"][0]["type"], "text", "clients reject image types that they do not know");
    let page = world.call("read_artifact", json!({"ref": text["reference"], "offset": 1, "limit": 2})).await;
    assert_eq!((&page["text"], &page["next"]), (&json!("二三"), &json!(3)));
    let resources = world.request("resources/list", json!({})).await;
    let uri = format!("polity://artifact/{}", text["id"].as_str().unwrap());
    let listed = resources["result"]["resources"].as_array().unwrap();
    assert!(listed.iter().any(|resource| resource["uri"] == uri.as_str()));
    let read = world.request("resources/read", json!({"uri": uri})).await;
    assert_eq!(read["result"]["contents"][0]["text"], "一二三四五");
    for uri in ["polity://artifact/nothing", "polity://artifact/../../etc/passwd", "file:///etc/passwd"] {
        let read = world.request("resources/read", json!({"uri": uri})).await;
        assert!(read["error"]["code"].is_i64(), "{uri}: {read}");
    }
}

#[tokio::test]
async fn what_happens_is_told_as_progress() {
    let world = World::new().await;
    let given = world.call("give_task", json!({"prompt": "你好"})).await;
    world.follow(&given["task"]).await;
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "follow_task", "arguments": {"task": given["task"]}, "_meta": {"progressToken": "p"}}});
    let mut told = world.post(call).await;
    let result = told.pop().unwrap();
    let happened = result["result"]["structuredContent"]["happened"].as_array().unwrap().clone();
    let progress: Vec<Value> = told.iter().map(|notice| notice["params"]["message"].clone()).collect();
    assert!(!happened.is_empty());
    assert_eq!(progress, happened);
    assert!(told.iter().all(|notice| notice["params"]["progressToken"] == "p"));
}

#[tokio::test]
async fn what_is_refused_says_why_to_the_model() {
    let world = World::new().await;
    let check = async |name: &str, arguments: Value, code: &str| {
        assert_eq!(world.refused(name, arguments).await, code, "{name}");
    };
    check("give_task", json!({"prompt": "x", "colour": 1}), "invalid_arguments").await;
    check("give_task", json!({"prompt": "x", "attachments": [{}]}), "invalid_arguments").await;
    check("give_task", json!({"prompt": "x", "attachments": [{"base64": "***"}]}), "invalid_arguments").await;
    check("follow_task", json!({"task": "t-nothing"}), "not_found").await;
    check("answer_question", json!({"question": "m000000001", "text": "x"}), "not_found").await;
    check("get_agent", json!({"agent": "nobody"}), "not_found").await;
    check("read_artifact", json!({"ref": "artifact:nothing"}), "not_found").await;
    check("read_artifact", json!({"ref": "../../etc/passwd"}), "not_found").await;
    check("stop", json!({"agent": "user"}), "invalid_arguments").await;
    check("stop", json!({"task": "t-nothing"}), "not_found").await;
    check("stop", json!({}), "invalid_arguments").await;
    check("stop", json!({"agent": "root", "task": "t-nothing"}), "invalid_arguments").await;
    let unknown = world.request("tools/call", json!({"name": "walk", "arguments": {}})).await;
    assert!(unknown["error"]["code"].is_i64(), "{unknown}");
    assert_eq!(world.society.tasks(&TaskFilter::default()).await.unwrap().tasks.len(), 0);
    assert_eq!(world.society.messages(&MessageFilter::default()).await.unwrap().messages.len(), 0);
}

#[tokio::test]
async fn the_same_is_spoken_over_streams_and_ends_with_them() {
    let world = World::new().await;
    let (ours, theirs) = tokio::io::duplex(1 << 20);
    let (input, output) = tokio::io::split(theirs);
    let served = tokio::spawn(polity_mcp::serve(Arc::clone(&world.society), input, output));
    let (read, mut write) = tokio::io::split(ours);
    let mut lines = BufReader::new(read).lines();
    let mut say = async |message: Value| write.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    say(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})).await;
    let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["serverInfo"]["name"], "polity");
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    say(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})).await;
    let answer: Value = serde_json::from_str(&lines.next_line().await.unwrap().unwrap()).unwrap();
    assert_eq!(answer["result"]["tools"].as_array().unwrap().len(), 12);
    write.shutdown().await.unwrap();
    served.await.unwrap().unwrap();
}

#[tokio::test]
async fn the_question_that_is_named_is_answered() {
    let world = World::with(Arc::new(Asking::default())).await;
    let given = world.call("give_task", json!({"prompt": "画", "key": ""})).await;
    world.follow(&given["task"]).await;
    let task = TaskId::new(given["task"].as_str().unwrap());
    let questions = world.society.questions(&task).await.unwrap();
    let [first, second] = &questions[..] else { panic!("{}", questions.len()) };
    let answer = json!({"question": second.message.id, "text": "红"});
    let answered = world.call("answer_question", answer.clone()).await;
    let message = async |id: &MessageId| world.society.message(id).await.unwrap().unwrap();
    let by = message(&second.message.id).await.answered_by;
    assert_eq!(by.map(|by| json!(by)), Some(answered["id"].clone()));
    assert_eq!(message(&first.message.id).await.answered_by, None);
    let again = world.call("answer_question", answer).await;
    assert_eq!((&again["id"], &again["duplicate"]), (&answered["id"], &json!(true)));
    let other = json!({"question": second.message.id, "text": "蓝"});
    assert_eq!(world.refused("answer_question", other).await, "not_found");
    let other = world.call("give_task", json!({"prompt": "写", "key": ""})).await;
    assert_ne!(other["task"], given["task"], "an empty key counts as no key");
}

#[tokio::test]
async fn a_body_that_is_no_message_is_refused_in_the_form_of_the_protocol() {
    let world = World::new().await;
    let check = async |kind: &str, body: String, status: u16, code: Value| {
        let request = Request::post("/mcp")
            .header("host", "127.0.0.1:7717")
            .header("content-type", kind)
            .header("accept", "application/json, text/event-stream")
            .body(Body::from(body))
            .unwrap();
        let response = world.router.clone().oneshot(request).await.unwrap();
        let got = response.status().as_u16();
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap();
        let answer: Value = serde_json::from_slice(&body).unwrap_or_default();
        assert_eq!((got, &answer["error"]["code"]), (status, &code), "{kind}: {body:?}");
    };
    check("application/json", "{".to_owned(), 400, json!(-32_700)).await;
    check("application/json; charset=utf-8", "[".repeat(100_000), 400, json!(-32_700)).await;
    check("application/json", " ".repeat((96 << 20) + 1), 413, json!(-32_600)).await;
    // In this request, the content type really is wrong.
    check("text/plain", "{}".to_owned(), 415, Value::Null).await;
}

#[tokio::test]
async fn who_waits_is_told_when_the_daemon_ends() {
    let world = World::new().await;
    world.society.pause(Target::Everybody).await.unwrap();
    let given = world.call("give_task", json!({"prompt": "你好"})).await;
    world.ending.cancel();
    let waits = json!({"task": given["task"], "waitSeconds": 600});
    assert_eq!(world.refused("follow_task", waits).await, "unavailable");
}
