use super::*;
use crate::testing::World;
use polity_society::command::CommandEnd;
use polity_society::id::CommandId;
use polity_society::message::Body;
use polity_society::policy::Source;
use serde_json::json;
use std::collections::BTreeSet;
use std::time::Duration;

fn ended(world: &World, id: &str) -> CommandEnded {
    CommandEnded {
        agent: AgentId::root(),
        task: world.task.clone(),
        id: CommandId::new(id),
        call: String::new(),
        command: "cargo test".to_owned(),
        end: CommandEnd::Exited { code: 101 },
        last_lines: "1 failed".to_owned(),
        sources: BTreeSet::from([Source::Files, Source::Web]),
    }
}

/// Returns the ids of the commands whose end was reported to root.
async fn told(world: &World) -> Vec<String> {
    let id = |body: Body| match body {
        Body::Notice(Notice::CommandEnded { id, .. }) => Some(id.to_string()),
        _ => None,
    };
    world.mail("root").await.into_iter().filter_map(|message| id(message.body)).collect()
}

#[tokio::test]
async fn the_end_of_a_command_is_told_once_and_only_while_its_task_is_open() {
    let mut world = World::new().await;
    world.say("user", "root", json!("go")).await;
    world.settle_signals().await;
    while world.signals.bells.try_recv().is_ok() {}
    tell(&world.store, &world.registry, ended(&world, "cmd-1")).await.unwrap();
    let woken = tokio::time::timeout(Duration::from_secs(60), world.signals.bells.recv()).await;
    assert_eq!(woken, Ok(Some(Bell::Mailbox(world.of("root")))), "it wakes the agent");
    // After a crash, the end of the same command is reported again. Root must not be told twice.
    tell(&world.store, &world.registry, ended(&world, "cmd-1")).await.unwrap();
    tell(&world.store, &world.registry, ended(&world, "cmd-2")).await.unwrap();
    assert_eq!(told(&world).await, ["cmd-1", "cmd-2"]);
    // The notices quote the output, so root has seen the sources from which the output may come.
    let seen = world.query("SELECT holder || ' ' || source FROM seen ORDER BY source").await;
    assert_eq!(seen, ["agent:root files", "agent:root web"]);
    let task = world.task.clone();
    world.write(move |tx| Box::pin(async move { tasks::set_idle(tx, &task, Duration::ZERO).await })).await;
    tell(&world.store, &world.registry, ended(&world, "cmd-3")).await.unwrap();
    assert_eq!(told(&world).await, ["cmd-1", "cmd-2"]);
}

/// The command ends by itself after the person has stopped its agent, and before the process notices the stop.
#[tokio::test]
async fn the_end_of_a_command_does_not_wake_an_agent_that_was_stopped() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let root = world.of("root");
    let id = CommandId::new("cmd-1");
    world.write(move |tx| Box::pin(async move { commands::started(tx, &root, &id, None).await })).await;
    let target = crate::steer::Target::Agent(AgentId::root());
    crate::steer::stop(&world.store, world.registry.current(), target).await.unwrap();
    world.say("user", "root", json!("go on")).await;
    tell(&world.store, &world.registry, ended(&world, "cmd-1")).await.unwrap();
    assert_eq!(told(&world).await, [""; 0]);
}

/// The stop falls between the start of the command and the transaction in which its turn writes this start. So there is
/// no row that the stop could end.
#[tokio::test]
async fn the_end_of_a_command_of_a_stopped_turn_wakes_nobody_even_if_its_start_was_never_written() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let turn = world.begin_turn("root").await;
    let of = |id: &str, turn| CommandEnded { call: key_of_call(turn, 0, "call_1"), ..ended(&world, id) };
    tell(&world.store, &world.registry, of("cmd-1", turn)).await.unwrap();
    assert_eq!(told(&world).await, ["cmd-1"], "the turn has not written the start yet, but it goes on");
    let target = crate::steer::Target::Agent(AgentId::root());
    crate::steer::stop(&world.store, world.registry.current(), target).await.unwrap();
    world.say("user", "root", json!("go on")).await;
    let next = world.begin_turn("root").await;
    tell(&world.store, &world.registry, of("cmd-2", turn)).await.unwrap();
    assert_eq!(told(&world).await, ["cmd-1"]);
    tell(&world.store, &world.registry, of("cmd-3", next)).await.unwrap();
    assert_eq!(told(&world).await, ["cmd-1", "cmd-3"]);
}
