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

/// Maximum wait for a request of an agent. The test reaches this time only if something hangs.
const PATIENCE: Duration = Duration::from_secs(300);

/// The header with which a client asks for a stream of events.
const STREAM: &str = "accept: text/event-stream\r\n";

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

/// Sends a request, and checks that the daemon answers it.
#[track_caller]
fn answer(daemon: &Serving, route: &str, body: &str) -> Value {
    let answer = daemon.call(route, body.as_bytes());
    assert!([200, 201].contains(&answer.status), "{route}: {answer:?}");
    answer.json()
}

/// Gives root a task, and returns the id of the task.
#[track_caller]
fn begin(daemon: &Serving, message: &Value) -> String {
    let posted = answer(daemon, "POST /api/messages", &message.to_string());
    posted["task"].as_str().expect("a task").to_owned()
}

/// Returns whether root has got the result of the command with this bomb.
fn has_ended(server: &ScriptedServer, number: usize) -> bool {
    server.requests().iter().any(|request| request.conversation().results_of("bash").len() > number)
}

/// Lets one bomb go off, begins a task beside it, and reads from the daemon until root has got the result of the bomb.
/// Returns the number of answers, and the task.
fn answers_beside(
    server: &ScriptedServer,
    daemon: &Serving,
    project: &Path,
    number: usize,
) -> (usize, String) {
    // The event comes before the command itself, which waits for the file.
    let waits = format!("-e go{number} ");
    drop(daemon.stream("GET /api/events?kind=tool_started", STREAM, "", &waits));
    assert!(!has_ended(server, number), "the bomb goes off too early");
    fs::write(project.join(format!("go{number}")), "").expect("a file");
    let task = begin(daemon, &json!({"text": BESIDE}));
    let mut answers = 1;
    let begun = Instant::now();
    // The command has a limit on its time, so the bomb ends in any case.
    loop {
        assert!(begun.elapsed() < PATIENCE, "root has not got the result of the bomb");
        let is_over = has_ended(server, number);
        for route in ["GET /api/agents/root", "GET /api/tasks", &format!("GET /api/tasks/{task}")] {
            answer(daemon, route, "");
            answers += 1;
        }
        if is_over {
            return (answers, task);
        }
    }
}

#[test]
fn the_daemon_answers_while_bombs_of_an_agent_go_off() {
    let server = ScriptedServer::start(bomber);
    let polity = home(&server);
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    let daemon = Serving::start(&polity);
    let mut tasks = vec![begin(&daemon, &json!({"text": "work", "workspace": project}))];
    server.wait_until(PATIENCE, |requests| !requests.is_empty());
    if !server.requests()[0].conversation().offered_tools().contains(&"bash") {
        polity_tests::tell("not checked: this machine has no sandbox");
        return;
    }
    for (number, (_, limit)) in BOMBS.iter().enumerate() {
        let (answers, task) = answers_beside(&server, &daemon, &project, number);
        tasks.push(task);
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
    for task in tasks {
        drop(daemon.stream(&format!("GET /api/events?task={task}"), STREAM, "", "event: task_idle"));
    }
}
