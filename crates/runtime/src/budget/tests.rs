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

/// The budget adds up what a task has spent, a few calls at a time. Each call counts once.
#[tokio::test]
async fn each_call_counts_once_whenever_it_is_counted() {
    let world = World::new().await;
    let budgets = Budgets::default();
    let limits = Limits { max_tokens_per_task: Some(100), ..Limits::default() };
    let reserve =
        async |tokens| budgets.reserve(&world.store, &world.task, call(tokens), &limits).await.unwrap();
    let pay = async |tokens: u64| {
        let root = world.of("root");
        let served = usage::Served {
            service: polity_society::id::ServiceId::new("words"),
            model: "words-1".to_owned(),
            revision: 1,
            attempts: 1,
            usage: polity_llm::Usage { prompt_tokens: tokens, ..polity_llm::Usage::default() },
            cost: None,
        };
        let turn = polity_society::id::TurnId::new(1);
        world.write(move |tx| Box::pin(async move { usage::insert(tx, &root, turn, &served).await })).await;
    };
    for _ in 0..4 {
        pay(10).await;
        pay(10).await;
        let Reserved::Granted(_) = reserve(20).await else { panic!("there is room") };
    }
    let Reserved::Refused(_) = reserve(21).await else { panic!("80 of 100 tokens are spent") };
    let Reserved::Granted(_) = reserve(20).await else { panic!("a refusal costs nothing") };
}
