//! Tools that act outside the society: they change files and run commands in the workspaces of agents. After a
//! `kill -9`, no change may be lost and nothing may be done twice.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::sleep;
use std::time::{Duration, Instant};

use polity_tests::{Answer, Call, Captured, Conversation, Polity, ScriptedServer};
use serde_json::{Value, json};

use crate::support::hiring::{Gate, brief};
use crate::support::serving::Serving;
use crate::support::{home, json_lines, run, start};

/// Maximum wait for something that happens within a few seconds on an idle machine.
const PATIENCE: Duration = Duration::from_secs(120);

const BUGGY: &str = "#!/bin/sh\n# Adds two numbers.\necho $(($1 - $2))\n";
const CHECK: &str = "#!/bin/sh\n[ \"$(sh add.sh 2 3)\" = 5 ] && echo all good\n";

/// Creates a project directory of the user. It contains a program with a bug, and a test that finds the bug.
fn project(polity: &Polity) -> PathBuf {
    let directory = polity.home().join("project");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("add.sh"), BUGGY).expect("a file");
    fs::write(directory.join("check.sh"), CHECK).expect("a file");
    directory
}

fn edit(arguments: Value) -> Answer {
    Answer::call("str_replace_editor", arguments)
}

/// The script of an agent that finds the bug, corrects it and runs the test. Its answer contains the result of the
/// test.
fn mender(asked: &Conversation) -> Answer {
    let edits = asked.results_of("str_replace_editor");
    let commands = asked.results_of("bash");
    match (edits.len(), commands.len()) {
        (0, 0) => Answer::call("search_files", json!({"pattern": "\\$1"}))
            .and_call("str_replace_editor", json!({"command": "view", "path": "add.sh"})),
        (1, 0) => edit(
            json!({"command": "str_replace", "path": "add.sh", "old_str": "$1 - $2", "new_str": "$1 + $2"}),
        ),
        (2, 0) => Answer::call("bash", json!({"command": "sh check.sh"})),
        _ => Answer::say(commands[0].text.clone()),
    }
}

/// Returns whether commands were refused because this machine has no sandbox. If so, prints that the test was skipped.
fn no_commands(said: &str) -> bool {
    let refused = said.contains("sandbox");
    if refused {
        polity_tests::tell(&format!(
            "not checked: this machine has no sandbox, so commands are refused: {said}"
        ));
    }
    refused
}

/// Returns an `app.json` that allows commands where there is a sandbox, whatever its level. The person is not asked
/// about them.
fn sandboxed_commands() -> Value {
    json!({"language": "en", "tools": {"policy": [{"tool": "bash", "decide": "allow"}]}})
}

#[test]
fn an_agent_mends_a_bug_in_the_directory_of_the_person() {
    let server = ScriptedServer::start(mender);
    let polity = home(&server, &sandboxed_commands());
    let project = project(&polity);
    let output = run(&polity, &["work", "--workspace", "project"]).expect_code(0);
    assert_eq!(fs::read_to_string(project.join("add.sh")).expect("a file"), BUGGY.replace('-', "+"));
    assert!(!project.join(".git").exists(), "nothing is committed in a directory of the person");
    let viewed = server.requests().last().expect("a request").conversation();
    assert!(viewed.system().contains("\nworkspace=a directory of the user\n"), "{}", viewed.system());
    let text = &viewed.results_of("str_replace_editor")[0].text;
    assert!(text.contains("3\techo $(($1 - $2))"), "{text}");
    let found = &viewed.results_of("search_files")[0].text;
    assert!(found.contains("add.sh:3:"), "{found}");
    if !no_commands(&output.stdout) {
        assert!(
            output.stdout.contains("all good") && output.stdout.contains("\"exitCode\":0"),
            "{}",
            output.stdout
        );
    }
}

#[test]
fn a_read_only_workspace_is_not_changed() {
    let server = ScriptedServer::start(mender);
    let polity = home(&server, &sandboxed_commands());
    let project = project(&polity);
    run(&polity, &["work", "--workspace", "project:ro"]).expect_code(0);
    let asked = server.requests().last().expect("a request").conversation();
    assert_eq!(asked.results_of("str_replace_editor")[1].error(), Some("workspace_refused"));
    let told = asked.system();
    assert!(told.contains("\nworkspace=a directory of the user, read-only\n"), "{told}");
    assert_eq!(fs::read_to_string(project.join("add.sh")).expect("a file"), BUGGY);
}

#[test]
fn a_workspace_apart_from_polity_is_demanded() {
    let server = ScriptedServer::start(|_| Answer::say("never asked"));
    let polity = home(&server, &json!({"language": "en"}));
    let output = run(&polity, &["work", "--workspace", "."]);
    assert_ne!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("must not contain each other"), "{}", output.stderr);
    assert!(server.requests().is_empty());
}

/// Nothing is searched here, so no server needs to be at the address.
#[test]
fn a_search_is_offered_only_where_the_settings_name_a_provider() {
    for (search, is_offered) in [
        (json!(null), false),
        (json!("http://127.0.0.1:1/"), true),
        (json!({"provider": "brave", "key": "${POLITY_TESTS_NOT_SET}"}), false),
    ] {
        let server = ScriptedServer::start(|_| Answer::say("done"));
        let polity = home(&server, &json!({"language": "en", "tools": {"web": {"search": search}}}));
        run(&polity, &["work"]).expect_code(0);
        let asked = server.requests()[0].conversation();
        let offered = ["fetch_page", "web_search"].map(|tool| asked.offered_tools().contains(&tool));
        assert_eq!(offered, [true, is_offered], "{search}");
    }
}

/// An agent runs three commands that try forbidden things. Checks the output of each command.
#[test]
fn a_command_reaches_nothing_but_its_workspace() {
    let script = |asked: &Conversation| match asked.results_of("bash").as_slice() {
        [] => {
            let commands = [
                "cat ../data/token ../data/polity.db ../config/llmservices.json; echo read: $?",
                "env",
                "echo mine > made.txt; cat made.txt; ls -a ~; touch /etc/polity-was-here; echo wrote: $?",
            ];
            Answer::calls(commands.map(|command| Call::new("bash", json!({"command": command}))).into())
        }
        results => {
            Answer::say(json!(results.iter().map(|result| &result.value).collect::<Vec<_>>()).to_string())
        }
    };
    let server = ScriptedServer::start(script);
    let mut polity = home(&server, &sandboxed_commands());
    polity.set_env("SECRET_KEY", "canary-5f1d");
    let project = project(&polity);
    let output = run(&polity, &["work", "--workspace", "project"]).expect_code(0);
    if no_commands(&output.stdout) {
        return;
    }
    let results: Vec<Value> = serde_json::from_str(output.stdout.trim()).expect("the results");
    let printed = |index: usize| results[index]["output"].as_str().expect("an output").to_owned();
    assert!(printed(0).contains("read: 1") && !printed(0).contains("baseURL"), "{}", printed(0));
    assert!(!printed(1).contains("canary-5f1d"), "{}", printed(1));
    assert!(printed(2).starts_with("mine") && printed(2).contains("wrote: 1"), "{}", printed(2));
    assert_eq!(fs::read_to_string(project.join("made.txt")).expect("a file"), "mine\n");
    assert!(!Path::new("/etc/polity-was-here").exists());
}

fn git(directory: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().ok()?;
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// The script of a society: root hires a writer with a worktree of its own, and merges the writer's changes.
fn two_agents(asked: &Conversation) -> Answer {
    if asked.agent_id() != "root" {
        let made = !asked.results_of("str_replace_editor").is_empty();
        return if made {
            Answer::say("the chapter is written")
        } else {
            edit(json!({"command": "create", "path": "chapter.md", "file_text": "Once upon a time\n"}))
        };
    }
    let hired = asked.results_of("spawn_agent_with_task");
    let merged = asked.results_of("merge_workspace");
    match (hired.first(), merged.first()) {
        (None, _) => {
            let role = json!({"name": "writer", "rolePrompt": "You write."});
            let arguments = json!({
                "role": role, "taskBrief": brief("Write"), "initialMessage": {"text": "write"}, "workspace": "own",
            });
            Answer::call("spawn_agent_with_task", arguments)
        }
        (Some(_), None) if !asked.text_contains("the chapter is written") => {
            Answer::say("waiting for the writer")
        }
        (Some(hired), None) => Answer::call("merge_workspace", json!({"agentId": hired.value["id"]})),
        (Some(_), Some(merged)) if asked.results_of("str_replace_editor").is_empty() => {
            assert_eq!(merged.error(), None, "{merged:?}");
            edit(json!({"command": "view", "path": "chapter.md"}))
        }
        _ => Answer::say(asked.results_of("str_replace_editor")[0].text.clone()),
    }
}

#[test]
fn the_work_of_a_worktree_is_committed_by_its_agent_and_merged() {
    if git(Path::new("."), &["--version"]).is_none() {
        polity_tests::tell("not checked: git is not installed");
        return;
    }
    let server = ScriptedServer::start(two_agents);
    let polity = home(&server, &json!({"language": "en"}));
    let output = run(&polity, &["work"]).expect_code(0);
    assert!(output.stdout.contains("Once upon a time"), "{}", output.stdout);
    assert!(server.requests().iter().all(|request| !request.conversation().system().contains("workspace=")));
    let tasks = polity.data_dir().join("workspaces");
    let task = fs::read_dir(tasks).expect("workspaces").flatten().map(|entry| entry.path());
    let task = task.filter(|path| path.is_dir()).collect::<Vec<_>>();
    assert_eq!(task.len(), 1, "{task:?}");
    let log = git(&task[0].join("git"), &["log", "--all", "--format=%an|%s"]).expect("a log");
    assert!(log.lines().any(|line| line.starts_with("writer-") && line.contains("turn")), "{log}");
}

/// The script of a society: root and a writer work in one workspace, and each of them writes one file. Neither turn ends
/// before both files are written. `written` are the gates that root and the writer open.
fn two_in_one_workspace(asked: &Conversation, written: &[Gate; 2]) -> Answer {
    let is_root = asked.agent_id() == "root";
    if is_root && !asked.has_called("spawn_agent_with_task") {
        let role = json!({"name": "writer", "rolePrompt": "You write."});
        let arguments =
            json!({"role": role, "taskBrief": brief("Write"), "initialMessage": {"text": "write"}});
        return Answer::call("spawn_agent_with_task", arguments);
    }
    let file = if is_root { "plan.md" } else { "chapter.md" };
    if asked.results_of("str_replace_editor").is_empty() {
        return edit(json!({"command": "create", "path": file, "file_text": "Once upon a time\n"}));
    }
    let [by_root, by_writer] = written;
    let (own, other) = if is_root { (by_root, by_writer) } else { (by_writer, by_root) };
    own.open();
    other.pass();
    match is_root {
        true if asked.text_contains("the chapter is written") => Answer::say("all is written"),
        true => Answer::say("waiting for the writer"),
        false => Answer::say("the chapter is written"),
    }
}

#[test]
fn agents_that_write_at_the_same_time_are_named_with_their_own_files() {
    let written = [Gate::default(), Gate::default()];
    let server = ScriptedServer::start(move |asked| two_in_one_workspace(asked, &written));
    let polity = home(&server, &json!({"language": "en"}));
    let daemon = Serving::start(&polity);
    let posted = daemon.call("POST /api/messages", json!({"text": "work"}).to_string().as_bytes()).json();
    let task = posted["task"].as_str().expect("a task");
    server.wait_until(Duration::from_secs(60), |requests| {
        let edited =
            |request: &&Captured| !request.conversation().results_of("str_replace_editor").is_empty();
        requests.iter().filter(edited).count() >= 2
    });
    if !polity.data_dir().join("workspaces").join(task).join("git").exists() {
        polity_tests::tell("not checked: this machine has no git 2.38 or newer");
        return;
    }
    let route = format!("GET /api/tasks/{task}/changes");
    let all = |changes: &Value| -> Vec<Value> { changes["commits"].as_array().expect("commits").clone() };
    let files =
        |commits: &[Value]| commits.iter().filter_map(|commit| commit["files"].as_array()).flatten().count();
    let changes = until(&daemon, &route, |changes| files(&all(changes)) >= 2);
    let mut found: Vec<(bool, Value)> = all(&changes)
        .into_iter()
        .filter(|commit| commit["turn"].is_i64())
        .map(|commit| (commit["agent"] == "root", commit["files"].clone()))
        .collect();
    found.sort_by_key(|(is_root, _)| *is_root);
    assert_eq!(found, [(false, json!(["chapter.md"])), (true, json!(["plan.md"]))], "{changes:#}");
}

/// The script of a worker that appends lines to a file, one after the other. Each edit must happen exactly once.
fn counter(asked: &Conversation) -> Answer {
    const EDITS: usize = 12;
    let done = asked.results_of("str_replace_editor").len();
    match done {
        0 => edit(json!({"command": "create", "path": "count.txt", "file_text": "end\n"})),
        _ if done <= EDITS => {
            let line = format!("line {done}\nend\n");
            edit(json!({"command": "str_replace", "path": "count.txt", "old_str": "end\n", "new_str": line}))
        }
        _ => Answer::say("counted"),
    }
}

/// Kills the process six times, each time after two more requests, and resumes the task.
#[test]
fn kill_9_repeats_and_loses_no_edit() {
    let server = ScriptedServer::start(counter);
    let polity = home(&server, &json!({"language": "en"}));
    let project = project(&polity);
    let mut arguments = vec!["work", "--workspace", "project"];
    for kills in 1..=6 {
        let running = start(&polity, &arguments);
        server.wait_until(Duration::from_secs(60), |requests| requests.len() >= kills * 2);
        running.kill9();
        arguments = vec!["--resume"];
    }
    run(&polity, &arguments).expect_code(0);
    let lines: String = (1..=12).map(|line| format!("line {line}\n")).collect();
    assert_eq!(fs::read_to_string(project.join("count.txt")).expect("a file"), lines + "end\n");
}

/// A command whose processes together take 480 MB of memory. None of them takes more than 60 MB.
const HUNGRY: &str = "for i in 1 2 3 4 5 6 7 8; do
    head -c 60000000 /dev/zero | tail -c 60000000 | sleep 100 &
done; sleep 100";

/// The script of a society: root hires two agents. One runs a command that takes too much memory, and the other writes
/// a file. Both report the results of their calls, and root repeats both reports.
fn hungry_and_modest(asked: &Conversation) -> Answer {
    let hire = |name: &str| {
        let role = json!({"name": name, "rolePrompt": format!("You are the {name} one.")});
        Call::new(
            "spawn_agent_with_task",
            json!({"role": role, "taskBrief": brief(name), "initialMessage": {"text": name}}),
        )
    };
    let reported = |tool: &str, arguments: Value| match asked.results_of(tool).first() {
        None => Answer::call(tool, arguments),
        Some(result) => Answer::say(format!("{tool}: {}", result.text)),
    };
    if asked.agent_id() != "root" {
        return if asked.system().contains("the hungry one") {
            reported("bash", json!({"command": HUNGRY}))
        } else {
            let file = json!({"command": "create", "path": "modest.txt", "file_text": "enough\n"});
            reported("str_replace_editor", file)
        };
    }
    if asked.results_of("spawn_agent_with_task").is_empty() {
        return Answer::calls(vec![hire("hungry"), hire("modest")]);
    }
    let messages = asked.messages().iter().filter(|message| message["role"] == "user");
    let heard: Vec<String> = messages.map(|message| message["content"].to_string()).collect();
    match heard.iter().any(|text| text.contains("bash: "))
        && heard.iter().any(|text| text.contains("editor: "))
    {
        true => Answer::say(heard.join("\n")),
        false => Answer::say("waiting for both"),
    }
}

#[test]
fn a_command_that_takes_too_much_memory_is_ended_and_disturbs_nobody() {
    let server = ScriptedServer::start(hungry_and_modest);
    let mut settings = sandboxed_commands();
    settings["tools"]["sandbox"] = json!({"limits": {"memoryBytes": 200_000_000}});
    let polity = home(&server, &settings);
    let output = run(&polity, &["work"]).expect_code(0);
    assert!(output.stdout.contains("modest.txt"), "{}", output.stdout);
    if !no_commands(&output.stdout) {
        assert!(output.stdout.contains("more than 200000000 bytes of memory"), "{}", output.stdout);
    }
}

/// The script of an agent that starts a command in the background and tells the user so. When the command has ended,
/// the agent repeats the notice about the end.
fn patient(asked: &Conversation, command: &str) -> Answer {
    let told = asked.last_user_text();
    match asked.results_of("bash").first() {
        None => Answer::call("bash", json!({"command": command, "background": true})),
        Some(_) if told.contains("background command") => Answer::say(told),
        Some(result) => Answer::say(result.text.clone()),
    }
}

#[test]
fn the_end_of_a_background_command_wakes_its_agent() {
    let server = ScriptedServer::start(|asked| patient(asked, "echo almost; sleep 0.5; echo words; exit 3"));
    let polity = home(&server, &sandboxed_commands());
    let output = run(&polity, &["work"]).expect_code(0);
    if !no_commands(&output.stdout) {
        assert!(output.stdout.contains("\"running\":true"), "{}", output.stdout);
        assert!(output.stdout.contains("has ended with exit code 3"), "{}", output.stdout);
        assert!(output.stdout.contains("> almost\n> words"), "{}", output.stdout);
    }
}

#[test]
fn after_kill_9_an_agent_is_told_once_that_its_command_was_interrupted() {
    let server = ScriptedServer::start(|asked| patient(asked, "sleep 86417"));
    let polity = home(&server, &sandboxed_commands());
    let running = start(&polity, &["work"]);
    // The second request contains the result of the first call, so wait for two requests.
    server.wait_until(Duration::from_secs(60), |requests| requests.len() >= 2);
    if no_commands(&server.requests()[1].conversation().results_of("bash")[0].text) {
        return;
    }
    running.kill9();
    let output = run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(output.stdout.matches("was interrupted").count(), 1, "{}", output.stdout);
    let asked = server.requests().last().expect("a request").conversation();
    let heard = asked.messages().iter().filter(|message| message["role"] == "user");
    let notices = heard.filter(|message| message.to_string().contains("was interrupted")).count();
    assert_eq!(notices, 1, "{:?}", asked.messages());
    let left = fs::read_dir("/proc").expect("processes").flatten();
    let lines = left.filter_map(|entry| fs::read(entry.path().join("cmdline")).ok());
    assert_eq!(lines.filter(|line| String::from_utf8_lossy(line).contains("86417")).count(), 0);
}

/// Returns a number of seconds for `sleep`. No other test on this machine uses the same number, so the test can find
/// the process by it.
fn mark(number: u32) -> String {
    format!("{number}{:08}", std::process::id())
}

/// Returns whether the command line of a process on this machine contains a mark.
fn runs(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let mut lines = processes.filter_map(|process| fs::read(process.path().join("cmdline")).ok());
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

/// Waits until a condition no longer holds.
#[track_caller]
fn wait_while(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while condition() {
        assert!(Instant::now() < deadline, "it does not change");
        sleep(Duration::from_millis(20));
    }
}

/// Returns an `app.json` that allows commands on every machine. The person is not asked about them.
fn free_commands() -> Value {
    let policy = json!([{"tool": "bash", "decide": "allow"}]);
    json!({"language": "en", "tools": {"sandbox": {"allowNone": true}, "policy": policy}})
}

/// Starts a command that sleeps in the background.
fn sleeping(mark: &str) -> Answer {
    Answer::call("bash", json!({"command": format!("sleep {mark}"), "background": true}))
}

/// Who ends the work of an agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum By {
    Person,
    Parent,
}

/// The script of a society. Root hires a worker. The worker starts a command in the background and tells root that the
/// command runs. If `by` is [`By::Parent`], root then ends the worker.
fn boss(asked: &Conversation, mark: &str, by: By) -> Answer {
    if asked.agent_id() != "root" {
        // The worker writes a message, because its closing text would be held back until the command has ended.
        let report = json!({"to": "root", "payload": {"text": "it runs"}});
        return match (asked.results_of("bash").len(), asked.results_of("send_message").len()) {
            (0, _) => sleeping(mark),
            (_, 0) => Answer::call("send_message", report),
            _ => Answer::say("I wait"),
        };
    }
    let Some(hired) = asked.results_of("spawn_agent_with_task").into_iter().next() else {
        let role = json!({"name": "worker", "rolePrompt": "You work."});
        let task = json!({"role": role, "taskBrief": brief("Work"), "initialMessage": {"text": "work"}});
        return Answer::call("spawn_agent_with_task", task);
    };
    let has_ended = !asked.results_of("terminate_agent").is_empty();
    if by == By::Parent && !has_ended && asked.text_contains("it runs") {
        return Answer::call("terminate_agent", json!({"agentId": hired.value["id"]}));
    }
    Answer::say("done")
}

#[test]
fn a_background_command_ends_when_the_work_of_its_agent_is_ended() {
    for (number, by) in [(1, By::Person), (2, By::Parent)] {
        let mark = mark(number);
        let seconds = mark.clone();
        let server = ScriptedServer::start(move |asked| boss(asked, &seconds, by));
        let polity = home(&server, &free_commands());
        let _serving = Serving::start(&polity);
        let running = start(&polity, &["work"]);
        server.wait_until(PATIENCE, |requests| {
            let mut asked = requests.iter().map(|request| request.conversation());
            asked.any(|asked| asked.agent_id() == "root" && asked.text_contains("it runs"))
        });
        if by == By::Person {
            wait_while(|| !runs(&mark));
            let asked = server.requests().into_iter().map(|request| request.conversation().agent_id());
            let worker = asked.into_iter().find(|agent| agent != "root").expect("a worker");
            polity.run(&["stop", "--data", "data", &worker]).expect_code(0);
        }
        // The command ends although the daemon keeps running.
        wait_while(|| runs(&mark));
        // The command kept the task open as long as it was running. Now the task ends.
        let output = running.wait().expect_code(0);
        assert!(output.stdout.contains("done"), "{by:?}: {output:?}");
    }
}

#[test]
fn a_background_command_ends_with_its_task() {
    let mark = mark(3);
    let seconds = mark.clone();
    let server = ScriptedServer::start(move |asked| match asked.results_of("bash").as_slice() {
        [] => sleeping(&seconds),
        _ => Answer::say("it runs"),
    });
    let polity = home(&server, &free_commands());
    let _serving = Serving::start(&polity);
    let _running = start(&polity, &["work"]);
    server.wait_until(PATIENCE, |requests| requests.len() >= 2);
    wait_while(|| !runs(&mark));
    let tasks = json_lines(&polity.run(&["tasks", "--data", "data", "--json"]).expect_code(0).stdout);
    let task = tasks[0]["id"].as_str().expect("a task");
    polity.run(&["stop", "--data", "data", task]).expect_code(0);
    wait_while(|| runs(&mark));
}

/// The script of an agent that starts a command in the background, and then runs a command in the foreground. Both
/// print a line and wait for the file `go`.
fn two_commands(asked: &Conversation) -> Answer {
    let command = |line: &str| format!("echo {line}; until [ -e go ]; do sleep 0.05; done");
    match asked.results_of("bash").len() {
        0 => Answer::call("bash", json!({"command": command("behind"), "background": true})),
        1 => Answer::call("bash", json!({"command": command("before")})),
        _ => Answer::say("both have ended"),
    }
}

/// Reads a route until `holds` accepts the answer, and returns the answer.
#[track_caller]
fn until(daemon: &Serving, route: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + Duration::from_secs(60);
    loop {
        let answer = daemon.call(route, b"").json();
        if holds(&answer) {
            return answer;
        }
        assert!(Instant::now() < deadline, "{route} still answers {answer:#}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn running_commands_are_shown_with_their_output_in_the_background_and_in_the_foreground() {
    let server = ScriptedServer::start(two_commands);
    // Allow commands. Otherwise, the person would be asked about them on a machine with the sandbox level `partial`.
    let policy = json!([{"group": "command", "decide": "allow"}]);
    let polity = home(&server, &json!({"language": "en", "tools": {"policy": policy}}));
    let project = project(&polity);
    let daemon = Serving::start(&polity);
    let message = json!({"text": "work", "workspace": project});
    let posted = daemon.call("POST /api/messages", message.to_string().as_bytes()).json();
    server.wait_until(Duration::from_secs(60), |requests| !requests.is_empty());
    if !server.requests()[0].conversation().offered_tools().contains(&"bash") {
        polity_tests::tell("not checked: this machine has no sandbox");
        return;
    }

    let all = |commands: &Value, holds: fn(&Value) -> bool| {
        commands.as_array().is_some_and(|commands| commands.len() == 2 && commands.iter().all(holds))
    };
    let commands = until(&daemon, "GET /api/commands?agent=root", |commands| {
        all(commands, |one| one["output"] != "" && one["processes"] != 0 && one["memoryBytes"] != 0)
    });
    let [behind, before] = [&commands[0], &commands[1]];
    assert_eq!((&behind["output"], &before["output"]), (&json!("behind"), &json!("before")));
    assert!(behind["id"].as_str().is_some_and(|id| id.starts_with("cmd-")), "{commands:#}");
    assert_eq!(before.get("id"), None, "it runs in the foreground");
    assert!(before["command"].as_str().is_some_and(|command| command.starts_with("echo before;")));
    assert!(all(&commands, |one| one["agent"] == "root" && one["since"].is_i64()));
    assert_eq!(behind["task"], posted["task"]);
    assert_eq!(daemon.call("GET /api/commands?task=task-0", b"").json(), json!([]));
    let shown = polity.run(&["agent", "root", "--data", "data"]).expect_code(0).stdout;
    for part in ["running commands", behind["id"].as_str().expect("an id"), "in the foreground  echo before;"]
    {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    // The events contain what the foreground command prints.
    let list = ["events", "--data", "data", "--json", "--kind", "tool_progress"];
    let deadline = Instant::now() + Duration::from_secs(60);
    let progress = loop {
        let events = json_lines(&polity.run(&list).expect_code(0).stdout);
        match events.into_iter().next() {
            Some(event) => break event,
            None => assert!(Instant::now() < deadline, "nobody is told what the command prints"),
        }
    };
    assert_eq!((&progress["tool"], &progress["text"]), (&json!("bash"), &json!("before")));
    fs::write(project.join("go"), "").expect("a file");
    until(&daemon, "GET /api/commands", |commands| *commands == json!([]));
}

/// The script of an agent that stores a file as an artifact and saves the artifact as a file, several times.
fn copier(asked: &Conversation) -> Answer {
    const COPIES: usize = 4;
    let (stored, saved) = (asked.results_of("put_artifact"), asked.results_of("get_artifact"));
    match stored.get(saved.len()) {
        Some(stored) => {
            assert_eq!(stored.error(), None, "{stored:?}");
            let save = json!({"ref": stored.value["ref"], "saveTo": format!("copies/{}.sh", saved.len())});
            Answer::call("get_artifact", save)
        }
        None if saved.len() == COPIES => {
            let told: Vec<&str> = saved.iter().map(|saved| saved.text.as_str()).collect();
            Answer::say(told.join("\n"))
        }
        None => Answer::call("put_artifact", json!({"type": "program", "path": "add.sh"})),
    }
}

/// Kills the process five times, each time at one of two points. At the first point, the start of a copy is recorded,
/// but the copy has not begun. At the second, the copy is complete, but its result is not recorded.
#[test]
fn kill_9_doubles_and_loses_no_copy() {
    let points =
        ["outside::started@1", "outside::ran@2", "outside::started@1", "outside::ran@1", "outside::ran@2"];
    let server = ScriptedServer::start(copier);
    let polity = home(&server, &json!({"language": "en"}));
    let project = project(&polity);
    let mut arguments = vec!["run", "--data", "data", "work", "--workspace", "project"];
    for point in points {
        let died = polity.spawn_with_points(&arguments, &[("POLITY_FAILURE_POINT", point)]).wait();
        assert_eq!(died.code, None, "{point} was not hit");
        arguments = vec!["run", "--data", "data", "--resume"];
    }
    let running = polity.spawn(&arguments);
    running.kill9();
    let output = run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(output.stdout.matches("\"savedTo\"").count(), 4, "{}", output.stdout);
    for copy in 0..4 {
        let copied = fs::read_to_string(project.join(format!("copies/{copy}.sh"))).expect("a copy");
        assert_eq!(copied, BUGGY);
    }
    let left = fs::read_dir(project.join("copies")).expect("copies").count();
    assert_eq!(left, 4, "a temporary file is left");
    let stored = polity.run(&["artifacts", "--data", "data", "--json"]).expect_code(0);
    assert_eq!(json_lines(&stored.stdout).len(), 4, "{}", stored.stdout);
}
