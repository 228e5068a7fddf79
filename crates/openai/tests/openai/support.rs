//! A society with the rehearsal models or a scripted model, in a temporary directory.

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use futures::FutureExt;
use futures::future::{BoxFuture, pending, ready};
use polity_llm::{Arguments, CallError, ChatModel, Endpoint, Reply, ToolCall};
use polity_registry::{Environment, Registry};
use polity_rehearsal::RehearsalModel;
use polity_runtime::{Parts, Society};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

pub(crate) struct World {
    pub(crate) society: Arc<Society>,
    pub(crate) router: Router,
    /// A test cancels this token to simulate the shutdown of the daemon.
    pub(crate) ending: CancellationToken,
    model: Arc<dyn ChatModel>,
    directory: TempDir,
}

/// A model that plays root. It replies with these steps in order, and then repeats the last step forever.
pub(crate) struct Script(Mutex<VecDeque<Say>>);

#[derive(Clone)]
pub(crate) enum Say {
    /// A text that ends the turn.
    Text(&'static str),
    /// A message to the person: its type and its text.
    Send(&'static str, &'static str),
    /// Hires a helper, which answers its first message with "done".
    Hire,
    /// Never replies.
    Nothing,
}

impl Script {
    pub(crate) fn new(says: impl IntoIterator<Item = Say>) -> Self {
        Self(Mutex::new(says.into_iter().collect()))
    }
}

impl ChatModel for Script {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        request: &'a polity_llm::Request,
        _: &'a dyn polity_llm::Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        if of_helper(request) {
            return ready(Ok(Reply { text: Some("done".to_owned()), ..Reply::default() })).boxed();
        }
        let say = {
            let mut says = self.0.lock().unwrap();
            if says.len() > 1 { says.pop_front() } else { says.front().cloned() }
        };
        let reply = match say.unwrap() {
            Say::Nothing => return pending().boxed(),
            Say::Text(text) => {
                let text = Some(text.to_owned()).filter(|text| !text.is_empty());
                Reply { text, ..Reply::default() }
            }
            Say::Hire => {
                let brief = json!({"objective": "help", "constraints": [], "inputs": "none", "outputs": "help",
                    "completion_criteria": "helped"});
                let role = json!({"name": HELPER, "rolePrompt": "You help."});
                let Value::Object(arguments) =
                    json!({"role": role, "taskBrief": brief, "initialMessage": "help"})
                else {
                    panic!()
                };
                Reply { tool_calls: vec![call("spawn_agent_with_task", arguments)], ..Reply::default() }
            }
            Say::Send(message_type, text) => {
                let payload = json!({"message_type": message_type, "text": text});
                let Value::Object(arguments) = json!({"to": "user", "payload": payload}) else { panic!() };
                Reply { tool_calls: vec![call("send_message", arguments)], ..Reply::default() }
            }
        };
        ready(Ok(reply)).boxed()
    }
}

/// The name of the helper's role.
const HELPER: &str = "helper-of-root";

fn of_helper(request: &polity_llm::Request) -> bool {
    matches!(request.messages.first(), Some(polity_llm::Message::System(system)) if system.contains("You help."))
}

fn call(name: &str, arguments: Map<String, Value>) -> ToolCall {
    ToolCall {
        id: String::new(),
        name: name.to_owned(),
        arguments: Arguments::Object(arguments),
        extra: Map::new(),
    }
}

/// A response whose body has arrived completely.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: String,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    pub(crate) fn task(&self) -> String {
        assert_eq!(self.status, 200, "{}", self.body);
        self.headers["x-polity-task"].to_str().unwrap().to_owned()
    }

    pub(crate) fn text(&self) -> String {
        self.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned()
    }

    pub(crate) fn code(&self) -> String {
        let error = &self.json()["error"];
        for field in ["message", "type", "code"] {
            assert!(error[field].is_string(), "{field}: {}", self.body);
        }
        assert!(error.as_object().unwrap().contains_key("param"));
        error["code"].as_str().unwrap().to_owned()
    }

    /// Parses the events of a stream. Requires `[DONE]` at the end and leaves it out.
    pub(crate) fn chunks(&self) -> Vec<Value> {
        let mut data: Vec<&str> = self.body.lines().filter_map(|line| line.strip_prefix("data: ")).collect();
        assert_eq!(data.pop(), Some("[DONE]"));
        data.into_iter().map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

async fn start(
    directory: &Path,
    model: Arc<dyn ChatModel>,
    ending: CancellationToken,
) -> (Arc<Society>, Router) {
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
    let society = Arc::new(Society::start(&directory.join("data"), parts).await.unwrap());
    (Arc::clone(&society), polity_openai::router(society, ending))
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::with(Arc::new(RehearsalModel)).await
    }

    pub(crate) async fn with(model: Arc<dyn ChatModel>) -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("data")).unwrap();
        std::fs::write(directory.path().join("app.json"), r#"{"discover": false}"#).unwrap();
        let ending = CancellationToken::new();
        let (society, router) = start(directory.path(), Arc::clone(&model), ending.clone()).await;
        Self { society, router, ending, model, directory }
    }

    /// Restarts the society on the same data directory.
    pub(crate) async fn again(self) -> Self {
        self.society.stop().await;
        let ending = CancellationToken::new();
        let (society, router) = start(self.directory.path(), Arc::clone(&self.model), ending.clone()).await;
        Self { society, router, ending, model: self.model, directory: self.directory }
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Sends a chat completion with these headers.
    pub(crate) async fn chat_with(&self, body: Value, headers: &[(&str, &str)]) -> Answer {
        let mut request = Request::post("/v1/chat/completions").header("content-type", "application/json");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// Sends a request to `/v1/responses`.
    pub(crate) async fn respond(&self, body: Value) -> Answer {
        let request = Request::post("/v1/responses").header("content-type", "application/json");
        self.send(request.body(Body::from(body.to_string())).unwrap()).await
    }

    /// Sends a conversation to root as a chat completion.
    pub(crate) async fn chat(&self, messages: Value) -> Answer {
        self.chat_with(json!({"model": "polity", "messages": messages}), &[]).await
    }

    /// Sends a chat completion and disconnects as soon as the answer begins.
    pub(crate) async fn leave(&self, body: Value) {
        let request = Request::post("/v1/chat/completions").body(Body::from(body.to_string())).unwrap();
        let response = self.router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
    }

    async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap();
        let body = String::from_utf8(body.to_vec()).unwrap();
        Answer { status: head.status, headers: head.headers, body }
    }
}
