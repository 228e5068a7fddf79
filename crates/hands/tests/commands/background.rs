//! Tests of background commands: their output, their ends, and the reports to the listener.

use crate::bench::{Bench, SANDBOXES, mark, processes_with, task, until};
use polity_hands::command::Told;
use polity_sandbox::Level;
use polity_society::command::{CommandEnd, CommandLimit};
use polity_society::id::AgentId;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_background_command_is_watched_and_its_end_is_told_once() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let id = bench.start("echo one; until [ -e go ]; do sleep 0.05; done; echo two; exit 4").await;
        bench.printed(&id, "one").await;
        let look = bench.output(&id).await;
        assert_eq!((&look["running"], &look["output"]), (&json!(true), &json!("")), "seen already: {look}");
        assert!(bench.commands.are_running(&task()));
        assert_eq!(bench.bash("touch go; echo beside").await["output"], "beside\n", "others run meanwhile");
        let look = bench.call("bash_output", json!({"id": id, "wait": 60_000})).await;
        assert_eq!((&look["exitCode"], &look["output"]), (&json!(4), &json!("two\n")), "{level:?}: {look}");
        let told = bench.ends(1).await;
        assert_eq!(told.len(), 1);
        assert_eq!((&told[0].agent, &told[0].task), (&AgentId::new("a-1"), &task()));
        assert_eq!((told[0].id.as_str(), &told[0].end), (id.as_str(), &CommandEnd::Exited { code: 4 }));
        assert_eq!(told[0].last_lines, "one\ntwo");
        until(async || bench.commands.recover().await.is_empty()).await;
        assert_eq!(bench.output(&id).await["exitCode"], 4, "it can still be looked at");
        until(async || !bench.commands.are_running(&task())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn limits_hold_in_the_background() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    let started =
        bench.call("bash", json!({"command": "sleep 1000", "timeoutMs": 300, "background": true})).await;
    let told = bench.ends(1).await;
    assert_eq!(told[0].end, CommandEnd::Limited { limit: CommandLimit::Time });
    let look = bench.call("bash_output", json!({"id": started["id"]})).await;
    assert_eq!(look["exitCode"], json!(null));
}

/// When a command ends, all its processes die. Even processes that have left the session of the shell die.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_outlives_a_background_command() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let mark = mark();
        let id = bench.start(&format!("setsid sleep {mark} & nohup sleep {mark} & echo up; exit 0")).await;
        bench.ends(1).await;
        assert_eq!(bench.output(&id).await["exitCode"], 0);
        assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<String>::new(), "{level:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agent_ends_its_command_and_is_not_told() {
    for level in SANDBOXES {
        let Some(bench) = Bench::at(level).await else { continue };
        let mark = mark();
        let id = bench.start(&format!("setsid sleep {mark} & echo up; sleep {mark}")).await;
        bench.printed(&id, "up").await;
        let stopped = bench.call("bash_stop", json!({"id": id})).await;
        assert_eq!((&stopped["ended"], &stopped["output"]), (&json!("stopped"), &json!("")), "{stopped}");
        assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<String>::new(), "{level:?}");
        assert_eq!(bench.call("bash_stop", json!({"id": id})).await["ended"], "stopped", "a repetition");
        assert!(bench.commands.recover().await.is_empty());
        assert!(bench.told.lock().unwrap().is_empty());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_that_was_not_recorded_is_reported_again_and_is_equal() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    *bench.answer.lock().unwrap() = Told::NotRecorded;
    bench.start("echo words").await;
    let told = bench.ends(1).await;
    let again = bench.commands.recover().await;
    assert_eq!(again, told);
    assert_eq!(bench.commands.recover().await, told, "nobody has acknowledged it");
    bench.commands.acknowledge(&told[0].id).await;
    assert!(bench.commands.recover().await.is_empty());
}

/// The agent is halted while its call is running. Polity still knows the command that the call started, and can end
/// this command.
#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_is_dropped_leaves_no_command_behind() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    for pause in [0, 1, 3, 10, 30] {
        let mark = mark();
        let arguments = json!({"command": format!("sleep {mark}"), "background": true});
        let call = bench.call("bash", arguments);
        let _ = tokio::time::timeout(std::time::Duration::from_millis(pause), call).await;
        bench.commands.stop_of_agent(&AgentId::new("a-1")).await;
        assert!(!bench.commands.are_running(&task()));
        assert_eq!(processes_with(&format!("sleep {mark}")), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_has_few_background_commands() {
    let Some(bench) = Bench::at(Level::Partial).await else { return };
    for _ in 0..16 {
        bench.start("sleep 1000").await;
    }
    let refused =
        bench.try_call_as("a-1", "bash", json!({"command": "sleep 1000", "background": true})).await;
    assert!(format!("{refused:?}").contains("16 background commands"), "{refused:?}");
    bench.commands.stop_of_task(&task()).await;
    bench.start("sleep 1000").await;
    bench.commands.stop_of_task(&task()).await;
}
