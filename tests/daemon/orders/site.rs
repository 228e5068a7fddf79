//! A web server on this machine.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// A web server on this machine. It answers each request with the same page, and records all requests.
pub(super) struct Site {
    pub(super) address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub(super) fn start(page: impl Fn(SocketAddr) -> String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        let page = page(address);
        let requests = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&requests);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { return };
                let mut buffer = [0; 8192];
                let length = stream.read(&mut buffer).unwrap_or_default();
                kept.lock().expect("no panic").push(String::from_utf8_lossy(&buffer[..length]).into_owned());
                let head = "HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nconnection: close";
                let _ = write!(stream, "{head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
            }
        });
        Self { address, requests }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the first line of each request that the server received.
    pub(super) fn asked(&self) -> Vec<String> {
        let requests = self.requests.lock().expect("no panic");
        requests.iter().map(|request| request.lines().next().unwrap_or_default().to_owned()).collect()
    }
}
