//! Tests of the routes that show the files of a task and the changes of each agent.

use crate::scripted::{Say, create, start};
use crate::support::Daemon;
use serde_json::{Value, json};

/// Starts a society in which root has made two files, in two turns.
async fn written() -> (Daemon, String) {
    let says = vec![create("docs/one.md", "one\n"), Say::Done, create("two.md", "two\n"), Say::Done];
    let daemon = start(&json!({}), says).await;
    let task = daemon.post_prompt("Write.").await;
    daemon.idle().await;
    daemon.send_json("POST", "/api/messages", &json!({"text": "More.", "task": task})).await.ok();
    daemon.idle().await;
    (daemon, task)
}

async fn at(daemon: &Daemon, task: &str, query: &str) -> Value {
    daemon.get(&format!("/api/tasks/{task}/workspace{query}")).await.ok()
}

fn names(view: &Value) -> Vec<&str> {
    let entries = view["content"]["entries"].as_array().unwrap();
    entries.iter().map(|entry| entry["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn the_files_of_a_task_are_shown_and_nothing_else() {
    let (daemon, task) = written().await;
    let root = at(&daemon, &task, "").await;
    assert_eq!((&root["path"], &root["content"]["kind"]), (&json!("."), &json!("directory")));
    assert_eq!(names(&root), ["docs", "two.md"]);
    assert!(root.get("workspace").is_none(), "polity made it");
    assert_eq!(names(&at(&daemon, &task, "?path=docs").await), ["one.md"]);
    let file = at(&daemon, &task, "?path=docs/one.md&agent=root").await;
    assert_eq!(file["content"], json!({"kind": "text", "text": "one\n", "shown": 4, "size": 4}));

    let main = daemon.directory.path().join("workspaces").join(&task).join("main");
    std::fs::write(main.join("b.bin"), [0, 159]).unwrap();
    assert_eq!(at(&daemon, &task, "?path=b.bin").await["content"], json!({"kind": "binary", "size": 2}));
    std::os::unix::fs::symlink("../../../polity.db", main.join("out")).unwrap();
    for path in ["..", "../git", "/etc/passwd", "out", ""] {
        let answer = daemon.get(&format!("/api/tasks/{task}/workspace?path={path}")).await;
        answer.assert_problem(422, "workspace_refused");
    }
    let missing = daemon.get(&format!("/api/tasks/{task}/workspace?path=none.md")).await;
    missing.assert_problem(404, "not_found");
    let nobody = daemon.get(&format!("/api/tasks/{task}/workspace?agent=nobody")).await;
    nobody.assert_problem(404, "not_found");
    daemon.stop().await;
}

#[tokio::test]
async fn looking_at_a_workspace_does_not_make_it() {
    let daemon = start(&json!({}), Vec::new()).await;
    let task = daemon.post_prompt("Say something.").await;
    daemon.idle().await;
    assert_eq!(names(&at(&daemon, &task, "").await), Vec::<&str>::new());
    let missing = daemon.get(&format!("/api/tasks/{task}/workspace?path=a")).await;
    missing.assert_problem(404, "not_found");
    let changes = daemon.get(&format!("/api/tasks/{task}/changes")).await.ok();
    assert_eq!((&changes["commits"], &changes["worktrees"]), (&json!([]), &json!([])));
    assert!(!daemon.directory.path().join("workspaces").exists());
    daemon.stop().await;
}

#[tokio::test]
async fn each_commit_names_its_agent_its_turn_and_its_differences() {
    let (daemon, task) = written().await;
    let path = format!("/api/tasks/{task}/changes");
    let changes = daemon.get(&path).await.ok();
    if changes["recording"] == "nothing" {
        println!("not checked: git is missing on this machine");
        return daemon.stop().await;
    }
    assert_eq!(changes["recording"], "turns");
    let commits = changes["commits"].as_array().unwrap();
    let shown: Vec<_> = commits.iter().map(|one| (one["agent"].as_str().unwrap(), &one["files"])).collect();
    let expect = [("root", &json!(["two.md"])), ("root", &json!(["docs/one.md"])), ("polity", &json!([]))];
    assert_eq!(shown, expect);
    assert!(commits[0]["turn"].as_i64() > commits[1]["turn"].as_i64(), "{commits:?}");
    assert!(commits[0]["at"].as_i64().unwrap() > 1_600_000_000_000);
    assert!(changes.get("files").is_none());
    assert!(changes.get("edits").is_none(), "the commits show everything");

    let id = commits[0]["id"].as_str().unwrap();
    let one = daemon.get(&format!("{path}?commit={id}")).await.ok();
    assert_eq!(one["commits"].as_array().unwrap().len(), 1);
    let file = &one["files"][0];
    assert_eq!((&file["path"], &file["change"]), (&json!("two.md"), &json!("added")));
    assert!(file["patch"].as_str().unwrap().ends_with("@@ -0,0 +1 @@\n+two\n"), "{file}");
    let begin = commits[2]["id"].as_str().unwrap();
    assert_eq!(daemon.get(&format!("{path}?commit={begin}")).await.ok()["files"], json!([]));

    let mine = daemon.get(&format!("{path}?agent=root")).await.ok();
    assert_eq!(mine["commits"].as_array().unwrap().len(), 2);
    for commit in ["HEAD", "--all", &"0".repeat(40), &id[..7]] {
        daemon.get(&format!("{path}?commit={commit}")).await.assert_problem(404, "not_found");
    }
    daemon.stop().await;
}

/// The suffix `:ro` makes a directory of the person read-only, also through the API.
#[tokio::test]
async fn a_directory_that_is_posted_as_read_only_is_not_changed() {
    let daemon = start(&json!({}), vec![create("new.md", "one\n")]).await;
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("own.txt"), "mine").unwrap();
    let workspace = format!("{}:ro", project.path().canonicalize().unwrap().display());
    let body = json!({"text": "Write.", "workspace": workspace});
    let posted = daemon.send_json("POST", "/api/messages", &body).await.ok();
    daemon.idle().await;
    let task = posted["task"].as_str().unwrap();
    let root = at(&daemon, task, "").await;
    assert_eq!((&root["workspace"], names(&root)), (&json!(workspace), vec!["own.txt"]));
    let said = daemon.get(&format!("/api/agents/root/conversation?task={task}")).await.ok();
    assert!(said["entries"].to_string().contains("workspace_refused"), "{said}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_directory_of_the_person_has_no_commits_but_shows_what_the_tools_wrote() {
    let replace = Say::Call(
        "str_replace_editor",
        json!({"command": "str_replace", "path": "new.md", "old_str": "new", "new_str": "newer"}),
    );
    let says = vec![create("new.md", "one\nnew\n"), create("../out.md", "out\n"), replace];
    let daemon = start(&json!({}), says).await;
    let project = tempfile::tempdir().unwrap();
    std::fs::write(project.path().join("own.txt"), "mine").unwrap();
    let workspace = project.path().canonicalize().unwrap().display().to_string();
    let body = json!({"text": "Write.", "workspace": workspace});
    let posted = daemon.send_json("POST", "/api/messages", &body).await.ok();
    daemon.idle().await;
    let task = posted["task"].as_str().unwrap();
    let root = at(&daemon, task, "").await;
    assert_eq!((&root["workspace"], names(&root)), (&json!(workspace), vec!["new.md", "own.txt"]));
    let changes = daemon.get(&format!("/api/tasks/{task}/changes")).await.ok();
    assert_ne!(changes["recording"], "turns");
    assert_eq!(changes["commits"], json!([]));
    let edits = changes["edits"].as_array().unwrap();
    let [changed, added] = &edits[..] else { panic!("the refused call is no change: {edits:?}") };
    for (edit, change, patch) in [
        (changed, "changed", "--- a/new.md\n+++ b/new.md\n@@ -1,2 +1,2 @@\n one\n-new\n+newer\n"),
        (added, "added", "--- a/new.md\n+++ b/new.md\n@@ -0,0 +1,2 @@\n+one\n+new\n"),
    ] {
        assert_eq!((&edit["agent"], &edit["path"]), (&json!("root"), &json!("new.md")));
        assert_eq!((&edit["change"], &edit["patch"]), (&json!(change), &json!(patch)));
        assert!(
            edit["turn"].as_i64().is_some() && edit["at"].as_i64().unwrap() > 1_600_000_000_000,
            "{edit}"
        );
    }
    let nobody = daemon.get(&format!("/api/tasks/{task}/changes?agent=user")).await.ok();
    assert_eq!(nobody.get("edits"), None, "another agent wrote nothing");
    daemon.stop().await;
}
