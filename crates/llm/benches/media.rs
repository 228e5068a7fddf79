//! Measures the memory and the time that a request with media takes. Measures this for the writing of the body alone,
//! and for a whole call over a connection.
//!
//! `cargo bench -p polity-llm --bench media`. The counting allocator treats each growth of a buffer as a new buffer in
//! addition to the old buffer, which is the worst case. Times are the best of several runs.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark panics on failure and prints its results"
)]

use allocation_counter::{AllocationInfo, measure};
use polity_llm::{
    Body, ChatModel, Data, Endpoint, HttpModel, Message, Part, Request, install_crypto_provider,
};
use std::hint::black_box;
use std::io::{BufRead, BufReader, Read, Write, copy, sink};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

const MIB: usize = 1024 * 1024;

/// Bytes of media in one request. The default `limits.maxRequestBytes` allows this number of bytes, counted before they
/// are encoded as base64.
const MEDIA: usize = 18 * MIB;

const RUNS: usize = 7;

fn main() {
    install_crypto_provider();
    let endpoint = Endpoint::new(serve(), "m");
    println!(
        "{} MiB of media, {} MiB in base64; sizes are multiples of the latter\n",
        MEDIA / MIB,
        MEDIA / 3 * 4 / MIB
    );
    println!("{:<44} {:>6} {:>6} {:>6} {:>10}", "", "peak", "total", "kept", "ms per MiB");
    for pictures in [1, 6, 72] {
        body(&endpoint, pictures);
    }
    for pictures in [1, 6] {
        call(&endpoint, pictures);
    }
}

/// Returns a request with this number of equally large pictures, [`MEDIA`] bytes in total.
fn request(pictures: usize) -> Request {
    let parts = (0..pictures).map(|index| {
        let shade = u8::try_from(index % 256).unwrap();
        Part::Image { mime_type: "image/png".to_owned(), data: Data::from(vec![shade; MEDIA / pictures]) }
    });
    Request { messages: vec![Message::User(parts.collect())], ..Request::default() }
}

fn body(endpoint: &Endpoint, pictures: usize) {
    let write = |request: &Request| {
        black_box(Body::new(request, endpoint).to_json().unwrap());
    };
    let first = request(pictures);
    let memory = measure(|| write(&first));
    let time = best(|| request(pictures), |request| write(request));
    report(&format!("body, {pictures} pictures, first time"), memory, time);
    // The next request of the conversation has more text. Its media are the same values in memory, because the runtime
    // keeps them.
    let mut next = first.clone();
    next.messages.push(Message::User(vec![Part::Text("and now?".to_owned())]));
    let memory = measure(|| write(&next));
    let time = best(|| (), |()| write(&next));
    report(&format!("body, {pictures} pictures, next request"), memory, time);
}

fn call(endpoint: &Endpoint, pictures: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let model = HttpModel::default();
    let say = |request: &Request| {
        black_box(runtime.block_on(model.call(endpoint, request, &polity_llm::Nobody)).unwrap());
    };
    // The first call connects and sets up everything that later calls share.
    say(&Request {
        messages: vec![Message::User(vec![Part::Text("hello".to_owned())])],
        ..Request::default()
    });
    let first = request(pictures);
    let memory = measure(|| say(&first));
    let time = best(|| request(pictures), |request| say(request));
    report(&format!("call, {pictures} pictures, first time"), memory, time);
    let memory = measure(|| say(&first));
    let time = best(|| (), |()| say(&first));
    report(&format!("call, {pictures} pictures, next request"), memory, time);
}

/// Runs the work several times and returns the shortest time. The preparation is not timed.
fn best<T>(prepare: impl Fn() -> T, work: impl Fn(&T)) -> Duration {
    let runs = (0..RUNS).map(|_| {
        let prepared = prepare();
        let start = Instant::now();
        work(&prepared);
        start.elapsed()
    });
    runs.min().unwrap()
}

fn report(what: &str, memory: AllocationInfo, time: Duration) {
    let multiple = |bytes: f64| bytes / (MEDIA / 3 * 4) as f64;
    println!(
        "{what:<44} {:>6.2} {:>6.2} {:>6.2} {:>10.3}",
        multiple(memory.bytes_max as f64),
        multiple(memory.bytes_total as f64),
        multiple(memory.bytes_current as f64),
        time.as_secs_f64() * 1e3 / (MEDIA / MIB) as f64,
    );
}

/// Starts a server that answers any request with one word. Returns its base URL.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            thread::spawn(move || answer(stream.unwrap()));
        }
    });
    address
}

fn answer(stream: TcpStream) {
    const REPLY: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"ok\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let mut reader = BufReader::with_capacity(MIB, &stream);
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap() == 0 {
                return;
            }
            if line == "\r\n" {
                break;
            }
            if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
        }
        copy(&mut reader.by_ref().take(length), &mut sink()).unwrap();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n",
            REPLY.len()
        );
        (&stream).write_all((head + REPLY).as_bytes()).unwrap();
    }
}
