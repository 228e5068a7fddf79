//! Tests of questions about calls, and of permissions.

use crate::scripted::{Say, answer, asking, create, open_approval};
use crate::support::Daemon;
use serde_json::{Value, json};

async fn questions(daemon: &Daemon, filter: &str) -> Vec<Value> {
    let page = daemon.get(&format!("/api/approvals{filter}")).await.ok();
    page["approvals"].as_array().unwrap().clone()
}

#[tokio::test]
async fn a_question_shows_the_whole_call_and_takes_one_answer() {
    let daemon = asking(vec![create("notes.md", "one\n")]).await;
    let task = daemon.post_prompt("Write notes.").await;
    let id = open_approval(&daemon).await;

    let question = daemon.get(&format!("/api/approvals/{id}")).await.ok();
    assert_eq!((&question["state"], &question["agent"]), (&json!("open"), &json!("root")));
    assert_eq!((&question["tool"], &question["task"]), (&json!("str_replace_editor"), &json!(task)));
    let arguments = json!({"command": "create", "path": "notes.md", "file_text": "one\n"});
    assert_eq!(question["arguments"], arguments);
    assert!(question["preview"].as_str().unwrap().contains("@@ -0,0 +1 @@\n+one\n"), "{question}");
    assert!(question["expiresAt"].as_i64() > question["askedAt"].as_i64());
    assert_eq!(questions(&daemon, "?state=open").await, std::slice::from_ref(&question));
    assert_eq!(questions(&daemon, &format!("?task={task}")).await.len(), 1);
    assert_eq!(questions(&daemon, "?task=nothing").await.len(), 0);

    let answered = answer(&daemon, &id, &json!({"answer": "yes"})).await.ok();
    assert_eq!((&answered["state"], &answered["answer"]), (&json!("allowed"), &json!("yes")));
    answer(&daemon, &id, &json!({"answer": "no"})).await.assert_problem(409, "approval_ended");
    daemon.idle().await;
    assert_eq!(questions(&daemon, "?state=open").await.len(), 0);
    assert_eq!(daemon.get("/api/permissions").await.ok(), json!([]), "yes is for one call");
    let file = daemon.directory.path().join("workspaces").join(&task).join("main/notes.md");
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\n");
    daemon.stop().await;
}

#[tokio::test]
async fn a_refused_call_does_not_run_and_its_agent_is_told_why() {
    let daemon = asking(vec![create("notes.md", "one\n")]).await;
    let task = daemon.post_prompt("Write notes.").await;
    let id = open_approval(&daemon).await;
    let refused = answer(&daemon, &id, &json!({"answer": "no", "reason": "not today"})).await.ok();
    assert_eq!((&refused["state"], &refused["reason"]), (&json!("denied"), &json!("not today")));
    daemon.idle().await;
    assert!(!daemon.directory.path().join("workspaces").join(&task).join("main/notes.md").exists());
    let said = daemon.get(&format!("/api/agents/root/conversation?task={task}")).await.ok();
    let result = said["entries"].to_string();
    assert!(result.contains("approval_denied") && result.contains("not today"), "{result}");
    daemon.stop().await;
}

#[tokio::test]
async fn a_permission_covers_later_calls_until_it_is_removed() {
    let says = vec![create("a.md", "a"), create("b.md", "b"), Say::Done, create("c.md", "c")];
    let daemon = asking(says).await;
    let task = daemon.post_prompt("Write.").await;
    let id = open_approval(&daemon).await;
    answer(&daemon, &id, &json!({"answer": "task"})).await.ok();
    daemon.idle().await;
    assert_eq!(questions(&daemon, "").await.len(), 1, "the second call needs no question");

    let permissions = daemon.get("/api/permissions").await.ok();
    assert_eq!(permissions.as_array().unwrap().len(), 1);
    assert_eq!(
        (&permissions[0]["tool"], &permissions[0]["task"]),
        (&json!("str_replace_editor"), &json!(task))
    );
    let path = format!("/api/permissions/{}", permissions[0]["id"].as_str().unwrap());
    assert_eq!(daemon.call("DELETE", &path).await.status, 204);
    daemon.call("DELETE", &path).await.assert_problem(404, "not_found");
    assert_eq!(daemon.get("/api/permissions").await.ok(), json!([]));

    daemon.send_json("POST", "/api/messages", &json!({"text": "More.", "task": task})).await.ok();
    let again = open_approval(&daemon).await;
    assert_ne!(again, id);
    answer(&daemon, &again, &json!({"answer": "no"})).await.ok();
    daemon.idle().await;
    daemon.stop().await;
}

#[tokio::test]
async fn a_question_that_is_unknown_or_badly_answered_is_refused() {
    let daemon = asking(vec![create("a.md", "a")]).await;
    daemon.post_prompt("Write.").await;
    let id = open_approval(&daemon).await;
    answer(&daemon, "nothing", &json!({"answer": "yes"})).await.assert_problem(404, "not_found");
    answer(&daemon, &id, &json!({"answer": "perhaps"})).await.assert_problem(422, "invalid_arguments");
    answer(&daemon, &id, &json!({})).await.assert_problem(422, "invalid_arguments");
    daemon.get("/api/approvals?state=lost").await.assert_problem(400, "invalid_arguments");
    daemon.get("/api/approvals?limit=0").await.assert_problem(400, "invalid_arguments");
    assert_eq!(daemon.get(&format!("/api/approvals/{id}")).await.ok()["state"], "open");
    daemon.stop().await;
}
