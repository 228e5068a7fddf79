//! Web servers at several addresses of this machine. They record at which of their addresses they were reached.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The path of a request that is not recorded.
const UNRECORDED: &str = "/unrecorded";

/// If a path begins with this text, the server redirects to the URL that follows in the path.
const REDIRECT: &str = "/to/";

/// Time limit for a request to arrive, and for its answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Running web servers. They end with the process of the test.
pub(super) struct Sites {
    addresses: Vec<SocketAddr>,
    reached: Arc<Mutex<Vec<String>>>,
}

impl Sites {
    /// Starts a server at each of these addresses with ports. On a machine without IPv6, leaves out the IPv6 addresses
    /// and prints that.
    pub(super) fn start(wanted: &[&str]) -> Self {
        let reached: Arc<Mutex<Vec<String>>> = Arc::default();
        let mut addresses = Vec::new();
        for address in wanted {
            let address: SocketAddr = address.parse().expect("an address with a port");
            match TcpListener::bind(address) {
                Ok(listener) => {
                    let reached = Arc::clone(&reached);
                    thread::spawn(move || serve(&listener, address, &reached));
                    addresses.push(address);
                }
                Err(error) if address.is_ipv6() => {
                    polity_tests::tell(&format!("not checked: no server can listen at {address}: {error}"));
                }
                Err(error) => panic!("no server can listen at {address}: {error}"),
            }
        }
        Self { addresses, reached }
    }

    /// Returns whether a server listens at this address with a port.
    pub(super) fn listen_at(&self, address: &str) -> bool {
        self.addresses.iter().any(|own| own.to_string() == address)
    }

    /// Returns the address of each connection since the last call, oldest first.
    ///
    /// This function makes a request to each server. A server handles one connection after the other, in the order in
    /// which they were made. So when a server has answered the request, it has recorded all earlier connections, even
    /// those without a request.
    pub(super) fn take_reached(&self) -> Vec<String> {
        for address in &self.addresses {
            let mut stream = TcpStream::connect(address).expect("a server");
            stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            let request = format!("GET {UNRECORDED} HTTP/1.1\r\n\r\n");
            stream.write_all(request.as_bytes()).expect("a server that reads");
            stream.read_to_string(&mut String::new()).expect("an answer");
        }
        std::mem::take(&mut *self.reached.lock().expect("no panic"))
    }
}

fn serve(listener: &TcpListener, address: SocketAddr, reached: &Mutex<Vec<String>>) {
    for stream in listener.incoming() {
        let mut stream = stream.expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let mut buffer = [0; 8192];
        // A connection without a request counts, too.
        let length = stream.read(&mut buffer).unwrap_or_default();
        let request = String::from_utf8_lossy(&buffer[..length]);
        let path = request.split(' ').nth(1).unwrap_or_default();
        if path != UNRECORDED {
            reached.lock().expect("no panic").push(address.to_string());
        }
        // An error means that the client does not wait for the answer.
        let _ = stream.write_all(answer_to(path, address).as_bytes());
    }
}

fn answer_to(path: &str, address: SocketAddr) -> String {
    let (status, header, body) = match path.strip_prefix(REDIRECT) {
        Some(url) => ("302 Found", format!("location: {url}"), String::new()),
        None => ("200 OK", "content-type: text/plain".to_owned(), page_of(&address.to_string())),
    };
    let length = body.len();
    format!("HTTP/1.1 {status}\r\n{header}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}")
}

/// Returns the page of the server at this address with a port.
pub(super) fn page_of(address: &str) -> String {
    format!("This is the page of {address}.")
}
