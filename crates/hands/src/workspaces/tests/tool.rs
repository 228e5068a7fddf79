//! The tool `merge_workspace`.

use super::{World, write};
use crate::call::{Arguments, Attempt, Content, Hosts, Invocation, Output, Progress};
use crate::tool::Tool;
use crate::workspaces::Workspaces;
use crate::workspaces::tool::MergeWorkspace;
use futures::FutureExt;
use polity_society::id::AgentId;
use polity_society::refusal::Refusal;
use serde_json::{Value, json};
use std::sync::Arc;
use tokio_util::sync::CancellationToken;

fn tool(workspaces: Workspaces) -> MergeWorkspace {
    let is_descendant = |_: &_, agent: &AgentId| {
        let is_descendant = agent.as_str() == "ann-1";
        async move { is_descendant }.boxed()
    };
    MergeWorkspace::new(Arc::new(workspaces), Arc::new(is_descendant))
}

fn invocation(world: &World, arguments: Value) -> Invocation {
    let Value::Object(arguments) = arguments else { panic!() };
    Invocation {
        caller: world.shared("root"),
        arguments,
        idempotency_key: "k".to_owned(),
        evidence: Value::Null,
        attempt: Attempt::First,
        cancel: CancellationToken::new(),
        progress: Progress::none(),
        hosts: Hosts::any(),
    }
}

fn answer(output: Output) -> Value {
    let Content::Json(answer) = output.content else { panic!() };
    answer
}

#[tokio::test]
async fn a_descendant_is_merged_and_nobody_else() {
    let Some(mut world) = World::made().await else { return };
    let ann = world.hire(&world.shared("root"), "ann-1").await;
    write(&ann, "a", "1");
    world.hire(&world.shared("root"), "ben-2").await;
    let workspaces = std::mem::replace(&mut world.all, Workspaces::new("/nowhere".into()));
    let tool = tool(workspaces);
    let refused = tool.run(invocation(&world, json!({"agentId": "ben-2"}))).await.unwrap_err();
    assert_eq!(refused, Refusal::NotDescendant { agent: "ben-2".to_owned() });
    // Models write names in other styles.
    let merged = tool.run(invocation(&world, json!({"agent_id": "ann-1"}))).await.unwrap();
    assert_eq!(answer(merged), json!({"commits": 1, "files": [{"path": "a", "change": "added"}]}));
    let again = tool.run(invocation(&world, json!({"agentId": "ann-1"}))).await.unwrap();
    assert_eq!(answer(again), json!({"commits": 0, "files": []}));
    assert!(matches!(tool.run(invocation(&world, json!({}))).await, Err(Refusal::InvalidArguments(_))));
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
