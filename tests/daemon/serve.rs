//! `polity serve`: the daemon starts, accepts requests with the token and ends on a signal. The next daemon continues
//! its work.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};

use polity_tests::{Answer, Conversation, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::Gate;
use crate::support::{allow_connections, app, home, service};

/// Maximum wait until the server has received the expected requests, or the daemon has finished its tasks.
const PATIENCE: Duration = Duration::from_secs(300);

fn answering() -> (ScriptedServer, Polity) {
    let server = ScriptedServer::start(|_| Answer::say("42"));
    let polity = home(&server, &json!({}));
    (server, polity)
}

/// Returns an address for a daemon that is stopped and started again. No other program takes the address in between.
///
/// The port is below those that the operating system assigns by itself. So another program does not get this port by
/// chance.
fn address_of_its_own() -> String {
    let first = 10_000 + std::process::id() % 10_000;
    let mut addresses = (first..32_768).map(|port| format!("127.0.0.1:{port}"));
    addresses.find(|address| TcpListener::bind(address).is_ok()).expect("a free port")
}

/// A daemon that accepts requests.
struct Daemon {
    running: Running,
    address: String,
    token: String,
}

impl Daemon {
    #[track_caller]
    fn start(polity: &Polity, listen: &str) -> Self {
        let running = polity.spawn(&["serve", "--data", "data", "--listen", listen]);
        let ready = running.stderr_line("ready: http://");
        let address = ready.split_once("http://").expect("an address").1.trim().to_owned();
        let token =
            std::fs::read_to_string(polity.data_dir().join("token")).expect("a token").trim().to_owned();
        Self { running, address, token }
    }

    /// Sends a request with the token, and returns the connection on which the answer comes.
    fn ask(&self, head: &str, body: &str) -> BufReader<TcpStream> {
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        let (address, token, length) = (&self.address, &self.token, body.len());
        let request = format!(
            "{head}\r\nhost: {address}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\nconnection: close\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).expect("a request");
        BufReader::new(stream)
    }

    /// Sends a request with the token, and returns the status and the body of the answer.
    fn call(&self, line: &str, body: &str) -> (String, String) {
        let mut answer = String::new();
        self.ask(&format!("{line} HTTP/1.1"), body).read_to_string(&mut answer).expect("an answer");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        (head.split(' ').nth(1).expect("a status").to_owned(), body.to_owned())
    }

    /// Reads all pages of a list. `list` is the name of the list, in the path and in the answer.
    #[track_caller]
    fn all(&self, list: &str) -> Vec<Value> {
        let (mut rows, mut after) = (Vec::new(), String::new());
        loop {
            let (status, page) = self.call(&format!("GET /api/{list}?limit=100{after}"), "");
            assert_eq!(status, "200", "{page}");
            let page: Value = serde_json::from_str(&page).expect("a page of JSON");
            rows.extend(page[list].as_array().expect("a list").iter().cloned());
            after = match &page["next"] {
                Value::Null => return rows,
                Value::String(id) => format!("&after={id}"),
                number => format!("&after={number}"),
            };
        }
    }

    /// Reads the events after the event with the number `after`. Returns a map from the number of each event to its
    /// kind.
    ///
    /// Stops at the first event of the kind `last` or at the end of the stream.
    fn events(&self, after: i64, last: &str) -> BTreeMap<i64, String> {
        let head = format!("GET /api/events HTTP/1.1\r\naccept: text/event-stream\r\nlast-event-id: {after}");
        let (mut events, mut number) = (BTreeMap::new(), 0);
        for line in self.ask(&head, "").lines() {
            let line = line.expect("a line");
            if let Some(id) = line.strip_prefix("id: ") {
                number = id.parse().expect("a number");
            } else if let Some(kind) = line.strip_prefix("event: ") {
                assert_eq!(events.insert(number, kind.to_owned()), None, "event {number} came twice");
                if kind == last {
                    break;
                }
            }
        }
        events
    }
}

#[test]
fn it_serves_until_it_is_asked_to_end() {
    let (_server, polity) = answering();
    let daemon = Daemon::start(&polity, "127.0.0.1:0");
    let data = polity.data_dir();
    for name in ["token", "daemon.json"] {
        let mode = data.join(name).metadata().expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    let note: Value =
        serde_json::from_slice(&std::fs::read(data.join("daemon.json")).expect("a note")).expect("JSON");
    assert_eq!(note["url"], format!("http://{}", daemon.address));
    assert_eq!(note["pid"], daemon.running.id());

    let (status, posted) = daemon.call("POST /api/messages", r#"{"text": "how much?"}"#);
    assert_eq!(status, "201", "{posted}");
    let events = daemon.events(0, "task_idle");
    assert_eq!(events.values().next().map(String::as_str), Some("task_started"));
    let (_, answers) = daemon.call("GET /api/messages?to=user", "");
    let answers: Value = serde_json::from_str(&answers).expect("JSON");
    assert_eq!(answers["messages"][0]["text"], "42");

    daemon.running.terminate();
    let ended = daemon.running.wait().expect_code(0);
    assert_eq!(ended.stdout, "");
    assert!(!ended.stderr.contains(&daemon.token), "{}", ended.stderr);
    assert!(!data.join("daemon.json").exists());
}

/// Maximum time from SIGTERM to the end of the daemon if the grace period is a moment and no call gets an answer.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Number of turns that have begun when the daemon is asked to end: 200, or as many as the variable `POLITY_ENDED_TURNS`
/// says. The command `just endings` sets it to 1,000.
fn turns() -> usize {
    std::env::var("POLITY_ENDED_TURNS").map_or(200, |turns| turns.parse().expect("a number"))
}

/// Gives root this number of prompts: `number 0`, `number 1` and so on. Each begins a task.
#[track_caller]
fn begin_turns(daemon: &Daemon, turns: usize) {
    for number in 0..turns {
        let body = json!({"text": format!("number {number}")}).to_string();
        let (status, posted) = daemon.call("POST /api/messages", &body);
        assert_eq!(status, "201", "{posted}");
    }
}

/// Returns the prompt of the task that a request belongs to.
fn prompt(asked: &Conversation) -> String {
    let heard = asked.heard();
    let mut lines = heard.iter().flat_map(|heard| heard.text.lines());
    lines.find(|line| line.starts_with("number ")).expect("a prompt").to_owned()
}

fn done(asked: &Conversation) -> Answer {
    Answer::say(format!("done with {}", prompt(asked)))
}

/// Waits until no task is open. Checks that each prompt has one task and one answer, and that there are no other
/// messages.
#[track_caller]
fn check_finished_once(daemon: &Daemon, turns: usize) {
    let open = || -> Value {
        let (_, page) = daemon.call("GET /api/tasks?state=open&limit=1", "");
        serde_json::from_str(&page).expect("a page of JSON")
    };
    let begun = Instant::now();
    while open()["tasks"] != json!([]) {
        assert!(begun.elapsed() < PATIENCE, "some tasks are still open");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(daemon.all("tasks").len(), turns);
    let messages = daemon.all("messages");
    let mut texts: Vec<&str> = messages.iter().filter_map(|message| message["text"].as_str()).collect();
    texts.sort_unstable();
    let prompts = (0..turns).map(|number| format!("number {number}"));
    let mut expected: Vec<String> =
        prompts.flat_map(|prompt| [format!("done with {prompt}"), prompt]).collect();
    expected.sort_unstable();
    assert_eq!(texts, expected);
}

/// Checks that the server has received `times` requests for each of the prompts.
#[track_caller]
fn check_requests(server: &ScriptedServer, turns: usize, times: usize) {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for request in server.requests() {
        *counts.entry(prompt(&request.conversation())).or_default() += 1;
    }
    assert_eq!(counts.len(), turns);
    counts.retain(|_, count| *count != times);
    assert!(counts.is_empty(), "expected {times} requests for each prompt: {counts:?}");
}

#[test]
fn a_daemon_that_ends_during_many_turns_keeps_what_is_answered_and_begins_nothing() {
    let turns = turns();
    allow_connections(turns as u64);
    // The server takes calls of half of the turns at the same time. So these turns wait for their answers, and the
    // other turns wait until they may make their calls. Each waiting call keeps a thread of the server busy, and the
    // server has 512 of these threads.
    let places = (turns / 2).min(500);
    let gate = Gate::default();
    let closed = gate.clone();
    let server = ScriptedServer::start(move |asked| {
        closed.pass();
        done(asked)
    });
    let mut one = service("one", &server, &["text"]);
    one["maxConcurrentRequests"] = json!(places);
    let grace = Duration::from_secs(60);
    let polity =
        Polity::new(&json!({"services": [one]}), &app(&json!({"shutdownGraceMs": grace.as_secs() * 1_000})));
    let first = Daemon::start(&polity, "127.0.0.1:0");
    begin_turns(&first, turns);
    server.wait_until(PATIENCE, |requests| requests.len() == places);
    first.running.terminate();
    first.running.stderr_line("letting the work in progress finish");
    gate.open();
    first.running.wait_within(grace).expect_code(0);
    assert_eq!(server.request_count(), places, "new calls were begun");
    let second = Daemon::start(&polity, "127.0.0.1:0");
    check_finished_once(&second, turns);
    check_requests(&server, turns, 1);
}

#[test]
fn many_turns_that_do_not_end_in_time_are_finished_once_by_the_next_daemon() {
    let turns = turns();
    allow_connections(turns as u64);
    let gate = Gate::default();
    let closed = gate.clone();
    let server =
        ScriptedServer::start(move |asked| if closed.is_open() { done(asked) } else { Answer::hang() });
    let polity = home(&server, &json!({"shutdownGraceMs": 1}));
    let first = Daemon::start(&polity, "127.0.0.1:0");
    begin_turns(&first, turns);
    server.wait_until(PATIENCE, |requests| requests.len() == turns);
    first.running.terminate();
    first.running.wait_within(LONGEST_END).expect_code(0);
    gate.open();
    let second = Daemon::start(&polity, "127.0.0.1:0");
    check_finished_once(&second, turns);
    // The first daemon got no answers. So the second daemon made each call once more.
    check_requests(&server, turns, 2);
}

#[test]
fn a_stream_goes_on_with_the_next_daemon() {
    let (_server, polity) = answering();
    let first = Daemon::start(&polity, &address_of_its_own());
    first.call("POST /api/messages", r#"{"text": "how much?"}"#);
    let mut all = first.events(0, "task_idle");
    let (address, token) = (first.address.clone(), first.token.clone());
    first.running.kill9();

    // The file `daemon.json` of the killed daemon still contains its address. The next daemon must start although
    // this file exists.
    assert!(polity.data_dir().join("daemon.json").exists());
    let second = Daemon::start(&polity, &address);
    assert_eq!(second.token, token);
    second.call("POST /api/messages", r#"{"text": "and twice that?"}"#);
    let newest = *all.last_key_value().expect("events").0;
    for (number, kind) in second.events(newest, "task_idle") {
        assert_eq!(all.insert(number, kind), None, "event {number} came twice");
    }
    second.running.terminate();
    second.running.wait().expect_code(0);

    let third = Daemon::start(&polity, &address);
    let (_, page) = third.call("GET /api/events?limit=1000", "");
    let page: Value = serde_json::from_str(&page).expect("JSON");
    let stored = page["events"].as_array().expect("events").iter();
    let newest = *all.last_key_value().expect("events").0;
    let stored: Vec<i64> =
        stored.filter_map(|event| event["seq"].as_i64()).filter(|seq| *seq <= newest).collect();
    assert_eq!(all.into_keys().collect::<Vec<_>>(), stored);
    third.running.terminate();
    third.running.wait().expect_code(0);
}

#[test]
fn what_it_cannot_use_is_told() {
    let (_server, polity) = answering();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").to_string();
    let check = |arguments: &[&str], expected: &str| {
        let ended = polity.run(&[&["serve"], arguments].concat()).expect_code(2);
        assert_eq!(ended.stdout, "");
        assert!(ended.stderr.contains(expected), "{expected:?} is not in: {}", ended.stderr);
    };
    check(&["--data", "data", "--listen", &port], "another program listens there");
    check(&["--data", "data", "--listen", "0.0.0.0:0"], "--allow-host");
    check(&["--data", "data", "--listen", "7717"], "127.0.0.1:7717");
    std::fs::write(polity.data_dir().join("token"), "short\n").expect("a file");
    check(&["--data", "data", "--listen", "127.0.0.1:0"], "remove the file");
    std::fs::remove_file(polity.data_dir().join("token")).expect("removed");

    let daemon = Daemon::start(&polity, "127.0.0.1:0");
    check(&["--data", "data", "--listen", "127.0.0.1:0"], "another polity is using the data directory");
    daemon.running.interrupt();
    daemon.running.wait().expect_code(0);
}

#[test]
fn the_token_stands_nowhere_else() {
    let (_server, mut polity) = answering();
    polity.set_env("POLITY_LOG", "trace");
    let daemon = Daemon::start(&polity, "127.0.0.1:0");
    daemon.call("POST /api/messages", r#"{"text": "how much?"}"#);
    daemon.events(0, "task_idle");
    for line in ["GET /api/events", "GET /api/services", "GET /api/config", "GET /metrics", "GET /nowhere"] {
        let (_, answer) = daemon.call(line, "");
        assert!(!answer.contains(&daemon.token), "{line}: {answer}");
    }
    daemon.running.terminate();
    let ended = daemon.running.wait().expect_code(0);
    assert!(ended.stderr.contains("DEBUG"), "the log has no DEBUG lines");
    assert!(!ended.stderr.contains(&daemon.token), "the token is in the log");
    let database = std::fs::read(polity.data_dir().join("polity.db")).expect("the database");
    let token = daemon.token.as_bytes();
    assert!(!database.windows(token.len()).any(|window| window == token), "the token is in the database");
}

#[test]
fn a_token_that_others_could_read_is_made_private() {
    let (_server, polity) = answering();
    let first = Daemon::start(&polity, "127.0.0.1:0");
    let before = first.token.clone();
    first.running.kill9();
    let path = polity.data_dir().join("token");
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o644)).expect("readable");
    let second = Daemon::start(&polity, "127.0.0.1:0");
    second.running.stderr_line("others could read");
    assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    assert_eq!(second.token, before, "the token must stay the same, so that programs can go on using it");
}

#[test]
fn a_daemon_goes_on_with_what_a_run_has_left() {
    let (_server, polity) = answering();
    polity.run(&["run", "--data", "data", "--timeout", "0s", "how much?"]).expect_code(124);
    let daemon = Daemon::start(&polity, "127.0.0.1:0");
    daemon.events(0, "task_idle");
    let (_, answers) = daemon.call("GET /api/messages?to=user", "");
    assert!(answers.contains("42"), "{answers}");
}
