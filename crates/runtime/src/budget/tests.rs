use super::*;
use crate::testing::World;
use futures::FutureExt;

fn call(tokens: u64) -> Spent {
    Spent { calls: 1, tokens, cost: 0.0 }
}

#[tokio::test]
async fn whoever_waits_goes_on_when_a_call_has_cost_less_than_it_might() {
    let world = World::new().await;
    let budgets = Budgets::default();
    let limits = Limits { max_tokens_per_task: Some(100), ..Limits::default() };
    let reserve =
        async |tokens| budgets.reserve(&world.store, &world.task, call(tokens), &limits).await.unwrap();
    let Reserved::Granted(first) = reserve(80).await else { panic!("there is room") };
    let Reserved::Later(mut settled) = reserve(30).await else { panic!("there may be room later") };
    assert!((&mut settled).now_or_never().is_none());
    drop(first);
    settled.await;
    let Reserved::Granted(_second) = reserve(30).await else { panic!("there is room again") };
    let Reserved::Refused(reached) = reserve(101).await else { panic!("the limit never allows as much") };
    assert_eq!(reached.limit, "maxTokensPerTask");
}

#[tokio::test]
async fn the_time_of_a_task_runs_while_anybody_works_for_it() {
    let world = World::new().await;
    let budgets = Budgets::default();
    assert_eq!(budgets.worked(&world.task), None);
    let (one, other) = (
        budgets.work(&world.store, &world.task).await.unwrap(),
        budgets.work(&world.store, &world.task).await.unwrap(),
    );
    drop(one);
    let before = budgets.worked(&world.task).unwrap();
    while budgets.worked(&world.task).unwrap() == before {
        tokio::task::yield_now().await;
    }
    drop(other);
    let rests = budgets.worked(&world.task).unwrap();
    assert_eq!(budgets.worked(&world.task).unwrap(), rests);
    budgets.forget(&world.task);
    assert_eq!(budgets.worked(&world.task), None);
}
