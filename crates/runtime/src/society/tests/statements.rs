//! Counts the SQL statements and the memory allocations of whole operations. If a count grows, the change that made it
//! grow must be worth it.

use super::*;
use crate::testing::{app_registry, template};
use allocation_counter::measure;
use serde_json::json;

/// Starts a society on a copy of an empty database. All its agents use `model`.
async fn start(model: Arc<ScriptedModel>) -> (Society, tempfile::TempDir) {
    let (file, _kept) = template().await;
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(file, directory.path().join(polity_store::maintenance::DATABASE)).unwrap();
    let registry = Arc::new(app_registry(&json!({"synchronous": "normal"})).await);
    let parts = Parts { registry, model, hands: Hands::none(), extractor: None };
    (Society::start(directory.path(), parts).await.unwrap(), directory)
}

/// Sends a prompt, lets the society work until it has forgotten the task, and returns how many statements the society has
/// run. The statements with which this function reads the open tasks do not count.
async fn cost(society: &Society, text: &str) -> u64 {
    let statements = || society.handles.store.statements();
    let before = statements();
    society.open_tasks().await.unwrap();
    let of_look = statements() - before;
    let mut newest = society.newest_event();
    let before = statements();
    let prompt = Prompt { text: text.to_owned(), attachments: Vec::new(), service: None };
    let task = society.prompt(prompt).await.unwrap();
    let mut looks = 0;
    loop {
        newest.mark_unchanged();
        looks += 1;
        if society.open_tasks().await.unwrap().is_empty() {
            break;
        }
        newest.changed().await.unwrap();
    }
    // When the task is idle, the driver looks for more work. Then the supervisor looks at the task and forgets its
    // budget.
    while society.handles.budgets.worked(&task).is_some() {
        tokio::task::yield_now().await;
    }
    statements() - before - looks * of_look
}

#[tokio::test]
async fn a_turn_takes_few_statements() {
    let (society, _directory) = start(ScriptedModel::always(Say::Text("done"))).await;
    cost(&society, "warm up").await;
    // Each job that shares its transaction with another job takes two more statements. So the cheapest turn counts.
    let mut statements = u64::MAX;
    for _ in 0..8 {
        statements = statements.min(cost(&society, "go").await);
    }
    assert!(statements <= 57, "{statements} statements");
}

/// Counts the allocations of everything but the writer, which has a thread of its own.
#[test]
fn a_turn_takes_few_allocations() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let (society, _directory) = runtime.block_on(start(ScriptedModel::always(Say::Text("done"))));
    runtime.block_on(cost(&society, "warm up"));
    let turn = || {
        let measured = measure(|| {
            let _statements = runtime.block_on(cost(&society, "go"));
        });
        measured.count_total
    };
    // The number differs a little from turn to turn, because maps grow. So the cheapest of three turns counts.
    let allocations = (0..3).map(|_| turn()).min().unwrap_or_default();
    // The society makes 797 allocations. The limit is 5 % more.
    assert!(allocations <= 836, "{allocations} allocations; if they are worth it, raise the limit");
}

/// Counts the instructions of all threads, the writer's too.
#[test]
fn a_turn_takes_few_instructions() {
    let name = "society::tests::statements::a_turn_takes_few_instructions";
    polity_instructions::guard("turn", name, 20, |times| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let (society, _directory) = runtime.block_on(start(ScriptedModel::always(Say::Text("done"))));
        for _ in 0..times {
            runtime.block_on(cost(&society, "go"));
        }
    });
}
