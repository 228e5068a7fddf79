//! Tool calls that the user must allow. The user answers the question in `polity run`, in a chat, or with another
//! command. The questions, answers and permissions survive `kill -9`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use polity_tests::{Answer, Call, Conversation, Output, Polity, Running, ScriptedServer};
use serde_json::{Value, json};

use crate::support::database::Database;
use crate::support::hiring::brief;
use crate::support::serving::Serving;
use crate::support::{app, asked_by, home, json_lines, last_asked, run};

/// Returns an `app.json` whose policy asks the user about each change of a file.
fn asks() -> Value {
    app(&json!({"language": "en", "tools": {"policy": [{"group": "files", "write": true, "decide": "ask"}]}}))
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

/// Creates a home with a directory `project`, and a server whose script lets root write the file `note.txt` there.
fn wanting() -> (ScriptedServer, Polity, PathBuf) {
    let server = ScriptedServer::start(writer);
    let polity = home(&server, &json!({}));
    polity.write_config("app.json", &asks().to_string());
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    (server, polity, project.join("note.txt"))
}

fn ask(polity: &Polity, arguments: &[&str]) -> Output {
    polity.run(&[arguments, &["--data", "data"]].concat())
}

fn rows(polity: &Polity, arguments: &[&str]) -> Vec<Value> {
    json_lines(&ask(polity, &[arguments, &["--json"]].concat()).expect_code(0).stdout)
}

#[track_caller]
fn serve(polity: &Polity) -> Running {
    let daemon = polity.spawn(&["serve", "--data", "data", "--listen", "127.0.0.1:0"]);
    daemon.stderr_line("ready");
    daemon
}

#[test]
fn a_run_without_a_terminal_ends_with_6_and_the_answer_may_come_later() {
    let (_server, polity, note) = wanting();
    let output = run(&polity, &["write", "--workspace", "project"]).expect_code(6);
    assert!(!note.exists());
    for part in [
        "wants to call str_replace_editor",
        "+made by an agent",
        // No daemon runs now, so `polity approve` alone would fail.
        "→ on a terminal: polity run --data data --resume\n",
        "→ first start a daemon: polity serve --data data\n",
        "→ polity approve --data data q1\n",
        "→ polity deny --data data q1\n",
    ] {
        assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
    }
    // Without a daemon, commands can show the question, but cannot answer it.
    let open = rows(&polity, &["approvals"]);
    assert_eq!((&open[0]["id"], &open[0]["state"], open.len()), (&json!("q1"), &json!("open"), 1));
    assert_eq!(open[0]["arguments"]["path"], "note.txt");
    ask(&polity, &["approve", "q1"]).expect_code(2);

    let daemon = serve(&polity);
    let answered = ask(&polity, &["approve", "q1"]).expect_code(0);
    assert!(answered.stderr.contains("root may call str_replace_editor"), "{}", answered.stderr);
    ask(&polity, &["run", "--resume"]).expect_code(0);
    assert_eq!(fs::read_to_string(&note).expect("a file"), "made by an agent\n");
    let again = ask(&polity, &["deny", "q1"]).expect_code(2);
    assert!(again.stderr.contains("has ended before: allowed"), "{}", again.stderr);
    ask(&polity, &["deny", "q77"]).expect_code(2);
    daemon.terminate();
    daemon.wait().expect_code(0);
}

#[test]
fn a_question_survives_kill_9_and_the_model_is_told_the_reason_of_a_refusal() {
    let (_server, polity, note) = wanting();
    let daemon = serve(&polity);
    let asked = ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    assert!(asked.stderr.contains("root (root) wants to call"), "{}", asked.stderr);
    daemon.kill9();
    let _daemon = serve(&polity);
    ask(&polity, &["deny", "q1", "not in my project"]).expect_code(0);
    let output = ask(&polity, &["run", "--resume"]).expect_code(0);
    assert!(
        output.stdout.contains("approval_denied") && output.stdout.contains("not in my project"),
        "{output:?}"
    );
    assert!(!note.exists());
    let all = rows(&polity, &["approvals", "--all"]);
    assert_eq!((&all[0]["state"], &all[0]["reason"]), (&json!("denied"), &json!("not in my project")));
}

#[test]
fn what_is_always_allowed_is_not_asked_again_until_it_is_removed() {
    let (_server, polity, note) = wanting();
    let _daemon = serve(&polity);
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    ask(&polity, &["approve", "q1", "--always"]).expect_code(0);
    ask(&polity, &["run", "--resume"]).expect_code(0);
    fs::remove_file(&note).expect("a file");
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(0);
    assert!(note.exists());
    let permissions = rows(&polity, &["approvals", "--permissions"]);
    assert_eq!(
        (&permissions[0]["id"], &permissions[0]["tool"]),
        (&json!("p1"), &json!("str_replace_editor"))
    );
    ask(&polity, &["approvals", "--remove", "p1"]).expect_code(0);
    fs::remove_file(&note).expect("a file");
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    assert!(!note.exists());
}

#[test]
fn what_is_allowed_for_one_task_is_asked_again_in_the_next_one() {
    let (_server, polity, note) = wanting();
    let _daemon = serve(&polity);
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    let asked = rows(&polity, &["approvals"]).remove(0);
    let allowed = ask(&polity, &["approve", "q1", "--task"]).expect_code(0);
    let words = "root may call str_replace_editor, and may make such calls until the end of the task";
    assert!(allowed.stderr.contains(words), "{}", allowed.stderr);
    ask(&polity, &["run", "--resume"]).expect_code(0);
    assert!(note.exists());
    let permissions = rows(&polity, &["approvals", "--permissions"]);
    assert_eq!((&permissions[0]["task"], permissions.len()), (&asked["task"], 1), "{permissions:?}");
    fs::remove_file(&note).expect("a file");
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    assert!(!note.exists());
}

/// Returns an `app.json` with this policy. Each machine runs commands, if need be without a sandbox.
fn with_commands(policy: &Value) -> Value {
    let tools = json!({"policy": policy, "sandbox": {"allowNone": true}});
    app(&json!({"language": "en", "tools": tools}))
}

/// A tool understands the name of an argument in any style. So the policy must understand it, too.
#[test]
fn a_rule_about_a_command_fits_however_the_model_writes_the_argument() {
    let spelled = [
        json!({"command": "git push"}),
        json!({"Command": "git push"}),
        json!({"COMMAND": "git push"}),
        json!({"com_mand": "git push"}),
        json!({"command": null, "Command": "git push"}),
    ];
    let count = spelled.len();
    let server = ScriptedServer::start(move |asked| match asked.results_of("bash").is_empty() {
        true => Answer::calls(spelled.iter().map(|spelled| Call::new("bash", spelled.clone())).collect()),
        false => Answer::say("done"),
    });
    let polity = home(&server, &json!({}));
    let deny = json!({"tool": "bash", "command": "git push*", "decide": "deny"});
    let policy = json!([deny, {"tool": "bash", "decide": "allow"}]);
    polity.write_config("app.json", &with_commands(&policy).to_string());
    run(&polity, &["push"]).expect_code(0);
    let results = last_asked(&server).results_of("bash");
    assert_eq!(results.len(), count, "{results:?}");
    for result in results {
        assert_eq!(
            (result.error(), &result.value["rule"]),
            (Some("tool_not_permitted"), &json!("tools.policy[0]"))
        );
    }
}

#[test]
fn a_permission_for_one_command_covers_no_other_however_the_model_writes_the_argument() {
    let server = ScriptedServer::start(|asked| {
        let (name, command) = match asked.text_contains("run the other") {
            true => ("COMMAND", "echo other"),
            false => ("Command", "echo one"),
        };
        match asked.results_of("bash").as_slice() {
            [] => Answer::call("bash", json!({ name: command })),
            [result, ..] => Answer::say(format!("told: {}", result.text)),
        }
    });
    let polity = home(&server, &json!({}));
    let policy = json!([{"tool": "bash", "decide": "ask"}]);
    polity.write_config("app.json", &with_commands(&policy).to_string());
    let _daemon = serve(&polity);
    ask(&polity, &["run", "run the first"]).expect_code(6);
    ask(&polity, &["approve", "q1", "--always"]).expect_code(0);
    let told = ask(&polity, &["run", "--resume"]).expect_code(0).stdout;
    assert!(told.contains("one\\n"), "{told}");
    let permissions = rows(&polity, &["approvals", "--permissions"]);
    let calls = permissions[0]["calls"].as_str().expect("words");
    assert!(calls.ends_with(": echo one"), "{calls}");
    ask(&polity, &["run", "run the first"]).expect_code(0);
    ask(&polity, &["run", "run the other"]).expect_code(6);
    let open = rows(&polity, &["approvals"]);
    assert_eq!((&open[0]["arguments"], open.len()), (&json!({"COMMAND": "echo other"}), 1), "{open:?}");
}

/// Nobody answers the question, and no command waits for the answer. So the daemon itself must end the question when
/// the time for an answer is up.
#[test]
fn a_question_that_nobody_answers_expires_and_the_answer_is_no() {
    let (_server, polity, note) = wanting();
    let mut settings = asks();
    settings["tools"]["approval"] = json!({"timeoutMs": 300});
    polity.write_config("app.json", &settings.to_string());
    let daemon = Serving::start(&polity);
    let message = json!({"text": "write", "workspace": note.parent().expect("a directory")});
    let posted = daemon.call("POST /api/messages", message.to_string().as_bytes());
    assert_eq!(posted.status, 201, "{posted:?}");
    let head = "accept: text/event-stream\r\n";
    drop(daemon.stream("GET /api/events?kind=approval_ended", head, "", "\"state\":\"expired\""));
    let output = ask(&polity, &["run", "--resume"]).expect_code(0);
    assert!(output.stdout.contains("told: ") && output.stdout.contains("approval_expired"), "{output:?}");
    assert!(!note.exists());
    let all = rows(&polity, &["approvals", "--all"]);
    assert_eq!((&all[0]["id"], &all[0]["state"], all.len()), (&json!("q1"), &json!("expired"), 1));
    let late = ask(&polity, &["approve", "q1"]).expect_code(2);
    assert!(late.stderr.contains("has ended before: expired"), "{}", late.stderr);
    assert!(!note.exists());
}

/// No daemon runs when the time for an answer is up. So the next daemon must end the question when it starts.
#[test]
fn a_question_whose_time_passes_while_no_daemon_runs_expires_at_the_next_start() {
    let (server, polity, note) = wanting();
    let daemon = serve(&polity);
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    daemon.kill9();
    let mut database = Database::write(&polity.data_dir());
    // A day is the default time limit.
    assert_eq!(database.number("SELECT expires_at - asked_at FROM approvals"), 24 * 60 * 60 * 1000);
    database.execute("UPDATE approvals SET expires_at = asked_at");
    drop(database);
    let open = rows(&polity, &["approvals"]);
    assert_eq!((&open[0]["id"], &open[0]["state"], open.len()), (&json!("q1"), &json!("open"), 1));

    let daemon = Serving::start(&polity);
    let head = "accept: text/event-stream\r\n";
    drop(daemon.stream("GET /api/events?kind=approval_ended", head, "", "\"state\":\"expired\""));
    let output = ask(&polity, &["run", "--resume"]).expect_code(0);
    assert!(output.stdout.contains("told: ") && output.stdout.contains("approval_expired"), "{output:?}");
    let told = asked_by(&server, "root").pop().expect("a request").results_of("str_replace_editor");
    assert_eq!((told[0].error(), told.len()), (Some("approval_expired"), 1), "{told:?}");
    let words = "The user did not answer in time whether str_replace_editor may run; nothing ran. Continue without it, or report what is missing.";
    assert_eq!(told[0].value["message"], words);
    let all = rows(&polity, &["approvals", "--all"]);
    assert_eq!((&all[0]["id"], &all[0]["state"], all.len()), (&json!("q1"), &json!("expired"), 1));

    for late in ["approve", "deny"] {
        let refused = ask(&polity, &[late, "q1"]).expect_code(2);
        assert!(refused.stderr.contains("the question `q1` has ended before: expired"), "{}", refused.stderr);
    }
    assert!(!note.exists());
    let all = rows(&polity, &["approvals", "--all"]);
    assert_eq!((&all[0]["state"], all.len()), (&json!("expired"), 1));
}

/// Plays root and two writers. Root hires both writers at once. Each writer writes a file with its own name, and tells
/// root the result of this call.
fn two_writers(asked: &Conversation) -> Answer {
    const WRITERS: [&str; 2] = ["first", "second"];
    if let Some((writer, _)) = asked.agent_id().split_once('-') {
        let file =
            json!({"command": "create", "path": format!("{writer}.txt"), "file_text": "made by an agent\n"});
        return match asked.results_of("str_replace_editor").as_slice() {
            [] => Answer::call("str_replace_editor", file),
            [result, ..] => Answer::say(format!("{writer} was told: {}", result.text)),
        };
    }
    let hire = |role: &str| {
        let role = json!({"name": role, "rolePrompt": "You write."});
        json!({"role": role, "taskBrief": brief("Write"), "initialMessage": {"text": "write"}})
    };
    if asked.results_of("spawn_agent_with_task").is_empty() {
        let [first, second] = WRITERS.map(hire);
        return Answer::call("spawn_agent_with_task", first).and_call("spawn_agent_with_task", second);
    }
    match WRITERS.iter().all(|writer| asked.text_contains(&format!("{writer} was told"))) {
        true => Answer::say("both have reported"),
        false => Answer::say("waiting for both"),
    }
}

/// Two agents ask at the same time. The user answers both questions, with two processes that run at the same time.
#[test]
fn two_agents_ask_at_once_and_each_gets_its_own_answer() {
    let server = ScriptedServer::start(two_writers);
    let polity = home(&server, &json!({}));
    polity.write_config("app.json", &asks().to_string());
    let project = polity.home().join("project");
    fs::create_dir(&project).expect("a directory");
    let _daemon = serve(&polity);
    // The command ends when all other work is done and only open questions are left. So both questions are open now.
    let output = ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    // Each command stands alone behind its arrow, so that it works if it is pasted.
    for command in ["→ polity approve --data data q1\n", "→ polity deny --data data q2\n"] {
        assert!(output.stderr.contains(command), "{command}: {}", output.stderr);
    }
    let open = rows(&polity, &["approvals"]);
    assert_eq!(open.len(), 2, "{open:?}");
    let question = |writer: &str| {
        let is_of = |row: &&Value| row["agent"].as_str().is_some_and(|agent| agent.starts_with(writer));
        let row = open.iter().find(is_of).unwrap_or_else(|| panic!("{writer} has not asked: {open:?}"));
        assert_eq!(row["arguments"]["path"], format!("{writer}.txt"));
        ["id", "agent"].map(|name| row[name].as_str().expect("an id").to_owned())
    };
    let [[first, first_agent], [second, second_agent]] = ["first", "second"].map(question);
    let denied = polity.spawn(&["deny", &second, "one is enough", "--data", "data"]);
    let allowed = polity.spawn(&["approve", &first, "--data", "data"]);
    denied.wait().expect_code(0);
    allowed.wait().expect_code(0);

    let output = ask(&polity, &["run", "--resume"]).expect_code(0);
    assert!(output.stdout.contains("both have reported"), "{}", output.stdout);
    assert_eq!(fs::read_to_string(project.join("first.txt")).expect("a file"), "made by an agent\n");
    assert!(!project.join("second.txt").exists());
    let told = |agent: &str| {
        let last = asked_by(&server, agent).pop().expect("a request");
        last.results_of("str_replace_editor").pop().expect("a result")
    };
    assert_eq!(told(&first_agent).error(), None);
    let refused = told(&second_agent);
    assert_eq!(
        (refused.error(), &refused.value["reason"]),
        (Some("approval_denied"), &json!("one is enough"))
    );
    let all = rows(&polity, &["approvals", "--all"]);
    let ended = |id: &str| all.iter().find(|row| row["id"] == id).map(|row| row["state"].clone());
    assert_eq!((ended(&first), ended(&second)), (Some(json!("allowed")), Some(json!("denied"))));
}

#[test]
fn a_question_is_answered_on_the_terminal() {
    let (_server, polity, note) = wanting();
    let arguments = ["run", "write", "--workspace", "project", "--data", "data"];
    let (running, mut keyboard) = polity.spawn_with_keyboard(&arguments);
    running.stdout_line("y yes");
    assert!(!note.exists());
    // The line `perhaps` is not an answer. It allows nothing, and the command prints the possible answers again.
    writeln!(keyboard, "perhaps").expect("a keyboard");
    writeln!(keyboard, "y").expect("a keyboard");
    let output = running.wait().expect_code(0);
    assert!(output.stdout.contains("root may call str_replace_editor"), "{}", output.stdout);
    assert!(note.exists());
}

#[test]
fn a_refusal_on_the_terminal_is_told_in_one_line() {
    let (_server, polity, note) = wanting();
    let arguments = ["run", "write", "--workspace", "project", "--data", "data"];
    let (running, mut keyboard) = polity.spawn_with_keyboard(&arguments);
    running.stdout_line("y yes");
    writeln!(keyboard, "n").expect("a keyboard");
    let output = running.wait().expect_code(0);
    assert!(output.stdout.contains("root may not call str_replace_editor"), "{}", output.stdout);
    for again in ["not allowed to call", "was refused str_replace_editor"] {
        assert!(!output.stdout.contains(again), "{again}: {}", output.stdout);
    }
    assert!(!note.exists());
}

/// The latest task is answered, and two older tasks ask.
#[test]
fn a_resumed_run_asks_the_questions_of_all_tasks() {
    let server = ScriptedServer::start(|asked| match asked.text_contains("only greet") {
        true => Answer::say("hello"),
        false => writer(asked),
    });
    let polity = home(&server, &json!({}));
    polity.write_config("app.json", &asks().to_string());
    for prompt in ["write first", "write second"] {
        run(&polity, &[prompt]).expect_code(6);
    }
    run(&polity, &["only greet"]).expect_code(0);
    let resumed = run(&polity, &["--resume"]).expect_code(0);
    for words in [
        "[task: write first]",
        "[task: write second]",
        "polity approve --data data q1",
        "polity approve --data data q2",
    ] {
        assert!(resumed.stderr.contains(words), "{words}: {}", resumed.stderr);
    }

    let (running, mut keyboard) = polity.spawn_with_keyboard(&["run", "--resume", "--data", "data"]);
    running.stdout_wait_times("y yes", 1);
    writeln!(keyboard, "y").expect("a keyboard");
    running.stdout_wait_times("y yes", 2);
    writeln!(keyboard, "n").expect("a keyboard");
    running.wait().expect_code(0);
    let all = rows(&polity, &["approvals", "--all"]);
    let state = |id: &str| all.iter().find(|row| row["id"] == id).map(|row| row["state"].clone());
    assert_eq!((state("q1"), state("q2")), (Some(json!("allowed")), Some(json!("denied"))), "{all:?}");
}

/// `polity run` asks at a terminal, and the user answers with `polity approve` in another process.
#[test]
fn a_question_is_asked_on_one_channel_and_answered_on_another() {
    let (_server, polity, note) = wanting();
    let _daemon = serve(&polity);
    let arguments = ["run", "write", "--workspace", "project", "--data", "data"];
    let (running, _keyboard) = polity.spawn_with_keyboard(&arguments);
    running.stdout_line("y yes");
    ask(&polity, &["approve", "q1"]).expect_code(0);
    running.wait().expect_code(0);
    assert!(note.exists());
}

#[test]
fn a_chat_asks_and_takes_the_answer() {
    let (_server, polity, note) = wanting();
    let _daemon = serve(&polity);
    let arguments = ["chat", "--workspace", "project", "--data", "data"];
    let (running, mut keyboard) = polity.spawn_with_keyboard(&arguments);
    running.stdout_line("/help");
    writeln!(keyboard, "write").expect("a keyboard");
    running.stdout_line("/approve q1 or /deny q1");
    writeln!(keyboard, "/approve q1").expect("a keyboard");
    running.stdout_line("told:");
    writeln!(keyboard, "/quit").expect("a keyboard");
    running.wait().expect_code(0);
    assert!(note.exists());
}

/// `polity run` takes `y` as an answer, so users type it in a chat, too. There, it may be a message to root.
#[test]
fn a_chat_neither_sends_nor_takes_the_answers_of_a_run() {
    let (_server, polity, note) = wanting();
    let _daemon = serve(&polity);
    let arguments = ["chat", "--workspace", "project", "--data", "data"];
    let (running, mut keyboard) = polity.spawn_with_keyboard_at(200, &arguments);
    running.stdout_line("/help");
    writeln!(keyboard, "write").expect("a keyboard");
    running.stdout_line("/approve q1 or /deny q1");
    writeln!(keyboard, "y").expect("a keyboard");
    running.stdout_line("polity: not sent: y; to answer q1: /approve q1 or /deny q1; other text goes to");
    writeln!(keyboard, "be quick").expect("a keyboard");
    running.stdout_line("polity: root gets this after your answer; to answer q1: /approve q1 or /deny q1");
    assert!(!note.exists());
    writeln!(keyboard, "/approve q1").expect("a keyboard");
    running.stdout_line("told:");
    writeln!(keyboard, "/quit").expect("a keyboard");
    running.wait().expect_code(0);
    assert!(note.exists());
    let said = rows(&polity, &["messages", "--from", "user"]);
    let texts: Vec<&str> = said.iter().filter_map(|message| message["text"].as_str()).collect();
    assert_eq!(texts, ["write", "be quick"]);
}

/// The newest task is answered. The chat begins with a line about the question of the task before it.
#[test]
fn a_chat_announces_the_questions_of_older_tasks() {
    let server = ScriptedServer::start(|asked| match asked.text_contains("only greet") {
        true => Answer::say("hello"),
        false => writer(asked),
    });
    let polity = home(&server, &json!({}));
    polity.write_config("app.json", &asks().to_string());
    let _daemon = serve(&polity);
    ask(&polity, &["run", "write"]).expect_code(6);
    ask(&polity, &["run", "only greet"]).expect_code(0);
    let (running, mut keyboard) = polity.spawn_with_keyboard(&["chat", "--data", "data"]);
    running.stdout_wait("[task: write] root asks whether");
    running.stdout_line("/help");
    writeln!(keyboard, "/approve q1").expect("a keyboard");
    running.stdout_line("root may call str_replace_editor");
    writeln!(keyboard, "/quit").expect("a keyboard");
    running.wait().expect_code(0);
}

/// Starts the daemon, and waits until it serves. Later, the daemon dies when it reaches the failure point `point`. A
/// failure point is a named place in the code of the daemon.
fn serve_until(polity: &Polity, point: &str) -> Running {
    let arguments = ["serve", "--data", "data", "--listen", "127.0.0.1:0"];
    let daemon = polity.spawn_with_points(&arguments, &[("POLITY_FAILURE_POINT", point)]);
    daemon.stderr_line("ready");
    daemon
}

#[test]
fn an_answer_counts_once_wherever_the_daemon_dies() {
    for point in ["approvals::permitted@1", "approvals::ended@1", "outside::started@1", "outside::ran@1"] {
        let (_server, polity, note) = wanting();
        run(&polity, &["write", "--workspace", "project"]).expect_code(6);
        let daemon = serve_until(&polity, point);
        ask(&polity, &["approve", "q1", "--always"]);
        assert_eq!(daemon.wait().code, None, "{point} was not hit");

        let _daemon = serve(&polity);
        if !rows(&polity, &["approvals"]).is_empty() {
            ask(&polity, &["approve", "q1", "--always"]).expect_code(0);
        }
        ask(&polity, &["run", "--resume"]).expect_code(0);
        assert_eq!(fs::read_to_string(&note).expect("a file"), "made by an agent\n", "{point}");
        let all = rows(&polity, &["approvals", "--all"]);
        assert_eq!((&all[0]["state"], all.len()), (&json!("allowed"), 1), "{point}: {all:?}");
        assert_eq!(rows(&polity, &["approvals", "--permissions"]).len(), 1, "{point}");
    }
}

#[test]
fn a_permission_is_removed_once_wherever_the_daemon_dies() {
    let (_server, polity, _note) = wanting();
    let daemon = serve(&polity);
    ask(&polity, &["run", "write", "--workspace", "project"]).expect_code(6);
    ask(&polity, &["approve", "q1", "--always"]).expect_code(0);
    ask(&polity, &["run", "--resume"]).expect_code(0);
    daemon.kill9();
    let daemon = serve_until(&polity, "approvals::permission_removed@1");
    ask(&polity, &["approvals", "--remove", "p1"]);
    assert_eq!(daemon.wait().code, None, "the point was not hit");
    let _daemon = serve(&polity);
    // The daemon died before it committed the removal of the permission, so the permission still exists.
    assert_eq!(rows(&polity, &["approvals", "--permissions"]).len(), 1);
    ask(&polity, &["approvals", "--remove", "p1"]).expect_code(0);
    assert_eq!(rows(&polity, &["approvals", "--permissions"]).len(), 0);
}

/// An assistant that speaks with `polity mcp`, one message a line.
struct Assistant {
    mcp: Running,
    input: fs::File,
}

impl Assistant {
    /// Starts `polity mcp`, and declares to it that the assistant can ask its user.
    fn begin(polity: &Polity) -> Self {
        let mcp = polity.script("mkfifo in && exec \"$POLITY\" mcp --data data < in");
        let path = polity.home().join("in");
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
        while !path.exists() {
            assert!(std::time::Instant::now() < deadline, "the script makes no pipe");
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        let input = fs::OpenOptions::new().write(true).open(path).expect("a pipe");
        let mut assistant = Self { mcp, input };
        let client = json!({"name": "assistant", "version": "1"});
        let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": client});
        assistant.say(&json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
        assistant.hear("\"serverInfo\"");
        assistant.say(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assistant
    }

    fn say(&mut self, message: &Value) {
        writeln!(self.input, "{message}").expect("a message");
    }

    fn call(&mut self, id: u64, tool: &str, arguments: &Value) {
        let params = json!({"name": tool, "arguments": arguments});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}));
    }

    /// Waits for a message that contains a text.
    fn hear(&self, text: &str) -> Value {
        serde_json::from_str(&self.mcp.stdout_line(text)).expect("a message")
    }
}

#[test]
fn an_assistant_asks_its_user_for_the_daemon() {
    let (_server, polity, _) = wanting();
    let daemon = serve(&polity);
    let mut assistant = Assistant::begin(&polity);
    let give = |assistant: &mut Assistant, id: u64| {
        assistant.call(id, "give_task", &json!({"prompt": format!("write {id}")}));
        let given = assistant.hear(&format!("\"id\":{id},"));
        let task = given["result"]["structuredContent"]["task"].clone();
        assistant.call(id + 1, "follow_task", &json!({"task": task, "waitSeconds": 60}));
    };
    give(&mut assistant, 10);
    let asked = assistant.hear("elicitation/create");
    let message = asked["params"]["message"].as_str().expect("a question");
    assert!(message.contains("+made by an agent"), "{message}");
    let result = json!({"action": "accept", "content": {"decision": "deny", "reason": "not here"}});
    assistant.say(&json!({"jsonrpc": "2.0", "id": asked["id"], "result": result}));
    let followed = assistant.hear("\"id\":11,");
    let followed = &followed["result"]["structuredContent"];
    assert_eq!(followed["approvals"], json!([]), "{followed}");
    assert!(followed["messages"].to_string().contains("not here"), "root was not told: {followed}");
    let asked = &rows(&polity, &["approvals", "--all"])[0];
    assert_eq!((&asked["state"], &asked["reason"]), (&json!("denied"), &json!("not here")));

    // When the user answers a question in another program, the daemon withdraws this question from the assistant.
    give(&mut assistant, 20);
    assistant.hear("(q2 in task");
    ask(&polity, &["approve", "q2"]).expect_code(0);
    assistant.hear("notifications/cancelled");
    assistant.hear("\"id\":21,");
    drop(assistant.input);
    assistant.mcp.wait().expect_code(0);
    daemon.terminate();
    daemon.wait().expect_code(0);
}
