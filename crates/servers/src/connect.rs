//! Opens the connection to a server.

use crate::call::{Connection, Sinks};
use crate::config::{Http, Launch, Process};
use crate::errors::{chain, in_handshake};
use crate::launch::{Started, Tree};
use crate::server::Server;
use crate::stderr::LastLine;
use crate::wire::{Paced, Watched};
use futures::future::{BoxFuture, FutureExt};
use http::{HeaderName, HeaderValue};
use reqwest::redirect;
use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProtocolVersion,
};
use rmcp::service::{
    ClientInitializeError, ClientLifecycleMode, ClientServiceExt as _, NotificationContext, RoleClient,
    RunningService,
};
use rmcp::transport::Transport;
use rmcp::transport::async_rw::AsyncRwTransport;
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransport, StreamableHttpClientTransportConfig,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// Maximum number of redirects to follow for a request.
const MOST_REDIRECTS: usize = 5;

/// Time limit for opening a TCP or TLS connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// A connection to a server that has completed the handshake.
pub(crate) struct Opened {
    pub(crate) connection: Arc<Connection>,
    pub(crate) running: RunningService<RoleClient, Handler>,
    /// The processes of the server. Absent for a server over HTTP.
    pub(crate) tree: Option<Box<dyn Tree>>,
    /// Notified when the server reports that its tools have changed.
    pub(crate) changed: Arc<Notify>,
    /// Cancelled when the connection has ended.
    pub(crate) closed: CancellationToken,
    /// Cancelled when the server does not read polity's messages.
    pub(crate) stuck: CancellationToken,
}

/// Handles notifications and requests that a server sends on its own. Declines all requests, because the client
/// offers no capabilities.
pub(crate) struct Handler {
    sinks: Sinks,
    changed: Arc<Notify>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let polity = Implementation::new("polity", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), polity)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
    }

    async fn on_progress(&self, report: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        self.sinks.report(report).await;
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.changed.notify_one();
    }
}

/// Connects to a server. Tries the current generation of the protocol first. If the server answers that it does not
/// know this generation, or does not answer within ten seconds, the MCP library changes to the previous generation. Some
/// servers of the previous generation do not answer, but end. For them, a second attempt begins with the previous
/// generation.
pub(crate) async fn connect(server: &Server, last: &LastLine) -> Result<Opened, String> {
    let current = ClientLifecycleMode::Auto {
        preferred_versions: vec![ProtocolVersion::LATEST],
        legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
    };
    match attempt(server, last, current).await {
        Ok(opened) => Ok(opened),
        Err(Refused::ByUs(why)) => Err(why),
        Err(Refused::ByServer(_)) => {
            let second = attempt(server, last, ClientLifecycleMode::Initialize).await;
            second.map_err(|refused| match refused {
                Refused::ByUs(why) | Refused::ByServer(why) => why,
            })
        }
    }
}

/// Why there is no connection.
enum Refused {
    /// Polity could not start the server or send a request to it.
    ByUs(String),
    /// The server did not follow the protocol.
    ByServer(String),
}

async fn attempt(server: &Server, last: &LastLine, mode: ClientLifecycleMode) -> Result<Opened, Refused> {
    match &server.config.launch {
        Launch::Process(process) => over_pipes(server, process, last, mode).await,
        Launch::Http(http) => {
            let transport = over_http(server, http).map_err(Refused::ByUs)?;
            let (_never, too_long) = watch::channel(0);
            let opened = shake_hands(server, transport, too_long, mode).await;
            opened.map_err(|error| Refused::ByServer(in_handshake(&error)))
        }
    }
}

async fn over_pipes(
    server: &Server,
    process: &Process,
    last: &LastLine,
    mode: ClientLifecycleMode,
) -> Result<Opened, Refused> {
    let started = server.launcher.launch(&server.name, process).await;
    let started = started.map_err(|error| {
        Refused::ByUs(format!("the command {:?} does not start: {error}", process.command))
    })?;
    let Started { stdin, stdout, stderr, mut tree } = started;
    let launch = server.config.launch.clone();
    last.read_from(stderr, server.name.clone(), launch, server.bounds);
    let (count, too_long) = watch::channel(0);
    let stdout = Watched::new(stdout, &server.bounds, count);
    let transport =
        AsyncRwTransport::new_client(stdout, stdin).with_max_line_length(server.bounds.message_bytes);
    match shake_hands(server, transport, too_long, mode).await {
        Ok(opened) => Ok(Opened { tree: Some(tree), ..opened }),
        Err(error) => {
            let ended = ended(tree.as_mut(), server.bounds.stop).await;
            let ended = ended.map(|how| format!("; its process {how}")).unwrap_or_default();
            Err(Refused::ByServer(format!("{}{ended}", in_handshake(&error))))
        }
    }
}

/// Waits for the processes of a server to end, and kills the processes after `patience`. Returns how the processes
/// ended, or `None` if polity had to kill them.
pub(crate) async fn ended(tree: &mut dyn Tree, patience: Duration) -> Option<String> {
    if let Ok(how) = tokio::time::timeout(patience, tree.ended()).await {
        return Some(how);
    }
    tree.kill();
    // A process in an uninterruptible wait does not end even when killed. So this wait has a limit, too.
    let _ = tokio::time::timeout(patience, tree.ended()).await;
    None
}

async fn shake_hands(
    server: &Server,
    transport: impl Transport<RoleClient> + 'static,
    too_long: watch::Receiver<u64>,
    mode: ClientLifecycleMode,
) -> Result<Opened, ClientInitializeError> {
    let sinks = Sinks::new(&server.bounds);
    let changed = Arc::new(Notify::new());
    let handler = Handler { sinks: sinks.clone(), changed: Arc::clone(&changed) };
    let closed = CancellationToken::new();
    let transport = Paced::new(transport, &server.bounds, closed.clone());
    let shaking: BoxFuture<'_, _> = handler.serve_with_lifecycle(transport, mode).boxed();
    let running = shaking.await?;
    let stuck = CancellationToken::new();
    let peer = running.peer().clone();
    let connection = Connection::new(peer, sinks, too_long, closed.clone(), stuck.clone(), server.bounds);
    Ok(Opened { connection: Arc::new(connection), running, tree: None, changed, closed, stuck })
}

fn over_http(server: &Server, http: &Http) -> Result<StreamableHttpClientTransport<reqwest::Client>, String> {
    let mut headers = HashMap::new();
    for (name, value) in &http.headers {
        let header: HeaderName = name.parse().map_err(|_| format!("{name:?} is not the name of a header"))?;
        let mut value: HeaderValue =
            value.expose().parse().map_err(|_| format!("the value of the header {name} is not valid"))?;
        value.set_sensitive(true);
        headers.insert(header, value);
    }
    // An error means that a provider of cryptography was already installed, so there is nothing to do.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut client =
        reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(to_the_same_origin());
    if is_loopback(&http.url) {
        client = client.no_proxy();
    }
    let client = client.build().map_err(|error| chain(&error))?;
    let config = StreamableHttpClientTransportConfig::with_uri(http.url.as_str())
        .custom_headers(headers)
        .max_sse_event_size(server.bounds.message_bytes);
    Ok(StreamableHttpClientTransport::with_client(client, config))
}

/// A redirected request repeats the headers, which may contain keys. So only redirects to the same origin are
/// followed.
fn to_the_same_origin() -> redirect::Policy {
    redirect::Policy::custom(|attempt| {
        let same = attempt.previous().first().is_some_and(|first| first.origin() == attempt.url().origin());
        if same && attempt.previous().len() <= MOST_REDIRECTS { attempt.follow() } else { attempt.stop() }
    })
}

fn is_loopback(url: &url::Url) -> bool {
    match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}
