//! Many clients at the same time: clients that connect and wait, clients that send large bodies, and clients that
//! disconnect before the answer is complete.

use std::collections::BTreeSet;
use std::io::{BufRead, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;
use std::time::{Duration, Instant};

use polity_tests::{Answer, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::files::files_below;
use crate::support::hiring::Gate;
use crate::support::serving::{Answered, Serving, answer_on};
use crate::support::{allow_connections, home};

/// Maximum time for the daemon to free the resources of clients that have disconnected.
const PATIENCE: Duration = Duration::from_secs(60);

fn serving(script: fn() -> Answer) -> (ScriptedServer, Polity, Serving) {
    let server = ScriptedServer::start_forgetful(move |_| script());
    let polity = home(&server, &json!({}));
    let serving = Serving::start(&polity);
    (server, polity, serving)
}

/// Maximum number of connections without the token that the daemon keeps open (`MOST_CONNECTIONS` in
/// `crates/api/src/server.rs`).
const MOST_STRANGERS: usize = 128;

/// Sends a request with the token on an open connection, and reads the answer.
#[track_caller]
fn ask_on(stream: &mut TcpStream, serving: &Serving) {
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
}

/// Opens `many` connections that never show the token.
fn strangers(serving: &Serving, many: usize) -> Vec<TcpStream> {
    let healthz = "GET /healthz HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let stranger = |number: usize| {
        let mut stream = serving.connect();
        // A third of the connections send nothing, a third send a part of a head, and a third request `/healthz`,
        // which needs no token. Ignore errors: the daemon may already have closed the connection.
        let _ = match number % 3 {
            0 => Ok(()),
            1 => stream.write_all(b"GET / HTTP/1.1\r\nx: "),
            _ => stream.write_all(healthz.as_bytes()),
        };
        stream
    };
    (0..many).map(stranger).collect()
}

#[test]
fn whoever_has_no_token_keeps_nobody_out() {
    const MANY: usize = 1_500;
    allow_connections(MANY as u64);
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    // This connection sends a request with the token before all connections without a token begin. The daemon must not
    // close it to make room for them.
    let mut known = serving.connect();
    ask_on(&mut known, &serving);
    let before = serving.descriptors();
    let idle = strangers(&serving, MANY);
    let begun = Instant::now();
    let answer = serving.call("GET /api/services", b"");
    let took = begun.elapsed();
    println!("{MANY} idle connections: {took:.1?}, {} descriptors", serving.descriptors());
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(took < Duration::from_secs(1), "{took:?}");
    // The daemon still answers on the connection that sent the token.
    ask_on(&mut known, &serving);
    // The daemon keeps only `MOST_STRANGERS` of the connections without the token open, and closes the others. The test
    // must wait less than 30 seconds for this. After 30 seconds, the daemon closes all these connections in any case,
    // because they are silent. The number 50 leaves room for the files that the daemon opens for its own work.
    let most = before + MOST_STRANGERS + 50;
    comes_down_within(Duration::from_secs(15), "descriptors", most, || serving.descriptors());
    drop(idle);
}

#[test]
fn a_large_body_that_a_stranger_announces_takes_no_memory_from_others() {
    // A JSON body counts four times, so a body of this length would take the whole budget.
    const LENGTH: usize = 128 << 20;
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let address = &serving.address;
    let announce = |line: &str| {
        let mut stream = serving.connect();
        let head = format!("{line} HTTP/1.1\r\nhost: {address}\r\ncontent-length: {LENGTH}\r\n\r\n");
        stream.write_all((head + "t").as_bytes()).expect("a request");
        let mut answer = [0; 12];
        stream.read_exact(&mut answer).expect("an answer");
        assert_eq!(std::str::from_utf8(&answer), Ok("HTTP/1.1 413"), "{line}");
        stream
    };
    let _open = ["POST /login", "GET /login", "GET /healthz"].map(announce);
    // A body that gets no memory within ten seconds is refused with 503.
    let posted = serving.call("POST /api/messages", br#"{"text": "hello"}"#);
    assert_eq!(posted.status, 201, "{posted:?}");
}

/// Sets the soft limit of open files of the running daemon. The limit is `many` more than the number of files that the
/// daemon has open now.
#[track_caller]
fn leave_descriptors(serving: &Serving, many: usize) {
    let limit = serving.descriptors() + many;
    let mut prlimit = Command::new("prlimit");
    prlimit.arg(format!("--pid={}", serving.running.id())).arg(format!("--nofile={limit}:"));
    assert!(prlimit.status().expect("prlimit").success(), "the limit of open files stays as it is");
}

/// Writes to root, which begins a task. Waits until this task is idle.
#[track_caller]
fn finish_a_task(serving: &Serving) {
    let posted = serving.call("POST /api/messages", br#"{"text": "hello"}"#);
    assert_eq!(posted.status, 201, "{posted:?}");
    wait_for_end(serving, &posted.json());
}

/// Waits until the task of an accepted message is idle.
#[track_caller]
fn wait_for_end(serving: &Serving, posted: &Value) {
    let events = format!("GET /api/events?task={}", posted["task"].as_str().expect("a task"));
    drop(serving.stream(&events, "accept: text/event-stream\r\n", "", "event: task_idle"));
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "needs Linux")]
fn a_daemon_without_free_descriptors_turns_strangers_away_and_loses_nothing() {
    const ROOM: usize = 16;
    const STRANGERS: usize = 40;
    let gate = Gate::default();
    let passed = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        if asked.has_called("put_artifact") {
            return Answer::say("done");
        }
        passed.pass();
        Answer::call("put_artifact", json!({"type": "note", "content": "kept"}))
    });
    let retry = json!({"retry": {"maxAttempts": 1000, "baseDelayMs": 10, "maxDelayMs": 50}});
    let mut polity = home(&server, &retry);
    polity.set_env("POLITY_LOG", "warn");
    let serving = Serving::start(&polity);
    let posted = serving.call("POST /api/messages", br#"{"text": "hello"}"#).json();
    server.wait_until(PATIENCE, |requests| requests.len() == 1);
    let mut known = serving.connect();
    ask_on(&mut known, &serving);

    leave_descriptors(&serving, ROOM);
    let mut strangers = strangers(&serving, STRANGERS);
    serving.running.stderr_line("cannot accept connections just now");
    // A turn is under way, and its tool needs descriptors.
    gate.open();
    ask_on(&mut known, &serving);
    let read = strangers[0].read(&mut [0; 1]);
    let is_closed = match &read {
        Ok(length) => *length == 0,
        Err(error) => error.kind() == ErrorKind::ConnectionReset,
    };
    assert!(is_closed, "the oldest stranger was not turned away: {read:?}");
    // The daemon accepts a new connection, although the strangers came first and none of them has left by itself.
    assert_eq!(serving.call("GET /api/services", b"").status, 200);

    drop(strangers);
    wait_for_end(&serving, &posted);
    // The limit is still as low, but the descriptors are free again.
    finish_a_task(&serving);
    let page = serving.call("GET /api/messages?to=user", b"").json();
    let messages = page["messages"].as_array().expect("messages");
    let texts: Vec<&str> = messages.iter().filter_map(|message| message["text"].as_str()).collect();
    assert_eq!(texts, ["done", "done"]);
    let artifacts = serving.call("GET /api/artifacts", b"").json();
    assert_eq!(artifacts["artifacts"].as_array().map(Vec::len), Some(2), "{artifacts}");
    assert_eq!(server.request_count(), 4, "an answered request was made again");
    serving.running.terminate();
    let ended = serving.running.wait().expect_code(0);
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
    polity.run(&["db", "check", "--data", "data"]).expect_code(0);
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

/// Maximum growth of the daemon's memory through all bodies together, in MiB. It consists of the daemon's budget for
/// the bodies of requests, and of freed memory that the allocator keeps.
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
    check_crowd(&serving, "POST /mcp", &call, 24, &[200, 503]);
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

/// Maximum growth of the daemon's memory through one body that it refuses, in MiB. The daemon refuses a body that is too
/// large before it reads the body, so it needs far less memory than the body has bytes.
const LITTLE_MEMORY: u64 = 64;

/// Sends a body. The daemon must refuse the body with this status and this error code. Checks by how much the daemon's
/// memory grew, and that the daemon still answers.
#[track_caller]
fn check_refused(serving: &Serving, line: &str, body: &str, status: u16, code: &Value) {
    let (answers, added) = crowd(serving, line, body.as_bytes(), 1);
    let [answer] = &answers[..] else { panic!("expected one answer: {answers:?}") };
    let json = answer.json();
    let error = &json["error"];
    assert_eq!((answer.status, error.get("code").unwrap_or(error)), (status, code), "{line}: {answer:?}");
    assert!(added <= LITTLE_MEMORY, "{line}: {added} MiB");
    assert_eq!(serving.call("GET /api/services", b"").status, 200, "{line}");
}

#[test]
fn bodies_of_a_hundred_megabytes_are_refused() {
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let text = "x".repeat(100 << 20);
    let too_large = json!("body_too_large");
    check_refused(&serving, "POST /api/messages", &format!(r#"{{"text": "{text}"}}"#), 413, &too_large);
    let chat = format!(r#"{{"model": "polity", "messages": [{{"role": "user", "content": "{text}"}}]}}"#);
    check_refused(&serving, "POST /v1/chat/completions", &chat, 413, &too_large);
    let call = tool_call(&format!(r#"{{"prompt": "{text}"}}"#));
    // The error codes of JSON-RPC are numbers. This code means that the request is not valid.
    check_refused(&serving, "POST /mcp", &call, 413, &json!(-32_600));
    finish_a_task(&serving);
}

#[test]
fn bodies_of_a_hundred_megabytes_that_announce_no_length_are_refused_at_the_limit() {
    /// Maximum growth of the daemon's memory through one body, in MiB. The highest limit for a body is 96 MiB, and the
    /// daemon holds at most two copies of what has come.
    const MOST: u64 = 250;
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let more = "content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
                transfer-encoding: chunked\r\nconnection: close\r\n";
    let piece = format!("100000\r\n{}\r\n", "x".repeat(1 << 20));
    for line in ["POST /api/messages", "POST /v1/chat/completions", "POST /mcp"] {
        serving.forget_peak();
        let before = serving.resident();
        let mut stream = serving.connect();
        let begin = serving.head(line, more) + "a\r\n{\"text\": \"\r\n";
        stream.write_all(begin.as_bytes()).expect("a request");
        // The daemon closes the connection at the limit. So a write may fail.
        let sent = (0..100).take_while(|_| stream.write_all(piece.as_bytes()).is_ok()).count();
        let answer = answer_on(stream);
        let added = serving.peak() - before;
        println!("{line} without a length: {added} MiB after {sent} MiB");
        assert_eq!(answer.status, 413, "{line}: {answer:?}");
        assert!(added <= MOST, "{line}: {added} MiB");
    }
    finish_a_task(&serving);
}

/// Returns a JSON body of 256 MiB, compressed with gzip.
fn compressed() -> Vec<u8> {
    const BODY: &str = r#"printf '{"text": "'; head -c 268435456 /dev/zero | tr '\0' x; printf '"}'"#;
    let gzip =
        Command::new("sh").args(["-c", &format!("{{ {BODY}; }} | gzip -1")]).output().expect("a shell");
    assert!(gzip.status.success(), "gzip: {}", String::from_utf8_lossy(&gzip.stderr));
    gzip.stdout
}

#[test]
fn compressed_bodies_are_refused() {
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let call = |line: &str, encoding: &str, body: &[u8]| {
        let more = format!(
            "content-type: application/json\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n\
             connection: close\r\n",
            body.len()
        );
        let mut stream = serving.connect();
        stream.write_all(serving.head(line, &more).as_bytes()).expect("a request");
        // Ignore an error. The daemon may close the connection before it has read the whole body.
        let _ = stream.write_all(body);
        answer_on(stream)
    };
    let bomb = compressed();
    assert!(bomb.len() < 4 << 20, "{} bytes", bomb.len());
    for line in [
        "POST /api/messages",
        "POST /api/artifacts?filename=a.json",
        "POST /v1/chat/completions",
        "POST /mcp",
    ] {
        serving.forget_peak();
        let before = serving.resident();
        let answer = call(line, "gzip", &bomb);
        let added = serving.peak() - before;
        let json = answer.json();
        let code = json["error"].as_str().or(json["error"]["code"].as_str());
        assert_eq!((answer.status, code), (415, Some("unsupported_media_type")), "{line}: {answer:?}");
        assert!(answer.body.contains("content-encoding"), "{line}: {answer:?}");
        assert!(answer.head.contains("accept-encoding: identity"), "{line}: {answer:?}");
        assert!(added <= LITTLE_MEMORY, "{line}: {added} MiB");
    }
    // The name `identity` means that the body is not encoded.
    let answer = call("POST /api/messages", "identity", br#"{"text": "hello"}"#);
    assert_eq!(answer.status, 201, "{answer:?}");
}

#[test]
fn json_of_a_hundred_thousand_levels_is_refused() {
    const DEPTH: usize = 100_000;
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let check = |value: &str, status: u16, codes: [Value; 3]| {
        let [of_message, of_chat, of_call] = codes;
        let message = format!(r#"{{"payload": {{"x": {value}}}}}"#);
        check_refused(&serving, "POST /api/messages", &message, status, &of_message);
        let chat = format!(r#"{{"model": "polity", "messages": [{value}]}}"#);
        check_refused(&serving, "POST /v1/chat/completions", &chat, status, &of_chat);
        let call = tool_call(&format!(r#"{{"prompt": {value}}}"#));
        check_refused(&serving, "POST /mcp", &call, status, &of_call);
    };
    // This many arrays fit into the budget of memory. But they are nested too deeply, so the parser refuses them.
    let arrays = format!("{}{}", "[".repeat(DEPTH), "]".repeat(DEPTH));
    check(&arrays, 400, [json!("invalid_arguments"), json!("invalid_body"), json!(-32_700)]);
    // This many objects would take more memory than the values of one body may take. So the body never reaches the
    // parser.
    let objects = format!("{}0{}", r#"{"a":"#.repeat(DEPTH), "}".repeat(DEPTH));
    let too_large = || json!("body_too_large");
    check(&objects, 413, [too_large(), too_large(), too_large()]);
    finish_a_task(&serving);
}

/// Waits until a number, such as the number of open descriptors, is at most `most`.
#[track_caller]
fn comes_down(what: &str, most: usize, number: impl Fn() -> usize) {
    comes_down_within(PATIENCE, what, most, number);
}

/// Does the same as [`comes_down`], but waits only for this long.
#[track_caller]
fn comes_down_within(within: Duration, what: &str, most: usize, number: impl Fn() -> usize) {
    let begun = Instant::now();
    while number() > most {
        assert!(begun.elapsed() < within, "{what}: {} instead of {most}", number());
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Opens streams, and closes the connections before the streams end. Checks that the daemon then frees the jobs, the
/// descriptors and the memory of the streams.
fn check_leaving(serving: &Serving, line: &str, more: &str, body: &str, first: &str) {
    // One session of MCP has at most 33 streams.
    const MANY: usize = 32;
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
    let input = r#"{"model": "polity", "stream": true, "input": "hello"}"#;
    check_leaving(&serving, "POST /v1/responses", accept, input, "response.created");
    let session = "accept: text/event-stream\r\nmcp-protocol-version: 2025-11-25\r\n\
                   mcp-session-id: 00000000-0000-4000-8000-000000000000\r\n";
    // The first stream makes the session. The session stays when this stream ends.
    drop(serving.stream("GET /mcp", session, "", "text/event-stream"));
    check_leaving(&serving, "GET /mcp", session, "", "text/event-stream");
    let task = posted["task"].as_str().expect("a task");
    let follow = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "follow_task",
        "arguments": {"task": task, "waitSeconds": 600}}});
    check_calls(&serving, "POST /mcp", &follow.to_string());
    for model in ["polity", "polity-direct"] {
        let messages = json!([{"role": "system", "content": "answer"}, {"role": "user", "content": "hello"}]);
        let chat = json!({"model": model, "messages": messages});
        check_calls(&serving, "POST /v1/chat/completions", &chat.to_string());
    }
}

/// Begins calls that wait, and closes the connections before the daemon answers the calls. Checks that the daemon
/// then frees the jobs and the descriptors of the calls.
fn check_calls(serving: &Serving, line: &str, body: &str) {
    const MANY: usize = 48;
    let jobs = || serving.metric("polity_runtime_jobs") as usize;
    let (jobs_before, descriptors_before) = (jobs(), serving.descriptors());
    let more = format!(
        "content-type: application/json\r\naccept: application/json, text/event-stream\r\ncontent-length: {}\r\n",
        body.len()
    );
    let request = serving.head(line, &more) + body;
    for _ in 0..3 {
        let mut calls = Vec::new();
        for _ in 0..MANY {
            let mut stream = serving.connect();
            stream.write_all(request.as_bytes()).expect("a request");
            calls.push(stream);
        }
        let begun = Instant::now();
        while jobs() < jobs_before + MANY {
            assert!(begun.elapsed() < PATIENCE, "{line}: the calls do not wait");
        }
        drop(calls);
    }
    comes_down(line, jobs_before + 4, jobs);
    comes_down(line, descriptors_before + 4, || serving.descriptors());
}

/// Reads the events after the event with the number `after`, and leaves in the middle of the stream: at the first event
/// of the kind `last`. Returns the numbers of the events.
#[track_caller]
fn numbers(serving: &Serving, after: i64, last: &str) -> Vec<i64> {
    let more = format!("accept: text/event-stream\r\nlast-event-id: {after}\r\n");
    let mut stream = serving.stream("GET /api/events", &more, "", "text/event-stream");
    let (begun, mut numbers) = (Instant::now(), Vec::new());
    loop {
        // The daemon sends signs of life, so no single line takes too long.
        assert!(begun.elapsed() < PATIENCE, "no event {last:?}: {numbers:?}");
        let mut line = String::new();
        assert!(stream.read_line(&mut line).expect("a line") > 0, "no event {last:?}: {numbers:?}");
        if let Some(number) = line.strip_prefix("id: ") {
            numbers.push(number.trim().parse().expect("a number"));
        }
        if line.strip_prefix("event: ").is_some_and(|kind| kind.trim() == last) {
            return numbers;
        }
    }
}

#[test]
fn turns_go_on_without_their_readers_and_the_next_reader_continues_by_number() {
    let gate = Gate::default();
    let passed = gate.clone();
    let server = ScriptedServer::start(move |_| {
        passed.pass();
        Answer::say("42")
    });
    let polity = home(&server, &json!({}));
    let serving = Serving::start(&polity);
    assert_eq!(serving.call("POST /api/messages", br#"{"text": "hello"}"#).status, 201);
    let chat = r#"{"model": "polity", "stream": true, "messages": [{"role": "user", "content": "hello"}]}"#;
    let accept = "accept: text/event-stream\r\n";
    // Both turns wait for their model, and then their readers leave.
    let answer = serving.stream("POST /v1/chat/completions", accept, chat, "chat.completion.chunk");
    server.wait_until(PATIENCE, |requests| requests.len() == 2);
    drop(answer);
    let mut seen = numbers(&serving, 0, "task_started");
    gate.open();
    for _ in 0..2 {
        let newest = *seen.last().expect("an event");
        seen.extend(numbers(&serving, newest, "task_idle"));
    }
    let mut stream = serving.connect();
    let more = "accept: application/json\r\nconnection: close\r\n";
    stream.write_all(serving.head("GET /api/events?limit=1000", more).as_bytes()).expect("a request");
    let page = answer_on(stream).json();
    let stored = page["events"].as_array().expect("events").iter().filter_map(|event| event["seq"].as_i64());
    assert_eq!(stored.take(seen.len()).collect::<Vec<_>>(), seen, "an event is missing or came twice");
    let page = serving.call("GET /api/messages?to=user", b"").json();
    let messages = page["messages"].as_array().expect("messages");
    let texts: Vec<&str> = messages.iter().filter_map(|message| message["text"].as_str()).collect();
    assert_eq!(texts, ["42", "42"]);
    assert_eq!(server.request_count(), 2, "a turn began anew");
}

/// What the daemon sends when it begins to read a body that was announced with `expect: 100-continue`.
const GO_ON: &str = "HTTP/1.1 100 Continue\r\n\r\n";

/// A request that stores its body as a file.
const UPLOAD: (&str, &str) = ("POST /api/artifacts?filename=a.txt", "text/plain");

/// Announces a body of this many bytes, and returns the connection when the daemon reads the body. `request` consists
/// of the method with the path, and of the content type.
#[track_caller]
fn begin_upload(serving: &Serving, request: (&str, &str), bytes: usize) -> TcpStream {
    let (line, content_type) = request;
    let more = format!(
        "content-type: {content_type}\r\ncontent-length: {bytes}\r\nexpect: 100-continue\r\n\
         connection: close\r\n"
    );
    let mut stream = serving.connect();
    stream.write_all(serving.head(line, &more).as_bytes()).expect("a request");
    let mut answer = vec![0; GO_ON.len()];
    stream.read_exact(&mut answer).expect("an answer");
    assert_eq!(String::from_utf8_lossy(&answer), GO_ON);
    stream
}

/// Stores a file, and returns what the daemon tells about it.
#[track_caller]
fn upload(serving: &Serving, text: &str) -> Value {
    let mut stream = begin_upload(serving, UPLOAD, text.len());
    stream.write_all(text.as_bytes()).expect("a file");
    let stored = answer_on(stream);
    assert_eq!(stored.status, 201, "{stored:?}");
    stored.json()
}

#[test]
fn downloads_that_break_off_leave_nothing_behind() {
    const MANY: usize = 8;
    let (_server, _polity, serving) = serving(|| Answer::say("42"));
    let text = "a line of a file that no buffer can hold\n".repeat(400_000);
    let stored = upload(&serving, &text);
    let line = format!("GET /api/artifacts/{}/content", stored["id"].as_str().expect("an id"));
    let jobs = || serving.metric("polity_runtime_jobs") as usize;
    let (jobs_before, descriptors_before) = (jobs(), serving.descriptors());
    for _ in 0..3 {
        let downloads: Vec<_> =
            (0..MANY).map(|_| serving.stream(&line, "", "", "a line of a file")).collect();
        // A download that is under way has two descriptors: the connection and the file.
        let open = serving.descriptors();
        assert!(
            open > descriptors_before + MANY + MANY / 2,
            "the downloads are complete: {open} descriptors"
        );
        drop(downloads);
        comes_down(&line, jobs_before + 4, jobs);
        comes_down(&line, descriptors_before + 4, || serving.descriptors());
    }
    let whole = serving.call(&line, b"");
    assert_eq!((whole.status, whole.body.len()), (200, text.len()));
    assert!(whole.body == text, "the artifact has changed");
}

/// Sends the first half of a body on several connections, closes them, and does this again. Checks that the daemon then
/// frees the jobs and the descriptors, and that it has stored no file.
#[track_caller]
fn check_broken_uploads(serving: &Serving, polity: &Polity, request: (&str, &str), body: &str) {
    /// As many uploads as the daemon takes at the same time.
    const MANY: usize = 8;
    let (line, _) = request;
    let jobs = || serving.metric("polity_runtime_jobs") as usize;
    let files = || files_below(&polity.data_dir().join("artifacts")).into_iter().collect::<BTreeSet<_>>();
    let files_before = files();
    let (jobs_before, descriptors_before) = (jobs(), serving.descriptors());
    for _ in 0..3 {
        let begin = |_| {
            let mut stream = begin_upload(serving, request, body.len());
            stream.write_all(&body.as_bytes()[..body.len() / 2]).expect("a half");
            stream
        };
        let uploads: Vec<_> = (0..MANY).map(begin).collect();
        drop(uploads);
        comes_down(line, jobs_before + 4, jobs);
        comes_down(line, descriptors_before + 4, || serving.descriptors());
    }
    assert_eq!(files(), files_before, "{line}");
}

/// Reads a list, such as the list of all tasks.
#[track_caller]
fn list(serving: &Serving, name: &str) -> Value {
    serving.call(&format!("GET /api/{name}"), b"").json()[name].clone()
}

#[test]
fn an_upload_that_breaks_off_stores_nothing() {
    let (_server, polity, serving) = serving(|| Answer::say("42"));
    let text = "x".repeat(4 << 20);
    check_broken_uploads(&serving, &polity, UPLOAD, &text);
    assert_eq!(list(&serving, "artifacts"), json!([]));
    // The uploads that broke off do not count as concurrent uploads any more, so another upload succeeds.
    upload(&serving, &text);
    assert_eq!(list(&serving, "artifacts").as_array().map(Vec::len), Some(1));
}

#[test]
fn a_message_whose_file_breaks_off_is_not_accepted() {
    const FORM: (&str, &str) = ("POST /api/messages", "multipart/form-data; boundary=x");
    let (_server, polity, serving) = serving(|| Answer::say("42"));
    let part = |field: &str, content: &str| {
        format!("--x\r\ncontent-disposition: form-data; {field}\r\n\r\n{content}\r\n")
    };
    let text = part("name=\"text\"", "look");
    let file = part("name=\"attachment\"; filename=\"a.txt\"", &"x".repeat(4 << 20));
    let body = format!("{text}{file}--x--\r\n");
    check_broken_uploads(&serving, &polity, FORM, &body);
    for name in ["artifacts", "messages", "tasks"] {
        assert_eq!(list(&serving, name), json!([]), "{name}");
    }
    // The whole body is accepted.
    let mut stream = begin_upload(&serving, FORM, body.len());
    stream.write_all(body.as_bytes()).expect("a message");
    let posted = answer_on(stream);
    assert_eq!(posted.status, 201, "{posted:?}");
    assert_eq!(list(&serving, "artifacts").as_array().map(Vec::len), Some(1));
}
