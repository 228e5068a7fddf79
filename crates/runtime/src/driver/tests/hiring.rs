//! Tests of hiring an agent with its own worktree.

use super::copying::{drive, results_of, with_workspaces};
use super::*;
use crate::driver::outside::refused_worktree;
use polity_hands::call::{Access, Caller, Place, Root};
use std::collections::HashSet;
use std::path::Path;

/// Lets a lead hire a helper with its own worktree. Returns the result of this call. Returns `None` if this machine has
/// no git that can make worktrees.
async fn hired_by(world: &World, lead: &str) -> Option<Value> {
    let role = world.call(lead, "create_role", json!({"name": "helper", "rolePrompt": "…"})).await;
    world.say("root", lead, json!("hire")).await;
    let wish = json!({"roleId": role["id"], "taskBrief": crate::testing::brief(), "workspace": "own"});
    let says = [Say::Call("spawn_agent", wish), Say::Text("done")];
    let handles =
        world.handles(ScriptedModel::by_role(&[("lead", &says[..])]), with_workspaces(world, Vec::new()));
    run(&handles, &world.of(lead), &CancellationToken::new()).await.unwrap();
    let hired = results_of(world, lead).await.swap_remove(0);
    let message = hired["message"].as_str().unwrap_or_default();
    let lacks_git = message.contains("Git is not installed") || message.contains("is too old");
    if lacks_git {
        println!("this test needs git 2.38 or newer, which this machine lacks");
    }
    (!lacks_git).then_some(hired)
}

/// The task works in a directory of the person.
async fn work_in(world: &World, directory: &Path) {
    let root = Root::Person { directory: directory.to_owned(), access: Access::Write };
    let task = world.task.clone();
    world.write(move |tx| Box::pin(async move { tasks::set_workspace(tx, &task, &root).await })).await;
}

#[tokio::test]
async fn nobody_is_hired_into_a_worktree_that_git_cannot_make() {
    for (has_repository, reason) in [(false, "is no git repository"), (true, "has no commit yet")] {
        let world = World::new().await;
        let project = world.directory.path().join("project");
        std::fs::create_dir(&project).unwrap();
        if has_repository {
            let git = std::process::Command::new("git").args(["init", "-q"]).current_dir(&project).status();
            if !git.is_ok_and(|status| status.success()) {
                println!("this test needs git, which this machine lacks");
                return;
            }
        }
        work_in(&world, &project).await;
        world.say("user", "root", json!("go")).await;
        world.begin_turn("root").await;
        let lead = world.hire("root", "lead", json!({})).await;
        let Some(hired) = hired_by(&world, &lead).await else { return };
        assert_eq!(code(&hired), "workspace_refused", "{hired}");
        assert!(hired["message"].as_str().unwrap().contains(reason), "{hired}");
        let hired = format!("SELECT id FROM agents WHERE parent = '{lead}'");
        assert_eq!(world.query(&hired).await, [""; 0]);
    }
}

/// Calls may write the name of an argument in any style. The check before a hire understands it, too.
#[tokio::test]
async fn each_hire_with_a_worktree_is_checked_however_the_model_writes_it() {
    for (tool, argument) in
        [("spawn_agent", "Workspace"), ("spawn_agent", "work_space"), ("spawn_agent_with_task", "workspace")]
    {
        let world = World::new().await;
        let project = world.directory.path().join("project");
        std::fs::create_dir(&project).unwrap();
        work_in(&world, &project).await;
        world.say("user", "root", json!("go")).await;
        let role = world.call("root", "create_role", json!({"name": "helper", "rolePrompt": "…"})).await;
        let mut wish = json!({"roleId": role["id"], "taskBrief": crate::testing::brief(), argument: "own"});
        if tool == "spawn_agent_with_task" {
            wish["initialMessage"] = json!("begin");
        }
        drive(&world, "root", vec![Say::Call(tool, wish), Say::Text("done")], Vec::new()).await;
        let told = results_of(&world, "root").await;
        assert_eq!(code(&told[0]), "workspace_refused", "{tool}, {argument}: {told:?}");
    }
}

/// The lead has called no tool on files yet, so its own worktree is not made yet when it hires.
#[tokio::test]
async fn an_agent_whose_worktree_is_not_made_yet_can_hire_into_another_one() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let role = world.call("root", "create_role", json!({"name": "lead", "rolePrompt": "…"})).await;
    let wish = json!({"roleId": role["id"], "taskBrief": crate::testing::brief(), "workspace": "own"});
    let lead = world.call("root", "spawn_agent", wish).await["id"].as_str().unwrap().to_owned();
    let worktree = world.directory.path().join("workspaces").join(world.task.as_str()).join(&lead);
    assert!(!worktree.exists());
    let Some(hired) = hired_by(&world, &lead).await else { return };
    assert_eq!(code(&hired), "ok", "{hired}");
    assert!(worktree.exists());
    // The helper begins with the files of the lead, and works in its own worktree.
    std::fs::write(worktree.join("plan.md"), "the plan").unwrap();
    let helper = hired["id"].as_str().unwrap();
    world.say(&lead, helper, json!("read")).await;
    let fetch = FakeTool::returns("fetch_page", Ok(Output::json(json!({}))));
    drive(&world, helper, vec![Say::Call("fetch_page", json!({})), Say::Text("done")], vec![fetch]).await;
    assert_eq!(std::fs::read_to_string(worktree.with_file_name(helper).join("plan.md")).unwrap(), "the plan");
}

/// Checks that this agent can hire into a worktree although the daemon is about to end.
async fn can_hire_at_the_end(world: &World, agent: &str) {
    let handles = world.handles(ScriptedModel::in_order(Vec::new()), with_workspaces(world, Vec::new()));
    handles.draining.cancel();
    match refused_worktree(&handles, &world.of(agent)).await.unwrap() {
        None => {}
        Some(Refusal::WorkspaceRefused { reason }) if reason.starts_with("Git ") => {
            println!("this test needs git 2.38 or newer, which this machine lacks");
        }
        Some(refusal) => panic!("{refusal:?}"),
    }
}

#[tokio::test]
async fn the_end_of_the_daemon_refuses_no_hire() {
    can_hire_at_the_end(&World::new().await, "root").await;

    // The worktree of the hirer is not made yet, so the check makes it.
    let world = World::new().await;
    let role = world.call("root", "create_role", json!({"name": "lead", "rolePrompt": "…"})).await;
    let wish = json!({"roleId": role["id"], "taskBrief": crate::testing::brief(), "workspace": "own"});
    let lead = world.call("root", "spawn_agent", wish).await;
    can_hire_at_the_end(&world, lead["id"].as_str().unwrap()).await;

    // The check looks at the repository of the person.
    let world = World::new().await;
    let project = world.directory.path().join("project");
    std::fs::create_dir(&project).unwrap();
    let author = ["-c", "user.name=a", "-c", "user.email=a@b"];
    for arguments in [&["init", "-q"][..], &["commit", "-q", "--allow-empty", "-m", "First"]] {
        let mut git = std::process::Command::new("git");
        let ended = git.args(author).args(arguments).current_dir(&project).status();
        if !ended.is_ok_and(|status| status.success()) {
            println!("this test needs git, which this machine lacks");
            return;
        }
    }
    work_in(&world, &project).await;
    can_hire_at_the_end(&world, "root").await;
}

/// A pause halts the driver while another agent of the task commits its files.
#[tokio::test]
async fn a_halt_ends_the_check_before_a_hire_and_the_next_driver_hires() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let role = world.call("root", "create_role", json!({"name": "helper", "rolePrompt": "…"})).await;
    let mut wish = json!({"roleId": role["id"], "taskBrief": crate::testing::brief(), "workspace": "own"});
    wish["initialMessage"] = json!("begin");
    let calls = Say::Calls(vec![("fetch_page", json!({})), ("spawn_agent_with_task", wish)]);
    let says = [calls, Say::Text("done")];
    // The driver is halted right before the check.
    let halt = CancellationToken::new();
    let halted = halt.clone();
    let fetch = FakeTool::new("fetch_page", move |_| {
        halted.cancel();
        async { Ok(Output::json(json!({"read": true}))) }.boxed()
    });
    let script = ScriptedModel::by_role(&[("root", &says[..])]);
    let handles = world.handles(script, with_workspaces(&world, vec![fetch]));

    // A commit holds the lock of the task until it is told who is writing.
    let workspaces = Arc::clone(handles.hands.workspaces().unwrap());
    let place = Place { root: Root::Made, worktree: None };
    let never = CancellationToken::new();
    let opened = workspaces.directory(&world.task, &place, &never).await.unwrap();
    if opened.git.is_none() {
        println!("this test needs git 2.38 or newer, which this machine lacks");
        return;
    }
    std::fs::write(opened.directory.join("notes"), "a note").unwrap();
    let (holds, release) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (begun, ends) = (Arc::clone(&holds), Arc::clone(&release));
    let caller =
        Caller { agent: AgentId::new("other-1"), task: world.task.clone(), role: String::new(), place };
    let commit = tokio::spawn(async move {
        let unfinished = move || {
            let (begun, ends) = (Arc::clone(&begun), Arc::clone(&ends));
            async move {
                begun.notify_one();
                ends.notified().await;
                Ok::<_, String>(HashSet::new())
            }
            .boxed()
        };
        workspaces.settle(&caller, TurnId::new(1), &unfinished, &never).await
    });
    holds.notified().await;

    let root = world.of("root");
    let run_halted = tokio::time::timeout(Duration::from_secs(60), run(&handles, &root, &halt));
    run_halted.await.expect("the check goes on after the halt").unwrap();
    let told = results_of(&world, "root").await;
    assert_eq!(told, [json!({"read": true})], "nobody is hired unchecked, and no refusal is recorded");

    release.notify_one();
    commit.await.unwrap().unwrap();
    run(&handles, &root, &CancellationToken::new()).await.unwrap();
    let told = results_of(&world, "root").await;
    assert_eq!((told.len(), code(&told[1])), (2, "ok"), "{told:?}");
}
