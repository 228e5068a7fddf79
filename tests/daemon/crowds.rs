//! Many clients at the same time: clients that connect and wait, clients that send large bodies, and clients that
//! disconnect before the answer is complete.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::json;

use crate::support::home;
use crate::support::serving::{Answered, Serving};

/// Maximum time for the daemon to free the resources of clients that have disconnected.
const PATIENCE: Duration = Duration::from_secs(60);

fn serving(script: fn() -> Answer) -> (ScriptedServer, Polity, Serving) {
    let server = ScriptedServer::start_forgetful(move |_| script());
    let polity = home(&server, &json!({}));
    let serving = Serving::start(&polity);
    (server, polity, serving)
}

/// Raises the limit of open files, so that this process can have `many` open connections.
fn allow_connections(many: u64) {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    let enough = many + 500;
    if limit.current.is_some_and(|current| current < enough) {
        let wanted = rustix::process::Rlimit { current: Some(enough), ..limit };
        rustix::process::setrlimit(rustix::process::Resource::Nofile, wanted).expect("enough descriptors");
    }
}

#[test]
fn whoever_has_no_token_keeps_nobody_out() {
    const MANY: u64 = 1_500;
    allow_connections(MANY);
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    // This connection sends a request with the token. The connections without a token begin later. The daemon must not
    // close this connection for them.
    let mut known = serving.connect();
    let healthz = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let ask = |stream: &mut TcpStream| {
        stream.write_all(serving.head("GET /api/services", "").as_bytes()).expect("a request");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(&answer, b"HTTP/1.1 200");
        while !stream.peek(&mut [0; 1 << 16]).is_ok_and(|rest| rest == 0) {
            // Read the bytes that have arrived, until the JSON array ends.
            let mut rest = [0; 1 << 16];
            let read = stream.read(&mut rest).expect("the rest");
            if rest[..read].ends_with(b"]") {
                break;
            }
        }
    };
    ask(&mut known);
    let mut idle = Vec::new();
    for number in 0..MANY {
        let mut stream = TcpStream::connect(&serving.address).expect("a connection");
        // A third of the connections send nothing, a third send a part of a head, and a third request `/healthz`,
        // which needs no token. Ignore errors: the daemon may already have closed the connection.
        let _ = match number % 3 {
            0 => Ok(()),
            1 => stream.write_all(b"GET / HTTP/1.1\r\nx: "),
            _ => stream.write_all(healthz.as_bytes()),
        };
        idle.push(stream);
    }
    let begun = Instant::now();
    let answer = serving.call("GET /api/services", b"");
    let took = begun.elapsed();
    println!("{MANY} idle connections: {took:.1?}, {} descriptors", serving.descriptors());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    // The daemon still answers on the connection that sent the token.
    ask(&mut known);
    drop(idle);
}

/// Sends `many` copies of a body at the same time. Returns the answers, and by how many MiB the memory of the daemon
/// grew.
fn crowd(serving: &Serving, line: &str, body: &[u8], many: usize) -> (Vec<Answered>, u64) {
    serving.forget_peak();
    let before = serving.resident();
    let answers = std::thread::scope(|scope| {
        let sent: Vec<_> = (0..many).map(|_| scope.spawn(|| serving.call(line, body))).collect();
        sent.into_iter().map(|sent| sent.join().expect("an answer")).collect()
    });
    (answers, serving.peak() - before)
}

/// Maximum growth of the daemon's memory through all bodies together, in MiB. The daemon has a budget for the bodies of
/// requests, and its allocator also keeps some freed memory.
const MOST_MEMORY: u64 = 700;

/// Sends `many` copies of a body at the same time. Checks by how much the daemon's memory grew, and that each answer
/// has one of these statuses.
#[expect(clippy::print_stdout, reason = "prints the numbers for docs/performance.md")]
fn check_crowd(serving: &Serving, line: &str, body: &str, many: usize, statuses: &[u16]) {
    let (answers, added) = crowd(serving, line, body.as_bytes(), many);
    let got: Vec<u16> = answers.iter().map(|answer| answer.status).collect();
    println!("{many} times {line} with {} MiB: {added} MiB, {got:?}", body.len() >> 20);
    for answer in answers {
        assert!(statuses.contains(&answer.status), "{line}: {answer:?}");
        if answer.status >= 400 {
            let json = answer.json();
            let code = json["error"].as_str().or(json["error"]["code"].as_str());
            let expected = if answer.status == 503 { "unavailable" } else { "body_too_large" };
            assert_eq!(code, Some(expected), "{line}: {answer:?}");
        }
    }
    assert!(added <= MOST_MEMORY, "{line}: {added} MiB");
}

fn tool_call(arguments: &str) -> String {
    format!(
        r#"{{"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {{"name": "give_task", "arguments": {arguments}}}}}"#
    )
}

#[test]
fn many_large_bodies_share_one_budget() {
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let text = "x".repeat(30 << 20);
    // The text is longer than any message may be. So the tool refuses each call that the daemon reads.
    let call = tool_call(&format!(r#"{{"prompt": "{text}"}}"#));
    check_crowd(&serving, "POST /mcp", &call, 12, &[200, 503]);
    let chat = format!(r#"{{"model": "polity", "messages": [{{"role": "robot", "content": "{text}"}}]}}"#);
    let (answers, added) = crowd(&serving, "POST /v1/chat/completions", chat.as_bytes(), 12);
    assert!(answers.iter().all(|answer| [400, 503].contains(&answer.status)), "{answers:?}");
    assert!(added <= MOST_MEMORY, "{added} MiB");
}

#[test]
fn bodies_of_tiny_values_do_not_grow_into_large_trees() {
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let values = "[{\"a\":0}],".repeat(2 << 20);
    let call = tool_call(&format!(r#"{{"prompt": [{values}0]}}"#));
    check_crowd(&serving, "POST /mcp", &call, 8, &[413, 503]);
    let chat = format!(r#"{{"model": "polity", "messages": [{values}0]}}"#);
    check_crowd(&serving, "POST /v1/chat/completions", &chat, 8, &[413, 503]);
    let message = format!(r#"{{"payload": {{"x": [{}0]}}}}"#, "[{\"a\":0}],".repeat(100_000));
    check_crowd(&serving, "POST /api/messages", &message, 8, &[413, 503]);
}

/// Waits until a number, such as the number of open descriptors, is at most `most`.
#[track_caller]
fn comes_down(what: &str, most: usize, number: impl Fn() -> usize) {
    let begun = Instant::now();
    while number() > most {
        assert!(begun.elapsed() < PATIENCE, "{what}: {} instead of {most}", number());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Opens streams, and closes the connections before the streams end. Checks that the daemon then frees the jobs, the
/// descriptors and the memory of the streams.
fn check_leaving(serving: &Serving, line: &str, more: &str, body: &str, first: &str) {
    const MANY: usize = 48;
    let jobs = || serving.metric("polity_runtime_jobs") as usize;
    let round = || {
        let streams: Vec<_> = (0..MANY).map(|_| serving.stream(line, more, body, first)).collect();
        assert!(jobs() >= MANY, "{line}: the streams are not open");
        drop(streams);
    };
    let (jobs_before, descriptors_before) = (jobs(), serving.descriptors());
    round();
    comes_down(line, jobs_before + 4, jobs);
    comes_down(line, descriptors_before + 4, || serving.descriptors());
    let memory = serving.resident();
    for _ in 0..4 {
        round();
    }
    comes_down(line, jobs_before + 4, jobs);
    comes_down(line, descriptors_before + 4, || serving.descriptors());
    let added = serving.resident().saturating_sub(memory);
    assert!(added <= 32, "{line}: {added} MiB");
}

#[test]
fn whoever_leaves_in_the_middle_leaves_nothing_behind() {
    let (_server, _polity, serving) = serving(Answer::hang);
    let accept = "accept: text/event-stream\r\n";
    let posted = serving.call("POST /api/messages", br#"{"text": "hello"}"#).json();
    check_leaving(&serving, "GET /api/events", accept, "", "event: task_started");
    let chat = r#"{"model": "polity", "stream": true, "messages": [{"role": "user", "content": "hello"}]}"#;
    check_leaving(&serving, "POST /v1/chat/completions", accept, chat, "chat.completion.chunk");
    let task = posted["task"].as_str().expect("a task");
    let follow = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "follow_task",
        "arguments": {"task": task, "waitSeconds": 600}}});
    check_calls(&serving, &follow.to_string());
}

/// Begins calls that wait, and closes the connections before the daemon answers the calls. Checks that the daemon
/// then frees the jobs and the descriptors of the calls.
fn check_calls(serving: &Serving, body: &str) {
    const MANY: usize = 48;
    let jobs = || serving.metric("polity_runtime_jobs") as usize;
    let (jobs_before, descriptors_before) = (jobs(), serving.descriptors());
    let more = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
        body.len()
    );
    let request = serving.head("POST /mcp", &more) + body;
    for _ in 0..3 {
        let mut calls = Vec::new();
        for _ in 0..MANY {
            let mut stream = serving.connect();
            stream.write_all(request.as_bytes()).expect("a request");
            calls.push(stream);
        }
        let begun = Instant::now();
        while jobs() < jobs_before + MANY {
            assert!(begun.elapsed() < PATIENCE, "the calls do not wait");
        }
        drop(calls);
    }
    comes_down("POST /mcp", jobs_before + 4, jobs);
    comes_down("POST /mcp", descriptors_before + 4, || serving.descriptors());
}
