//! Tests that the client asks the person whether agents may make calls. Uses the official MCP client, over HTTP and
//! over standard streams.

use crate::World;
use futures::FutureExt;
use futures::future::{BoxFuture, ready};
use polity_llm::{Arguments, CallError, ChatModel, Endpoint, Reply, Request, ToolCall};
use polity_society::approval::Answer;
use polity_view::{ApprovalAnswer, ApprovalFilter, ApprovalState, ApprovalView};
use rmcp::ClientHandler;
use rmcp::model::{
    CallToolRequestParams, ClientCapabilities, ClientConfig, ElicitRequestParams, ElicitResult,
    ElicitationAction, ElicitationCapability, ErrorData, Implementation, ProtocolVersion,
};
use rmcp::service::{ClientLifecycleMode, ClientServiceExt as _, RequestContext, RoleClient, RunningService};
use rmcp::transport::StreamableHttpClientTransport;
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::sync::{Mutex, mpsc};

/// Maximum time that a test waits for something that must happen.
const PATIENCE: Duration = Duration::from_secs(60);

/// A model that stores the given number of artifacts, one after another, and then ends the turn.
struct Storing {
    left: AtomicUsize,
}

impl ChatModel for Storing {
    fn call<'a>(
        &'a self,
        _: &'a Endpoint,
        _: &'a Request,
        _: &'a dyn polity_llm::Listener,
    ) -> BoxFuture<'a, Result<Reply, CallError>> {
        let left = self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
        let Ok(left) = left else {
            return ready(Ok(Reply { text: Some("done".to_owned()), ..Reply::default() })).boxed();
        };
        let arguments = json!({"label": format!("note {left}"), "content": "one", "encoding": "utf-8"});
        let Value::Object(arguments) = arguments else { panic!() };
        let call = ToolCall {
            id: String::new(),
            name: "put_artifact".to_owned(),
            arguments: Arguments::Object(arguments),
            extra: Map::new(),
        };
        ready(Ok(Reply { tool_calls: vec![call], ..Reply::default() })).boxed()
    }
}

/// Starts a society in which the person is asked about each artifact.
async fn asking(artifacts: usize) -> World {
    let directory = tempfile::tempdir().unwrap();
    let policy = json!([{"tool": "put_artifact", "decide": "ask"}]);
    let app = json!({"discover": false, "tools": {"policy": policy}});
    std::fs::write(directory.path().join("app.json"), app.to_string()).unwrap();
    std::fs::create_dir(directory.path().join("data")).unwrap();
    let model = Arc::new(Storing { left: AtomicUsize::new(artifacts) });
    World::of(crate::start(directory.path(), model).await, directory)
}

impl World {
    async fn questions(&self) -> Vec<ApprovalView> {
        self.society.approvals(&ApprovalFilter::default()).await.unwrap().approvals
    }

    /// Waits until a question is open.
    async fn open_question(&self) -> ApprovalView {
        let mut newest = self.society.newest_event();
        let waiting = async {
            loop {
                newest.mark_unchanged();
                let open =
                    self.questions().await.into_iter().find(|asked| asked.state == ApprovalState::Open);
                if let Some(open) = open {
                    return open;
                }
                newest.changed().await.unwrap();
            }
        };
        tokio::time::timeout(PATIENCE, waiting).await.unwrap()
    }
}

/// What the person does with one question.
enum Does {
    Says(ElicitResult),
    /// The person looks at the question and does nothing.
    Ponders,
}

fn says(content: Value) -> Does {
    Does::Says(ElicitResult::new(ElicitationAction::Accept).with_content(content))
}

/// The official client, with a simulated person who answers questions.
struct Client {
    capabilities: ClientCapabilities,
    does: Mutex<VecDeque<Does>>,
    /// The channel that gets each question that is shown.
    shown: mpsc::UnboundedSender<ElicitRequestParams>,
    /// The channel that gets a signal for each question that the client removes.
    taken_away: mpsc::UnboundedSender<()>,
}

impl ClientHandler for Client {
    fn get_info(&self) -> ClientConfig {
        ClientConfig::new(self.capabilities.clone(), Implementation::new("test", "1"))
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn create_elicitation(
        &self,
        request: ElicitRequestParams,
        context: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        let does = self.does.lock().await.pop_front();
        self.shown.send(request).unwrap();
        match does {
            Some(Does::Says(result)) => Ok(result),
            Some(Does::Ponders) => {
                context.ct.cancelled().await;
                self.taken_away.send(()).unwrap();
                Ok(ElicitResult::new(ElicitationAction::Cancel))
            }
            None => panic!("nobody expected a question"),
        }
    }
}

/// The transport between a client and the society.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Over {
    Http,
    Streams,
}

struct Connected {
    client: RunningService<RoleClient, Client>,
    shown: mpsc::UnboundedReceiver<ElicitRequestParams>,
    taken_away: mpsc::UnboundedReceiver<()>,
}

fn current() -> ClientLifecycleMode {
    ClientLifecycleMode::Discover { preferred_versions: vec![ProtocolVersion::V_2026_07_28] }
}

async fn connect(
    world: &World,
    over: Over,
    mode: ClientLifecycleMode,
    elicitation: Option<ElicitationCapability>,
    does: Vec<Does>,
) -> Connected {
    let (shown, receiver) = mpsc::unbounded_channel();
    let (taken_away, taken) = mpsc::unbounded_channel();
    let mut capabilities = ClientCapabilities::default();
    capabilities.elicitation = elicitation;
    let client = Client { capabilities, does: Mutex::new(does.into()), shown, taken_away };
    let client = match over {
        Over::Http => {
            let _ = rustls::crypto::ring::default_provider().install_default();
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let url = format!("http://{}/mcp", listener.local_addr().unwrap());
            let router = world.router.clone();
            tokio::spawn(async { axum::serve(listener, router).await });
            client.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), mode).await.unwrap()
        }
        Over::Streams => {
            let (ours, theirs) = tokio::io::duplex(1 << 20);
            let (input, output) = tokio::io::split(theirs);
            tokio::spawn(polity_mcp::serve(Arc::clone(&world.society), input, output));
            client.serve_with_lifecycle(tokio::io::split(ours), mode).await.unwrap()
        }
    };
    Connected { client, shown: receiver, taken_away: taken }
}

impl Connected {
    async fn call(&self, tool: &'static str, arguments: Value) -> Value {
        let Value::Object(arguments) = arguments else { panic!("{arguments}") };
        let request = CallToolRequestParams::new(tool).with_arguments(arguments);
        let result = tokio::time::timeout(PATIENCE, self.client.call_tool(request)).await;
        result.unwrap().unwrap().structured_content.unwrap()
    }

    /// Follows a task until nothing is left to do.
    async fn follow(&self, task: &Value) -> Value {
        loop {
            let followed = self.call("follow_task", json!({"task": task, "waitSeconds": 50})).await;
            if followed["finished"] == true {
                return followed;
            }
        }
    }

    async fn give(&self) -> Value {
        self.call("give_task", json!({"prompt": "write notes"})).await["task"].clone()
    }
}

const WAYS: [(Over, Generation); 4] = [
    (Over::Http, Generation::Previous),
    (Over::Http, Generation::Current),
    (Over::Streams, Generation::Previous),
    (Over::Streams, Generation::Current),
];

/// The protocol version that the client speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Generation {
    Previous,
    Current,
}

impl Generation {
    fn mode(self) -> ClientLifecycleMode {
        match self {
            Self::Previous => ClientLifecycleMode::Initialize,
            Self::Current => current(),
        }
    }
}

fn can_ask() -> Option<ElicitationCapability> {
    Some(ElicitationCapability::default())
}

#[tokio::test]
async fn the_person_allows_and_denies_calls_through_the_client() {
    for (over, generation) in WAYS {
        let world = asking(2).await;
        let does = vec![
            says(json!({"decision": "allow"})),
            says(json!({"decision": "deny", "reason": "one is enough"})),
        ];
        let mut client = connect(&world, over, generation.mode(), can_ask(), does).await;
        let task = client.give().await;
        let followed = client.follow(&task).await;
        assert_eq!(followed["approvals"], json!([]), "{over:?}, {generation:?}");

        let shown = client.shown.recv().await.unwrap();
        let ElicitRequestParams::FormElicitationParams { message, requested_schema, .. } = shown else {
            panic!()
        };
        assert!(message.starts_with("root (root) wants to call put_artifact. May it?"), "{message}");
        assert!(message.contains("\n  label: note 2\n"), "{message}");
        assert!(
            message.contains("\nYou are asked because rule 1 of tools.policy in app.json says so."),
            "{message}"
        );
        assert_eq!(requested_schema.required.as_deref(), Some(&["decision".to_owned()][..]));
        client.shown.recv().await.unwrap();
        assert!(client.shown.try_recv().is_err(), "each question is asked once");

        let asked = world.questions().await;
        let found: Vec<_> = asked.iter().rev().map(|asked| (asked.state, asked.reason.as_deref())).collect();
        assert_eq!(found, [(ApprovalState::Allowed, None), (ApprovalState::Denied, Some("one is enough"))]);
        let artifacts = world.society.artifacts(&polity_view::ArtifactFilter::default()).await.unwrap();
        assert_eq!(artifacts.artifacts.len(), 1, "{over:?}, {generation:?}");
    }
}

#[tokio::test]
async fn a_client_that_cannot_ask_finds_the_question_in_the_result() {
    let url_only = serde_json::from_value(json!({"url": {}})).unwrap();
    for elicitation in [None, Some(url_only)] {
        for (over, generation) in WAYS {
            let world = asking(1).await;
            let client = connect(&world, over, generation.mode(), elicitation.clone(), vec![]).await;
            let task = client.give().await;
            let question = world.open_question().await;
            let followed = client.follow(&task).await;
            assert_eq!(followed["approvals"][0]["id"], json!(question.id), "{over:?}, {generation:?}");
            assert_eq!(followed["approvals"][0]["tool"], "put_artifact");
            assert_eq!(world.questions().await[0].state, ApprovalState::Open);
        }
    }
}

#[tokio::test]
async fn a_question_that_is_answered_elsewhere_is_taken_away() {
    for over in [Over::Http, Over::Streams] {
        let world = asking(1).await;
        let mode = Generation::Previous.mode();
        let mut client = connect(&world, over, mode, can_ask(), vec![Does::Ponders]).await;
        let task = client.give().await;
        let (followed, ()) = tokio::join!(client.client.call_tool(follow(&task)), async {
            client.shown.recv().await.unwrap();
            let question = world.open_question().await;
            let yes = ApprovalAnswer { answer: Answer::Yes, reason: None };
            world.society.answer_approval(question.id, yes).await.unwrap();
            tokio::time::timeout(PATIENCE, client.taken_away.recv()).await.unwrap().unwrap();
        });
        let followed = followed.unwrap().structured_content.unwrap();
        assert_eq!(followed["approvals"], json!([]), "{over:?}");
        assert_eq!(world.questions().await[0].state, ApprovalState::Allowed);
    }
}

fn follow(task: &Value) -> CallToolRequestParams {
    let Value::Object(arguments) = json!({"task": task, "waitSeconds": 50}) else { panic!() };
    CallToolRequestParams::new("follow_task").with_arguments(arguments)
}

#[tokio::test]
async fn the_first_answer_counts() {
    for over in [Over::Http, Over::Streams] {
        let world = asking(1).await;
        let mode = Generation::Current.mode();
        let mut client = connect(&world, over, mode, can_ask(), vec![Does::Ponders]).await;
        let task = client.give().await;
        // While the client shows the question, somebody else denies the call. Then the person answers in the client
        // that the call is allowed.
        let asked = client.client.peer().call_tool_once(follow(&task)).await.unwrap();
        let rmcp::model::CallToolResponse::InputRequired(asked) = asked else { panic!("{asked:?}") };
        let (id, _) = asked.input_requests.unwrap().pop_first().unwrap();
        let question = world.open_question().await;
        assert_eq!(id, question.id.as_str());
        let no = ApprovalAnswer { answer: Answer::No, reason: None };
        world.society.answer_approval(question.id, no).await.unwrap();
        let yes = json!({"action": "accept", "content": {"decision": "allow"}});
        let again = follow(&task)
            .with_input_responses([(id, yes)].into())
            .with_request_state(asked.request_state.unwrap());
        let followed = client.client.call_tool(again).await.unwrap().structured_content.unwrap();
        assert_eq!(followed["approvals"], json!([]));
        assert_eq!(world.questions().await[0].state, ApprovalState::Denied, "{over:?}");
        assert!(client.shown.try_recv().is_err());
    }
}

#[tokio::test]
async fn a_question_that_the_person_puts_off_stays_open() {
    for (over, generation) in WAYS {
        let world = asking(1).await;
        let cancel = Does::Says(ElicitResult::new(ElicitationAction::Cancel));
        let does = vec![cancel, Does::Says(ElicitResult::new(ElicitationAction::Decline))];
        let client = connect(&world, over, generation.mode(), can_ask(), does).await;
        let task = client.give().await;
        let followed = client.follow(&task).await;
        assert_eq!(followed["approvals"][0]["tool"], "put_artifact", "{over:?}, {generation:?}");
        assert_eq!(world.questions().await[0].state, ApprovalState::Open);
        // The next call shows the question again. Now the person declines, so the call of the agent is denied.
        assert_eq!(client.follow(&task).await["approvals"], json!([]));
        assert_eq!(world.questions().await[0].state, ApprovalState::Denied, "{over:?}, {generation:?}");
    }
}

#[tokio::test]
async fn an_answer_about_another_task_is_not_taken() {
    let world = asking(1).await;
    let client = connect(&world, Over::Streams, current(), can_ask(), vec![]).await;
    client.give().await;
    let question = world.open_question().await;
    let other = client.call("give_task", json!({"prompt": "another"})).await["task"].clone();
    let yes = json!({"action": "accept", "content": {"decision": "allow"}});
    let again = follow(&other).with_input_responses([(question.id.to_string(), yes)].into());
    client.client.call_tool(again).await.unwrap();
    assert_eq!(world.questions().await[0].state, ApprovalState::Open);
}

#[tokio::test]
async fn a_client_is_asked_after_a_restart_without_beginning_anew() {
    let world = asking(1).await;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "test", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    let begun = world.send(None, hello).await;
    let session = begun.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let hello = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    assert_eq!(world.send(Some(&session), hello).await.status(), 202);
    let given = world.call("give_task", json!({"prompt": "write notes"})).await;
    world.open_question().await;
    // The second router does not know the sessions of the first router. A restart of the daemon has the same effect.
    let world = World::of(Arc::clone(&world.society), world.directory);
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "follow_task", "arguments": {"task": given["task"], "waitSeconds": 50}}});
    let mut answers = world.send(Some(&session), call).await.into_body().into_data_stream();
    let asked = event(&mut answers).await;
    assert_eq!(asked["method"], "elicitation/create", "{asked}");
    let answer = json!({"action": "accept", "content": {"decision": "deny"}});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer});
    assert_eq!(world.send(Some(&session), answer).await.status(), 202);
    let result = event(&mut answers).await;
    assert_eq!(result["result"]["structuredContent"]["approvals"], json!([]), "{result}");
    assert_eq!(world.questions().await[0].state, ApprovalState::Denied);
    // A client that cannot show questions gets no session.
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello});
    assert!(!world.send(None, hello).await.headers().contains_key("mcp-session-id"));
}

impl World {
    async fn send(&self, session: Option<&str>, message: Value) -> axum::http::Response<axum::body::Body> {
        use tower::ServiceExt as _;
        let body = message.to_string();
        let mut request = axum::http::Request::post("/mcp")
            .header("host", "127.0.0.1:7717")
            .header("content-type", "application/json")
            .header("content-length", body.len())
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2025-11-25");
        if let Some(session) = session {
            request = request.header("mcp-session-id", session);
        }
        let request = request.body(axum::body::Body::from(body)).unwrap();
        self.router.clone().oneshot(request).await.unwrap()
    }
}

/// Returns the next message of a stream of events.
async fn event(answers: &mut axum::body::BodyDataStream) -> Value {
    use futures::StreamExt as _;
    let mut text = String::new();
    let reading = async {
        loop {
            let chunk = answers.next().await.unwrap().unwrap();
            text.push_str(std::str::from_utf8(&chunk).unwrap());
            let data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
            if let Some(message) = data.filter_map(|data| serde_json::from_str::<Value>(data).ok()).next()
                && text.ends_with("\n\n")
            {
                return message;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.unwrap()
}
