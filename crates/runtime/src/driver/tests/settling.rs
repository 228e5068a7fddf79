//! Tests of the commit at the end of a turn.

use super::copying::{drive, file, with_workspaces};
use super::*;
use std::process::Command;

/// Records that a call of an agent has begun to write a file.
async fn begin_to_write(world: &World, agent: &str, turn: TurnId, path: &str) {
    let (owner, evidence) = (world.of(agent), json!({"path": path}));
    let write = world.write(move |tx| {
        Box::pin(async move {
            let started = Record::ToolStarted { call: CallId::new("a"), evidence };
            records::append(tx, &owner, turn, &started).await
        })
    });
    write.await;
}

/// Hires an agent and makes it begin a turn.
async fn hire_and_begin(world: &World, role: &str, wish: Value) -> (String, TurnId) {
    let role = world.call("root", "create_role", json!({"name": role, "rolePrompt": "…"})).await;
    let mut hiring = json!({"roleId": role["id"], "taskBrief": crate::testing::brief()});
    hiring.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
    let hired = world.call("root", "spawn_agent", hiring).await;
    let agent = hired["id"].as_str().unwrap().to_owned();
    world.say("root", &agent, json!("write")).await;
    let turn = world.begin_turn(&agent).await;
    (agent, turn)
}

#[tokio::test]
async fn a_commit_leaves_out_what_only_others_are_writing_in_the_same_workspace() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let (beside, turn) = hire_and_begin(&world, "editor", json!({})).await;
    begin_to_write(&world, &beside, turn, "theirs").await;
    begin_to_write(&world, &beside, turn, "of both").await;
    let (apart, turn) = hire_and_begin(&world, "copyist", json!({"workspace": "own"})).await;
    begin_to_write(&world, &apart, turn, "also in a worktree").await;

    let mut files = Vec::new();
    for name in ["theirs", "of both", "also in a worktree", "mine"] {
        files.push(file(&world, name).await);
    }
    let repository = world.directory.path().join("workspaces/t-1/git");
    if !repository.exists() {
        println!("this test needs git 2.38 or newer, which this machine lacks");
        return;
    }
    let writer = world.hire("root", "writer", json!({})).await;
    world.say("root", &writer, json!("write")).await;
    let tool = FakeTool::new("scribble", move |_| {
        for file in &files {
            std::fs::write(file, "x").unwrap();
        }
        async { Ok(Output::json(json!({}))) }.boxed()
    });
    let tool = FakeTool { evidence: json!({"path": "of both"}), ..tool };
    let says = vec![Say::Call("scribble", json!({})), Say::Text("written")];
    drive(&world, &writer, says, vec![tool]).await;
    let list = ["ls-tree", "-r", "--name-only", "main"];
    let listed = Command::new("git").arg("-C").arg(repository).args(list).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "also in a worktree\nmine\nof both\n");
}

/// A tool of root has written a file and still runs when the person stops root.
#[tokio::test]
async fn what_a_stopped_turn_has_changed_is_committed_in_the_name_of_its_agent() {
    let world = World::new().await;
    world.say("user", "root", json!("write")).await;
    let note = file(&world, "note").await;
    let repository = world.directory.path().join("workspaces/t-1/git");
    if !repository.exists() {
        println!("this test needs git 2.38 or newer, which this machine lacks");
        return;
    }
    let written = Arc::new(Notify::new());
    let at = Arc::clone(&written);
    let tool = FakeTool::new("scribble", move |_| {
        std::fs::write(&note, "x").unwrap();
        at.notify_one();
        std::future::pending::<Result<Output, Refusal>>().boxed()
    });
    let script = ScriptedModel::in_order(vec![Say::Call("scribble", json!({}))]);
    let handles = world.handles(script, with_workspaces(&world, vec![tool]));
    let (root, halt) = (world.of("root"), CancellationToken::new());
    let stop = async {
        written.notified().await;
        let target = crate::steer::Target::Agent(AgentId::root());
        crate::steer::stop(&world.store, Arc::clone(&world.snapshot), target).await.unwrap();
        halt.cancel();
    };
    let (ran, ()) = tokio::join!(run(&handles, &root, &halt), stop);
    ran.unwrap();
    assert_eq!(world.query("SELECT state FROM turns").await, ["stopped"]);
    let log = ["log", "-1", "--format=%ae", "--name-only", "main"];
    let log = Command::new("git").arg("-C").arg(repository).args(log).output().unwrap();
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let lines: Vec<&str> = log.lines().filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, ["root@polity.invalid", "note"]);
}

/// A commit may fail because the database cannot be read: here, the place of the workspace becomes unreadable during the
/// last model call.
#[tokio::test]
async fn a_turn_ends_even_if_its_changes_cannot_be_committed() {
    let world = World::new().await;
    world.say("user", "root", json!("write")).await;
    let (store, first) = (world.store.clone(), AtomicBool::new(true));
    let script = ScriptedModel::function(move |_| {
        let (store, is_first) = (store.clone(), first.swap(false, Ordering::SeqCst));
        Box::pin(async move {
            if is_first {
                return Say::Call("scribble", json!({}));
            }
            let damage = store.write(|tx| {
                Box::pin(async move {
                    let damaged = "UPDATE tasks SET workspace = 'damaged'";
                    polity_sql::query(damaged).execute(&mut tx.connection).await?;
                    Ok(())
                })
            });
            damage.await.unwrap();
            Say::Text("written")
        })
    });
    let tool = FakeTool::returns("scribble", Ok(Output::json(json!({}))));
    let handles = world.handles(script, with_workspaces(&world, vec![tool]));
    run(&handles, &world.of("root"), &CancellationToken::new()).await.unwrap();
    assert_eq!(world.query("SELECT state FROM turns").await, ["done"]);
}
