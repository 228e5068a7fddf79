//! Tests of the tool `merge_workspace`.

use super::{MergeWorkspace, NAMED_FILES, PREVIEW_BYTES, in_one_text};
use crate::call::{
    Arguments, Attempt, Caller, Consent, Content, Hosts, Invocation, Output, Place, Progress, Root,
};
use crate::tool::Tool;
use futures::FutureExt;
use polity_society::id::{AgentId, TaskId};
use polity_society::refusal::Refusal;
use polity_workspaces::{FileChange, FileDiff, Workspaces};
use serde_json::{Value, json};
use std::fs;
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn root() -> Caller {
    let place = Place { root: Root::Made, worktree: None };
    Caller { agent: AgentId::new("root"), task: TaskId::new("t-1"), role: String::new(), place }
}

fn tool(workspaces: Workspaces) -> MergeWorkspace {
    let is_descendant = |_: &_, agent: &AgentId| {
        let is_descendant = agent.as_str() == "ann-1";
        async move { is_descendant }.boxed()
    };
    MergeWorkspace::new(Arc::new(workspaces), Arc::new(is_descendant))
}

fn invocation(arguments: Value) -> Invocation {
    let Value::Object(arguments) = arguments else { panic!() };
    Invocation {
        caller: root(),
        arguments,
        idempotency_key: "k".to_owned(),
        evidence: Value::Null,
        attempt: Attempt::First,
        cancel: CancellationToken::new(),
        progress: Progress::none(),
        hosts: Hosts::any(),
        consent: Consent::NotNeeded,
    }
}

fn answer(output: Output) -> Value {
    let Content::Json(answer) = output.content else { panic!() };
    answer
}

#[tokio::test]
async fn a_descendant_is_merged_and_nobody_else() {
    let home = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(home.path().to_owned());
    let cancel = CancellationToken::new();
    let Ok(ann) = workspaces.hire(&root(), &AgentId::new("ann-1"), &cancel).await else {
        println!("this test needs git 2.38 or newer, which this machine lacks");
        return;
    };
    fs::write(ann.directory.join("a"), "1").unwrap();
    workspaces.hire(&root(), &AgentId::new("ben-2"), &cancel).await.unwrap();
    let tool = tool(workspaces);
    let refused = tool.run(invocation(json!({"agentId": "ben-2"}))).await.unwrap_err();
    assert_eq!(refused, Refusal::NotDescendant { agent: "ben-2".to_owned() });
    // An argument name in another style is understood, because models often change the style.
    let merged = tool.run(invocation(json!({"agent_id": "ann-1"}))).await.unwrap();
    assert_eq!(answer(merged), json!({"commits": 1, "files": [{"path": "a", "change": "added"}]}));
    let again = tool.run(invocation(json!({"agentId": "ann-1"}))).await.unwrap();
    assert_eq!(answer(again), json!({"commits": 0, "files": []}));
    assert!(matches!(tool.run(invocation(json!({}))).await, Err(Refusal::InvalidArguments(_))));
}

#[tokio::test]
async fn the_person_sees_what_a_merge_would_bring() {
    let home = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(home.path().to_owned());
    let cancel = CancellationToken::new();
    let Ok(ann) = workspaces.hire(&root(), &AgentId::new("ann-1"), &cancel).await else {
        println!("this test needs git 2.38 or newer, which this machine lacks");
        return;
    };
    let ben = workspaces.hire(&root(), &AgentId::new("ben-2"), &cancel).await.unwrap();
    let tool = tool(workspaces);
    let preview = async |agent: &str| {
        let shown = tool.preview(&invocation(json!({"agent_id": agent}))).await;
        shown.map(|shown| shown.text)
    };
    assert_eq!(preview("ann-1").await.as_deref(), Some(""));
    fs::write(ann.directory.join("a"), "1\n").unwrap();
    fs::write(ben.directory.join("b"), "2\n").unwrap();
    let shown = preview("ann-1").await.unwrap();
    assert!(shown.contains("+++ b/a\n") && shown.ends_with("@@ -0,0 +1 @@\n+1\n"), "{shown}");
    assert_eq!(preview("ben-2").await, None, "ben is no descendant");
    assert_eq!(tool.preview(&invocation(json!({}))).await, None);
    // The preview has merged nothing.
    let merged = tool.run(invocation(json!({"agentId": "ann-1"}))).await.unwrap();
    assert_eq!(answer(merged)["files"], json!([{"path": "a", "change": "added"}]));
    assert_eq!(preview("ann-1").await.as_deref(), Some(""));
}

/// While a question is open, only the agent that asked waits. The others go on working.
#[tokio::test]
async fn a_yes_merges_only_what_the_person_was_shown() {
    let home = tempfile::tempdir().unwrap();
    let workspaces = Workspaces::new(home.path().to_owned());
    let cancel = CancellationToken::new();
    let Ok(ann) = workspaces.hire(&root(), &AgentId::new("ann-1"), &cancel).await else {
        println!("this test needs git 2.38 or newer, which this machine lacks");
        return;
    };
    let tool = tool(workspaces);
    let call = || invocation(json!({"agentId": "ann-1"}));
    let allowed = |shown: &Value| Invocation { consent: Consent::Given { shown: shown.clone() }, ..call() };
    fs::write(ann.directory.join("a"), "1\n").unwrap();
    let shown = tool.preview(&call()).await.unwrap();
    fs::write(ann.directory.join("b"), "2\n").unwrap();
    for state in [&shown.state, &Value::Null] {
        let refused = tool.run(allowed(state)).await.unwrap_err();
        assert_eq!(refused, Refusal::WorkChanged { agent: AgentId::new("ann-1") }, "{state}");
    }
    let shown = tool.preview(&call()).await.unwrap();
    let merged = answer(tool.run(allowed(&shown.state)).await.unwrap());
    assert_eq!(merged["files"].as_array().map(Vec::len), Some(2), "{merged}");
    // If no question is needed, the merge takes what is there.
    fs::write(ann.directory.join("c"), "3\n").unwrap();
    let merged = answer(tool.run(call()).await.unwrap());
    assert_eq!(merged["files"], json!([{"path": "c", "change": "added"}]));
}

#[test]
fn a_long_preview_names_the_files_that_it_leaves_out() {
    let diff = |path: String, bytes: usize| FileDiff {
        path,
        change: FileChange::Added,
        patch: format!("{}\n", "x".repeat(bytes)),
    };
    let files = [diff("a".to_owned(), 10), diff("b\n".to_owned(), PREVIEW_BYTES), diff("c".to_owned(), 20)];
    let expect = format!("{}\n{}\n… \"b\\n\"\n", "x".repeat(10), "x".repeat(20));
    assert_eq!(in_one_text(&files), expect);
    let many: Vec<_> = (0..NAMED_FILES + 7).map(|number| diff(number.to_string(), PREVIEW_BYTES)).collect();
    assert!(in_one_text(&many).ends_with("… \"99\"\n… 7 more files\n"));
}

#[test]
fn the_schema_names_one_argument() {
    let tool = tool(Workspaces::new("/nowhere".into()));
    let expect = json!({
        "type": "object",
        "properties": {"agentId": {"type": "string"}},
        "required": ["agentId"],
        "additionalProperties": false,
    });
    assert_eq!(tool.parameters(), expect);
    let _ = tool.effect(&Arguments::new());
}
