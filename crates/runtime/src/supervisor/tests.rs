use super::*;
use crate::testing::World;
use crate::testing::model::{Say, ScriptedModel};
use polity_hands::table::Hands;
use polity_society::id::AgentId;
use polity_view::Outcome;
use serde_json::json;

/// Runs a world's society until its tasks are idle. Returns their outcomes, and how often the model was asked.
async fn run_until_idle(mut world: World, tasks: &[&str]) -> (World, Vec<Outcome>, usize) {
    let model = ScriptedModel::always(Say::Text("done"));
    let handles = world.handles(model.clone(), Hands::none());
    let stop = CancellationToken::new();
    let (broken, _) = watch::channel(None);
    let (_, unused) = mpsc::unbounded_channel();
    let bells = std::mem::replace(&mut world.signals.bells, unused);
    let running =
        tokio::spawn(Supervisor::new(handles, bells, stop.clone(), broken, CancellationToken::new()).run());
    let outcomes = loop {
        world.signals.events.changed().await.unwrap();
        let mut reader = world.store.reader().await.unwrap();
        let events = crate::testing::events_after(&mut reader, 0).await;
        let idle = |wanted: &&str| {
            events.iter().rev().find_map(|entry| match &entry.event {
                Event::TaskIdle { task, outcome } if task.as_str() == *wanted => Some(*outcome),
                _ => None,
            })
        };
        let outcomes: Vec<Outcome> = tasks.iter().filter_map(idle).collect();
        if outcomes.len() == tasks.len() {
            break outcomes;
        }
    };
    stop.cancel();
    running.await.unwrap();
    (world, outcomes, model.asked())
}

#[tokio::test]
async fn an_agent_whose_message_cannot_be_read_is_parked_and_the_others_go_on() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let reader = world.hire("root", "reader", json!({})).await;
    let writer = world.hire("root", "writer", json!({})).await;
    world.say("root", &reader, json!("read")).await;
    world.say("root", &writer, json!("write")).await;
    let damaged = reader.clone();
    world
        .write(move |tx| {
            Box::pin(async move {
                let query = polity_sql::query("UPDATE messages SET body = 'no JSON' WHERE receiver = ?1");
                query.bind(damaged).execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    let (world, outcomes, _) = run_until_idle(world, &["t-1"]).await;
    assert_eq!(outcomes, [Outcome::Answered]);
    assert_eq!(world.query("SELECT agent FROM holds").await, [reader.as_str()]);
    let told = world.query("SELECT body FROM messages WHERE receiver = 'root' AND sender = 'system'").await;
    assert!(told.iter().any(|body| body.contains("parked") && body.contains(&reader)), "{told:?}");
    let done = world.query("SELECT DISTINCT agent FROM turns WHERE state = 'done' ORDER BY agent").await;
    assert_eq!(done, ["root".to_owned(), writer]);
}

#[tokio::test]
async fn a_conversation_whose_records_cannot_be_read_is_parked_and_another_task_goes_on() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let turn = world.begin_turn("root").await;
    world
        .write(move |tx| {
            Box::pin(async move {
                let query = polity_sql::query("UPDATE records SET body = '{}' WHERE turn = ?1");
                let query = query.bind(turn.number());
                query.execute(&mut tx.connection).await?;
                Ok(())
            })
        })
        .await;
    world.add_task("t-2").await;
    let other = Conversation { agent: AgentId::user(), task: TaskId::new("t-2") };
    world.call_in(other, "send_message", json!({"to": "root", "payload": "another thing"})).await;
    let (world, outcomes, asked) = run_until_idle(world, &["t-1", "t-2"]).await;
    assert_eq!((outcomes, asked), (vec![Outcome::Unanswered, Outcome::Answered], 1));
    assert_eq!(world.query("SELECT agent || task FROM holds").await, ["roott-1"]);
    let told = world.query("SELECT body FROM messages WHERE receiver = 'user' AND task = 't-1'").await;
    assert!(told.len() == 1 && told[0].contains("parked"), "{told:?}");
}

mod due;
mod order;

#[tokio::test]
async fn what_was_said_before_a_prompt_is_no_answer_to_it_and_what_is_said_after_it_is() {
    let world = World::new().await;
    world.say("user", "root", json!("first")).await;
    world.begin_turn("root").await;
    let unanswered = async || {
        let mut reader = world.store.reader().await.unwrap();
        tasks::standing(&mut reader, &world.task).await.unwrap().unwrap().unanswered
    };
    assert!(unanswered().await);
    world.say("root", "user", json!("about the first")).await;
    assert!(!unanswered().await);
    world.say("user", "root", json!("second")).await;
    // The second prompt becomes part of the open turn, in which root has already said something.
    let take = "UPDATE messages SET state = 'in_turn', turn = 1 WHERE state = 'queued' AND receiver = 'root'";
    world
        .write(move |tx| {
            Box::pin(async move { Ok(polity_sql::query(take).execute(&mut tx.connection).await.map(drop)?) })
        })
        .await;
    assert!(unanswered().await);
    world.say("root", "user", json!({"text": "about both", "in_reply_to": null})).await;
    assert!(!unanswered().await);
}
