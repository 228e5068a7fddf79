//! A society whose model follows a script, with real files in real workspaces.

use crate::support::{Answer, Daemon, parts};
use futures::FutureExt;
use futures::future::BoxFuture;
use polity_llm::{Arguments, CallError, ChatModel, Endpoint, Reply, Request, ToolCall};
use polity_runtime::hands::files::{Bounds, Files, StrReplaceEditor};
use polity_runtime::hands::places::Places;
use polity_runtime::hands::table::Hands;
use polity_runtime::hands::views::Views;
use polity_workspaces::Workspaces;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// The model's answer to one request.
pub(crate) enum Say {
    /// The model calls a tool.
    Call(&'static str, Value),
    /// The model closes the turn.
    Done,
}

/// A model that follows a script. After the end of the script, the model closes each turn.
struct Scripted(Mutex<VecDeque<Say>>);

impl ChatModel for Scripted {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a Request,
        _: &'a dyn polity_llm::Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        let next = self.0.lock().unwrap().pop_front().unwrap_or(Say::Done);
        let reply = match next {
            Say::Done => Reply { text: Some("done".to_owned()), ..Reply::default() },
            Say::Call(name, arguments) => {
                let Value::Object(arguments) = arguments else { panic!("no object: {arguments}") };
                let arguments = Arguments::Object(arguments);
                let call =
                    ToolCall { id: String::new(), name: name.to_owned(), arguments, extra: Map::new() };
                Reply { tool_calls: vec![call], ..Reply::default() }
            }
        };
        async { Ok(reply) }.boxed()
    }
}

/// Returns the tool call that creates a file.
pub(crate) fn create(path: &str, text: &str) -> Say {
    Say::Call("str_replace_editor", json!({"command": "create", "path": path, "file_text": text}))
}

/// Starts a society with this script and these settings.
pub(crate) async fn start(app: &Value, says: Vec<Say>) -> Daemon {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.json"), app.to_string()).unwrap();
    let parts = polity_runtime::Parts {
        model: Arc::new(Scripted(Mutex::new(says.into()))),
        hands: hands(directory.path()),
        ..parts(directory.path()).await
    };
    Daemon::start_with(directory, parts, Vec::new()).await
}

/// Starts a society in which the person is asked about each change of a file.
pub(crate) async fn asking(says: Vec<Say>) -> Daemon {
    let policy = json!([{"group": "files", "write": true, "decide": "ask"}]);
    start(&json!({"tools": {"policy": policy}}), says).await
}

fn hands(data: &Path) -> Hands {
    let root = data.join("workspaces");
    let workspaces = Arc::new(Workspaces::new(root.clone()));
    let places: Arc<dyn Places> = Arc::clone(&workspaces) as _;
    let files = Files::new(places, Arc::new(Views::new(root)), Bounds::default());
    let editor = StrReplaceEditor::new(files);
    Hands::none().in_workspaces(workspaces).with(Arc::new(editor))
}

/// Waits until a question is open, and returns its id.
pub(crate) async fn open_approval(daemon: &Daemon) -> String {
    let open = async || daemon.get("/api/approvals?state=open").await.ok()["approvals"].clone();
    daemon.until(async || !open().await.as_array().unwrap().is_empty()).await;
    open().await[0]["id"].as_str().unwrap().to_owned()
}

/// Answers a question.
pub(crate) async fn answer(daemon: &Daemon, id: &str, answer: &Value) -> Answer {
    daemon.send_json("POST", &format!("/api/approvals/{id}"), answer).await
}
