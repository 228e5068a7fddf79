//! A test server and a test resolver. Each test sets the answers that they give.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::future::BoxFuture;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use crate::resolve::Resolve;
use crate::settings::Settings;
use crate::web::{Call, Web};

/// What a test server does with a request.
pub(crate) enum Reply {
    /// Sends these bytes and closes the connection.
    Bytes(Vec<u8>),
    /// Sends the first bytes once, then repeats the second bytes for ever, with a pause before each repetition.
    Endless(Vec<u8>, Vec<u8>, Duration),
    /// Sends these bytes and then nothing, without closing the connection.
    Silent(Vec<u8>),
}

impl Reply {
    pub(crate) fn ok(content_type: &str, body: impl AsRef<[u8]>) -> Self {
        Self::with("200 OK", &[("content-type", content_type)], body)
    }

    pub(crate) fn with(status: &str, headers: &[(&str, &str)], body: impl AsRef<[u8]>) -> Self {
        let body = body.as_ref();
        let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        head.push_str("\r\n");
        Self::Bytes([head.as_bytes(), body].concat())
    }

    pub(crate) fn redirect(status: &str, location: &str) -> Self {
        Self::with(status, &[("location", location)], "")
    }
}

/// A server that remembers all requests.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub(crate) async fn start(answer: impl Fn(&str) -> Reply + Send + Sync + 'static) -> Self {
        Self::at("127.0.0.1:0", answer).await.expect("a port of loopback")
    }

    pub(crate) async fn at(
        address: &str,
        answer: impl Fn(&str) -> Reply + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let seen = Arc::new(Mutex::new(Vec::new()));
        let requests = Arc::clone(&seen);
        let answer = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answer, requests) = (Arc::clone(&answer), Arc::clone(&requests));
                tokio::spawn(async move {
                    let _ = serve(stream, &*answer, &requests).await;
                });
            }
        });
        Ok(Self { address, seen })
    }

    /// Returns a URL of this server, with the server's address as the host.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the head and the body of each request so far. A connection without a request counts as an empty request.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.seen.lock().expect("no panic").clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    answer: &(impl Fn(&str) -> Reply + ?Sized),
    requests: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut request = Vec::new();
    while !is_complete(&request) {
        if stream.read_buf(&mut request).await? == 0 {
            break;
        }
    }
    let request = String::from_utf8_lossy(&request).into_owned();
    requests.lock().expect("no panic").push(request.clone());
    match answer(&request) {
        Reply::Bytes(bytes) => stream.write_all(&bytes).await?,
        Reply::Endless(first, then, pause) => {
            stream.write_all(&first).await?;
            loop {
                if !pause.is_zero() {
                    tokio::time::sleep(pause).await;
                }
                stream.write_all(&then).await?;
            }
        }
        Reply::Silent(bytes) => {
            stream.write_all(&bytes).await?;
            // The loop ends when the client closes the connection.
            while stream.read_buf(&mut Vec::with_capacity(64)).await? > 0 {}
        }
    }
    stream.shutdown().await
}

fn is_complete(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length =
        head.lines().find_map(|line| line.strip_prefix("content-length:")?.trim().parse::<usize>().ok());
    body.len() >= length.unwrap_or(0)
}

/// A resolver with a list of answers for each name. Each lookup of a name gets the next answer in its list. After the
/// end of the list, the resolver repeats the last answer.
#[derive(Default)]
pub(crate) struct Names {
    answers: Mutex<HashMap<String, Vec<Vec<IpAddr>>>>,
    asked: Mutex<Vec<String>>,
}

impl Names {
    pub(crate) fn of(names: &[(&str, &[&[&str]])]) -> Arc<Self> {
        let known = Self::default();
        for (name, answers) in names {
            let answers = answers.iter().map(|addresses| {
                addresses.iter().map(|address| address.parse().expect("an address")).collect()
            });
            known.set(name, answers.collect());
        }
        Arc::new(known)
    }

    pub(crate) fn set(&self, name: &str, answers: Vec<Vec<IpAddr>>) {
        self.answers.lock().expect("no panic").insert(name.to_owned(), answers);
    }

    pub(crate) fn asked(&self) -> Vec<String> {
        self.asked.lock().expect("no panic").clone()
    }
}

impl Resolve for Names {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, io::Result<Vec<IpAddr>>> {
        self.asked.lock().expect("no panic").push(name.to_owned());
        let mut answers = self.answers.lock().expect("no panic");
        let answer = match answers.get_mut(name) {
            None => Err(io::Error::other("no such name")),
            Some(answers) if answers.len() > 1 => Ok(answers.remove(0)),
            Some(answers) => Ok(answers.first().cloned().unwrap_or_default()),
        };
        Box::pin(std::future::ready(answer))
    }
}

/// Makes a [`Web`] for tests. If `stand_in` is given, requests to any public address go to this server instead.
pub(crate) fn web(settings: Settings, names: Arc<Names>, stand_in: Option<SocketAddr>) -> Web {
    let mut web = Web::with_resolver(settings, names).expect("a client");
    Arc::get_mut(&mut web.network).expect("the only user").stand_in = stand_in;
    web
}

/// Makes a [`Web`] for tests. Its settings allow requests to the address of `server`.
pub(crate) fn web_to(server: &Server, settings: Settings) -> Web {
    let allow_hosts = vec![server.address.to_string().parse().expect("a host")];
    web(Settings { allow_hosts, ..settings }, Arc::default(), None)
}

pub(crate) fn call() -> Call {
    Call::new(CancellationToken::new())
}
