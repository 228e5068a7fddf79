//! Tests the order in which a working agent gets the messages of other agents.

use super::*;
use polity_hands::table::Hands;
use polity_llm::{Message, Part, Request};
use polity_society::id::AgentId;
use polity_society::message::Payload;
use polity_society::rules::{Answering, Draft, LastWord};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::cell::RefCell;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tokio::sync::Barrier;

/// How the model gives one answer: how often it first yields to the scheduler, and whether the answer calls a tool.
type Thought = (u8, bool);

/// What the model should do, and what it has seen. `thoughts` determines the answers. An entry is a numbered text of a
/// message to root. `shown` lists the entries in the order in which root's model first saw them.
#[derive(Default)]
struct Notes {
    thoughts: Mutex<Vec<Thought>>,
    asked: AtomicUsize,
    busy: AtomicBool,
    overlapped: AtomicBool,
    shown: Mutex<Vec<(usize, usize)>>,
}

impl Notes {
    /// Answers a request as the next [`Thought`] demands: yields to the scheduler, then calls a tool or ends the
    /// turn.
    async fn answer(&self, request: &Request) -> Say {
        let number = self.asked.fetch_add(1, Ordering::SeqCst);
        if self.busy.swap(true, Ordering::SeqCst) {
            self.overlapped.store(true, Ordering::SeqCst);
        }
        self.shown.lock().unwrap().extend(new_entries(request));
        let (pauses, calls) = {
            let thoughts = self.thoughts.lock().unwrap();
            thoughts[number % thoughts.len()]
        };
        for _ in 0..pauses {
            tokio::task::yield_now().await;
        }
        self.busy.store(false, Ordering::SeqCst);
        if calls {
            // Each call asks for another name, because the turn would fail after several equal calls.
            Say::Call("find_role_by_name", json!({"name": format!("role {number}")}))
        } else {
            Say::Text("noted")
        }
    }
}

/// Returns a model, and the notes that determine and record its work.
fn noting() -> (Arc<ScriptedModel>, Arc<Notes>) {
    let notes = Arc::new(Notes::default());
    let noted = Arc::clone(&notes);
    let model = ScriptedModel::function(move |request| {
        let notes = Arc::clone(&notes);
        Box::pin(async move { notes.answer(request).await })
    });
    (model, noted)
}

/// Returns the new entries of a request: those that come after the last answer of the model and after the results of
/// its tool calls. Each entry is a pair: the number of the sender, and the number of the entry among the entries of
/// this sender.
fn new_entries(request: &Request) -> Vec<(usize, usize)> {
    let is_older = |message: &Message| matches!(message, Message::Assistant { .. } | Message::Tool { .. });
    let begins = request.messages.iter().rposition(is_older).map_or(0, |at| at + 1);
    let parts = request.messages[begins..].iter().filter_map(|message| match message {
        Message::User(parts) => Some(parts),
        _ => None,
    });
    let texts = parts.flatten().filter_map(|part| match part {
        Part::Text(text) => Some(text),
        _ => None,
    });
    let entries = texts.filter_map(|text| text.split_once("entry ")?.1.split_once('.')?.0.split_once('/'));
    entries.map(|(sender, number)| (sender.parse().unwrap(), number.parse().unwrap())).collect()
}

/// Sends root a message with one entry. The message rings the bell of root's mailbox. This function also rings this
/// bell itself, before it sends the message.
async fn send(
    handles: &Handles,
    snapshot: &Arc<polity_registry::Snapshot>,
    sender: Conversation,
    entry: String,
) {
    let snapshot = Arc::clone(snapshot);
    let write = handles.store.write(move |tx| {
        Box::pin(async move {
            let payload = json!({"message_type": "status_report", "text": entry});
            let draft = Draft {
                to: "root".to_owned(),
                payload: Payload::parse(&payload).unwrap().0,
                answering: Answering::AsWritten,
                due_at: None,
            };
            tx.ring(Bell::Mailbox(Conversation { agent: AgentId::root(), task: sender.task.clone() }));
            polity_store::keep(
                crate::door::send(tx, &snapshot, &sender, draft, LastWord::UnlessWaiting).await,
            )
        })
    });
    write.await.unwrap().unwrap();
}

/// Root, which is at work, and three agents that send messages to root.
struct Stage {
    world: World,
    handles: Arc<Handles>,
    notes: Arc<Notes>,
    senders: Vec<Conversation>,
}

impl Stage {
    async fn set() -> Self {
        let mut world = World::with(&json!({"maxPairExchanges": 1_000_000})).await;
        let mut senders = Vec::new();
        for role in ["one", "two", "three"] {
            senders.push(world.of(&world.hire("root", role, json!({})).await));
        }
        let (model, notes) = noting();
        let handles = world.handles(model, Hands::none());
        // The supervisor works until the runtime ends.
        let _ = supervise(&mut world, &handles);
        Self { world, handles, notes, senders }
    }

    /// Lets each agent write its entries while root works. `pauses` sets the pause before each entry,
    /// and `thoughts` controls root's model. Returns the entries that root was shown, in order.
    async fn play(&mut self, thoughts: Vec<Thought>, pauses: &[Vec<u8>]) -> Vec<(usize, usize)> {
        *self.notes.thoughts.lock().unwrap() = thoughts;
        let (handles, snapshot) = (&self.handles, &self.world.snapshot);
        let writing =
            self.senders.iter().zip(pauses).enumerate().map(|(sender, (from, pauses))| async move {
                for (number, pause) in pauses.iter().enumerate() {
                    for _ in 0..*pause {
                        tokio::task::yield_now().await;
                    }
                    send(handles, snapshot, from.clone(), format!("entry {sender}/{number}.")).await;
                }
            });
        futures::future::join_all(writing).await;
        while self
            .world
            .query("SELECT id FROM messages WHERE receiver = 'root' AND state NOT IN ('done', 'failed')")
            .await
            != [""; 0]
        {
            self.world.signals.events.changed().await.unwrap();
        }
        std::mem::take(&mut *self.notes.shown.lock().unwrap())
    }
}

/// Starts the supervisor of a world. The supervisor works until the returned token is cancelled, or the runtime ends.
fn supervise(world: &mut World, handles: &Arc<Handles>) -> CancellationToken {
    let stop = CancellationToken::new();
    let (_, unused) = mpsc::unbounded_channel();
    let bells = std::mem::replace(&mut world.signals.bells, unused);
    let (broken, _) = watch::channel(None);
    let ended = CancellationToken::new();
    tokio::spawn(Supervisor::new(Arc::clone(handles), bells, stop.clone(), broken, ended).run());
    stop
}

#[test]
fn what_comes_while_an_agent_works_is_heard_once_and_in_order() {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let stage = RefCell::new(runtime.block_on(Stage::set()));
    let thoughts = proptest::collection::vec((0u8..40, any::<bool>()), 0..6);
    let pauses = proptest::collection::vec(proptest::collection::vec(0u8..40, 0..5), 3);
    let config = ProptestConfig { source_file: Some(file!()), ..ProptestConfig::with_cases(100) };
    let played = TestRunner::new(config).run(&(thoughts, pauses), |(mut thoughts, pauses)| {
        // Add one answer without a tool call, so that every turn ends.
        thoughts.push((1, false));
        let shown = runtime.block_on(stage.borrow_mut().play(thoughts, &pauses));
        let overlapped = stage.borrow().notes.overlapped.load(Ordering::SeqCst);
        prop_assert!(!overlapped, "two calls of one conversation at the same time");
        for (sender, pauses) in pauses.iter().enumerate() {
            let of_sender = shown.iter().filter(|(of, _)| *of == sender).map(|(_, number)| *number);
            prop_assert_eq!(of_sender.collect::<Vec<_>>(), (0..pauses.len()).collect::<Vec<_>>());
        }
        Ok(())
    });
    played.unwrap();
    let heard = "SELECT message FROM records WHERE message IS NOT NULL ORDER BY seq";
    let heard = runtime.block_on(stage.borrow().world.query(heard));
    assert!(
        heard.len() > 100 && heard.is_sorted(),
        "a mailbox is read in the order of acceptance: {heard:?}"
    );
}

/// Returns a model that answers no agent before a second agent has asked. Then it answers both.
fn together() -> Arc<ScriptedModel> {
    let both = Arc::new(Barrier::new(2));
    ScriptedModel::function(move |_| {
        let both = Arc::clone(&both);
        Box::pin(async move {
            both.wait().await;
            Say::Text("done")
        })
    })
}

#[tokio::test]
async fn conversations_do_not_wait_for_each_other() {
    let mut world = World::new().await;
    for role in ["reader", "writer"] {
        let hired = world.hire("root", role, json!({})).await;
        let report: Value = json!({"message_type": "status_report", "text": "go"});
        world.say("root", &hired, report).await;
    }
    let handles = world.handles(together(), Hands::none());
    let stop = supervise(&mut world, &handles);
    let both_are_done = async {
        while world.query("SELECT agent FROM turns WHERE state = 'done'").await.len() < 2 {
            world.signals.events.changed().await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), both_are_done).await.expect("one waits for the other");
    stop.cancel();
}
