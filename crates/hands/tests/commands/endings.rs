//! Tests that commands end with their agent, their task and the daemon.

use crate::bench::{Bench, PATIENCE, SANDBOXES, mark, processes_with, task, until};
use polity_sandbox::Level;
use polity_society::command::CommandEnd;
use polity_society::id::AgentId;
use serde_json::json;
use std::path::Path;

fn is_gone(mark: &str) {
    assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_end_with_their_agent() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let (mine, other) = (mark(), mark());
        let id = bench.start(&format!("echo up; setsid sleep {mine} & sleep {mine}")).await;
        bench.printed(&id, "up").await;
        let background = json!({"command": format!("sleep {other}"), "background": true});
        bench.try_call_as("a-2", "bash", background).await.unwrap();
        until(async || !processes_with(&format!("sleep {other}")).is_empty()).await;
        bench.commands.stop_of_agent(&AgentId::new("a-1")).await;
        is_gone(&mine);
        assert!(!processes_with(&format!("sleep {other}")).is_empty());
        bench.commands.stop_of_task(&task()).await;
        is_gone(&other);
        assert!(bench.told.lock().unwrap().is_empty(), "nobody is left to be told");
        assert!(bench.commands.recover().await.is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_in_the_foreground_ends_with_its_task() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    let mark = mark();
    let command = format!("sleep {mark}");
    let stop = async {
        until(async || !processes_with(&format!("sleep {mark}")).is_empty()).await;
        bench.commands.stop_of_task(&task()).await;
    };
    let (result, ()) = tokio::join!(bench.bash(&command), stop);
    assert_eq!(result["ended"], "stopped");
    is_gone(&mark);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orderly_end_of_the_daemon_interrupts_commands() {
    let data = tempfile::TempDir::new().unwrap();
    let Some(bench) = Bench::in_directory(data.path(), Level::Partial).await else { return };
    let mark = mark();
    let id = bench.start(&format!("echo up; sleep {mark}")).await;
    bench.printed(&id, "up").await;
    bench.commands.stop_all().await;
    is_gone(&mark);
    check_interrupted(data.path(), &id).await;
}

/// Checks that the next daemon reports the end of the command as long as nobody has acknowledged it. Also checks that
/// the output can still be read.
async fn check_interrupted(data: &Path, id: &str) {
    let next = Bench::in_directory(data, Level::Partial).await.unwrap();
    let ended = next.commands.recover().await;
    assert_eq!(ended.len(), 1, "{ended:?}");
    assert_eq!((ended[0].id.as_str(), &ended[0].end), (id, &CommandEnd::Interrupted));
    drop(next);
    let next = Bench::in_directory(data, Level::Partial).await.unwrap();
    assert_eq!(next.commands.recover().await, ended, "nobody has acknowledged it");
    next.commands.acknowledge(&ended[0].id).await;
    assert!(next.commands.recover().await.is_empty());
    let look = next.output(id).await;
    assert_eq!(look["ended"], "interrupted when polity ended", "{look}");
    next.commands.forget(&task()).await.unwrap();
    assert!(!data.join("commands").join(task().as_str()).exists());
}

/// This test runs its own binary as a second process, the daemon, and kills it with SIGKILL.
#[tokio::test(flavor = "multi_thread")]
async fn a_killed_daemon_takes_its_commands_along_and_reports_them_once() {
    const VARIABLE: &str = "POLITY_HANDS_TEST_DAEMON";
    if let Ok(order) = std::env::var(VARIABLE) {
        let (level, rest) = order.split_once(' ').unwrap();
        let (mark, data) = rest.split_once(' ').unwrap();
        let level = SANDBOXES.into_iter().find(|known| format!("{known:?}") == level).unwrap();
        let bench = Bench::in_directory(Path::new(data), level).await.unwrap();
        let command = format!("setsid sleep {mark} & nohup sleep {mark} & sleep {mark}");
        let id = bench.start(&command).await;
        std::fs::write(Path::new(data).join("id"), id).unwrap();
        tokio::time::sleep(PATIENCE).await;
        return;
    }
    for level in SANDBOXES {
        if Bench::at(level).await.is_none() {
            continue;
        }
        let data = tempfile::TempDir::new().unwrap();
        let mark = mark();
        let mut daemon = tokio::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "endings::a_killed_daemon_takes_its_commands_along_and_reports_them_once"])
            .env(VARIABLE, format!("{level:?} {mark} {}", data.path().display()))
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        let file = data.path().join("id");
        until(async || {
            processes_with(&format!("sleep {mark}")).len() >= 3
                && std::fs::read(&file).is_ok_and(|id| !id.is_empty())
        })
        .await;
        daemon.kill().await.unwrap();
        until(async || processes_with(&format!("sleep {mark}")).is_empty()).await;
        check_interrupted(data.path(), &std::fs::read_to_string(&file).unwrap()).await;
    }
}
