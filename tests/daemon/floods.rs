//! Model servers that send too many bytes. Checks how much memory and processor time the daemon needs to read their
//! answers.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use polity_tests::Polity;
use serde_json::{Value, json};

use crate::support::app;
use crate::support::serving::{Answered, Serving};

/// Number of answers that arrive at the same time, for answers of which the daemon keeps little.
const AT_ONCE: usize = 4;
/// Number of answers that arrive at the same time, for answers that take as much memory as an answer may take. All of
/// them together would take far more than [`MOST_MEMORY`], so the memory that all answers share must bound them.
const CROWD: usize = 12;
/// Maximum growth of the daemon's memory through all answers together, in MiB. This limit is for answers of which the
/// daemon keeps little.
const LITTLE: u64 = 80;
/// Maximum growth of the daemon's memory through all answers together, in MiB. This limit holds for all answers,
/// whatever they contain.
const MOST_MEMORY: u64 = 300;
/// Number of bytes after which the test's server stops sending. The daemon's limit for an answer is much lower.
const FAR_TOO_MUCH: usize = 256 << 20;

/// Starts a server that answers every request with `begin`, and then repeats `again` until the client closes the
/// connection or the answer has [`FAR_TOO_MUCH`] bytes. Returns the base URL of the server.
fn server(content_type: &'static str, begin: Vec<u8>, again: Vec<u8>) -> String {
    server_of(move |_, stream| flood(stream, "200 OK", content_type, &begin, &again))
}

/// Starts a server. For each connection, it reads one request, and calls `answer` with the first line of this request.
/// Returns the base URL of the server.
fn server_of(answer: impl Fn(&str, TcpStream) -> std::io::Result<()> + Send + Sync + 'static) -> String {
    let answer = Arc::new(answer);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let stream = stream.expect("a connection");
                // Ignore the error: the daemon closes the connection when the answer exceeds its limit.
                let _ = asked(&stream).and_then(|line| answer(&line, stream));
            });
        }
    });
    url
}

/// Reads a request. Returns its first line.
fn asked(stream: &TcpStream) -> std::io::Result<String> {
    let mut reader = BufReader::new(stream);
    let (mut first, mut line, mut length) = (String::new(), String::new(), 0);
    reader.read_line(&mut first)?;
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line)? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().expect("a length");
        }
    }
    reader.read_exact(&mut vec![0; length])?;
    Ok(first)
}

fn flood(
    mut stream: TcpStream,
    status: &str,
    content_type: &str,
    begin: &[u8],
    again: &[u8],
) -> std::io::Result<()> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: {content_type}\r\nconnection: close\r\n\r\n");
    stream.write_all(head.as_bytes())?;
    stream.write_all(begin)?;
    let mut sent = 0;
    while !again.is_empty() && sent < FAR_TOO_MUCH {
        stream.write_all(again)?;
        sent += again.len();
    }
    Ok(())
}

/// Starts a daemon whose only service is at this base URL.
fn daemon(base_url: &str, fields: &Value) -> (Polity, Serving) {
    let mut service = json!({
        "id": "one",
        "baseURL": base_url,
        "model": "m",
        "capabilities": {"input": ["text"], "output": ["text", "tool_calling"]},
    });
    for (name, value) in fields.as_object().expect("fields") {
        service[name] = value.clone();
    }
    let once = json!({"retry": {"maxAttempts": 1, "baseDelayMs": 1, "maxDelayMs": 2}});
    let polity = Polity::new(&json!({"services": [service]}), &app(&once));
    let serving = Serving::start(&polity);
    (polity, serving)
}

fn ask(serving: &Serving) -> Answered {
    let body = json!({"model": "polity-direct", "messages": [{"role": "user", "content": "hello"}]});
    serving.call("POST /v1/chat/completions", body.to_string().as_bytes())
}

/// Returns an event of a stream; the event adds these fields to the message.
fn event(delta: &Value) -> String {
    format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}))
}

/// Makes [`AT_ONCE`] requests at the same time. Checks that the daemon's memory grows by at most `most` MiB, and that
/// each request ends with one of the errors in `expected`.
fn check_flood(
    what: &str,
    most: u64,
    content_type: &'static str,
    begin: Vec<u8>,
    again: Vec<u8>,
    expected: &[&str],
) {
    check_flood_of(&server(content_type, begin, again), what, AT_ONCE, most, expected);
}

/// Does the same as [`check_flood`], with the server at this base URL, and with `at_once` requests.
#[expect(clippy::print_stdout, reason = "prints the numbers for docs/performance.md")]
fn check_flood_of(base_url: &str, what: &str, at_once: usize, most: u64, expected: &[&str]) {
    let (_polity, serving) = daemon(base_url, &json!({}));
    // Make one request before the measurement: when the daemon answers for the first time, it allocates memory that it
    // keeps for all later answers.
    serving.call("GET /api/services", b"");
    serving.forget_peak();
    let before = serving.resident();
    let answers: Vec<Answered> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..at_once).map(|_| scope.spawn(|| ask(&serving))).collect();
        asked.into_iter().map(|asked| asked.join().expect("an answer")).collect()
    });
    let added = serving.peak() - before;
    println!("{what}: {added} MiB, {:.1?} of processor time", serving.processor_time());
    for answer in answers {
        assert_eq!(answer.status, 502, "{what}: {answer:?}");
        let error = expected.iter().find(|expected| answer.body.contains(**expected));
        assert!(error.is_some(), "{what}: {answer:?}");
    }
    assert!(added <= most, "{what}: {added} MiB");
}

const TOO_MUCH: &str = "an answer of more than 32 MiB";

#[test]
fn endless_tiny_events_take_little_memory() {
    let again = event(&json!({"content": "x"})).repeat(1_000);
    check_flood("tiny events", LITTLE, "text/event-stream", Vec::new(), again.into_bytes(), &[TOO_MUCH]);
}

#[test]
fn endless_tiny_values_take_little_memory() {
    let again = event(&json!({"x": [{"a": 0}]})).repeat(1_000);
    let expected = [TOO_MUCH, "too many large answers"];
    let url = server("text/event-stream", Vec::new(), again.into_bytes());
    check_flood_of(&url, "tiny values", CROWD, MOST_MEMORY, &expected);
}

#[test]
fn endless_tiny_calls_take_little_memory() {
    let calls =
        (0..1_000).map(|index| event(&json!({"tool_calls": [{"index": index, "id": index.to_string()}]})));
    let calls = calls.collect::<String>().into_bytes();
    check_flood("tiny calls", LITTLE, "text/event-stream", Vec::new(), calls, &["more than 512 tool calls"]);
}

#[test]
fn a_whole_answer_of_tiny_values_takes_little_memory() {
    let begin = b"{\"choices\":[{\"message\":{\"content\":\"x\",\"y\":[".to_vec();
    check_flood("whole", LITTLE, "application/json", begin, b"{\"a\":0},".repeat(1_000), &[TOO_MUCH]);
}

#[test]
fn a_list_of_models_of_tiny_values_takes_little_memory() {
    const REFUSAL: &str = "{\"error\":{\"message\":\"model 'm' not found\"}}";
    // The list has fewer bytes than the daemon reads at most, so only the number of its values is too large.
    let list = format!("{{\"data\":[{}{{\"id\":\"a\"}}]}}", "{\"a\":0},".repeat((8 << 20) / 8 - 100));
    let url = server_of(move |line, mut stream| {
        if line.starts_with("GET /v1/models ") {
            return flood(stream, "200 OK", "application/json", list.as_bytes(), &[]);
        }
        write!(
            stream,
            "HTTP/1.1 404 Not Found\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            REFUSAL.len()
        )?;
        stream.write_all(REFUSAL.as_bytes())
    });
    check_flood_of(&url, "a list of models", AT_ONCE, LITTLE, &["model 'm' not found"]);
}

#[test]
fn endless_failures_take_little_memory() {
    const SAID: &str = "this server has no luck today\n";
    let again = SAID.repeat(1_000);
    let url = server_of(move |_, stream| {
        flood(stream, "500 Internal Server Error", "text/plain", &[], again.as_bytes())
    });
    check_flood_of(&url, "failures", AT_ONCE, LITTLE, &[SAID.trim_end()]);
}

/// Sends an answer that consists of this many lines with this many bytes of text each. Returns how much processor time
/// the daemon needs for the answer.
fn time_for(lines: usize, bytes: usize) -> Duration {
    let mut begin = event(&json!({"content": "x".repeat(bytes)})).repeat(lines);
    begin.push_str("data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n");
    let (_polity, serving) = daemon(&server("text/event-stream", begin.into_bytes(), Vec::new()), &json!({}));
    let before = serving.processor_time();
    let answer = ask(&serving);
    let took = serving.processor_time() - before;
    assert_eq!(answer.status, 200, "{}", answer.head);
    let text = answer.json()["choices"][0]["message"]["content"].as_str().map(str::len);
    assert_eq!(text, Some(lines * bytes));
    took
}

/// Compares three answers with each other, because the time of a single answer would depend on the machine. The long
/// line is 8 times as long as the short line. If the cost of a line grew with the square of its length, the long line
/// would cost 64 times as much.
#[test]
fn a_long_line_costs_little_processor_time() {
    let (short, long, many) = (time_for(1, 2 << 20), time_for(1, 16 << 20), time_for(256, 64 << 10));
    println!(
        "a line of 2 MiB: {short:.2?} of processor time; of 16 MiB: {long:.2?}; 256 of 64 KiB: {many:.2?}"
    );
    assert!(long < 24 * short, "a line of 2 MiB: {short:?}, of 16 MiB: {long:?}");
    assert!(long < 3 * many, "a line of 16 MiB: {long:?}, 256 lines of 64 KiB: {many:?}");
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_answer() {
    let begin =
        "\u{feff}data: {\"choices\":[{\"delta\":{\"content\":\"42\"},\"finish_reason\":\"stop\"}]}\n\n";
    let (_polity, serving) = daemon(&server("text/event-stream", begin.into(), Vec::new()), &json!({}));
    let answer = ask(&serving);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "42");
}

#[test]
fn a_credential_that_the_server_repeats_is_stored_and_shown_nowhere() {
    const KEY: &str = "sk-a1B2c3D4e5F6g7H8i9";
    let call = json!({"index": 0, "id": "c1", "type": "function", "function": {
        "name": "list_contacts", "arguments": format!("{{\"{KEY}\": [\"{KEY}\"]}}")}});
    let begin = [
        // The answer text contains the key in two halves, one in each of the first two events. So no event contains the
        // whole key in its answer text.
        event(&json!({"content": format!("the key is {}", &KEY[..9])})),
        event(&json!({"content": &KEY[9..], "reasoning_content": format!("I know {KEY}")})),
        event(&json!({"tool_calls": [call]})),
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\n".to_owned(),
    ];
    let url = server("text/event-stream", begin.concat().into_bytes(), Vec::new());
    let (polity, serving) = daemon(&url, &json!({"apiKey": KEY}));
    let answer = ask(&serving);
    assert_eq!(answer.json()["choices"][0]["message"]["content"], "the key is [key]");
    serving.call("POST /api/messages", br#"{"text": "hello"}"#);
    let head = "accept: text/event-stream\r\n";
    drop(serving.stream("GET /api/events", head, "", "event: task_idle"));
    let conversation = serving.call("GET /api/agents/root/conversation", b"").body;
    assert!(conversation.contains("the key is [key]"), "{conversation}");
    assert!(!conversation.contains(KEY), "{conversation}");
    drop(serving);
    for name in ["polity.db", "polity.db-wal"] {
        let stored = std::fs::read(polity.data_dir().join(name)).unwrap_or_default();
        let found = stored.windows(KEY.len()).any(|window| window == KEY.as_bytes());
        assert!(!found, "the key is in {name}");
    }
}
