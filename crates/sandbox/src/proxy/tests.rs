use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::request::{Request, parse};
use super::{Outside, Proxy};
use crate::domains::Domains;

/// A network with three names, in which every address leads to one server of the test.
struct Small {
    server: SocketAddr,
    connections: Arc<AtomicU64>,
}

impl Outside for Small {
    async fn resolve(&self, name: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
        match name {
            "good.example.org" => Ok(vec![SocketAddr::new([93, 184, 216, 34].into(), port)]),
            "inner.example.org" => Ok(vec![
                SocketAddr::new([127, 0, 0, 1].into(), port),
                SocketAddr::new([169, 254, 169, 254].into(), port),
            ]),
            // The first address can be reached only from machines in a cloud. The second address leads through an
            // obsolete gateway. So the proxy must refuse both.
            "cloud.example.org" => Ok(vec![
                SocketAddr::new([168, 63, 129, 16].into(), port),
                SocketAddr::new("2002:808:808::1".parse().unwrap(), port),
            ]),
            _ => Err(std::io::ErrorKind::NotFound.into()),
        }
    }

    async fn connect(&self, address: SocketAddr) -> std::io::Result<TcpStream> {
        assert_eq!(address.ip(), std::net::IpAddr::from([93, 184, 216, 34]));
        self.connections.fetch_add(1, Ordering::SeqCst);
        TcpStream::connect(self.server).await
    }
}

/// Sends a request through a proxy to a server that answers with the bytes that it received. Returns the answer, and
/// the number of connections that the proxy made.
async fn exchange(request: &[u8]) -> (String, u64) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut got = Vec::new();
                stream.read_to_end(&mut got).await.unwrap();
                stream.write_all(b"got ").await.unwrap();
                stream.write_all(&got).await.unwrap();
            });
        }
    });
    // The path is longer than the 107 bytes that the address of a Unix socket may have.
    let directory = tempfile::TempDir::new().unwrap();
    let long = directory.path().join("d".repeat(150));
    std::fs::create_dir(&long).unwrap();
    let path = long.join("socket");
    let connections = Arc::new(AtomicU64::new(0));
    let domains = Domains::new(&["*.example.org".to_owned()]).unwrap();
    let outside = Small { server, connections: Arc::clone(&connections) };
    let _proxy = Proxy::start(&path, domains, outside).unwrap();
    std::os::unix::fs::symlink(&path, directory.path().join("s")).unwrap();
    let mut client = UnixStream::connect(directory.path().join("s")).await.unwrap();
    client.write_all(request).await.unwrap();
    client.shutdown().await.unwrap();
    let mut answer = Vec::new();
    let reading = client.read_to_end(&mut answer);
    tokio::time::timeout(Duration::from_secs(60), reading).await.unwrap().unwrap();
    (String::from_utf8_lossy(&answer).into_owned(), connections.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_listed_name_is_reached() {
    let (answer, connections) =
        exchange(b"CONNECT good.example.org:443 HTTP/1.1\r\nHost: x\r\n\r\nhello").await;
    assert_eq!(answer, "HTTP/1.1 200 Connection Established\r\n\r\ngot hello");
    assert_eq!(connections, 1);
    let request = b"POST http://good.example.org/a?b HTTP/1.1\r\nHost: evil\r\nProxy-Connection: keep-alive\r\nA: b\r\n\r\nbody";
    let (answer, _) = exchange(request).await;
    assert_eq!(
        answer,
        "got POST /a?b HTTP/1.1\r\nHost: good.example.org\r\nConnection: close\r\nA: b\r\n\r\nbody"
    );
}

#[tokio::test]
async fn nothing_else_is_reached() {
    for (request, status) in [
        ("CONNECT evil.com:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT example.org:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT good.example.org:22 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT inner.example.org:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT cloud.example.org:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT missing.example.org:443 HTTP/1.1\r\n\r\n", "502"),
        ("CONNECT 93.184.216.34:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT [::1]:443 HTTP/1.1\r\n\r\n", "403"),
        ("CONNECT 2130706433:80 HTTP/1.1\r\n\r\n", "403"),
        ("GET http://127.0.0.1/ HTTP/1.1\r\n\r\n", "403"),
        ("GET http://evil.com@good.example.org/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://good.example.org@evil.com/ HTTP/1.1\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: good.example.org\r\n\r\n", "400"),
        ("GET ftp://good.example.org/ HTTP/1.1\r\n\r\n", "400"),
        ("GET http://good.example.org/ HTTP/1.1\r\nA: b\r\n c: d\r\n\r\n", "400"),
        ("nonsense\r\n\r\n", "400"),
    ] {
        let (answer, connections) = exchange(request.as_bytes()).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{request}: {answer}");
        assert_eq!(connections, 0, "{request}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// Whatever a client sends, the server gets one request, for the host that the proxy checked.
    #[test]
    fn a_head_is_one_request(
        method in "(GET|POST|CONNECT|get)",
        target in "(http://)?[a-z.@:/?#\\[\\]0-9]{0,20}",
        lines in prop::collection::vec("[A-Za-z:\\r\\n \\t]{0,15}", 0..4),
    ) {
        let head = format!("{method} {target} HTTP/1.1\r\n{}\r\n\r\n", lines.join("\r\n"));
        if let Ok(Request::Plain { host, head, .. }) = parse(head.as_bytes()) {
            let text = String::from_utf8(head).unwrap();
            prop_assert_eq!(text.matches("\r\n\r\n").count(), 1, "{}", text);
            prop_assert!(text.ends_with("\r\n\r\n"));
            let hosts: Vec<&str> = text.split("\r\n").filter(|line| line.to_ascii_lowercase().starts_with("host:")).collect();
            prop_assert_eq!(hosts.len(), 1);
            let wanted = format!("Host: {host}");
            prop_assert!(hosts[0].starts_with(&wanted));
        }
    }
}
