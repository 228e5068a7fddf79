//! Simulated servers, and functions that call their tools.

use crate::{Bounds, Config, Launch, Launcher, Process, Sandbox, Servers, Standing, Started, Tree};
use futures::future::{BoxFuture, FutureExt};
use polity_hands::call::{Attempt, Caller, Consent, Hosts, Invocation, Output, Place, Progress, Root};
use polity_hands::table::Toolbox;
use polity_hands::tool::Tool;
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_society::tool_group::ServerName;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// Longest time that a test waits for a condition.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);

/// The protocol generation of a simulated server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Generation {
    Current,
    Previous,
}

/// The server's end of the connection, for the script of a simulated server.
pub(super) struct Side {
    pub(super) input: Lines<BufReader<DuplexStream>>,
    pub(super) output: DuplexStream,
    pub(super) stderr: DuplexStream,
    /// Number of servers that were started before this server.
    pub(super) earlier: usize,
}

impl Side {
    /// Returns the next message from the client.
    pub(super) async fn next(&mut self) -> Option<Value> {
        let line = self.input.next_line().await.ok()??;
        Some(serde_json::from_str(&line).unwrap())
    }

    pub(super) async fn send(&mut self, message: Value) {
        self.send_raw(format!("{message}\n").as_bytes()).await;
    }

    /// Sends bytes. Ignores errors, because the client may be gone.
    pub(super) async fn send_raw(&mut self, bytes: &[u8]) {
        let _ = self.output.write_all(bytes).await;
    }

    pub(super) async fn answer(&mut self, request: &Value, result: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).await;
    }

    /// Answers all messages before the next tool call, and returns that call.
    pub(super) async fn next_call(&mut self, generation: Generation, tools: &Value) -> Option<Value> {
        loop {
            let message = self.next().await?;
            match message["method"].as_str() {
                Some("tools/call") => return Some(message),
                Some("tools/list") => {
                    self.answer(&message, list(tools)).await;
                }
                Some("subscriptions/listen") => {
                    let acknowledged = json!({
                        "jsonrpc": "2.0",
                        "method": "notifications/subscriptions/acknowledged",
                        "params": {
                            "_meta": {"io.modelcontextprotocol/subscriptionId": message["id"]},
                            "notifications": message["params"]["notifications"],
                        },
                    });
                    self.send(acknowledged).await;
                }
                _ => {
                    if let Some(answer) = greeting(&message, generation) {
                        self.send(answer).await;
                    }
                }
            }
        }
    }
}

/// Makes the result of `tools/list`.
pub(super) fn list(tools: &Value) -> Value {
    json!({"tools": tools, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"})
}

/// Returns the answer to a message of the handshake; `None` for other messages.
pub(super) fn greeting(message: &Value, generation: Generation) -> Option<Value> {
    let id = &message["id"];
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {}});
    let result = match (message["method"].as_str()?, generation) {
        ("server/discover", Generation::Current) => json!({
            "resultType": "complete",
            "supportedVersions": ["2026-07-28"],
            "capabilities": capabilities,
            "ttlMs": 0,
            "cacheScope": "private",
        }),
        ("initialize", Generation::Previous) => json!({
            "protocolVersion": message["params"]["protocolVersion"],
            "capabilities": capabilities,
            "serverInfo": {"name": "played", "version": "1"},
        }),
        ("server/discover" | "initialize", _) => {
            let error = json!({"code": -32601, "message": "Method not found"});
            return Some(json!({"jsonrpc": "2.0", "id": id, "error": error}));
        }
        _ => return None,
    };
    Some(json!({"jsonrpc": "2.0", "id": id, "result": result}))
}

/// Makes the definition of a tool without arguments.
pub(super) fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."), "inputSchema": {"type": "object"}})
}

/// Makes the result of a tool call. The result contains one text.
pub(super) fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}], "resultType": "complete"})
}

/// A function that plays the server. The simulated server ends when the future ends.
type Script = dyn Fn(Side) -> BoxFuture<'static, ()> + Send + Sync;

/// Starts simulated servers, and counts the starts.
pub(super) struct Played {
    script: Box<Script>,
    pub(super) starts: AtomicUsize,
}

impl Launcher for Played {
    fn launch<'a>(&'a self, _: &'a ServerName, _: &'a Process) -> BoxFuture<'a, std::io::Result<Started>> {
        async {
            let (stdin, input) = tokio::io::duplex(4096);
            let (output, stdout) = tokio::io::duplex(4096);
            let (errors, stderr) = tokio::io::duplex(4096);
            let earlier = self.starts.fetch_add(1, Ordering::SeqCst);
            let input = BufReader::new(input).lines();
            let task = tokio::spawn((self.script)(Side { input, output, stderr: errors, earlier }));
            Ok(Started {
                stdin: Box::new(stdin),
                stdout: Box::new(stdout),
                stderr: Box::new(stderr),
                tree: Box::new(Task(task)),
            })
        }
        .boxed()
    }
}

/// The Tokio task of a simulated server. The task takes the place of the processes of a real server.
struct Task(JoinHandle<()>);

impl Tree for Task {
    fn ended(&mut self) -> BoxFuture<'_, String> {
        async {
            // The handle of a task must not be polled again after the task has ended.
            if !self.0.is_finished() {
                let _ = (&mut self.0).await;
            }
            "ended".to_owned()
        }
        .boxed()
    }

    fn kill(&mut self) {
        self.0.abort();
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Returns small limits and short pauses, so that tests are quick.
pub(super) fn bounds() -> Bounds {
    Bounds {
        start: Duration::from_secs(60),
        stop: Duration::from_secs(5),
        reconnect: Duration::from_secs(60),
        first_pause: Duration::from_millis(1),
        longest_pause: Duration::from_millis(5),
        list_pause: Duration::from_millis(1),
        message_bytes: 64 << 10,
        message_every: Duration::from_micros(100),
        tools: 50,
        ..Bounds::default()
    }
}

/// Makes a launcher whose servers run this script.
pub(super) fn played<F>(script: impl Fn(Side) -> F + Send + Sync + 'static) -> Arc<Played>
where
    F: Future<Output = ()> + Send + 'static,
{
    Arc::new(Played { script: Box::new(move |side| script(side).boxed()), starts: AtomicUsize::new(0) })
}

pub(super) fn name(name: &str) -> ServerName {
    ServerName::new(name).unwrap()
}

pub(super) fn process(command: &str, args: &[&str]) -> Launch {
    let args = args.iter().map(|argument| (*argument).to_owned()).collect();
    Launch::Process(Process {
        command: command.to_owned(),
        args,
        env: BTreeMap::new(),
        cwd: None,
        sandbox: Sandbox::Off,
    })
}

/// Makes a configuration with a time limit that no test reaches.
pub(super) fn config(launch: Launch) -> Config {
    Config { launch, timeout: PATIENCE }
}

/// The servers of a test.
pub(super) struct World {
    pub(super) servers: Servers,
}

impl World {
    /// Configures a single server with the name `s`.
    pub(super) fn new(launcher: Arc<dyn Launcher>, bounds: Bounds, config: Config) -> Self {
        let servers = Servers::new(launcher, bounds);
        servers.set(BTreeMap::from([(name("s"), config)]));
        Self { servers }
    }

    /// Configures a single simulated server with the name `s`.
    pub(super) fn playing(launcher: Arc<Played>) -> Self {
        Self::new(launcher, bounds(), config(process("played", &[])))
    }

    /// Waits until the server reaches a wanted state.
    pub(super) async fn until(&self, wanted: impl Fn(&Standing) -> bool) -> Standing {
        let found = async {
            loop {
                let state = self.servers.state();
                if let Some(found) = state.into_iter().find(|state| wanted(&state.standing)) {
                    return found.standing;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("not reached: {:?}", self.servers))
    }

    /// Waits until a tool exists.
    pub(super) async fn tool(&self, name: &str) -> Arc<dyn Tool> {
        let found = async {
            loop {
                if let Some(found) = self.servers.tools().into_iter().find(|tool| tool.name() == name) {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let found = tokio::time::timeout(PATIENCE, found).await;
        found.unwrap_or_else(|_| panic!("no tool {name}: {:?}", self.servers))
    }

    pub(super) async fn call(&self, name: &str, arguments: Value) -> Result<Output, Refusal> {
        let tool = self.tool(name).await;
        // The time limit of a call is at most `PATIENCE`.
        let called = tokio::time::timeout(2 * PATIENCE, tool.run(invocation(arguments))).await;
        called.unwrap_or_else(|_| panic!("{name} does not end"))
    }

    /// Calls a tool that must fail, and returns the reason.
    pub(super) async fn fails(&self, tool: &str) -> String {
        reason(self.call(tool, json!({})).await)
    }
}

/// Returns the reason from a refusal by the server `s`.
pub(super) fn reason(result: Result<Output, Refusal>) -> String {
    match result {
        Err(Refusal::ServerFailed { server, reason }) if server == name("s") => reason,
        other => panic!("{other:?}"),
    }
}

pub(super) fn invocation(arguments: Value) -> Invocation {
    let Value::Object(arguments) = arguments else { panic!("{arguments}") };
    Invocation {
        caller: Caller {
            agent: AgentId::new("agent_1"),
            task: TaskId::new("task_1"),
            role: "Worker".to_owned(),
            place: Place { root: Root::Made, worktree: None },
        },
        arguments,
        idempotency_key: "key".to_owned(),
        evidence: Value::Null,
        attempt: Attempt::First,
        cancel: CancellationToken::new(),
        progress: Progress::none(),
        hosts: Hosts::any(),
        consent: Consent::NotNeeded,
    }
}
