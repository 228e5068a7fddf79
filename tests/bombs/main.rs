//! Runs commands that use up the machine, as an agent of a daemon that serves, and checks that the daemon answers
//! meanwhile. Beside such a bomb, another test may not even be able to start a thread. So the bombs have a test program
//! of their own: cargo runs test programs one after another.

#![cfg(target_os = "linux")]
#![expect(clippy::expect_used, clippy::panic, reason = "test helpers: a failure here is a failed test")]

#[path = "../daemon/support/serving.rs"]
#[expect(dead_code, reason = "the bombs need only a part of this")]
mod serving;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use polity_tests::{Answer, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use serving::Serving;

/// Commands that use up processes, memory, disk or output, each with the words for the limit that ends it.
const BOMBS: [(&str, &str); 4] = [
    (":(){ :|:& };:; sleep 100", "it had more than 300 processes"),
    (
        "for i in 1 2 3 4 5 6 7 8; do head -c 60000000 /dev/zero | tail -c 60000000 | sleep 100 & done; sleep 100",
        "more than 200000000 bytes of memory",
    ),
    (
        "i=0; while true; do i=$((i+1)); head -c 8000000 /dev/zero > f$i || exit 7; done",
        "it added more than 64000000 bytes",
    ),
    ("yes", "it printed more than 1000000 bytes"),
];

/// Maximum time for one answer of the daemon while a bomb goes off.
const WITHIN: Duration = Duration::from_secs(5);

/// Maximum time until a bomb runs or has ended. The test reaches this time only if something hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The text of the messages that begin further tasks beside the bombs.
const BESIDE: &str = "are you still there?";

/// The script of root. It runs the bombs one after another. Each command waits for a file before its bomb goes off.
fn bomber(asked: &Conversation) -> Answer {
    if asked.text_contains(BESIDE) {
        return Answer::say("still here");
    }
    let number = asked.results_of("bash").len();
    match BOMBS.get(number) {
        Some((bomb, _)) => {
            let command = format!("until [ -e go{number} ]; do sleep 0.05; done; {bomb}");
            Answer::call("bash", json!({"command": command}))
        }
        None => Answer::say("all bombs have gone off"),
    }
}

fn home(server: &ScriptedServer) -> Polity {
    let service = json!({
        "id": "one",
        "baseURL": server.base_url(),
        "model": "m",
        "capabilities": {"input": ["text"], "output": ["text", "tool_calling"]},
    });
    let limits = json!({
        "timeMs": 100_000, "processes": 300, "memoryBytes": 200_000_000, "diskBytes": 64_000_000,
        "outputBytes": 1_000_000,
    });
    // Allow commands. Otherwise, the person would be asked about them on a machine with the sandbox level `partial`.
    let policy = json!([{"tool": "bash", "decide": "allow"}]);
    let tools = json!({"policy": policy, "sandbox": {"limits": limits}});
    let app = json!({
        "discover": false,
        "language": "en",
        "retry": {"maxAttempts": 3, "baseDelayMs": 1, "maxDelayMs": 2},
        "tools": tools,
    });
    Polity::new(&json!({"services": [service]}), &app)
}

/// Sends a request, and checks that the daemon answers it, and answers it in time.
#[track_caller]
fn prompt_answer(daemon: &Serving, route: &str, body: &str) -> Value {
    let begun = Instant::now();
    let answer = daemon.call(route, body.as_bytes());
    let took = begun.elapsed();
    assert!([200, 201].contains(&answer.status), "{route}: {answer:?}");
    assert!(took < WITHIN, "{route} took {took:?}");
    answer.json()
}

/// Returns whether the command of this bomb runs.
fn runs(daemon: &Serving, number: usize) -> bool {
    let commands = prompt_answer(daemon, "GET /api/commands", "");
    let file = format!("-e go{number} ");
    let commands = commands.as_array().expect("commands").iter();
    commands.filter_map(|one| one["command"].as_str()).any(|command| command.contains(&file))
}

#[track_caller]
fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "this has not happened: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Lets one bomb go off, begins a task beside it, and reads from the daemon until the bomb has ended. Returns the number
/// of answers.
fn answers_beside(daemon: &Serving, project: &Path, number: usize) -> usize {
    wait_until("the command runs", || runs(daemon, number));
    fs::write(project.join(format!("go{number}")), "").expect("a file");
    let posted = prompt_answer(daemon, "POST /api/messages", &json!({"text": BESIDE}).to_string());
    let task = format!("GET /api/tasks/{}", posted["task"].as_str().expect("a task"));
    let mut answers = 1;
    wait_until("the bomb has ended", || {
        for route in ["GET /api/agents/root", "GET /api/tasks", task.as_str()] {
            prompt_answer(daemon, route, "");
        }
        answers += 4;
        !runs(daemon, number)
    });
    answers
}

#[test]
fn the_daemon_answers_while_bombs_of_an_agent_go_off() {
    let server = ScriptedServer::start(bomber);
    let polity = home(&server);
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    let daemon = Serving::start(&polity);
    let message = json!({"text": "work", "workspace": project});
    prompt_answer(&daemon, "POST /api/messages", &message.to_string());
    server.wait_until(PATIENCE, |requests| !requests.is_empty());
    if !server.requests()[0].conversation().offered_tools().contains(&"bash") {
        polity_tests::tell("not checked: this machine has no sandbox");
        return;
    }
    for (number, (_, limit)) in BOMBS.iter().enumerate() {
        let answers = answers_beside(&daemon, &project, number);
        println!("{answers} answers until the daemon said: {limit}");
    }
    let has_all = |asked: &Conversation| asked.results_of("bash").len() == BOMBS.len();
    server.wait_until(PATIENCE, |requests| requests.iter().any(|request| has_all(&request.conversation())));
    let asked = server.requests().into_iter().map(|request| request.conversation()).find(has_all);
    let results = asked.expect("the last request").results_of("bash");
    for (result, (bomb, limit)) in results.iter().zip(BOMBS) {
        assert!(result.text.contains(limit), "{bomb}: {}", result.text);
    }
    // The tasks that began beside the bombs come to their end, too.
    wait_until("every task is idle", || {
        let tasks = prompt_answer(&daemon, "GET /api/tasks", "");
        tasks["tasks"].as_array().expect("tasks").iter().all(|task| task["state"] == "idle")
    });
}
