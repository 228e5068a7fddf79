//! Tests that commands get the workspace of their agent, the home of their task, and what `tools.sandbox` allows. What
//! the sandbox itself refuses is tested in `crates/sandbox`.

use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use polity_tests::{Answer, Conversation, Polity, ScriptedServer, ToolResult};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::{app, asked_by, home, last_asked, run};

/// Returns the fields of an `app.json` with this `tools.sandbox`. The person is not asked about commands, because on a
/// machine with the sandbox level `partial`, each command would be a question.
fn allowed(sandbox: &Value) -> Value {
    json!({"language": "en", "tools": {"sandbox": sandbox, "policy": [{"tool": "bash", "decide": "allow"}]}})
}

/// The script of an agent that runs a command a number of times.
fn runs(asked: &Conversation, command: &str, times: usize) -> Answer {
    if asked.results_of("bash").len() < times {
        Answer::call("bash", json!({"command": command}))
    } else {
        Answer::say("done")
    }
}

/// Returns the results of the commands in the newest request. Returns `None` if this machine has no sandbox, because
/// agents have no commands then.
fn results(server: &ScriptedServer) -> Option<Vec<ToolResult>> {
    let asked = last_asked(server);
    if asked.offered_tools().contains(&"bash") {
        return Some(asked.results_of("bash"));
    }
    polity_tests::tell("not checked: this machine has no sandbox");
    None
}

/// Returns what a command printed.
#[track_caller]
fn printed(result: &ToolResult) -> &str {
    result.value["output"].as_str().unwrap_or_else(|| panic!("no output: {result:?}"))
}

/// Creates a directory of the person with the file `note.txt`.
fn project(polity: &Polity) -> PathBuf {
    let directory = polity.home().join("project");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("note.txt"), "a note\n").expect("a file");
    directory
}

#[test]
fn a_command_changes_nothing_in_a_read_only_workspace() {
    const COMMAND: &str = "cat note.txt
        (echo changed > note.txt) 2>/dev/null || echo refused
        (echo made > made.txt) 2>/dev/null || echo refused";
    let server = ScriptedServer::start(|asked| runs(asked, COMMAND, 1));
    let polity = home(&server, &allowed(&json!({})));
    let project = project(&polity);
    run(&polity, &["work", "--workspace", "project:ro"]).expect_code(0);
    let Some(results) = results(&server) else { return };
    assert_eq!(printed(&results[0]), "a note\nrefused\nrefused\n");
    assert_eq!(fs::read_to_string(project.join("note.txt")).expect("a file"), "a note\n");
    assert!(!project.join("made.txt").exists());
}

/// A command tries to reach a server on the machine of the person.
#[test]
fn a_command_has_the_network_that_the_settings_name() {
    for (network, expect) in [("none", "closed\n"), ("full", "open\n")] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let command = format!(
            "[ -n \"$BASH_VERSION\" ] || {{ echo no bash; exit; }}
            (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null && echo open || echo closed"
        );
        let server = ScriptedServer::start(move |asked| runs(asked, &command, 1));
        let polity = home(&server, &allowed(&json!({"network": network})));
        run(&polity, &["work"]).expect_code(0);
        let Some(results) = results(&server) else { return };
        if printed(&results[0]) == "no bash\n" {
            polity_tests::tell("not checked: the shell of commands cannot open connections");
            return;
        }
        assert_eq!(printed(&results[0]), expect, "{network}: {:?}", results[0]);
    }
}

/// The person lets commands read a directory that contains the data directory and the configuration directory. The
/// sandbox level `full` hides these two directories. The level `partial` cannot hide them, so the command is refused.
#[test]
fn a_command_reads_no_directory_of_polity_inside_a_directory_that_it_may_read() {
    const COMMAND: &str = "cat ../beside.txt; ls ../data ../config; cat ../config/secret.txt";
    let server = ScriptedServer::start(|asked| runs(asked, COMMAND, 1));
    let polity = home(&server, &json!({}));
    let settings = allowed(&json!({"read": [polity.home()]}));
    polity.write_config("app.json", &app(&settings).to_string());
    polity.write_config("secret.txt", "canary-6e02");
    fs::write(polity.home().join("beside.txt"), "beside\n").expect("a file");
    project(&polity);
    run(&polity, &["work", "--workspace", "project"]).expect_code(0);
    let Some(results) = results(&server) else { return };
    let text = &results[0].text;
    for secret in ["canary-6e02", "polity.db", "llmservices.json"] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    match results[0].error() {
        Some(_) => assert!(text.contains("which commands must not see"), "{text}"),
        None => assert!(printed(&results[0]).starts_with("beside\n"), "{text}"),
    }
}

/// In each of two tasks, an agent runs a command twice. The second run finds the files that the first run has left.
#[test]
fn each_task_has_a_home_and_a_temporary_directory_of_its_own() {
    const COMMAND: &str = "ls ~ \"$TMPDIR\"; touch ~/kept-at-home \"$TMPDIR/kept-for-a-while\"";
    let server = ScriptedServer::start(|asked| runs(asked, COMMAND, 2));
    let polity = home(&server, &allowed(&json!({})));
    for task in ["first", "second"] {
        run(&polity, &[task]).expect_code(0);
        let Some(results) = results(&server) else { return };
        for file in ["kept-at-home", "kept-for-a-while"] {
            let found = [&results[0], &results[1]].map(|result| printed(result).contains(file));
            assert_eq!(found, [false, true], "{task}: {file}: {results:?}");
        }
    }
}

/// The script of a society: root hires a writer with a worktree of its own, and looks for the writer's file before and
/// after the merge. The writer makes the file with a command.
fn writer_with_commands(asked: &Conversation) -> Answer {
    if asked.agent_id() != "root" {
        return match asked.results_of("bash").first() {
            None => Answer::call("bash", json!({"command": "echo Once upon a time > chapter.md"})),
            Some(_) => Answer::say("the chapter is written"),
        };
    }
    let hired = asked.results_of("spawn_agent_with_task");
    let looks = asked.results_of("str_replace_editor").len();
    let merges = asked.results_of("merge_workspace").len();
    let look = || Answer::call("str_replace_editor", json!({"command": "view", "path": "chapter.md"}));
    match (hired.first(), looks, merges) {
        (None, _, _) => {
            let role = json!({"name": "writer", "rolePrompt": "You write."});
            let arguments = json!({
                "role": role, "taskBrief": brief("Write"), "initialMessage": {"text": "write"}, "workspace": "own",
            });
            Answer::call("spawn_agent_with_task", arguments)
        }
        (Some(_), 0, _) if !asked.text_contains("the chapter is written") => {
            Answer::say("waiting for the writer")
        }
        (Some(_), 0, _) | (Some(_), 1, 1) => look(),
        (Some(hired), 1, 0) => Answer::call("merge_workspace", json!({"agentId": hired.value["id"]})),
        _ => Answer::say("done"),
    }
}

#[test]
fn a_command_runs_in_the_worktree_of_its_agent() {
    if Command::new("git").arg("--version").output().is_err() {
        polity_tests::tell("not checked: git is not installed");
        return;
    }
    let server = ScriptedServer::start(writer_with_commands);
    let polity = home(&server, &allowed(&json!({})));
    run(&polity, &["work"]).expect_code(0);
    if results(&server).is_none() {
        return;
    }
    let asked = asked_by(&server, "root").pop().expect("a request");
    let looks = asked.results_of("str_replace_editor");
    let [before, after] = &looks[..] else { panic!("{looks:?}") };
    assert!(before.error().is_some(), "the command changed the workspace of root: {before:?}");
    let merged = &asked.results_of("merge_workspace")[0];
    assert_eq!(merged.error(), None, "{merged:?}");
    assert!(after.text.contains("Once upon a time"), "{after:?}");
}
