//! The HTTP proxy that gives a command access to a list of domains. It runs in the daemon and listens on a Unix
//! socket that is visible inside the sandbox.
//!
//! The proxy accepts `CONNECT` and plain HTTP requests. For each request, the proxy checks the name against the list,
//! resolves the name, drops the addresses that are not public, and connects to one of the other addresses. The proxy
//! does not examine what a command sends inside an encrypted connection. So if one server serves a listed domain and an
//! unlisted domain, a command can connect to the listed domain and ask the server for the unlisted one.

mod request;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpStream, UnixListener};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, JoinSet};

use crate::domains::Domains;
use polity_addresses::is_public;
use request::{Request, parse};

/// Maximum number of connections of one command at the same time. Each connection may use two file descriptors of the
/// daemon.
const CONNECTIONS: usize = 128;

/// Maximum length of the head of a request, in bytes.
const LONGEST_HEAD: usize = 64 << 10;

/// Time limit for the head of a request to arrive, and for each attempt to connect to a server.
const PATIENCE: Duration = Duration::from_secs(30);

/// The network that the proxy uses. Tests replace this network by a simulated network.
pub(crate) trait Outside: Send + Sync + 'static {
    /// Returns the addresses of a name.
    fn resolve(&self, name: &str, port: u16)
    -> impl Future<Output = std::io::Result<Vec<SocketAddr>>> + Send;
    /// Connects to an address.
    fn connect(&self, address: SocketAddr) -> impl Future<Output = std::io::Result<TcpStream>> + Send;
}

/// The network of the host.
pub(crate) struct Internet;

impl Outside for Internet {
    async fn resolve(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        let found = polity_addresses::lookup(name).await?;
        Ok(found.into_iter().map(|address| SocketAddr::new(address, port)).collect())
    }

    async fn connect(&self, address: SocketAddr) -> std::io::Result<TcpStream> {
        TcpStream::connect(address).await
    }
}

/// A running proxy. Dropping this value ends the proxy and all its connections.
#[derive(Debug)]
pub(crate) struct Proxy(JoinHandle<()>);

impl Drop for Proxy {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Proxy {
    /// Starts a proxy that listens on a Unix socket at this path. Nothing may exist at the path.
    pub(crate) fn start(path: &Path, domains: Domains, outside: impl Outside) -> std::io::Result<Self> {
        let listener = bind(path)?;
        Ok(Self(tokio::spawn(serve(listener, domains, outside))))
    }
}

/// Binds a Unix socket. The address of a socket can hold a path of at most 107 bytes, but this function accepts longer
/// paths, too.
fn bind(path: &Path) -> std::io::Result<UnixListener> {
    use std::os::fd::AsRawFd as _;
    let (Some(directory), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(std::io::ErrorKind::InvalidInput.into());
    };
    let directory = std::fs::File::open(directory)?;
    UnixListener::bind(Path::new("/proc/self/fd").join(directory.as_raw_fd().to_string()).join(name))
}

async fn serve(listener: UnixListener, domains: Domains, outside: impl Outside) {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let shared = Arc::new((domains, outside));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        while connections.try_join_next().is_some() {}
        match listener.accept().await {
            Ok((client, _)) => {
                let shared = Arc::clone(&shared);
                connections.spawn(async move {
                    if let Err(error) = handle(client, &shared.0, &shared.1).await {
                        tracing::debug!(%error, "a connection out of a sandbox ended");
                    }
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "the proxy of a sandbox cannot accept connections");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

/// Serves one connection.
async fn handle(
    mut client: impl AsyncRead + AsyncWrite + Unpin,
    domains: &Domains,
    outside: &impl Outside,
) -> std::io::Result<()> {
    let Ok(head) = tokio::time::timeout(PATIENCE, read_head(&mut client)).await else {
        return refuse(&mut client, "408 Request Timeout", "the request did not arrive in time").await;
    };
    let (head, rest) = head?;
    let request = match parse(&head) {
        Ok(request) => request,
        Err(reason) => return refuse(&mut client, "400 Bad Request", reason).await,
    };
    let name = match domains.permit(request.host(), request.port()) {
        Ok(name) => name,
        Err(denied) => {
            let reason = format!("{denied} (tools.sandbox.network)");
            return refuse(&mut client, "403 Forbidden", &reason).await;
        }
    };
    let found = outside.resolve(name.as_str(), request.port()).await;
    let addresses = match found {
        Ok(addresses) => addresses,
        Err(error) => {
            let reason = format!("{} could not be resolved: {error}", name.as_str());
            return refuse(&mut client, "502 Bad Gateway", &reason).await;
        }
    };
    let public: Vec<SocketAddr> = addresses.into_iter().filter(|address| is_public(address.ip())).collect();
    if public.is_empty() {
        let reason = format!("{} leads to no address of the public internet", name.as_str());
        return refuse(&mut client, "403 Forbidden", &reason).await;
    }
    let Some(mut server) = reach(&public, outside).await else {
        let reason = format!("{} does not answer", name.as_str());
        return refuse(&mut client, "502 Bad Gateway", &reason).await;
    };
    match &request {
        Request::Tunnel { .. } => client.write_all(b"HTTP/1.1 200 Connection Established\r\n\r\n").await?,
        Request::Plain { head, .. } => server.write_all(head).await?,
    }
    server.write_all(&rest).await?;
    tokio::io::copy_bidirectional(&mut client, &mut server).await.map(drop)
}

/// Connects to the first address that answers.
async fn reach(addresses: &[SocketAddr], outside: &impl Outside) -> Option<TcpStream> {
    for address in addresses {
        if let Ok(Ok(stream)) = tokio::time::timeout(PATIENCE, outside.connect(*address)).await {
            return Some(stream);
        }
    }
    None
}

/// Reads the head of a request, up to the empty line. Also returns the bytes that were read after the empty line.
async fn read_head(client: &mut (impl AsyncRead + Unpin)) -> std::io::Result<(Vec<u8>, Vec<u8>)> {
    let mut bytes = Vec::new();
    loop {
        if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
            let rest = bytes.split_off(end + 4);
            return Ok((bytes, rest));
        }
        if bytes.len() > LONGEST_HEAD || client.read_buf(&mut bytes).await? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn refuse(client: &mut (impl AsyncWrite + Unpin), status: &str, reason: &str) -> std::io::Result<()> {
    let body = format!("The sandbox refused this connection: {reason}.\n");
    let length = body.len();
    let text = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    client.write_all(text.as_bytes()).await?;
    client.shutdown().await
}

#[cfg(test)]
mod tests;
