//! Tests of foreground commands: sandbox levels, settings and limits.

use crate::bench::{Bench, SANDBOXES, task};
use polity_hands::call::{Access, Content, Output, Referred, Root};
use polity_hands::tool::Confinement;
use polity_sandbox::{Level, Limits, Network};
use polity_sandbox::{TaskLimits, Unconfined};
use polity_society::command::{CommandEnd, CommandLimit};
use polity_society::refusal::Refusal;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;

#[tokio::test(flavor = "multi_thread")]
async fn a_command_runs_in_each_sandbox() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        assert_eq!(bench.tools(), ["bash", "bash_output", "bash_stop"]);
        let result = bench.bash("echo one > file; cat file; exit 3").await;
        assert_eq!((&result["exitCode"], &result["output"]), (&json!(3), &json!("one\n")), "{level:?}");
        let fields: BTreeSet<&str> = result.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(fields, BTreeSet::from(["durationMs", "exitCode", "output"]), "{level:?}");
        let slow = bench.bash("sleep 0.1").await;
        assert!(slow["durationMs"].as_u64().is_some_and(|duration| duration >= 100), "{level:?}: {slow}");
        let expected = if level == Level::Full { Confinement::Full } else { Confinement::Partial };
        assert_eq!(bench.commands.confinement(), expected);
        bench.settings.lock().unwrap().network = Network::Full;
        let expected = if level == Level::Full { Confinement::FullWithNetwork } else { Confinement::Partial };
        assert_eq!(bench.commands.confinement(), expected);
    }
}

/// A command starts in the workspace, without the directory and the variables of the command before.
#[tokio::test(flavor = "multi_thread")]
async fn each_command_runs_in_a_fresh_shell() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let first = bench.bash("mkdir d; cd d; export LEFT=behind; exec 2>&-").await;
        assert_eq!(first["exitCode"], 0, "{level:?}: {first}");
        let second = bench.bash("[ -d d ] && echo \"${LEFT-nothing}\"; echo heard >&2").await;
        assert_eq!(second["output"], "nothing\nheard\n", "{level:?}: {second}");
    }
}

/// The policy judges the command that runs, whatever style the name of its argument has.
#[tokio::test(flavor = "multi_thread")]
async fn the_command_that_is_judged_is_the_command_that_runs() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    for arguments in [
        json!({"command": "echo x"}),
        json!({"Command": "echo x"}),
        json!({"COMMAND": "echo x", "timeout_ms": 60_000}),
        json!({"com_mand": "echo x"}),
        json!({"command": null, "Command": "echo x"}),
        json!({"Command": "echo x", "command": null}),
    ] {
        assert_eq!(bench.judged(&arguments), "echo x", "{arguments}");
        assert_eq!(bench.call("bash", arguments.clone()).await["output"], "x\n", "{arguments}");
    }
    // These calls are refused before the person is asked, so nothing runs.
    for (arguments, judged) in [
        (json!({}), ""),
        (json!({"command": ["git", "push"]}), ""),
        (json!({"command": "git push", "other": 1}), "git push"),
        (json!({"command": "ls", "Command": "git push"}), "ls"),
        (json!({"Command": "ls", "COMMAND": "git push"}), "ls"),
    ] {
        assert_eq!(bench.judged(&arguments), judged, "{arguments}");
        let prepared = bench.prepare("bash", arguments.clone()).await;
        assert!(matches!(prepared, Err(Refusal::InvalidArguments(_))), "{arguments}: {prepared:?}");
        let ran = bench.try_call_as("a-1", "bash", arguments.clone()).await;
        assert!(matches!(ran, Err(Refusal::InvalidArguments(_))), "{arguments}: {ran:?}");
    }
}

/// The result shows the beginning and the end of a long output, and a file has all of it.
#[tokio::test(flavor = "multi_thread")]
async fn a_long_output_is_shown_in_part_and_is_a_file_as_a_whole() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let all: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
        let check = |output: &Output| {
            let Content::Json(result) = &output.content else { panic!("{output:?}") };
            let shown = result["output"].as_str().unwrap();
            assert!(shown.starts_with("1\n2\n") && shown.ends_with("\n100000\n"), "{level:?}: {shown}");
            assert!(shown.contains("bytes left out") && shown.len() < all.len() / 2, "{level:?}");
            let Some(Referred { field, file }) = &output.referred else { panic!("{level:?}: no file") };
            assert!(file.bytes == all, "{level:?}: {} bytes", file.bytes.len());
            assert_eq!(file.declared_mime.as_deref(), Some("text/plain"));
            assert_eq!((*field, output.files.len()), ("artifact", 0));
        };
        let run = async |tool: &str, arguments: Value| {
            bench.try_run(Root::Made, "a-1", tool, arguments).await.unwrap()
        };
        check(&run("bash", json!({"command": "seq 1 100000"})).await);
        let id = bench.start("seq 1 100000").await;
        bench.ends(1).await;
        check(&run("bash_output", json!({"id": id})).await);
        let short = run("bash", json!({"command": "seq 1 1000"})).await;
        assert_eq!(short.files, [], "{level:?}: all of a short output is shown");
        assert_eq!(short.referred, None, "{level:?}");
    }
}

/// Runs git for the person, without the git configuration of this machine.
fn git(directory: &Path, arguments: &[&str]) -> bool {
    let mut command = std::process::Command::new("git");
    command.current_dir(directory).args(["-c", "user.name=a", "-c", "user.email=a@b"]).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
    command.status().is_ok_and(|status| status.success())
}

/// In a directory of the person, commands can read the git directory, but cannot change it. So they cannot commit.
#[tokio::test(flavor = "multi_thread")]
async fn commands_do_not_change_the_git_directory_of_the_person() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let person = tempfile::TempDir::new().unwrap();
        let directory = person.path().canonicalize().unwrap();
        if !git(&directory, &["init", "-q"]) {
            println!("skipped: no git");
            continue;
        }
        assert!(git(&directory, &["commit", "-q", "--allow-empty", "-m", "First"]));
        let head = std::fs::read(directory.join(".git/HEAD")).unwrap();
        let root = Root::Person { directory: directory.clone(), access: Access::Write };
        let command = "git log --format=%s; (echo evil > .git/HEAD) 2>/dev/null; (echo evil > .git/new) 2>/dev/null; \
                       git -c user.name=a -c user.email=a@b commit -q --allow-empty -m Second 2>/dev/null; \
                       echo work > made; echo end";
        let output = bench.try_run(root, "a-1", "bash", json!({"command": command})).await.unwrap();
        let Content::Json(result) = output.content else { panic!() };
        let shown = result["output"].as_str().unwrap();
        assert!(shown.starts_with("First\n") && shown.ends_with("end\n"), "{level:?}: {result}");
        assert_eq!(std::fs::read(directory.join(".git/HEAD")).unwrap(), head, "{level:?}: {result}");
        assert!(!directory.join(".git/new").exists(), "{level:?}: {result}");
        assert!(!git(&directory, &["rev-parse", "-q", "--verify", "HEAD~1"]), "{level:?}: there is a commit");
        assert_eq!(std::fs::read(directory.join("made")).unwrap(), b"work\n", "{level:?}");
    }
}

/// If polity made the workspace, the git directory is beside the workspace. Commands can read it, but cannot change it.
#[tokio::test(flavor = "multi_thread")]
async fn git_shows_the_history_of_a_workspace_that_polity_made() {
    for level in SANDBOXES {
        let data = tempfile::TempDir::new().unwrap();
        let Some(bench) = Bench::in_directory(data.path(), level).await else { continue };
        let result =
            bench.bash("git log --format=%s; git status --short; (echo evil > .git) 2>/dev/null; true").await;
        let repository = data.path().join("workspaces").join(task().as_str()).join("git");
        if !repository.exists() {
            println!("skipped: no git that polity can use");
            continue;
        }
        assert_eq!(result["output"], "Begin the workspace\n", "{level:?}: {result}");
        let head = std::fs::read(repository.join("HEAD")).unwrap();
        let evil = format!("(echo evil > {}/HEAD) 2>/dev/null || echo refused", repository.display());
        assert_eq!(bench.bash(&evil).await["output"], "refused\n", "{level:?}");
        assert_eq!(std::fs::read(repository.join("HEAD")).unwrap(), head, "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_sandbox_there_are_no_commands_unless_the_person_allows_them() {
    let bench = Bench::at(Level::None).await.unwrap();
    assert_eq!(bench.tools(), <[&str; 0]>::default());
    bench.settings.lock().unwrap().allow_none = Unconfined::Allowed;
    assert_eq!(bench.bash("echo free").await["output"], "free\n");
    assert_eq!(bench.commands.confinement(), Confinement::None);
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_count_from_the_next_call_on() {
    let level = Level::Partial;
    let Some(bench) = Bench::at(level).await else { return };
    assert_eq!(bench.bash("sleep 0.3; echo done").await["output"], "done\n");
    bench.settings.lock().unwrap().limits.timeout_ms = 200;
    let result = bench.bash("sleep 1000").await;
    assert_eq!(result["ended"], "stopped after 200 ms");
    let longer = bench.call("bash", json!({"command": "sleep 1000", "timeoutMs": 900_000})).await;
    assert_eq!(longer["ended"], "stopped after 200 ms", "a call cannot raise the limit");
    bench.settings.lock().unwrap().limits = Limits { output_bytes: 100, ..Limits::default() };
    assert_eq!(bench.bash("yes").await["ended"], "stopped: it printed more than 100 bytes");
    let library = tempfile::TempDir::new().unwrap();
    std::fs::write(library.path().join("book"), "a book").unwrap();
    let book = library.path().join("book").display().to_string();
    assert_ne!(bench.bash(&format!("cat {book}")).await["output"], "a book");
    bench.settings.lock().unwrap().read = vec![library.path().to_owned()];
    assert_eq!(bench.bash(&format!("cat {book}")).await["output"], "a book");
}

/// Each of two commands stays within its own limits, but together they exceed the limit of the task.
#[tokio::test(flavor = "multi_thread")]
async fn the_heavier_command_ends_if_all_of_a_task_exceed_a_limit() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        bench.settings.lock().unwrap().task_limits = TaskLimits { processes: 40, ..TaskLimits::default() };
        let many = |count: u32| format!("for i in $(seq {count}); do sleep 1000 & done; echo up; wait");
        let light = bench.start(&many(12)).await;
        bench.printed(&light, "up").await;
        let result = bench.bash(&many(34)).await;
        let expected = "stopped: the commands of this task together had more than 40 processes";
        assert_eq!(result["ended"], expected, "{level:?}: {result}");
        assert_eq!(bench.output(&light).await["running"], true, "{level:?}");
    }
}

/// Returns why no command starts.
async fn refused(bench: &Bench) -> String {
    match bench.try_call_as("a-2", "bash", json!({"command": "echo more"})).await {
        Err(Refusal::ToolFailed { tool, reason }) if tool == "bash" => reason,
        other => panic!("{other:?}"),
    }
}

/// All commands of a task together use up the time of the task. The commands of earlier runs of polity count, too.
#[tokio::test(flavor = "multi_thread")]
async fn when_the_time_of_a_task_is_used_up_its_commands_end_and_no_more_start() {
    for level in SANDBOXES {
        let home = tempfile::TempDir::new().unwrap();
        let Some(bench) = Bench::in_directory(home.path(), level).await else { continue };
        let limits = TaskLimits { time_ms: 300, ..TaskLimits::default() };
        bench.settings.lock().unwrap().task_limits = limits.clone();
        let words = "the commands of this task together have run for 300 ms";
        assert_eq!(bench.bash("sleep 1000").await["ended"], format!("stopped: {words}"), "{level:?}");
        let reason = format!(
            "{words}, so no further one starts; the person can raise tools.sandbox.taskLimits.timeMs in app.json"
        );
        assert_eq!(refused(&bench).await, reason, "{level:?}");
        drop(bench);

        let bench = Bench::in_directory(home.path(), level).await.unwrap();
        bench.settings.lock().unwrap().task_limits = limits.clone();
        assert_eq!(refused(&bench).await, reason, "{level:?}: after a restart");
        bench.settings.lock().unwrap().task_limits = TaskLimits::default();
        let id = bench.start("echo up; sleep 1000").await;
        bench.printed(&id, "up").await;
        // The person lowers the limit while a command runs.
        bench.settings.lock().unwrap().task_limits = limits;
        assert_eq!(refused(&bench).await, reason, "{level:?}");
        let told = bench.ends(1).await;
        assert_eq!(told[0].end, CommandEnd::Limited { limit: CommandLimit::TaskTime }, "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn when_the_output_of_a_task_is_used_up_its_commands_end_and_no_more_start() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let limit = |output_bytes: u64| {
            let limits = TaskLimits { output_bytes, ..TaskLimits::default() };
            bench.settings.lock().unwrap().task_limits = limits;
        };
        limit(200);
        assert_eq!(bench.bash("head -c 150 /dev/zero | tr '\\0' x").await["exitCode"], 0, "{level:?}");
        limit(150);
        assert!(refused(&bench).await.contains("together have printed 150 bytes"), "{level:?}");
        limit(200);
        let result = bench.bash("while true; do echo 123456789; sleep 0.01; done").await;
        let words = "the commands of this task together have printed 200 bytes";
        assert_eq!(result["ended"], format!("stopped: {words}"), "{level:?}: {result}");
        assert!(refused(&bench).await.starts_with(words), "{level:?}");
        assert!(refused(&bench).await.contains("tools.sandbox.taskLimits.outputBytes"), "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_task_gets_little_disk() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    let limit = |disk_bytes: u64| {
        let limits = TaskLimits { disk_bytes, ..TaskLimits::default() };
        bench.settings.lock().unwrap().task_limits = limits;
    };
    // A file counts as added by a command if it was changed in the second in which the command began. After the pause,
    // no later command counts this file as its own.
    bench.bash("head -c 20000000 /dev/urandom > file; sleep 1.1").await;
    // The task may have 90 MB, so there is room for 80 MB only if the file does not count.
    limit(90_000_000);
    // The size of the directories is measured only from time to time. So several commands may run before the limit
    // takes effect.
    crate::bench::until(async || {
        let result = bench.bash("head -c 80000000 /dev/zero > big; rm -f big").await;
        let is_told = |text: &str| text.contains("File size limit") || text.contains("File too large");
        result["ended"].as_str().is_some_and(|words| words.starts_with("stopped: it added more"))
            || result["output"].as_str().is_some_and(is_told)
            || result["exitCode"] == 153
    })
    .await;
    limit(1_000);
    assert_eq!(bench.bash("rm -f file; echo tidy").await["output"], "tidy\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_told() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    let refused = bench.try_call_as("a-1", "bash_output", json!({"id": "../../x"})).await;
    assert!(matches!(refused, Err(Refusal::InvalidArguments(_))), "{refused:?}");
    let id = bench.start("sleep 1000").await;
    for tool in ["bash_output", "bash_stop"] {
        let refused = bench.try_call_as("a-2", tool, json!({"id": id})).await;
        assert!(matches!(refused, Err(Refusal::InvalidArguments(_))), "{refused:?}");
    }
    assert_eq!(bench.output(&id).await["running"], true, "another agent cannot end it");
}
