//! `polity fork`: a new task that begins as a copy of another task up to a turn, and goes on differently.

use std::fs;
use std::io::Write;
use std::process::Command;
use std::time::Duration;

use polity_tests::{Answer, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::{heard_from_agents, hire, hired};
use crate::support::play::hears;
use crate::support::serving::{Answered, Serving, answer_on};
use crate::support::{app, home, json_lines, last_asked, run, service};

const PATIENCE: Duration = Duration::from_secs(60);

/// Plays a root that hires a worker for the first prompt, and names a color in its answer to every later prompt.
fn colors(asked: &Conversation) -> Answer {
    if asked.role_name() == "worker" {
        return Answer::say("the worker is ready");
    }
    if let Some(answer) = hire(asked, "worker", "get ready") {
        return answer;
    }
    let last = asked.heard().pop().map(|heard| heard.text).unwrap_or_default();
    for color in ["blue", "green"] {
        if last.contains(color) {
            return Answer::say(format!("it is {color}, says {}", asked.model()));
        }
    }
    match heard_from_agents(asked).is_empty() {
        true => Answer::say("one moment"),
        false => Answer::say("all are ready"),
    }
}

#[track_caller]
fn ask(polity: &Polity, arguments: &[&str]) -> String {
    polity.run(&[arguments, &["--data", "data"]].concat()).expect_code(0).stdout
}

#[track_caller]
fn json_of(polity: &Polity, arguments: &[&str]) -> Value {
    serde_json::from_str(&ask(polity, &[arguments, &["--json"]].concat())).expect("JSON")
}

/// Returns the id of the only task.
#[track_caller]
fn only_task(polity: &Polity) -> String {
    json_of(polity, &["tasks"])["id"].as_str().expect("a task").to_owned()
}

/// Returns the id of the newest task.
#[track_caller]
fn newest_task(polity: &Polity) -> String {
    let tasks = ask(polity, &["tasks", "--limit", "1", "--json"]);
    json_lines(&tasks)[0]["id"].as_str().expect("a task").to_owned()
}

/// Returns the turn of root that began with the newest message of the person.
#[track_caller]
fn newest_turn(polity: &Polity, task: &str) -> String {
    let said = json_of(polity, &["agent", "root", "--conversation", "--task", task]);
    let entries = said["entries"].as_array().expect("entries");
    let heard = entries.iter().rfind(|entry| entry["record"]["message"]["from"] == "user");
    heard.expect("a message of the person")["turn"].to_string()
}

/// Returns every row of a task, as text.
fn rows(polity: &Polity, task: &str) -> Vec<String> {
    let mut database = Database::read(&polity.data_dir());
    let tables: [Vec<[String; 2]>; 6] = [
        database.texts(
            "SELECT task, json_array(seq, id, sender, receiver, body, attachments, state, answered_by, answered_in,
                reminded, sent_in, turn, created_at) FROM messages ORDER BY seq",
        ),
        database.texts("SELECT task, json_array(seq, agent, turn, message, body, created_at) FROM records ORDER BY seq"),
        database.texts("SELECT task, json_array(id, agent, began_by, works_on, state) FROM turns ORDER BY id"),
        database.texts(
            "SELECT task, json_array(id, parent, role, brief, hired_in, ended_at, paused_at) FROM agents
                WHERE task IS NOT NULL ORDER BY id",
        ),
        database.texts("SELECT task, json_array(id, creator, name, prompt, service) FROM roles ORDER BY id"),
        database.texts("SELECT task, json_array(seq, kind, body) FROM events WHERE task IS NOT NULL ORDER BY seq"),
    ];
    let all = tables.into_iter().flatten();
    all.filter(|[of, _]| of == task).map(|[_, row]| row).collect()
}

/// Sends a request for a fork, with an idempotency key.
fn fork_keyed(serving: &Serving, line: &str, body: &str) -> Answered {
    let length = body.len();
    let more = format!(
        "idempotency-key: green-1\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n"
    );
    let mut stream = serving.connect();
    stream.write_all((serving.head(line, &more) + body).as_bytes()).expect("a request");
    answer_on(stream)
}

#[test]
fn a_fork_goes_on_differently_and_the_task_stays_as_it_is() {
    let server = ScriptedServer::start(colors);
    let services = [service("one", &server, &["text"]), service("two", &server, &["text"])];
    let polity = Polity::new(&json!({"services": services}), &app(&json!({})));
    assert!(run(&polity, &["hello"]).expect_code(0).stdout.contains("all are ready"));
    let serving = Serving::start(&polity);
    let task = only_task(&polity);
    let told = ask(&polity, &["send", "is it blue?", "--task", &task, "--wait"]);
    assert!(told.contains("it is blue, says one-model"), "{told}");
    let worker =
        json_of(&polity, &["agents", "--role", "worker"])["id"].as_str().expect("an agent").to_owned();
    let said = json_of(&polity, &["agent", "root", "--conversation", "--task", &task]);
    let entries = said["entries"].as_array().expect("entries");
    let last = entries.last().expect("an entry")["turn"].to_string();
    let before = rows(&polity, &task);
    let asked = server.request_count();

    let text =
        json!({"turn": last.parse::<i64>().expect("a number"), "service": "two", "text": "is it green?"});
    let line = format!("POST /api/tasks/{task}/fork");
    let keyed = |serving: &Serving| fork_keyed(serving, &line, &text.to_string());
    let forked = keyed(&serving);
    assert_eq!(forked.status, 201, "{forked:?}");
    let new = forked.json()["task"].as_str().expect("a task").to_owned();
    // The test kills the daemon, and the client repeats the request. Even so, there is only one fork.
    serving.running.kill9();
    let serving = Serving::start(&polity);
    let again = keyed(&serving);
    assert_eq!((again.status, &again.json()["task"]), (200, &json!(new)));
    assert_eq!(ask(&polity, &["tasks", "--json"]).lines().count(), 2);

    server.wait_until(PATIENCE, |requests| {
        requests.iter().skip(asked).any(|request| request.model == "two-model")
    });
    let answered = || {
        let messages = ask(&polity, &["messages", "--task", &new]);
        messages.contains("it is green, says two-model").then_some(messages)
    };
    let messages = std::iter::repeat_with(answered).take(600).find_map(|found| {
        found.or_else(|| {
            std::thread::sleep(Duration::from_millis(50));
            None
        })
    });
    let messages = messages.expect("the fork answers");
    assert!(messages.contains("all are ready") && !messages.contains("blue"), "{messages}");
    for request in server.requests().iter().skip(asked) {
        let raw = String::from_utf8_lossy(&request.raw);
        assert!(raw.contains("get ready"), "the fork remembers what it did: {raw}");
        assert!(!raw.contains(&worker), "{worker} in {raw}");
    }
    assert_eq!(rows(&polity, &task), before);

    // The person can write to the worker's clone. The original task does not change.
    let clone = json_of(&polity, &["agents", "--task", &new, "--role", "worker"])["id"].clone();
    let clone = clone.as_str().expect("an agent");
    assert_ne!(clone, worker);
    let told = ask(&polity, &["send", "are you there?", "--to", clone, "--wait"]);
    assert!(told.contains("the worker is ready"), "{told}");
    assert_eq!(rows(&polity, &task), before);

    // The daemon refuses both of these forks. The first names a turn of another task. The second has a new prompt, but
    // for a turn that the person did not begin.
    let refused = polity.run(&["fork", &new, "--turn", &last, "--data", "data"]).expect_code(2);
    assert!(refused.stderr.contains("must be a turn of the task: "), "{}", refused.stderr);
    let newest = newest_turn(&polity, &new);
    assert!(refused.stderr.contains(&format!("{newest} (root)")), "{}", refused.stderr);
    let hired = entries.iter().find(|entry| entry["record"]["message"]["from"] == json!(worker));
    let turn = hired.expect("a report")["turn"].to_string();
    let refused =
        polity.run(&["fork", &task, "--turn", &turn, "--prompt", "no", "--data", "data"]).expect_code(2);
    assert!(refused.stderr.contains("that your message began: "), "{}", refused.stderr);
    assert!(refused.stderr.contains(&format!("{last} (root)")), "{}", refused.stderr);
    let ended = polity.run(&["fork", &task, "--turn", &turn, "--wait", "--data", "data"]).expect_code(0);
    assert!(ended.stdout.contains("all are ready"), "{}", ended.stdout);

    // The command with `--wait` names the new task, and `polity tasks` marks both forks.
    let tasks = json_lines(&ask(&polity, &["tasks", "--json"]));
    let forks: Vec<&str> = tasks
        .iter()
        .filter(|one| one["forkedFrom"] == json!(task))
        .filter_map(|one| one["id"].as_str())
        .collect();
    assert_eq!((tasks.len(), forks.len()), (3, 2), "{tasks:?}");
    let newest = forks.iter().find(|id| **id != new).expect("the newest fork");
    assert!(ended.stderr.starts_with(&format!("polity: {newest}: ")), "{}", ended.stderr);
    let words = ask(&polity, &["tasks", "--all"]);
    assert_eq!(words.matches(&format!("fork of {task}")).count(), 2, "{words}");
}

/// Plays a root that hires a worker. The worker stores a note as an artifact. When the person wants to see the note,
/// root asks the worker, and the worker opens the artifact.
fn note(asked: &Conversation) -> Answer {
    if asked.role_name() == "worker" {
        let Some(stored) = asked.results_of("put_artifact").pop() else {
            let note = json!({"type": "note", "content": "the sky is blue"});
            return Answer::call("put_artifact", note);
        };
        let reference = stored.value["ref"].as_str().unwrap_or_default();
        if !hears(asked, "what did you note") {
            return Answer::say(format!("noted in {reference}"));
        }
        return match (asked.results_of("get_artifact").pop(), asked.results_of("list_artifacts").pop()) {
            (Some(read), Some(list)) => Answer::say(format!("it says: {}; listed: {}", read.text, list.text)),
            _ => {
                Answer::call("get_artifact", json!({"ref": reference})).and_call("list_artifacts", json!({}))
            }
        };
    }
    if let Some(answer) = hire(asked, "worker", "please note it") {
        return answer;
    }
    let said = heard_from_agents(asked);
    if !hears(asked, "show me the note") {
        return Answer::say(said.last().map_or("one moment", |_| "all is noted"));
    }
    match asked.results_of("send_message").pop() {
        None => {
            let payload = json!({"message_type": "collaboration_request", "text": "what did you note?"});
            Answer::call("send_message", json!({"to": hired(asked, "worker"), "payload": payload}))
        }
        Some(sent) if sent.error().is_some() => Answer::say(format!("refused: {}", sent.text)),
        Some(_) => {
            let read = said.into_iter().rfind(|said| said.contains("it says"));
            Answer::say(read.unwrap_or_else(|| "one moment".to_owned()))
        }
    }
}

#[test]
fn an_agent_of_a_fork_writes_to_its_contacts_and_opens_its_artifacts() {
    let server = ScriptedServer::start(note);
    let polity = home(&server, &json!({}));
    run(&polity, &["take a note"]).expect_code(0);
    let _serving = Serving::start(&polity);
    let task = only_task(&polity);
    let told = ask(&polity, &["send", "show me the note", "--task", &task, "--wait"]);
    assert!(told.contains("the sky is blue"), "{told}");
    let worker =
        json_of(&polity, &["agents", "--role", "worker"])["id"].as_str().expect("an agent").to_owned();
    let (before, asked) = (rows(&polity, &task), server.request_count());

    // In the fork, root knows the clone of the worker. The clone may open the artifacts that the worker stored.
    let turn = newest_turn(&polity, &task);
    let told = ask(&polity, &["fork", &task, "--turn", &turn, "--wait"]);
    assert!(told.contains("the sky is blue"), "{told}");
    let requests = server.requests();
    let asked = requests.iter().skip(asked).map(|request| request.conversation());
    let clones: Vec<String> =
        asked.filter(|asked| asked.role_name() == "worker").map(|asked| asked.agent_id()).collect();
    assert!(!clones.is_empty() && !clones.contains(&worker), "{worker}: {clones:?}");
    assert_eq!(rows(&polity, &task), before);

    // The agents of the fork and the person find the artifact in the fork, and in a fork of the fork.
    let stored = json_of(&polity, &["artifacts", "--task", &task]);
    let id = stored["id"].as_str().expect("an id");
    let listed = format!(r#"listed: {{"artifacts":[{{"ref":"artifact:{id}""#);
    assert!(told.contains(&listed), "{listed} is not in: {told}");
    let fork = newest_task(&polity);
    ask(&polity, &["fork", &fork, "--turn", &newest_turn(&polity, &fork), "--wait"]);
    for task in [fork, newest_task(&polity)] {
        assert_eq!(json_of(&polity, &["artifacts", "--task", &task]), stored, "{task}");
        let found = ask(&polity, &["search", "sky is blue", "--kind", "artifact", "--task", &task]);
        assert!(found.contains(id), "{task}: {found}");
    }
    server.assert_clean();
}

/// The script of root: it writes a file, and then tells the user the result of this call.
fn writer(asked: &Conversation) -> Answer {
    match asked.results_of("str_replace_editor").as_slice() {
        [] => Answer::call(
            "str_replace_editor",
            json!({"command": "create", "path": "note.txt", "file_text": "made by an agent\n"}),
        ),
        [result, ..] => Answer::say(format!("told: {}", result.text)),
    }
}

#[test]
fn a_fork_may_only_read_the_directory_of_the_person() {
    let server = ScriptedServer::start(writer);
    let polity = home(&server, &json!({"language": "en"}));
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    run(&polity, &["write", "--workspace", "project"]).expect_code(0);
    let note = project.join("note.txt");
    assert_eq!(fs::read_to_string(&note).expect("a file"), "made by an agent\n");
    fs::remove_file(&note).expect("a file");

    let _serving = Serving::start(&polity);
    let task = only_task(&polity);
    let told = ask(&polity, &["fork", &task, "--turn", &newest_turn(&polity, &task), "--wait"]);
    assert!(told.contains("workspace_refused"), "{told}");
    let system = last_asked(&server).system();
    assert!(system.contains("\nworkspace=a directory of the user, read-only\n"), "{system}");
    assert!(!note.exists());
}

/// The script of root: it writes a file after the first prompt, changes it after the second prompt, and shows it when
/// the person wants to look at it.
fn editor(asked: &Conversation) -> Answer {
    let edit = |arguments: Value| Answer::call("str_replace_editor", arguments);
    let edits = asked.results_of("str_replace_editor");
    let newest = asked.heard().pop().map(|heard| heard.text).unwrap_or_default();
    match (newest.trim(), edits.as_slice()) {
        (text, []) if text.contains("begin") => {
            edit(json!({"command": "create", "path": "note.txt", "file_text": "alpha\n"}))
        }
        (text, [_]) if text.contains("go on") => {
            edit(json!({"command": "str_replace", "path": "note.txt", "old_str": "alpha", "new_str": "beta"}))
        }
        (text, [_]) if text.contains("look") => edit(json!({"command": "view", "path": "note.txt"})),
        (text, [_, viewed]) if text.contains("look") => Answer::say(format!("seen: {}", viewed.text)),
        _ => Answer::say("ready"),
    }
}

#[test]
fn a_fork_has_files_of_its_own_as_they_stood_at_the_turn() {
    if Command::new("git").arg("--version").output().is_err() {
        polity_tests::tell("not checked: git is not installed");
        return;
    }
    let server = ScriptedServer::start(editor);
    let polity = home(&server, &json!({}));
    run(&polity, &["begin"]).expect_code(0);
    let _serving = Serving::start(&polity);
    let task = only_task(&polity);
    ask(&polity, &["send", "go on", "--task", &task, "--wait"]);
    let file = |task: &str| {
        let path = polity.data_dir().join("workspaces").join(task).join("main/note.txt");
        fs::read_to_string(path).expect("a file")
    };
    assert_eq!(file(&task), "beta\n");

    let turn = newest_turn(&polity, &task);
    let told = ask(&polity, &["fork", &task, "--turn", &turn, "--prompt", "look", "--wait"]);
    assert!(told.contains("alpha") && !told.contains("beta"), "{told}");
    // In a second fork, root changes the file again. This change does not reach the original task and the first fork.
    ask(&polity, &["fork", &task, "--turn", &turn, "--wait"]);
    let tasks = json_lines(&ask(&polity, &["tasks", "--json"]));
    let forks = tasks.iter().filter_map(|one| one["id"].as_str()).filter(|id| *id != task);
    let mut files: Vec<String> = forks.map(file).collect();
    files.sort();
    assert_eq!(
        (files.as_slice(), file(&task).as_str()),
        (&["alpha\n", "beta\n"].map(str::to_owned)[..], "beta\n")
    );
    server.assert_clean();
}

/// Plays a root that asks the person for a color, and then paints in this color.
fn painter(asked: &Conversation) -> Answer {
    if let Some(color) = ["red", "green"].into_iter().find(|color| hears(asked, color)) {
        return Answer::say(format!("painted {color}"));
    }
    match asked.has_called("send_message") {
        true => Answer::say("I wait for you"),
        false => {
            let payload = json!({"message_type": "collaboration_request", "text": "which color?"});
            Answer::call("send_message", json!({"to": "user", "payload": payload}))
        }
    }
}

#[test]
fn a_question_of_an_agent_gets_another_answer_in_a_fork() {
    let server = ScriptedServer::start(painter);
    let polity = home(&server, &json!({}));
    assert!(run(&polity, &["paint it"]).expect_code(6).stdout.contains("which color?"));
    let serving = Serving::start(&polity);
    let task = only_task(&polity);
    let told = ask(&polity, &["send", "red", "--task", &task, "--wait"]);
    assert!(told.contains("painted red"), "{told}");
    let before = rows(&polity, &task);

    let turn = newest_turn(&polity, &task);
    let told = ask(&polity, &["fork", &task, "--turn", &turn, "--answer", "green", "--wait"]);
    assert!(told.contains("painted green") && !told.contains("red"), "{told}");
    // The fork has a copy of the question. The new answer belongs to this copy.
    let tasks = json_lines(&ask(&polity, &["tasks", "--json"]));
    let fork = tasks.iter().filter_map(|one| one["id"].as_str()).find(|id| *id != task).expect("a fork");
    let messages = serving.call(&format!("GET /api/messages?task={fork}"), b"").json();
    let messages = messages["messages"].as_array().expect("messages");
    let of = |text: &str| messages.iter().find(|message| message["text"] == text).expect("a message");
    let (question, answer) = (of("which color?"), of("green"));
    assert_eq!(question["answeredBy"], answer["id"], "{messages:?}");
    assert_eq!(rows(&polity, &task), before);
    server.assert_clean();
}

#[test]
fn a_question_about_a_call_is_asked_again_in_a_fork_and_gets_another_answer() {
    let server = ScriptedServer::start(writer);
    let policy = json!([{"group": "files", "write": true, "decide": "ask"}]);
    let polity = home(&server, &json!({"language": "en", "tools": {"policy": policy}}));
    run(&polity, &["write"]).expect_code(6);
    let _serving = Serving::start(&polity);
    let task = only_task(&polity);
    ask(&polity, &["approve", "q1"]);
    ask(&polity, &["run", "--resume"]);
    let note = |task: &str| polity.data_dir().join("workspaces").join(task).join("main/note.txt");
    assert!(note(&task).exists());
    let before = rows(&polity, &task);

    let turn = newest_turn(&polity, &task);
    polity.run(&["fork", &task, "--turn", &turn, "--wait", "--data", "data"]).expect_code(6);
    ask(&polity, &["deny", "q2", "not again"]);
    let told = ask(&polity, &["run", "--resume"]);
    assert!(told.contains("approval_denied") && told.contains("not again"), "{told}");
    let asked = json_lines(&ask(&polity, &["approvals", "--all", "--json"]));
    let of = |id: &str| asked.iter().find(|one| one["id"] == id).expect("a question");
    assert_eq!((&of("q1")["state"], &of("q1")["task"]), (&json!("allowed"), &json!(task)));
    let fork = of("q2")["task"].as_str().expect("a task");
    assert_eq!((&of("q2")["state"], fork == task), (&json!("denied"), false));
    assert!(!note(fork).exists());
    assert_eq!(rows(&polity, &task), before);
}
