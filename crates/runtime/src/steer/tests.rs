mod nothing_left;

use super::*;
use crate::handles::Handles;
use crate::supervisor::Supervisor;
use crate::testing::model::{Say, ScriptedModel};
use crate::testing::tool::{FakeTool, hands};
use crate::testing::{World, brief};
use polity_hands::call::Output;
use polity_hands::tool::AfterCrash;
use polity_view::Outcome;
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

/// A running society.
struct Running {
    world: World,
    handles: Arc<Handles>,
    /// The last event that was read.
    seen: i64,
    stop: CancellationToken,
    supervisor: JoinHandle<()>,
}

fn start(mut world: World, cast: &Arc<ScriptedModel>, tools: Vec<FakeTool>) -> Running {
    let handles = world.handles(cast.clone(), hands(tools));
    let stop = CancellationToken::new();
    let (broken, _) = watch::channel(None);
    let (unheard, unused) = mpsc::unbounded_channel();
    // If the test starts another society in the same world, the supervisor of that society receives its bells from
    // `unused`. A supervisor ends when its channel is closed. So the sender of `unused` must never be dropped.
    std::mem::forget(unheard);
    let bells = std::mem::replace(&mut world.signals.bells, unused);
    let ended = CancellationToken::new();
    let supervisor = Supervisor::new(handles.clone(), bells, stop.clone(), broken, ended);
    let supervisor = tokio::spawn(supervisor.run());
    Running { world, handles, seen: 0, stop, supervisor }
}

impl Running {
    /// Waits until the task becomes idle.
    async fn idle(&mut self) -> Outcome {
        loop {
            let mut reader = self.world.store.reader().await.unwrap();
            let entries = crate::testing::events_after(&mut reader, self.seen).await;
            drop(reader);
            for entry in entries {
                self.seen = entry.seq;
                if let Event::TaskIdle { outcome, .. } = entry.event {
                    return outcome;
                }
            }
            let changed = tokio::time::timeout(Duration::from_secs(60), self.world.signals.events.changed());
            if changed.await.is_err() {
                panic!("nothing happens after {:?}", self.world.query("SELECT body FROM events").await);
            }
        }
    }

    /// Waits until a query finds these rows. Looks again after each event, so the change that the test waits for must
    /// write an event.
    async fn until(&mut self, query: &str, rows: &[&str]) {
        loop {
            let found = self.world.query(query).await;
            if found == rows {
                return;
            }
            let changed = tokio::time::timeout(Duration::from_secs(60), self.world.signals.events.changed());
            assert!(changed.await.is_ok(), "{query}: {found:?}");
        }
    }

    /// Skips the events so far. The task had no work at first, so one of these events may report it as idle.
    async fn skip(&mut self) {
        let mut reader = self.world.store.reader().await.unwrap();
        if let Some(last) = crate::testing::events_after(&mut reader, self.seen).await.last() {
            self.seen = last.seq;
        }
    }

    async fn end(self) -> World {
        self.stop.cancel();
        self.supervisor.await.unwrap();
        self.world
    }

    async fn pause(&self, target: Target) -> Vec<AgentId> {
        pause(&self.world.store, target).await.unwrap()
    }

    async fn resume(&self, target: Target) -> Vec<AgentId> {
        resume(&self.world.store, target).await.unwrap()
    }

    async fn stop_work(&self, target: Target) -> Vec<AgentId> {
        stop(&self.world.store, self.handles.registry.current(), target).await.unwrap()
    }
}

/// Creates a world in which root has asked a reader for something and waits.
async fn with_reader() -> (World, String) {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let reader = world.hire("root", "reader", json!({})).await;
    world.say("root", &reader, json!("read")).await;
    (world, reader)
}

#[tokio::test]
async fn a_pause_drops_a_model_call_and_what_was_dropped_is_done_again() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Hang, Say::Text("done")])]);
    let mut society = start(world, &cast, Vec::new());
    cast.until_hanging(1).await;
    assert_eq!(society.pause(Target::Everybody).await, [AgentId::root()]);
    cast.until_hanging(0).await;
    assert_eq!(society.pause(Target::Everybody).await, []);
    // A message that arrives during the pause stays queued.
    society.world.say("user", "root", json!("more")).await;
    assert_eq!(cast.asked_as("root"), 1);
    assert_eq!(society.world.query("SELECT state FROM tasks").await, ["open"]);
    assert_eq!(society.resume(Target::Agent(AgentId::root())).await, [AgentId::root()]);
    assert_eq!(society.idle().await, Outcome::Answered);
    let world = society.end().await;
    assert_eq!(world.query("SELECT DISTINCT state FROM turns").await, ["done"]);
}

#[tokio::test]
async fn who_is_paused_stays_so_after_a_new_start() {
    let (world, reader) = with_reader().await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Hang]), ("reader", &[Say::Hang])]);
    let society = start(world, &cast, Vec::new());
    cast.until_hanging(2).await;
    society.pause(Target::Subtree(AgentId::new(reader.as_str()))).await;
    cast.until_hanging(1).await;
    let society = start(society.end().await, &cast, Vec::new());
    cast.until(|| cast.asked_as("root") == 2).await;
    let world = society.end().await;
    assert_eq!(cast.asked_as("reader"), 1);
    resume(&world.store, Target::Everybody).await.unwrap();
    cast.play("root", &[Say::Text("done")]);
    cast.play("reader", &[Say::Text("read")]);
    let mut society = start(world, &cast, Vec::new());
    assert_eq!(society.idle().await, Outcome::Answered);
    assert_eq!(cast.asked_as("reader"), 2);
    society.end().await;
}

#[tokio::test]
async fn a_subtree_is_paused_with_all_below_it_and_the_others_go_on() {
    let (world, reader) = with_reader().await;
    let helper = world.hire(&reader, "helper", json!({})).await;
    let writer = world.hire("root", "writer", json!({})).await;
    for (from, to) in [(reader.as_str(), &helper), ("root", &writer)] {
        world.say(from, to, json!("work")).await;
    }
    let text = &[Say::Text("done")][..];
    let cast = ScriptedModel::by_role(&[
        ("root", text),
        ("reader", &[Say::Hang]),
        ("helper", &[Say::Hang]),
        ("writer", &[Say::Hang]),
    ]);
    let society = start(world, &cast, Vec::new());
    cast.until_hanging(3).await;
    let paused = society.pause(Target::Subtree(AgentId::new(reader.as_str()))).await;
    assert_eq!(paused, [reader.as_str(), &helper].map(AgentId::new));
    cast.until_hanging(1).await;
    society.end().await;
}

/// Returns a world, and an answer with which root hires another agent.
async fn spawner() -> (World, Say) {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let role = world.call("root", "create_role", json!({"name": "child", "rolePrompt": "…"})).await;
    let arguments = json!({"roleId": role["id"], "taskBrief": brief(), "initialMessage": {"text": "work"}});
    (world, Say::Call("spawn_agent_with_task", arguments))
}

#[tokio::test]
async fn children_that_are_hired_meanwhile_are_caught() {
    for _ in 0..20 {
        let (world, hire) = spawner().await;
        let cast = ScriptedModel::by_role(&[("root", &[hire]), ("child", &[Say::Hang])]);
        let society = start(world, &cast, Vec::new());
        cast.until(|| cast.asked_as("root") > 2).await;
        society.pause(Target::Everybody).await;
        cast.until_hanging(0).await;
        let at_work = "SELECT id FROM agents WHERE id <> 'user' AND paused_at IS NULL AND ended_at IS NULL";
        assert_eq!(society.world.query(at_work).await, [""; 0]);
        let world = society.end().await;
        assert_eq!(world.query(at_work).await, [""; 0]);
    }
}

#[tokio::test]
async fn whoever_asked_one_that_is_stopped_is_told_and_it_can_be_asked_again() {
    let (world, reader) = with_reader().await;
    let again = json!({"to": reader, "payload": "again"});
    let cast = ScriptedModel::by_role(&[
        (
            "root",
            &[Say::Text("wait"), Say::Call("send_message", again), Say::Text("waiting"), Say::Text("answer")],
        ),
        ("reader", &[Say::Hang, Say::Text("read")]),
    ]);
    let mut society = start(world, &cast, Vec::new());
    cast.until_hanging(1).await;
    let target = AgentId::new(reader.as_str());
    assert_eq!(society.stop_work(Target::Agent(target.clone())).await, [target]);
    assert_eq!(society.idle().await, Outcome::Answered);
    let world = society.end().await;
    let told = world.query("SELECT body FROM messages WHERE receiver = 'root' AND sender = 'system'").await;
    assert!(told.len() == 1 && told[0].contains("\"stopped\"") && told[0].contains(&reader), "{told:?}");
    let turns = format!("SELECT state FROM turns WHERE agent = '{reader}' ORDER BY id");
    assert_eq!(world.query(&turns).await, ["stopped", "done"]);
    let states = format!("SELECT state FROM messages WHERE receiver = '{reader}' ORDER BY seq");
    assert_eq!(world.query(&states).await, ["failed", "done"]);
}

#[tokio::test]
async fn when_everything_is_stopped_the_task_is_over_and_nobody_is_nudged() {
    let (world, _) = with_reader().await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Hang]), ("reader", &[Say::Hang])]);
    let mut society = start(world, &cast, Vec::new());
    cast.until_hanging(2).await;
    assert_eq!(society.stop_work(Target::Everybody).await.len(), 2);
    cast.until_hanging(0).await;
    assert_eq!(society.idle().await, Outcome::Unanswered);
    // A new message of the person starts the work again. The model checks that every tool call in the history has a
    // result.
    cast.play("root", &[Say::Text("here I am")]);
    society.world.say("user", "root", json!("go on")).await;
    cast.until(|| cast.asked_as("root") == 2).await;
    let world = society.end().await;
    assert_eq!(world.query("SELECT id FROM messages WHERE sender = 'system'").await, [""; 0]);
}

#[tokio::test]
async fn root_that_is_stopped_alone_is_not_reminded() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Hang])]);
    let mut society = start(world, &cast, Vec::new());
    cast.until_hanging(1).await;
    society.stop_work(Target::Agent(AgentId::root())).await;
    assert_eq!(society.idle().await, Outcome::Unanswered);
    assert_eq!(cast.asked_as("root"), 1);
    society.end().await;
}

#[tokio::test]
async fn what_was_stopped_is_not_answered_by_what_is_said_later() {
    let world = World::new().await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Text("this is about the second")])]);
    let mut society = start(world, &cast, Vec::new());
    society.pause(Target::Everybody).await;
    society.world.say("user", "root", json!("first")).await;
    society.skip().await;
    society.stop_work(Target::Everybody).await;
    assert_eq!(society.idle().await, Outcome::Unanswered);
    society.resume(Target::Everybody).await;
    society.world.say("user", "root", json!("second")).await;
    assert_eq!(society.idle().await, Outcome::Answered);
    assert_eq!(cast.asked_as("root"), 1, "root is not reminded of the first request");
    let world = society.end().await;
    let answered = "SELECT id FROM messages WHERE answered_by IS NOT NULL";
    assert_eq!(world.query(answered).await, ["m000000002"]);
}

#[tokio::test]
async fn what_came_in_the_same_commit_as_a_stop_is_heard() {
    let world = World::new().await;
    // Send this message before the start, because for the supervisor a task without messages is over.
    world.say("user", "root", json!("first")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Text("done")])]);
    let mut society = start(world, &cast, Vec::new());
    society.idle().await;
    // One transaction rings the bell of root's mailbox and the bell that halts root, and then sends a message to root.
    // The message rings no further bell, because a transaction rings each bell only once.
    let root = society.world.of("root");
    let snapshot = society.world.snapshot.clone();
    let user = society.world.of("user");
    society
        .world
        .write(move |tx| {
            Box::pin(async move {
                tx.ring(Bell::Mailbox(root.clone()));
                tx.ring(Bell::Halt(root.agent.clone()));
                let draft = polity_society::rules::Draft {
                    to: "root".to_owned(),
                    payload: polity_society::message::Payload::text("second"),
                    answering: polity_society::rules::Answering::AsWritten,
                    due_at: None,
                };
                let last_word = polity_society::rules::LastWord::UnlessWaiting;
                polity_store::keep(crate::door::send(tx, &snapshot, &user, draft, last_word).await)
            })
        })
        .await
        .unwrap();
    assert_eq!(society.idle().await, Outcome::Answered);
    assert_eq!(cast.asked_as("root"), 2);
    society.end().await;
}

#[tokio::test]
async fn a_limit_counts_though_the_person_has_stopped_root() {
    let world = World::new().await;
    let task = world.task.clone();
    let stop = async |by: &'static str| {
        let task = task.clone();
        world.write(move |tx| Box::pin(async move { tasks::stop(tx, &task, by).await })).await
    };
    assert!(stop(tasks::STOPPED_BY_USER).await);
    assert!(stop("maxCostPerTask").await, "the limit is noted");
    assert!(!stop("maxTokensPerTask").await, "once");
    assert!(!stop(tasks::STOPPED_BY_USER).await);
    // Resuming agents does not undo the stop.
    let resumed = task.clone();
    world.write(move |tx| Box::pin(async move { tasks::wake(tx, &resumed).await })).await;
    assert_eq!(world.query("SELECT stopped_by FROM tasks").await, ["maxCostPerTask"]);
}

fn hanging_tool(cast: &Arc<ScriptedModel>) -> FakeTool {
    let cast = cast.clone();
    let tool = FakeTool::new("order", move |_| {
        let cast = cast.clone();
        Box::pin(async move { cast.hang().await })
    });
    FakeTool { after_crash: AfterCrash::Never, ..tool }
}

#[tokio::test]
async fn a_tool_is_dropped_and_its_outcome_is_unknown() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Call("order", json!({})), Say::Text("done")])]);
    let mut society = start(world, &cast, vec![hanging_tool(&cast)]);
    cast.until_hanging(1).await;
    society.pause(Target::Agent(AgentId::root())).await;
    cast.until_hanging(0).await;
    society.resume(Target::Agent(AgentId::root())).await;
    assert_eq!(society.idle().await, Outcome::Answered);
    let world = society.end().await;
    let results = world.query("SELECT body FROM records WHERE body LIKE '%outcome_unknown%'").await;
    assert_eq!(results.len(), 1);
}

#[tokio::test]
async fn a_turn_that_is_stopped_says_what_was_run_and_what_was_not() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Call("order", json!({}))])]);
    let mut society = start(world, &cast, vec![hanging_tool(&cast)]);
    cast.until_hanging(1).await;
    society.stop_work(Target::Everybody).await;
    cast.until_hanging(0).await;
    assert_eq!(society.idle().await, Outcome::Unanswered);
    cast.play("root", &[Say::Text("again")]);
    society.world.say("user", "root", json!("go on")).await;
    cast.until(|| cast.asked_as("root") == 2).await;
    let world = society.end().await;
    assert_eq!(world.query("SELECT body FROM records WHERE body LIKE '%outcome_unknown%'").await.len(), 1);
}

#[tokio::test]
async fn who_is_not_there_cannot_be_stopped() {
    let (world, reader) = with_reader().await;
    world.call("root", "terminate_agent", json!({"agentId": reader})).await;
    let check = async |target: Target, expect: &str| {
        let refused = pause(&world.store, target).await.unwrap_err();
        assert!(refused.to_string().contains(expect), "{refused}");
    };
    check(Target::Agent(AgentId::new("nobody")), "no agent").await;
    check(Target::Subtree(AgentId::new(reader.as_str())), "has ended").await;
    check(Target::Agent(AgentId::user()), "the person").await;
}

#[tokio::test]
async fn an_agent_whose_turns_fail_again_and_again_is_parked_until_it_is_resumed() {
    let world = World::new().await;
    // Send this message before the start, because for the supervisor a task without messages is over.
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Text("")])]);
    let mut society = start(world, &cast, Vec::new());
    for turn in 1..=5 {
        if turn > 1 {
            assert_eq!(society.world.query("SELECT agent FROM holds").await, [""; 0], "before turn {turn}");
            society.world.say("user", "root", json!("go")).await;
        }
        assert_eq!(society.idle().await, Outcome::Unanswered);
    }
    assert_eq!(society.world.query("SELECT agent FROM holds").await, ["root"]);
    let told = society.world.query("SELECT body FROM messages WHERE receiver = 'user' ORDER BY seq").await;
    let parked = told.iter().filter(|body| body.contains("\"parked\"")).count();
    assert_eq!((told.len(), parked), (5, 1));
    // A message that arrives now stays queued, and causes no model call.
    let asked = cast.asked_as("root");
    society.world.say("user", "root", json!("and now?")).await;
    society.idle().await;
    assert_eq!(cast.asked_as("root"), asked);
    cast.play("root", &[Say::Text(""), Say::Text(""), Say::Text("now")]);
    society.resume(Target::Everybody).await;
    society.idle().await;
    // Resuming the agent resets the count of its failures.
    assert_eq!(society.world.query("SELECT agent FROM holds").await, [""; 0]);
    society.world.say("user", "root", json!("again")).await;
    assert_eq!(society.idle().await, Outcome::Answered);
    society.end().await;
}

/// Parks an agent. The failures of an agent would have the same effect.
async fn park(world: &World, agent: &str) {
    let parked = world.of(agent);
    world.write(move |tx| Box::pin(async move { holds::insert(tx, &parked, "it failed").await })).await;
}

async fn standing(world: &World) -> tasks::Standing {
    let mut connection = world.store.reader().await.unwrap();
    tasks::standing(&mut connection, &world.task).await.unwrap().unwrap()
}

const PARKED: &str = "SELECT agent FROM holds";

#[tokio::test]
async fn a_parked_agent_that_is_stopped_can_be_asked_again_and_its_asker_is_told_once() {
    let world = World::with(&json!({"maxFailedTurns": 1})).await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let reader = world.hire("root", "reader", json!({})).await;
    world.say("root", &reader, json!("read")).await;
    let cast = ScriptedModel::by_role(&[
        ("root", &[Say::Text("the reader cannot read")]),
        ("reader", &[Say::Fail, Say::Text("read")]),
    ]);
    let mut society = start(world, &cast, Vec::new());
    society.idle().await;
    assert_eq!(society.world.query(PARKED).await, [reader.as_str()]);

    // The reader does not read this message. The task stays idle.
    society.world.say("root", &reader, json!("and this?")).await;
    cast.play("root", &[Say::Text("the reader was stopped")]);
    let target = AgentId::new(reader.as_str());
    assert_eq!(society.stop_work(Target::Agent(target.clone())).await, [target]);
    // Root works on the notice about the stop, so the task becomes idle once more.
    society.idle().await;
    let mut connection = society.world.store.reader().await.unwrap();
    let open = polity_store::view::now::open(&mut connection).await.unwrap();
    drop(connection);
    assert_eq!(open.holds, [], "the reader is still stuck");
    assert!(open.requests.iter().all(|request| request.to.as_str() != reader), "{:?}", open.requests);
    let told = "SELECT body ->> 'notice' FROM messages WHERE receiver = 'root' AND sender = 'system'
        AND body ->> 'notice' IN ('parked', 'stopped') ORDER BY seq";
    assert_eq!(society.world.query(told).await, ["parked", "stopped"]);

    society.world.say("root", &reader, json!("once more")).await;
    let turns = format!("SELECT state FROM turns WHERE agent = '{reader}' ORDER BY id");
    society.until(&turns, &["failed", "done"]).await;
    let world = society.end().await;
    let states = format!("SELECT state FROM messages WHERE receiver = '{reader}' ORDER BY seq");
    assert_eq!(world.query(&states).await, ["failed", "failed", "done"]);
}

#[tokio::test]
async fn root_is_parked_no_longer_when_its_task_is_stopped() {
    let world = World::with(&json!({"maxFailedTurns": 2})).await;
    // Send this message before the start, because for the supervisor a task without messages is over.
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Fail])]);
    let mut society = start(world, &cast, Vec::new());
    society.idle().await;
    society.world.say("user", "root", json!("go on")).await;
    society.idle().await;
    assert_eq!(society.world.query(PARKED).await, ["root"]);

    let snapshot = society.handles.registry.current();
    let stopped = stop_task(&society.world.store, snapshot, society.world.task.clone()).await.unwrap();
    assert_eq!(stopped, [AgentId::root()]);
    assert_eq!(society.world.query(PARKED).await, [""; 0]);
    // The task was already idle. The stop takes its requests back, but the task does not count as answered.
    let after = standing(&society.world).await;
    assert_eq!((after.stopped, after.outcome()), (true, Outcome::Unanswered));

    society.world.say("user", "root", json!("again")).await;
    society.idle().await;
    assert_eq!(society.world.query(PARKED).await, [""; 0], "failures from before the stop do not count");
    cast.play("root", &[Say::Text("now")]);
    society.world.say("user", "root", json!("and again")).await;
    assert_eq!(society.idle().await, Outcome::Answered);
    society.end().await;
}

#[tokio::test]
async fn an_answered_task_stays_answered_when_its_parked_root_is_stopped() {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Text("done")])]);
    let mut society = start(world, &cast, Vec::new());
    assert_eq!(society.idle().await, Outcome::Answered);
    park(&society.world, "root").await;
    assert_eq!(society.stop_work(Target::Agent(AgentId::root())).await, [AgentId::root()]);
    assert_eq!(society.world.query(PARKED).await, [""; 0]);
    assert_eq!(standing(&society.world).await.outcome(), Outcome::Answered);
    society.end().await;
}

/// Creates a world in which root has answered the person, and a reader is parked. The task is idle. The society does not
/// run any more, so nobody reacts to what a test does.
async fn answered_with_a_parked_reader() -> (World, String) {
    let world = World::new().await;
    world.say("user", "root", json!("go")).await;
    let reader = world.hire("root", "reader", json!({})).await;
    let cast = ScriptedModel::by_role(&[("root", &[Say::Text("done")])]);
    let mut society = start(world, &cast, Vec::new());
    assert_eq!(society.idle().await, Outcome::Answered);
    park(&society.world, &reader).await;
    (society.end().await, reader)
}

/// Lets the person ask an agent something.
async fn ask(world: &World, agent: &str) {
    let (snapshot, asked) = (world.snapshot.clone(), AgentId::new(agent));
    let introduce = world.write(move |tx| {
        Box::pin(
            async move { apply::apply(tx, &snapshot, polity_society::rules::introduce_person(&asked)).await },
        )
    });
    introduce.await;
    world.say("user", agent, json!("and you?")).await;
}

async fn stop_of(world: &World, target: Target) {
    stop(&world.store, world.snapshot.clone(), target).await.unwrap();
}

async fn stop_of_task(world: &World) {
    stop_task(&world.store, world.snapshot.clone(), world.task.clone()).await.unwrap();
}

#[tokio::test]
async fn a_task_stays_unanswered_when_the_worker_that_the_person_asked_is_stopped() {
    for is_at_work in [true, false] {
        let (world, reader) = answered_with_a_parked_reader().await;
        let of_reader = Target::Agent(AgentId::new(reader.as_str()));
        ask(&world, &reader).await;
        if is_at_work {
            resume(&world.store, of_reader.clone()).await.unwrap();
            world.begin_turn(&reader).await;
        } else {
            let task = world.task.clone();
            let idle = world
                .write(move |tx| Box::pin(async move { tasks::set_idle(tx, &task, Duration::ZERO).await }));
            idle.await;
        }
        assert_eq!(standing(&world).await.outcome(), Outcome::Unanswered);
        stop_of(&world, of_reader).await;
        let after = standing(&world).await;
        assert_eq!((after.stopped, after.outcome()), (true, Outcome::Unanswered), "{is_at_work}");
    }
}

#[tokio::test]
async fn root_can_still_answer_when_a_worker_that_the_person_also_asked_is_stopped() {
    let (world, reader) = with_reader().await;
    ask(&world, &reader).await;
    stop_of(&world, Target::Agent(AgentId::new(reader.as_str()))).await;
    let after = standing(&world).await;
    assert_eq!((after.stopped, after.unanswered), (false, true));
}

#[tokio::test]
async fn an_answered_task_stays_answered_when_a_later_turn_of_root_is_stopped() {
    for target in [Some(Target::Agent(AgentId::root())), Some(Target::Everybody), None] {
        let (world, reader) = answered_with_a_parked_reader().await;
        world.say(&reader, "root", json!("one more thing")).await;
        let task = world.task.clone();
        world.write(move |tx| Box::pin(async move { tasks::wake(tx, &task).await })).await;
        world.begin_turn("root").await;
        match target.clone() {
            Some(target) => stop_of(&world, target).await,
            None => stop_of_task(&world).await,
        }
        assert_eq!(world.query("SELECT agent FROM turns WHERE state = 'open'").await, [""; 0]);
        let after = standing(&world).await;
        assert_eq!((after.stopped, after.outcome()), (false, Outcome::Answered), "{target:?}");
    }
}

#[tokio::test]
async fn an_answered_task_stays_answered_whether_its_worker_or_the_task_is_stopped_first() {
    for is_worker_first in [true, false] {
        let (world, reader) = answered_with_a_parked_reader().await;
        let of_reader = Target::Agent(AgentId::new(reader.as_str()));
        world.say("root", &reader, json!("and this?")).await;
        if is_worker_first {
            stop_of(&world, of_reader).await;
            assert!(standing(&world).await.open, "root has got a notice");
            stop_of_task(&world).await;
        } else {
            stop_of_task(&world).await;
            stop_of(&world, of_reader).await;
        }
        let after = standing(&world).await;
        assert!(!after.mail && !after.turning, "{after:?}");
        assert_eq!((after.stopped, after.outcome()), (false, Outcome::Answered), "{is_worker_first}");
    }
}

#[tokio::test]
async fn when_everybody_is_stopped_nobody_stays_parked_but_who_is_paused_stays_paused() {
    let (world, reader) = with_reader().await;
    let helper = world.hire(&reader, "helper", json!({})).await;
    let [of_reader, of_helper] = [&reader, &helper].map(|agent| AgentId::new(agent.as_str()));
    // The helper has no work.
    park(&world, &reader).await;
    park(&world, &helper).await;
    pause(&world.store, Target::Agent(of_reader.clone())).await.unwrap();
    let stopped = stop(&world.store, world.snapshot.clone(), Target::Everybody).await.unwrap();
    assert_eq!(stopped, [AgentId::root(), of_reader.clone(), of_helper]);
    assert_eq!(world.query(PARKED).await, [""; 0]);
    assert_eq!(world.query("SELECT id FROM messages WHERE sender = 'system'").await, [""; 0]);
    assert_eq!(world.query("SELECT id FROM agents WHERE paused_at IS NOT NULL").await, [reader]);
    assert_eq!(resume(&world.store, Target::Everybody).await.unwrap(), [of_reader]);
}

#[tokio::test]
async fn failures_from_before_a_stop_do_not_count_even_if_nobody_was_parked() {
    let (world, reader) = with_reader().await;
    let turn = world.begin_turn(&reader).await;
    world.write(move |tx| Box::pin(async move { turns::end(tx, turn, turns::Ended::Failed).await })).await;
    let failures = async || {
        let mut connection = world.store.reader().await.unwrap();
        turns::failures(&mut connection, &world.of(&reader)).await.unwrap()
    };
    assert_eq!(failures().await, 1);
    world.say("root", &reader, json!("once more")).await;
    stop_of(&world, Target::Agent(AgentId::new(reader.as_str()))).await;
    assert_eq!(failures().await, 0);
}

#[tokio::test]
async fn an_asker_with_several_requests_to_a_stopped_agent_is_told_once() {
    let (world, reader) = with_reader().await;
    world.begin_turn(&reader).await;
    world.say("root", &reader, json!("and this?")).await;
    stop_of(&world, Target::Agent(AgentId::new(reader.as_str()))).await;
    let states = format!("SELECT state FROM messages WHERE receiver = '{reader}'");
    assert_eq!(world.query(&states).await, ["failed", "failed"]);
    let newest = format!("SELECT id FROM messages WHERE receiver = '{reader}' ORDER BY seq DESC LIMIT 1");
    let told = "SELECT body ->> 'message' FROM messages WHERE receiver = 'root' AND sender = 'system'";
    assert_eq!(world.query(told).await, world.query(&newest).await);
}

#[tokio::test]
async fn a_question_of_a_stopped_agent_to_the_person_is_dropped() {
    let world = World::new().await;
    let question = json!({"message_type": "collaboration_request", "text": "which page?"});
    world.say("root", "user", question).await;
    let questions = async || {
        let mut connection = world.store.reader().await.unwrap();
        messages::questions(&mut connection, &world.task).await.unwrap().len()
    };
    assert_eq!(questions().await, 1);
    let stopped = stop(&world.store, world.snapshot.clone(), Target::Agent(AgentId::root())).await.unwrap();
    assert_eq!(stopped, [AgentId::root()]);
    assert_eq!(questions().await, 0);
    assert!(!standing(&world).await.asks_user);
    // The next message of the person is new work.
    world.say("user", "root", json!("page one")).await;
    assert_eq!(world.query("SELECT id FROM messages WHERE answered_by IS NOT NULL").await, [""; 0]);
    assert!(standing(&world).await.unanswered);
}

#[tokio::test]
async fn a_question_that_is_not_due_yet_is_dropped_when_its_asker_is_stopped() {
    let world = World::new().await;
    let question = json!({"message_type": "collaboration_request", "text": "which page?"});
    world.call("root", "send_message", json!({"to": "user", "payload": question, "delayMs": 60_000})).await;
    let state = "SELECT state FROM messages WHERE receiver = 'user'";
    assert_eq!(world.query(state).await, ["delayed"]);
    let stopped = stop(&world.store, world.snapshot.clone(), Target::Agent(AgentId::root())).await.unwrap();
    assert_eq!(stopped, [AgentId::root()]);
    assert_eq!(world.query(state).await, ["failed"]);
}

#[tokio::test]
async fn an_agent_whose_rows_are_damaged_can_be_stopped() {
    for damage in [
        "UPDATE messages SET body = 'no JSON' WHERE sender = 'root'",
        "UPDATE records SET body = '{}' WHERE agent <> 'root'",
    ] {
        let (world, reader) = with_reader().await;
        if damage.contains("records") {
            world.begin_turn(&reader).await;
        }
        let write = world.write(move |tx| {
            Box::pin(
                async move { Ok(polity_sql::query(damage).execute(&mut tx.connection).await.map(drop)?) },
            )
        });
        write.await;
        park(&world, &reader).await;
        let target = AgentId::new(reader.as_str());
        let stopped = stop(&world.store, world.snapshot.clone(), Target::Agent(target.clone())).await;
        assert_eq!(stopped.unwrap(), [target], "{damage}");
        let left = "SELECT agent FROM holds
            UNION ALL SELECT agent FROM turns WHERE state = 'open' AND agent <> 'root'";
        assert_eq!(world.query(left).await, [""; 0], "{damage}");
        let told = "SELECT body ->> 'notice' FROM messages WHERE receiver = 'root' AND sender = 'system'";
        assert_eq!(world.query(told).await, ["stopped"], "{damage}");
    }
}

#[tokio::test]
async fn a_panic_in_one_agent_touches_no_other() {
    let (world, reader) = with_reader().await;
    let writer = world.hire("root", "writer", json!({})).await;
    world.say("root", &writer, json!("write")).await;
    let cast = ScriptedModel::by_role(&[
        ("root", &[Say::Text("the reader has failed, the writer has written")]),
        ("reader", &[Say::Panic]),
        ("writer", &[Say::Text("written")]),
    ]);
    let mut society = start(world, &cast, Vec::new());
    assert_eq!(society.idle().await, Outcome::Answered);
    let world = society.end().await;
    let turns =
        format!("SELECT agent || ' ' || state FROM turns WHERE agent <> 'root' ORDER BY agent = '{writer}'");
    assert_eq!(world.query(&turns).await, [format!("{reader} failed"), format!("{writer} done")]);
    let told = world.query("SELECT body FROM messages WHERE receiver = 'root' AND sender = 'system'").await;
    assert!(told.len() == 1 && told[0].contains("a defect of polity"), "{told:?}");
    assert_eq!(cast.asked_as("reader"), 3, "two retries, then the turn failed");
}

#[tokio::test]
async fn an_agent_that_panics_again_and_again_is_parked_and_another_finishes_its_work() {
    let world = World::with(&json!({"maxFailedTurns": 2})).await;
    world.say("user", "root", json!("go")).await;
    world.begin_turn("root").await;
    let reader = world.hire("root", "reader", json!({})).await;
    let writer = world.hire("root", "writer", json!({})).await;
    for agent in [&reader, &writer] {
        world.say("root", agent, json!("work")).await;
    }
    let cast = ScriptedModel::by_role(&[
        ("root", &[Say::Text("they are at work")]),
        ("reader", &[Say::Panic]),
        ("writer", &[Say::Call("look", json!({})), Say::Text("written")]),
    ]);
    // The tool of the writer ends only when the reader begins anew after a panic. So the writer is at work while the
    // reader panics.
    let stage = cast.clone();
    let look = FakeTool::new("look", move |_| {
        let stage = stage.clone();
        Box::pin(async move {
            stage.until(|| stage.asked_as("reader") > 1).await;
            Ok(Output::json(json!({})))
        })
    });
    let mut society = start(world, &cast, vec![look]);
    let turns_of = |agent: &str| format!("SELECT state FROM turns WHERE agent = '{agent}' ORDER BY id");
    society.until(&turns_of(&reader), &["failed"]).await;
    society.until(&turns_of(&writer), &["done"]).await;
    assert_eq!(society.world.query("SELECT agent FROM holds").await, [""; 0]);

    society.world.say("root", &reader, json!("once more")).await;
    society.until("SELECT agent FROM holds", &[reader.as_str()]).await;
    assert_eq!(cast.asked_as("reader"), 6, "two turns with two retries each");
    let told =
        "SELECT id FROM messages WHERE receiver = 'root' AND sender = 'system' AND body LIKE '%\"parked\"%'";
    assert_eq!(society.world.query(told).await.len(), 1);

    // The defect is gone. The agent works on this message after it is resumed.
    cast.play("reader", &[Say::Text("read")]);
    society.world.say("root", &reader, json!("and now?")).await;
    let target = AgentId::new(reader.as_str());
    assert_eq!(society.resume(Target::Agent(target.clone())).await, [target]);
    society.until(&turns_of(&reader), &["failed", "failed", "done"]).await;
    assert_eq!(cast.asked_as("reader"), 7);
    let world = society.end().await;
    let said = format!("SELECT body FROM messages WHERE sender = '{reader}'");
    assert_eq!(world.query(&said).await, [r#"{"text":"read"}"#]);
}

/// Agents stay alive when their task is over, so their number grows with the history.
#[tokio::test]
async fn agents_with_nothing_to_do_take_no_statements_when_everybody_is_steered() {
    let mut counts = Vec::new();
    for idle in [1, 500] {
        let (world, reader) = with_reader().await;
        let hire = format!(
            "WITH RECURSIVE numbers (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {idle})
            INSERT INTO agents (id, task, parent, role, name, brief, depth, created_at)
            SELECT 'idle-' || n, task, parent, role, NULL, brief, depth, created_at FROM numbers, agents
            WHERE id = '{reader}'"
        );
        let write = world.write(move |tx| {
            Box::pin(async move {
                let hire = polity_sql::query(polity_sql::Sql::built(hire));
                Ok(hire.execute(&mut tx.connection).await.map(drop)?)
            })
        });
        write.await;
        let (store, snapshot) = (&world.store, &world.snapshot);
        let paused = pause(store, Target::Everybody).await.unwrap();
        assert_eq!(paused.len(), idle + 2);
        let before = store.statements();
        assert_eq!(pause(store, Target::Everybody).await.unwrap(), []);
        let mut statements = store.statements() - before;
        assert_eq!(resume(store, Target::Everybody).await.unwrap(), paused);
        let before = store.statements();
        assert_eq!(resume(store, Target::Everybody).await.unwrap(), []);
        let stopped = stop_task(store, snapshot.clone(), world.task.clone()).await.unwrap();
        assert_eq!(stopped, [AgentId::root(), AgentId::new(reader)]);
        assert_eq!(stop(store, snapshot.clone(), Target::Everybody).await.unwrap(), []);
        statements += store.statements() - before;
        counts.push(statements);
    }
    assert_eq!(counts[0], counts[1]);
}

/// An action of the person.
#[derive(Clone, Debug)]
enum Act {
    Pause(usize),
    Resume,
    Stop(usize),
    Say,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        (0usize..4).prop_map(Act::Pause),
        Just(Act::Resume),
        (0usize..4).prop_map(Act::Stop),
        Just(Act::Say)
    ]
}

fn target(which: usize, reader: &str) -> Target {
    match which {
        0 => Target::Everybody,
        1 => Target::Agent(AgentId::root()),
        2 => Target::Subtree(AgentId::new(reader)),
        _ => Target::Agent(AgentId::new(reader)),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Whatever the person does, the society comes to rest when all agents are resumed. Then no turn is open, no
    /// message is in a turn, and every tool call in a request to a model has its result.
    #[test]
    fn the_state_stays_whole_however_it_is_steered(acts in proptest::collection::vec((act(), 0usize..6), 1..12)) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (world, reader) = with_reader().await;
            let look = Say::Call("list_contacts", json!({}));
            let cast = ScriptedModel::by_role(&[
                ("root", &[look.clone(), Say::Text("waiting"), look.clone(), Say::Text("answer")]),
                ("reader", &[look, Say::Text("read")]),
            ]);
            let society = start(world, &cast, Vec::new());
            for (act, steps) in acts {
                for _ in 0..steps {
                    tokio::task::yield_now().await;
                }
                match act {
                    Act::Pause(which) => drop(society.pause(target(which, &reader)).await),
                    Act::Resume => drop(society.resume(Target::Everybody).await),
                    Act::Stop(which) => drop(society.stop_work(target(which, &reader)).await),
                    Act::Say => drop(society.world.say("user", "root", json!("more")).await),
                }
            }
            society.resume(Target::Everybody).await;
            let left = "SELECT CAST(id AS TEXT) FROM turns WHERE state = 'open' UNION ALL
                SELECT id FROM messages WHERE receiver <> 'user' AND state IN ('queued', 'delayed', 'in_turn')
                UNION ALL SELECT id FROM tasks WHERE state = 'open'";
            let mut events = society.world.signals.events.clone();
            while !society.world.query(left).await.is_empty() {
                let changed = tokio::time::timeout(Duration::from_secs(60), events.changed()).await;
                assert!(changed.is_ok(), "the society does not come to rest: {:?}", society.world.query(left).await);
            }
            society.end().await;
        });
    }
}
