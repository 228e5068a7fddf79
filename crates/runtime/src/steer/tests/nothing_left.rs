//! Tests of what a stop leaves behind, and of the outcome of the task.

use super::*;
use polity_society::id::{CommandId, TurnId};
use polity_store::messages::Settled;

/// Ends a turn as its driver would, but says nothing.
async fn end_turn(world: &World, turn: TurnId, ended: turns::Ended) {
    let settled = match ended {
        turns::Ended::Done => Settled::Done,
        turns::Ended::Failed | turns::Ended::Stopped => Settled::Failed,
    };
    let write = world.write(move |tx| {
        Box::pin(async move {
            messages::settle(tx, turn, settled).await?;
            turns::end(tx, turn, ended).await?;
            // A driver would look whether an agent has waited for this turn. These tests need no such agent.
            tx.released.clear();
            Ok(())
        })
    });
    write.await;
}

/// Moves the mail of an agent into its open turn.
async fn take_mail(world: &World, agent: &str, turn: TurnId) {
    let mailbox = world.of(agent);
    let take = world.write(move |tx| {
        Box::pin(async move { messages::take_through(tx, &mailbox, turn, i64::MAX).await.map(drop) })
    });
    take.await;
}

async fn set_idle(world: &World) {
    let task = world.task.clone();
    world.write(move |tx| Box::pin(async move { tasks::set_idle(tx, &task, Duration::ZERO).await })).await;
}

async fn failures(world: &World, agent: &str) -> u64 {
    let mut connection = world.store.reader().await.unwrap();
    turns::failures(&mut connection, &world.of(agent)).await.unwrap()
}

/// Which agents a test stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    /// Only this agent.
    Agent(&'static str),
    Everybody,
    Task,
}

/// Stops agents. `worker` is the agent to which [`Stop::Agent`] refers as `worker`.
async fn stop_all_of(world: &World, what: Stop, worker: &str) -> Vec<AgentId> {
    let (store, snapshot) = (&world.store, world.snapshot.clone());
    let stopped = match what {
        Stop::Agent("worker") => stop(store, snapshot, Target::Agent(AgentId::new(worker))).await,
        Stop::Agent(agent) => stop(store, snapshot, Target::Agent(AgentId::new(agent))).await,
        Stop::Everybody => stop(store, snapshot, Target::Everybody).await,
        Stop::Task => stop_task(store, snapshot, world.task.clone()).await,
    };
    stopped.unwrap()
}

#[tokio::test]
async fn failures_from_before_a_stop_do_not_count_even_if_there_was_nothing_to_stop() {
    for what in [Stop::Agent("worker"), Stop::Everybody, Stop::Task] {
        let (world, reader) = with_reader().await;
        let turn = world.begin_turn(&reader).await;
        end_turn(&world, turn, turns::Ended::Failed).await;
        assert_eq!(failures(&world, &reader).await, 1);
        let stopped = stop_all_of(&world, what, &reader).await;
        assert!(!stopped.contains(&AgentId::new(reader.as_str())), "{what:?}: {stopped:?}");
        assert_eq!(failures(&world, &reader).await, 0, "{what:?}");
    }
}

#[tokio::test]
async fn a_command_is_ended_by_a_stop_even_if_its_agent_has_nothing_else() {
    for what in [Stop::Agent("worker"), Stop::Everybody, Stop::Task] {
        let (world, _) = with_reader().await;
        let helper = world.hire("root", "helper", json!({})).await;
        let owner = world.of(&helper);
        let start = world.write(move |tx| {
            Box::pin(async move { commands::started(tx, &owner, &CommandId::new("cmd-1"), None).await })
        });
        start.await;
        let stopped = stop_all_of(&world, what, &helper).await;
        assert!(stopped.contains(&AgentId::new(helper.as_str())), "{what:?}: {stopped:?}");
        assert_eq!(world.query("SELECT state FROM commands").await, ["ended"], "{what:?}");
    }
}

/// The reader holds a text for root, because it waits until the turn of its helper ends.
#[tokio::test]
async fn a_held_text_is_forgotten_whether_its_agent_waits_or_has_an_open_turn() {
    for has_turn in [false, true] {
        let (world, reader) = with_reader().await;
        let turn = world.begin_turn(&reader).await;
        let helper = world.hire(&reader, "helper", json!({})).await;
        world.say(&reader, &helper, json!("help")).await;
        world.begin_turn(&helper).await;
        world.say(&helper, &reader, json!("here")).await;
        take_mail(&world, &reader, turn).await;
        let request = format!("SELECT id FROM messages WHERE receiver = '{reader}' AND sender = 'root'");
        let request = MessageId::new(world.query(&request).await.concat());
        let owner = world.of(&reader);
        let hold = world.write(move |tx| {
            Box::pin(async move {
                notes::hold(tx, &owner, &request, std::slice::from_ref(&request), "half of it").await
            })
        });
        hold.await;
        if !has_turn {
            end_turn(&world, turn, turns::Ended::Done).await;
        }
        stop_of(&world, Target::Agent(AgentId::new(reader.as_str()))).await;
        assert_eq!(world.query("SELECT text FROM notes").await, [""; 0], "has a turn: {has_turn}");
        // The reader waits for nobody any more.
        stop_of(&world, Target::Agent(AgentId::new(helper.as_str()))).await;
        let said = format!("SELECT body FROM messages WHERE sender = '{reader}' AND receiver = 'root'");
        assert_eq!(world.query(&said).await, [""; 0], "has a turn: {has_turn}");
    }
}

#[tokio::test]
async fn an_interim_text_does_not_become_final_because_everybody_is_stopped() {
    for what in [Stop::Everybody, Stop::Task] {
        let world = World::new().await;
        world.say("user", "root", json!("go")).await;
        let turn = world.begin_turn("root").await;
        let reader = world.hire("root", "reader", json!({})).await;
        world.say("root", &reader, json!("read")).await;
        world.begin_turn(&reader).await;
        world.say(&reader, "root", json!("a page")).await;
        take_mail(&world, "root", turn).await;
        world.say("root", "user", json!("more will follow")).await;
        end_turn(&world, turn, turns::Ended::Done).await;
        let finality = "SELECT finality FROM messages WHERE receiver = 'user'";
        assert_eq!(world.query(finality).await, ["interim"]);
        stop_all_of(&world, what, &reader).await;
        assert_eq!(world.query(finality).await, ["interim"], "{what:?}");
        assert_eq!(standing(&world).await.outcome(), Outcome::Unanswered, "{what:?}");
    }
}

#[tokio::test]
async fn the_outcome_is_the_same_whether_a_worker_is_stopped_before_or_after_root_answers() {
    let before = (Some(Stop::Agent("worker")), None);
    let after = [Stop::Agent("worker"), Stop::Everybody, Stop::Task].map(|what| (None, Some(what)));
    for (before, after) in [before].into_iter().chain(after) {
        let world = World::new().await;
        world.say("user", "root", json!("go")).await;
        let turn = world.begin_turn("root").await;
        let reader = world.hire("root", "reader", json!({})).await;
        ask(&world, &reader).await;
        if let Some(what) = before {
            stop_all_of(&world, what, &reader).await;
        }
        world.say("root", "user", json!("done")).await;
        end_turn(&world, turn, turns::Ended::Done).await;
        if let Some(what) = after {
            assert_eq!(standing(&world).await.outcome(), Outcome::Unanswered);
            stop_all_of(&world, what, &reader).await;
        }
        let over = standing(&world).await;
        assert_eq!((over.stopped, over.outcome()), (false, Outcome::Answered), "{before:?} {after:?}");
    }
}

#[tokio::test]
async fn what_a_worker_owes_the_person_is_not_lost_when_root_is_stopped_after_its_answer() {
    let (world, reader) = answered_with_a_parked_reader().await;
    ask(&world, &reader).await;
    // Root works on something else that the person does not wait for.
    world.say(&reader, "root", json!("one more thing")).await;
    world.begin_turn("root").await;
    stop_of(&world, Target::Agent(AgentId::root())).await;
    let after = standing(&world).await;
    assert_eq!((after.stopped, after.unanswered), (false, true));
}

#[tokio::test]
async fn an_event_tells_the_new_outcome_if_a_stop_changes_the_outcome_of_an_idle_task() {
    for what in [Stop::Agent("root"), Stop::Everybody, Stop::Task] {
        let world = World::new().await;
        world.say("user", "root", json!("go")).await;
        let turn = world.begin_turn("root").await;
        let question = json!({"message_type": "collaboration_request", "text": "which page?"});
        world.say("root", "user", question).await;
        end_turn(&world, turn, turns::Ended::Done).await;
        set_idle(&world).await;
        assert_eq!(standing(&world).await.outcome(), Outcome::AwaitsUser);
        let told = "SELECT body ->> 'outcome' FROM events WHERE kind = 'task_idle'";
        assert_eq!(world.query(told).await, [""; 0]);
        stop_all_of(&world, what, "nobody").await;
        assert_eq!(world.query(told).await, ["unanswered"], "{what:?}");
        stop_all_of(&world, what, "nobody").await;
        assert_eq!(world.query(told).await, ["unanswered"], "once: {what:?}");
    }
}

/// Root gets one notice, even if two calls come at the same time and a third one after them.
#[tokio::test]
async fn root_tries_again_once_after_no_model_could_be_used() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let turn = world.begin_turn("root").await;
    end_turn(&world, turn, turns::Ended::Failed).await;
    set_idle(&world).await;
    assert_eq!(standing(&world).await.outcome(), Outcome::NoModel);
    park(&world, "root").await;
    let again =
        async || try_again(&world.store, world.snapshot.clone(), world.task.clone()).await.expect("a task");
    let (one, other) = tokio::join!(again(), again());
    assert_eq!([one, other].concat(), [AgentId::root()]);
    assert_eq!(again().await, []);
    let notices = "SELECT body ->> 'notice' FROM messages WHERE receiver = 'root' AND state = 'queued'";
    assert_eq!(world.query(notices).await, ["try_again"]);
    let about = "SELECT about FROM messages WHERE receiver = 'root' AND state = 'queued'";
    let asked = "SELECT id FROM messages WHERE sender = 'user'";
    assert_eq!(world.query(about).await, world.query(asked).await, "the person's request");
    assert_eq!(world.query("SELECT state FROM tasks").await, ["open"]);
    assert_eq!(world.query(PARKED).await, [""; 0]);

    let turn = world.begin_turn("root").await;
    assert_eq!(again().await, [], "root is at work");
    end_turn(&world, turn, turns::Ended::Failed).await;
    assert_eq!(again().await, [AgentId::root()], "it has failed again");
    stop_task(&world.store, world.snapshot.clone(), world.task.clone()).await.unwrap();
    assert_eq!(again().await, [], "the person has stopped the task");
    let nowhere = try_again(&world.store, world.snapshot.clone(), TaskId::new("t-9")).await;
    assert!(matches!(nowhere, Err(SteerError::NoTask(_))), "{nowhere:?}");
}

#[tokio::test]
async fn a_nudge_is_about_the_request_of_the_person() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let turn = world.begin_turn("root").await;
    end_turn(&world, turn, turns::Ended::Done).await;
    let (snapshot, task) = (world.snapshot.clone(), world.task.clone());
    let nudge = world.write(move |tx| Box::pin(async move { rest::nudge(tx, &snapshot, &task).await }));
    nudge.await;
    let about = "SELECT about FROM messages WHERE body ->> 'notice' = 'nudge'";
    let asked = world.query("SELECT id FROM messages WHERE sender = 'user'").await;
    assert_eq!((world.query(about).await, asked.len()), (asked, 1));
}
