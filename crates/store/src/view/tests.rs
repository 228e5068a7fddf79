use super::*;
use crate::testing::Scratch;
use polity_society::id::{AgentId, TaskId};
use polity_society::message::MessageState;
use polity_sql::Sql;
use polity_view::{EventFilter, MessageFilter, Order, TaskFilter, TaskState, UsageFilter};
use proptest::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;

#[test]
fn a_page_ends_where_its_texts_would_be_too_long() {
    let check = |sizes: &[u64], limit: u32, fitting: usize, next: Option<i64>| {
        let mut found: Vec<(i64, u64)> = (1..).zip(sizes.iter().copied()).collect();
        assert_eq!((cut_to_room(&mut found, limit), found.len()), (next, fitting), "{sizes:?}");
    };
    const M: u64 = 1 << 20;
    check(&[], 2, 0, None);
    check(&[1, 1], 2, 2, None);
    check(&[1, 1, 1], 2, 2, Some(2));
    check(&[5 * M, 3 * M, 1], 10, 2, Some(2));
    check(&[5 * M, 4 * M, 1], 10, 1, Some(1));
    check(&[9 * M, 1, 1], 10, 1, Some(1));
    check(&[9 * M], 10, 1, None);
    check(&[0, 9 * M, 1], 10, 1, Some(1));
}

/// Returns SQLite's plan for a statement.
async fn plan(scratch: &Scratch, query: Builder) -> String {
    let mut reader = scratch.store.reader().await.unwrap();
    let explained = Sql::built(format!("EXPLAIN QUERY PLAN {}", query.sql()));
    let rows = polity_sql::query(explained).fetch_all(&mut reader).await.unwrap();
    rows.iter().map(|row| row.get::<String, _>("detail")).collect::<Vec<_>>().join("; ")
}

#[tokio::test]
async fn a_page_of_messages_is_read_from_the_index_with_the_fewest_rows() {
    use MessageState::{Delayed, Done, Failed, Queued};
    let scratch = Scratch::new().await;
    let (root, hired, task) = (AgentId::root(), AgentId::new("reader-1"), Some(TaskId::new("t-1")));
    let check = async |expect: &[&str], filter: MessageFilter| {
        for order in [Order::Oldest, Order::Newest] {
            let plan =
                plan(&scratch, messages::matching(&MessageFilter { order, ..filter.clone() }, 10)).await;
            for index in expect {
                assert!(
                    plan.contains(&format!("INDEX {index} (")),
                    "{index} is not in {plan} for {filter:?}"
                );
            }
            let used = plan.matches(" INDEX ").count();
            assert_eq!(used, expect.len(), "{plan} for {filter:?}");
        }
    };
    let all = MessageFilter::default;
    let from = |id: &AgentId| Some(id.as_str().to_owned());
    let to = |id: &AgentId| Some(id.clone());
    check(&[], all()).await;
    check(&["messages_waiting"], MessageFilter { unshown: true, ..all() }).await;
    check(&["messages_waiting"], MessageFilter { unshown: true, task: task.clone(), ..all() }).await;
    check(&["messages_waiting"], MessageFilter { to: to(&hired), state: Some(Queued), ..all() }).await;
    check(&["messages_of_task"], MessageFilter { task: task.clone(), ..all() }).await;
    check(&["messages_unread"], MessageFilter { task: task.clone(), state: Some(Delayed), ..all() }).await;
    check(&["messages_between"], MessageFilter { task: task.clone(), from: from(&root), ..all() }).await;
    check(&["messages_heard"], MessageFilter { task: task.clone(), to: to(&root), ..all() }).await;
    check(&["messages_to"], MessageFilter { task: task.clone(), to: to(&hired), ..all() }).await;
    check(&["messages_from"], MessageFilter { from: from(&root), ..all() }).await;
    let between = MessageFilter { task: task.clone(), from: from(&root), to: to(&hired), ..all() };
    check(&["messages_between"], between).await;
    let sides = ["messages_from", "messages_to"];
    check(&sides, MessageFilter { with: to(&root), ..all() }).await;
    check(&sides, MessageFilter { with: to(&hired), task: task.clone(), ..all() }).await;
    let sides = ["messages_between", "messages_heard"];
    check(&sides, MessageFilter { with: to(&root), task, ..all() }).await;
    check(&["messages_in_state"], MessageFilter { state: Some(Failed), ..all() }).await;
    check(&["messages_in_state"], MessageFilter { state: Some(Queued), ..all() }).await;
    check(&["messages_in_state"], MessageFilter { state: Some(Done), ..all() }).await;
    let message_type = Some("general".to_owned());
    check(&["messages_of_type"], MessageFilter { message_type, state: Some(Done), ..all() }).await;
}

/// Each of the two parts of the statement stops at the limit, so SQLite sorts at most two pages.
#[tokio::test]
async fn the_events_of_a_task_come_in_order_from_the_index() {
    let scratch = Scratch::new().await;
    let filter = EventFilter { task: Some(TaskId::new("t-1")), ..EventFilter::default() };
    for side in [events::Side::After(5), events::Side::Before(5)] {
        let plan = plan(&scratch, events::matching(side, &filter, 10)).await;
        assert_eq!(plan.matches("INDEX events_of_task (task=? AND seq").count(), 2, "{plan}");
        assert!(!plan.contains("MULTI-INDEX OR"), "{plan}");
    }
}

#[tokio::test]
async fn open_tasks_are_found_without_those_that_are_over() {
    let scratch = Scratch::new().await;
    for after in [None, Some(7)] {
        let filter = TaskFilter { state: Some(TaskState::Open), after, ..TaskFilter::default() };
        let plan = plan(&scratch, tasks::matching(&filter, 10)).await;
        assert!(plan.contains("SEARCH t USING INDEX tasks_open (state=?"), "{plan}");
        assert!(!plan.contains("FOR ORDER BY"), "{plan}");
    }
}

#[tokio::test]
async fn what_one_agent_wrote_is_found_behind_all_that_others_wrote_later() {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "INSERT INTO turns (id, agent, task, began_by, state, created_at)
                VALUES (1, 'root', 't-1', 'm', 'done', 1);
            WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 301)
                INSERT INTO records (agent, task, turn, body, created_at)
                SELECT iif(n = 1, 'reader-1', 'root'), 't-1', 1, json_object('record', 'tool_started',
                    'call', 'call_' || n, 'evidence', json_object('path', 'f', 'diff', '+x')), n FROM n;
            INSERT INTO records (agent, task, turn, body, created_at)
                SELECT agent, task, turn, json_object('record', 'tool_finished', 'call', body ->> '$.call',
                    'result', json_object('outside', json_object())), created_at FROM records;",
        )
        .await;
    let mut reader = scratch.store.reader().await.unwrap();
    let (root, hired, task) = (AgentId::root(), AgentId::new("reader-1"), TaskId::new("t-1"));
    let of_both = edits::of_agents(&mut reader, &task, &[root.clone(), hired.clone()]).await.unwrap();
    assert_eq!((of_both.len(), of_both[0].at, of_both[199].at), (200, 301, 102));
    assert!(of_both.iter().all(|edit| edit.agent == root));
    let of_one = edits::of_agents(&mut reader, &task, std::slice::from_ref(&hired)).await.unwrap();
    assert_eq!(of_one.iter().map(|edit| (&edit.agent, edit.at)).collect::<Vec<_>>(), [(&hired, 1)]);
}

/// A model call: the numbers of its task, its agent and its service, the tokens of its prompt and of its answer, and its
/// cost in eighths. Sums of eighths are exact.
type Call = (u8, u8, u8, u32, u32, Option<u8>);

/// Adds up calls under the names that `name` gives them, the largest sum first.
fn added_up(calls: &[Call], name: impl Fn(&Call) -> String) -> Vec<(String, UsageSum)> {
    let mut sums: BTreeMap<String, UsageSum> = BTreeMap::new();
    for call in calls {
        let sum = sums.entry(name(call)).or_default();
        sum.calls += 1;
        sum.prompt_tokens += u64::from(call.3);
        sum.completion_tokens += u64::from(call.4);
        if let Some(eighths) = call.5 {
            sum.cost = Some(sum.cost.unwrap_or_default() + f64::from(eighths) / 8.0);
        }
    }
    let mut sums: Vec<(String, UsageSum)> = sums.into_iter().collect();
    sums.sort_by_key(|(_, sum)| Reverse((sum.prompt_tokens + sum.completion_tokens, sum.calls)));
    sums
}

fn call() -> impl Strategy<Value = Call> {
    (0..4u8, 0..4u8, 0..2u8, 0..9u32, 0..9u32, proptest::option::of(0..9u8))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(20))]

    /// The usage without a filter comes from sums that the schema keeps. It must be that of the calls, also after the
    /// calls of a task were removed.
    #[test]
    fn the_usage_of_all_tasks_is_that_of_their_calls(calls in proptest::collection::vec(call(), 0..30), gone in 0..5u8) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let scratch = Scratch::new().await;
            let mut statements = String::new();
            for (task, agent, service, prompt, completion, eighths) in &calls {
                let cost = eighths.map_or("NULL".to_owned(), |eighths| (f64::from(eighths) / 8.0).to_string());
                statements += &format!(
                    "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
                    completion_tokens, usage_source, cost, created_at) VALUES
                    ('t-{task}', 'a-{agent}', 1, 's-{service}', 'm', 1, 1, {prompt}, {completion}, 'reported', {cost}, 1);"
                );
            }
            statements += &format!("DELETE FROM model_calls WHERE task = 't-{gone}'");
            let write = scratch.write(move |tx| {
                Box::pin(async move {
                    polity_sql::raw_sql(Sql::built(statements)).execute(&mut tx.connection).await?;
                    Ok(())
                })
            });
            write.await;
            let calls: Vec<Call> = calls.into_iter().filter(|call| call.0 != gone).collect();
            let mut reader = scratch.store.reader().await.unwrap();
            let shown = usage::view(&mut reader, &UsageFilter::default()).await.unwrap();
            let total = added_up(&calls, |_| String::new()).first().map(|(_, sum)| *sum).unwrap_or_default();
            assert_eq!(shown.total, total);
            let by_task: Vec<_> = shown.by_task.iter().map(|one| (one.task.to_string(), one.usage)).collect();
            assert_eq!(by_task, added_up(&calls, |call| format!("t-{}", call.0)));
            let by_agent: Vec<_> = shown.by_agent.iter().map(|one| (one.agent.to_string(), one.usage)).collect();
            assert_eq!(by_agent, added_up(&calls, |call| format!("a-{}", call.1)));
            let by_service: Vec<_> =
                shown.by_service.iter().map(|one| (one.service.to_string(), one.usage)).collect();
            assert_eq!(by_service, added_up(&calls, |call| format!("s-{}", call.2)));
        });
    }
}

/// If the calls were added up again, the numbers would be the same. So this test changes the kept sums, and the views
/// must show the changed numbers.
#[tokio::test]
async fn what_all_tasks_have_used_is_read_from_the_kept_sums() {
    let scratch = Scratch::new().await;
    scratch
        .execute(
            "INSERT INTO model_calls (task, agent, turn, service, model, revision, attempts, prompt_tokens,
                completion_tokens, usage_source, created_at) VALUES ('t-1', 'root', 1, 's', 'm', 1, 1, 10, 1, 'reported', 1);
            UPDATE spent SET calls = 20;
            UPDATE spent_in_tasks SET calls = 30;
            UPDATE spent_by_agents SET calls = 40",
        )
        .await;
    let mut reader = scratch.store.reader().await.unwrap();
    let shown = usage::view(&mut reader, &UsageFilter::default()).await.unwrap();
    assert_eq!((shown.total.calls, shown.by_service[0].usage.calls), (20, 20));
    assert_eq!((shown.by_task[0].usage.calls, shown.by_agent[0].usage.calls), (30, 40));
    let (listed, _) = tasks::list(&mut reader, &TaskFilter::default()).await.unwrap();
    assert_eq!(listed[0].usage.calls, 30);
    let root = AgentId::root();
    let of_agents = usage::of_agents(&mut reader, &[&root], None).await.unwrap();
    assert_eq!(of_agents[&root].calls, 40);
}
