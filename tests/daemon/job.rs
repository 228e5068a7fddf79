//! A real job: agents find a bug in a repository, correct it in worktrees of their own, run the tests in the sandbox,
//! merge and report. Kills at random moments (`kill -9`) must not change the result.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use polity_tests::{Answer, Conversation, Polity, ScriptedServer, ToolResult};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::{home, run, start};

/// The program with the bug. The mender corrects its last line, and the documenter its first line.
const PROGRAM: &str = "# TODO: say what this does\nset -eu\n\n: \"$1\" \"$2\"\n\necho $(($1 - $2))\n";
const CHECK: &str = "[ \"$(sh add.sh 2 3)\" = 5 ] && echo all good\n";

/// An agent that root hires: its role, the text that its edit replaces, and the closing text of its turn.
struct Child {
    role: &'static str,
    old: &'static str,
    new: &'static str,
    says: &'static str,
}

const MENDER: Child = Child { role: "mender", old: "$1 - $2", new: "$1 + $2", says: "the bug is mended" };
const DOCUMENTER: Child = Child {
    role: "documenter",
    old: "# TODO: say what this does",
    new: "# Adds two numbers.",
    says: "the header is written",
};
const CHECKER: &str = "checker";

fn hire(role: &str, has_worktree: bool) -> (&'static str, Value) {
    let mut arguments = json!({
        "role": {"name": role, "rolePrompt": "…"}, "taskBrief": brief(role), "initialMessage": {"text": "go"},
    });
    if has_worktree {
        arguments["workspace"] = json!("own");
    }
    ("spawn_agent_with_task", arguments)
}

/// Returns a call of a command that appends a unique mark to a file and then runs the tests. If a kill leaves the
/// outcome of a command unknown, the agent runs the command again with a new mark. So a mark that appears twice
/// proves that a command ran twice.
fn check(asked: &Conversation, mark: &str) -> Answer {
    let attempt = asked.results_of("bash").len();
    let command = format!("echo {mark}-{attempt} >> marks-{mark}.txt; sh check.sh");
    Answer::call("bash", json!({"command": command}))
}

/// Returns the last result of `bash` that is not an error. A command whose outcome is unknown has an error as its
/// result.
fn checked(asked: &Conversation) -> Option<ToolResult> {
    asked.results_of("bash").into_iter().rfind(|result| result.error().is_none())
}

fn root(asked: &Conversation) -> Answer {
    let hired = asked.results_of("spawn_agent_with_task");
    let merged = asked.results_of("merge_workspace");
    let has_heard = |says: &str| asked.text_contains(says);
    match (hired.len(), merged.len()) {
        (0, _) => {
            let ((tool, mender), (_, documenter)) = (hire(MENDER.role, true), hire(DOCUMENTER.role, true));
            Answer::call(tool, mender).and_call(tool, documenter)
        }
        (_, 0) if !has_heard(MENDER.says) || !has_heard(DOCUMENTER.says) => Answer::say("waiting for both"),
        (_, 0) => Answer::call("merge_workspace", json!({"agentId": hired[0].value["id"]}))
            .and_call("merge_workspace", json!({"agentId": hired[1].value["id"]})),
        (2, _) => {
            assert!(merged.iter().all(|merge| merge.error().is_none()), "{merged:?}");
            let (tool, checker) = hire(CHECKER, false);
            Answer::call(tool, checker)
        }
        _ if has_heard("all good") => Answer::say("the program adds: all good"),
        _ => Answer::say("waiting for the checker"),
    }
}

fn child(asked: &Conversation, child: &Child) -> Answer {
    match asked.results_of("str_replace_editor").len() {
        0 => Answer::call("str_replace_editor", json!({"command": "view", "path": "add.sh"})),
        1 => Answer::call(
            "str_replace_editor",
            json!({"command": "str_replace", "path": "add.sh", "old_str": child.old, "new_str": child.new}),
        ),
        _ if checked(asked).is_none() => check(asked, child.role),
        _ => Answer::say(child.says),
    }
}

fn script(asked: &Conversation) -> Answer {
    match asked.agent_id().split_once('-').map(|(role, _)| role.to_owned()).as_deref() {
        Some("mender") => child(asked, &MENDER),
        Some("documenter") => child(asked, &DOCUMENTER),
        Some(CHECKER) => match checked(asked) {
            None => check(asked, CHECKER),
            Some(result) => Answer::say(format!("the tests said: {}", result.text)),
        },
        _ => root(asked),
    }
}

/// Creates a git repository with the program that has the bug. Returns `None` if git is not installed.
fn repository(polity: &Polity) -> Option<PathBuf> {
    let directory = polity.home().join("project");
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("add.sh"), PROGRAM).expect("a file");
    fs::write(directory.join("check.sh"), CHECK).expect("a file");
    let git = |arguments: &[&str]| {
        let identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        let mut command = Command::new("git");
        command.arg("-C").arg(&directory).args(identity).args(arguments);
        command.output().ok().filter(|output| output.status.success())
    };
    git(&["init", "-q"])?;
    git(&["add", "."])?;
    git(&["commit", "-qm", "Begin"])?;
    Some(directory)
}

/// Tests the program with numbers that no agent has seen, and checks that both edits are in the program.
fn hidden_tests(project: &Path) {
    let add = |one: &str, other: &str| {
        let output = Command::new("sh").args(["add.sh", one, other]).current_dir(project).output();
        String::from_utf8_lossy(&output.expect("sh").stdout).trim().to_owned()
    };
    assert_eq!((add("2", "3"), add("40", "2"), add("7", "-7")), ("5".into(), "42".into(), "0".into()));
    let program = fs::read_to_string(project.join("add.sh")).expect("a file");
    let mended = PROGRAM.replace(MENDER.old, MENDER.new).replace(DOCUMENTER.old, DOCUMENTER.new);
    assert_eq!(program, mended, "an edit was lost");
}

/// Fails if a command ran twice. Each command has left a mark in a file, and the merges have copied these files into
/// the project.
fn no_command_ran_twice(project: &Path) {
    for role in [MENDER.role, DOCUMENTER.role, CHECKER] {
        let marks = fs::read_to_string(project.join(format!("marks-{role}.txt"))).expect("marks");
        let marks: Vec<&str> = marks.lines().collect();
        let once: BTreeSet<&str> = marks.iter().copied().collect();
        assert!(!marks.is_empty() && marks.len() == once.len(), "{marks:?}");
    }
}

/// Returns whether git or bubblewrap is not installed, so that the job is impossible. If so, prints that this test was
/// skipped.
#[expect(clippy::print_stdout, reason = "says what was not checked")]
fn cannot_be_done(project: Option<&PathBuf>) -> bool {
    let missing = match project {
        None => Some("git"),
        Some(_) if Command::new("bwrap").arg("--version").output().is_err() => Some("bubblewrap"),
        Some(_) => None,
    };
    if let Some(missing) = missing {
        println!("not checked: {missing} is not installed");
    }
    missing.is_some()
}

/// Does the job once, and kills the process at up to `kills` random moments. Returns the number of kills before the
/// end of the job.
fn job(seed: u64, kills: usize) -> Option<usize> {
    let server = ScriptedServer::start(script);
    let polity = home(&server, &json!({"language": "en"}));
    let project = repository(&polity);
    if cannot_be_done(project.as_ref()) {
        return None;
    }
    let project = project.expect("a repository");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut arguments = vec!["mend it", "--workspace", "project"];
    let mut hits = 0;
    while hits < kills {
        let before = server.request_count();
        let mut running = start(&polity, &arguments);
        // The kill comes after this many requests and a short pause: during a model call, between two calls, or in a
        // tool.
        let wanted = before + random.usize(1..4);
        let pause = Duration::from_millis(random.u64(0..120));
        while server.request_count() < wanted && !running.has_ended() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(pause);
        if running.has_ended() {
            break;
        }
        running.kill9();
        hits += 1;
        arguments = vec!["--resume"];
    }
    run(&polity, &arguments).expect_code(0);
    let said = run(&polity, &["--resume"]).expect_code(0);
    assert_eq!(said.stdout, "", "a result was printed twice");
    hidden_tests(&project);
    no_command_ran_twice(&project);
    Some(hits)
}

#[test]
fn three_agents_mend_a_repository_whatever_kills_the_process() {
    job(1, 0);
    for seed in 2..4 {
        job(seed, 8);
    }
}

/// The command `just job` runs this test. It does the job again and again, until there were as many kills as the
/// variable `POLITY_JOB_KILLS` says.
#[test]
#[ignore = "takes minutes: `just job`"]
fn the_job_under_many_kills() {
    let wanted = std::env::var("POLITY_JOB_KILLS").ok().and_then(|kills| kills.parse().ok()).unwrap_or(100);
    let (mut hits, mut seed) = (0, 100);
    while hits < wanted {
        let Some(more) = job(seed, 12) else { return };
        hits += more;
        println!("seed {seed}: {more} kills hit, {hits} in all");
        seed += 1;
    }
}
