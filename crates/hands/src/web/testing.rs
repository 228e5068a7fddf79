//! An HTTP server with answers that a test sets, and functions that call the web tools.

use crate::call::{
    Access, Attempt, Caller, Consent, Hosts, Invocation, Output, Place, Progress, Root, Source,
};
use crate::files::{Bounds, Files};
use crate::places::Places;
use crate::table::Toolbox;
use crate::tool::Tool;
use crate::views::Views;
use crate::web::WebTools;
use futures::future::{BoxFuture, FutureExt};
use polity_files::Workspace;
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_web::{AllowedHost, Settings};
use serde_json::Value;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// An HTTP server that remembers the head and body of each request.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

/// Formats an HTTP response.
pub(super) fn answer(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

impl Server {
    /// Starts a server. If `answers` returns an empty answer, the server never answers that request.
    pub(super) async fn start(answers: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (requests, answers) = (Arc::clone(&seen), Arc::new(answers));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (requests, answers) = (Arc::clone(&requests), Arc::clone(&answers));
                tokio::spawn(async move { serve(stream, &*answers, &requests).await });
            }
        });
        Self { address, seen }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub(super) fn requests(&self) -> Vec<String> {
        self.seen.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    answers: &(impl Fn(&str) -> Vec<u8> + ?Sized),
    requests: &Mutex<Vec<String>>,
) {
    let mut request = Vec::new();
    while !is_complete(&request) {
        if stream.read_buf(&mut request).await.unwrap_or(0) == 0 {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    requests.lock().unwrap().push(request.clone());
    let answer = answers(&request);
    if answer.is_empty() {
        // Waits until the client closes the connection.
        while stream.read_buf(&mut Vec::with_capacity(64)).await.unwrap_or(0) > 0 {}
    }
    let _ = stream.write_all(&answer).await;
    let _ = stream.shutdown().await;
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

/// A directory that is the workspace of every caller.
struct Fixed(std::path::PathBuf, Access);

impl Places for Fixed {
    fn open<'a>(&'a self, _: &'a Caller) -> BoxFuture<'a, Result<Arc<Workspace>, Refusal>> {
        async { Ok(Arc::new(Workspace::open(&self.0, self.1).unwrap())) }.boxed()
    }
}

/// The web tools, with settings and a workspace for them.
pub(super) struct Bench {
    base: TempDir,
    pub(super) settings: Arc<Mutex<Settings>>,
    tools: WebTools,
    /// The hosts that requests may go to.
    pub(super) hosts: Hosts,
}

impl Bench {
    /// Makes tools that may reach the given servers.
    pub(super) fn reaching(servers: &[&Server]) -> Self {
        Self::with(servers, Access::Write)
    }

    pub(super) fn with(servers: &[&Server], access: Access) -> Self {
        let base = TempDir::new().unwrap();
        let workspace = base.path().join("ws");
        std::fs::create_dir(&workspace).unwrap();
        let views = Arc::new(Views::new(base.path().join("views")));
        let files = Files::new(Arc::new(Fixed(workspace, access)), views, Bounds::default());
        let allow_hosts = servers.iter().map(|server| allowed(server)).collect();
        let settings = Arc::new(Mutex::new(Settings { allow_hosts, ..Settings::default() }));
        let now = Arc::clone(&settings);
        let tools = WebTools::new(Arc::new(move || now.lock().unwrap().clone()), files);
        Self { base, settings, tools, hosts: Hosts::any() }
    }

    pub(super) fn file(&self, path: &str) -> std::path::PathBuf {
        self.base.path().join("ws").join(path)
    }

    pub(super) fn names(&self) -> Vec<String> {
        self.tools.tools().iter().map(|tool| tool.name().to_owned()).collect()
    }

    pub(super) fn tool(&self, name: &str) -> Arc<dyn Tool> {
        self.tools.tools().into_iter().find(|tool| tool.name() == name).unwrap()
    }

    /// Calls a tool in the two steps of the runtime: `prepare`, then `run`.
    pub(super) async fn call(&self, name: &str, arguments: Value) -> Result<Output, Refusal> {
        self.call_until(CancellationToken::new(), Progress::none(), name, arguments).await
    }

    pub(super) async fn call_until(
        &self,
        cancel: CancellationToken,
        progress: Progress,
        name: &str,
        arguments: Value,
    ) -> Result<Output, Refusal> {
        let tool = self.tool(name);
        let invocation = Invocation { cancel, progress, ..self.invocation(arguments) };
        tool.prepare(&invocation).await?;
        tool.run(invocation).await
    }

    /// Returns what a tool prepares for a call. The runtime records it before the call runs.
    pub(super) async fn prepare(&self, name: &str, arguments: Value) -> Result<Value, Refusal> {
        self.tool(name).prepare(&self.invocation(arguments)).await
    }

    /// Returns the sources from which a call can bring content into the workspace.
    pub(super) async fn brings(&self, name: &str, arguments: Value) -> BTreeSet<Source> {
        self.tool(name).brings(&self.invocation(arguments)).await
    }

    fn invocation(&self, arguments: Value) -> Invocation {
        let caller = Caller {
            agent: AgentId::new("a1"),
            task: TaskId::new("t1"),
            role: "Reader".to_owned(),
            place: Place { root: Root::Made, worktree: None },
        };
        Invocation {
            caller,
            arguments: arguments.as_object().unwrap().clone(),
            idempotency_key: "key".to_owned(),
            evidence: Value::Null,
            attempt: Attempt::First,
            cancel: CancellationToken::new(),
            progress: Progress::none(),
            hosts: self.hosts.clone(),
            consent: Consent::NotNeeded,
        }
    }
}

pub(super) fn allowed(server: &Server) -> AllowedHost {
    server.address.to_string().parse().unwrap()
}
