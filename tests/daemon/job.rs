//! A real job: agents search a repository for a bug, correct it in worktrees of their own, run the tests in the sandbox,
//! merge and report. Two of these agents change the same function. So the second merge is refused, the refusal names
//! the overlap, and no edit is lost. At the end, the test checks the program with hidden tests, which no agent has
//! seen. Kills at random moments (`kill -9`) must not change the result.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use polity_tests::{Answer, Conversation, Polity, ScriptedServer, ToolResult};
use serde_json::{Value, json};

use crate::support::hiring::brief;
use crate::support::{home, run, sandbox_level, start};

const PATH: &str = "add.sh";

/// The program with the bug. The mender corrects the line with the sum. The documenter rewrites the first line, and adds
/// a comment to the line with the sum, so their edits overlap.
const PROGRAM: &str =
    "# TODO: say what this does\nset -eu\n\nadd() {\n    echo $(($1 - $2))\n}\n\nadd \"$1\" \"$2\"\n";
const CHECK: &str = "[ \"$(sh add.sh 2 3)\" = 5 ] && echo all good\n";

/// The program with everything that both agents have written.
const MENDED: &str = "# Adds two numbers. Both are whole numbers.\nset -eu\n\nadd() {\n    echo $(($1 + $2))\n}\n\n\
    add \"$1\" \"$2\"\n";

/// The hidden tests. They are outside the project, so no agent can read them. [`CANARY`] is in their text.
const HIDDEN: &str = "# canary-7c1e
check() {
    [ \"$(sh add.sh \"$1\" \"$2\")\" = \"$3\" ] || { echo \"add.sh $1 $2 is not $3\"; exit 1; }
}
check 2 3 5
check 40 2 42
check 7 -7 0
check 123456 654321 777777
";
const CANARY: &str = "canary-7c1e";

/// The mender's search for the bug. It fits only the line with the sum, which is in `add.sh`.
const SEARCH: &str = r"\$\(\(";

/// An edit of `add.sh`: the text that it replaces, and the new text.
type Edit = (&'static str, &'static str);

/// An agent that root hires into a worktree of its own: its role, its edits, and the closing text of its turn.
struct Child {
    role: &'static str,
    edits: &'static [Edit],
    says: &'static str,
}

const MENDER: Child = Child { role: "mender", edits: &[("$1 - $2", "$1 + $2")], says: "the bug is mended" };
const DOCUMENTER: Child = Child {
    role: "documenter",
    edits: &[
        ("# TODO: say what this does", "# Adds two numbers."),
        ("    echo", "    # Both are whole numbers.\n    echo"),
    ],
    says: "the comments are written",
};
const CHECKER: &str = "checker";

/// Root's request to the documenter to adapt its work. The documenter then takes over the mender's line, and moves its
/// own comment from there to the first line.
const PLEASE_ADAPT: &str = "please adapt your work: somebody else has corrected the line with the sum";
const ADAPTATIONS: [Edit; 2] = [
    ("    # Both are whole numbers.\n    echo $(($1 - $2))", "    echo $(($1 + $2))"),
    ("# Adds two numbers.", "# Adds two numbers. Both are whole numbers."),
];
const ADAPTED: &str = "the work is adapted";

fn hire(role: &str, has_worktree: bool) -> (&'static str, Value) {
    let mut arguments = json!({
        "role": {"name": role, "rolePrompt": "…"}, "taskBrief": brief(role), "initialMessage": {"text": "go"},
    });
    if has_worktree {
        arguments["workspace"] = json!("own");
    }
    ("spawn_agent_with_task", arguments)
}

/// Returns a call of a command that appends a unique mark to a file, tries to read the hidden tests, and then runs the
/// tests of the project. The agent runs the command again if a kill has left the outcome unknown, but then with a new
/// mark. So a mark that appears twice proves that the daemon ran a command twice.
fn check(asked: &Conversation, mark: &str) -> Answer {
    let attempt = asked.results_of("bash").len();
    let command = format!("echo {mark}-{attempt} >> marks-{mark}.txt; cat ../hidden/tests.sh; sh check.sh");
    Answer::call("bash", json!({"command": command}))
}

/// Returns the results of `bash` that are not errors. A command whose outcome is unknown has an error as its result.
fn checked(asked: &Conversation) -> Vec<ToolResult> {
    asked.results_of("bash").into_iter().filter(|result| result.error().is_none()).collect()
}

fn view(path: &str) -> Answer {
    Answer::call("str_replace_editor", json!({"command": "view", "path": path}))
}

fn edit(path: &str, (old, new): Edit) -> Answer {
    let arguments = json!({"command": "str_replace", "path": path, "old_str": old, "new_str": new});
    Answer::call("str_replace_editor", arguments)
}

/// Checks that the merge of the mender's work has succeeded. Also checks that the merge of the documenter's work was
/// refused, and that the refusal names the overlap.
fn check_conflict(merged: &[ToolResult]) {
    let [mender, documenter] = merged else { panic!("{merged:?}") };
    assert_eq!((mender.error(), documenter.error()), (None, Some("merge_conflict")));
    let hunk = json!({
        "line": 5,
        "ours": "    echo $(($1 + $2))\n",
        "base": "    echo $(($1 - $2))\n",
        "theirs": "    # Both are whole numbers.\n    echo $(($1 - $2))\n",
    });
    let expect = json!([{"path": "add.sh", "kind": "content", "hunks": [hunk]}]);
    assert_eq!(documenter.value["conflicts"], expect);
}

fn root(asked: &Conversation) -> Answer {
    let hired = asked.results_of("spawn_agent_with_task");
    let merged = asked.results_of("merge_workspace");
    let merge = |child: usize| json!({"agentId": hired[child].value["id"]});
    let has_heard = |says: &str| asked.text_contains(says);
    match (hired.len(), merged.len()) {
        (0, _) => {
            let ((tool, mender), (_, documenter)) = (hire(MENDER.role, true), hire(DOCUMENTER.role, true));
            Answer::call(tool, mender).and_call(tool, documenter)
        }
        (_, 0) if !has_heard(MENDER.says) || !has_heard(DOCUMENTER.says) => Answer::say("waiting for both"),
        (_, 0) => Answer::call("merge_workspace", merge(0)).and_call("merge_workspace", merge(1)),
        (2, 2) if !asked.has_called("send_message") => {
            check_conflict(&merged);
            let payload = json!({"message_type": "collaboration_request", "text": PLEASE_ADAPT});
            Answer::call("send_message", json!({"to": hired[1].value["id"], "payload": payload}))
        }
        (2, 2) if !has_heard(ADAPTED) => Answer::say("waiting for the documenter"),
        (2, 2) => Answer::call("merge_workspace", merge(1)),
        (2, _) => {
            assert_eq!((merged.len(), merged[2].error()), (3, None), "{merged:?}");
            let (tool, checker) = hire(CHECKER, false);
            Answer::call(tool, checker)
        }
        _ if has_heard("all good") => Answer::say("the program adds: all good"),
        _ => Answer::say("waiting for the checker"),
    }
}

/// Returns the path that the result of [`SEARCH`] names. The line with the sum is line 5.
fn path_in(found: &ToolResult) -> &str {
    let (before, _) = found.text.split_once(":5: ").unwrap_or_else(|| panic!("no line 5 in {found:?}"));
    before.rsplit([' ', '\n']).next().expect("a path")
}

/// Plays the mender: it searches for the bug, and corrects the file that the search has found.
fn mender(asked: &Conversation) -> Answer {
    let found = asked.results_of("search_files");
    match found.first() {
        None => Answer::call("search_files", json!({"pattern": SEARCH})),
        Some(found) => child(asked, &MENDER, path_in(found)),
    }
}

/// Plays the first turn of an agent: it views the program, edits it, and runs the tests.
fn child(asked: &Conversation, child: &Child, path: &str) -> Answer {
    match asked.results_of("str_replace_editor").len() {
        0 => view(path),
        done if done <= child.edits.len() => edit(path, child.edits[done - 1]),
        _ if checked(asked).is_empty() => check(asked, child.role),
        _ => Answer::say(child.says),
    }
}

/// Plays the documenter. In its second turn, it adapts its work to that of the mender, and runs the tests again.
fn documenter(asked: &Conversation) -> Answer {
    if !asked.text_contains(PLEASE_ADAPT) {
        return child(asked, &DOCUMENTER, PATH);
    }
    let before = 1 + DOCUMENTER.edits.len();
    match asked.results_of("str_replace_editor").len() - before {
        0 => view(PATH),
        done if done <= ADAPTATIONS.len() => edit(PATH, ADAPTATIONS[done - 1]),
        _ if checked(asked).len() < 2 => check(asked, DOCUMENTER.role),
        _ => Answer::say(ADAPTED),
    }
}

fn script(asked: &Conversation) -> Answer {
    match asked.agent_id().split_once('-').map(|(role, _)| role.to_owned()).as_deref() {
        Some("mender") => mender(asked),
        Some("documenter") => documenter(asked),
        Some(CHECKER) => match checked(asked).first() {
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
        let output = command.output().ok()?;
        assert!(output.status.success(), "git {arguments:?}: {output:?}");
        Some(())
    };
    git(&["init", "-q"])?;
    git(&["add", "."])?;
    git(&["commit", "-qm", "Begin"])?;
    Some(directory)
}

/// Creates the hidden tests beside the project, where no agent can see them. Returns their path.
fn hidden_tests(polity: &Polity) -> PathBuf {
    let directory = polity.home().join("hidden");
    fs::create_dir(&directory).expect("a directory");
    let tests = directory.join("tests.sh");
    fs::write(&tests, HIDDEN).expect("a file");
    tests
}

/// Runs the hidden tests on the program. Returns the complaint of these tests, which is empty if they pass.
fn complaint(tests: &Path, project: &Path) -> String {
    let output = Command::new("sh").arg(tests).current_dir(project).output().expect("sh");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.success(), said.is_empty(), "{said}");
    said
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

/// Fails unless the mender has searched for the bug and the result named the program, and only the program.
fn the_search_found_the_program(server: &ScriptedServer) {
    let searches: Vec<ToolResult> = server
        .requests()
        .iter()
        .flat_map(|request| request.conversation().results_of("search_files"))
        .collect();
    assert!(!searches.is_empty(), "nobody has searched for the bug");
    for found in searches {
        assert_eq!(path_in(&found), PATH, "{found:?}");
        assert!(found.text.contains("1 line in 1 file"), "{found:?}");
    }
}

/// Fails if a request contains the text of the hidden tests.
fn no_agent_read_the_hidden_tests(server: &ScriptedServer) {
    let has_read = |asked: &Conversation| asked.body().to_string().contains(CANARY);
    let requests = server.requests();
    assert!(!requests.iter().any(|request| has_read(&request.conversation())), "the hidden tests were read");
}

/// Does the job once, and kills the process at random moments, at most `kills` times. Returns the number of kills
/// before the end of the job, or `None` if git is not installed. The commands run at the sandbox level of this machine.
fn job(seed: u64, kills: usize) -> Option<usize> {
    let server = ScriptedServer::start(script);
    // Allow commands. Otherwise, the person would be asked about them outside a `full` sandbox, and without a sandbox
    // there would be none.
    let policy = json!([{"tool": "bash", "decide": "allow"}]);
    let tools = json!({"policy": policy, "sandbox": {"allowNone": true}});
    let polity = home(&server, &json!({"language": "en", "tools": tools}));
    let Some(project) = repository(&polity) else {
        polity_tests::tell("not checked: git is not installed");
        return None;
    };
    let level = sandbox_level(&polity);
    polity_tests::tell(&format!("the commands of the real job run at the sandbox level `{level}`"));
    let tests = hidden_tests(&polity);
    assert_eq!(complaint(&tests, &project), "add.sh 2 3 is not 5\n", "the hidden tests find the bug");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut arguments = vec!["mend it", "--workspace", "project"];
    let mut hits = 0;
    while hits < kills {
        let before = server.request_count();
        let mut running = start(&polity, &arguments);
        // The kill comes after `wanted` requests in all and a short pause. So it can come during a model call, between
        // two calls, or in a tool.
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
    assert_eq!(complaint(&tests, &project), "");
    assert_eq!(fs::read_to_string(project.join("add.sh")).expect("a file"), MENDED, "an edit was lost");
    the_search_found_the_program(&server);
    if level == "none" {
        polity_tests::tell("not checked: without a sandbox, nothing keeps a command from the hidden tests");
    } else {
        no_agent_read_the_hidden_tests(&server);
    }
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

/// The command `just job` runs this test. The test does the job again and again, until there were at least
/// `POLITY_JOB_KILLS` kills.
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
