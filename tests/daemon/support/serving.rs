//! A daemon that serves, the resources that its process uses, and plain HTTP requests to it.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polity_tests::{Polity, Running};
use serde_json::Value;

/// Maximum wait for one answer before the test fails.
const PATIENCE: Duration = Duration::from_secs(300);

/// A daemon that accepts requests.
pub(crate) struct Serving {
    pub(crate) running: Running,
    pub(crate) address: String,
    pub(crate) token: String,
}

/// An answer: its status, its head, and its body.
#[derive(Debug)]
pub(crate) struct Answered {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answered {
    /// Returns the body as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }
}

impl Serving {
    /// Starts `polity serve` on a free port.
    #[track_caller]
    pub(crate) fn start(polity: &Polity) -> Self {
        let running = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
        let ready = running.stderr_line("ready: http://");
        let address = ready.split_once("http://").expect("an address").1.trim().to_owned();
        let token = std::fs::read_to_string(polity.data_dir().join("token")).expect("a token");
        Self { running, address, token: token.trim().to_owned() }
    }

    /// Opens a connection. Each read and each write on it fails if it takes longer than [`PATIENCE`].
    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout");
        stream
    }

    /// Returns the head of a request with the token. `line` consists of the method and the path, and `more` of further
    /// header lines.
    pub(crate) fn head(&self, line: &str, more: &str) -> String {
        let (address, token) = (&self.address, &self.token);
        format!("{line} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{more}\r\n")
    }

    /// Sends a request with the token and a JSON body, and returns the answer.
    pub(crate) fn call(&self, line: &str, body: &[u8]) -> Answered {
        let length = body.len();
        let more = format!(
            "content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             content-length: {length}\r\nconnection: close\r\n"
        );
        let mut stream = self.connect();
        stream.write_all(self.head(line, &more).as_bytes()).expect("a request");
        // Ignore an error. If the daemon refuses the body, it may close the connection before it has read the whole
        // body.
        let _ = stream.write_all(body);
        answer_on(stream)
    }

    /// Sends a request with a streamed answer. Reads the answer up to the first line that contains `first`, and returns
    /// the connection for the rest of the answer.
    #[track_caller]
    pub(crate) fn stream(&self, line: &str, more: &str, body: &str, first: &str) -> BufReader<TcpStream> {
        let mut stream = self.connect();
        let length = body.len();
        let more = format!("content-type: application/json\r\ncontent-length: {length}\r\n{more}");
        stream.write_all((self.head(line, &more) + body).as_bytes()).expect("a request");
        let mut reader = BufReader::new(stream);
        let mut read = String::new();
        let begun = Instant::now();
        while !read.lines().last().is_some_and(|line| line.contains(first)) {
            // The daemon sends signs of life, so no single line takes too long.
            assert!(begun.elapsed() < PATIENCE, "{first:?} does not come: {read}");
            assert!(reader.read_line(&mut read).expect("a line") > 0, "{first:?} is not in: {read}");
        }
        reader
    }

    /// Returns the value of a metric without labels.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str) -> f64 {
        let metrics = self.call("GET /metrics", b"").body;
        let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} is not in: {metrics}"))
    }

    /// Returns the current resident memory of the process, in MiB.
    pub(crate) fn resident(&self) -> u64 {
        self.memory("VmRSS:")
    }

    /// Returns the largest resident memory since [`Self::forget_peak`], in MiB.
    pub(crate) fn peak(&self) -> u64 {
        self.memory("VmHWM:")
    }

    /// Resets the peak to the current resident memory.
    pub(crate) fn forget_peak(&self) {
        std::fs::write(format!("/proc/{}/clear_refs", self.running.id()), "5").expect("a new peak");
    }

    fn memory(&self, field: &str) -> u64 {
        let status =
            std::fs::read_to_string(format!("/proc/{}/status", self.running.id())).expect("a process");
        let line = status.lines().find_map(|line| line.strip_prefix(field)).expect("the memory");
        line.trim().strip_suffix(" kB").and_then(|kibibytes| kibibytes.parse::<u64>().ok()).expect("a number")
            / 1024
    }

    /// Returns the processor time that the process has used.
    pub(crate) fn processor_time(&self) -> Duration {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.running.id())).expect("a process");
        // The second field is the name of the program in parentheses. Fields 14 and 15 are user time and system time.
        let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace().skip(11).take(2);
        let ticks: u64 = fields.map(|ticks| ticks.parse::<u64>().expect("a number")).sum();
        // Linux reports these times in hundredths of a second on every architecture that Rust supports.
        Duration::from_millis(ticks * 10)
    }

    /// Returns how many file descriptors the process has open.
    pub(crate) fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.running.id())).expect("a process").count()
    }
}

/// Reads an answer up to the end of the connection.
#[track_caller]
pub(crate) fn answer_on(mut stream: TcpStream) -> Answered {
    let mut answer = Vec::new();
    // The connection may be reset after the answer. That is no failure if the answer is complete.
    let read = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let Some((head, body)) = answer.split_once("\r\n\r\n") else {
        panic!("no answer: {read:?}, {answer:?}");
    };
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Answered { status, head: head.to_lowercase(), body: body.to_owned() }
}
